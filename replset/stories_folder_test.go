package replset

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// TestStoriesInFoldersLoseNothingSynced tells SEXTANT_FOLDERS (24) stories of sets that keep their data in files: a kill
// takes what was not synced, and at the end the set is closed and started again. See TestStoriesOnDisksThatForget for
// power failures.
func TestStoriesInFoldersLoseNothingSynced(t *testing.T) {
	t.Parallel()
	first, n := number("SEXTANT_STORY", 1), number("SEXTANT_FOLDERS", 24)
	if raceEnabled && os.Getenv("SEXTANT_FOLDERS") == "" {
		n /= 3
	}
	sum := &summary{begun: time.Now(), reads: map[string]int{}}
	seeds := make(chan uint64)
	var crew sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) { // half of them wait for the disk
		crew.Go(func() {
			for seed := range seeds {
				t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { sum.add(t, tell(t, planInFolder(seed), NoFault)) })
			}
		})
	}
	for seed := first; seed < first+n; seed++ {
		seeds <- seed
	}
	close(seeds)
	crew.Wait()
	fmt.Println(sum.line())
	if sum.acked < 10*sum.told {
		t.Errorf("only %d writes were acknowledged in %d stories", sum.acked, sum.told)
	}
}

// planInFolder is the plan of a story with files: every third of a set of one, which has nobody else to remember.
func planInFolder(seed uint64) plan {
	rnd := rand.New(rand.NewPCG(seed, 8))
	p := plan{seed: seed, cast: castOf(seed), folder: true, heartbeat: time.Second, mode: "stream"}
	if seed%3 == 0 {
		p.cast.name = "one member"
		p.cast.o.Config = p.cast.o.Config[:1]
		p.cast.o.Config[0].Priority = nil
	}
	alone := len(p.cast.o.Config) == 1
	for at := some(rnd, 300, 600); at < storyLength-500*time.Millisecond; at += some(rnd, 400, 1200) {
		switch k := rnd.IntN(4); {
		case k == 0:
			i := p.add(act{at: at, do: blackout, ends: -1})
			p.then(i, some(rnd, 10, 800), light)
		case alone || k == 1:
			do, whom := kill, thePrimary
			if os.Getenv(forgetfulDisk) != "" {
				do = powerOff
				if rnd.IntN(3) == 0 {
					whom = p.anyone(rnd)
				}
			}
			i := p.add(act{at: at, do: do, whom: whom, n: rnd.IntN(12), ends: -1})
			p.then(i, some(rnd, 400, 1000), restart)
		case k == 2:
			p.unseat(rnd, at)
		default:
			p.episode(rnd, at)
		}
	}
	p.inOrder()
	return p
}

// startAgain closes the set, starts it from its folder, and holds it to the same promises.
func (w *world) startAgain(t *testing.T, o Options) {
	if err := w.set.Close(); err != nil {
		w.accuse(recovers, "the set does not close: %v", err)
	}
	w.note("the set is closed and started again from its folder")
	o.Members, o.Config = 0, nil
	set, err := Start(t.Context(), o)
	if err != nil {
		w.accuse(recovers, "the set does not start again: %v", err)
		return
	}
	w.set = set
	if w.settle(t.Context()) {
		w.audit()
	}
}
