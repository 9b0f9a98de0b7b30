package sextant_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset"
)

// What the manuals of old drivers promise and nobody else tests: docs/coming-from points here.

// servedBy is who serves n reads one after the other, by member.
func (b *bubble) servedBy(t *testing.T, n int, rp *readpref.ReadPref) []int {
	return b.reads(t, 1, n, rp)
}

// anyDistance makes distance of no account.
func anyDistance(o *replset.Options, c *sextant.Config) { primaryFirst(o); c.LocalThreshold = wide() }

func TestDelayedMemberIsReadUnlessStalenessIsLimited(t *testing.T) {
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		anyDistance(o, c)
		o.ElectionTimeout = 10 * time.Second // so that heartbeats are few
		o.Config = append(o.Config, replset.MemberOptions{}, replset.MemberOptions{SecondaryDelay: 5 * time.Minute})
	}, func(t *testing.T, b *bubble) {
		b.settle(t)
		for range 10 { // the delay shows once the others have moved on
			if err := b.insert(t); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if m := b.member(2); m.Kind != event.RSSecondary || !m.LagKnown || m.Lag < 4*time.Minute || m.Lag > 6*time.Minute {
			t.Errorf("the delayed member is %v, its lag %v", m.Kind, m.Lag)
		}
		if got := b.servedBy(t, 60, readpref.Secondary()); got[1] == 0 || got[2] == 0 || got[0] > 0 {
			t.Errorf("without a limit reads go to %v", got)
		}
		if got := b.servedBy(t, 60, readpref.Secondary(readpref.MaxStaleness(90*time.Second))); got[1] != 60 {
			t.Errorf("with a limit reads go to %v", got)
		}
	})
}

func TestHiddenMemberAndArbiterAreNeverRead(t *testing.T) {
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		o.Members, c.LocalThreshold = 5, wide()
		o.Config = []replset.MemberOptions{{Priority: new(2.0)}, {}, {Priority: new(0.0)}, {Hidden: true}, {Arbiter: true}}
	}, func(t *testing.T, b *bubble) {
		b.settle(t)
		if got := b.servedBy(t, 90, readpref.Nearest()); got[0] == 0 || got[1] == 0 || got[2] == 0 || got[3]+got[4] > 0 {
			t.Errorf("reads of the nearest go to %v", got)
		}
		if got := b.servedBy(t, 60, readpref.Secondary()); got[1] == 0 || got[2] == 0 || got[1]+got[2] != 60 {
			t.Errorf("reads of secondaries go to %v", got)
		}
		if _, there := b.cl.Hosts().Member(b.set.Member(3).Addr()); there {
			t.Errorf("the hidden member is in the topology: %v", b.cl.Hosts())
		}
		if kind := b.member(4).Kind; kind != event.RSArbiter {
			t.Errorf("the arbiter is %v", kind)
		}
	})
}

// A member is read while it is in the state SECONDARY, and for no moment longer.
func TestRecoveringMembersAreNeverReadAndThePrimaryStepsIn(t *testing.T) {
	inBubble(t, anyDistance, func(t *testing.T, b *bubble) {
		b.settle(t)
		rp := readpref.SecondaryPreferred()
		out := func(i int, on bool) {
			t.Helper()
			if err := b.set.Maintenance(i, on); err != nil {
				t.Fatal(err)
			}
			b.await(t, time.Second, "the news", func() bool { return (b.member(i).Kind == event.RSOther) == on })
		}
		if got := b.servedBy(t, 60, rp); got[0] > 0 || got[1] == 0 || got[2] == 0 {
			t.Errorf("of two secondaries: %v", got)
		}
		out(1, true)
		if m := b.member(1); m.State() != 3 || m.StateStr() != "RECOVERING" {
			t.Errorf("a recovering member has the state %d %s", m.State(), m.StateStr())
		}
		if got := b.servedBy(t, 30, rp); got[2] != 30 {
			t.Errorf("one recovers: %v", got)
		}
		if err := b.set.Kill(2); err != nil {
			t.Fatal(err)
		}
		if got := b.servedBy(t, 30, rp); got[0] != 30 {
			t.Errorf("one recovers, one is down: %v", got)
		}
		out(1, false)
		if got := b.servedBy(t, 30, rp); got[1] != 30 {
			t.Errorf("one is back: %v", got)
		}
	})
}

