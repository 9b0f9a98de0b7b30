package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/readpref"
)

// discovered is a cluster that knows the three members of a set.
func discovered(tb testing.TB) *cluster.Cluster {
	tb.Helper()
	s, _ := setOf3()
	cfg := seeds("a:1")
	cfg.Conn.Dial = s.dial
	c := cluster.New(cfg)
	tb.Cleanup(func() { c.Close(context.Background()) })
	for deadline := time.Now().Add(10 * time.Second); kinds(c) != "a:1 RSPrimary, b:1 RSSecondary, c:1 RSSecondary"; {
		if _, err := c.Select(tb.Context(), topology.Want{Write: true}); err != nil || time.Now().After(deadline) {
			tb.Fatalf("not discovered: %s, %v", kinds(c), err)
		}
	}
	return c
}

// wants are plain ones, and one that the view remembers. (The script's members have no tags.)
var wants = map[string]topology.Want{
	"write": {Write: true}, "nearest": {ReadPref: readpref.Nearest()},
	"nearest, tags or any": {ReadPref: readpref.Nearest(readpref.Tags("dc", "east"), readpref.Tags())},
}

func TestSelectionOfAKnownWantAllocatesNothing(t *testing.T) {
	c := discovered(t)
	ctx := t.Context()
	for name, w := range wants {
		allocs := testing.AllocsPerRun(5000, func() { // many, since the monitors allocate meanwhile
			if _, err := c.Select(ctx, w); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

func BenchmarkSelect(b *testing.B) {
	c := discovered(b)
	for name, w := range wants {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Select(b.Context(), w); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheckOut(b *testing.B) {
	c := discovered(b)
	s, err := c.Select(b.Context(), topology.Want{Write: true})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		pc, err := s.CheckOut(b.Context(), topology.Want{})
		if err != nil {
			b.Fatal(err)
		}
		pc.CheckIn()
	}
}

// BenchmarkSelectNewTags makes its read preference anew for each selection, as many programs do.
func BenchmarkSelectNewTags(b *testing.B) {
	c := discovered(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Select(b.Context(), topology.Want{ReadPref: readpref.Nearest(readpref.Tags("dc", "east"), readpref.Tags())}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSelectBySelector is a want that nobody can remember.
func BenchmarkSelectBySelector(b *testing.B) {
	c := discovered(b)
	all := func(members []event.Member) []event.Member { return members }
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Select(b.Context(), topology.Want{ReadPref: readpref.Nearest(), Selector: all}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestSelectionByAPinAllocatesNothing(t *testing.T) {
	c := discovered(t)
	ctx := t.Context()
	p, err := c.Pin(ctx, readpref.Secondary())
	if err != nil {
		t.Fatal(err)
	}
	w := topology.Want{ReadPref: p.ReadPref()}
	allocs := testing.AllocsPerRun(5000, func() {
		s, err := p.SelectFor(ctx, w, "find", 1)
		if err != nil {
			t.Fatal(err)
		}
		s.Done()
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
