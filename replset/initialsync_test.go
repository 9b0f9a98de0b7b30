package replset

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// fill makes collections of several kinds, with more documents than a batch holds and a gap at the end of the numbering.
func fill(t *testing.T, c *raw, n int) {
	t.Helper()
	index := func(name string, more ...bson.E) bson.D {
		return append(bson.D{{Key: "key", Value: bson.D{{Key: name, Value: 1}}}, {Key: "name", Value: name + "_1"}}, more...)
	}
	c.must(t, "t", bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{
		index("u", bson.E{Key: "unique", Value: true}, bson.E{Key: "sparse", Value: true}), index("tags")}}})
	c.must(t, "t", bson.D{{Key: "create", Value: "ring"}, {Key: "capped", Value: true}, {Key: "size", Value: 100000}, {Key: "max", Value: 10}})
	c.must(t, "t", bson.D{{Key: "create", Value: "view"}, {Key: "viewOn", Value: "c"}, {Key: "pipeline", Value: bson.A{}}})
	c.must(t, "other", bson.D{{Key: "create", Value: "empty"}, {Key: "validator", Value: bson.D{{Key: "x", Value: bson.D{{Key: "$gt", Value: 0}}}}}})
	var docs bson.A
	for i := range n {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "u", Value: i}, {Key: "tags", Value: bson.A{"a", i % 7}}, {Key: "text", Value: strings.Repeat("x", 200)}})
	}
	for len(docs) > 0 {
		k := min(len(docs), 500)
		c.must(t, "t", bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs[:k]}})
		docs = docs[k:]
	}
	for i := range 15 {
		c.must(t, "t", bson.D{{Key: "insert", Value: "ring"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: i}}}}})
	}
	c.must(t, "t", bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: n - 1}}}, {Key: "limit", Value: 1}}}}})
}

// churn changes what is being copied: documents swap unique values, collections come, go and change their names.
func churn(t *testing.T, c *raw, k int) {
	t.Helper()
	set := func(id int, fields bson.D) bson.D {
		return bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: id}}}, {Key: "u", Value: bson.D{{Key: "$set", Value: fields}}}}
	}
	c.must(t, "t", bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{
		set(k, bson.D{{Key: "u", Value: -1}}), set(k+1, bson.D{{Key: "u", Value: k}, {Key: "k", Value: k}}), set(k, bson.D{{Key: "u", Value: k + 1}})}},
		{Key: "writeConcern", Value: w(1)}})
	c.must(t, "t", bson.D{{Key: "insert", Value: fmt.Sprint("new", k)}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: k}}}}, {Key: "writeConcern", Value: w(1)}})
	if k%4 == 2 {
		c.must(t, "t", bson.D{{Key: "drop", Value: fmt.Sprint("new", k)}, {Key: "writeConcern", Value: w(1)}})
	}
	c.must(t, "t", bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: 500 + k}}}, {Key: "limit", Value: 1}}}}, {Key: "writeConcern", Value: w(1)}})
}

// TestInitialSyncUnderWritesEndsWithTheSameData: a slow copy, visible in STARTUP2, of data that changes all the while.
func TestInitialSyncUnderWritesEndsWithTheSameData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 2, Options{})
		defer s.Close()
		c := dialRaw(t, s, 0, "app")
		defer c.nc.Close()
		fill(t, c, 3000)
		if err := s.Delay(0, 100*time.Millisecond, MemberApp(2)); err != nil { // the ring road
			t.Fatal(err)
		}
		m, err := s.AddMember(t.Context(), MemberOptions{Name: "m2", Port: 27017, Priority: new(0.0)})
		if err != nil {
			t.Fatal(err)
		}
		d := dialRaw(t, s, 2, "app")
		defer d.nc.Close()
		ticks := 0
		for k := 0; k < 100 && (m.State() != "SECONDARY" || k < 20); k += 2 {
			churn(t, c, k)
			time.Sleep(50 * time.Millisecond)
			if m.State() != "STARTUP2" {
				continue
			}
			ticks++
			h := helloOf(t, d)
			secondary, _ := h.Lookup("secondary").BooleanOK()
			primary, _ := h.Lookup("isWritablePrimary").BooleanOK()
			if name, _ := h.Lookup("setName").StringValueOK(); name != "rs0" || secondary || primary || !h.Lookup("info").IsZero() {
				t.Errorf("hello in STARTUP2: %v", h)
			}
			e := d.fails(t, mongoerr.CodeNotPrimaryOrSecondary, "t", bson.D{{Key: "find", Value: "c"}, nearest})
			if e.Message != "node is not in primary or recovering state" {
				t.Errorf("%q", e.Message)
			}
			d.fails(t, mongoerr.CodeNotPrimaryNoSecondaryOk, "t", bson.D{{Key: "find", Value: "c"}})
			d.fails(t, mongoerr.CodeNotWritablePrimary, "t", insert("x", nil))
			st := d.must(t, "admin", bson.D{{Key: "replSetGetStatus", Value: 1}})
			if n, _ := st.Lookup("myState").AsInt64OK(); n != 5 {
				t.Errorf("myState %d", n)
			}
		}
		if ticks < 5 {
			t.Errorf("the member was seen in STARTUP2 %d times: the copy is too quick to prove anything", ticks)
		}
		if err := s.AwaitReplication(t.Context()); err != nil {
			t.Fatal(err)
		}
		sameData(t, 2, s.Member(0).current().Store.Latest(), m.current().Store.Latest())
		for _, fault := range m.current().Store.Latest().Collection("t.c").Validate() {
			t.Error(fault)
		}
	})
}

