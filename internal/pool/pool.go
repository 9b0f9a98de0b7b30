// Package pool keeps the connections of one member: those in use, those that wait to be used, those being opened.
//
// book.go is the ledger, which is pure; Pool is the lock round it. A pool owns a goroutine for each dial, of which there
// are at most MaxConnecting and an early one, one for each connection that drains, and, if it has a minimum size or an idle time, one
// maintainer; Close cancels them and waits.
// A Pool is safe for concurrent use. A connection that was checked out belongs to one goroutine at a time.
package pool

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/conn"
)

// Options are the settings of one pool. Open is required.
type Options struct {
	Max           int           // greatest number of connections; 0 is no limit
	Min           int           // number kept open, also unused
	MaxConnecting int           // greatest number being opened at a time; 0 means 2
	MaxIdle       time.Duration // unused for longer, a connection is closed; 0 is no limit
	WaitTimeout   time.Duration // greatest time to wait for a connection; 0 leaves it to the context

	// Open opens a connection, handshake and authentication included. It ends when ctx does. Behind a load balancer it calls
	// greeted, between handshake and authentication, with the service that the connection leads to.
	Open func(ctx context.Context, greeted func(service bson.ObjectID)) (*conn.Conn, error)
	// Inspect reads once from a new connection what operations will ask of it. Nil is allowed.
	Inspect func(*conn.Conn) Info
	// Probe asks over an idle connection, once Doubt was called, whether it still leads somewhere. Nil is allowed.
	Probe func(context.Context, *conn.Conn) error
	// Failed is told of an error of Open, with the generation of the connection and its service, if it got as far as to know
	// that, before the one who waits for it learns of it. It may clear the pool. Nil is allowed.
	Failed func(err error, generation uint64, service *bson.ObjectID)
	// RTT is the average round trip to the member, by which the pool measures how long a late reply is worth waiting for.
	// Nil: only that of the handshake counts.
	RTT func() time.Duration
	// Publish takes the events of the pool in order. It must not block or call back. Nil is allowed.
	Publish func(*event.PoolEvent)
	// Listening says whether Publish is of any use now. It must be as quick as a look at a flag. Nil: always.
	Listening func() bool
}

// Pool is the pool of one member. It starts paused: Ready lets it work.
type Pool struct {
	addr string
	o    Options
	ctx  context.Context // of the pool's goroutines
	stop context.CancelFunc
	wake chan struct{} // to the maintainer, capacity 1
	wg   sync.WaitGroup
	load atomic.Int64 // connections in use and waiters, for readers without the lock

	// mu guards book and what follows. It is never held across a wait, a dial, a close or a callback other than Publish.
	mu        sync.Mutex
	book      book
	patience  patience
	early     *early    // nil: none, or a dial took it over
	prepared  bool      // there was an early dial
	known     bool      // PoolCreated was published
	tended    bool      // the maintainer was started
	fillAt    time.Time // after a failed dial for the minimum size: when to try again
	dialErr   error     // of the last dial, nil if it succeeded
	dialErrAt time.Time
	doubted   time.Time     // connections that are idle since before are asked before they are handed out
	emptied   chan struct{} // closed when the pool is closed and the last connection in use came back
}

// New makes a paused pool for the member addr. It does nothing yet: no goroutine, no connection.
func New(addr string, o Options) *Pool {
	if o.MaxConnecting <= 0 {
		o.MaxConnecting = 2
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Pool{
		addr: addr, o: o, ctx: ctx, stop: stop,
		wake:    make(chan struct{}, 1),
		emptied: make(chan struct{}),
		book:    book{max: o.Max, min: o.Min, maxConnecting: o.MaxConnecting, maxIdle: o.MaxIdle},
	}
}

// Address is the address of the pool's member.
func (p *Pool) Address() string { return p.addr }

// Load is the number of connections in use and of callers who wait for one.
func (p *Pool) Load() int { return int(p.load.Load()) }

// Generation is the number of times the pool was cleared.
func (p *Pool) Generation() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.book.gen
}

// Stats counts the connections.
func (p *Pool) Stats() event.PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &p.book
	return event.PoolStats{
		InUse: b.busy.n, Idle: len(b.idle), Pending: b.pending.n, Draining: b.late(), Waiting: b.waiting.n,
		Total: b.total(), Generation: b.gen, Services: len(b.reached()), HeldByCursors: b.held[ByCursor], HeldByTransactions: b.held[ByTransaction],
	}
}

// unlock ends a change of the ledger.
func (p *Pool) unlock() {
	p.load.Store(int64(p.book.busy.n + p.book.waiting.n))
	p.mu.Unlock()
}

// Create tells that there is a pool, once. Ready does so at the latest: a member that never becomes ready, as an arbiter,
// has no pool to speak of (SDAM specification, "connection pool creation").
func (p *Pool) Create() {
	p.mu.Lock()
	defer p.unlock()
	p.create()
}

