package replset

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

var statusCommand = bson.D{{Key: "replSetGetStatus", Value: 1}}

func admin(name string, v any, more ...bson.E) bson.D {
	return append(bson.D{{Key: name, Value: v}}, more...)
}

// TestMemberInMaintenanceIsNotRead: RECOVERING, as recorded from a server.
func TestMemberInMaintenanceIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{})
		defer s.Close()
		c, d := dialRaw(t, s, 0, "app"), dialRaw(t, s, 1, "app")
		defer c.nc.Close()
		defer d.nc.Close()
		c.must(t, "t", insert(1, w(3)))
		if err := s.Maintenance(1, true); err != nil {
			t.Fatal(err)
		}
		if err := s.Maintenance(1, true); err != nil {
			t.Fatal(err)
		}
		if state := s.Member(1).State(); state != "RECOVERING" {
			t.Fatalf("it is %s", state)
		}
		h := helloOf(t, d)
		secondary, _ := h.Lookup("secondary").BooleanOK()
		if name, _ := h.Lookup("setName").StringValueOK(); secondary || name != "rs0" || h.Lookup("me").IsZero() || h.Lookup("primary").IsZero() || !h.Lookup("info").IsZero() {
			t.Errorf("hello: %v", h)
		}
		find := bson.D{{Key: "find", Value: "c"}}
		d.fails(t, mongoerr.CodeNotPrimaryNoSecondaryOk, "t", find)
		if e := d.fails(t, mongoerr.CodeNotPrimaryOrSecondary, "t", append(find, nearest)); e.Message != "node is recovering" {
			t.Errorf("%q", e.Message)
		}
		d.fails(t, mongoerr.CodeNotWritablePrimary, "t", insert(2, nil))
		d.must(t, "admin", bson.D{{Key: "ping", Value: 1}})
		d.must(t, "t", bson.D{{Key: "listCollections", Value: 1}, nearest})
		c.must(t, "t", insert(2, w(3))) // it replicates
		if n, _ := d.must(t, "admin", statusCommand).Lookup("myState").AsInt64OK(); n != 3 {
			t.Errorf("myState %d", n)
		}
		time.Sleep(time.Second)
		if e := memberOf(t, c, 1); e.Lookup("stateStr").String() != `"RECOVERING"` {
			t.Errorf("the primary sees it as %v", e)
		}
		if e := c.fails(t, mongoerr.CodeNotSecondary, "admin", admin("replSetMaintenance", true)); e.Message != "primaries can't modify maintenance mode" {
			t.Errorf("%q", e.Message)
		}
		if err := s.Maintenance(0, true); !hasCode(err, mongoerr.CodeNotSecondary) {
			t.Errorf("the primary in maintenance: %v", err)
		}
		d.must(t, "admin", admin("replSetMaintenance", true)) // it counts
		d.must(t, "admin", admin("replSetMaintenance", false))
		if state := s.Member(1).State(); state != "RECOVERING" {
			t.Errorf("taken out twice and put back once it is %s", state)
		}
		if err := s.Maintenance(1, false); err != nil {
			t.Fatal(err)
		}
		if state := s.Member(1).State(); state != "SECONDARY" {
			t.Errorf("it is %s", state)
		}
		d.fails(t, mongoerr.CodeOperationFailed, "admin", admin("replSetMaintenance", false))
	})
}

// TestMaintenanceOfAHungMember: the command is carried out when it wakes, as often as it was sent, although nobody waits
// any more; Maintenance does not depend on the network, and undoes all of it.
func TestMaintenanceOfAHungMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := emptyWorld()
		w.set = named(t, 3, Options{})
		defer w.set.Close()
		hang := func(on bool) {
			t.Helper()
			if err := w.set.Hang(1, on); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		become := func(on bool, state string) {
			t.Helper()
			if err := w.set.Maintenance(1, on); err != nil || w.set.Member(1).State() != state {
				t.Errorf("Maintenance(%v): it is %s, %v", on, w.set.Member(1).State(), err)
			}
		}
		hang(true)
		become(true, "RECOVERING")
		become(false, "SECONDARY")
		for range 2 {
			if err := w.order(t.Context(), 1, admin("replSetMaintenance", true)); err == nil {
				t.Error("a member that hangs has answered")
			}
		}
		if state := w.set.Member(1).State(); state != "SECONDARY" {
			t.Errorf("it hangs, and is %s", state)
		}
		hang(false)
		if state := w.set.Member(1).State(); state != "RECOVERING" {
			t.Errorf("it is awake, and is %s", state)
		}
		become(false, "SECONDARY")
		hang(true)
		for range 2 {
			_ = w.order(t.Context(), 1, admin("replSetMaintenance", true))
		}
		w.healAll()
		synctest.Wait()
		if state := w.set.Member(1).State(); state != "SECONDARY" || len(w.broken) > 0 {
			t.Errorf("all is well again, and it is %s, %v", state, w.broken)
		}
	})
}

