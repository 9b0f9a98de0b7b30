package store

import (
	"fmt"
	"sort"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"pgregory.net/rapid"
)

// genScalar draws small values of several types, so that equal ones are common.
func genScalar() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Map(rapid.IntRange(-2, 3), func(n int) any { return n }),
		rapid.Map(rapid.SampledFrom([]float64{0.5, 1, 2}), func(f float64) any { return f }),
		rapid.Map(rapid.SampledFrom([]string{"", "a", "b"}), func(s string) any { return s }),
		rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }))
}

// genValue draws scalars, documents with a field b, and arrays of both.
func genValue() *rapid.Generator[any] {
	sub := rapid.Map(genScalar(), func(v any) any { return doc("b", v) })
	elem := rapid.OneOf(genScalar(), sub)
	list := rapid.Map(rapid.SliceOfN(elem, 0, 3), func(l []any) any { return l })
	return rapid.OneOf(genScalar(), sub, list)
}

// genDoc draws a document of the fields a and c, either of which may be missing.
func genDoc(t *rapid.T, id int) bson.Raw {
	pairs := []any{"_id", id}
	list := false
	for _, key := range []string{"a", "c"} {
		if !rapid.Bool().Draw(t, "has "+key) {
			continue
		}
		v := genValue().Draw(t, key)
		if _, ok := v.([]any); ok && list {
			continue // parallel arrays cannot be indexed
		} else if ok {
			list = true
		}
		pairs = append(pairs, key, v)
	}
	return doc(pairs...)
}

var operators = []string{"$eq", "$gt", "$gte", "$lt", "$lte", "$ne"}

func genFilter(t *rapid.T) bson.Raw {
	var pairs []any
	for _, path := range []string{"a", "a.b", "c"} {
		switch rapid.IntRange(0, 4).Draw(t, "clause of "+path) {
		case 0:
			pairs = append(pairs, path, genValue().Draw(t, "equal"))
		case 1:
			pairs = append(pairs, path, doc("$in", rapid.SliceOfN(genScalar(), 0, 3).Draw(t, "in")))
		case 2:
			one := rapid.SampledFrom(operators).Draw(t, "operator")
			two := rapid.SampledFrom(operators).Draw(t, "second operator")
			d := doc(one, genScalar().Draw(t, "bound"))
			if one != two {
				d = doc(one, genScalar().Draw(t, "bound"), two, genScalar().Draw(t, "second bound"))
			}
			pairs = append(pairs, path, d)
		}
	}
	return doc(pairs...)
}

var indexSpecs = []bson.Raw{
	doc("key", doc("a", 1), "name", "a"), doc("key", doc("a", -1, "c", 1), "name", "ac"),
	doc("key", doc("a.b", 1, "c", -1), "name", "abc"), doc("key", doc("c", 1, "a.b", 1), "name", "cab"),
	doc("key", doc("c", -1), "name", "c", "sparse", true), doc("key", doc("a", 1, "a.b", 1), "name", "aab"),
	doc("key", doc("a", 1), "name", "part", "partialFilterExpression", doc("c", doc("$gt", 0))),
}

