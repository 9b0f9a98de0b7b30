package interop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sextantdb/sextant/replset"
)

// discovers waits until the client sees every member, each as what it is.
func (p *puppet) discovers(set *replset.Set) {
	p.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var seen struct {
			Primary     string
			Secondaries []string
		}
		if err := p.must(`{"op":"members"}`).Unmarshal(&seen); err != nil {
			p.t.Fatal(err)
		}
		var others []string
		primary := p.primary(set)
		for _, m := range set.Members() {
			if m != primary {
				others = append(others, m.Addr())
			}
		}
		slices.Sort(others)
		if seen.Primary == primary.Addr() && slices.Equal(seen.Secondaries, others) {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the client sees %+v; the primary is %s", seen, primary.Addr())
		}
	}
}

// primary waits for a primary: on a busy machine even a set that nobody troubles may elect one anew.
func (p *puppet) primary(set *replset.Set) *replset.Member {
	p.t.Helper()
	m, err := set.WaitPrimary(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

// counts is how often each member has run a command for a client.
func counts(set *replset.Set, app, command string) (out []int64) {
	for _, m := range set.Members() {
		out = append(out, m.OpCounters(app)[command])
	}
	return out
}

func sum(list []int64) (n int64) {
	for _, one := range list {
		n += one
	}
	return n
}

// readsInBatches reads 500 documents in batches, by find and by aggregate: they come once each and in order, and the set
// saw the batches asked for.
func (p *puppet) readsInBatches(set *replset.Set, app string) {
	p.t.Helper()
	var docs []string
	for i := range 500 {
		docs = append(docs, fmt.Sprintf(`{"_id":%d,"n":[%d]}`, i, i))
	}
	step{do: `{"op":"insertMany","collection":"numbers","documents":[` + strings.Join(docs, ",") + `]}`, want: `500`}.check(p)
	list := "[" + strings.Join(docs, ",") + "]"
	before := sum(counts(set, app, "getMore"))
	step{do: `{"op":"find","collection":"numbers","sort":{"_id":1},"batchSize":37}`, want: list}.check(p)
	found := sum(counts(set, app, "getMore"))
	step{do: `{"op":"aggregate","collection":"numbers","pipeline":[{"$sort":{"_id":1}}],"batchSize":50}`, want: list}.check(p)
	aggregated := sum(counts(set, app, "getMore"))
	if found-before < 500/37 || aggregated-found < 500/50-1 {
		p.t.Errorf("%d batches beyond the first of 37 documents, %d of 50", found-before, aggregated-found)
	}
}

// reachesWhomItNames reads with read preferences; the members' own counters tell who answered.
func (p *puppet) reachesWhomItNames(set *replset.Set, app string) {
	p.t.Helper()
	if err := set.AwaitReplication(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	primary := p.primary(set)
	is := func(m *replset.Member, tags ...string) bool {
		for i := 0; i < len(tags); i += 2 {
			if m.Tags()[tags[i]] != tags[i+1] {
				return false
			}
		}
		return true
	}
	for _, c := range []struct {
		preference string
		may        func(m *replset.Member) bool
	}{
		{`{"mode":"primary"}`, func(m *replset.Member) bool { return m == primary }},
		{`{"mode":"secondary"}`, func(m *replset.Member) bool { return m != primary }},
		{`{"mode":"secondaryPreferred"}`, func(m *replset.Member) bool { return m != primary }},
		{`{"mode":"secondary","tags":[{"dc":"north"},{}]}`, func(m *replset.Member) bool { return m != primary }},
		{`{"mode":"nearest","tags":[{"dc":"west"}]}`, func(m *replset.Member) bool { return is(m, "dc", "west") }},
		{`{"mode":"nearest","tags":[{"dc":"north"},{"dc":"east","disk":"slow"}]}`, func(m *replset.Member) bool { return is(m, "dc", "east", "disk", "slow") }},
		{`{"mode":"nearest","tags":[{"disk":"fast"}]}`, func(m *replset.Member) bool { return is(m, "disk", "fast") }},
	} {
		const reads = 6
		before := counts(set, app, "find")
		for range reads {
			step{do: `{"op":"find","collection":"numbers","filter":{"_id":499},"readPreference":` + c.preference + `}`, want: `[{"_id":499,"n":[499]}]`}.check(p)
		}
		after := counts(set, app, "find")
		var total int64
		for i, m := range set.Members() {
			n := after[i] - before[i]
			total += n
			if n != 0 && !c.may(m) {
				p.t.Errorf("%s: %d reads at member %d, whose tags are %v", c.preference, n, i, m.Tags())
			}
		}
		if total != reads {
			p.t.Errorf("%s: %d reads, the members counted %d", c.preference, reads, total)
		}
	}
}

// survives has the client write one document after another while something happens to the primary. No write fails, and
// what was acknowledged is there, once.
func (p *puppet) survives(s stranger, what string, set *replset.Set, happen func(primary int) error) {
	p.t.Helper()
	before := p.primary(set)
	step{do: `{"op":"deleteMany","collection":"log","filter":{}}`}.check(p)
	happened := make(chan error, 1)
	left, n := 30, 0
	for ; left > 0; n++ {
		if n == 20 {
			go func() { happened <- happen(before.Index()) }()
		}
		p.acknowledges(s, n, 0, fmt.Sprintf(`{"op":"insertOne","collection":"log","document":{"_id":%d,"sum":0}}`, n))
		p.acknowledges(s, n, 1, fmt.Sprintf(`{"op":"updateOne","collection":"log","filter":{"_id":%d},"update":{"$inc":{"sum":1}}}`, n))
		if after := set.Primary(); n > 20 && after != nil && after != before {
			left--
		}
		if n > 100_000 {
			p.t.Fatalf("%s: the primary stayed", what)
		}
	}
	if err := <-happened; err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
	step{do: `{"op":"count","collection":"log","filter":{"sum":1}}`, want: fmt.Sprint(n)}.check(p)
	step{do: `{"op":"count","collection":"log"}`, want: fmt.Sprint(n)}.check(p)
	p.t.Logf("%d writes through %s", 2*n, what)
}

// acknowledges has the client make a write after which document n has that sum. A client that is known to hand on an error
// in place of repeating the write is told to write again, unless the write was done.
func (p *puppet) acknowledges(s stranger, n, sum int, write string) {
	p.t.Helper()
	a := p.do(write)
	if a.Error == nil {
		return
	}
	if !slices.ContainsFunc(s.leaks, func(text string) bool { return strings.Contains(a.Error.Message, text) }) {
		p.t.Fatalf("%s: %+v", write, *a.Error)
	}
	p.t.Logf("known to happen: %s: %s", write, a.Error.Message)
	done := p.must(fmt.Sprintf(`{"op":"count","collection":"log","filter":{"_id":%d,"sum":%d}}`, n, sum))
	if count, ok := done.AsInt64OK(); !ok || count == 0 {
		p.must(write)
	}
}