func memberOf(t *testing.T, c *raw, i int) bson.Raw {
	t.Helper()
	d, ok := c.must(t, "admin", statusCommand).Lookup("members", strconv.Itoa(i)).DocumentOK()
	if !ok {
		t.Fatalf("replSetGetStatus does not tell of member %d", i)
	}
	return d
}

// TestMemberWithoutConfigurationSaysSo: STARTUP, of a member that nobody can tell where it belongs.
func TestMemberWithoutConfigurationSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{})
		defer s.Close()
		if err := s.Partition([]int{0, 1}, []int{2}); err != nil {
			t.Fatal(err)
		}
		for _, step := range []func(int) error{s.Kill, s.Wipe, s.Restart} {
			if err := step(2); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Second)
		if state := s.Member(2).State(); state != "STARTUP" {
			t.Fatalf("it is %s", state)
		}
		c := dialRaw(t, s, 2, "app")
		defer c.nc.Close()
		h := helloOf(t, c)
		if is, _ := h.Lookup("isreplicaset").BooleanOK(); !is || !h.Lookup("setName").IsZero() || !h.Lookup("lastWrite").IsZero() {
			t.Errorf("hello: %v", h)
		}
		for cmd, want := range map[string]int32{"replSetGetStatus": mongoerr.CodeNotYetInitialized, "replSetGetConfig": mongoerr.CodeNotYetInitialized} {
			if e := c.fails(t, want, "admin", admin(cmd, 1)); e.Message != "no replset config has been received" {
				t.Errorf("%s: %q", cmd, e.Message)
			}
		}
		c.fails(t, mongoerr.CodeNotYetInitialized, "admin", admin("replSetReconfig", bson.D{}))
		c.fails(t, mongoerr.CodeNotPrimaryOrSecondary, "t", bson.D{{Key: "find", Value: "c"}, nearest})
		s.Heal()
		within(t, 3*time.Second, "SECONDARY", func() bool { return s.Member(2).State() == "SECONDARY" })
	})
}

func fieldsOf(d bson.Raw) (out []string) {
	for k := range d.All() {
		out = append(out, k)
	}
	return out
}

