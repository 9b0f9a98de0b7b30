package sextant_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset"
)

// reads are all calls that read, each with its own way to be told where to go.
func reads(ctx context.Context, cl *sextant.Client, rp *readpref.ReadPref, sel sextant.Selector) map[string]func() error {
	db := cl.Database("shop")
	c := db.Collection("people")
	return map[string]func() error{
		"find": func() error {
			_, err := c.Find(ctx, bson.D{}, sextant.FindOptions{ReadPreference: rp, Selector: sel})
			return err
		},
		"findOne": func() error {
			_, err := c.FindOne(ctx, bson.D{}, sextant.FindOneOptions{ReadPreference: rp, Selector: sel})
			return err
		},
		"aggregate": func() error {
			_, err := sextant.Aggregate[bson.D](ctx, c, []bson.D{}, sextant.AggregateOptions{ReadPreference: rp, Selector: sel})
			return err
		},
		"countDocuments": func() error {
			_, err := c.CountDocuments(ctx, bson.D{}, sextant.CountOptions{ReadPreference: rp, Selector: sel})
			return err
		},
		"estimatedCount": func() error {
			_, err := c.EstimatedDocumentCount(ctx, sextant.EstimatedDocumentCountOptions{ReadPreference: rp, Selector: sel})
			return err
		},
		"distinct": func() error {
			_, err := sextant.Distinct[any](ctx, c, "x", bson.D{}, sextant.DistinctOptions{ReadPreference: rp, Selector: sel})
			return err
		},
		"listCollections": func() error {
			_, err := db.ListCollections(ctx, bson.D{}, sextant.ListCollectionsOptions{ReadPreference: rp, Selector: sel})
			return err
		},
		"listIndexes": func() error {
			_, err := c.ListIndexes(ctx, sextant.ListIndexesOptions{ReadPreference: rp, Selector: sel})
			return err
		},
		"listDatabases": func() error {
			_, err := cl.ListDatabaseNames(ctx, bson.D{}, sextant.ListDatabasesOptions{ReadPreference: rp, Selector: sel})
			return err
		},
		"runCommand": func() error {
			_, err := db.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}, sextant.RunCommandOptions{ReadPreference: rp, Selector: sel})
			return err
		},
		"runCommandCursor": func() error {
			_, err := sextant.RunCommandCursor[bson.D](ctx, db, bson.D{{Key: "find", Value: "people"}}, sextant.RunCommandCursorOptions{ReadPreference: rp, Selector: sel})
			return err
		},
	}
}

