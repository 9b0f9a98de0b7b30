package sextant_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
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

// The prose tests of the specification "server discovery and monitoring", on fake time. Each says which change of the
// driver would break it. Number 9, the shapes of error replies, needs replies that no server gives today: it is in
// internal/operation; number 15 has a file of its own.

// inSet runs a prose test over a set whose member 0 is primary.
func inSet(t *testing.T, edit func(*sextant.Config), f func(t *testing.T, b *bubble)) {
	t.Helper()
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		primaryFirst(o)
		if edit != nil {
			edit(c)
		}
	}, func(t *testing.T, b *bubble) {
		b.start = time.Now()
		f(t, b)
	})
}

func (b *bubble) orders() *sextant.Collection[bson.D] {
	return b.cl.Database("shop").Collection("orders")
}

// fail makes commands fail on a member, for the client alone.
func (b *bubble) fail(t *testing.T, member int, f replset.FailCommand) {
	t.Helper()
	f.AppName = "app"
	if err := b.set.FailCommand(member, &f); err != nil {
		t.Fatal(err)
	}
}

// insert writes a document.
func (b *bubble) insert(t *testing.T) error {
	_, err := b.orders().InsertOne(t.Context(), bson.D{})
	return err
}

// A client that polls learns from the hello of a connection of its own that a member has changed its state, long before the
// next heartbeat (server monitoring, "clients update the topology from each handshake").
func TestHelloOfANewConnectionUpdatesTheTopology(t *testing.T) {
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		primaryFirst(o)
		c.ServerMonitoringMode, c.HeartbeatFrequency = "poll", time.Hour
	}, func(t *testing.T, b *bubble) {
		b.settle(t)
		if err := b.set.StepDown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if kind := b.member(0).Kind; kind != event.RSPrimary {
			t.Fatalf("the client knows of it already: %v", kind)
		}
		there := func(all []event.Member) []event.Member {
			return slices.DeleteFunc(slices.Clone(all), func(m event.Member) bool { return m.Address != b.set.Member(0).Addr() })
		}
		// More reads at once than there are connections, and slow enough to meet.
		b.fail(t, 0, replset.FailCommand{Commands: []string{"find"}, Times: 5, Block: time.Second})
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				_, err := b.orders().FindOne(t.Context(), bson.D{}, sextant.FindOneOptions{ReadPreference: readpref.Nearest(), Selector: there})
				if err != nil && !errors.Is(err, sextant.ErrNoDocuments) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if kind := b.member(0).Kind; kind != event.RSSecondary {
			t.Errorf("the client takes the member for %v", kind)
		}
	})
}

// beatsOf are the heartbeat events of a type of a member since a moment.
func (b *bubble) beatsOf(kind event.HeartbeatType, member int, since time.Time) (out []told[event.HeartbeatEvent]) {
	synctest.Wait() // for the publisher
	b.log.mu.Lock()
	defer b.log.mu.Unlock()
	for _, e := range b.log.beats {
		if e.E.Type == kind && e.E.Address == b.set.Member(member).Addr() && !e.At.Before(since) {
			out = append(out, e)
		}
	}
	return out
}

// memberEvents are the changes of one member since a moment, as kinds: "RSPrimary -> Unknown".
func (b *bubble) memberEvents(member int, since time.Time) (out []told[event.TopologyEvent]) {
	synctest.Wait()
	b.log.mu.Lock()
	defer b.log.mu.Unlock()
	for _, e := range b.log.topology {
		if e.E.Type == event.MemberUpdated && e.E.Address == b.set.Member(member).Addr() && !e.At.Before(since) {
			out = append(out, e)
		}
	}
	return out
}

// Broken by a monitor that awaits news for the default 10 s in place of the heartbeatFrequencyMS that was set.
func TestProseSDAM1HeartbeatFrequencyIsHonoured(t *testing.T) {
	for _, mode := range []string{"stream", "poll"} {
		t.Run(mode, func(t *testing.T) {
			inSet(t, func(c *sextant.Config) { c.HeartbeatFrequency, c.ServerMonitoringMode = 500*time.Millisecond, mode }, func(t *testing.T, b *bubble) {
				if err := b.insert(t); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				from := time.Now()
				time.Sleep(10*time.Second - time.Millisecond)
				for i := range 3 {
					if n := len(b.beatsOf(event.HeartbeatSucceeded, i, from)); n < 19 || n > 21 {
						t.Errorf("member %d: %d replies in 10 s", i, n)
					}
				}
			})
		})
	}
}

