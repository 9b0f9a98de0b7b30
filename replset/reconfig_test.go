package replset

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/command"
)

func helloOf(t *testing.T, c *raw) bson.Raw {
	t.Helper()
	return c.must(t, "admin", bson.D{{Key: "hello", Value: 1}})
}

func strs(t *testing.T, v bson.RawValue) (out []string) {
	t.Helper()
	arr, _ := v.ArrayOK()
	for _, e := range arr.All() {
		s, _ := e.StringValueOK()
		out = append(out, s)
	}
	return out
}

var nearest = bson.E{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "nearest"}}}

func TestAddedMemberCopiesEverythingAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 2, Options{})
		defer s.Close()
		c := dialRaw(t, s, 0, "app")
		defer c.nc.Close()
		for i := range 300 {
			c.must(t, "t", insert(i, majority()))
		}
		e := c.fails(t, mongoerr.CodeUnsatisfiableWriteConcern, "t", insert("too many", w(3)))
		if e.WriteConcernError == nil {
			t.Errorf("three of two members: %v", e)
		}
		m, err := s.AddMember(t.Context(), MemberOptions{Name: "m2", Port: 27017, Tags: map[string]string{"dc": "west"}})
		if err != nil {
			t.Fatal(err)
		}
		if m.Index() != 2 || m.Addr() != "m2:27017" || m.Tags()["dc"] != "west" {
			t.Errorf("member %d at %s with %v", m.Index(), m.Addr(), m.Tags())
		}
		c.must(t, "t", insert("last", w(3)))
		if state := m.State(); state != "SECONDARY" {
			t.Errorf("it is %s", state)
		}
		sameData(t, 2, s.Member(0).current().Store.Latest(), m.current().Store.Latest())
		h := helloOf(t, c)
		if got := strs(t, h.Lookup("hosts")); !slices.Equal(got, []string{"m0:27017", "m1:27017", "m2:27017"}) {
			t.Errorf("hosts %v", got)
		}
		if v, _ := h.Lookup("setVersion").AsInt64OK(); v != 2 {
			t.Errorf("setVersion %d", v)
		}
		if want := "mongodb://m0:27017,m1:27017,m2:27017/?replicaSet=rs0"; s.URI() != want {
			t.Errorf("the URI is %s", s.URI())
		}
		if err := s.Kill(0); err != nil { // two of three are a majority now
			t.Fatal(err)
		}
		if _, err := s.WaitPrimary(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestRemovedMemberSaysSoAndMayComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{})
		defer s.Close()
		c := dialRaw(t, s, 0, "app")
		defer c.nc.Close()
		c.must(t, "t", insert("before", w(3)))
		if err := s.RemoveMember(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		if state := s.Member(2).State(); state != "REMOVED" {
			t.Fatalf("it is %s", state)
		}
		gone := dialRaw(t, s, 2, "app") // its removal has closed what was open
		defer gone.nc.Close()
		h := helloOf(t, gone)
		is, _ := h.Lookup("isreplicaset").BooleanOK()
		primary, ok := h.Lookup("isWritablePrimary").BooleanOK()
		if !is || primary || !ok || !h.Lookup("setName").IsZero() || !h.Lookup("hosts").IsZero() || !h.Lookup("me").IsZero() {
			t.Errorf("hello of a removed member: %v", h)
		}
		gone.fails(t, mongoerr.CodeNotPrimaryNoSecondaryOk, "t", bson.D{{Key: "find", Value: "c"}})
		e := gone.fails(t, mongoerr.CodeNotPrimaryOrSecondary, "t", bson.D{{Key: "find", Value: "c"}, nearest})
		if e.Message != "node is not in primary or recovering state" {
			t.Errorf("%q", e.Message)
		}
		gone.fails(t, mongoerr.CodeNotWritablePrimary, "t", insert("x", nil))
		gone.fails(t, mongoerr.CodeInvalidReplicaSetConfig, "admin", bson.D{{Key: "replSetGetStatus", Value: 1}})
		if got := strs(t, helloOf(t, c).Lookup("hosts")); len(got) != 2 {
			t.Errorf("hosts %v", got)
		}
		if err := s.RemoveMember(t.Context(), 2); err == nil {
			t.Error("removed twice")
		}
		c.must(t, "t", insert("meanwhile", w(2)))

		cfg := c.must(t, "admin", bson.D{{Key: "replSetGetConfig", Value: 1}}) // a client puts it back
		reconfig(t, c, cfg, 7, "m2:27017")
		c.must(t, "t", insert("after", w(3)))
		if state := s.Member(2).State(); state != "SECONDARY" {
			t.Errorf("it is %s", state)
		}
		sameData(t, 2, s.Member(0).current().Store.Latest(), s.Member(2).current().Store.Latest())
	})
}

