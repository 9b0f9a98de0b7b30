package store

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// ticker is a clock whose optimes count up in one term.
func ticker(term int64) Clock {
	n := uint32(0)
	return func() (OpTime, time.Time) {
		n++
		return OpTime{TS: bson.Timestamp{T: 100, I: n}, Term: term}, time.Unix(int64(100+n), 0)
	}
}

// doc builds a document of int32, string, nil, bson.Raw and []int values.
func doc(pairs ...any) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	for i := 0; i < len(pairs); i += 2 {
		dst = appendTest(dst, pairs[i].(string), pairs[i+1])
	}
	return bson.EndDocument(dst, start)
}

func appendTest(dst []byte, key string, v any) []byte {
	switch v := v.(type) {
	case int:
		return bson.AppendInt32(dst, key, int32(v))
	case float64:
		return bson.AppendDouble(dst, key, v)
	case string:
		return bson.AppendString(dst, key, v)
	case bool:
		return bson.AppendBoolean(dst, key, v)
	case nil:
		return bson.AppendNull(dst, key)
	case bson.Raw:
		return bson.AppendDocument(dst, key, v)
	case []any:
		return bson.AppendArray(dst, key, array(v...))
	case bson.RawValue:
		return bson.AppendValue(dst, key, v)
	}
	panic(fmt.Sprintf("test value %T", v))
}

func array(vals ...any) bson.RawArray {
	dst, start := bson.BeginDocument(nil)
	for i, v := range vals {
		dst = appendTest(dst, fmt.Sprint(i), v)
	}
	return bson.RawArray(bson.EndDocument(dst, start))
}

func mustWrite(t testing.TB, s *Store, clock Clock, fn func(tx *Tx) error) OpTime {
	t.Helper()
	op, err := s.Write(clock, fn)
	if err != nil {
		t.Fatalf("write: %v", err)
	}
	return op
}

func insertAll(docs ...bson.Raw) func(tx *Tx) error {
	return func(tx *Tx) error {
		for _, d := range docs {
			if _, err := tx.Insert("t.c", d); err != nil {
				return err
			}
		}
		return nil
	}
}

func spec(t testing.TB, pairs ...any) IndexSpec {
	t.Helper()
	s, err := ReadIndexSpec(doc(pairs...))
	if err != nil {
		t.Fatalf("index %v: %v", pairs, err)
	}
	return s
}

func texts(sn *Snapshot, ns string) []string {
	var out []string
	if c := sn.Collection(ns); c != nil {
		for _, d := range c.Records(0) {
			out = append(out, value.PrintDoc(d))
		}
	}
	return out
}

func wantTexts(t testing.TB, sn *Snapshot, ns string, want ...string) {
	t.Helper()
	if got := texts(sn, ns); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s holds\n %v\nwant\n %v", ns, got, want)
	}
}

func wantCode(t testing.TB, err error, code int32, text string) {
	t.Helper()
	e, ok := errors.AsType[*mongoerr.Error](err)
	if !ok || e.Code != code || e.Message != text {
		t.Errorf("error is %v, want code %d: %s", err, code, text)
	}
}

func filterOf(t testing.TB, f bson.Raw) *query.Filter {
	t.Helper()
	parsed, err := query.ParseFilter(f, query.Options{})
	if err != nil {
		t.Fatalf("filter %s: %v", value.PrintDoc(f), err)
	}
	return parsed
}

func find(t testing.TB, c *Coll, q Query) ([]string, *Plan) {
	t.Helper()
	seq, plan, err := c.Find(q)
	if err != nil {
		t.Fatalf("find: %v", err)
	}
	var out []string
	for r, err := range seq {
		if err != nil {
			t.Fatalf("find: %v", err)
		}
		out = append(out, value.PrintDoc(r.Doc))
	}
	return out, plan
}

