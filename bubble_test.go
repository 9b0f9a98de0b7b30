package sextant_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/replset"
)

// bubble is an embedded set of three and a client of it on fake time and a network in memory: what takes no time in the
// set takes none here, so that every figure is the driver's, or the set's elections'.
type bubble struct {
	set     *replset.Set
	cl      *sextant.Client
	start   time.Time // since when at counts
	log     events
	dialled sockets
	dial    dialFunc // uncounted
}

// inBubble runs a test in a bubble. Nothing may be left of the client at its end. change may be nil.
func inBubble(t *testing.T, change func(*replset.Options, *sextant.Config), f func(t *testing.T, b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := replset.NewMemoryNetwork()
		o := replset.Options{Members: 3, Network: network}
		b := &bubble{}
		cfg := &sextant.Config{AppName: "app", Dial: network.Dial, Monitor: b.log.monitor()}
		if change != nil {
			change(&o, cfg)
		}
		b.dial = cfg.Dial
		cfg.Dial = b.dialled.count(cfg.Dial)
		b.set = replset.Run(t, o)
		uri, err := sextant.ParseURI(b.set.URI())
		if err != nil {
			t.Fatal(err)
		}
		if len(cfg.Hosts) == 0 {
			cfg.Hosts, cfg.ReplicaSet = uri.Hosts, uri.ReplicaSet
		}
		if b.cl, err = sextant.ConnectConfig(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		defer b.cl.Close(context.Background()) // not a Cleanup: the set closes in one, and clients go first
		b.start = time.Now()
		f(t, b)
	})
}

// at is the time since the start of the experiment.
func (b *bubble) at() time.Duration { return time.Since(b.start) }

// await waits, looking every millisecond, until cond holds, and says at which time it did.
func (b *bubble) await(t *testing.T, limit time.Duration, what string, cond func() bool) time.Duration {
	t.Helper()
	for end := time.Now().Add(limit); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, limit)
		}
	}
	return b.at()
}

// primaryOtherThan says whether a member other than i takes writes.
func (b *bubble) primaryOtherThan(i int) func() bool {
	return func() bool {
		p := b.set.Primary()
		return p != nil && p.Index() != i
	}
}

// member is what the client knows about member i.
func (b *bubble) member(i int) event.Member {
	m, _ := b.cl.Hosts().Member(b.set.Member(i).Addr())
	return m
}

// told is an event of a client and when it was told.
type told[E any] struct {
	E  E
	At time.Time
}

// events keeps what a client told its Monitor.
type events struct {
	mu       sync.Mutex // guards all below
	pool     []told[event.PoolEvent]
	beats    []told[event.HeartbeatEvent]
	topology []told[event.TopologyEvent]
	order    []string // the types of pool and heartbeat events
	commands []ranCommand
	after    func(name string, err error) // runs when a command is over, on its goroutine; set before the first one
}

// ranCommand is a command that a client sent.
type ranCommand struct {
	name, server string
	failed       bool
	begun, ended time.Time
}

// sent are the commands of a name since a moment.
func (l *events) sent(name string, since time.Time) (out []ranCommand) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.commands {
		if c.name == name && !c.begun.Before(since) {
			out = append(out, c)
		}
	}
	return out
}

func (l *events) over(name, server string, took time.Duration, err error) {
	l.mu.Lock()
	now := time.Now()
	l.commands = append(l.commands, ranCommand{name, server, err != nil, now.Add(-took), now})
	l.mu.Unlock()
	if l.after != nil {
		l.after(name, err)
	}
}

// firstOf is the type that was told first.
func (l *events) firstOf(types ...string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.IndexFunc(l.order, func(s string) bool { return slices.Contains(types, s) }); i >= 0 {
		return l.order[i]
	}
	return ""
}

func keep[E any](l *events, list *[]told[E], e *E, kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order = append(l.order, kind)
	*list = append(*list, told[E]{*e, time.Now()})
}

func (l *events) monitor() *event.Monitor {
	return &event.Monitor{
		CommandSucceeded: func(_ context.Context, e *event.CommandSucceededEvent) { l.over(e.Name, e.Server, e.Duration, nil) },
		CommandFailed:    func(_ context.Context, e *event.CommandFailedEvent) { l.over(e.Name, e.Server, e.Duration, e.Err) },
		Pool:             func(e *event.PoolEvent) { keep(l, &l.pool, e, string(e.Type)) },
		Heartbeat:        func(e *event.HeartbeatEvent) { keep(l, &l.beats, e, string(e.Type)) },
		TopologyChanged:  func(e *event.TopologyEvent) { keep(l, &l.topology, e, string(e.Type)) },
	}
}

// pools are the events of a type of the pool of an address, since the time.
func (l *events) pools(kind event.PoolEventType, addr string, since time.Time) (out []told[event.PoolEvent]) {
	synctest.Wait() // for the publisher
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.pool {
		if e.E.Type == kind && e.E.Address == addr && !e.At.Before(since) {
			out = append(out, e)
		}
	}
	return out
}

// firstBeat waits for a heartbeat event of a type and an address since a moment.
func (l *events) firstBeat(t *testing.T, kind event.HeartbeatType, addr string, since time.Time) told[event.HeartbeatEvent] {
	t.Helper()
	for range 60_000 {
		l.mu.Lock()
		for _, e := range l.beats {
			if e.E.Type == kind && e.E.Address == addr && !e.At.Before(since) {
				l.mu.Unlock()
				return e
			}
		}
		l.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("no %s of %s within a minute", kind, addr)
	return told[event.HeartbeatEvent]{}
}

// sockets counts the connections that a client has open, by address.
type sockets struct {
	mu sync.Mutex // guards n
	n  map[string]int
}

func (s *sockets) add(addr string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == nil {
		s.n = map[string]int{}
	}
	s.n[addr] += n
}

func (s *sockets) open(addr string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n[addr]
}

type dialFunc = func(context.Context, string, string) (net.Conn, error)

func (s *sockets) count(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		s.add(addr, 1)
		return &counted{Conn: nc, closed: func() { s.add(addr, -1) }}, nil
	}
}

type counted struct {
	net.Conn
	once   sync.Once
	closed func()
}

func (c *counted) Close() error {
	c.once.Do(c.closed)
	return c.Conn.Close()
}

// slowDial is a network whose connections take a while to open.
func slowDial(n *replset.MemoryNetwork, d time.Duration) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		time.Sleep(d)
		return n.Dial(ctx, network, addr)
	}
}

// connected are the ends of one connection in memory, which holds what was not read yet, as a socket does and net.Pipe
// does not: over that a TLS server whose session ticket nobody reads waits for its client, and the client for it.
func connected() (near, far net.Conn, err error) {
	network := replset.NewMemoryNetwork()
	l, err := network.Listen(context.Background(), "server:1")
	if err != nil {
		return nil, nil, err
	}
	if near, err = network.Dial(context.Background(), "tcp", "server:1"); err != nil {
		return nil, nil, err
	}
	far, err = l.Accept()
	return near, far, err
}
