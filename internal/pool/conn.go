package pool

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/conn"
)

// Info is what operations need to know of a connection's member. It comes from the connection's own hello, never from a
// monitor's: the member may have changed in between.
type Info struct {
	Kind           event.Kind
	MaxWire        int32
	MaxBSON        int32         // bytes of a document
	MaxMessage     int32         // bytes of a message
	MaxBatch       int32         // writes of a command
	SessionTimeout time.Duration // 0: the member has no sessions
}

// Conn is a connection of a pool. Whoever checked it out calls CheckIn once.
type Conn struct {
	*conn.Conn
	Info Info
	pool *Pool
	id   int64
	gen  uint64

	// Guarded by the pool's mu.
	where      whereabouts
	holder     Holder
	resting    bool           // kept, and nothing is under way on it
	service    *bson.ObjectID // gen is that of the service; nil: that of the pool
	since      time.Time      // when it became idle
	created    time.Time
	lateAt     time.Time // since when it drains
	prev, next *Conn
	cancel     context.CancelFunc // of the dial
	cut        error              // why the pool closed it under its user; nil if it did not
}

// ID numbers the connections of a pool from 1 in order of creation.
func (c *Conn) ID() int64 { return c.id }

// Generation is that of the pool when the connection was made; behind a load balancer, that of its service.
func (c *Conn) Generation() uint64 { return c.gen }

// Address is the address of the connection's member.
func (c *Conn) Address() string { return c.pool.addr }

// CheckIn gives the connection back. A broken or outdated one is closed; one that owes a reply is drained first. A second
// call does nothing.
func (c *Conn) CheckIn() { c.pool.checkIn(c) }

func (p *Pool) checkIn(c *Conn) {
	broken, now := c.Broken(), time.Now()
	p.mu.Lock()
	if c.where != busy {
		p.mu.Unlock()
		return
	}
	p.publish(event.PoolEvent{Type: event.ConnectionCheckIn, ConnectionID: c.id})
	if !broken && c.Owes() {
		p.checkInLate(c, now)
		return
	}
	w, reason := p.book.checkIn(c, broken, now)
	switch {
	case reason != "":
		p.lost(c, reason, c.failure())
	case w != nil:
		p.checkedOut(c, w.start)
	case len(p.book.idle) == 1 && p.o.MaxIdle > 0:
		p.poke() // the maintainer has no timer running
	}
	p.unlock()
	if reason != "" {
		c.Conn.Close()
	}
	if w != nil {
		w.got <- delivery{conn: c}
	}
}

// failure is, under mu, why a connection comes back broken.
func (c *Conn) failure() error {
	if c.cut != nil {
		return c.cut
	}
	return c.Err()
}

// lost notes, under mu, that a connection left the ledger, which may make room for another. The cause counts only for the
// reason error.
func (p *Pool) lost(c *Conn, reason string, cause error) {
	e := event.PoolEvent{Type: event.ConnectionClosed, ConnectionID: c.id, Reason: reason}
	if reason == event.ReasonError {
		if e.Err = cause; cause == nil {
			e.Err = p.closedByUser()
		}
	}
	p.publish(e)
	p.noteEmpty()
	p.dialMore(false)
	if p.o.Min > 0 {
		p.poke()
	}
}

// Interrupted is the failure of the member for which the pool closed the connection under its user, nil if it did not.
func (c *Conn) Interrupted() error {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return c.cut
}

// interrupt closes the connection under whoever uses it.
func (c *Conn) interrupt(cause error) {
	c.pool.mu.Lock()
	c.cut = cause
	c.pool.mu.Unlock()
	c.Conn.Close()
}