func TestInsertedDocumentsComeInNaturalOrder(t *testing.T) {
	s, clock := New(), ticker(1)
	mustWrite(t, s, clock, insertAll(doc("_id", 3), doc("_id", 1), doc("_id", "x")))
	wantTexts(t, s.Latest(), "t.c", `{ _id: 3 }`, `{ _id: 1 }`, `{ _id: "x" }`)
}

func TestSnapshotStaysAsItWas(t *testing.T) {
	s, clock := New(), ticker(1)
	mustWrite(t, s, clock, insertAll(doc("_id", 1)))
	old := s.Latest()
	mustWrite(t, s, clock, func(tx *Tx) error {
		rid, _, _ := tx.Collection("t.c").FindID(bson.Int32Value(1))
		if err := tx.Replace("t.c", rid, doc("_id", 1, "a", 2)); err != nil {
			return err
		}
		_, err := tx.Insert("t.c", doc("_id", 2))
		return err
	})
	wantTexts(t, old, "t.c", `{ _id: 1 }`)
	wantTexts(t, s.Latest(), "t.c", `{ _id: 1, a: 2 }`, `{ _id: 2 }`)
}

func TestFailedTransactionLeavesNothing(t *testing.T) {
	s, clock := New(), ticker(1)
	mustWrite(t, s, clock, insertAll(doc("_id", 1)))
	before := s.Latest()
	_, err := s.Write(clock, insertAll(doc("_id", 2), doc("_id", 1)))
	wantCode(t, err, mongoerr.CodeDuplicateKey, "E11000 duplicate key error collection: t.c index: _id_ dup key: { _id: 1 }")
	if s.Latest() != before {
		t.Error("a failed transaction has published a snapshot")
	}
}

func TestFailedStatementLeavesTransactionUsable(t *testing.T) {
	s, clock := New(), ticker(1)
	mustWrite(t, s, clock, func(tx *Tx) error {
		if _, err := tx.CreateIndex("t.c", spec(t, "key", doc("a", 1), "name", "u", "unique", true)); err != nil {
			return err
		}
		if _, err := tx.Insert("t.c", doc("_id", 1, "a", 1)); err != nil {
			return err
		}
		if _, err := tx.Insert("t.c", doc("_id", 2, "a", 1)); err == nil {
			t.Error("a duplicate was inserted")
		}
		_, err := tx.Insert("t.c", doc("_id", 2, "a", 2))
		return err
	})
	wantTexts(t, s.Latest(), "t.c", `{ _id: 1, a: 1 }`, `{ _id: 2, a: 2 }`)
	if n := s.Latest().Collection("t.c").Index("u").Len(); n != 2 {
		t.Errorf("the index has %d keys, want 2", n)
	}
}

func TestAtGivesTheStateOfAnOpTime(t *testing.T) {
	s, clock := New(), ticker(1)
	first := mustWrite(t, s, clock, insertAll(doc("_id", 1)))
	mustWrite(t, s, clock, insertAll(doc("_id", 2)))
	wantTexts(t, s.At(first), "t.c", `{ _id: 1 }`)
	if n := s.At(OpTime{}).Collection("t.c"); n != nil {
		t.Error("the state before the first write has a collection")
	}
}

func TestAtRebuildsAPositionInsideATransaction(t *testing.T) {
	s, clock := New(), ticker(1)
	mustWrite(t, s, clock, insertAll(doc("_id", 1), doc("_id", 2), doc("_id", 3)))
	// Entry 1 creates the collection, entry 3 is the second insert.
	at := s.At(OpTime{TS: bson.Timestamp{T: 100, I: 3}, Term: 1})
	wantTexts(t, at, "t.c", `{ _id: 1 }`, `{ _id: 2 }`)
}

func TestSetCommittedDropsOlderRoots(t *testing.T) {
	s, clock := New(), ticker(1)
	first := mustWrite(t, s, clock, insertAll(doc("_id", 1)))
	second := mustWrite(t, s, clock, insertAll(doc("_id", 2)))
	s.SetCommitted(second)
	if err := s.TruncateAfter(first); err == nil {
		t.Error("rolled back behind the commit point")
	}
	wantTexts(t, s.CommittedSnapshot(), "t.c", `{ _id: 1 }`, `{ _id: 2 }`)
}