// reconfig adds a member to a configuration that replSetGetConfig has shown.
func reconfig(t *testing.T, c *raw, reply bson.Raw, id int, host string) {
	t.Helper()
	var cfg bson.D
	doc, _ := reply.Lookup("config").DocumentOK()
	if err := bson.Unmarshal(doc, &cfg); err != nil {
		t.Fatal(err)
	}
	for i, e := range cfg {
		switch e.Key {
		case "version":
			cfg[i].Value = e.Value.(int32) + 1
		case "members":
			cfg[i].Value = append(e.Value.(bson.A), bson.D{{Key: "_id", Value: id}, {Key: "host", Value: host}})
		}
	}
	c.must(t, "admin", bson.D{{Key: "replSetReconfig", Value: cfg}})
}

func TestRemovedMemberLeavesTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := NewMemoryNetwork()
		s := namedOn(t, network, 3, Options{})
		defer s.Close()
		cfg, err := sextant.ParseURI(s.URI())
		if err != nil {
			t.Fatal(err)
		}
		cfg.Dial = network.Dial
		client, err := sextant.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(context.Background())
		hosts := func() int { return len(client.Hosts().Members) }
		within(t, time.Second, "three hosts", func() bool {
			_, err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}})
			return err == nil && hosts() == 3
		})
		if err := s.RemoveMember(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		within(t, time.Second, "two hosts", func() bool { return hosts() == 2 })
		if _, err := s.AddMember(t.Context(), MemberOptions{Name: "m3", Port: 27017}); err != nil {
			t.Fatal(err)
		}
		within(t, time.Second, "three hosts again", func() bool { return hosts() == 3 })
	})
}

func TestRemovedPrimaryStepsDownFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{})
		defer s.Close()
		if err := s.RemoveMember(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if p, err := s.WaitPrimary(t.Context()); err != nil || p.Index() == 0 {
			t.Errorf("the primary is %v, %v", p, err)
		}
		time.Sleep(10 * time.Millisecond)
		if state := s.Member(0).State(); state != "REMOVED" {
			t.Errorf("it is %s", state)
		}
	})
}

func TestReconfigureChangesWhatAMemberIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{})
		defer s.Close()
		c := dialRaw(t, s, 0, "app")
		defer c.nc.Close()
		hide := func(o *MemberOptions) { o.Hidden, o.Tags = true, map[string]string{"use": "reports"} }
		if err := s.Reconfigure(t.Context(), 2, hide); err != nil {
			t.Fatal(err)
		}
		if got := strs(t, helloOf(t, c).Lookup("hosts")); len(got) != 2 {
			t.Errorf("hosts %v", got)
		}
		if got := s.Member(2).Tags()["use"]; got != "reports" {
			t.Errorf("tag %q", got)
		}
		if err := s.Reconfigure(t.Context(), 0, func(o *MemberOptions) { o.Priority = new(0.0) }); !hasCode(err, mongoerr.CodeNodeNotElectable) {
			t.Errorf("a primary that must not be primary: %v", err)
		}
		if err := s.Reconfigure(t.Context(), 1, func(o *MemberOptions) { o.Arbiter = true }); err == nil {
			t.Error("a secondary became an arbiter")
		}
		begun := time.Now()
		if err := s.Reconfigure(t.Context(), 1, func(o *MemberOptions) { o.Priority = new(5.0) }); err != nil {
			t.Fatal(err)
		}
		within(t, 3*time.Second, "the takeover", func() bool { p := s.Primary(); return p != nil && p.Index() == 1 })
		if took := time.Since(begun); took < time.Second {
			t.Errorf("member 1 took over after %v, before an election timeout", took)
		}
		if err := s.Reconfigure(t.Context(), 2, func(o *MemberOptions) { o.Hidden = false }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // member 0, which is asked, need not be of the majority
		if got := strs(t, helloOf(t, c).Lookup("hosts")); len(got) != 3 {
			t.Errorf("hosts %v: a member that is hidden no more has its usual priority back", got)
		}
	})
}

