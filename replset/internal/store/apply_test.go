package store

import (
	"testing"

	"github.com/sextantdb/sextant/bson"
	"pgregory.net/rapid"
)

// inserted are the entries of n inserts of one document each, the creation of the collection first.
func inserted(t testing.TB, n int) []bson.Raw {
	s, clock := New(), ticker(1)
	for i := range n {
		mustWrite(t, s, clock, insertAll(doc("_id", i)))
	}
	return entriesOf(s.Latest())
}

func count(sn *Snapshot) int64 {
	if c := sn.Collection("t.c"); c != nil {
		return c.Count()
	}
	return 0
}

// TestAppliedEntriesShareRootsAndEveryPositionIsKnown: by looking, and by going back to it.
func TestAppliedEntriesShareRootsAndEveryPositionIsKnown(t *testing.T) {
	entries := inserted(t, 3*applyRun)
	fill := func() *Store {
		s := New()
		if op, err := s.ApplyOplog(entries); err != nil || op != EntryOpTime(entries[len(entries)-1]) {
			t.Fatalf("applied up to %v, %v", op, err)
		}
		return s
	}
	s := fill()
	if len(s.history) != 5 { // the empty one, three runs, the last entry
		t.Errorf("%d entries made %d roots", len(entries), len(s.history))
	}
	for i := len(entries) - 1; i >= 0; i -= 7 {
		op := EntryOpTime(entries[i])
		if at := s.At(op); at.OpTime() != op || count(at) != int64(i) {
			t.Fatalf("at entry %d there are %d documents at %v", i, count(at), at.OpTime())
		}
	}
	for _, i := range []int{1, applyRun - 1, applyRun, 2*applyRun + 5} {
		s, op := fill(), EntryOpTime(entries[i])
		if err := s.TruncateAfter(op); err != nil || s.Latest().OpTime() != op || count(s.Latest()) != int64(i) {
			t.Errorf("back at entry %d there are %d documents, %v", i, count(s.Latest()), err)
		}
		if _, err := s.ApplyOplog(entries); err != nil || count(s.Latest()) != 3*applyRun {
			t.Errorf("applied again there are %d documents, %v", count(s.Latest()), err)
		}
	}
}

// TestFailingEntryLeavesWhatCameBeforeIt: also one that fails when its change is made already, as an entry out of order does.
func TestFailingEntryLeavesWhatCameBeforeIt(t *testing.T) {
	entries := inserted(t, applyRun+10)
	bad := func(op string, at bson.Timestamp) bson.Raw {
		dst, start := bson.BeginDocument(nil)
		dst = bson.AppendString(dst, "op", op)
		dst = bson.AppendString(dst, "ns", "t.c")
		dst = bson.AppendDocument(dst, "o", doc("_id", "another"))
		dst = bson.AppendTimestamp(dst, "ts", at.T, at.I)
		return bson.EndDocument(bson.AppendInt64(dst, "t", 9), start)
	}
	for name, bad := range map[string]bson.Raw{
		"unknown":      bad("x", bson.Timestamp{T: 200, I: 1}),
		"out of order": bad("i", EntryOpTime(entries[0]).TS), // and at the beginning of a collection that is not there
	} {
		for _, at := range []int{0, 1, 5, applyRun, applyRun + 3} {
			batch := append(append(append([]bson.Raw{}, entries[:at]...), bad), entries[at:]...)
			s := New()
			op, err := s.ApplyOplog(batch)
			want := OpTime{}
			if at > 0 {
				want = EntryOpTime(entries[at-1])
			}
			if err == nil || op != want || s.Latest().OpTime() != want || count(s.Latest()) != int64(max(at-1, 0)) {
				t.Errorf("%s at %d: %d documents at %v, %v", name, at, count(s.Latest()), op, err)
			}
		}
	}
}

// TestCommitPointWithinARunIsRebuiltHoweverShortTheOplog: what leads from the last root before it to it is not trimmed.
func TestCommitPointWithinARunIsRebuiltHoweverShortTheOplog(t *testing.T) {
	entries := inserted(t, 4*applyRun)
	rapid.Check(t, func(rt *rapid.T) {
		s, committed := NewSized(3, 1<<20), 0
		if _, err := s.ApplyOplog(entries[:1]); err != nil {
			rt.Fatal(err)
		}
		s.SetCommitted(EntryOpTime(entries[0])) // before any, nothing is promised
		for at := 1; at < len(entries); {
			end := min(len(entries), at+rapid.IntRange(1, 2*applyRun).Draw(rt, "batch"))
			if _, err := s.ApplyOplog(entries[at:end]); err != nil {
				rt.Fatal(err)
			}
			at = end
			committed = rapid.IntRange(committed, at-1).Draw(rt, "committed")
			s.SetCommitted(EntryOpTime(entries[committed]))
			if rapid.Bool().Draw(rt, "thin") {
				s.mu.Lock()
				s.thin()
				s.mu.Unlock()
			}
			if rapid.Bool().Draw(rt, "look") {
				if sn := s.CommittedSnapshot(); sn.OpTime() != EntryOpTime(entries[committed]) || count(sn) != int64(committed) {
					rt.Fatalf("at the commit point %d there are %d documents at %v", committed, count(sn), sn.OpTime())
				}
			}
		}
		if err := s.TruncateAfter(EntryOpTime(entries[committed])); err != nil || count(s.Latest()) != int64(committed) {
			rt.Fatalf("back at the commit point %d there are %d documents, %v", committed, count(s.Latest()), err)
		}
	})
}

func BenchmarkApplyOplog(b *testing.B) {
	entries := inserted(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New().ApplyOplog(entries); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(entries)), "µs/entry")
}