// TestIndexAndCollectionScanGiveTheSameDocuments: whatever index is chosen or hinted, a
// query gives what a scan of the collection gives.
func TestIndexAndCollectionScanGiveTheSameDocuments(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, clock := New(), ticker(1)
		n := rapid.IntRange(0, 12).Draw(rt, "documents")
		picked := rapid.SliceOfNDistinct(rapid.IntRange(0, len(indexSpecs)-1), 1, 2, rapid.ID).Draw(rt, "indexes")
		_, err := s.Write(clock, func(tx *Tx) error {
			for i := range n {
				if _, err := tx.Insert("t.c", genDoc(rt, i)); err != nil {
					return err
				}
			}
			for _, p := range picked {
				if _, err := tx.CreateIndex("t.c", spec(t, elements(indexSpecs[p])...)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			rt.Fatal(err)
		}
		coll := s.Latest().Collection("t.c")
		for range 12 {
			checkPlan(rt, coll, filterOf(t, genFilter(rt)))
		}
		if faults := coll.Validate(); len(faults) > 0 {
			rt.Fatal(faults)
		}
	})
}

// checkPlan compares the plan chosen, and every index that may be hinted, with a scan.
func checkPlan(t *rapid.T, coll *Coll, f *query.Filter) {
	want := results(t, coll, Query{Filter: f, Hint: bson.DocumentValue(doc("$natural", 1))})
	hints := []bson.RawValue{{}}
	for _, ix := range coll.Indexes() {
		if !ix.Spec().Sparse && ix.Spec().Partial == nil { // those answer a hint with what they have
			hints = append(hints, bson.StringValue(ix.Spec().Name))
		}
	}
	for _, hint := range hints {
		q := Query{Filter: f, Hint: hint}
		if got := results(t, coll, q); fmt.Sprint(got) != fmt.Sprint(want) {
			p, _ := coll.Plan(q)
			t.Fatalf("filter %s\n by the plan %v\n by a scan %v\n index %+v", value.PrintDoc(f.Raw()), got, want, p.Index.Spec())
		}
	}
}

func elements(d bson.Raw) []any {
	var out []any
	for key, v := range d.All() {
		out = append(out, key, v)
	}
	return out
}

// results are the matching documents in a fixed order, each exactly as often as given.
func results(t *rapid.T, coll *Coll, q Query) []string {
	seq, _, err := coll.Find(q)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for r, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, value.PrintDoc(r.Doc))
	}
	sort.Strings(out)
	return out
}

// randomWrites makes some writes that a primary could make, each in a transaction.
func randomWrites(t *rapid.T, s *Store, clock Clock, label string) {
	for range rapid.IntRange(0, 12).Draw(t, label) {
		kind := rapid.IntRange(0, 9).Draw(t, "kind")
		id := rapid.IntRange(0, 5).Draw(t, "_id")
		ns := rapid.SampledFrom([]string{"t.c", "t.d"}).Draw(t, "ns")
		next := genDoc(t, id)
		img := rapid.SampledFrom([]Image{NoImage, PreImage, PostImage}).Draw(t, "image")
		// Errors (duplicates, what does not exist) are part of the game: they change nothing.
		_, _ = s.Write(clock, func(tx *Tx) error {
			tx.Statement(Statement{LSID: doc("id", id), TxnNumber: int64(kind), StmtID: int32(kind)})
			return randomWrite(tx, kind, ns, next, img)
		})
	}
}

func randomWrite(tx *Tx, kind int, ns string, next bson.Raw, img Image) error {
	c := tx.Collection(ns)
	var rid RecordID
	found := false
	if c != nil {
		rid, _, found = c.FindID(next.Lookup("_id"))
	}
	switch {
	case kind < 4 || c == nil:
		_, err := tx.Insert(ns, next)
		return err
	case kind == 4 && found:
		return tx.UpdateWithImage(ns, rid, next, false, img)
	case kind == 5 && found:
		return tx.UpdateWithImage(ns, rid, next, true, img)
	case kind == 6 && found:
		return tx.DeleteWithImage(ns, rid)
	case kind == 7:
		spec, err := ReadIndexSpec(indexSpecs[len(next)%len(indexSpecs)])
		if err != nil {
			return err
		}
		_, err = tx.CreateIndex(ns, spec)
		return err
	case kind == 8:
		return tx.Drop(ns)
	}
	return tx.Rename(ns, "t.e", true)
}

// dump is all that a snapshot holds, the oplog included.
func dump(sn *Snapshot) []string {
	out := []string{sn.OpTime().String()}
	for _, db := range sn.Databases() {
		for _, c := range sn.Collections(db) {
			out = append(out, fmt.Sprintf("%s %x", c.NS(), c.UUID()))
			for _, ix := range c.Indexes() {
				out = append(out, fmt.Sprintf("index %s %d keys", value.PrintDoc(ix.Spec().Doc), ix.Len()))
			}
			for rid, d := range c.Records(0) {
				out = append(out, fmt.Sprintf("%d %s", rid, value.PrintDoc(d)))
			}
		}
	}
	sn.retry.Scan(func(key string, r *sessionRecord) bool {
		out = append(out, fmt.Sprintf("session %x number %d last %v", key, r.txnNumber, r.lastOp))
		r.stmts.Scan(func(id int32, done executed) bool {
			o := sn.outcome(done)
			out = append(out, fmt.Sprintf("statement %d %s %v %v %v", id, o.Op, o.O, o.PreImage, o.PostImage))
			return true
		})
		return true
	})
	return out
}