func hasCode(err error, code int32) bool {
	var e *mongoerr.Error
	for ; err != nil; err = unwrap(err) {
		if m, ok := err.(*mongoerr.Error); ok {
			e = m
		}
	}
	return e != nil && e.Code == code
}

func unwrap(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return nil
}

func TestReconfigRefusesWhatAServerRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{})
		defer s.Close()
		c, other := dialRaw(t, s, 0, "app"), dialRaw(t, s, 1, "app")
		defer c.nc.Close()
		defer other.nc.Close()
		member := func(id int, host string, more ...bson.E) bson.D {
			return append(bson.D{{Key: "_id", Value: id}, {Key: "host", Value: host}}, more...)
		}
		config := func(version int, members ...any) bson.D {
			return bson.D{{Key: "_id", Value: "rs0"}, {Key: "version", Value: version}, {Key: "members", Value: bson.A(members)}}
		}
		a, b, d := member(0, "m0:27017"), member(1, "m1:27017"), member(2, "m2:27017")
		for name, try := range map[string]struct {
			cfg  bson.D
			code int32
			text string
		}{
			"same version":   {config(1, a, b, d), 103, "New replica set configuration version must be greater than old, but 1 is not greater than 1 for replica set rs0"},
			"without itself": {config(2, b, d), 103, "No host described in new configuration 2 for replica set rs0 maps to this node"},
			"another set": {bson.D{{Key: "_id", Value: "other"}, {Key: "version", Value: 2}, {Key: "members", Value: bson.A{a, b, d}}}, 103,
				"New and old configurations differ in replica set name; old was rs0, and new is other"},
			"two voters at once": {config(2, a), 103, "Non force replica set reconfig can only add or remove at most 1 voting member"},
			"another number": {config(2, a, b, member(9, "m2:27017")), 103,
				"New and old configurations both have members with host of m2:27017 but in the new configuration the _id field is 9 and in the old configuration it is 2 for replica set rs0"},
			"now an arbiter": {config(2, a, b, append(d[:2:2], bson.E{Key: "arbiterOnly", Value: true})), 103,
				"New and old configurations differ in the setting of the arbiterOnly field for member m2:27017; to make this change, remove then re-add the member"},
			"not electable":     {config(2, append(a[:2:2], bson.E{Key: "priority", Value: 0}), b, d), mongoerr.CodeNodeNotElectable, ""},
			"unknown field":     {append(config(2, a, b, d), bson.E{Key: "bogus", Value: 1}), 93, "Unexpected field bogus in replica set configuration"},
			"no members":        {bson.D{{Key: "_id", Value: "rs0"}, {Key: "version", Value: 2}}, 93, "Missing expected field \"members\""},
			"votes 2":           {config(2, a, b, append(d[:2:2], bson.E{Key: "votes", Value: 2})), 93, ""},
			"text for priority": {config(2, a, b, append(d[:2:2], bson.E{Key: "priority", Value: "high"})), 93, "priority must be a number, not a string"},
		} {
			e := c.fails(t, try.code, "admin", bson.D{{Key: "replSetReconfig", Value: try.cfg}})
			if try.text != "" && e.Message != try.text {
				t.Errorf("%s: %q, want %q", name, e.Message, try.text)
			}
		}
		other.fails(t, mongoerr.CodeNotWritablePrimary, "admin", bson.D{{Key: "replSetReconfig", Value: config(2, a, b, d)}})
		if err := s.Kill(2); err != nil {
			t.Fatal(err)
		}
		e := c.fails(t, mongoerr.CodeNodeNotFound, "admin", bson.D{{Key: "replSetReconfig", Value: config(2, a, b, d, member(3, "m3:27017"))}})
		t.Log(e.Message) // two of four voters answer
		if v := s.config().Version; v != 1 {
			t.Errorf("the configuration has version %d", v)
		}
	})
}

