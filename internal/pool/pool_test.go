package pool_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/pool"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// member is a server that greets whoever connects, on in-memory connections.
type member struct {
	delay time.Duration // of a dial
	fail  error         // of a dial; may be changed between synctest.Waits
	slow  atomic.Int64  // nanoseconds that an answer takes, but for that to the hello

	services []bson.ObjectID // it is a load balancer, which takes turns; none: it is not

	mu    sync.Mutex
	socks []net.Conn // the server's ends
	most  int        // dials at a time
	now   int
}

// hangUp closes the server's ends.
func (m *member) hangUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.socks {
		s.Close()
	}
}

// dials is the number of connections that were opened.
func (m *member) dials() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.socks)
}

func (m *member) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	m.mu.Lock()
	m.now++
	m.most = max(m.most, m.now)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.now--
		m.mu.Unlock()
	}()
	if m.delay > 0 {
		select {
		case <-time.After(m.delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if m.fail != nil {
		return nil, m.fail
	}
	client, server := net.Pipe()
	m.mu.Lock()
	m.socks = append(m.socks, server)
	var service *bson.ObjectID
	if n := len(m.services); n > 0 {
		service = &m.services[(len(m.socks)-1)%n]
	}
	m.mu.Unlock()
	go m.greet(server, service)
	return client, nil
}

// greet answers every message with the hello of a standalone, or of a service behind a load balancer.
func (m *member) greet(sock net.Conn, service *bson.ObjectID) {
	defer sock.Close()
	for id := int32(1); ; id++ {
		head := make([]byte, wire.HeaderLen)
		if _, err := io.ReadFull(sock, head); err != nil {
			return
		}
		h, err := wire.CheckHeader(head, wire.MaxMessage)
		if err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, sock, int64(h.Length)-wire.HeaderLen); err != nil {
			return
		}
		if id > 1 {
			time.Sleep(time.Duration(m.slow.Load()))
		}
		msg, start := wire.AppendMsgStart(nil, id, h.RequestID, 0)
		msg, doc := bson.BeginDocument(msg)
		msg = bson.AppendBoolean(msg, "ismaster", true)
		msg = bson.AppendInt32(msg, "maxWireVersion", 21)
		if service != nil {
			msg = bson.AppendObjectID(msg, "serviceId", *service)
		}
		msg = bson.AppendDouble(msg, "ok", 1)
		msg = bson.EndDocument(msg, doc)
		if _, err := sock.Write(wire.EndMsg(msg, start)); err != nil {
			return
		}
	}
}

// journal keeps the events of a pool.
type journal struct {
	mu   sync.Mutex
	list []string
}

func (j *journal) note(e *event.PoolEvent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := strings.TrimPrefix(string(e.Type), "Connection")
	if e.Reason != "" {
		s += "(" + e.Reason + ")"
	}
	j.list = append(j.list, s)
}

func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.list
	j.list = nil
	return out
}

// newPool makes a ready pool of the member; the test closes it.
func newPool(t *testing.T, m *member, o pool.Options) (*pool.Pool, *journal) {
	t.Helper()
	j := &journal{}
	o.Publish = j.note
	o.Open = func(ctx context.Context, greeted func(bson.ObjectID)) (*conn.Conn, error) {
		return conn.Open(ctx, "db1:27017", &conn.Options{Dial: m.dial, LoadBalanced: m.services != nil, Greeted: greeted})
	}
	p := pool.New("db1:27017", o)
	p.Ready()
	return p, j
}

func checkOut(t *testing.T, p *pool.Pool) *pool.Conn {
	t.Helper()
	c, err := p.CheckOut(t.Context())
	if err != nil {
		t.Fatalf("CheckOut: %v", err)
	}
	return c
}

func closePool(t *testing.T, p *pool.Pool) {
	t.Helper()
	p.Close(t.Context())
	if s := p.Stats(); s.Total != 0 || s.Waiting != 0 {
		t.Errorf("after Close the pool still counts %+v", s)
	}
}

func sameEvents(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("events\n got %v\nwant %v", got, want)
	}
}

func TestPoolOpensOnDemandAndReusesTheLastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, j := newPool(t, &member{}, pool.Options{Max: 10})
		a := checkOut(t, p)
		b := checkOut(t, p)
		if a.ID() != 1 || b.ID() != 2 {
			t.Errorf("connections are numbered %d and %d", a.ID(), b.ID())
		}
		a.CheckIn()
		b.CheckIn()
		b.CheckIn() // does nothing
		if c := checkOut(t, p); c != b {
			t.Error("the connection used last was not used first")
		} else {
			c.CheckIn()
		}
		if s := p.Stats(); s.Idle != 2 || s.InUse != 0 || s.Total != 2 {
			t.Errorf("stats %+v", s)
		}
		closePool(t, p)
		sameEvents(t, j.take(), "PoolCreated", "PoolReady",
			"CheckOutStarted", "Created", "Ready", "CheckedOut", "CheckOutStarted", "Created", "Ready", "CheckedOut",
			"CheckedIn", "CheckedIn", "CheckOutStarted", "CheckedOut", "CheckedIn",
			"Closed(poolClosed)", "Closed(poolClosed)", "PoolClosed")
	})
}

func TestPoolDialsAtMostMaxConnectingAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{delay: time.Second}
		p, _ := newPool(t, m, pool.Options{Max: 10, MaxConnecting: 3})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := p.CheckOut(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if s := p.Stats(); s.Pending != 3 || s.Waiting != 10 || p.Load() != 10 {
			t.Errorf("stats %+v, load %d", s, p.Load())
		}
		start := time.Now()
		wg.Wait()
		if m.most != 3 {
			t.Errorf("%d dials at a time", m.most)
		}
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("10 connections, 3 at a time, took %v", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p.Close(ctx)
	})
}

func TestWaitersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPool(t, &member{}, pool.Options{Max: 1})
		c := checkOut(t, p)
		var order []int
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				c, err := p.CheckOut(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i) // one connection: one goroutine at a time
				c.CheckIn()
			})
			synctest.Wait()
		}
		c.CheckIn()
		wg.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
			t.Errorf("served in the order %v", order)
		}
		closePool(t, p)
	})
}

func TestCancelFreesAWaiterAtOnceAndSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPool(t, &member{}, pool.Options{Max: 1})
		c := checkOut(t, p)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err := p.CheckOut(ctx)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("waited %v", took)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !mongoerr.IsTimeout(err) || mongoerr.IsPoolCleared(err) {
			t.Errorf("error %v", err)
		}
		for _, words := range []string{"checkout", "db1:27017", "3 s", "all 1 connections are in use", "maxPoolSize: 1"} {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%q does not say %q", err, words)
			}
		}
		c.CheckIn()
		if s := p.Stats(); s.Idle != 1 || s.Waiting != 0 {
			t.Errorf("stats %+v", s)
		}
		closePool(t, p)
	})
}

func TestWaiterLeavesWhenItsWatchSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, j := newPool(t, &member{}, pool.Options{Max: 1})
		defer closePool(t, p)
		c := checkOut(t, p)
		j.take()
		changed, leave := make(chan struct{}), false
		gone := make(chan error)
		go func() {
			_, err := p.CheckOutWatching(t.Context(), func() (<-chan struct{}, bool) { return changed, leave })
			gone <- err
		}()
		synctest.Wait()
		before := changed
		changed = make(chan struct{})
		close(before) // a change that is of no account
		synctest.Wait()
		if n := p.Stats().Waiting; n != 1 {
			t.Fatalf("%d wait", n)
		}
		leave = true
		close(changed)
		if err := <-gone; !mongoerr.IsPoolCleared(err) || mongoerr.IsNetwork(err) {
			t.Errorf("left with %v", err)
		}
		if n := p.Stats().Waiting; n != 0 {
			t.Errorf("%d still wait", n)
		}
		synctest.Wait()
		sameEvents(t, j.take(), "CheckOutStarted", "CheckOutFailed(connectionError)")
		c.CheckIn()
	})
}

func TestWaitTimeoutEndsAWaitWithoutAContextDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, j := newPool(t, &member{}, pool.Options{Max: 1, WaitTimeout: 50 * time.Millisecond})
		c := checkOut(t, p)
		j.take()
		_, err := p.CheckOut(t.Context())
		if !mongoerr.IsTimeout(err) || mongoerr.IsNetwork(err) {
			t.Errorf("error %v", err)
		}
		sameEvents(t, j.take(), "CheckOutStarted", "CheckOutFailed(timeout)")
		c.CheckIn()
		closePool(t, p)
	})
}

func TestFailedDialIsToldToTheOneWhoWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		m := &member{fail: refused}
		var told []error
		p, j := newPool(t, m, pool.Options{Max: 1, Failed: func(err error, gen uint64, _ *bson.ObjectID) { told = append(told, err) }})
		_, err := p.CheckOut(t.Context())
		var e *mongoerr.Error
		if !errors.As(err, &e) || e.Stage != mongoerr.StageDial || !errors.Is(err, refused) {
			t.Errorf("error %v", err)
		}
		if len(told) != 1 || told[0] != err {
			t.Errorf("Failed was told %v", told)
		}
		sameEvents(t, j.take(), "PoolCreated", "PoolReady", "CheckOutStarted", "Created", "Closed(error)", "CheckOutFailed(connectionError)")
		m.fail = nil
		checkOut(t, p).CheckIn()
		closePool(t, p)
	})
}

