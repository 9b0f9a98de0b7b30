package replset

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

func TestThreeMembersStartFastAndReplicate(t *testing.T) {
	s := Run(t, Options{Members: 3})
	p := primaryIndex(t, s)
	c := dialRaw(t, s, p, "app")
	c.must(t, "t", insert(1, w(3)))
	for i := range 3 {
		if got := dialRaw(t, s, i, "app").ids(t); !slices.Equal(got, []string{"1"}) {
			t.Errorf("member %d has %v", i, got)
		}
	}
}

func TestFirstAcknowledgedWriteComesWithinFiftyMilliseconds(t *testing.T) {
	best := time.Hour
	for range 5 { // the machine may be busy with something else
		begun := time.Now()
		s := Run(t, Options{Members: 3})
		c := dialRaw(t, s, primaryIndex(t, s), "app")
		c.must(t, "t", insert(1, majority()))
		best = min(best, time.Since(begun))
		s.Close()
	}
	t.Logf("first acknowledged write after %v", best)
	if best > 50*time.Millisecond && !raceEnabled {
		t.Errorf("it took %v", best)
	}
}

func TestElectionAfterKill(t *testing.T) {
	s := Run(t, Options{Members: 3})
	p := primaryIndex(t, s)
	dialRaw(t, s, p, "app").must(t, "t", insert("before", majority()))
	if err := s.Kill(p); err != nil {
		t.Fatal(err)
	}
	if got := s.Member(p).State(); got != "DOWN" {
		t.Errorf("the killed member is %s", got)
	}
	took := within(t, 3*time.Second, "a new primary", func() bool { return s.Primary() != nil })
	t.Logf("new primary after %v", took)
	q := primaryIndex(t, s)
	c := dialRaw(t, s, q, "app")
	c.must(t, "t", insert("after", majority()))
	if got := c.ids(t); !slices.Equal(got, []string{`"after"`, `"before"`}) {
		t.Errorf("the new primary has %v", got)
	}
	r := c.must(t, "admin", bson.D{{Key: "hello", Value: 1}})
	if id, _ := r.Lookup("electionId").ObjectIDOK(); id.Hex() != "7fffffff0000000000000002" {
		t.Errorf("electionId %v", id)
	}
	if err := s.Restart(p); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitReplication(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := dialRaw(t, s, p, "app").ids(t); !slices.Equal(got, []string{`"after"`, `"before"`}) {
		t.Errorf("the restarted member has %v", got)
	}
}

func TestStepDownIsFastAndKeepsConnections(t *testing.T) {
	onFakeTime(t, Options{Members: 3}, func(t *testing.T, s *Set) {
		p := primaryIndex(t, s)
		c := dialRaw(t, s, p, "app")
		c.must(t, "t", insert(1, majority()))
		begun := time.Now()
		if err := s.StepDown(t.Context()); err != nil {
			t.Fatal(err)
		}
		took := time.Since(begun)
		t.Logf("step-down took %v", took)
		if took > 100*time.Millisecond {
			t.Errorf("step-down took %v", took)
		}
		if q := primaryIndex(t, s); q == p {
			t.Fatal("the old primary is primary again")
		}
		e := c.fails(t, mongoerr.CodeNotWritablePrimary, "t", insert(2, nil))
		if e.Message != "not primary" {
			t.Errorf("message %q", e.Message)
		}
		if _, ok := e.Response.Lookup("topologyVersion").DocumentOK(); !ok {
			t.Errorf("a state-change error without topologyVersion: %v", e.Response)
		}
		c.fails(t, mongoerr.CodeNotPrimaryNoSecondaryOk, "t", bson.D{{Key: "find", Value: "c"}})
		dialRaw(t, s, primaryIndex(t, s), "app").must(t, "t", insert(2, majority()))
	})
}

func TestMajorityWritesSurviveKills(t *testing.T) {
	onFakeTime(t, Options{Members: 3}, func(t *testing.T, s *Set) {
		var mu sync.Mutex
		acked := map[string]bool{}
		var stop atomic.Bool
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				var c *raw
				for k := 0; !stop.Load(); k++ {
					time.Sleep(time.Millisecond) // or fake time would stand still
					if c == nil {
						p := s.Primary()
						if p == nil {
							continue
						}
						var err error
						if c, err = tryDial(t.Context(), s, p.Index(), "writer"); err != nil {
							c = nil
							continue
						}
					}
					id := fmt.Sprintf("%d-%d", g, k)
					if _, err := c.run("t", insert(id, majority())); err != nil {
						c.nc.Close()
						c = nil
						continue
					}
					mu.Lock()
					acked[fmt.Sprintf("%q", id)] = true
					mu.Unlock()
				}
				if c != nil {
					c.nc.Close()
				}
			})
		}
		for range 3 {
			time.Sleep(150 * time.Millisecond)
			p := primaryIndex(t, s)
			if err := s.Kill(p); err != nil {
				t.Fatal(err)
			}
			within(t, 5*time.Second, "a new primary", func() bool { return s.Primary() != nil })
			if err := s.Restart(p); err != nil {
				t.Fatal(err)
			}
			if err := s.AwaitReplication(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		stop.Store(true)
		wg.Wait()
		if err := s.AwaitReplication(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d acknowledged writes", len(acked))
		if len(acked) < 50 {
			t.Errorf("only %d writes were acknowledged", len(acked))
		}
		for i := range 3 {
			have := map[string]bool{}
			for _, id := range dialRaw(t, s, i, "app").ids(t) {
				have[id] = true
			}
			for id := range acked {
				if !have[id] {
					t.Errorf("member %d lost the acknowledged write %s", i, id)
				}
			}
		}
	})
}

func TestUnreplicatedWriteIsRolledBack(t *testing.T) {
	onFakeTime(t, Options{Members: 3}, func(t *testing.T, s *Set) {
		p := primaryIndex(t, s)
		c := dialRaw(t, s, p, "app")
		c.must(t, "t", insert("kept", w(3)))
		others := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == p })
		if err := s.Partition([]int{p}, others); err != nil {
			t.Fatal(err)
		}
		c.must(t, "t", insert("lost", w(1)))
		within(t, 5*time.Second, "a primary on the other side", func() bool { q := s.Primary(); return q != nil && q.Index() != p })
		dialRaw(t, s, primaryIndex(t, s), "app").must(t, "t", insert("new", majority()))
		within(t, 5*time.Second, "the minority's primary to step down", func() bool { return s.Member(p).State() == "SECONDARY" })
		s.Heal()
		within(t, 5*time.Second, "rollback", func() bool { return len(s.RolledBack(p)) == 1 && s.Member(p).State() == "SECONDARY" })
		if err := s.AwaitReplication(t.Context()); err != nil {
			t.Fatal(err)
		}
		c = dialRaw(t, s, p, "app") // a rollback closes what is open
		if got := c.ids(t); !slices.Equal(got, []string{`"kept"`, `"new"`}) {
			t.Errorf("it has %v", got)
		}
	})
}

