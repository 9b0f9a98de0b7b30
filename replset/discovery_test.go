package replset

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

func keys(doc bson.Raw) []string {
	var out []string
	for key := range doc.All() {
		out = append(out, key)
	}
	return out
}

func TestHelloTellsEverythingInTheServersOrder(t *testing.T) {
	s := Run(t, Options{Config: []MemberOptions{
		{Tags: map[string]string{"dc": "east"}}, {Priority: new(0.0)}, {Hidden: true}, {Arbiter: true}}})
	want := map[int][]string{
		0: {"helloOk", "topologyVersion", "hosts", "passives", "arbiters", "setName", "setVersion", "isWritablePrimary", "secondary", "primary",
			"tags", "me", "electionId", "lastWrite"},
		1: {"helloOk", "topologyVersion", "hosts", "passives", "arbiters", "setName", "setVersion", "isWritablePrimary", "secondary", "primary",
			"passive", "me", "lastWrite"},
		2: {"helloOk", "topologyVersion", "hosts", "passives", "arbiters", "setName", "setVersion", "isWritablePrimary", "secondary", "primary",
			"passive", "hidden", "me", "lastWrite"},
		3: {"helloOk", "topologyVersion", "hosts", "passives", "arbiters", "setName", "setVersion", "isWritablePrimary", "secondary", "primary",
			"arbiterOnly", "me", "lastWrite"},
	}
	tail := []string{"maxBsonObjectSize", "maxMessageSizeBytes", "maxWriteBatchSize", "localTime", "logicalSessionTimeoutMinutes",
		"connectionId", "minWireVersion", "maxWireVersion", "readOnly", "ok"}
	for i, head := range want {
		r := dialRaw(t, s, i, "app").must(t, "admin", bson.D{{Key: "hello", Value: 1}, {Key: "helloOk", Value: true}})
		all := append(slices.Clone(head), tail...)
		if i != 3 {
			all = append(all, "$clusterTime", "operationTime")
		}
		if got := keys(r); !slices.Equal(got, all) {
			t.Errorf("member %d:\n got %v\nwant %v", i, got, all)
		}
		if hosts, _ := r.Lookup("hosts").ArrayOK(); hosts.Len() != 1 || hosts.Index(0).StringValue() != s.Member(0).Addr() {
			t.Errorf("member %d: hosts %v", i, r.Lookup("hosts"))
		}
		if p, _ := r.Lookup("primary").StringValueOK(); p != s.Member(0).Addr() {
			t.Errorf("member %d: primary %q", i, p)
		}
		if me, _ := r.Lookup("me").StringValueOK(); me != s.Member(i).Addr() {
			t.Errorf("member %d: me %q", i, me)
		}
		if v, _ := r.Lookup("maxWireVersion").Int32OK(); v != 25 {
			t.Errorf("maxWireVersion %d", v)
		}
	}
}

func TestLegacyHelloByBothOpcodes(t *testing.T) {
	s := Run(t)
	c := dialRaw(t, s, 0, "")
	for _, name := range []string{"isMaster", "ismaster"} {
		r, flags, err := c.query("admin", bson.D{{Key: name, Value: 1}, {Key: "helloOk", Value: true}, {Key: "backpressure", Value: "2"}})
		if err != nil {
			t.Fatal(err)
		}
		if flags != wire.ReplyAwaitCapable {
			t.Errorf("flags %d", flags)
		}
		for _, field := range []string{"ismaster", "helloOk"} {
			if yes, _ := r.Lookup(field).BooleanOK(); !yes {
				t.Errorf("OP_QUERY %s: %s is not true: %v", name, field, r)
			}
		}
		r = c.must(t, "admin", bson.D{{Key: name, Value: 1}})
		if yes, _ := r.Lookup("ismaster").BooleanOK(); !yes || !r.Lookup("isWritablePrimary").IsZero() || !r.Lookup("helloOk").IsZero() {
			t.Errorf("OP_MSG %s: %v", name, r)
		}
	}
	r, _, err := c.query("t", bson.D{{Key: "$query", Value: bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}}}}})
	if n, _ := r.Lookup("n").AsInt64OK(); err != nil || n != 1 {
		t.Errorf("insert by OP_QUERY: %v, %v", r, err)
	}
	r, _, err = c.query("t", bson.D{{Key: "bogus", Value: 1}})
	if code, _ := r.Lookup("code").AsInt64OK(); err != nil || code != 59 {
		t.Errorf("an unknown command by OP_QUERY: %v, %v", r, err)
	}
}

