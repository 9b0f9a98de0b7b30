package cluster

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sextantdb/sextant/event"
)

// queueLimit is the number of events that wait for slow callbacks before further ones are dropped.
const queueLimit = 4096

// publisher calls the user's callbacks for pools, heartbeats, topology and selections on a goroutine of its own, in the
// order in which the events happened. Whoever has an event never waits for it. A nil Monitor makes it do nothing.
type publisher struct {
	m       event.Monitor
	active  bool
	wake    chan struct{} // capacity 1
	stop    chan struct{}
	done    chan struct{}
	dropped atomic.Int64

	mu    sync.Mutex // guards queue
	queue []any
}

func newPublisher(m *event.Monitor) *publisher {
	p := &publisher{wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	if m != nil {
		p.m = *m
	}
	p.active = p.m.Pool != nil || p.m.Heartbeat != nil || p.m.TopologyChanged != nil || p.m.Selection != nil || p.m.PinMoved != nil
	return p
}

func (p *publisher) start() {
	if p.active {
		go p.run()
	} else {
		close(p.done)
	}
}

// close tells what is still queued and ends the goroutine. A callback that does not return is left behind when ctx ends.
func (p *publisher) close(ctx context.Context) {
	close(p.stop)
	select {
	case <-p.done:
	case <-ctx.Done():
	}
}

func (p *publisher) push(e any) {
	p.mu.Lock()
	full := len(p.queue) >= queueLimit
	if !full {
		p.queue = append(p.queue, e)
	}
	p.mu.Unlock()
	if full {
		p.dropped.Add(1)
		return
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// poolFunc is what pools publish with, nil if nobody listens.
func (p *publisher) poolFunc() func(*event.PoolEvent) {
	if p.m.Pool == nil {
		return nil
	}
	return func(e *event.PoolEvent) { p.push(e) }
}

func (p *publisher) heartbeat(e event.HeartbeatEvent) {
	if p.m.Heartbeat != nil {
		p.push(&e)
	}
}

func (p *publisher) topology(e *event.TopologyEvent) {
	if p.m.TopologyChanged != nil {
		p.push(e)
	}
}

func (p *publisher) selection(e event.SelectionEvent) {
	if p.m.Selection != nil {
		p.push(&e)
	}
}

func (p *publisher) pin(e event.PinEvent) {
	if p.m.PinMoved != nil {
		p.push(&e)
	}
}

// run is the body of the publisher's goroutine.
func (p *publisher) run() {
	defer close(p.done)
	for {
		p.tell()
		select {
		case <-p.wake:
		case <-p.stop:
			p.tell()
			return
		}
	}
}

// tell calls the callbacks for everything queued.
func (p *publisher) tell() {
	for {
		p.mu.Lock()
		batch := p.queue
		p.queue = nil
		p.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, e := range batch {
			p.call(e)
		}
	}
}

// call keeps a callback's panic from the client.
func (p *publisher) call(e any) {
	defer func() { _ = recover() }()
	switch e := e.(type) {
	case *event.PoolEvent:
		p.m.Pool(e)
	case *event.HeartbeatEvent:
		p.m.Heartbeat(e)
	case *event.TopologyEvent:
		p.m.TopologyChanged(e)
	case *event.SelectionEvent:
		p.m.Selection(e)
	case *event.PinEvent:
		p.m.PinMoved(e)
	}
}
