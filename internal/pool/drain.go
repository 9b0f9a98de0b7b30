package pool

import (
	"time"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
)

// A caller who gives up leaves its connection behind with a reply due. To close it would cost the next one a dial, a
// handshake and an authentication, which is what makes storms of them when timeouts are short. So the connection drains: a
// goroutine of the pool reads the reply and drops it, for as long as experience says that it is worth it. Meanwhile the
// ledger counts the connection, and keeps its place for as long as late replies commonly take; then whoever waits gets a
// dial (see book).

// checkInLate is checkIn of a connection that owes a reply. It is called with mu held and releases it.
func (p *Pool) checkInLate(c *Conn, now time.Time) {
	reason := p.book.checkInLate(c)
	if reason != "" {
		p.lost(c, reason, nil)
	} else {
		c.lateAt = now
		p.publish(event.PoolEvent{Type: event.PendingResponseStarted, ConnectionID: c.id})
		p.wg.Add(1)
		go p.drain(c, p.patience)
	}
	p.unlock()
	if reason != "" {
		c.Conn.Close()
	}
}

// drain is the body of a drain's goroutine. It ends with the reply, with its time, or when the connection is closed because
// the pool was cleared or closed or needed its place.
func (p *Pool) drain(c *Conn, learnt patience) {
	defer p.wg.Done()
	rtt := c.RTT()
	if p.o.RTT != nil {
		rtt = max(rtt, p.o.RTT())
	}
	limit, grace := learnt.limit(rtt), learnt.grace(rtt)
	err := error(nil)
	if grace > 0 {
		err = c.Drain(c.lateAt.Add(grace))
	}
	if c.Owes() && !c.Broken() {
		p.graceOver(c)
		err = c.Drain(c.lateAt.Add(limit))
	}
	now := time.Now()
	took := now.Sub(c.lateAt)
	p.mu.Lock()
	if c.where != draining && c.where != overdue { // told and closed by who took it out of the ledger
		p.mu.Unlock()
		return
	}
	if err != nil {
		if mongoerr.IsTimeout(err) {
			p.patience.missed(limit)
		}
		p.book.notDrained(c)
		p.pendingResponseFailed(c, took, err)
		p.lost(c, event.ReasonError, err)
		p.unlock()
		c.Conn.Close()
		return
	}
	p.patience.learn(took)
	p.publish(event.PoolEvent{Type: event.PendingResponseSucceeded, ConnectionID: c.id, Duration: took})
	w, surplus := p.book.drained(c, now)
	if surplus != nil {
		p.publish(event.PoolEvent{Type: event.ConnectionClosed, ConnectionID: surplus.id, Reason: event.ReasonSurplus})
	}
	if w != nil {
		p.checkedOut(c, w.start)
	} else {
		p.poke() // the maintainer may have no timer running
	}
	p.unlock()
	if surplus != nil {
		surplus.cancel()
	}
	if w != nil {
		w.got <- delivery{conn: c}
	}
}

// graceOver lets those who wait for the place of a connection that drains have another one.
func (p *Pool) graceOver(c *Conn) {
	p.mu.Lock()
	if c.where == draining {
		p.book.graceOver(c)
		p.dialMore(false)
	}
	p.unlock()
}

// pendingResponseFailed tells, under mu, that a late reply is not waited for any more.
func (p *Pool) pendingResponseFailed(c *Conn, took time.Duration, err error) {
	reason := event.ReasonError
	if mongoerr.IsTimeout(err) {
		reason = event.ReasonTimeout
	}
	p.publish(event.PoolEvent{Type: event.PendingResponseFailed, ConnectionID: c.id, Reason: reason, Err: err, Duration: took})
}

// replace closes, under mu, a draining connection whose place is taken. Its socket is the caller's to close.
func (p *Pool) replace(c *Conn) {
	err := p.closedEarly()
	p.pendingResponseFailed(c, time.Since(c.lateAt), err)
	p.publish(event.PoolEvent{Type: event.ConnectionClosed, ConnectionID: c.id, Reason: event.ReasonError, Err: err})
}

// closedEarly says that the pool closed a connection that was draining.
func (p *Pool) closedEarly() error {
	return p.failed("the connection was closed before the late reply came")
}

// closedByUser says that who had a connection closed it and did not say why.
func (p *Pool) closedByUser() error { return p.failed("the connection was closed by this client") }

func (p *Pool) failed(what string) error {
	e := mongoerr.New(mongoerr.StageRead, "%s", what)
	e.Server = p.addr
	return e
}
