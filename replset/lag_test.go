package replset

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// named is a set of so many named members on a network in memory, for fake time.
func named(t *testing.T, n int, o Options) *Set {
	t.Helper()
	return namedOn(t, NewMemoryNetwork(), n, o)
}

func namedOn(t *testing.T, network Network, n int, o Options) *Set {
	t.Helper()
	o.Network, o.Members = network, n
	for i := range n {
		if i == len(o.Config) {
			o.Config = append(o.Config, MemberOptions{})
		}
		o.Config[i].Name, o.Config[i].Port = fmt.Sprintf("m%d", i), 27017
	}
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMemberThatHungWhileTheOplogMovedOnIsTooStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{OplogEntries: 20})
		defer s.Close()
		c := dialRaw(t, s, 0, "app")
		defer c.nc.Close()
		c.must(t, "t", insert("first", w(3)))
		if err := s.Hang(2, true); err != nil {
			t.Fatal(err)
		}
		for i := range 50 { // the entry that member 2 waits after is no longer in the oplog
			c.must(t, "t", insert(i, majority()))
		}
		if err := s.Hang(2, false); err != nil {
			t.Fatal(err)
		}
		within(t, 3*time.Second, "RECOVERING", func() bool { return s.Member(2).State() == "RECOVERING" })
		stale := dialRaw(t, s, 2, "app")
		e := stale.fails(t, mongoerr.CodeNotPrimaryOrSecondary, "t", bson.D{{Key: "find", Value: "c"}, nearest})
		if e.Message != "node is recovering" {
			t.Errorf("%q", e.Message)
		}
		stale.nc.Close()
		time.Sleep(time.Minute) // it does not help itself, as a server does not: its data may be somebody's last
		if state := s.Member(2).State(); state != "RECOVERING" {
			t.Errorf("after a minute it is %s", state)
		}
		err := s.AwaitReplication(t.Context())
		if err == nil || !strings.Contains(err.Error(), "member 2 (m2:27017) is RECOVERING") || !strings.Contains(err.Error(), "Kill, Wipe and Restart") {
			t.Errorf("waiting for a member that is too stale: %v", err)
		}
		for _, step := range []func(int) error{s.Kill, s.Wipe, s.Restart} {
			if err := step(2); err != nil {
				t.Fatal(err)
			}
		}
		c.must(t, "t", insert("last", w(3)))
		sameData(t, 2, s.Members()[0].current().Store.Latest(), s.Members()[2].current().Store.Latest())
	})
}

func TestTailOfTheOplogTellsThatEntriesAreGone(t *testing.T) {
	s := Run(t, Options{OplogEntries: 20})
	c := dialRaw(t, s, 0, "app")
	c.must(t, "t", insert("first", nil))
	r := c.must(t, "local", bson.D{{Key: "find", Value: "oplog.rs"}, {Key: "filter", Value: bson.D{{Key: "op", Value: "i"}}}, {Key: "tailable", Value: true}, {Key: "awaitData", Value: true}})
	id := r.Lookup("cursor", "id")
	for i := range 19 {
		c.must(t, "t", insert(i, nil))
	}
	more := bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "oplog.rs"}}
	r = c.must(t, "local", more)
	if batch, _ := r.Lookup("cursor", "nextBatch").ArrayOK(); batch.Len() != 19 {
		t.Errorf("%d entries of 19 while the place is still there", batch.Len())
	}
	for i := range 30 {
		c.must(t, "t", insert(100+i, nil))
	}
	c.fails(t, mongoerr.CodeCappedPositionLost, "local", more)
}

// A member that copied from a primary which nobody else followed has data from before which it keeps nothing: it cannot
// go back by itself, and must not call any of it committed.
func TestCopyOfALonelyPrimaryIsNeitherShownAsCommittedNorKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 4, Options{OplogEntries: 10, Config: []MemberOptions{3: {NoVote: true}}})
		defer s.Close()
		c := dialRaw(t, s, 0, "app")
		defer c.nc.Close()
		for i := range 20 {
			c.must(t, "t", insert(i, w(4)))
		}
		time.Sleep(time.Second)
		if err := s.Kill(3); err != nil {
			t.Fatal(err)
		}
		if err := s.Wipe(3); err != nil {
			t.Fatal(err)
		}
		if err := s.Partition([]int{0, 3}, []int{1, 2}); err != nil {
			t.Fatal(err)
		}
		c.must(t, "t", insert("lonely", w(1)))
		if err := s.Restart(3); err != nil {
			t.Fatal(err)
		}
		within(t, 500*time.Millisecond, "the copy", func() bool { return s.Member(3).State() == "SECONDARY" })
		d := dialRaw(t, s, 3, "app")
		defer d.nc.Close()
		if got := d.ids(t); len(got) != 21 {
			t.Fatalf("member 3 copied %d documents", len(got))
		}
		d.fails(t, mongoerr.CodeMaxTimeMSExpired, "t", bson.D{{Key: "count", Value: "c"}, {Key: "maxTimeMS", Value: 50},
			{Key: "readConcern", Value: bson.D{{Key: "level", Value: "majority"}}}, {Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "nearest"}}}})
		time.Sleep(2 * time.Second)
		s.Heal()
		time.Sleep(2 * time.Second)
		if err := s.AwaitReplication(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			if state := s.Member(i).State(); state != "SECONDARY" && state != "PRIMARY" {
				t.Errorf("member %d is %s", i, state)
			}
			sameData(t, i, s.Members()[1].current().Store.Latest(), s.Members()[i].current().Store.Latest())
		}
		d = dialRaw(t, s, 3, "app") // going back has closed what was open
		if got := d.ids(t); len(got) != 20 {
			t.Errorf("member 3 has %d documents, the others 20", len(got))
		}
	})
}

// TestCommandOfMoreEntriesThanTheOplogHoldsIsReplicated: what no majority has yet stays in the oplog.
func TestCommandOfMoreEntriesThanTheOplogHoldsIsReplicated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{OplogEntries: 10})
		defer s.Close()
		c := dialRaw(t, s, 0, "app")
		defer c.nc.Close()
		for round := range 3 {
			var docs bson.A
			for i := range 50 {
				docs = append(docs, bson.D{{Key: "_id", Value: 100*round + i}})
			}
			c.must(t, "t", bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}, {Key: "writeConcern", Value: majority()}})
		}
		if n := s.Member(0).current().OplogLength(); n > 60 {
			t.Errorf("the oplog has grown to %d entries", n)
		}
	})
}