// Broken by health as the primary sees it, which the oldest driver went by.
func TestHealthIsWhatTheClientSees(t *testing.T) {
	unreachable := ""
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		anyDistance(o, c)
		inside := c.Dial
		c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == unreachable {
				return nil, errors.New("no route to host")
			}
			return inside(ctx, network, addr)
		}
		unreachable = "127.0.0.1:27019"
	}, func(t *testing.T, b *bubble) {
		b.settle(t)
		if b.set.Member(2).Addr() != unreachable || b.set.Member(2).State() != "SECONDARY" {
			t.Fatalf("member 2 is %s %s", b.set.Member(2).Addr(), b.set.Member(2).State())
		}
		if m := b.member(2); m.Health() != 0 || m.State() != 8 || m.LastErrorStage != "dial" {
			t.Errorf("healthy in the set, out of reach from here, it has health %d, state %d, %v", m.Health(), m.State(), m.LastError)
		}
		if got := b.servedBy(t, 30, readpref.Secondary()); got[1] != 30 {
			t.Errorf("reads go to %v", got)
		}
	})
}

// Broken by one thread that asks all members in turn: a hung one would hold up what the others have to say.
func TestHungMemberDelaysNoNewsOfOthers(t *testing.T) {
	inSet(t, nil, func(t *testing.T, b *bubble) {
		b.settle(t)
		if err := b.set.Hang(2, true); err != nil {
			t.Fatal(err)
		}
		b.start = time.Now()
		if err := b.set.Maintenance(1, true); err != nil {
			t.Fatal(err)
		}
		if at := b.await(t, time.Second, "the news", func() bool { return b.member(1).Kind == event.RSOther }); at > time.Millisecond {
			t.Errorf("the news took %v", at)
		}
		if err := b.set.Hang(2, false); err != nil {
			t.Fatal(err)
		}
	})
}

// Broken by seeds that are asked one after the other.
func TestDeadSeedsDelayNobody(t *testing.T) {
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		inside := c.Dial
		c.Hosts = []string{"silent", "unknown", "refusing", "127.0.0.1:27018"}
		c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			switch host, _, _ := net.SplitHostPort(addr); host {
			case "silent":
				<-ctx.Done()
				return nil, ctx.Err()
			case "unknown":
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			}
			return inside(ctx, network, addr)
		}
	}, func(t *testing.T, b *bubble) {
		if err := b.insert(t); err != nil || b.at() != 0 {
			t.Errorf("the first write was done after %v: %v", b.at(), err)
		}
	})
}

func TestSetWithoutANameIsFoundFromSeveralSeeds(t *testing.T) {
	inBubble(t, func(o *replset.Options, c *sextant.Config) { c.Hosts = []string{"127.0.0.1:27019", "127.0.0.1:27018"} }, func(t *testing.T, b *bubble) {
		b.settle(t)
		if hosts := b.cl.Hosts(); hosts.SetName != "rs0" || len(hosts.Members) != 3 || hosts.Kind != event.ReplicaSetWithPrimary {
			t.Errorf("found %v", hosts)
		}
	})
}

func TestSetsOfTheSameNameAreApart(t *testing.T) {
	for range 2 { // each is a set rs0 with a database shop
		set := embedded(t, 1)
		cl := connect(t, set.URI())
		c := cl.Database("shop").Collection("people")
		must[*sextant.InsertOneResult](t)(c.InsertOne(testContext(t), bson.M{"_id": 1}))
		if n := must[int64](t)(c.EstimatedDocumentCount(testContext(t))); n != 1 || len(cl.Hosts().Members) != 1 {
			t.Errorf("%d documents in %v", n, cl.Hosts())
		}
	}
}

