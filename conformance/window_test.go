package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/sextantdb/sextant/internal/topology"
)

// rttFile is a case of server-selection/rtt: an average, a sample, the next average.
type rttFile struct {
	Average any     `json:"avg_rtt_ms"` // a number, or "NULL"
	Sample  float64 `json:"new_rtt_ms"`
	Next    float64 `json:"new_avg_rtt"`
}

func loadRTT(dir string) ([]Case, error) {
	return load(dir, "rtt", oneCase((*rttFile).run))
}

// run gives a topology the old average as its first sample, then the new sample.
func (f *rttFile) run() error {
	const addr = "a:27017"
	epoch := time.UnixMilli(0)
	d := topology.New(topology.Config{Seeds: []string{addr}, Direct: true}, epoch)
	samples := []float64{f.Sample}
	if old, known := f.Average.(float64); known {
		samples = []float64{old, f.Sample}
	}
	standalone := serverJSON{Address: addr, Type: "Standalone"}
	for _, sample := range samples {
		s, err := topology.ParseHello(addr, standalone.hello(nil), ms(sample), epoch)
		if err != nil {
			return err
		}
		d, _ = d.Apply(topology.HelloReply{Server: s}, epoch)
	}
	got := float64(d.Server(addr).RTT) / float64(time.Millisecond)
	if math.Abs(got-f.Next) > 1e-5 { // nanoseconds are the clock's grain
		return fmt.Errorf("the average became %v ms, want %v ms", got, f.Next)
	}
	return nil
}

// windowFile is a case of server-selection/in_window: how often each member is picked, given its load.
type windowFile struct {
	Topology topologyJSON `json:"topology_description"`
	Loads    []struct {
		Address    string `json:"address"`
		Operations int    `json:"operation_count"`
	} `json:"mocked_topology_state"`
	Iterations int `json:"iterations"`
	Outcome    struct {
		Tolerance   float64            `json:"tolerance"`
		Frequencies map[string]float64 `json:"expected_frequencies"`
	} `json:"outcome"`
}

func loadInWindow(dir string) ([]Case, error) {
	return load(dir, "in_window", oneCase((*windowFile).run))
}

func (f *windowFile) run() error {
	d, err := f.Topology.build(0)
	if err != nil {
		return err
	}
	loads := map[string]int{}
	for _, l := range f.Loads {
		loads[l.Address] = l.Operations
	}
	pref := readPrefJSON{Mode: "nearest"}
	nearest, err := pref.build()
	if err != nil {
		return err
	}
	candidates := d.Candidates(topology.Want{ReadPref: nearest}, time.Time{})
	rnd := rand.New(rand.NewPCG(1, 2)) // fixed: a case that passes passes always
	picked := map[string]int{}
	for range f.Iterations {
		s := topology.Pick(candidates, func(i int) int { return loads[candidates[i].Addr] }, rnd.IntN)
		if s == nil {
			return fmt.Errorf("nobody was picked of %v", d.View())
		}
		picked[s.Addr]++
	}
	for addr, want := range f.Outcome.Frequencies {
		got := float64(picked[addr]) / float64(f.Iterations)
		exact := want == 0 || want == 1
		if exact && got != want || math.Abs(got-want) > f.Outcome.Tolerance {
			return fmt.Errorf("%s was picked in %.3f of all cases, want %.3f within %.3f", addr, got, want, f.Outcome.Tolerance)
		}
	}
	return nil
}