func (p *Pool) create() {
	if p.known || p.book.status == closed {
		return
	}
	p.known = true
	p.publish(event.PoolEvent{Type: event.PoolCreated, MaxSize: p.o.Max, MinSize: p.o.Min, MaxIdle: p.o.MaxIdle,
		MaxConnecting: p.o.MaxConnecting, WaitTimeout: p.o.WaitTimeout})
}

// Ready lets a paused pool hand out and open connections. It is called when the member has answered its monitor.
func (p *Pool) Ready() {
	p.mu.Lock()
	defer p.unlock()
	if !p.book.resume() {
		return
	}
	p.create()
	if !p.tended && (p.o.Min > 0 || p.o.MaxIdle > 0) {
		p.tended = true
		p.wg.Add(1)
		go p.maintain()
	}
	p.publish(event.PoolEvent{Type: event.PoolReady})
	p.fillAt = time.Time{}
	p.poke()
}

// Clear starts a new generation: connections of older ones are not used again, those who wait fail at once with an
// error that wraps mongoerr.ErrPoolCleared and the cause, and the pool is paused until Ready. With interrupt the
// connections in use are closed at once, which fails their operations, and dials under way end.
func (p *Pool) Clear(cause error, interrupt bool) {
	p.mu.Lock()
	p.dropEarly()
	s := p.book.clear(cause, interrupt)
	if s.changed {
		p.publish(event.PoolEvent{Type: event.PoolCleared, Err: cause, Interrupt: interrupt})
	}
	p.publishDrops(s.drops)
	err := p.pausedError(cause)
	finish := p.endSweep(&s, event.ReasonStale, err)
	p.unlock()
	finish()
	for _, c := range s.cut {
		c.interrupt(cause)
	}
}

// endSweep tells, under mu, of what a sweep ended, and returns what is to be done without the lock: to end the dials, to
// close what was idle, and to wake those who waited.
func (p *Pool) endSweep(s *sweep, reason string, err error) (finish func()) {
	for _, c := range s.aborted {
		p.publish(event.PoolEvent{Type: event.ConnectionClosed, ConnectionID: c.id, Reason: reason})
	}
	for _, w := range s.failed {
		p.failCheckOut(w.start, err)
	}
	return func() {
		for _, c := range s.aborted {
			c.cancel()
		}
		for _, w := range s.failed {
			w.got <- delivery{err: err}
		}
		closeAll(s.drops)
	}
}

// Close shuts the pool for good: those who wait fail with mongoerr.ErrPoolClosed, dials are cancelled, idle
// connections closed, and those that rest. Those in use may come back until ctx ends; then they are closed under their operations.
// It returns when every goroutine of the pool has ended.
func (p *Pool) Close(ctx context.Context) {
	p.mu.Lock()
	p.dropEarly()
	s := p.book.shut()
	p.publishDrops(s.drops)
	resting := p.book.atRest()
	finish := p.endSweep(&s, event.ReasonPoolClosed, p.closedError())
	if s.changed && p.known {
		p.publish(event.PoolEvent{Type: event.PoolClosed})
	}
	p.noteEmpty()
	p.unlock()
	p.stop()
	finish()
	for _, c := range resting {
		c.Conn.Close()
	}
	p.wg.Wait()
	select {
	case <-p.emptied:
	case <-ctx.Done():
		p.cutBusy()
	}
}

func (p *Pool) cutBusy() {
	p.mu.Lock()
	left := p.book.busy.all(nil)
	p.mu.Unlock()
	for _, c := range left {
		c.interrupt(nil)
	}
}

// noteEmpty is called under mu whenever connections in use may have become none.
func (p *Pool) noteEmpty() {
	if p.book.status != closed || p.book.busy.n > p.book.resting {
		return
	}
	select {
	case <-p.emptied:
	default:
		close(p.emptied)
	}
}

// publish hands an event on, under mu so that the order of events is that of the ledger.
func (p *Pool) publish(e event.PoolEvent) {
	if p.o.Publish == nil || p.o.Listening != nil && !p.o.Listening() {
		return
	}
	out := new(e) // the copy keeps an unpublished event off the heap
	out.Address, out.Generation = p.addr, p.book.gen
	if out.ServiceID != nil {
		out.Generation = p.book.services[*out.ServiceID]
	}
	p.o.Publish(out)
}

func (p *Pool) publishDrops(drops []dropped) {
	for _, d := range drops {
		if d.late {
			p.pendingResponseFailed(d.conn, time.Since(d.conn.lateAt), p.closedEarly())
		}
		p.publish(event.PoolEvent{Type: event.ConnectionClosed, ConnectionID: d.conn.id, Reason: d.reason, Err: d.err})
	}
}

func closeAll(drops []dropped) {
	for _, d := range drops {
		d.conn.Conn.Close()
	}
}