// Broken by round trips that are measured once only, at the handshake, or that take in the time for which the server
// holds its answer back.
func TestProseSDAM2RTTIsUpdatedAllTheTime(t *testing.T) {
	inSet(t, func(c *sextant.Config) { c.HeartbeatFrequency = 500 * time.Millisecond }, func(t *testing.T, b *bubble) {
		if err := b.set.Delay(0, time.Millisecond, "app"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.orders().FindOne(t.Context(), bson.D{}); err != nil && !errors.Is(err, sextant.ErrNoDocuments) {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		for _, e := range b.memberEvents(0, b.start) {
			if m := e.E.MemberAfter; m.RTT != time.Millisecond {
				t.Errorf("an event has the round trip %v", m.RTT)
			}
		}
		b.fail(t, 0, replset.FailCommand{Commands: []string{"hello", "isMaster"}, Times: 1000, Block: 500 * time.Millisecond})
		at := b.await(t, 10*time.Second, "250 ms of round trip", func() bool { return b.member(0).RTT > 250*time.Millisecond })
		if m := b.member(0); m.Kind != event.RSPrimary || m.MinRTT != time.Millisecond {
			t.Errorf("at %v the member is %v with a least round trip of %v", at, m.Kind, m.MinRTT)
		}
	})
}

// Broken by telling of a heartbeat after the connection for it was opened.
func TestProseSDAM3HeartbeatStartsBeforeItsSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		note := func(what string) { mu.Lock(); defer mu.Unlock(); order = append(order, what) }
		cl, err := sextant.ConnectConfig(t.Context(), &sextant.Config{
			Hosts: []string{"mock:9999"}, ServerSelectionTimeout: 500 * time.Millisecond,
			Monitor: &event.Monitor{Heartbeat: func(e *event.HeartbeatEvent) { note(string(e.Type)) }},
			// Every step takes a millisecond, in which what was told before reaches the callback.
			Dial: func(context.Context, string, string) (net.Conn, error) {
				time.Sleep(time.Millisecond)
				near, far := net.Pipe()
				note("client connected")
				go func() {
					_, _ = far.Read(make([]byte, 4096))
					note("client hello received")
					time.Sleep(time.Millisecond)
					far.Close()
				}()
				return near, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close(context.Background())
		if err := cl.WaitReady(t.Context(), sextant.Want{}); !mongoerr.IsSelection(err) {
			t.Errorf("waiting for a mock that is none: %v", err)
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		want := "ServerHeartbeatStarted, client connected, client hello received, ServerHeartbeatFailed"
		if got := strings.Join(order[:min(4, len(order))], ", "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// Broken by a Connect that dials.
func TestProseSDAM4ClientIsMadeWithAllSeedsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, err := sextant.ParseURI("mongodb://a,b/?replicaSet=rs0&serverSelectionTimeoutMS=3000")
		if err != nil {
			t.Fatal(err)
		}
		cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		cl, err := sextant.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatalf("with all seeds down: %v", err)
		}
		defer cl.Close(context.Background())
		start := time.Now()
		_, err = cl.Database("shop").Collection("orders").InsertOne(t.Context(), bson.D{})
		if took := time.Since(start); !mongoerr.IsSelection(err) || took != 3*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// Broken by reporting the error after the operation has returned, or by checking the member at once, which an overloaded
// member has enough of.
func TestProseSDAM5NetworkErrorOfAWriteMakesThePrimaryUnknown(t *testing.T) {
	inSet(t, func(c *sextant.Config) { c.RetryWrites = new(false) }, func(t *testing.T, b *bubble) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		b.fail(t, 0, replset.FailCommand{Commands: []string{"insert"}, Times: 1, CloseConnection: true})
		from := time.Now()
		err := b.insert(t)
		hosts := b.cl.Hosts()
		if !mongoerr.IsNetwork(err) || b.member(0).Kind != event.Unknown || hosts.Kind != event.ReplicaSetNoPrimary {
			t.Errorf("after %v the topology is %v", err, hosts)
		}
		time.Sleep(9 * time.Second) // nobody asks for the member
		if n := len(b.beatsOf(event.HeartbeatStarted, 0, from)); n != 0 {
			t.Errorf("the member was checked %d times at once", n)
		}
		if err := b.insert(t); err != nil { // somebody asks
			t.Error(err)
		}
	})
}

// Broken by ignoring the code of a read's error, or by clearing the pool for it: a member of 4.2 and later keeps its
// connections when it steps down.
func TestProseSDAM6NotWritablePrimaryWhenReading(t *testing.T) {
	inSet(t, func(c *sextant.Config) { c.RetryReads = new(false) }, func(t *testing.T, b *bubble) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		b.fail(t, 0, replset.FailCommand{Commands: []string{"find"}, Times: 1, ErrorCode: mongoerr.CodeNotWritablePrimary})
		from := time.Now()
		_, err := b.orders().FindOne(t.Context(), bson.D{})
		if !mongoerr.IsNotPrimary(err) || b.member(0).Kind != event.Unknown || b.cl.Hosts().Kind != event.ReplicaSetNoPrimary {
			t.Errorf("after %v the topology is %v", err, b.cl.Hosts())
		}
		if stored := b.member(0).LastError; !mongoerr.IsNotPrimary(stored) {
			t.Errorf("the member's error is %v", stored)
		}
		// The check that awaits news goes on: the request for another is ignored meanwhile.
		time.Sleep(400 * time.Millisecond)
		if n := len(b.beatsOf(event.HeartbeatStarted, 0, from)); n != 0 {
			t.Errorf("the member was checked %d times at once", n)
		}
		if n := len(b.log.pools(event.PoolCleared, b.set.Member(0).Addr(), from)); n != 0 {
			t.Errorf("the pool was cleared %d times", n)
		}
	})
}

// Broken by leaving a recovering secondary to the next heartbeat, 10 s later, or by counting the topology's primary anew
// in a wrong way.
func TestProseSDAM7NodeIsRecoveringWhenReadingFromASecondary(t *testing.T) {
	inSet(t, func(c *sextant.Config) { c.RetryReads, c.ServerMonitoringMode = new(false), "poll" }, func(t *testing.T, b *bubble) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		for _, i := range []int{1, 2} {
			b.fail(t, i, replset.FailCommand{Commands: []string{"find"}, Times: 1, ErrorCode: mongoerr.CodeNotPrimaryOrSecondary})
		}
		from := time.Now()
		_, err := b.orders().FindOne(t.Context(), bson.D{}, sextant.FindOneOptions{ReadPreference: readpref.Secondary()})
		if !mongoerr.IsNodeIsRecovering(err) || b.cl.Hosts().Kind != event.ReplicaSetWithPrimary {
			t.Fatalf("after %v the topology is %v", err, b.cl.Hosts())
		}
		b.goneAndBack(t, b.indexOf(t, err), from, event.RSSecondary)
	})
}

// indexOf is the member that an error names.
func (b *bubble) indexOf(t *testing.T, err error) int {
	t.Helper()
	var e *mongoerr.Error
	if errors.As(err, &e) {
		for _, m := range b.set.Members() {
			if m.Addr() == e.Server {
				return m.Index()
			}
		}
	}
	t.Fatalf("no member is named in %v", err)
	return -1
}

// goneAndBack wants a member to have become Unknown, and to have been checked, at once.
func (b *bubble) goneAndBack(t *testing.T, i int, from time.Time, kind event.Kind) {
	t.Helper()
	changes := b.memberEvents(i, from)
	if len(changes) != 2 || changes[0].E.MemberAfter.Kind != event.Unknown || changes[1].E.MemberAfter.Kind != kind {
		t.Fatalf("the member changed: %+v", changes)
	}
	if took := changes[1].At.Sub(from); took != 0 {
		t.Errorf("it was checked only after %v", took)
	}
}

// Broken by looking for state changes in the top-level code alone, or in replies with ok: 0 alone.
func TestProseSDAM8NodeIsRecoveringInAWriteConcernError(t *testing.T) {
	inSet(t, func(c *sextant.Config) { c.RetryWrites, c.ServerMonitoringMode = new(false), "poll" }, func(t *testing.T, b *bubble) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		b.fail(t, 0, replset.FailCommand{Commands: []string{"insert"}, Times: 1, WriteConcernError: &replset.WriteConcernError{
			Code: mongoerr.CodeShutdownInProgress, Message: "Replication is being shut down"}})
		from := time.Now()
		if err := b.insert(t); !mongoerr.IsNodeIsRecovering(err) {
			t.Fatal(err)
		}
		b.goneAndBack(t, 0, from, event.RSPrimary)
		var kinds []event.TopologyKind
		for _, e := range b.log.topology {
			if e.E.Type == event.TopologyUpdated && !e.At.Before(from) {
				kinds = append(kinds, e.E.After.Kind)
			}
		}
		if len(kinds) != 2 || kinds[0] != event.ReplicaSetNoPrimary || kinds[1] != event.ReplicaSetWithPrimary {
			t.Errorf("the topology went through %v", kinds)
		}
	})
}

const aSecondary = "127.0.0.1:27018" // member 1, on a network in memory

// atSecondary runs a test with a client that was given the address of a secondary, and an option.
func atSecondary(t *testing.T, options string, f func(t *testing.T, b *bubble)) {
	t.Helper()
	uri, err := sextant.ParseURI("mongodb://" + aSecondary + "/" + options)
	if err != nil {
		t.Fatal(err)
	}
	inSet(t, func(c *sextant.Config) { c.Hosts, c.DirectConnection = uri.Hosts, uri.DirectConnection }, func(t *testing.T, b *bubble) {
		if b.set.Member(1).Addr() != aSecondary || b.set.Primary().Index() != 0 {
			t.Fatalf("%s is no secondary", aSecondary)
		}
		f(t, b)
	})
}

// Broken by taking one seed without a set's name for a direct connection.
func TestProseSDAM10DirectConnectionFalseDiscovers(t *testing.T) {
	atSecondary(t, "?directConnection=false", func(t *testing.T, b *bubble) {
		if err := b.insert(t); err != nil {
			t.Error(err)
		}
	})
}

// Broken by discovering the set in spite of the option, or by refusing to send a write to a secondary, which knows
// better.
func TestProseSDAM11DirectConnectionTrueFailsToWriteToASecondary(t *testing.T) {
	atSecondary(t, "?directConnection=true", func(t *testing.T, b *bubble) {
		err := b.insert(t)
		if mongoerr.Code(err) != mongoerr.CodeNotWritablePrimary || !strings.Contains(err.Error(), aSecondary) {
			t.Errorf("error %v", err)
		}
		if n := len(b.cl.Hosts().Members); n != 1 {
			t.Errorf("the topology has %d members", n)
		}
	})
}

// Broken by another default of directConnection: this driver discovers.
func TestProseSDAM12DirectConnectionUnsetDiscovers(t *testing.T) {
	atSecondary(t, "", func(t *testing.T, b *bubble) {
		if err := b.insert(t); err != nil {
			t.Error(err)
		}
	})
}

// Broken by checking again at once as long as an operation waits, or only at the next heartbeat.
func TestProseSDAM13MonitorsSleepAtLeastTheLeastInterval(t *testing.T) {
	inSet(t, func(c *sextant.Config) {
		c.Hosts, c.DirectConnection, c.ServerSelectionTimeout = []string{"127.0.0.1:27017"}, true, 5*time.Second
	}, func(t *testing.T, b *bubble) {
		b.fail(t, 0, replset.FailCommand{Commands: []string{"hello", "isMaster"}, Times: 5, ErrorCode: 1234})
		_, err := b.cl.Database("admin").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}})
		if took := b.at(); err != nil || took < 2*time.Second || took > 3500*time.Millisecond {
			t.Errorf("the ping took %v: %v", took, err)
		}
		// One of the five is met by the connection for the ping, which is dialled beside the first check, if that has not
		// failed before.
		failed := b.beatsOf(event.HeartbeatFailed, 0, b.start)
		if len(failed) != 4 && len(failed) != 5 {
			t.Errorf("%d checks failed", len(failed))
		}
		for i := range failed[1:] {
			if pause := failed[i+1].At.Sub(failed[i].At); pause != 500*time.Millisecond {
				t.Errorf("after failed check %d the next came %v later", i+1, pause)
			}
		}
	})
}

