package replset

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// settle waits until the healed set is one again: every member has all, and knows that a majority has it.
func (w *world) settle(ctx context.Context) bool {
	const patience = 20 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	why := ""
	if err := w.set.AwaitReplication(ctx); err != nil {
		why = "; " + err.Error()
	}
	for ctx.Err() == nil {
		if why = w.unsettled(); why == "" {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	w.accuse(recovers, "%v after the last fault%s", patience, why)
	return false
}

// unsettled says what is not well yet.
func (w *world) unsettled() (why string) {
	p := w.set.Primary()
	if p == nil {
		return "; there is no primary"
	}
	lead := p.current()
	if lead == nil {
		return "; the primary has been killed"
	}
	newest := lead.Store.Latest().OpTime()
	for _, m := range w.bearing() {
		r := m.current()
		if r == nil {
			why += fmt.Sprintf("; member %d is down", m.index)
			continue
		}
		s := r.Store
		if state := m.State(); state != "SECONDARY" && m != p {
			why += fmt.Sprintf("; member %d is %s", m.index, state)
		} else if has, committed := s.Latest().OpTime(), s.CommittedSnapshot().OpTime(); has != newest || committed != newest {
			why += fmt.Sprintf("; member %d has %v, and %v as committed, of %v", m.index, has, committed, newest)
		}
	}
	return why
}

// bearing are the members of the set that have its data.
func (w *world) bearing() (members []*Member) {
	cfg := w.set.config()
	for _, m := range w.set.Members() {
		if mine := cfg.At(m.addr); mine != nil && !mine.Arbiter {
			members = append(members, m)
		}
	}
	return members
}

// audit holds the set to its promises.
func (w *world) audit() {
	var first *Member
	for _, m := range w.bearing() {
		latest := m.current().Store.Latest()
		if first == nil {
			first = m
			f := factsOf(latest)
			w.judge(m.index, f)
			w.judgeAside(f)
			continue
		}
		for _, how := range differences(first.current().Store.Latest(), latest) {
			w.accuse(alike, "member %d and member %d: %s", first.index, m.index, how)
		}
	}
}

func (w *world) judge(member int, f facts) {
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	for _, v := range w.books.judge(f) {
		w.accuse(v.promise, "member %d: %s", member, v.how)
	}
}

// judgeAside looks for what was acknowledged with w:1 and is gone: whoever took it back must have kept it.
func (w *world) judgeAside(f facts) {
	if w.gone {
		return
	}
	taken := map[string]bool{}
	for i := range w.set.Members() {
		for _, r := range w.set.RolledBack(i) {
			id, _ := r.ID.StringValueOK()
			taken[id] = true
		}
	}
	for id := range w.books.weak {
		if !f.docs[id] && !taken[id] {
			w.accuse(aside, "%s, acknowledged with w:1, is gone, and nobody says that it was rolled back", id)
		}
	}
}

// facts are what a member has at the end, as far as the books speak of it.
type facts struct {
	docs   map[string]bool
	counts [writers]struct {
		n   int32
		ops []int32
	}
	tick int32
	ring int64
}

func factsOf(sn *store.Snapshot) facts {
	f := facts{docs: map[string]bool{}}
	if docs := sn.Collection("story.docs"); docs != nil {
		for _, doc := range docs.Records(0) {
			id, _ := doc.Lookup("_id").StringValueOK()
			f.docs[id] = true
		}
	}
	if ring := sn.Collection("story.ring"); ring != nil {
		f.ring = ring.Count()
	}
	counters := sn.Collection("story.counters")
	if counters == nil {
		return f
	}
	for _, doc := range counters.Records(0) {
		id, _ := doc.Lookup("_id").Int32OK()
		n, _ := doc.Lookup("n").Int32OK()
		if id == causalID {
			f.tick = n
			continue
		}
		f.counts[id].n = n
		ops, _ := doc.Lookup("ops").ArrayOK()
		for _, v := range ops.All() {
			op, _ := v.Int32OK()
			f.counts[id].ops = append(f.counts[id].ops, op)
		}
	}
	return f
}

// judge compares what was told with what is there. The caller holds mu, or nobody else works any more.
func (l *accounts) judge(f facts) []violation {
	out := l.said
	broken := func(promise, how string, args ...any) {
		out = append(out, violation{promise, fmt.Sprintf(how, args...)})
	}
	for id, fate := range l.docs {
		switch {
		case fate == kept && !f.docs[id]:
			broken(keeps, "%s is gone", id)
		case fate == removed && f.docs[id]:
			broken(keeps, "%s, whose deletion was acknowledged, is there", id)
		}
	}
	for _, ids := range l.batches {
		for i := 1; i < len(ids); i++ {
			if f.docs[ids[i]] && !f.docs[ids[i-1]] {
				broken(once, "of an ordered insert, %s is there and %s before it is not", ids[i], ids[i-1])
			}
		}
	}
	for g, c := range l.counts {
		l.judgeCount(g, c, f, broken)
	}
	if f.tick < l.tick {
		broken(keeps, "the causal reader was told %d, and there is %d", l.tick, f.tick)
	}
	if f.ring > 20 {
		broken(alike, "%d documents in a ring of 20", f.ring)
	}
	return out
}

func (l *accounts) judgeCount(g int, c count, f facts, broken func(promise, how string, args ...any)) {
	is := f.counts[g]
	if is.n < c.low {
		broken(keeps, "counter %d is %d after %d acknowledged increments", g, is.n, c.low)
	}
	if is.n > c.high {
		broken(once, "counter %d is %d after %d attempted increments", g, is.n, c.high)
	}
	if is.n < c.shown {
		broken(keeps, "counter %d is %d, and a majority read had shown %d", g, is.n, c.shown)
	}
	times := map[int32]int{}
	for _, op := range is.ops {
		if times[op]++; times[op] == 2 {
			broken(once, "increment %d of counter %d was applied again", op, g)
		}
	}
	for op := range c.acked {
		if times[op] == 0 {
			broken(keeps, "increment %d of counter %d, which was acknowledged, is gone", op, g)
		}
	}
	if len(is.ops) != int(is.n) {
		broken(once, "counter %d is %d, with %d increments in its list", g, is.n, len(is.ops))
	}
}

// differences compares two members, document by document, in natural order, the oplog included; and every index with
// the documents.
func differences(a, b *store.Snapshot) (out []string) {
	differ := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if x, y := fmt.Sprint(a.Databases()), fmt.Sprint(b.Databases()); x != y {
		differ("databases %s, %s", x, y)
	}
	for _, db := range a.Databases() {
		for _, c := range a.Collections(db) {
			d := b.Collection(c.NS())
			if d == nil {
				differ("the second lacks %s", c.NS())
				continue
			}
			if c.UUID() != d.UUID() || c.Count() != d.Count() || c.Size() != d.Size() || len(c.Indexes()) != len(d.Indexes()) {
				differ("%s: %d documents, %d bytes, %d indexes; %d, %d, %d", c.NS(),
					c.Count(), c.Size(), len(c.Indexes()), d.Count(), d.Size(), len(d.Indexes()))
			}
			for rid, doc := range c.Records(0) {
				if other, _ := d.Get(rid); !bytes.Equal(other, doc) {
					differ("%s, record %d: %v, %v", c.NS(), rid, doc, bson.Raw(other))
					break
				}
			}
			for _, fault := range d.Validate() {
				differ("%s: %s", d.NS(), fault)
			}
		}
	}
	return out
}

func sameData(t *testing.T, member int, a, b *store.Snapshot) {
	t.Helper()
	for _, how := range differences(a, b) {
		t.Errorf("member %d and another: %s", member, how)
	}
}
