package main

import "fmt"

// promise is one line of the table: a candidate held to the official package, to hand-written code, or to a number of
// allocations. Zero means that nothing is promised.
type promise struct {
	candidate   string
	floor, aim  float64 // at least so many times faster than "official"
	hand, aimed float64 // at most so many times the time of "hand"
	allocs      float64 // at most
	noAllocs    bool    // none at all
}

// group is work of one kind on one shape, done by several candidates. One is called "official", one may be "hand".
type group struct {
	name       string
	candidates []candidate
	promises   []promise
}

type line struct {
	text string
	ok   bool
}

const header = "work                           candidate        ns  official  floor    aim   hand  limit    aim  allocs  limit"

// judge holds the samples of a group to its promises.
func (g group) judge(samples map[string]*sample) []line {
	var out []line
	for _, p := range g.promises {
		s := samples[p.candidate]
		faster := s.ratio(samples["official"])
		ok := faster >= p.floor
		text := fmt.Sprintf("%-30s %-10s %8.0f  %7.2fx %s %s", g.name, p.candidate, median(s.ns), faster, times(p.floor), times(p.aim))
		if hand := samples["hand"]; hand != nil {
			over := 1 / s.ratio(hand)
			ok = ok && (p.hand == 0 || over <= p.hand)
			text += fmt.Sprintf(" %5.2fx %s %s", over, times(p.hand), times(p.aimed))
		} else {
			text += "                     "
		}
		text += fmt.Sprintf(" %7.1f", s.allocs)
		if p.allocs > 0 || p.noAllocs {
			ok = ok && s.allocs <= p.allocs+0.05 // the harness itself allocates now and then
			text += fmt.Sprintf(" %6.0f", p.allocs)
		}
		if !ok {
			text += "  BELOW"
		}
		out = append(out, line{text, ok})
	}
	return out
}

func times(x float64) string {
	if x == 0 {
		return "      "
	}
	return fmt.Sprintf("%5.4gx", x)
}