// TestStatusHasTheFieldsOfTheManual, for the primary, a secondary, and a dead member.
func TestStatusHasTheFieldsOfTheManual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 4, Options{ElectionTimeout: 10 * time.Second, Config: []MemberOptions{3: {Arbiter: true}}})
		defer s.Close()
		c := dialRaw(t, s, 0, "app")
		defer c.nc.Close()
		c.must(t, "t", insert(1, w(3)))
		if err := s.Kill(2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		st := c.must(t, "admin", statusCommand)
		has := func(d bson.Raw, want ...string) {
			t.Helper()
			for _, k := range want {
				if !slices.Contains(fieldsOf(d), k) {
					t.Errorf("%s is missing in %v", k, d)
				}
			}
		}
		has(st, "set", "date", "myState", "term", "syncSourceHost", "syncSourceId", "heartbeatIntervalMillis", "majorityVoteCount",
			"writeMajorityCount", "votingMembersCount", "writableVotingMembersCount", "optimes", "electionCandidateMetrics", "members")
		optimes, _ := st.Lookup("optimes").DocumentOK()
		has(optimes, "lastCommittedOpTime", "lastCommittedWallTime", "readConcernMajorityOpTime", "appliedOpTime", "durableOpTime", "lastAppliedWallTime", "lastDurableWallTime")
		self, other, dead, arbiter := memberOf(t, c, 0), memberOf(t, c, 1), memberOf(t, c, 2), memberOf(t, c, 3)
		has(self, "_id", "name", "health", "state", "stateStr", "uptime", "optime", "optimeDate", "syncSourceHost", "syncSourceId", "infoMessage",
			"electionTime", "electionDate", "configVersion", "configTerm", "self", "lastHeartbeatMessage")
		has(other, "_id", "name", "health", "state", "stateStr", "uptime", "optime", "optimeDurable", "optimeDate", "optimeDurableDate", "lastHeartbeat",
			"lastHeartbeatRecv", "pingMs", "lastHeartbeatMessage", "syncSourceHost", "syncSourceId", "infoMessage", "configVersion", "configTerm")
		if host, _ := other.Lookup("syncSourceHost").StringValueOK(); host != "m0:27017" {
			t.Errorf("member 1 pulls from %q", host)
		}
		if slices.Contains(fieldsOf(arbiter), "optime") {
			t.Errorf("an arbiter with an optime: %v", arbiter)
		}
		want := map[string]string{"health": "0", "state": "8", "stateStr": `"(not reachable/healthy)"`, "uptime": "0", "configVersion": "-1"}
		for k, v := range want {
			if got := dead.Lookup(k).String(); !strings.Contains(got, v) {
				t.Errorf("%s of a dead member is %s, not %s", k, got, v)
			}
		}
		if text, _ := dead.Lookup("lastHeartbeatMessage").StringValueOK(); text == "" {
			t.Error("why the dead member does not answer is not told")
		}
		if n, _ := st.Lookup("heartbeatIntervalMillis").AsInt64OK(); n != 2000 {
			t.Errorf("heartbeats every %d ms with an election timeout of ten seconds", n)
		}
		if n, _ := st.Lookup("majorityVoteCount").AsInt64OK(); n != 3 {
			t.Errorf("majorityVoteCount %d of four", n)
		}
	})
}

// TestElectionTimeoutOfTenSecondsIsKept: with the server's timers, a killed primary is replaced when a server would.
func TestElectionTimeoutOfTenSecondsIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{ElectionTimeout: 10 * time.Second})
		defer s.Close()
		time.Sleep(30 * time.Second)
		begun := time.Now()
		if err := s.Kill(0); err != nil {
			t.Fatal(err)
		}
		if _, err := s.WaitPrimary(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 8*time.Second || took > 12*time.Second {
			t.Errorf("a new primary after %v; a server takes 8 to 12 seconds", took)
		}
	})
}

// TestFrozenMemberDoesNotStand, until it is thawed.
func TestFrozenMemberDoesNotStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{Config: []MemberOptions{2: {Priority: new(0.0)}}})
		defer s.Close()
		c, d := dialRaw(t, s, 0, "app"), dialRaw(t, s, 1, "app")
		defer c.nc.Close()
		defer d.nc.Close()
		if e := c.fails(t, mongoerr.CodeNotSecondary, "admin", admin("replSetFreeze", 10)); e.Message != "cannot freeze node when primary or running for election. state: Primary" {
			t.Errorf("%q", e.Message)
		}
		c.fails(t, mongoerr.CodeNotSecondary, "admin", admin("replSetFreeze", 0))
		d.fails(t, mongoerr.CodeBadValue, "admin", admin("replSetFreeze", -1))
		d.must(t, "admin", admin("replSetFreeze", 60))
		if err := s.Kill(0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if s.Primary() != nil {
			t.Fatal("a frozen member is primary")
		}
		r := d.must(t, "admin", admin("replSetFreeze", 0))
		if info, _ := r.Lookup("info").StringValueOK(); info != "unfreezing" {
			t.Errorf("%v", r)
		}
		within(t, 3*time.Second, "a primary", func() bool { p := s.Primary(); return p != nil && p.Index() == 1 })
	})
}