func TestMinorityPrimaryStepsDownAndConfirmsNothing(t *testing.T) {
	onFakeTime(t, Options{Members: 3}, func(t *testing.T, s *Set) {
		p := primaryIndex(t, s)
		c := dialRaw(t, s, p, "app")
		if err := s.Partition([]int{p}); err != nil {
			t.Fatal(err)
		}
		e := c.fails(t, mongoerr.CodePrimarySteppedDown, "t", insert(1, majority()))
		if e.WriteConcernError == nil {
			t.Errorf("the write was not confirmed, but not by a writeConcernError: %v", e.Response)
		}
		within(t, 3*time.Second, "no primary", func() bool { return s.Primary() == nil })
	})
}

func TestWriteConcernErrors(t *testing.T) {
	onFakeTime(t, Options{Members: 3, Config: []MemberOptions{
		{Tags: map[string]string{"dc": "east"}}, {Tags: map[string]string{"dc": "west"}}, {Tags: map[string]string{"dc": "west"}, Hidden: true}},
		WriteModes: map[string]map[string]int{"dcs": {"dc": 2}, "three": {"dc": 3}}}, func(t *testing.T, s *Set) {
		c := dialRaw(t, s, primaryIndex(t, s), "app")
		c.must(t, "t", insert(1, w(3)))
		c.must(t, "t", insert(2, bson.D{{Key: "w", Value: "dcs"}}))
		check := func(id int, wc bson.D, code int32, text string) {
			t.Helper()
			e := c.fails(t, code, "t", insert(id, wc))
			if e.WriteConcernError == nil || e.WriteConcernError.Message != text {
				t.Errorf("%v: %+v", wc, e.WriteConcernError)
			}
		}
		check(3, w(4), mongoerr.CodeUnsatisfiableWriteConcern, "Not enough data-bearing nodes")
		check(4, bson.D{{Key: "w", Value: "x"}}, mongoerr.CodeUnknownReplWriteConcern, "No write concern mode named 'x' found in replica set configuration")
		timed := bson.D{{Key: "w", Value: "three"}, {Key: "wtimeout", Value: 50}}
		e := c.fails(t, mongoerr.CodeWriteConcernFailed, "t", insert(5, timed))
		if ok, _ := e.WriteConcernError.Details.Lookup("wtimeout").BooleanOK(); !ok {
			t.Errorf("no errInfo.wtimeout: %v", e.Response)
		}
		if got := c.ids(t); len(got) != 5 {
			t.Errorf("a write that was not confirmed was not done: %v", got)
		}
	})
}

