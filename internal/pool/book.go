package pool

import (
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
)

// status says what a pool may do: a paused one waits for its member to be seen again.
type status uint8

const (
	paused status = iota
	ready
	closed
)

// whereabouts says which part of the ledger a connection counts in.
type whereabouts uint8

const (
	gone whereabouts = iota
	pending
	idle
	busy
	draining // a reply is due that nobody waits for any more
	overdue  // it drains still, and its place is not kept any longer
)

// book is the ledger of a pool: which connections there are, who waits, what may be dialled. It is pure; pool.go is the
// lock round it and does what it says.
//
// Invariants: at most max connections (0: no limit) are open, and at most max are open or pending if those that are overdue
// are left out; at most maxConnecting are pending; nobody waits while a usable connection is idle; while paused or closed
// nobody waits, and nothing is idle, draining or overdue.
//
// A connection that drains keeps its place for a short time of grace. Then it takes no place from who waits: the dial that
// would have been made if it had been closed is made. So there may be more than max in all, by the dials under way, of which
// the first to be done takes the place of the one that has been overdue longest; and if one of those drains first, the dial
// that was begun last ends, which is the furthest from its own end.
type book struct {
	max, min, maxConnecting int
	maxIdle                 time.Duration

	status   status
	gen      uint64
	cause    error // why the pool is paused; nil before it was ever ready
	lastID   int64
	idle     []*Conn // by the time they became idle, the oldest first; the youngest is used first
	busy     ring
	pending  ring
	draining ring
	overdue  ring
	waiting  queue
	held     [holders]int             // of the busy ones, by who holds them for longer than one operation
	resting  int                      // of those, the ones on which nothing is under way
	services map[bson.ObjectID]uint64 // behind a load balancer: the generation of each service
}

// Holder is who keeps a connection checked out.
type Holder uint8

// Who may keep a connection. Cursors and transactions do behind a load balancer only: elsewhere each of their commands
// checks one out.
const (
	ByOperation Holder = iota
	ByCursor
	ByTransaction
	holders
)

// hold notes who keeps a busy connection.
func (b *book) hold(c *Conn, h Holder) {
	if c.holder != ByOperation {
		b.held[c.holder]--
	}
	if c.holder = h; h != ByOperation {
		b.held[h]++
	}
}

// rest notes whether something is under way on a busy connection.
func (b *book) rest(c *Conn, resting bool) {
	if c.resting == resting {
		return
	}
	if c.resting = resting; resting {
		b.resting++
	} else {
		b.resting--
	}
}

// leave takes a connection out of the busy ones.
func (b *book) leave(c *Conn) {
	if c.holder != ByOperation {
		b.hold(c, ByOperation)
	}
	b.rest(c, false)
	b.busy.remove(c)
}

func (b *book) total() int { return len(b.idle) + b.busy.n + b.pending.n + b.late() }

// late is the number of connections that owe a reply.
func (b *book) late() int { return b.draining.n + b.overdue.n }

// full says that the limit allows no further dial.
func (b *book) full() bool { return b.max > 0 && b.total()-b.overdue.n >= b.max }

// dropped is a connection that left the ledger and whose socket must be closed.
type dropped struct {
	conn   *Conn
	reason string
	late   bool  // it was draining
	err    error // why, for the reason error
}

// take hands out the idle connection used last. What perished on the way is dropped.
func (b *book) take(now time.Time) (c *Conn, drops []dropped) {
	for n := len(b.idle); n > 0; n = len(b.idle) {
		c := b.idle[n-1]
		b.idle[n-1] = nil
		b.idle = b.idle[:n-1]
		if reason := b.perished(c, now); reason != "" {
			c.where = gone
			drops = append(drops, dropped{conn: c, reason: reason})
			continue
		}
		b.busy.push(c, busy)
		return c, drops
	}
	return nil, drops
}

func (b *book) perished(c *Conn, now time.Time) string {
	switch {
	case b.stale(c):
		return event.ReasonStale
	case b.maxIdle > 0 && now.Sub(c.since) >= b.maxIdle:
		return event.ReasonIdle
	}
	return ""
}

// wait puts a waiter at the end of the queue.
func (b *book) wait(w *waiter) { b.waiting.push(w) }

// cancel takes a waiter out of the queue. It is false if the waiter has been served already.
func (b *book) cancel(w *waiter) bool { return b.waiting.remove(w) }

// dial says which connection to open next, nil if none: one for each waiter that no pending one will serve and, if
// fill is set, as many as minPoolSize lacks.
func (b *book) dial(fill bool) *Conn {
	need := b.waiting.n > b.pending.n || fill && b.total() < b.min
	if !need || b.status != ready || b.pending.n >= b.maxConnecting || b.full() {
		return nil
	}
	b.lastID++
	c := &Conn{id: b.lastID, gen: b.gen}
	b.pending.push(c, pending)
	return c
}

// dialed enters an opened connection: the first waiter gets it, else it is idle. It is not kept if the pool was
// cleared or closed meanwhile. replaced is the draining connection whose place it takes, nil if there was room.
func (b *book) dialed(c *Conn, now time.Time) (w *waiter, reason string, replaced *Conn) {
	b.pending.remove(c)
	w, reason = b.place(c, now)
	if open := b.total() - b.pending.n; b.max > 0 && open > b.max {
		replaced = b.overdue.last()
		b.overdue.remove(replaced)
	}
	return w, reason, replaced
}

