package cluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sextantdb/sextant/event"
)

// queueLimit is the number of events that wait for slow callbacks before further ones are dropped.
const queueLimit = 4096

// Log takes what the cluster has to say for the components connection, topology and serverSelection.
type Log struct {
	// Wants says whether records of a component and a level are wanted now. It must be quick. It is called without a lock.
	Wants func(component string, level slog.Level) bool
	// Take takes a *event.PoolEvent, *event.HeartbeatEvent, *event.TopologyEvent, *event.SelectionEvent, *event.PinEvent or Dropped, with the
	// time at which it happened, on a goroutine of the cluster's, one after the other.
	Take func(at time.Time, e any)
}

// Dropped is the number of events that were not logged, since the log is too slow.
type Dropped int64

// Components of the log (logging specification).
const (
	LogConnection = "connection"
	LogTopology   = "topology"
	LogSelection  = "serverSelection"
)

// publishing tells the user's callbacks and the log what happens. Each of the two has a goroutine of its own, so that
// neither waits for the other.
type publishing struct {
	m          event.Monitor
	user       *publisher
	log        *Log
	book       *publisher
	confessed  int64       // of the log's goroutine: how many dropped events it has told of
	connection atomic.Bool // the log wants what pools do: looked up when no lock is held
}

func newPublishing(m *event.Monitor, log *Log, panicked func(callback string, value any)) *publishing {
	p := &publishing{log: log}
	if m != nil {
		p.m = *m
	}
	var call func(queued)
	if p.m.Pool != nil || p.m.Heartbeat != nil || p.m.TopologyChanged != nil || p.m.Selection != nil || p.m.PinMoved != nil {
		call = func(q queued) { p.callback(q.e, panicked) }
	}
	p.user = newPublisher(call)
	var take func(queued)
	if log != nil {
		take = p.note
	}
	p.book = newPublisher(take)
	p.look()
	return p
}

// note logs an event, and how many before it could not be.
func (p *publishing) note(q queued) {
	if n := p.book.dropped.Load(); n > p.confessed {
		p.log.Take(time.Now(), Dropped(n-p.confessed))
		p.confessed = n
	}
	p.log.Take(q.at, q.e)
}

// look notes whether pools are to be logged. Operations and monitors call it, so that a level that was changed holds
// from their next turn on.
func (p *publishing) look() {
	if p.log != nil {
		if on := p.log.Wants(LogConnection, slog.LevelDebug); on != p.connection.Load() {
			p.connection.Store(on)
		}
	}
}

// callback calls the user's callback, and keeps its panic from the client.
func (p *publishing) callback(e any, panicked func(string, any)) {
	name := ""
	defer func() {
		if v := recover(); v != nil && panicked != nil {
			panicked(name, v)
		}
	}()
	switch e := e.(type) {
	case *event.PoolEvent:
		name = "Pool"
		p.m.Pool(e)
	case *event.HeartbeatEvent:
		name = "Heartbeat"
		p.m.Heartbeat(e)
	case *event.TopologyEvent:
		name = "TopologyChanged"
		p.m.TopologyChanged(e)
	case *event.SelectionEvent:
		name = "Selection"
		p.m.Selection(e)
	case *event.PinEvent:
		name = "PinMoved"
		p.m.PinMoved(e)
	}
}

// wants says whether an event of a component is logged.
func (p *publishing) wants(component string, level slog.Level) bool {
	return p.log != nil && p.log.Wants(component, level)
}

// poolFunc is what pools publish with, nil if nobody ever listens.
func (p *publishing) poolFunc() func(*event.PoolEvent) {
	if p.m.Pool == nil && p.log == nil {
		return nil
	}
	return func(e *event.PoolEvent) {
		if p.m.Pool != nil {
			p.user.push(e)
		}
		if p.connection.Load() {
			p.book.push(e)
		}
	}
}

// pools says whether somebody listens to pools now.
func (p *publishing) pools() bool { return p.m.Pool != nil || p.connection.Load() }

func (p *publishing) heartbeat(e event.HeartbeatEvent) {
	if p.m.Heartbeat != nil {
		p.user.push(&e)
	}
	if p.wants(LogTopology, slog.LevelDebug) {
		p.book.push(&e)
	}
}

func (p *publishing) topology(e *event.TopologyEvent) {
	if p.m.TopologyChanged != nil {
		p.user.push(e)
	}
	if p.wants(LogTopology, slog.LevelDebug) {
		p.book.push(e)
	}
}

// selections says whether somebody listens to every selection.
func (p *publishing) selections() bool {
	return p.m.Selection != nil || p.wants(LogSelection, slog.LevelDebug)
}

// selection tells of a step, with the topology at that moment. That an operation has to wait is logged at the level
// Info, all else at Debug (server selection specification).
func (p *publishing) selection(e event.SelectionEvent, now func() *view) {
	level := slog.LevelDebug
	if e.Type == event.SelectionWaiting {
		level = slog.LevelInfo
	}
	told, logged := p.m.Selection != nil, p.wants(LogSelection, level)
	if !told && !logged {
		return
	}
	e.Topology = now().topology()
	if told {
		p.user.push(&e)
	}
	if logged {
		p.book.push(&e)
	}
}

func (p *publishing) pin(e event.PinEvent) {
	if p.m.PinMoved != nil {
		p.user.push(&e)
	}
	if p.wants(LogSelection, slog.LevelInfo) {
		p.book.push(&e)
	}
}

func (p *publishing) start() {
	p.user.start()
	p.book.start()
}

func (p *publishing) close(ctx context.Context) error {
	return cmp.Or(p.user.close(ctx), p.book.close(ctx))
}

// queued is an event and when it happened.
type queued struct {
	at time.Time
	e  any
}

// publisher hands events on, on a goroutine of its own, in the order in which they happened. Whoever has an event never
// waits for it.
type publisher struct {
	call    func(queued)  // nil: nobody listens
	wake    chan struct{} // capacity 1
	stop    chan struct{}
	done    chan struct{}
	dropped atomic.Int64

	mu    sync.Mutex // guards queue
	queue []queued
}

func newPublisher(call func(queued)) *publisher {
	return &publisher{call: call, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
}

func (p *publisher) start() {
	if p.call != nil {
		go p.run()
	} else {
		close(p.done)
	}
}

// close tells what is still queued and ends the goroutine. A callback that does not return is left behind hangGrace after
// ctx has ended: an error.
func (p *publisher) close(ctx context.Context) error {
	close(p.stop)
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	grace := time.NewTimer(hangGrace)
	defer grace.Stop()
	select {
	case <-p.done:
		return nil
	case <-grace.C:
		return fmt.Errorf("the client is closed, but a callback of its events, or its log, has not returned: %w", ctx.Err())
	}
}

func (p *publisher) push(e any) {
	q := queued{time.Now(), e}
	p.mu.Lock()
	full := len(p.queue) >= queueLimit
	if !full {
		p.queue = append(p.queue, q)
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

// run is the body of a publisher's goroutine.
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

// tell hands on everything queued.
func (p *publisher) tell() {
	for {
		p.mu.Lock()
		batch := p.queue
		p.queue = nil
		p.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, q := range batch {
			p.call(q)
		}
	}
}