// Broken by a pool that is ready before its member was seen, that is not cleared when a check fails, or that stays paused
// when one succeeds again.
func TestProseSDAM14PoolsFollowTheHeartbeats(t *testing.T) {
	inSet(t, func(c *sextant.Config) {
		c.Hosts, c.DirectConnection, c.HeartbeatFrequency = []string{"127.0.0.1:27017"}, true, 500*time.Millisecond
	}, func(t *testing.T, b *bubble) {
		if err := b.cl.WaitReady(t.Context(), sextant.Want{}); err != nil {
			t.Fatal(err)
		}
		addr := b.set.Member(0).Addr()
		ready, seen := b.log.pools(event.PoolReady, addr, b.start), b.beatsOf(event.HeartbeatSucceeded, 0, b.start)
		if len(ready) != 1 || len(seen) == 0 || ready[0].At.Before(seen[0].At) {
			t.Fatalf("ready %v, seen %v", ready, seen)
		}
		if got := b.log.firstOf("ConnectionPoolReady", "ServerHeartbeatSucceeded"); got != "ServerHeartbeatSucceeded" {
			t.Errorf("first came %s", got)
		}
		from := time.Now()
		b.fail(t, 0, replset.FailCommand{Commands: []string{"hello", "isMaster"}, Times: 2, ErrorCode: 1234})
		time.Sleep(2 * time.Second)
		failed, cleared := b.beatsOf(event.HeartbeatFailed, 0, from), b.log.pools(event.PoolCleared, addr, from)
		if len(failed) == 0 || len(cleared) != 1 || cleared[0].E.Interrupt {
			t.Fatalf("failed %v, cleared %v", failed, cleared)
		}
		seen, ready = b.beatsOf(event.HeartbeatSucceeded, 0, failed[0].At), b.log.pools(event.PoolReady, addr, cleared[0].At)
		if len(seen) == 0 || len(ready) != 1 {
			t.Errorf("seen again %v, ready again %v", seen, ready)
		}
	})
}