// hello asks a member what it is, with the topologyVersion of an earlier answer.
func await(known bson.Raw, ms int) bson.D {
	return bson.D{{Key: "hello", Value: 1}, {Key: "topologyVersion", Value: known}, {Key: "maxAwaitTimeMS", Value: ms}}
}

func version(r bson.Raw) bson.Raw {
	d, _ := r.Lookup("topologyVersion").DocumentOK()
	return d
}

func TestAwaitedHelloReturnsOnChangeAtOnceOrInTime(t *testing.T) {
	onFakeTime(t, Options{Members: 3}, func(t *testing.T, s *Set) {
		p := primaryIndex(t, s)
		c := dialRaw(t, s, p, "monitor")
		first := c.must(t, "admin", bson.D{{Key: "hello", Value: 1}})

		begun := time.Now()
		same := c.must(t, "admin", await(version(first), 50))
		if took := time.Since(begun); took < 50*time.Millisecond || took > 2*time.Second {
			t.Errorf("without a change the answer came after %v", took)
		}
		if string(version(same)) != string(version(first)) {
			t.Errorf("topologyVersion changed from %v to %v", version(first), version(same))
		}

		done := make(chan time.Duration, 1)
		go func() {
			begun := time.Now()
			if _, err := c.run("admin", await(version(first), 10000)); err != nil {
				t.Error(err)
			}
			done <- time.Since(begun)
		}()
		time.Sleep(20 * time.Millisecond)
		if err := s.StepDown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := <-done; took > 2*time.Second {
			t.Errorf("the change was told after %v", took)
		}
		begun = time.Now()
		c.must(t, "admin", await(version(first), 10000))
		if took := time.Since(begun); took > time.Second {
			t.Errorf("an old version was answered after %v", took)
		}
		c.fails(t, 31368, "admin", bson.D{{Key: "hello", Value: 1}, {Key: "maxAwaitTimeMS", Value: 10}})
		c.fails(t, 31368, "admin", bson.D{{Key: "hello", Value: 1}, {Key: "topologyVersion", Value: version(first)}})
	})
}

func TestStreamedHelloSendsEachChangeWithoutBeingAsked(t *testing.T) {
	onFakeTime(t, Options{Members: 3}, func(t *testing.T, s *Set) {
		p := primaryIndex(t, s)
		c := dialRaw(t, s, p, "monitor")
		known := version(c.must(t, "admin", bson.D{{Key: "hello", Value: 1}}))
		if err := c.send(wire.ExhaustAllowed, "admin", await(known, 100)); err != nil {
			t.Fatal(err)
		}
		asked := c.id
		r, err := c.receive()
		if err != nil {
			t.Fatal(err)
		}
		if c.lastR.Flags&wire.MoreToCome == 0 || c.lastR.ResponseTo != asked {
			t.Errorf("first reply: flags %#x, in response to %d, asked %d", c.lastR.Flags, c.lastR.ResponseTo, asked)
		}
		before := c.lastR.RequestID
		if err := s.StepDown(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if r, err = c.receive(); err != nil {
				t.Fatal(err)
			}
			if c.lastR.ResponseTo != before || c.lastR.Flags&wire.MoreToCome == 0 {
				t.Errorf("a streamed reply is in response to %d, the one before was %d (flags %#x)", c.lastR.ResponseTo, before, c.lastR.Flags)
			}
			before = c.lastR.RequestID
			if yes, _ := r.Lookup("secondary").BooleanOK(); yes {
				return
			}
		}
		t.Errorf("the step-down was never told: %v", r)
	})
}