func TestAddedMemberIsReadWithoutAChangeOfConfiguration(t *testing.T) {
	inBubble(t, anyDistance, func(t *testing.T, b *bubble) {
		b.settle(t)
		m, err := b.set.AddMember(t.Context(), replset.MemberOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b.await(t, 10*time.Second, "the member", func() bool { return b.member(m.Index()).Kind == event.RSSecondary })
		if got := b.servedBy(t, 90, readpref.Secondary()); got[1] == 0 || got[2] == 0 || got[3] == 0 {
			t.Errorf("reads go to %v", got)
		}
	})
}

func TestClientWatchesOnConnectionsThatServeNobody(t *testing.T) {
	inSet(t, nil, func(t *testing.T, b *bubble) {
		if err := b.cl.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for i, m := range b.cl.Hosts().Members {
			if m.Pool.Total != 0 || b.dialled.open(m.Address) != 2 { // the monitor's, and the round-trip meter's
				t.Errorf("member %d: a pool of %d, %d connections", i, m.Pool.Total, b.dialled.open(m.Address))
			}
		}
		for range 5 {
			if err := b.insert(t); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			want := map[bool]int{true: 1}[i == 0] // only where an operation went
			if m := b.member(i); m.Pool.Total != want || m.Pool.InUse != 0 || b.dialled.open(m.Address) != 2+want {
				t.Errorf("member %d: a pool %+v, %d connections", i, m.Pool, b.dialled.open(m.Address))
			}
		}
	})
}

func TestOnlyChangesAreTold(t *testing.T) {
	inSet(t, nil, func(t *testing.T, b *bubble) {
		b.settle(t)
		time.Sleep(5 * time.Second)
		from := time.Now()
		count := func() (n int) {
			synctest.Wait()
			b.log.mu.Lock()
			defer b.log.mu.Unlock()
			for _, e := range b.log.topology {
				if !e.At.Before(from) {
					n++
				}
			}
			return n
		}
		time.Sleep(time.Minute)
		if n := count(); n != 0 {
			t.Errorf("%d changes in a quiet minute", n)
		}
		if beats := len(b.beatsOf(event.HeartbeatSucceeded, 1, from)); beats < 5 {
			t.Errorf("%d heartbeats in a quiet minute", beats)
		}
		if err := b.set.Maintenance(1, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := count(); n != 2 { // of the member, and of the topology
			t.Errorf("%d changes when a member left its service", n)
		}
	})
}

func TestWriteThatEveryMemberHasIsReadEverywhere(t *testing.T) {
	inBubble(t, anyDistance, func(t *testing.T, b *bubble) {
		b.settle(t)
		find := func(id int, rp *readpref.ReadPref) error {
			_, err := b.orders().FindOne(t.Context(), bson.M{"_id": id}, sextant.FindOneOptions{ReadPreference: rp})
			return err
		}
		all := b.orders().With(sextant.CollectionOptions{WriteConcern: concern.W(3)})
		for id := range 20 {
			must[*sextant.InsertOneResult](t)(all.InsertOne(t.Context(), bson.M{"_id": id}))
			if err := find(id, readpref.Secondary()); err != nil {
				t.Errorf("document %d: %v", id, err)
			}
		}
		for _, i := range []int{1, 2} { // the members lag: what the primary alone has is not there yet
			if err := b.set.Lag(i, true); err != nil {
				t.Fatal(err)
			}
		}
		one := b.orders().With(sextant.CollectionOptions{WriteConcern: concern.W(1)})
		must[*sextant.InsertOneResult](t)(one.InsertOne(t.Context(), bson.M{"_id": 99}))
		if err := find(99, readpref.SecondaryPreferred()); !errors.Is(err, sextant.ErrNoDocuments) {
			t.Errorf("right after the insert, at a secondary that lags: %v", err)
		}
		if err := find(99, readpref.Primary()); err != nil {
			t.Errorf("at the primary: %v", err)
		}
		for _, i := range []int{1, 2} {
			if err := b.set.Lag(i, false); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestFindAsksTheServerByItself(t *testing.T) {
	var s seen
	cl := connect(t, sharedURI(t), func(c *sextant.Config) { c.Monitor = s.monitor() })
	ctx, c := testContext(t), numbered(t, cl, 3)
	s.take("")
	cur := must[*sextant.Cursor[bson.D]](t)(c.Find(ctx, bson.D{}))
	if n := len(s.take("find")); n != 1 || cur.RemainingBatch() != 3 {
		t.Errorf("before the first Next %d queries were sent, %d documents were there", n, cur.RemainingBatch())
	}
	must[[]bson.D](t)(cur.All(ctx))
}

func TestReplaceWithUpsertDoesWhatSaveDid(t *testing.T) {
	ctx, c := testContext(t), fresh[bson.M](t, connect(t, sharedURI(t)))
	id := bson.NewObjectID()
	for i, name := range []string{"joe", "Joe"} { // inserted, then replaced
		res := must[*sextant.UpdateResult](t)(c.ReplaceOne(ctx, bson.M{"_id": id}, bson.M{"name": name}, sextant.ReplaceOptions{Upsert: true}))
		if inserted := res.UpsertedID == id; inserted != (i == 0) {
			t.Errorf("saving %s: %+v", name, res)
		}
		if got := must[bson.M](t)(c.FindOne(ctx, bson.D{})); got["name"] != name || got["_id"] != id {
			t.Errorf("found %v", got)
		}
	}
}

func TestDocumentsWithNumbersForNamesStayDocuments(t *testing.T) {
	ctx, c := testContext(t), fresh[bson.Raw](t, connect(t, sharedURI(t)))
	must[*sextant.InsertOneResult](t)(c.InsertOne(ctx, bson.M{"map": bson.D{{Key: "0", Value: "a"}, {Key: "1", Value: "b"}}, "list": []string{"a", "b"}}))
	got := must[bson.Raw](t)(c.FindOne(ctx, bson.D{}))
	if m, l := got.Lookup("map").Type, got.Lookup("list").Type; m != bson.TypeEmbeddedDocument || l != bson.TypeArray {
		t.Errorf("a document became %v, a list %v", m, l)
	}
}

// Two programs, each in a data centre of its own: I has the primary and a secondary, II a secondary that can not be
// elected. 30 ms lie between them.
func TestProgramsInTwoDataCentresReadAtHome(t *testing.T) {
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		dc := func(name string, priority float64) replset.MemberOptions {
			return replset.MemberOptions{Tags: map[string]string{"dc": name}, Priority: &priority}
		}
		o.Config = []replset.MemberOptions{dc("I", 2), dc("I", 1), dc("II", 0)}
		c.AppName = "two"
	}, func(t *testing.T, b *bubble) {
		for i, d := range []time.Duration{30, 31, 1} { // as seen from II
			if err := b.set.Delay(i, d*time.Millisecond, "two"); err != nil {
				t.Fatal(err)
			}
		}
		b.settle(t)
		here := &bubble{set: b.set}
		here.cl = must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), &sextant.Config{Hosts: []string{b.set.Member(2).Addr()}, ReplicaSet: "rs0", AppName: "one", Dial: b.dial}))
		defer here.cl.Close(context.Background())
		for i, d := range []time.Duration{1, 2, 30} { // as seen from I
			if err := b.set.Delay(i, d*time.Millisecond, "one"); err != nil {
				t.Fatal(err)
			}
		}
		here.settle(t)
		for name, k := range map[string]struct {
			at   *bubble
			rp   *readpref.ReadPref
			want []bool
		}{
			"I, nearest":                {here, readpref.Nearest(), []bool{true, true, false}},
			"II, nearest":               {b, readpref.Nearest(), []bool{false, false, true}},
			"II, primary":               {b, readpref.Primary(), []bool{true, false, false}},
			"I, tags of II":             {here, readpref.Nearest(readpref.Tags("dc", "II")), []bool{false, false, true}},
			"II, no such tag, else any": {b, readpref.Nearest(readpref.Tags("dc", "III"), readpref.Tags()), []bool{false, false, true}},
		} {
			got := k.at.servedBy(t, 60, k.rp)
			for i, want := range k.want {
				if (got[i] > 0) != want {
					t.Errorf("%s: reads go to %v", name, got)
				}
			}
		}
	})
}

// Broken by tags that are only ever added, as they were in the Java driver 2.
func TestTagsThatAReconfigurationTakesAwayAreForgotten(t *testing.T) {
	tags := func(dc string) map[string]string { return map[string]string{"dc": dc} }
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		c.LocalThreshold = wide()
		o.Config = []replset.MemberOptions{{Priority: new(2.0), Tags: tags("east")}, {Tags: tags("east")}, {Tags: tags("west")}}
	}, func(t *testing.T, b *bubble) {
		b.settle(t)
		east := readpref.Secondary(readpref.Tags("dc", "east"), readpref.Tags())
		if got := b.servedBy(t, 30, east); got[1] != 30 {
			t.Errorf("before: %v", got)
		}
		for i, dc := range map[int]string{1: "west", 2: "east"} {
			if err := b.set.Reconfigure(t.Context(), i, func(m *replset.MemberOptions) { m.Tags = tags(dc) }); err != nil {
				t.Fatal(err)
			}
		}
		b.await(t, time.Second, "the new tags", func() bool { return b.member(1).Tags["dc"] == "west" && b.member(2).Tags["dc"] == "east" })
		if got := b.servedBy(t, 30, east); got[2] != 30 {
			t.Errorf("after: %v", got)
		}
	})
}