// TestStepDownWaitsForAnHeir: the texts and codes of replSetStepDown.
func TestStepDownWaitsForAnHeir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{ElectionTimeout: 10 * time.Second})
		defer s.Close()
		c, d, e := dialRaw(t, s, 0, "app"), dialRaw(t, s, 1, "app"), dialRaw(t, s, 0, "app")
		for _, c := range []*raw{c, d, e} {
			defer c.nc.Close()
		}
		if e := d.fails(t, mongoerr.CodeNotWritablePrimary, "admin", admin("replSetStepDown", 20)); e.Message != "not primary so can't step down" {
			t.Errorf("%q", e.Message)
		}
		for text, cmd := range map[string]bson.D{
			"stepdown period must be a positive integer":                     admin("replSetStepDown", -1),
			"stepdown period must be longer than secondaryCatchUpPeriodSecs": admin("replSetStepDown", 5, bson.E{Key: "secondaryCatchUpPeriodSecs", Value: 6}),
		} {
			if e := c.fails(t, mongoerr.CodeBadValue, "admin", cmd); e.Message != text {
				t.Errorf("%q, want %q", e.Message, text)
			}
		}
		time.Sleep(5 * time.Second)
		if err := s.Partition([]int{0}, []int{1, 2}); err != nil {
			t.Fatal(err)
		}
		c.must(t, "t", insert(1, w(1))) // nobody else gets it
		begun, second := time.Now(), make(chan struct{})
		go func() {
			defer close(second)
			time.Sleep(100 * time.Millisecond)
			e.fails(t, mongoerr.CodeConflictingOperationInProgress, "admin", admin("replSetStepDown", 20))
		}()
		err := c.fails(t, mongoerr.CodeExceededTimeLimit, "admin", admin("replSetStepDown", 20, bson.E{Key: "secondaryCatchUpPeriodSecs", Value: 2}))
		if took := time.Since(begun); took != 2*time.Second || !strings.HasPrefix(err.Message, "No electable secondaries caught up as of ") {
			t.Errorf("after %v: %q", took, err.Message)
		}
		<-second
		c.must(t, "t", insert(2, w(1))) // it takes writes again
		begun = time.Now()
		c.must(t, "admin", admin("replSetStepDown", 60, bson.E{Key: "secondaryCatchUpPeriodSecs", Value: 1}, bson.E{Key: "force", Value: true}))
		if took := time.Since(begun); took != time.Second || s.Member(0).State() != "SECONDARY" {
			t.Errorf("forced after %v: %s", took, s.Member(0).State())
		}
	})
}

// cutLine cuts the line between two members and leaves the others.
func cutLine(s *Set, a, b int) {
	s.Member(a).faults.Block(b)
	s.Member(b).faults.Block(a)
	for _, i := range []int{a, b} {
		s.Member(i).current().CutLinks()
	}
}

// TestSecondaryThatCannotReachThePrimaryPullsThroughAnother, and nobody disturbs the primary meanwhile.
func TestSecondaryThatCannotReachThePrimaryPullsThroughAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{})
		defer s.Close()
		c, d := dialRaw(t, s, 0, "app"), dialRaw(t, s, 2, "app")
		defer c.nc.Close()
		defer d.nc.Close()
		c.must(t, "t", insert("before", w(3)))
		cutLine(s, 0, 2)
		c.must(t, "t", insert("behind the cut", w(3)))
		for i := range 60 {
			c.must(t, "t", insert(i, w(3)))
			time.Sleep(time.Second)
		}
		st := d.must(t, "admin", statusCommand)
		if host, _ := st.Lookup("syncSourceHost").StringValueOK(); host != "m1:27017" {
			t.Errorf("it pulls from %q", host)
		}
		if term, _ := st.Lookup("term").AsInt64OK(); term != 1 {
			t.Errorf("the term has become %d", term)
		}
		r := d.must(t, "t", bson.D{{Key: "count", Value: "c"}, {Key: "readConcern", Value: bson.D{{Key: "level", Value: "majority"}}}, nearest})
		if n, _ := r.Lookup("n").AsInt64OK(); n != 62 {
			t.Errorf("it knows %d documents as committed: the commit point does not come through", n)
		}
		s.Heal()
		within(t, 3*time.Second, "the primary as source", func() bool {
			host, _ := d.must(t, "admin", statusCommand).Lookup("syncSourceHost").StringValueOK()
			return host == "m0:27017"
		})
		sameData(t, 2, s.Member(0).current().Store.Latest(), s.Member(2).current().Store.Latest())
	})
}

