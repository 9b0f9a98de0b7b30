package topology

import "github.com/sextantdb/sextant/event"

// Pick chooses among candidates: two at random, and of these the one with the lower load (server selection,
// "operationCount-based selection"). load tells the operations in progress of candidate i; rnd(n) is a random number
// in [0, n). It is nil if there are no candidates.
func Pick(candidates []*Server, load func(i int) int, rnd func(n int) int) *Server {
	if i := PickIndex(len(candidates), load, rnd); i >= 0 {
		return candidates[i]
	}
	return nil
}

// PickIndex is Pick among n candidates that are told by their number; -1 if there are none.
func PickIndex(n int, load func(i int) int, rnd func(n int) int) int {
	if n < 2 {
		return n - 1
	}
	a := rnd(n)
	b := rnd(n - 1)
	if b >= a {
		b++
	}
	if load(b) < load(a) {
		a = b
	}
	return a
}

// Chances are the probabilities with which Pick takes each of the candidates that have these loads. Of the n(n-1) pairs
// (first, second) that may be drawn, all as likely, a candidate wins those in which it comes first and the other is not
// less loaded, and those in which it comes second and the other is more loaded.
func Chances(loads []int) []float64 {
	n := len(loads)
	if n == 1 {
		return []float64{1}
	}
	out := make([]float64, n)
	for i, mine := range loads {
		wins := 0
		for j, other := range loads {
			if j != i && other >= mine {
				wins++
			}
			if other > mine {
				wins++
			}
		}
		out[i] = float64(wins) / float64(n*(n-1))
	}
	return out
}

// WithLoads fills in how busy the eligible members of a verdict are and the chance of each.
func WithLoads(v *event.Verdict, load func(address string) int) {
	var loads, at []int
	for i := range v.Members {
		if m := &v.Members[i]; m.Eligible {
			m.Load = load(m.Address)
			loads, at = append(loads, m.Load), append(at, i)
		}
	}
	for n, chance := range Chances(loads) {
		v.Members[at[n]].Chance = chance
	}
}
