package replset

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A story is a set that lives through random faults on fake time while our driver writes to it and reads from it.
// Afterwards both must have kept their promises (see violation). What is planned, and what the actors choose, follows
// from the story's number; how the goroutines take turns does not, so that a story told again may end otherwise: a
// failure that comes back seldom is replayed by telling it more than once (SEXTANT_TIMES).

// TestStoriesOfFaultsKeepEveryPromise tells SEXTANT_STORIES stories (200) from SEXTANT_STORY (1) on, as many at a time
// as there are processors.
func TestStoriesOfFaultsKeepEveryPromise(t *testing.T) {
	t.Parallel() // with the others that tell stories, after all that live in real time
	first, n, times := number("SEXTANT_STORY", 1), number("SEXTANT_STORIES", 200), number("SEXTANT_TIMES", 1)
	if os.Getenv("SEXTANT_STORY") != "" && os.Getenv("SEXTANT_STORIES") == "" {
		n = 1
	}
	sum := &summary{begun: time.Now(), reads: map[string]int{}}
	seeds := make(chan uint64)
	var crew sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		crew.Go(func() {
			for seed := range seeds {
				t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { sum.add(t, tell(t, planOf(seed), NoFault)) })
			}
		})
	}
	for range times {
		for seed := first; seed < first+n; seed++ {
			seeds <- seed
		}
	}
	close(seeds)
	crew.Wait()
	sum.judge(t)
}

func number(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 32); err == nil {
		return n
	}
	return otherwise
}

// summary is what many stories come to.
type summary struct {
	begun time.Time

	mu             sync.Mutex // guards all below
	told, elected  int
	acked, unknown int
	reads          map[string]int
}

// add counts a story and, if a promise was broken, tells it.
func (s *summary) add(t *testing.T, o outcome) {
	s.mu.Lock()
	s.told++
	if o.elections > 0 {
		s.elected++
	}
	s.acked += o.acked
	s.unknown += o.unknown
	for mode, n := range o.reads {
		s.reads[mode] += n
	}
	if s.told%500 == 0 {
		fmt.Println(s.line())
	}
	s.mu.Unlock()
	if len(o.broken) == 0 {
		return
	}
	for _, v := range o.broken {
		t.Error(v)
	}
	t.Logf("tell it again: SEXTANT_STORY=%d go test -count=1 -run TestStories ./replset\n%v\n%s", o.plan.seed, o.plan, o.text)
}

func (s *summary) line() string {
	return fmt.Sprintf("%d stories, %.0f a minute; an election in %.0f %%; %d writes acknowledged, %d not; reads %v", s.told,
		float64(s.told)/time.Since(s.begun).Minutes(), 100*float64(s.elected)/float64(max(s.told, 1)), s.acked, s.unknown, s.reads)
}

// judge holds all stories together to what they are for: elections, writes and reads of every mode.
func (s *summary) judge(t *testing.T) {
	fmt.Println(s.line())
	if s.told < 20 {
		return
	}
	if s.elected*100 < 80*s.told {
		t.Errorf("only %d stories of %d have an election beyond the first", s.elected, s.told)
	}
	if s.acked < 10*s.told {
		t.Errorf("only %d writes were acknowledged in %d stories", s.acked, s.told)
	}
	for _, mode := range modes {
		if s.reads[mode.String()] < s.told {
			t.Errorf("only %d reads of mode %s succeeded in %d stories", s.reads[mode.String()], mode, s.told)
		}
	}
	if s.reads["causal"] < 3*s.told {
		t.Errorf("only %d causal reads succeeded in %d stories", s.reads["causal"], s.told)
	}
}
