package topology

import (
	"slices"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
	"pgregory.net/rapid"
)

// drawDescription lets a few servers answer at random, so that only reachable descriptions come up.
func drawDescription(t *rapid.T) *Description {
	cfg := Config{Seeds: []string{"a:1", "b:1", "c:1"}, SetName: rapid.SampledFrom([]string{"", "rs0"}).Draw(t, "set")}
	if rapid.IntRange(0, 9).Draw(t, "direct") == 0 {
		cfg.Seeds, cfg.Direct = cfg.Seeds[:1], true
	}
	d := New(cfg, epoch)
	for range rapid.IntRange(0, 8).Draw(t, "events") {
		addr := rapid.SampledFrom([]string{"a:1", "b:1", "c:1"}).Draw(t, "addr")
		now := epoch.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "now")) * time.Second)
		if rapid.IntRange(0, 5).Draw(t, "fails") == 0 {
			d, _ = d.Apply(CheckFailed{Addr: addr, Err: mongoerr.New(mongoerr.StageDial, "refused")}, now)
			continue
		}
		s, err := ParseHello(addr, drawReply(t), time.Duration(rapid.IntRange(0, 60).Draw(t, "rtt"))*time.Millisecond, now)
		if err != nil {
			t.Fatal(err)
		}
		d, _ = d.Apply(HelloReply{Server: s}, now)
	}
	return d
}

func drawReply(t *rapid.T) bson.Raw {
	role := rapid.SampledFrom([]byte("ppsssah")).Draw(t, "role")
	r := reply(role, "dc", rapid.SampledFrom([]string{"east", "west"}).Draw(t, "dc"))
	dst := slices.Clone(r[:len(r)-1])
	dst, last := bson.BeginDocumentElement(dst, "lastWrite")
	dst = bson.AppendDateTime(dst, "lastWriteDate", epoch.UnixMilli()+int64(rapid.IntRange(-200, 200).Draw(t, "write"))*1000)
	dst = bson.EndDocument(dst, last)
	return bson.EndDocument(dst, 0)
}

func drawWant(t *rapid.T) Want {
	w := Want{Write: rapid.IntRange(0, 5).Draw(t, "write") == 0}
	var opts []readpref.Option
	mode := readpref.Mode(rapid.IntRange(0, 4).Draw(t, "mode"))
	if mode != readpref.PrimaryMode {
		for _, dc := range rapid.SliceOfN(rapid.SampledFrom([]string{"east", "west", "north"}), 0, 2).Draw(t, "tags") {
			opts = append(opts, readpref.Tags("dc", dc))
		}
		if rapid.Bool().Draw(t, "limited") {
			opts = append(opts, readpref.MaxStaleness(time.Duration(rapid.IntRange(80, 200).Draw(t, "staleness"))*time.Second))
		}
	}
	pref, err := readpref.New(mode, opts...)
	if err != nil {
		t.Fatal(err)
	}
	w.ReadPref = pref
	w.OutMerge = rapid.IntRange(0, 5).Draw(t, "out") == 0
	w.Deprioritized = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a:1", "b:1", "c:1"}), 0, 3, rapid.ID[string]).Draw(t, "deprioritized")
	if rapid.IntRange(0, 5).Draw(t, "address") == 0 {
		w.Address = rapid.SampledFrom([]string{"a:1", "z:1"}).Draw(t, "which")
	}
	if rapid.IntRange(0, 3).Draw(t, "pinned") == 0 {
		w.Pinned = rapid.SampledFrom([]string{"a:1", "b:1", "z:1"}).Draw(t, "where")
	}
	if rapid.IntRange(0, 3).Draw(t, "selector") == 0 {
		unwanted := rapid.SampledFrom([]string{"a:1", "b:1"}).Draw(t, "unwanted")
		w.Selector = func(ms []event.Member) []event.Member {
			return slices.DeleteFunc(ms, func(m event.Member) bool { return m.Address == unwanted })
		}
	}
	return w
}

func TestExplainAgreesWithCandidates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, w := drawDescription(t), drawWant(t)
		var got []string
		for _, s := range d.Candidates(w, epoch) {
			got = append(got, s.Addr)
		}
		v := d.Explain(w, epoch)
		if !slices.Equal(got, v.Eligible()) {
			t.Fatalf("candidates %v, but\n%s", got, v)
		}
		if len(v.Members) != len(d.Servers) || v.Sentence == "" {
			t.Fatalf("an incomplete verdict:\n%s", v)
		}
		for _, m := range v.Members {
			if m.Rule == "" || m.Rule == "was not considered" {
				t.Fatalf("no reason for %s:\n%s", m.Address, v)
			}
		}
	})
}

func TestPrecomputedCandidatesAgreeWithTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDescription(t)
		w := Want{Write: rapid.Bool().Draw(t, "write"), ReadPref: plainPrefs[rapid.IntRange(0, 4).Draw(t, "mode")]}
		if _, plain := w.plain(); !plain {
			t.Fatal("not a plain want")
		}
		if ready, fresh := addrs(d.Candidates(w, epoch)), addrs(d.pick(&w)); ready != fresh {
			t.Fatalf("precomputed %q, by the rules %q", ready, fresh)
		}
	})
}

// TestCandidatesKeepThePromises holds the result to what a user may rely on, told without the rules' own code.
func TestCandidatesKeepThePromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, w := drawDescription(t), drawWant(t)
		found := d.Candidates(w, epoch)
		fastest := time.Hour
		for _, s := range found {
			fastest = min(fastest, s.RTT)
		}
		for _, s := range found {
			switch {
			case w.Address == "" && !d.Suits(w, s.Addr):
				t.Fatalf("%s is a candidate that does not suit", s.Addr)
			case !s.Kind.Known():
				t.Fatalf("%s is Unknown", s.Addr)
			case w.Address != "" && s.Addr != w.Address:
				t.Fatalf("%s was not asked for", s.Addr)
			case w.Address != "" || d.Kind == event.Single:
			case s.Kind != event.RSPrimary && s.Kind != event.RSSecondary && s.Kind != event.Standalone:
				t.Fatalf("%s is %v", s.Addr, s.Kind)
			case s.Kind == event.RSSecondary && (w.Write || w.ReadPref.Mode() == readpref.PrimaryMode):
				t.Fatalf("a secondary serves %v", w)
			case s.Kind == event.RSPrimary && !w.Write && !w.OutMerge && w.ReadPref.Mode() == readpref.SecondaryMode:
				t.Fatalf("the primary serves %v", w)
			case w.Pinned != "" && s.Addr == w.Pinned:
				if len(found) != 1 {
					t.Fatalf("%v serve beside the pinned one", addrs(found))
				}
			case s.RTT > fastest+DefaultLocalThreshold:
				t.Fatalf("%s is %v slower than the fastest", s.Addr, s.RTT-fastest)
			}
		}
	})
}

func TestApplyKeepsTheTopologySound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDescription(t)
		primaries := 0
		for i, s := range d.Servers {
			if s.Kind == event.RSPrimary {
				primaries++
			}
			if !s.Kind.Known() && s.RTT != 0 {
				t.Fatalf("%s is Unknown with a round trip", s.Addr)
			}
			if d.index(s.Addr) != i {
				t.Fatalf("%s is there twice", s.Addr)
			}
		}
		if d.Kind.IsReplicaSet() && (primaries == 1) != (d.Kind == event.ReplicaSetWithPrimary) || primaries > 1 {
			t.Fatalf("%d primaries in %v", primaries, d.View())
		}
	})
}
