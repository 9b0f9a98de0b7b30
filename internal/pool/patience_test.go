package pool

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPatienceFollowsWhatLateRepliesTook(t *testing.T) {
	var p patience
	if got := p.limit(0); got != drainFirst {
		t.Errorf("%v while nothing is known", got)
	}
	for range 50 {
		p.learn(2 * time.Millisecond)
	}
	if got := p.limit(0); got != drainLeast {
		t.Errorf("%v where replies come at once", got)
	}
	if got := p.limit(50 * time.Millisecond); got != drainLeast+200*time.Millisecond {
		t.Errorf("%v where a round trip takes 50 ms", got)
	}
	for range 50 {
		p.learn(time.Second)
	}
	if got := p.limit(0); got < time.Second || got > 1200*time.Millisecond {
		t.Errorf("%v where replies take a second", got)
	}
	for range 10 {
		p.missed(p.limit(0))
	}
	if got := p.limit(0); got != drainMost {
		t.Errorf("%v where replies do not come", got)
	}
	for range 100 {
		p.learn(time.Millisecond)
	}
	if got := p.limit(0); got != drainLeast {
		t.Errorf("%v when they do again", got)
	}
}

func TestPatienceIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p patience
		rtt := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "rtt"))
		for range rapid.IntRange(0, 20).Draw(t, "replies") {
			took := time.Duration(rapid.Int64Range(0, int64(drainMost)).Draw(t, "took"))
			if rapid.Bool().Draw(t, "missed") {
				p.missed(p.limit(rtt))
			} else {
				p.learn(took)
			}
			if got := p.limit(rtt); got < drainLeast || got > drainMost {
				t.Fatalf("limit %v", got)
			}
		}
	})
}
