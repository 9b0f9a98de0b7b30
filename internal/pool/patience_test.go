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

// A place is kept for about as long as late replies take, and not at all where that is long.
func TestGraceFollowsWhatLateRepliesTook(t *testing.T) {
	var p patience
	grace := func(rtt, least, most time.Duration, when string) {
		t.Helper()
		if got := p.grace(rtt); got < least || got > most || got > p.limit(rtt) {
			t.Errorf("%v %s, want %v to %v", got, when, least, most)
		}
	}
	grace(0, drainLeast, drainLeast, "while nothing is known")
	grace(50*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond, "while only the round trip is known")
	for range 50 {
		p.learn(20 * time.Millisecond)
	}
	grace(time.Millisecond, 40*time.Millisecond, 45*time.Millisecond, "where replies take 20 ms")
	for range 50 {
		p.learn(time.Second)
	}
	grace(time.Millisecond, 0, 0, "where replies take a second")
	grace(time.Second, time.Second, drainMost, "where a round trip takes one, too")
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
			if got := p.grace(rtt); got < 0 || got > p.limit(rtt) {
				t.Fatalf("grace %v of %v", got, p.limit(rtt))
			}
		}
	})
}