// Broken by a write that keeps the tags or the staleness of the read preference, as in the PHP driver 1.3, or its mode.
func TestTagsAndStalenessNeverTouchWrites(t *testing.T) {
	inSet(t, nil, func(t *testing.T, b *bubble) {
		b.settle(t)
		for name, rp := range map[string]*readpref.ReadPref{
			"tags that nobody has":    readpref.Secondary(readpref.Tags("dc", "moon")),
			"the nearest that is new": readpref.Nearest(readpref.MaxStaleness(90*time.Second), readpref.Tags("dc", "moon")),
		} {
			c := b.orders().With(sextant.CollectionOptions{ReadPreference: rp})
			b.start = time.Now()
			if _, err := c.InsertOne(t.Context(), bson.D{}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := c.UpdateMany(t.Context(), bson.D{}, bson.M{"$set": bson.M{"x": 1}}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := c.CreateIndex(t.Context(), sextant.IndexModel{Keys: bson.M{"x": 1}}); err != nil || b.at() != 0 {
				t.Errorf("%s: after %v: %v", name, b.at(), err)
			}
		}
	})
}

// Broken by a driver that empties the pool after any error: so it was once, and every hiccup became a storm.
func TestOneFailureClearsAPoolOnceAndOtherErrorsDoNot(t *testing.T) {
	inBubble(t, func(o *replset.Options, c *sextant.Config) { primaryFirst(o); c.MinPoolSize = 10 }, func(t *testing.T, b *bubble) {
		b.settle(t)
		together := func(call func() error) (errs []error) {
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					err := call()
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, err)
				})
			}
			wg.Wait()
			return errs
		}
		cleared := func() int { return len(b.log.pools(event.PoolCleared, b.set.Member(0).Addr(), b.start)) }
		must[*sextant.InsertOneResult](t)(b.orders().InsertOne(t.Context(), bson.M{"_id": 1}))
		for _, err := range together(func() error { _, err := b.orders().InsertOne(t.Context(), bson.M{"_id": 1}); return err }) {
			if !mongoerr.IsDuplicateKey(err) {
				t.Errorf("a second document with the same id: %v", err)
			}
		}
		b.fail(t, 0, replset.FailCommand{Commands: []string{"find"}, Times: 10, Block: time.Second})
		for _, err := range together(func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			_, err := b.orders().FindOne(ctx, bson.D{})
			return err
		}) {
			if !mongoerr.IsTimeout(err) {
				t.Errorf("a find with little time: %v", err)
			}
		}
		if n := cleared(); n != 0 {
			t.Errorf("the pool was cleared %d times for errors that say nothing about it", n)
		}
		time.Sleep(2 * time.Second)
		b.fail(t, 0, replset.FailCommand{Commands: []string{"find"}, Times: 10, CloseConnection: true, Block: time.Millisecond})
		for _, err := range together(func() error { _, err := b.orders().FindOne(t.Context(), bson.D{}); return err }) {
			if err != nil {
				t.Errorf("a find whose connection broke: %v", err)
			}
		}
		if n := cleared(); n != 1 {
			t.Errorf("ten connections broke at once, and the pool was cleared %d times", n)
		}
	})
}