func TestChangedClosesOnPublication(t *testing.T) {
	s := New()
	ch := s.Changed()
	select {
	case <-ch:
		t.Fatal("closed before a write")
	default:
	}
	mustWrite(t, s, ticker(1), insertAll(doc("_id", 1)))
	<-ch
}

func TestCappedCollectionKeepsTheNewest(t *testing.T) {
	s, clock := New(), ticker(1)
	mustWrite(t, s, clock, func(tx *Tx) error {
		if err := tx.Create("t.c", ReadCollOptions(doc("capped", true, "size", 4096, "max", 2))); err != nil {
			return err
		}
		return insertAll(doc("_id", 1), doc("_id", 2), doc("_id", 3))(tx)
	})
	wantTexts(t, s.Latest(), "t.c", `{ _id: 2 }`, `{ _id: 3 }`)
	if n := s.Latest().Collection("t.c").Indexes()[0].Len(); n != 2 {
		t.Errorf("the _id index has %d keys, want 2", n)
	}
}

func TestOplogIsTrimmedByCount(t *testing.T) {
	s, clock := NewSized(3, 1<<20), ticker(1)
	for i := range 5 {
		mustWrite(t, s, clock, insertAll(doc("_id", i)))
	}
	if n := s.Latest().Collection(OplogNS).Count(); n != 3 {
		t.Errorf("the oplog holds %d entries, want 3", n)
	}
	for entry := range s.Latest().OplogAfter(OpTime{}) {
		if at := EntryOpTime(entry); at.TS.I != 4 {
			t.Errorf("the oldest entry kept is %v, want that of increment 4", at)
		}
		break
	}
}

func TestRetryHistoryAnswersAndRefusesOldNumbers(t *testing.T) {
	s, clock := New(), ticker(1)
	st := Statement{LSID: doc("id", "session"), TxnNumber: 5, StmtID: 0}
	mustWrite(t, s, clock, func(tx *Tx) error {
		tx.Statement(st)
		return insertAll(doc("_id", 1))(tx)
	})
	out, err := s.Latest().Retried(st)
	if err != nil || out == nil || out.Op != "i" || value.PrintDoc(out.O) != "{ _id: 1 }" {
		t.Errorf("recorded outcome is %+v, %v", out, err)
	}
	st.StmtID = 1
	if out, err := s.Latest().Retried(st); out != nil || err != nil {
		t.Errorf("a new statement has outcome %+v, %v", out, err)
	}
	st.TxnNumber = 4
	if _, err := s.Latest().Retried(st); mongoerr.Code(err) != mongoerr.CodeTransactionTooOld {
		t.Errorf("an old transaction number gives %v", err)
	}
}

func TestRetryHistoryTellsOfWhatTheOplogNoLongerHoldsThatItWasExecuted(t *testing.T) {
	s, clock := NewSized(2, 1<<20), ticker(1)
	st := Statement{LSID: doc("id", "session"), TxnNumber: 5}
	mustWrite(t, s, clock, func(tx *Tx) error {
		tx.Statement(st)
		return insertAll(doc("_id", 1))(tx)
	})
	mustWrite(t, s, clock, insertAll(doc("_id", 2), doc("_id", 3)))
	if out, err := s.Latest().Retried(st); err != nil || out == nil || out.Op != "i" || out.O != nil {
		t.Errorf("recorded outcome is %+v, %v, and its entry is gone", out, err)
	}
}

