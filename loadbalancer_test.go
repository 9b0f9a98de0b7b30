package sextant_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// The tests of source/load-balancers/tests that are written in the unified format, by their names, against two services in
// memory, and what the specification says beside them.

// balanced is a set of one member behind a load balancer with two services, and a client that goes through it.
type balanced struct {
	set  *replset.Set
	lb   *replset.LoadBalancer
	dial dialFunc
	cl   *sextant.Client
	coll *sextant.Collection[bson.D] // of three documents

	mu       sync.Mutex // guards what follows
	cmap     []string
	commands []string
	cleared  []*event.PoolEvent
	services []*bson.ObjectID // of command events
}

// behindALoadBalancer runs a test in a bubble. change may be nil; what it says of the client's options is after the URI's.
func behindALoadBalancer(t *testing.T, change func(*replset.Options, *sextant.Config), f func(t *testing.T, b *balanced)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := replset.NewMemoryNetwork()
		o := replset.Options{Network: network, LoadBalancer: &replset.LoadBalancerOptions{Name: "lb", Port: 27017}}
		b := &balanced{dial: network.Dial}
		cfg := must[*sextant.Config](t)(sextant.ParseURI("mongodb://lb/?loadBalanced=true&appName=app"))
		cfg.Monitor = b.monitor()
		if change != nil {
			change(&o, cfg)
		}
		b.set = must[*replset.Set](t)(replset.Start(t.Context(), o))
		defer b.set.Close()
		b.lb = b.set.LoadBalancer()
		b.fill(t, cfg)
		b.cl = b.client(t, cfg)
		defer b.cl.Close(context.Background())
		b.coll = b.cl.Database("t").Collection("c")
		b.take()
		f(t, b)
	})
}

func (b *balanced) client(t *testing.T, cfg *sextant.Config) *sextant.Client {
	t.Helper()
	c := *cfg
	c.Dial = b.dial
	if b.set.TLSConfig() != nil {
		c.TLS, c.TLSConfig = true, b.set.TLSConfig()
	}
	return must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), &c))
}

// fill puts in the documents, by another client.
func (b *balanced) fill(t *testing.T, cfg *sextant.Config) {
	t.Helper()
	other := *cfg
	other.Monitor, other.Logger, other.AppName, other.MaxPoolSize, other.MinPoolSize = nil, nil, "other", nil, 0
	cl := b.client(t, &other)
	defer cl.Close(context.Background())
	for i := range 3 {
		if _, err := cl.Database("t").Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.lb.Route(); err != nil { // from the first again
		t.Fatal(err)
	}
}

func (b *balanced) monitor() *event.Monitor {
	command := func(what, name string, service *bson.ObjectID) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.commands, b.services = append(b.commands, what+" "+name), append(b.services, service)
	}
	return &event.Monitor{
		CommandStarted:   func(_ context.Context, e *event.CommandStartedEvent) { command("started", e.Name, e.ServiceID) },
		CommandSucceeded: func(_ context.Context, e *event.CommandSucceededEvent) { command("succeeded", e.Name, e.ServiceID) },
		CommandFailed:    func(_ context.Context, e *event.CommandFailedEvent) { command("failed", e.Name, e.ServiceID) },
		Pool: func(e *event.PoolEvent) {
			b.mu.Lock()
			defer b.mu.Unlock()
			switch e.Type {
			case event.CheckOutStarted, event.PoolCreated, event.PoolReady:
				return
			case event.PoolCleared:
				b.cleared = append(b.cleared, e)
			}
			name := strings.TrimPrefix(string(e.Type), "Connection")
			if e.Reason != "" {
				name += "(" + e.Reason + ")"
			}
			b.cmap = append(b.cmap, name)
		},
	}
}

// take is what has happened since the last take.
func (b *balanced) take() (commands, cmap []string) {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	commands, cmap = b.commands, b.cmap
	b.commands, b.cmap, b.services, b.cleared = nil, nil, nil, nil
	return commands, cmap
}

// saw holds what has happened since the last take to what should have.
func (b *balanced) saw(t *testing.T, commands, cmap string) {
	t.Helper()
	ran, pool := b.take()
	if got := strings.Join(ran, ", "); got != commands {
		t.Errorf("commands\n got %s\nwant %s", got, commands)
	}
	if got := strings.Join(pool, " "); got != cmap {
		t.Errorf("pool events\n got %s\nwant %s", got, cmap)
	}
}

// out holds the number of connections that are checked out.
func (b *balanced) out(t *testing.T, want int) {
	t.Helper()
	if got := b.cl.Hosts().Members[0].Pool; got.InUse != want {
		t.Errorf("%d connections are checked out, want %d (%+v)", got.InUse, want, got)
	}
}

func (b *balanced) find(t *testing.T) *sextant.Cursor[bson.D] {
	t.Helper()
	return must[*sextant.Cursor[bson.D]](t)(b.coll.Find(t.Context(), bson.D{}, sextant.FindOptions{BatchSize: 2}))
}