func TestClearFailsWaitersWithItsCauseAndDropsOldConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, j := newPool(t, &member{}, pool.Options{Max: 2})
		used, idle := checkOut(t, p), checkOut(t, p)
		var waiting error
		var wg sync.WaitGroup
		wg.Go(func() { _, waiting = p.CheckOut(t.Context()) })
		synctest.Wait()
		j.take()
		cause := errors.New("the primary stepped down")
		p.Clear(cause, false)
		wg.Wait()
		_, paused := p.CheckOut(t.Context())
		for _, err := range []error{waiting, paused} {
			if !mongoerr.IsPoolCleared(err) || !errors.Is(err, cause) || mongoerr.IsNetwork(err) || mongoerr.IsTimeout(err) {
				t.Errorf("error %v", err)
			}
			if !strings.Contains(err.Error(), "db1:27017") || !strings.Contains(err.Error(), cause.Error()) {
				t.Errorf("%q names neither server nor cause", err)
			}
		}
		p.Clear(cause, false) // paused already: a new generation, but no event
		p.Ready()
		used.CheckIn()
		idle.CheckIn()
		if s := p.Stats(); s.Total != 0 || s.Generation != 2 {
			t.Errorf("stats %+v", s)
		}
		c := checkOut(t, p)
		if c.Generation() != 2 || c.ID() != 3 {
			t.Errorf("generation %d, id %d", c.Generation(), c.ID())
		}
		c.CheckIn()
		closePool(t, p)
		sameEvents(t, j.take(), "PoolCleared", "CheckOutFailed(connectionError)", "CheckOutStarted", "CheckOutFailed(connectionError)",
			"PoolReady", "CheckedIn", "Closed(stale)", "CheckedIn", "Closed(stale)",
			"CheckOutStarted", "Created", "Ready", "CheckedOut", "CheckedIn", "Closed(poolClosed)", "PoolClosed")
	})
}

func TestInterruptingClearCutsConnectionsInUseAndDials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{}
		p, _ := newPool(t, m, pool.Options{Max: 2})
		c := checkOut(t, p)
		m.delay = time.Hour
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := p.CheckOut(t.Context()); !mongoerr.IsPoolCleared(err) {
				t.Errorf("error %v", err)
			}
		})
		synctest.Wait()
		start := time.Now()
		p.Clear(errors.New("hung"), true)
		wg.Wait()
		synctest.Wait()
		if !c.Broken() {
			t.Error("the connection in use was not closed")
		}
		if s := p.Stats(); s.Pending != 0 || time.Since(start) != 0 {
			t.Errorf("the dial goes on: %+v", s)
		}
		c.CheckIn()
		closePool(t, p)
	})
}

func TestMinimumSizeIsKeptAndIdleConnectionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPool(t, &member{}, pool.Options{Max: 10, Min: 2, MaxIdle: time.Minute})
		synctest.Wait()
		if s := p.Stats(); s.Idle != 2 {
			t.Fatalf("stats %+v", s)
		}
		list := []*pool.Conn{checkOut(t, p), checkOut(t, p), checkOut(t, p)}
		for _, c := range list {
			c.CheckIn()
		}
		time.Sleep(time.Minute - time.Second)
		if s := p.Stats(); s.Idle != 3 {
			t.Errorf("a second before their time: %+v", s)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s := p.Stats(); s.Idle != 2 {
			t.Errorf("a second after it: %+v", s)
		}
		if c := checkOut(t, p); c.ID() <= 3 {
			t.Errorf("connection %d should have expired", c.ID())
		} else {
			c.CheckIn()
		}
		closePool(t, p)
	})
}

func TestMinimumSizeIsNotDialledInAHotLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := 0
		p, _ := newPool(t, &member{fail: errors.New("down")}, pool.Options{Min: 1, Failed: func(error, uint64, *bson.ObjectID) { fails++ }})
		time.Sleep(9500 * time.Millisecond)
		closePool(t, p)
		if fails < 5 || fails > 11 {
			t.Errorf("%d dials in 9.5 s", fails)
		}
	})
}

func TestBrokenConnectionMakesRoomForAWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPool(t, &member{}, pool.Options{Max: 1})
		c := checkOut(t, p)
		var wg sync.WaitGroup
		wg.Go(func() {
			if c, err := p.CheckOut(t.Context()); err != nil {
				t.Error(err)
			} else if c.CheckIn(); c.ID() != 2 {
				t.Errorf("got connection %d", c.ID())
			}
		})
		synctest.Wait()
		c.Close()
		c.CheckIn()
		wg.Wait()
		closePool(t, p)
	})
}

func TestCloseWaitsForConnectionsInUseUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPool(t, &member{}, pool.Options{})
		slow, hung := checkOut(t, p), checkOut(t, p)
		go func() {
			time.Sleep(time.Second)
			slow.CheckIn()
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		p.Close(ctx)
		if took := time.Since(start); took != 5*time.Second || !hung.Broken() {
			t.Errorf("closed after %v, the hung connection broken: %v", took, hung.Broken())
		}
		if _, err := p.CheckOut(t.Context()); !errors.Is(err, mongoerr.ErrPoolClosed) {
			t.Errorf("error %v", err)
		}
		hung.CheckIn()
		closePool(t, p)
	})
}

func TestPoolThatWasNeverReadyDialsNothingAndRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{}
		opts := &conn.Options{Dial: m.dial}
		p := pool.New("arbiter:27017", pool.Options{Min: 5, Open: func(ctx context.Context, _ func(bson.ObjectID)) (*conn.Conn, error) {
			return conn.Open(ctx, "arbiter:27017", opts)
		}})
		if _, err := p.CheckOut(t.Context()); !mongoerr.IsPoolCleared(err) {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
		if m.most != 0 {
			t.Error("a connection was dialled")
		}
		closePool(t, p)
	})
}