func TestRetryHistoryForgetsSessionsThatHaveEnded(t *testing.T) {
	s, second := New(), uint32(0)
	clock := func() (OpTime, time.Time) {
		second++ // a session a second: at most 1801 are within half an hour
		return OpTime{TS: bson.Timestamp{T: second, I: 1}, Term: 1}, time.Unix(int64(second), 0)
	}
	session := func(i int) Statement { return Statement{LSID: doc("id", i), TxnNumber: 1} }
	for i := range 4000 {
		mustWrite(t, s, clock, func(tx *Tx) error {
			tx.Statement(session(i))
			return insertAll(doc("_id", i))(tx)
		})
		if n := s.Latest().retry.Len(); n > 1801*3/2+1 {
			t.Fatalf("after %d sessions, one a second, the history of %d is kept", i+1, n)
		}
		if out, err := s.Latest().Retried(session(max(0, i-1800))); out == nil || err != nil {
			t.Fatalf("after half an hour a session's outcome is %v, %v", out, err)
		}
	}
	if out, _ := s.Latest().Retried(session(0)); out != nil {
		t.Error("the history of a session that ended an hour ago is still there")
	}
}

func TestCommitPointAndMajorityReadsDoNotWaitForATransaction(t *testing.T) {
	s, clock := New(), ticker(1)
	first := mustWrite(t, s, clock, insertAll(doc("_id", 1)))
	mustWrite(t, s, clock, func(tx *Tx) error {
		done := make(chan *Snapshot, 1)
		go func() {
			s.SetCommitted(first)
			done <- s.CommittedSnapshot()
		}()
		select {
		case sn := <-done:
			wantTexts(t, sn, "t.c", `{ _id: 1 }`)
		case <-time.After(5 * time.Second):
			t.Error("a majority read waits for the writer")
		}
		return insertAll(doc("_id", 2))(tx)
	})
}

func TestStoresShareDataSafelyAfterAdopt(t *testing.T) {
	a, b := New(), New()
	mustWrite(t, a, ticker(1), insertAll(doc("_id", 1)))
	b.Adopt(a)
	var wg sync.WaitGroup
	for _, s := range []*Store{a, b} {
		clock := ticker(2)
		for range 2 { // the new term's clock is ahead of the first term's entries
			clock()
		}
		wg.Go(func() {
			for i := range 50 {
				mustWrite(t, s, clock, insertAll(doc("_id", 100+i)))
			}
		})
	}
	wg.Wait()
	if n, m := a.Latest().Collection("t.c").Count(), b.Latest().Collection("t.c").Count(); n != 51 || m != 51 {
		t.Errorf("the stores hold %d and %d documents, want 51 each", n, m)
	}
	sa, sb := dump(a.Latest()), dump(b.Latest())
	if sa[0] != sb[0] {
		t.Errorf("optimes differ: %s, %s", sa[0], sb[0])
	}
}

func BenchmarkInsertOne(b *testing.B) {
	s, clock := New(), ticker(1)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		if _, err := s.Write(clock, insertAll(doc("_id", n, "name", "joe"))); err != nil {
			b.Fatal(err)
		}
		s.SetCommitted(s.Latest().OpTime())
	}
}

// TestOplogKeepsWhatNoMajorityHas: and the newest that one has, however many entries one transaction makes.
func TestOplogKeepsWhatNoMajorityHas(t *testing.T) {
	s, clock := NewSized(3, 1<<20), ticker(1)
	many := func(from int) OpTime {
		return mustWrite(t, s, clock, func(tx *Tx) error {
			for i := range 10 {
				if err := insertAll(doc("_id", from+i))(tx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	first := many(0)
	s.SetCommitted(first)
	newest := many(10)
	oplog := s.Latest().Collection(OplogNS)
	if oplog.Count() != 11 || oplog.FirstRecord() != first.recordID() {
		t.Errorf("the oplog has %d entries, want the committed one and ten after it", oplog.Count())
	}
	s.SetCommitted(newest)
	mustWrite(t, s, clock, insertAll(doc("_id", 100)))
	if n := s.Latest().Collection(OplogNS).Count(); n != 3 {
		t.Errorf("when all is committed the oplog has %d entries, and should keep 3", n)
	}
}