// walk takes n documents; after that the next fails.
func walk(t *testing.T, cur *sextant.Cursor[bson.D], n int) {
	t.Helper()
	for i := range n {
		if !cur.Next(t.Context()) {
			t.Fatalf("document %d: %v", i, cur.Err())
		}
	}
}

func (b *balanced) fail(t *testing.T, f replset.FailCommand) {
	t.Helper()
	if err := b.lb.FailCommand(replset.All, &f); err != nil {
		t.Fatal(err)
	}
}

func TestCursorsOfLoadBalancersNoConnectionIsPinnedIfAllDocumentsAreReturnedInTheInitialBatch(t *testing.T) {
	behindALoadBalancer(t, nil, func(t *testing.T, b *balanced) {
		cur := must[*sextant.Cursor[bson.D]](t)(b.coll.Find(t.Context(), bson.D{}))
		b.out(t, 0)
		b.saw(t, "started find, succeeded find", "Created Ready CheckedOut CheckedIn")
		if all, err := cur.All(t.Context()); err != nil || len(all) != 3 {
			t.Error(all, err)
		}
	})
}

func TestCursorsOfLoadBalancersPinnedConnectionsAreReturnedWhenTheCursorIsDrained(t *testing.T) {
	behindALoadBalancer(t, nil, func(t *testing.T, b *balanced) {
		cur := b.find(t)
		b.out(t, 1)
		walk(t, cur, 3)
		b.out(t, 0)
		_ = cur.Close(t.Context())
		b.saw(t, "started find, succeeded find, started getMore, succeeded getMore", "Created Ready CheckedOut CheckedIn")
	})
}

func TestCursorsOfLoadBalancersPinnedConnectionsAreReturnedToThePoolWhenTheCursorIsClosed(t *testing.T) {
	behindALoadBalancer(t, nil, func(t *testing.T, b *balanced) {
		cur := b.find(t)
		b.out(t, 1)
		_ = cur.Close(t.Context())
		b.out(t, 0)
		b.saw(t, "started find, succeeded find, started killCursors, succeeded killCursors", "Created Ready CheckedOut CheckedIn")
		if n := b.lb.OpenCursors(0); n != 0 {
			t.Errorf("%d cursors are open", n)
		}
	})
}

func TestCursorsOfLoadBalancersPinnedConnectionsAreNotReturnedAfterANetworkErrorDuringGetMore(t *testing.T) {
	behindALoadBalancer(t, nil, func(t *testing.T, b *balanced) {
		b.fail(t, replset.FailCommand{Commands: []string{"getMore"}, CloseConnection: true, Times: 1})
		cur := b.find(t)
		b.out(t, 1)
		walk(t, cur, 2)
		if cur.Next(t.Context()) || !mongoerr.IsNetwork(cur.Err()) {
			t.Error(cur.Err())
		}
		b.out(t, 1)
		_ = cur.Close(t.Context())
		b.out(t, 0)
		b.saw(t, "started find, succeeded find, started getMore, failed getMore", "Created Ready CheckedOut PoolCleared CheckedIn Closed(error)")
	})
}

func TestCursorsOfLoadBalancersPinnedConnectionsAreReturnedAfterANetworkErrorDuringAKillCursorsRequest(t *testing.T) {
	behindALoadBalancer(t, nil, func(t *testing.T, b *balanced) {
		b.fail(t, replset.FailCommand{Commands: []string{"killCursors"}, CloseConnection: true, Times: 1})
		cur := b.find(t)
		b.out(t, 1)
		_ = cur.Close(t.Context())
		b.out(t, 0)
		b.saw(t, "started find, succeeded find, started killCursors, failed killCursors", "Created Ready CheckedOut PoolCleared CheckedIn Closed(error)")
	})
}

func TestCursorsOfLoadBalancersPinnedConnectionsAreNotReturnedToThePoolAfterANonNetworkErrorOnGetMore(t *testing.T) {
	behindALoadBalancer(t, nil, func(t *testing.T, b *balanced) {
		b.fail(t, replset.FailCommand{Commands: []string{"getMore"}, ErrorCode: 7, Times: 1})
		cur := b.find(t)
		walk(t, cur, 2)
		if cur.Next(t.Context()) || mongoerr.Code(cur.Err()) != 7 {
			t.Error(cur.Err())
		}
		b.out(t, 1)
		_ = cur.Close(t.Context())
		b.out(t, 0)
		b.saw(t, "started find, succeeded find, started getMore, failed getMore, started killCursors, succeeded killCursors", "Created Ready CheckedOut CheckedIn")
	})
}

