package pool

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/event"
)

// aliveAfter is the idle time after which a connection is looked at before it is handed out: a member that steps down
// or stops closes its connections, and a command that may not be sent twice should not be spent on finding that out.
const aliveAfter = time.Second

// Watch lets one who waits look up when something changed. leave says that the member is not the right one any more and
// another is; else changed is closed when it is time to ask again. It is called without a lock, and by the caller only.
type Watch func() (changed <-chan struct{}, leave bool)

// CheckOut is CheckOutWatching without a watch.
func (p *Pool) CheckOut(ctx context.Context) (*Conn, error) { return p.CheckOutWatching(ctx, nil) }

// CheckOutWatching hands out a connection: the idle one used last, else one that comes back or is opened meanwhile, first come,
// first served. It waits until the context ends or WaitTimeout is over; the error says what it waited for. A failed
// dial is returned as it is, with its stage; a pool that is cleared, or paused, gives an error that wraps
// mongoerr.ErrPoolCleared, and so does leaving because watch says so.
func (p *Pool) CheckOutWatching(ctx context.Context, watch Watch) (*Conn, error) {
	start := time.Now()
	p.mu.Lock()
	p.publish(event.PoolEvent{Type: event.CheckOutStarted})
	for {
		c, drops := p.book.take(start)
		p.publishDrops(drops)
		if c == nil {
			return p.wait(ctx, start, drops, watch)
		}
		doubtful := c.since.Before(p.doubted)
		if !doubtful && start.Sub(c.since) < aliveAfter {
			p.checkedOut(c, start)
			p.unlock()
			closeAll(drops)
			return c, nil
		}
		p.unlock()
		closeAll(drops)
		dead := p.dead(ctx, c, doubtful)
		p.mu.Lock()
		if dead == nil {
			c.since = start // looked at
			p.checkedOut(c, start)
			p.unlock()
			return c, nil
		}
		p.book.checkIn(c, true, start)
		p.lost(c, event.ReasonError, dead)
		if drops = nil; doubtful && ctx.Err() == nil {
			drops = p.book.forsake(p.doubted, dead)
			p.publishDrops(drops)
		}
		p.unlock()
		c.Conn.Close()
		closeAll(drops)
		p.mu.Lock()
		if ctx.Err() != nil {
			return p.wait(ctx, start, nil, watch)
		}
	}
}

// wait is CheckOut when nothing is idle. It is called with mu held.
func (p *Pool) wait(ctx context.Context, start time.Time, drops []dropped, watch Watch) (*Conn, error) {
	if err := p.refusal(); err != nil {
		p.failCheckOut(start, err)
		p.unlock()
		closeAll(drops)
		return nil, err
	}
	w := &waiter{got: make(chan delivery, 1), start: start}
	p.book.wait(w)
	p.dialMore(false)
	p.unlock()
	closeAll(drops)

	var timeout <-chan time.Time
	if p.o.WaitTimeout > 0 {
		t := time.NewTimer(p.o.WaitTimeout)
		defer t.Stop()
		timeout = t.C
	}
	for {
		var changed <-chan struct{}
		if watch != nil {
			var leave bool
			if changed, leave = watch(); leave {
				return p.leave(w)
			}
		}
		select {
		case d := <-w.got:
			return d.conn, d.err
		case <-ctx.Done():
			return p.giveUp(w, ctx.Err())
		case <-timeout:
			return p.giveUp(w, nil)
		case <-changed:
		}
	}
}

// checkedOut tells, under mu, that a connection was handed out.
func (p *Pool) checkedOut(c *Conn, start time.Time) {
	p.publish(event.PoolEvent{Type: event.ConnectionCheckOut, ConnectionID: c.id, Duration: time.Since(start)})
}

// failCheckOut tells, under mu, that somebody gets no connection.
func (p *Pool) failCheckOut(start time.Time, err error) {
	p.publish(event.PoolEvent{Type: event.CheckOutFailed, Reason: reasonOf(err), Err: err, Duration: time.Since(start)})
}

// leave takes a waiter out of the queue because the member is not the right one any more. One that was served at the
// same moment keeps what it got.
func (p *Pool) leave(w *waiter) (*Conn, error) {
	p.mu.Lock()
	if !p.book.cancel(w) {
		p.mu.Unlock()
		d := <-w.got
		return d.conn, d.err
	}
	err := p.movedError()
	p.failCheckOut(w.start, err)
	p.unlock()
	return nil, err
}

// refusal says why nobody may wait now, nil if one may.
func (p *Pool) refusal() error {
	switch p.book.status {
	case closed:
		return p.closedError()
	case paused:
		return p.pausedError(p.book.cause)
	}
	return nil
}

// giveUp takes a waiter out of the queue. One that was served at the same moment keeps what it got, unless its context
// has ended: then it gives it back.
func (p *Pool) giveUp(w *waiter, cause error) (*Conn, error) {
	p.mu.Lock()
	waited := p.book.cancel(w)
	err := p.waitError(cause, time.Since(w.start))
	if waited {
		p.failCheckOut(w.start, err)
	}
	p.unlock()
	if waited {
		return nil, err
	}
	d := <-w.got
	if d.conn == nil || cause == nil {
		return d.conn, d.err
	}
	d.conn.CheckIn()
	return nil, err
}