func sameDump(t *rapid.T, got, want *Snapshot) {
	g, w := dump(got), dump(want)
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Fatalf("line %d differs\n got %v\nwant %v", i, g[i:], w[i:])
		}
	}
}

func entriesOf(sn *Snapshot) []bson.Raw {
	var out []bson.Raw
	for e := range sn.OplogAfter(OpTime{}) {
		out = append(out, e)
	}
	return out
}

// TestOplogRebuildsTheSameData: a secondary that applies the oplog, in batches of any
// size and some of them twice, has the primary's data, indexes and retry history.
func TestOplogRebuildsTheSameData(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		primary, secondary := New(), New()
		randomWrites(rt, primary, ticker(1), "writes")
		entries := entriesOf(primary.Latest())
		for at := 0; at < len(entries); {
			end := min(len(entries), at+rapid.IntRange(1, 4).Draw(rt, "batch"))
			from := max(0, at-rapid.IntRange(0, 2).Draw(rt, "again"))
			if _, err := secondary.ApplyOplog(entries[from:end]); err != nil {
				rt.Fatal(err)
			}
			at = end
		}
		sameDump(rt, secondary.Latest(), primary.Latest())
	})
}

// TestTruncateAfterEqualsNeverHavingWritten: also at a position inside a transaction,
// and with new writes afterwards.
func TestTruncateAfterEqualsNeverHavingWritten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := New()
		randomWrites(rt, s, ticker(1), "writes")
		entries := entriesOf(s.Latest())
		keep := rapid.IntRange(0, len(entries)).Draw(rt, "entries kept")
		op := OpTime{}
		if keep > 0 {
			op = EntryOpTime(entries[keep-1])
		}
		if err := s.TruncateAfter(op); err != nil {
			rt.Fatal(err)
		}
		fresh := New()
		if _, err := fresh.ApplyOplog(entries[:keep]); err != nil {
			rt.Fatal(err)
		}
		sameDump(rt, s.Latest(), fresh.Latest())
		again := func() Clock {
			n := uint32(0)
			return func() (OpTime, time.Time) {
				n++
				return OpTime{TS: bson.Timestamp{T: 200, I: n}, Term: 2}, time.Unix(200, 0)
			}
		}
		_, errA := s.Write(again(), insertAll(doc("_id", 77)))
		_, errB := fresh.Write(again(), insertAll(doc("_id", 77)))
		if errA != nil || errB != nil {
			rt.Fatal(errA, errB)
		}
		if keep > 0 && s.Latest().Collection("t.c") != nil && len(texts(s.Latest(), "t.c")) != len(texts(fresh.Latest(), "t.c")) {
			rt.Fatal("a write after the rollback differs")
		}
	})
}

// TestThinnedHistoryStillKnowsEveryPosition: roots that were dropped are rebuilt.
func TestThinnedHistoryStillKnowsEveryPosition(t *testing.T) {
	s, clock := New(), ticker(1)
	for i := range 3 * maxHistory {
		mustWrite(t, s, clock, insertAll(doc("_id", i)))
	}
	if len(s.history) > maxHistory {
		t.Errorf("%d roots are kept, want at most %d", len(s.history), maxHistory)
	}
	for _, n := range []int{1, 2, 777, 2000, 3*maxHistory - 1} {
		at := s.At(OpTime{TS: bson.Timestamp{T: 100, I: uint32(n + 1)}, Term: 1}) // the first entry creates the collection
		if got := at.Collection("t.c").Count(); got != int64(n) {
			t.Errorf("%d documents at position %d, want %d", got, n+1, n)
		}
	}
}