func TestCursorsOfLoadBalancersAggregateListCollectionsAndListIndexesPinTheCursorToAConnection(t *testing.T) {
	behindALoadBalancer(t, nil, func(t *testing.T, b *balanced) {
		db := b.cl.Database("t")
		for _, name := range []string{"d", "e"} {
			if err := db.CreateCollection(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		b.take()
		const events = "CheckedOut CheckedIn"
		cur := must[*sextant.Cursor[bson.D]](t)(sextant.Aggregate[bson.D](t.Context(), b.coll, bson.A{}, sextant.AggregateOptions{BatchSize: 2}))
		b.out(t, 1)
		if all, err := cur.All(t.Context()); err != nil || len(all) != 3 {
			t.Error(all, err)
		}
		b.saw(t, "started aggregate, succeeded aggregate, started getMore, succeeded getMore", events)

		if all, err := db.ListCollections(t.Context(), bson.D{}, sextant.ListCollectionsOptions{BatchSize: 2}); err != nil || len(all) != 3 {
			t.Error(all, err)
		}
		b.out(t, 0)
		b.saw(t, "started listCollections, succeeded listCollections, started getMore, succeeded getMore", events)

		if _, err := b.coll.CreateIndexes(t.Context(), []sextant.IndexModel{{Keys: bson.D{{Key: "x", Value: 1}}}, {Keys: bson.D{{Key: "y", Value: 1}}}}); err != nil {
			t.Fatal(err)
		}
		b.take()
		if all, err := b.coll.ListIndexes(t.Context(), sextant.ListIndexesOptions{BatchSize: 2}); err != nil || len(all) != 3 {
			t.Error(all, err)
		}
		b.out(t, 0)
		b.saw(t, "started listIndexes, succeeded listIndexes, started getMore, succeeded getMore", events)

		command := bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 2}}
		cur = must[*sextant.Cursor[bson.D]](t)(sextant.RunCommandCursor[bson.D](t.Context(), db, command))
		b.out(t, 1)
		_ = cur.Close(t.Context())
		b.saw(t, "started find, succeeded find, started killCursors, succeeded killCursors", events)
	})
}

// A limit that the server need not know of ends the cursor, and frees its connection.
func TestCursorAtItsLimitGivesItsConnectionBack(t *testing.T) {
	behindALoadBalancer(t, nil, func(t *testing.T, b *balanced) {
		cur := must[*sextant.Cursor[bson.D]](t)(b.coll.Find(t.Context(), bson.D{}, sextant.FindOptions{BatchSize: 1, Limit: 2}))
		b.out(t, 1)
		walk(t, cur, 2)
		b.out(t, 0)
		if n := b.lb.OpenCursors(0); n != 0 {
			t.Errorf("%d cursors are open", n)
		}
	})
}

func TestWaitQueueTimeoutErrorsIncludeCursorStatistics(t *testing.T) {
	behindALoadBalancer(t, func(_ *replset.Options, c *sextant.Config) {
		c.MaxPoolSize, c.WaitQueueTimeout = new(1), 50*time.Millisecond
	}, func(t *testing.T, b *balanced) {
		cur := b.find(t)
		_, err := b.coll.InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}})
		const want = "maxPoolSize: 1, connections in use by cursors: 1, connections in use by transactions: 0, connections in use by other operations: 0"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
		walk(t, cur, 3) // with one connection in all
		b.saw(t, "started find, succeeded find, started getMore, succeeded getMore", "Created Ready CheckedOut CheckOutFailed(timeout) CheckedIn")
	})
}

// What a getMore was given up for is owed yet when the cursor is closed: it is waited for, so that the cursor can be killed and
// the connection be used again.
func TestCursorIsKilledOverItsConnectionAfterAGetMoreWasGivenUp(t *testing.T) {
	behindALoadBalancer(t, nil, func(t *testing.T, b *balanced) {
		b.fail(t, replset.FailCommand{Commands: []string{"getMore"}, Block: 300 * time.Millisecond, Times: 1})
		cur := b.find(t)
		walk(t, cur, 2)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if cur.Next(ctx) || !mongoerr.IsTimeout(cur.Err()) {
			t.Error(cur.Err())
		}
		b.out(t, 1)
		_ = cur.Close(ctx)
		b.out(t, 0)
		if n := b.lb.OpenCursors(0); n != 0 {
			t.Errorf("%d cursors are open", n)
		}
		b.saw(t, "started find, succeeded find, started getMore, failed getMore, started killCursors, succeeded killCursors", "Created Ready CheckedOut CheckedIn")
	})
}

func TestClientClosesAtOnceWithACursorOpenBehindALoadBalancer(t *testing.T) {
	behindALoadBalancer(t, nil, func(t *testing.T, b *balanced) {
		cur := b.find(t)
		start := time.Now()
		if err := b.cl.Close(t.Context()); err != nil || time.Since(start) != 0 {
			t.Errorf("closed after %v, %v", time.Since(start), err)
		}
		walk(t, cur, 2)
		if cur.Next(t.Context()) || cur.Err() == nil {
			t.Error("a closed client went on")
		}
		_ = cur.Close(t.Context())
		synctest.Wait()
		if n := b.lb.OpenCursors(0); n != 0 {
			t.Errorf("%d cursors outlive their client", n)
		}
	})
}