// seeded is a set of three with one document that every member has, and a client that knows them all.
func seeded(t *testing.T, edits ...func(*sextant.Config)) (*replset.Set, *sextant.Client) {
	t.Helper()
	set := embedded(t, 3)
	cl := whole(t, set, edits...)
	must[*sextant.InsertOneResult](t)(cl.Database("shop").Collection("people").InsertOne(testContext(t), bson.M{"x": 1}))
	if err := set.AwaitReplication(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return set, cl
}

func TestEveryReadFollowsTheSelectorOfItsCall(t *testing.T) {
	var s seen
	set, cl := seeded(t, func(c *sextant.Config) { c.Monitor = s.monitor() })
	for _, m := range set.Members() {
		only := func(members []event.Member) []event.Member {
			return slices.DeleteFunc(members, func(o event.Member) bool { return o.Address != m.Addr() })
		}
		for name, read := range reads(testContext(t), cl, readpref.Nearest(), only) {
			s.take("")
			if err := read(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			s.mu.Lock()
			if len(s.commands) != 1 || s.commands[0].server != m.Addr() {
				t.Errorf("%s went to %v, the selector chose %s", name, s.commands, m.Addr())
			}
			s.mu.Unlock()
		}
	}
}

func TestSelectorThatPanicsIsTheErrorOfItsCall(t *testing.T) {
	_, cl := seeded(t)
	start := time.Now()
	sel := func([]event.Member) []event.Member { panic("boom") }
	for name, read := range reads(testContext(t), cl, readpref.Nearest(), sel) {
		if err := read(); !mongoerr.IsSelection(err) || !strings.Contains(err.Error(), "the caller's selector panicked: boom") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var once atomic.Bool
	flaky := func(ms []event.Member) []event.Member {
		if once.CompareAndSwap(false, true) {
			panic("once")
		}
		return ms
	}
	if err := reads(testContext(t), cl, readpref.Nearest(), flaky)["findOne"](); err == nil || !strings.Contains(err.Error(), "once") {
		t.Errorf("a selector that panics once: %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v: nothing was to be waited for", took)
	}
}

func TestSelectorThatWantsNobodyIsExplained(t *testing.T) {
	_, cl := seeded(t, func(c *sextant.Config) { c.ServerSelectionTimeout = 100 * time.Millisecond })
	nobody := func([]event.Member) []event.Member { return nil }
	err := reads(testContext(t), cl, readpref.Secondary(), nobody)["findOne"]()
	if !mongoerr.IsTimeout(err) || !strings.Contains(err.Error(), "2 secondaries dropped by the caller's selector") {
		t.Errorf("%v", err)
	}
	v := must[event.Verdict](t)(cl.Explain(testContext(t), sextant.Want{ReadPreference: readpref.Secondary(), Selector: nobody}))
	if n := strings.Count(v.String(), ": dropped by the caller's selector"); n != 2 || len(v.Eligible()) != 0 {
		t.Errorf("the verdict is\n%v", v)
	}
}

// dialLog keeps to where a client dialled.
type dialLog struct {
	dial  dialFunc
	addrs chan string
}

func (l *dialLog) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l.addrs <- addr
	return l.dial(ctx, network, addr)
}

func TestAddressMapDialsElsewhereAndKeepsTheNames(t *testing.T) {
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		network := c.Dial
		o.Config = []replset.MemberOptions{{Name: "m0", Port: 27017}, {Name: "m1", Port: 27017}, {Name: "m2", Port: 27017}}
		c.AddressMap = func(advertised string) (string, string) {
			if advertised == "m2:27017" {
				return "", "" // stays as it is
			}
			return "tunnel:" + advertised[1:2], ""
		}
		c.Dial = func(ctx context.Context, n, addr string) (net.Conn, error) {
			switch addr {
			case "tunnel:0", "tunnel:1":
				return network(ctx, n, "m"+addr[7:]+":27017")
			case "m2:27017":
				return network(ctx, n, addr)
			}
			t.Errorf("dialled %s", addr)
			return nil, errors.New("no such way")
		}
	}, func(t *testing.T, b *bubble) {
		if err := b.cl.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		must[*sextant.InsertOneResult](t)(b.cl.Database("shop").Collection("people").InsertOne(t.Context(), bson.D{}))
		var got []string
		for _, m := range b.cl.Hosts().Members {
			got = append(got, m.Address+" by "+m.Dialled)
			if !m.Kind.DataBearing() {
				t.Errorf("%v", m)
			}
		}
		slices.Sort(got)
		if want := []string{"m0:27017 by tunnel:0", "m1:27017 by tunnel:1", "m2:27017 by m2:27017"}; !slices.Equal(got, want) {
			t.Errorf("hosts: %v", got)
		}
	})
}

func TestAddressMapThatPanicsIsToldForItsMember(t *testing.T) {
	cl := connect(t, "mongodb://a.invalid", func(c *sextant.Config) {
		c.AddressMap = func(string) (string, string) { panic("boom") }
		c.ServerSelectionTimeout = 200 * time.Millisecond
	})
	refuse(t, ping(cl), mongoerr.IsSelection, "the AddressMap function panicked: boom")
}

func TestTLSChecksTheAdvertisedNameHoweverTheMemberIsReached(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 1, TLS: &replset.TLS{Dir: t.TempDir()}})
	_, port, _ := net.SplitHostPort(set.Primary().Addr())
	for name, tc := range map[string]struct {
		tls  string
		want string // in the error; empty: none
	}{
		"kept":    {"", ""},
		"given":   {"127.0.0.1", ""},
		"another": {"db.example", "not for db.example"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &dialLog{(&net.Dialer{}).DialContext, make(chan string, 100)}
			cl := connect(t, set.URI(), func(c *sextant.Config) {
				c.Dial = l.Dial
				c.AddressMap = func(string) (string, string) { return "localhost:" + port, tc.tls }
				c.ServerSelectionTimeout = time.Second
			})
			err := ping(cl)()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v", err)
			}
			if to := <-l.addrs; to != "localhost:"+port {
				t.Errorf("dialled %s", to)
			}
		})
	}
}

