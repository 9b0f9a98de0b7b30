package pool

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/event"
)

// fillRetry is the time between dials for the minimum size when they fail. Dials for callers do not wait for it.
const fillRetry = time.Second

// dialMore starts, under mu, the dials that the ledger asks for.
func (p *Pool) dialMore(fill bool) {
	for c := p.book.dial(fill); c != nil; c = p.book.dial(fill) {
		ctx, cancel := context.WithCancel(p.ctx)
		c.pool, c.cancel, c.created = p, cancel, time.Now()
		p.publish(event.PoolEvent{Type: event.ConnectionCreated, ConnectionID: c.id})
		p.wg.Add(1)
		go p.dial(ctx, c, p.takeEarly())
	}
}

// dial opens one connection. It is the body of a dial's goroutine.
func (p *Pool) dial(ctx context.Context, c *Conn, e *early) {
	defer p.wg.Done()
	defer c.cancel()
	sock, err := p.open(ctx, c, e)
	if err != nil {
		p.dialFailed(c, err)
		return
	}
	var info Info
	if p.o.Inspect != nil {
		info = p.o.Inspect(sock)
	}
	now := time.Now()
	p.mu.Lock()
	if c.where != pending { // the pool gave it up meanwhile, and told so
		p.mu.Unlock()
		sock.Close()
		return
	}
	c.Conn, c.Info, p.dialErr = sock, info, nil
	w, reason, replaced := p.book.dialed(c, now)
	if reason != "" {
		p.lost(c, reason, nil)
	} else {
		p.publish(event.PoolEvent{Type: event.ConnectionReady, ConnectionID: c.id, Duration: now.Sub(c.created)})
		if replaced != nil {
			p.replace(replaced)
		}
		if w != nil {
			p.checkedOut(c, w.start)
		}
		p.dialMore(false)
		p.poke()
	}
	p.unlock()
	if reason != "" {
		sock.Close()
	}
	if replaced != nil {
		replaced.Conn.Close()
	}
	if w != nil {
		w.got <- delivery{conn: c}
	}
}

// dialFailed tells Failed first and the waiter last: when the waiter tries again, the view of the deployment is the one
// after the failure. A dial that the pool itself ended is nobody's failure.
func (p *Pool) dialFailed(c *Conn, err error) {
	p.mu.Lock()
	if c.where != pending {
		p.mu.Unlock()
		return
	}
	w := p.book.blame(c)
	p.dialErr, p.dialErrAt = err, time.Now()
	p.fillAt = p.dialErrAt.Add(fillRetry)
	p.unlock()
	if p.o.Failed != nil {
		p.o.Failed(err, c.gen, c.service)
	}
	p.mu.Lock()
	if c.where == pending { // Failed may have had the pool cleared, and the dials ended
		p.book.dialFailed(c)
		p.publish(event.PoolEvent{Type: event.ConnectionClosed, ConnectionID: c.id, Reason: event.ReasonError, Err: err})
	}
	if w != nil {
		p.failCheckOut(w.start, err)
	}
	p.dialMore(false)
	p.poke()
	p.unlock()
	if w != nil {
		w.got <- delivery{err: err}
	}
}

// poke wakes the maintainer. It never waits.
func (p *Pool) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// maintain is the body of the maintainer's goroutine: it closes what was idle for too long and keeps the minimum size.
func (p *Pool) maintain() {
	defer p.wg.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if next := p.tend(); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
		select {
		case <-p.ctx.Done():
			return
		case <-p.wake:
		case <-timer.C:
		}
	}
}

// tend does what is due and says when something will be due again, the zero time if only a wake can tell.
func (p *Pool) tend() (next time.Time) {
	now := time.Now()
	p.mu.Lock()
	drops, next := p.book.expire(now)
	p.publishDrops(drops)
	if now.Before(p.fillAt) {
		if p.book.status == ready && p.book.total() < p.book.min && (next.IsZero() || p.fillAt.Before(next)) {
			next = p.fillAt
		}
	} else {
		p.dialMore(true)
	}
	p.unlock()
	closeAll(drops)
	return next
}