func TestWholeSetComesBackByItself(t *testing.T) {
	inSet(t, nil, func(t *testing.T, b *bubble) {
		b.settle(t)
		for i := range 3 {
			if err := b.set.Kill(i); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // the client hears of it
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := b.orders().InsertOne(ctx, bson.D{}); !mongoerr.IsSelection(err) || !strings.Contains(first(err), "3 members unreachable") {
			t.Errorf("with all members down: %v", err)
		}
		for i := range 3 {
			if err := b.set.Restart(i); err != nil {
				t.Fatal(err)
			}
		}
		b.start = time.Now()
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		written := b.at()
		all := b.await(t, 15*time.Second, "all members", func() bool {
			return !slices.ContainsFunc(b.cl.Hosts().Members, func(m event.Member) bool { return !m.Kind.DataBearing() })
		})
		t.Logf("the first write was good %v after the members were back, all were known after %v", written, all)
		if written > 3*time.Second { // an election of one second, and a check
			t.Errorf("the first write was good only after %v", written)
		}
	})
}

func TestWaitingIsToldOncePerOperation(t *testing.T) {
	var mu sync.Mutex // guards told
	told := map[event.SelectionType]int{}
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		primaryFirst(o)
		c.Monitor.Selection = func(e *event.SelectionEvent) {
			mu.Lock()
			defer mu.Unlock()
			if told[e.Type]++; e.Type == event.SelectionWaiting && e.Remaining != 30*time.Second {
				t.Errorf("it will wait for %v", e.Remaining)
			}
		}
	}, func(t *testing.T, b *bubble) {
		b.settle(t)
		for i := range 3 {
			if err := b.set.Kill(i); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		mu.Lock()
		clear(told)
		mu.Unlock()
		if err := b.insert(t); !mongoerr.IsSelection(err) {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if told[event.SelectionStarted] != 1 || told[event.SelectionWaiting] != 1 || told[event.SelectionFailed] != 1 {
			t.Errorf("told %v", told)
		}
	})
}

func TestPinsOpenNoConnections(t *testing.T) {
	inBubble(t, anyDistance, func(t *testing.T, b *bubble) {
		b.settle(t)
		_ = b.servedBy(t, 60, readpref.Secondary()) // so that there is a connection to each
		open := func() [3]int {
			return [3]int{b.dialled.open(b.set.Member(0).Addr()), b.dialled.open(b.set.Member(1).Addr()), b.dialled.open(b.set.Member(2).Addr())}
		}
		before := open()
		at := map[string]int{}
		for range 100 {
			pin := must[*sextant.Pin](t)(b.cl.Pin(t.Context(), readpref.Secondary()))
			if _, err := b.orders().CountDocuments(t.Context(), bson.D{}, sextant.CountOptions{Pin: pin}); err != nil {
				t.Fatal(err)
			}
			at[pin.Server()]++
		}
		if len(at) != 2 || open() != before {
			t.Errorf("pins %v; connections %v before, %v after", at, before, open())
		}
	})
}

func TestFieldsOfAHelloAreShown(t *testing.T) {
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		o.Config = []replset.MemberOptions{{Priority: new(2.0), Tags: map[string]string{"dc": "east"}}, {Priority: new(0.0)}, {Arbiter: true}}
	}, func(t *testing.T, b *bubble) {
		b.settle(t)
		m, addr := b.member(0), func(i int) []string { return []string{b.set.Member(i).Addr()} }
		number := func(name string) int64 { n, _ := m.Hello.Lookup(name).AsInt64OK(); return n }
		id, _ := m.Hello.Lookup("electionId").ObjectIDOK()
		for what, ok := range map[string]bool{
			"names":     m.Me == m.Address && m.Primary == m.Address && m.SetName == "rs0" && m.Tags["dc"] == "east",
			"hosts":     slices.Equal(m.Hosts, addr(0)),
			"passives":  slices.Equal(m.Passives, addr(1)),
			"arbiters":  slices.Equal(m.Arbiters, addr(2)),
			"election":  !id.IsZero() && m.ElectionID == id && m.SetVersion == number("setVersion") && m.SetVersion > 0,
			"versions":  int64(m.MaxWire) == number("maxWireVersion") && int64(m.MinWire) == number("minWireVersion") && m.MaxWire > 20,
			"sessions":  m.SessionTimeoutMinutes == number("logicalSessionTimeoutMinutes") && m.SessionTimeoutMinutes == 30,
			"lastWrite": !m.LastWrite.IsZero() && m.LastWrite.Equal(m.Hello.Lookup("lastWrite", "lastWriteDate").Time()),
			"all else":  number("maxBsonObjectSize") == 16777216 && number("maxMessageSizeBytes") == 48000000 && number("maxWriteBatchSize") == 100000,
		} {
			if !ok {
				t.Errorf("%s: %+v of %s", what, m, show(m.Hello))
			}
		}
	})
}