func TestHostsKeepTheLastHelloOfAMemberThatWentAway(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		if err := b.cl.WaitReady(t.Context(), sextant.Want{Write: true}); err != nil {
			t.Fatal(err)
		}
		i := b.set.Primary().Index()
		before := b.member(i)
		if before.Health() != 1 || before.StateStr() != "PRIMARY" || before.ElectionID.IsZero() || before.SetVersion == 0 || before.Since.IsZero() {
			t.Errorf("the primary is %+v", before)
		}
		if err := b.set.Kill(i); err != nil {
			t.Fatal(err)
		}
		b.await(t, time.Minute, "the primary is known to be down", func() bool { return !b.member(i).Kind.Known() })
		m := b.member(i)
		if me, _ := m.Hello.Lookup("me").StringValueOK(); me != m.Address || m.Health() != 0 || m.StateStr() != "DOWN" {
			t.Errorf("health %d, state %d %s, hello %v", m.Health(), m.State(), m.StateStr(), m.Hello)
		}
		if m.LastError == nil || m.LastErrorStage == "" || m.Since.Before(before.Since) {
			t.Errorf("last error %v at stage %q, since %v", m.LastError, m.LastErrorStage, m.Since)
		}
	})
}

// TestSelectorThatPanicsIsInEveryPrinting: of the verdict and of the error of an operation, on each kind of deployment, with
// a pin, and with what it panicked with in whole, on one line.
func TestSelectorThatPanicsIsInEveryPrinting(t *testing.T) {
	const words = `the caller's selector panicked: no such\nrack`
	sel := func([]event.Member) []event.Member { panic(errors.New("no such\nrack")) }
	set, cl := seeded(t)
	pin := must[*sextant.Pin](t)(cl.Pin(testContext(t), readpref.Nearest()))
	direct := connect(t, "mongodb://"+set.Member(0).Addr()+"/?directConnection=true")
	for name, tc := range map[string]struct {
		cl   *sextant.Client
		want sextant.Want
	}{
		"set": {cl, sextant.Want{ReadPreference: readpref.Nearest(), Selector: sel}}, "direct": {direct, sextant.Want{Selector: sel}},
		"pinned": {cl, sextant.Want{Pin: pin, Selector: sel}}, "tags": {cl, sextant.Want{ReadPreference: readpref.Nearest(readpref.Tags(), readpref.Tags("a", "b")), Selector: sel}},
	} {
		v := must[event.Verdict](t)(tc.cl.Explain(testContext(t), tc.want))
		if !strings.Contains(v.Sentence, words) || !strings.Contains(v.String(), ": "+words) || v.Cause == nil || len(v.Eligible()) != 0 {
			t.Errorf("%s: %v (%v)", name, v, v.Cause)
		}
		_, err := tc.cl.Database("shop").Collection("people").FindOne(testContext(t), bson.D{},
			sextant.FindOneOptions{ReadPreference: tc.want.ReadPreference, Pin: tc.want.Pin, Selector: sel})
		first, members, _ := strings.Cut(fmt.Sprint(err), "\n")
		if !mongoerr.IsSelection(err) || !strings.Contains(first, words) || !strings.Contains(members, words) {
			t.Errorf("%s: %v", name, err)
		}
		refuse(t, func() error { return tc.cl.WaitReady(testContext(t), tc.want) }, mongoerr.IsSelection, words)
	}
}

// TestSelectorThatPanicsOnARetryIsTold beside the failure of the attempt before.
func TestSelectorThatPanicsOnARetryIsTold(t *testing.T) {
	set, cl := seeded(t)
	for i := range set.Members() {
		set.FailCommand(i, &replset.FailCommand{Times: 1, Commands: []string{"find"}, CloseConnection: true})
	}
	var asked atomic.Int64
	sel := func(ms []event.Member) []event.Member {
		if asked.Add(1) > 1 {
			panic("boom")
		}
		return ms
	}
	err := reads(testContext(t), cl, readpref.Nearest(), sel)["findOne"]()
	if !mongoerr.IsNetwork(err) || !strings.Contains(err.Error(), "the caller's selector panicked: boom; the first failed: ") {
		t.Errorf("%v", err)
	}
}