func TestSecondaryKnowsThePrimaryAndLearnsOfTheNext(t *testing.T) {
	onFakeTime(t, Options{Members: 3}, func(t *testing.T, s *Set) {
		old := s.Member(primaryIndex(t, s)).Addr()
		if err := s.Kill(primaryIndex(t, s)); err != nil {
			t.Fatal(err)
		}
		p, err := s.WaitPrimary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range s.Members() {
			if m.State() == "DOWN" {
				continue
			}
			c := dialRaw(t, s, m.Index(), "app")
			within(t, 2*time.Second, "every survivor to know", func() bool {
				r := c.must(t, "admin", bson.D{{Key: "hello", Value: 1}})
				name, _ := r.Lookup("primary").StringValueOK()
				return name == p.Addr() && name != old
			})
		}
	})
}

func TestUnknownAndMisspeltCommandsAreRefused(t *testing.T) {
	s := Run(t)
	c := dialRaw(t, s, 0, "app")
	for _, name := range []string{"bogus", "Find", "$query", "", "atlasVersion"} {
		e := c.fails(t, mongoerr.CodeCommandNotFound, "t", bson.D{{Key: name, Value: 1}})
		if e.Message != "no such command: '"+name+"'" {
			t.Errorf("%q: %s", name, e.Message)
		}
	}
	c.fails(t, mongoerr.CodeInvalidNamespace, "a b", bson.D{{Key: "ping", Value: 1}})
	c.fails(t, mongoerr.CodeUnauthorized, "t", bson.D{{Key: "replSetGetStatus", Value: 1}})
	c.fails(t, mongoerr.CodeUnauthorized, "admin", bson.D{{Key: "replSetHeartbeat", Value: "rs0"}})
	c.fails(t, mongoerr.CodeFailedToParse, "t", bson.D{{Key: "ping", Value: 1}, {Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "bogus"}}}})
	c.fails(t, mongoerr.CodeInvalidOptions, "t", bson.D{{Key: "listCollections", Value: 1}, {Key: "readConcern", Value: bson.D{{Key: "level", Value: "majority"}}}})
	c.fails(t, mongoerr.CodeInvalidOptions, "t", bson.D{{Key: "ping", Value: 1}, {Key: "writeConcern", Value: w(1)}})
	c.fails(t, mongoerr.CodeNotImplemented, "admin", bson.D{{Key: "commitTransaction", Value: 1}})
	c.fails(t, mongoerr.CodeNotImplemented, "t", append(insert(1, nil), bson.E{Key: "startTransaction", Value: true}))
}

func TestStatusAndConfigTellOfAllMembers(t *testing.T) {
	onFakeTime(t, Options{Members: 3}, func(t *testing.T, s *Set) {
		p := primaryIndex(t, s)
		dead := (p + 1) % 3
		if err := s.Kill(dead); err != nil {
			t.Fatal(err)
		}
		c := dialRaw(t, s, p, "app")
		within(t, 3*time.Second, "the status to say who is dead", func() bool {
			r := c.must(t, "admin", bson.D{{Key: "replSetGetStatus", Value: 1}})
			arr, _ := r.Lookup("members").ArrayOK()
			d, _ := arr.Index(dead).DocumentOK()
			state, _ := d.Lookup("state").AsInt64OK()
			return arr.Len() == 3 && state == 8
		})
		r := c.must(t, "admin", bson.D{{Key: "replSetGetConfig", Value: 1}})
		if host, _ := r.Lookup("config", "members", "0", "host").StringValueOK(); host != s.Member(0).Addr() {
			t.Errorf("config: %v", r)
		}
		for _, cmd := range []string{"buildInfo", "serverStatus", "connectionStatus", "whatsmyuri", "features", "ping", "getLastError"} {
			c.must(t, "t", bson.D{{Key: cmd, Value: 1}})
		}
		for _, cmd := range []bson.D{{{Key: "hostInfo", Value: 1}}, {{Key: "getCmdLineOpts", Value: 1}}, {{Key: "getLog", Value: "startupWarnings"}},
			{{Key: "getParameter", Value: "*"}}, {{Key: "getParameter", Value: 1}, {Key: "featureCompatibilityVersion", Value: 1}}} {
			c.must(t, "admin", cmd)
		}
		c.fails(t, mongoerr.CodeInvalidOptions, "admin", bson.D{{Key: "getParameter", Value: 1}, {Key: "foo", Value: 1}})
	})
}