// Broken by a helper that is left out of a list, as listCollections was in another driver.
func TestReadsFollowTheReadPreferenceThatTheyInheritAndListingsDoNot(t *testing.T) {
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		anyDistance(o, c)
		c.ReadPreference = readpref.Secondary()
	}, func(t *testing.T, b *bubble) {
		b.settle(t)
		ctx, c, db := t.Context(), b.orders(), b.cl.Database("shop")
		cursor := func(cur *sextant.Cursor[bson.D], err error) error {
			if err == nil {
				err = cur.Close(ctx)
			}
			return err
		}
		must[*sextant.InsertOneResult](t)(c.With(sextant.CollectionOptions{WriteConcern: concern.W(3)}).InsertOne(ctx, bson.M{"x": 1}))
		for name, k := range map[string]struct {
			secondary bool
			call      func() error
		}{
			"find":            {true, func() error { _, err := c.FindOne(ctx, bson.D{}); return err }},
			"count":           {true, func() error { _, err := c.EstimatedDocumentCount(ctx); return err }},
			"distinct":        {true, func() error { _, err := sextant.Distinct[any](ctx, c, "x", bson.D{}); return err }},
			"aggregate":       {true, func() error { return cursor(sextant.Aggregate[bson.D](ctx, c, []bson.D{})) }},
			"dbStats":         {false, func() error { _, err := db.RunCommand(ctx, bson.D{{Key: "dbStats", Value: 1}}); return err }},
			"listCollections": {false, func() error { _, err := db.ListCollectionNames(ctx, bson.D{}); return err }},
			"listIndexes":     {false, func() error { _, err := c.ListIndexes(ctx); return err }},
			"listDatabases":   {false, func() error { _, err := b.cl.ListDatabaseNames(ctx, bson.D{}); return err }},
			"insert":          {false, func() error { return b.insert(t) }},
			"findAndModify":   {false, func() error { _, err := c.FindOneAndUpdate(ctx, bson.D{}, bson.M{"$set": bson.M{"x": 2}}); return err }},
			"createIndexes":   {false, func() error { _, err := c.CreateIndex(ctx, sextant.IndexModel{Keys: bson.M{"x": 1}}); return err }},
		} {
			time.Sleep(time.Millisecond) // so that what was sent before does not count
			from := time.Now()
			for range 4 {
				if err := k.call(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			sent := b.log.sent(name, from)
			if len(sent) != 4 {
				t.Errorf("%s was sent %d times", name, len(sent))
			}
			for _, s := range sent {
				if secondary := s.server != b.set.Member(0).Addr(); secondary != k.secondary {
					t.Errorf("%s went to %s", name, s.server)
				}
			}
		}
	})
}