// A forced change is made by any member, for when there is no majority to ask.
func TestForcedReconfigBringsBackASetWithoutAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{})
		defer s.Close()
		for _, i := range []int{0, 2} {
			if err := s.Kill(i); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second)
		if s.Primary() != nil {
			t.Fatal("one of three is primary")
		}
		c := dialRaw(t, s, 1, "app")
		defer c.nc.Close()
		c.must(t, "admin", bson.D{{Key: "replSetReconfig", Value: bson.D{{Key: "_id", Value: "rs0"}, {Key: "version", Value: 2},
			{Key: "members", Value: bson.A{bson.D{{Key: "_id", Value: 1}, {Key: "host", Value: "m1:27017"}}}}}}, {Key: "force", Value: true}})
		if _, err := s.WaitPrimary(t.Context()); err != nil {
			t.Fatal(err)
		}
		if v := s.config().Version; v < 10_000 {
			t.Errorf("version %d: a forced one leaps ahead", v)
		}
		if err := s.Restart(0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if state := s.Member(0).State(); state != "REMOVED" {
			t.Errorf("the member that was left out is %s", state)
		}
	})
}

func TestSecondChangeWaitsUntilTheFirstHasAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{ElectionTimeout: 10 * time.Second})
		defer s.Close()
		time.Sleep(3 * time.Second)
		r := s.Member(0).current()
		if err := s.Partition([]int{0}, []int{1, 2}); err != nil {
			t.Fatal(err)
		}
		next := *r.Config()
		next.Version = 2
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { _, err := r.Reconfigure(t.Context(), &next, false); first <- err }()
		time.Sleep(time.Millisecond)
		go func() { _, err := r.Reconfigure(t.Context(), &next, false); second <- err }()
		if err := <-second; !hasCode(err, command.CodeConfigInProgress) {
			t.Errorf("two at once: %v", err)
		}
		if err := <-first; err == nil {
			t.Error("a majority took part that cannot be reached")
		}
	})
}

// TestReconfiguredSetStartsAgainAsItWas: with a data folder the stored configuration says who is in the set.
func TestReconfiguredSetStartsAgainAsItWas(t *testing.T) {
	o := Options{Members: 3, Dir: t.TempDir(), ElectionTimeout: 300 * time.Millisecond}
	s := Run(t, o)
	insertKept(t, clientOf(t, s.URI()), journaled, "a")
	if _, err := s.AddMember(t.Context(), MemberOptions{Tags: map[string]string{"added": "yes"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitReplication(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveMember(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	uri := s.URI()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, members := range []int{3, 0} {
		again := o
		again.Members = members
		s = Run(t, again)
		if s.URI() != uri {
			t.Logf("the ports were taken: %s has become %s", uri, s.URI())
		}
		if n := len(s.config().Members); n != 3 {
			t.Errorf("there are %d members", n)
		}
		if got := s.Member(3).Tags()["added"]; got != "yes" || s.Member(3).State() == "DOWN" || s.Member(1).State() != "DOWN" {
			t.Errorf("member 3 is %s with tag %q, member 1 is %s", s.Member(3).State(), got, s.Member(1).State())
		}
		if err := s.AwaitReplication(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantIDs(t, clientOf(t, s.URI()), "a")
		uri = s.URI()
		if members == 0 {
			if err := s.Restart(1); err != nil {
				t.Fatal(err)
			}
			within(t, 5*time.Second, "REMOVED", func() bool { return s.Member(1).State() == "REMOVED" })
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	o.Members = 5
	if _, err := Start(t.Context(), o); err == nil {
		t.Error("five members in a folder of three")
	} else {
		t.Log(fmt.Sprint(err))
	}
}
