package main

import (
	"runtime"
	"slices"
	"syscall"
	"time"
)

// candidate is one way to do the work of a group. run does it n times.
type candidate struct {
	name string
	run  func(n int)
}

// sample is what was measured of one candidate: nanoseconds a run in every round, and allocations a run.
type sample struct {
	ns     []float64
	allocs float64
}

// measure lets the candidates take turns: in each round every one runs for about the time of a slice, and who begins
// changes from round to round. A machine that is busy with other things slows all of a round alike, so that the ratios
// inside a round are worth more than the times. Slices are short, so that most are not interrupted at all;
// most see no cycle of the collector either, which a longer one (-slice 10ms) charges to who needs it.
func measure(cs []candidate, rounds int, slice time.Duration, now func() time.Duration) map[string]*sample {
	counts := make([]int, len(cs))
	out := map[string]*sample{}
	for i, c := range cs {
		counts[i] = calibrate(c.run, slice)
		out[c.name] = &sample{allocs: allocations(c.run)}
	}
	for r := range rounds {
		runtime.GC()
		for j := range cs {
			i := (j + r) % len(cs)
			start := now()
			cs[i].run(counts[i])
			s := out[cs[i].name]
			s.ns = append(s.ns, float64(now()-start)/float64(counts[i]))
		}
	}
	return out
}

// cpu is the time that this process has spent computing, its collector included. Unlike the time on the wall it does not
// count what other programs do meanwhile, which on a shared machine is most of the noise.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the call has no way to fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var born = time.Now()

func wall() time.Duration { return time.Since(born) }

// calibrate finds how many runs fill a slice: the most of several tries, since an interruption makes runs look slow.
func calibrate(run func(int), slice time.Duration) int {
	most := 1
	for range 5 {
		for n := 1; n < 1<<26; n *= 2 {
			start := cpu()
			run(n)
			if took := cpu() - start; took > slice/2 {
				most = max(most, int(float64(n)*float64(slice)/float64(took)))
				break
			}
		}
	}
	return most
}

func allocations(run func(int)) float64 {
	const n = 1000
	run(10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run(n)
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / n
}

// ratio is the median over the rounds of base's time divided by s's: how many times faster s is.
func (s *sample) ratio(base *sample) float64 {
	rs := make([]float64, len(s.ns))
	for i := range rs {
		rs[i] = base.ns[i] / s.ns[i]
	}
	return median(rs)
}

func median(xs []float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	return xs[len(xs)/2]
}