// TestInterruptedInitialSyncStartsOver: the source dies in the middle, then the member itself.
func TestInterruptedInitialSyncStartsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 4, Options{})
		defer s.Close()
		c := dialRaw(t, s, 0, "app")
		fill(t, c, 3000)
		c.nc.Close()
		for _, step := range []func(int) error{s.Kill, s.Wipe} {
			if err := step(3); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			if err := s.Delay(i, 60*time.Millisecond, MemberApp(3)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Restart(3); err != nil {
			t.Fatal(err)
		}
		for _, victim := range []int{0, 3} {
			within(t, 5*time.Second, "a copy under way", func() bool { return s.Member(3).State() == "STARTUP2" })
			time.Sleep(300 * time.Millisecond)
			if state := s.Member(3).State(); state != "STARTUP2" {
				t.Fatalf("the copy was too quick: %s", state)
			}
			if err := s.Kill(victim); err != nil {
				t.Fatal(err)
			}
			if _, err := s.WaitPrimary(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.Restart(victim); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.AwaitReplication(t.Context()); err != nil {
			t.Fatal(err)
		}
		within(t, time.Second, "SECONDARY", func() bool { return s.Member(3).State() == "SECONDARY" })
		sameData(t, 3, s.Member(1).current().Store.Latest(), s.Member(3).current().Store.Latest())
	})
}

// TestRetryHistoryTravelsWithTheCopy: a member that copied everything and rules next does not execute a write again.
func TestRetryHistoryTravelsWithTheCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 2, Options{})
		defer s.Close()
		c := dialRaw(t, s, 0, "app")
		fill(t, c, 200)
		lsid := bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}
		write := bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: 1}}},
			{Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}}}}, {Key: "lsid", Value: lsid}, {Key: "txnNumber", Value: int64(1)}}
		c.must(t, "t", write)
		c.nc.Close()
		if _, err := s.AddMember(t.Context(), MemberOptions{Name: "m2", Port: 27017, Priority: new(9.0)}); err != nil {
			t.Fatal(err)
		}
		within(t, 5*time.Second, "the takeover", func() bool { p := s.Primary(); return p != nil && p.Index() == 2 })
		d := dialRaw(t, s, 2, "app")
		defer d.nc.Close()
		d.must(t, "t", write)
		r := d.must(t, "t", bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: 1}}}})
		if n, _ := r.Lookup("cursor", "firstBatch", "0", "n").AsInt64OK(); n != 1 {
			t.Errorf("the increment was executed %d times", n)
		}
	})
}

// TestCopyIntoAFileOutlivesTheProcess: what was copied is on the disk.
func TestCopyIntoAFileOutlivesTheProcess(t *testing.T) {
	s := Run(t, Options{Members: 2, Dir: filepath.Join(t.TempDir(), "db"), ElectionTimeout: 3 * time.Second})
	c := dialRaw(t, s, primaryIndex(t, s), "app")
	fill(t, c, 1500)
	if _, err := s.AddMember(t.Context(), MemberOptions{Priority: new(0.0)}); err != nil {
		t.Fatal(err)
	}
	c.must(t, "t", insert("last", w(3)))
	c.must(t, "t", insert("synced", bson.D{{Key: "w", Value: 3}, {Key: "j", Value: true}}))
	for _, step := range []func(int) error{s.Kill, s.Restart} {
		if err := step(2); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Member(2).data().Applied(); n.IsZero() {
		t.Error("the file is empty")
	}
	if err := s.AwaitReplication(t.Context()); err != nil {
		t.Fatal(err)
	}
	sameData(t, 2, s.Member(primaryIndex(t, s)).current().Store.Latest(), s.Member(2).current().Store.Latest())
}
