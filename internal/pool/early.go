package pool

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/mongoerr"
)

// early is a dial that begins before the pool may hold a connection: beside the first check of the member's monitor, while
// somebody waits to hear what the member is. It is in no ledger and tells no events. The first dial that the ledger asks
// for takes it over, so that it has a head start of a round trip or more; if none does, the socket is closed.
type early struct {
	cancel context.CancelFunc
	taken  chan struct{} // closed when a dial took it over
	done   chan struct{} // closed when sock or err is set
	sock   *conn.Conn
	err    error
}

// earlyKeep is how long an open connection waits for a dial to take it over.
const earlyKeep = time.Second

// Prepare begins a dial ahead of time, once in the life of a pool that has never been ready.
func (p *Pool) Prepare() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.prepared || p.book.status != paused || p.book.gen > 0 || p.tended || p.book.lastID > 0 {
		return
	}
	p.prepared = true
	ctx, cancel := context.WithCancel(p.ctx)
	p.early = &early{cancel: cancel, taken: make(chan struct{}), done: make(chan struct{})}
	p.wg.Add(1)
	go p.openEarly(ctx, p.early)
}

// Withdraw ends what Prepare began, if no dial has taken it over: the member is not the right one.
func (p *Pool) Withdraw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropEarly()
}

// dropEarly is called under mu.
func (p *Pool) dropEarly() {
	if p.early != nil {
		p.early.cancel()
		p.early = nil
	}
}

// openEarly is the body of an early dial's goroutine.
func (p *Pool) openEarly(ctx context.Context, e *early) {
	defer p.wg.Done()
	defer e.cancel()
	e.sock, e.err = p.o.Open(ctx, nil) // never behind a load balancer, where pools are ready at once
	close(e.done)
	keep := time.NewTimer(earlyKeep)
	defer keep.Stop()
	select {
	case <-e.taken:
	case <-keep.C:
	case <-ctx.Done():
	}
	p.mu.Lock()
	if p.early == e {
		p.early = nil
	}
	p.mu.Unlock()
	select {
	case <-e.taken:
	default:
		if e.sock != nil {
			e.sock.Close()
		}
	}
}

// takeEarly hands, under mu, the early dial over to a dial of the ledger; nil if there is none that would help. One that
// failed before anybody needed it is forgotten, except for a login: it would fail again, and count twice.
func (p *Pool) takeEarly() *early {
	e := p.early
	if e == nil {
		return nil
	}
	select {
	case <-e.done:
		if e.err != nil && !mongoerr.IsAuth(e.err) {
			return nil
		}
	default:
	}
	p.early = nil
	close(e.taken)
	return e
}

// open is a connection for a dial of the ledger: the early one, or a new one.
func (p *Pool) open(ctx context.Context, c *Conn, e *early) (*conn.Conn, error) {
	if e == nil {
		return p.o.Open(ctx, func(service bson.ObjectID) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.book.greeted(c, service)
		})
	}
	select {
	case <-e.done:
	case <-ctx.Done():
		e.cancel()
		<-e.done
	}
	if e.err == nil && ctx.Err() != nil {
		e.sock.Close()
		return nil, ctx.Err()
	}
	return e.sock, e.err
}
