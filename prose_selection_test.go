package sextant_test

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset"
)

// The prose tests of the specification "server selection". Each says which change of the driver would break it. Number 2,
// the arithmetic of round trips, is in internal/topology.

// inSharded runs a test over a client of scripted mongos on fake time.
func inSharded(t *testing.T, uri string, r *routers, edit func(*sextant.Config), f func(t *testing.T, cl *sextant.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := must[*sextant.Config](t)(sextant.ParseURI(uri))
		c.Dial = r.dial
		if edit != nil {
			edit(c)
		}
		cl := must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), c))
		defer cl.Close(context.Background())
		if err := cl.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		f(t, cl)
	})
}

// TestProseSelection1PrimaryWithTagsIsRejected: broken by taking tags that nobody can ask the primary for as no tags.
func TestProseSelection1PrimaryWithTagsIsRejected(t *testing.T) {
	if _, err := readpref.New(readpref.PrimaryMode, readpref.Tags("dc", "east")); !mongoerr.IsConfig(err) {
		t.Errorf("readpref.New: %v", err)
	}
	for _, uri := range []string{"mongodb://h/?readPreference=primary&readPreferenceTags=dc:east", "mongodb://h/?readPreferenceTags=dc:east"} {
		c, err := sextant.ParseURI(uri)
		if err == nil {
			_, err = sextant.ConnectConfig(t.Context(), c)
		}
		if !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), "primary") {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// TestProseSelection3ReadPreferenceIsPassedToMongos: broken by leaving $readPreference to the flag secondaryOk, which OP_MSG
// does not have, or by sending it for the mode primary.
func TestProseSelection3ReadPreferenceIsPassedToMongos(t *testing.T) {
	tagged := readpref.SecondaryPreferred(readpref.Tags("dc", "east"))
	for _, tc := range []struct {
		pref *readpref.ReadPref
		want string
	}{
		{nil, ""}, {readpref.Primary(), ""},
		{readpref.PrimaryPreferred(), `{"mode":"primaryPreferred"}`},
		{readpref.Secondary(), `{"mode":"secondary"}`},
		{readpref.SecondaryPreferred(), `{"mode":"secondaryPreferred"}`},
		{tagged, `{"mode":"secondaryPreferred","tags":[{"dc":"east"}]}`},
		{readpref.Nearest(), `{"mode":"nearest"}`},
	} {
		var s seen
		inSharded(t, "mongodb://router", &routers{}, func(c *sextant.Config) { c.Monitor = s.monitor() }, func(t *testing.T, cl *sextant.Client) {
			_, err := cl.Database("shop").Collection("people").FindOne(t.Context(), bson.D{}, sextant.FindOneOptions{ReadPreference: tc.pref})
			sent := s.take("find")
			if err != sextant.ErrNoDocuments || len(sent) != 1 {
				t.Fatalf("%v: %v", sent, err)
			}
			got := ""
			if doc, ok := sent[0].body.Lookup("$readPreference").DocumentOK(); ok {
				got = show(doc)
			}
			if got != tc.want {
				t.Errorf("%v: sent %q, want %q", tc.pref, got, tc.want)
			}
		})
	}
}

// TestProseSelection4BusyMongosGetsFewerOperations: broken by choosing at random alone, by counting operations only once they
// have a connection, or by never counting them down.
func TestProseSelection4BusyMongosGetsFewerOperations(t *testing.T) {
	var s seen
	var slow sync.Map // holds "a:27017" while its finds are slow
	r := &routers{pause: func(addr string, m bson.Raw) time.Duration {
		if m.Lookup("find").IsZero() {
			return 0
		}
		if _, is := slow.Load(addr); is {
			return 500 * time.Millisecond
		}
		return time.Millisecond // so that operations meet, whatever the scheduler does
	}}
	edit := func(c *sextant.Config) { c.Monitor, c.MinPoolSize, c.MaxPoolSize = s.monitor(), 10, new(10) }
	inSharded(t, "mongodb://a,b/?appName=loadBalancingTest&localThresholdMS=30000", r, edit, func(t *testing.T, cl *sextant.Client) {
		time.Sleep(time.Second)
		for _, m := range cl.Hosts().Members {
			if m.Pool.Idle != 10 {
				t.Fatalf("the pool of %s is not full: %+v", m.Address, m.Pool)
			}
		}
		finds := func(each int) (atA, all int) {
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					for range each {
						if _, err := cl.Database("shop").Collection("people").FindOne(t.Context(), bson.D{}); err != sextant.ErrNoDocuments {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			for _, c := range s.take("find") {
				all++
				if c.server == "a:27017" {
					atA++
				}
			}
			return atA, all
		}
		slow.Store("a:27017", true)
		if atA, all := finds(10); all != 100 || atA >= 25 {
			t.Errorf("the slow mongos got %d of %d", atA, all)
		}
		slow.Delete("a:27017")
		if atA, all := finds(100); all != 1000 || atA < 400 || atA > 600 {
			t.Errorf("of two mongos that are as quick one got %d of %d", atA, all)
		}
	})
}

// TestProseSelection5SelectorOfTheApplicationChooses: broken by a selector that is not asked, or only after the latency window
// has closed: the members differ in distance by more than it is wide.
func TestProseSelection5SelectorOfTheApplicationChooses(t *testing.T) {
	inBubble(t, primaryFirstFar, func(t *testing.T, b *bubble) {
		must[*sextant.InsertOneResult](t)(b.orders().InsertOne(t.Context(), bson.D{}))
		if err := b.set.AwaitReplication(t.Context()); err != nil {
			t.Fatal(err)
		}
		far := b.set.Member(2)
		if err := b.set.Delay(2, 100*time.Millisecond, "app"); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := b.cl.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		asked := 0
		highest := func(members []event.Member) []event.Member {
			asked++
			return []event.Member{slices.MaxFunc(members, func(a, b event.Member) int { return portOf(t, a.Address) - portOf(t, b.Address) })}
		}
		begun := time.Now()
		for range 10 {
			must[bson.D](t)(b.orders().FindOne(t.Context(), bson.D{}, sextant.FindOneOptions{ReadPreference: readpref.Nearest(), Selector: highest}))
		}
		sent := b.log.sent("find", begun)
		for _, c := range sent {
			if c.server != far.Addr() {
				t.Errorf("went to %s", c.server)
			}
		}
		if len(sent) != 10 || asked < 10 || b.member(2).RTT < 50*time.Millisecond {
			t.Errorf("%d commands, the selector was asked %d times, %v", len(sent), asked, b.cl.Hosts())
		}
	})
}

func primaryFirstFar(o *replset.Options, _ *sextant.Config) { primaryFirst(o) }

func portOf(t *testing.T, addr string) int {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return must[int](t)(strconv.Atoi(port))
}