// blame is the waiter for whom the dial of c was made, if there is one: it has failed, and the waiter must be told. A
// dial of an older generation concerns nobody any more. The connection stays in the ledger until dialFailed.
func (b *book) blame(c *Conn) *waiter {
	if b.stale(c) || b.waiting.n < b.pending.n {
		return nil
	}
	return b.waiting.pop()
}

// dialFailed takes a connection that could not be opened out of the ledger.
func (b *book) dialFailed(c *Conn) { b.pending.remove(c) }

// checkIn enters a connection that comes back. A reason says that it must be closed.
func (b *book) checkIn(c *Conn, broken bool, now time.Time) (w *waiter, reason string) {
	b.leave(c)
	if broken {
		return nil, event.ReasonError
	}
	return b.place(c, now)
}

// checkInLate enters a connection that comes back while a reply is due. A reason says that it must be closed.
func (b *book) checkInLate(c *Conn) (reason string) {
	b.leave(c)
	if reason = b.outdated(c); reason == "" {
		b.draining.push(c, draining)
	}
	return reason
}

// graceOver stops keeping the place of a connection that drains.
func (b *book) graceOver(c *Conn) {
	b.draining.remove(c)
	b.overdue.push(c, overdue)
}

// notDrained takes a connection whose late reply does not come out of the ledger.
func (b *book) notDrained(c *Conn) {
	if c.where == overdue {
		b.overdue.remove(c)
	} else {
		b.draining.remove(c)
	}
}

// drained enters a connection whose late reply has come. surplus is a dial that is to be ended, since there is no room for
// both.
func (b *book) drained(c *Conn, now time.Time) (w *waiter, surplus *Conn) {
	b.notDrained(c)
	w, _ = b.place(c, now)
	if b.max > 0 && b.total()-b.overdue.n > b.max {
		surplus = b.pending.head
		b.pending.remove(surplus)
	}
	return w, surplus
}

// outdated says why a connection may not be kept, "" if it may.
func (b *book) outdated(c *Conn) string {
	switch {
	case b.status == closed:
		return event.ReasonPoolClosed
	case b.stale(c):
		return event.ReasonStale
	}
	return ""
}

func (b *book) place(c *Conn, now time.Time) (w *waiter, reason string) {
	if reason := b.outdated(c); reason != "" {
		return nil, reason
	}
	if w := b.waiting.pop(); w != nil {
		b.busy.push(c, busy)
		return w, ""
	}
	c.since, c.where = now, idle
	b.idle = append(b.idle, c)
	return nil, ""
}

// sweep is what a clear or a close leaves to do.
type sweep struct {
	changed bool      // the pool was ready before
	drops   []dropped // idle and draining connections
	failed  []*waiter
	aborted []*Conn // pending connections that left the ledger: their dials must be ended
	cut     []*Conn // busy connections to interrupt; they stay in the ledger until they come back
}

// clear starts a new generation and pauses the pool. The connections in use are closed when they come back, or at once
// if interrupt is set; dials go on, or end too.
func (b *book) clear(cause error, interrupt bool) sweep {
	if b.status == closed {
		return sweep{}
	}
	s := sweep{changed: b.status == ready}
	b.gen++
	b.status, b.cause = paused, cause
	b.empty(&s, event.ReasonStale)
	if interrupt {
		s.cut = b.busy.all(nil)
		s.aborted = b.pending.empty()
	}
	return s
}

// shut closes the ledger for good. Connections in use stay in it until they come back.
func (b *book) shut() sweep {
	s := sweep{changed: b.status != closed}
	b.status = closed
	b.empty(&s, event.ReasonPoolClosed)
	s.aborted = b.pending.empty()
	return s
}

func (b *book) empty(s *sweep, reason string) {
	for _, c := range b.idle {
		c.where = gone
		s.drops = append(s.drops, dropped{conn: c, reason: reason})
	}
	b.idle = nil
	for _, c := range append(b.draining.empty(), b.overdue.empty()...) {
		s.drops = append(s.drops, dropped{conn: c, reason: reason, late: true})
	}
	for w := b.waiting.pop(); w != nil; w = b.waiting.pop() {
		s.failed = append(s.failed, w)
	}
}

// resume makes a paused pool ready. It is false if the pool was not paused.
func (b *book) resume() bool {
	if b.status != paused {
		return false
	}
	b.status, b.cause = ready, nil
	return true
}

// expire drops what has been idle for too long and says when the next will have been, the zero time if none.
func (b *book) expire(now time.Time) (drops []dropped, next time.Time) {
	if b.maxIdle <= 0 {
		return nil, time.Time{}
	}
	n := 0
	for n < len(b.idle) && b.perished(b.idle[n], now) != "" {
		b.idle[n].where = gone
		drops = append(drops, dropped{conn: b.idle[n], reason: event.ReasonIdle})
		n++
	}
	if n > 0 {
		kept := copy(b.idle, b.idle[n:])
		clear(b.idle[kept:])
		b.idle = b.idle[:kept]
	}
	if len(b.idle) > 0 {
		next = b.idle[0].since.Add(b.maxIdle)
	}
	return drops, next
}