func TestClientMetadataIsCheckedAndTakenOnce(t *testing.T) {
	s := Run(t)
	hello := func(client any) bson.D { return bson.D{{Key: "isMaster", Value: 1}, {Key: "client", Value: client}} }
	good := bson.D{{Key: "driver", Value: bson.D{{Key: "name", Value: "d"}, {Key: "version", Value: "1"}}}, {Key: "os", Value: bson.D{{Key: "type", Value: "x"}}}}
	for code, client := range map[int32]any{
		14:  1,
		183: bson.D{{Key: "driver", Value: bson.D{{Key: "name", Value: "d"}}}, {Key: "os", Value: bson.D{{Key: "type", Value: "x"}}}},
		184: append(slices.Clone(good), bson.E{Key: "platform", Value: strings.Repeat("x", 600)}),
	} {
		c := dialRaw(t, s, 0, "")
		c.fails(t, code, "admin", hello(client))
		c.fails(t, 186, "admin", hello(good))
		c.must(t, "admin", bson.D{{Key: "isMaster", Value: 1}})
	}
	dialRaw(t, s, 0, "").must(t, "admin", hello(good))
}

func TestReconfigChangesTagsAndPrioritiesEverywhere(t *testing.T) {
	onFakeTime(t, Options{Members: 3}, func(t *testing.T, s *Set) {
		p := primaryIndex(t, s)
		c := dialRaw(t, s, p, "app")
		r := c.must(t, "admin", bson.D{{Key: "replSetGetConfig", Value: 1}})
		doc, _ := r.Lookup("config").DocumentOK()
		var cfg bson.D
		if err := bson.Unmarshal(doc, &cfg); err != nil {
			t.Fatal(err)
		}
		heir := (p + 1) % 3
		set := func(d bson.D, key string, v any) {
			for i := range d {
				if d[i].Key == key {
					d[i].Value = v
				}
			}
		}
		members, _ := cfg.Get("members")
		set(members.(bson.A)[heir].(bson.D), "tags", bson.D{{Key: "dc", Value: "new"}})
		set(members.(bson.A)[heir].(bson.D), "priority", 5.0)
		c.fails(t, 103, "admin", bson.D{{Key: "replSetReconfig", Value: cfg}})
		set(cfg, "version", 2)
		dialRaw(t, s, heir, "app").fails(t, mongoerr.CodeNotWritablePrimary, "admin", bson.D{{Key: "replSetReconfig", Value: cfg}})
		c.must(t, "admin", bson.D{{Key: "replSetReconfig", Value: cfg}})
		within(t, 3*time.Second, "the member of the new priority to take over", func() bool {
			q := s.Primary()
			return q != nil && q.Index() == heir
		})
		if err := s.Kill(heir); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(heir); err != nil {
			t.Fatal(err)
		}
		r = dialRaw(t, s, heir, "app").must(t, "admin", bson.D{{Key: "hello", Value: 1}})
		if dc, _ := r.Lookup("tags", "dc").StringValueOK(); dc != "new" || s.Member(heir).Tags()["dc"] != "new" {
			t.Errorf("after a restart the tags are %v in hello and %v in the set", r.Lookup("tags"), s.Member(heir).Tags())
		}
		if v, _ := r.Lookup("setVersion").AsInt64OK(); v != 2 {
			t.Errorf("setVersion %d", v)
		}
	})
}

func TestOnlyElectableMemberStepsDownIntoANewTerm(t *testing.T) {
	s := Run(t)
	if err := s.StepDown(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := dialRaw(t, s, 0, "app").must(t, "admin", bson.D{{Key: "hello", Value: 1}})
	if id, _ := r.Lookup("electionId").ObjectIDOK(); id.Hex() != "7fffffff0000000000000002" {
		t.Errorf("electionId %v", id)
	}
}
