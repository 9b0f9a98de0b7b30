package topology

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sextantdb/sextant/event"
	"pgregory.net/rapid"
)

// TestChancesAreThoseOfEveryDraw goes through all pairs that can be drawn and counts who wins.
func TestChancesAreThoseOfEveryDraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loads := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 6).Draw(t, "loads")
		n := len(loads)
		wins, draws := make([]int, n), 0
		for first := range n {
			for second := range max(n-1, 1) {
				script := []int{first, second}
				rnd := func(int) int { next := script[0]; script = script[1:]; return next }
				wins[PickIndex(n, func(i int) int { return loads[i] }, rnd)]++
				draws++
			}
		}
		sum := 0.0
		for i, chance := range Chances(loads) {
			sum += chance
			if want := float64(wins[i]) / float64(draws); math.Abs(chance-want) > 1e-12 {
				t.Fatalf("loads %v: candidate %d has the chance %v, drawn %v", loads, i, chance, want)
			}
		}
		if n > 0 && math.Abs(sum-1) > 1e-12 {
			t.Fatalf("loads %v: the chances add up to %v", loads, sum)
		}
	})
}

func TestPickKeepsToTheChancesItIsSaidToHave(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	loads := []int{2, 0, 1, 1}
	const rounds = 60_000
	counts := make([]float64, len(loads))
	for range rounds {
		counts[PickIndex(len(loads), func(i int) int { return loads[i] }, rnd.IntN)]++
	}
	for i, chance := range Chances(loads) {
		if got := counts[i] / rounds; math.Abs(got-chance) > 0.01 {
			t.Errorf("candidate %d of load %d: chosen %.3f, said %.3f", i, loads[i], got, chance)
		}
	}
	if c := Chances(loads); c[0] != 0 || c[1] != 0.5 || c[2] != 0.25 || c[3] != 0.25 {
		t.Errorf("chances %v", c)
	}
}

func TestVerdictTellsLoadAndChanceOfWhoMayServe(t *testing.T) {
	v := event.Verdict{Sentence: "said", Members: []event.MemberVerdict{
		{Address: "a:1", Kind: event.RSPrimary, Rule: "no"},
		{Address: "b:1", Kind: event.RSSecondary, Eligible: true, Rule: "yes"},
		{Address: "c:1", Kind: event.RSSecondary, Eligible: true, Rule: "yes"},
		{Address: "d:1", Kind: event.RSSecondary, Eligible: true, Rule: "yes"},
	}}
	WithLoads(&v, func(addr string) int { return map[string]int{"b:1": 1, "c:1": 2}[addr] })
	want := "said\n  - a:1 RSPrimary: no\n  + b:1 RSSecondary: yes, 1 operation under way, chance 33.3 %\n" +
		"  + c:1 RSSecondary: yes, 2 operations under way, chance 0 %\n  + d:1 RSSecondary: yes, chance 66.7 %"
	if v.String() != want {
		t.Errorf("got\n%s\nwant\n%s", v, want)
	}
}