// TestSyncFromChoosesTheSource, and says what cannot be one.
func TestSyncFromChoosesTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 4, Options{Config: []MemberOptions{3: {Arbiter: true}}})
		defer s.Close()
		c, d, a := dialRaw(t, s, 0, "app"), dialRaw(t, s, 2, "app"), dialRaw(t, s, 3, "app")
		for _, c := range []*raw{c, d, a} {
			defer c.nc.Close()
		}
		c.must(t, "t", insert(1, w(3)))
		time.Sleep(time.Second)
		for _, try := range []struct {
			conn *raw
			host string
			code int32
			text string
		}{
			{c, "m1:27017", mongoerr.CodeNotSecondary, "primaries don't sync"},
			{a, "m1:27017", mongoerr.CodeNotSecondary, "arbiters don't sync"},
			{d, "m2:27017", mongoerr.CodeInvalidOptions, "I cannot sync from myself"},
			{d, "m3:27017", mongoerr.CodeInvalidOptions, `Cannot sync from "m3:27017" because it is an arbiter`},
			{d, "m9:27017", mongoerr.CodeNodeNotFound, `Could not find member "m9:27017" in replica set`},
		} {
			if e := try.conn.fails(t, try.code, "admin", admin("replSetSyncFrom", try.host)); e.Message != try.text {
				t.Errorf("%q, want %q", e.Message, try.text)
			}
		}
		r := d.must(t, "admin", admin("replSetSyncFrom", "m1:27017"))
		if prev, _ := r.Lookup("prevSyncTarget").StringValueOK(); prev != "m0:27017" {
			t.Errorf("%v", r)
		}
		c.must(t, "t", insert(2, w(3)))
		if host, _ := d.must(t, "admin", statusCommand).Lookup("syncSourceHost").StringValueOK(); host != "m1:27017" {
			t.Errorf("it pulls from %q", host)
		}
		if err := s.Kill(1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		c.must(t, "t", insert(3, w(2)))
	})
}

// TestStalePrimaryIsOneOfTwoForAWhile: each in its term; the old one confirms nothing, gives up when it has seen no
// majority for an election timeout, and takes back what it wrote.
func TestStalePrimaryIsOneOfTwoForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{})
		defer s.Close()
		time.Sleep(5 * time.Second)
		c := dialRaw(t, s, 0, "app")
		defer c.nc.Close()
		c.must(t, "t", insert("before", w(3))) // by all: who lacks it is not elected
		if err := s.Partition([]int{0}, []int{1, 2}); err != nil {
			t.Fatal(err)
		}
		cut := time.Now()
		if err := s.Member(1).current().StandForElection(t.Context(), true); err != nil { // sooner than the timeout would
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond) // until it has given up hearing from the old primary
		oldTerm, old := s.Member(0).current().WritablePrimary()
		newTerm, is := s.Member(1).current().WritablePrimary()
		if !old || !is || newTerm <= oldTerm {
			t.Fatalf("the old primary: %v in term %d; the new one: %v in term %d", old, oldTerm, is, newTerm)
		}
		if p := s.Primary(); p.Index() != 1 {
			t.Errorf("the set's primary is member %d", p.Index())
		}
		c.must(t, "t", insert("old", w(1)))
		d := dialRaw(t, s, 1, "app")
		defer d.nc.Close()
		d.must(t, "t", insert("new", majority()))
		for _, conn := range []*raw{c, d} {
			if yes, _ := helloOf(t, conn).Lookup("isWritablePrimary").BooleanOK(); !yes {
				t.Error("one of the two does not believe in itself")
			}
		}
		e := c.fails(t, mongoerr.CodePrimarySteppedDown, "t", insert("unconfirmed", majority()))
		if took := time.Since(cut); took < 800*time.Millisecond || took > 1100*time.Millisecond || e.WriteConcernError == nil {
			t.Errorf("the old primary gave up %v after the cut: %v", took, e)
		}
		c.fails(t, mongoerr.CodeNotWritablePrimary, "t", insert("too late", w(1)))
		s.Heal()
		time.Sleep(time.Second)
		if err := s.AwaitReplication(t.Context()); err != nil {
			t.Fatal(err)
		}
		c = dialRaw(t, s, 0, "app") // going into ROLLBACK has closed the connection
		if got := c.ids(t); !slices.Equal(got, []string{`"before"`, `"new"`}) {
			t.Errorf("the old primary has %v", got)
		}
		if lost := s.RolledBack(0); len(lost) != 2 {
			t.Errorf("it has taken back %v", lost)
		}
	})
}