func TestDelayedHiddenAndArbiterMembers(t *testing.T) {
	const behind = 300 * time.Millisecond
	onFakeTime(t, Options{Config: []MemberOptions{{}, {Arbiter: true}, {Hidden: true, SecondaryDelay: behind}, {}}}, func(t *testing.T, s *Set) {
		p := primaryIndex(t, s)
		c := dialRaw(t, s, p, "app")
		begun := time.Now()
		c.must(t, "t", insert(1, w(2)))
		c.must(t, "t", insert(2, w(3))) // the delayed one counts
		if took := time.Since(begun); took < behind-20*time.Millisecond {
			t.Errorf("w:3 with a member %v behind was confirmed after %v", behind, took)
		}
		a := dialRaw(t, s, 1, "app")
		r := a.must(t, "admin", bson.D{{Key: "isMaster", Value: 1}})
		if yes, _ := r.Lookup("arbiterOnly").BooleanOK(); !yes || !r.Lookup("$clusterTime").IsZero() || !r.Lookup("operationTime").IsZero() {
			t.Errorf("arbiter: %v", r)
		}
		a.fails(t, mongoerr.CodeNotPrimaryNoSecondaryOk, "t", bson.D{{Key: "find", Value: "c"}})
		a.fails(t, mongoerr.CodeNotPrimaryOrSecondary, "t", bson.D{{Key: "find", Value: "c"},
			{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "secondary"}}}})
		a.fails(t, mongoerr.CodeNotWritablePrimary, "t", insert(9, nil))
	})
}

func TestReadConcernMajorityShowsOnlyWhatAMajorityHas(t *testing.T) {
	onFakeTime(t, Options{Members: 3, ElectionTimeout: 2 * time.Second}, func(t *testing.T, s *Set) {
		p := primaryIndex(t, s)
		c := dialRaw(t, s, p, "app")
		c.must(t, "t", insert(1, majority()))
		if err := s.Partition([]int{p}); err != nil {
			t.Fatal(err)
		}
		r := c.must(t, "t", insert(2, w(1)))
		read := func(rc bson.D) int {
			r := c.must(t, "t", bson.D{{Key: "find", Value: "c"}, {Key: "readConcern", Value: rc}})
			arr, _ := r.Lookup("cursor", "firstBatch").ArrayOK()
			return arr.Len()
		}
		if n := read(bson.D{{Key: "level", Value: "majority"}}); n != 1 {
			t.Errorf("majority sees %d documents", n)
		}
		if n := read(bson.D{{Key: "level", Value: "local"}}); n != 2 {
			t.Errorf("local sees %d documents", n)
		}
		after := r.Lookup("operationTime")
		if after.IsZero() {
			t.Fatalf("no operationTime in %v", r)
		}
		timed := bson.D{{Key: "find", Value: "c"}, {Key: "maxTimeMS", Value: 50},
			{Key: "readConcern", Value: bson.D{{Key: "level", Value: "majority"}, {Key: "afterClusterTime", Value: after}}}}
		c.fails(t, mongoerr.CodeMaxTimeMSExpired, "t", timed)
		s.Heal()
		timed[1].Value = 5000
		if r := c.must(t, "t", timed); r.Lookup("cursor", "firstBatch", "1").IsZero() {
			t.Errorf("after healing: %v", r)
		}
	})
}

func TestWipedMemberCopiesFromTheBeginningOrEverything(t *testing.T) {
	for name, entries := range map[string]int64{"the oplog reaches back": 0, "the oplog does not reach back": 20} {
		t.Run(name, func(t *testing.T) {
			onFakeTime(t, Options{Members: 3, OplogEntries: entries}, func(t *testing.T, s *Set) {
				p := primaryIndex(t, s)
				c := dialRaw(t, s, p, "app")
				for i := range 50 {
					c.must(t, "t", insert(i, w(3)))
				}
				victim := (p + 1) % 3
				if err := s.Wipe(victim); err == nil {
					t.Error("a running member was wiped")
				}
				if err := s.Kill(victim); err != nil {
					t.Fatal(err)
				}
				if err := s.Wipe(victim); err != nil {
					t.Fatal(err)
				}
				if err := s.Restart(victim); err != nil {
					t.Fatal(err)
				}
				c.must(t, "t", insert("last", w(3)))
				if got := dialRaw(t, s, victim, "app").ids(t); len(got) != 51 {
					t.Errorf("the wiped member has %d documents", len(got))
				}
				if s.Member(victim).State() != "SECONDARY" {
					t.Errorf("it is %s", s.Member(victim).State())
				}
			})
		})
	}
}
