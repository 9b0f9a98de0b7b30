// Package cluster is the shell round the topology: one goroutine owns the Description and does what it asks; a monitor
// a member keeps it current; operations select from it.
//
// Goroutines of a Cluster, from Start to Close: one owner; one monitor a member, and one more to measure round trips
// while the member streams its state; the dials and the maintainer of each member's pool; a closer for the pool of each
// member that left; one that looks into DNS for hosts that came or went, while the deployment may be a sharded cluster that DNS lists;
// a publisher each for callbacks and for the log. Close ends them all and waits. A Cluster is safe for concurrent
// use.
//
// Invariant: who reports an event waits until the view made from it can be seen and its effects on pools are done, so
// that a retry never works with the view from before its own error.
package cluster

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/topology"
)

// Monitoring modes (serverMonitoringMode).
const (
	ModeAuto   = "auto"   // stream, except on a platform that freezes idle processes
	ModePoll   = "poll"   // ask at every heartbeat
	ModeStream = "stream" // let the member tell of changes at once
)

// Defaults of Config.
const (
	DefaultServerSelectionTimeout = 30 * time.Second
	DefaultConnectTimeout         = 10 * time.Second
	DefaultMaxPoolSize            = 100
)

// Config is what a Cluster is made of. Zero values mean the defaults, except where it is said.
type Config struct {
	Topology topology.Config
	Conn     conn.Options // of connections for operations; monitors use it without the credential

	ServerSelectionTimeout time.Duration  // 30 s
	ConnectTimeout         *time.Duration // 10 s; 0 is no limit
	MonitoringMode         string         // ModeAuto
	HeartbeatTimeout       time.Duration  // silence after which a member counts as hung; 0: as connectTimeoutMS and heartbeat have it

	FailFast bool // end a selection at once where every member fails for a cause that lasts

	MaxPoolSize   *int          // 100; 0 is no limit
	MinPoolSize   int           // 0
	MaxConnecting int           // 2
	MaxIdleTime   time.Duration // 0, no limit
	WaitTimeout   time.Duration // waitQueueTimeoutMS; 0, no limit

	SRV *SRV // where the seeds came from, if from DNS; nil: the seeds are fixed

	ID       bson.ObjectID                    // of the topology, in events and in the log
	Monitor  *event.Monitor                   // pool, heartbeat, topology and selection callbacks; nil: none
	Log      *Log                             // nil: nothing is logged
	Panicked func(callback string, value any) // is told of callbacks that panic; may be nil
}

func (c *Config) complete() {
	if c.Topology.HeartbeatInterval == 0 {
		c.Topology.HeartbeatInterval = topology.DefaultHeartbeatInterval
	}
	if c.ServerSelectionTimeout == 0 {
		c.ServerSelectionTimeout = DefaultServerSelectionTimeout
	}
	if c.ConnectTimeout == nil {
		c.ConnectTimeout = new(DefaultConnectTimeout)
	}
	if c.MaxPoolSize == nil {
		c.MaxPoolSize = new(DefaultMaxPoolSize)
	}
	c.Conn.ConnectTimeout = *c.ConnectTimeout
}

// Cluster is the deployment as one client sees it.
type Cluster struct {
	cfg       Config
	streaming bool          // the monitoring mode allows it
	pace      time.Duration // between signs of life of a member
	gap       time.Duration // between two pulses, beyond which the process must have stood still
	pulse     atomic.Int64  // when a monitor last showed that the process runs: nanoseconds of the wall clock, 0 if none did
	publisher *publishing

	view     atomic.Pointer[view]
	inbox    chan report
	ctx      context.Context // of the monitors and of who follows DNS
	cancel   context.CancelFunc
	monitors sync.WaitGroup // added to by Start, the owner and monitors only, so never after the owner began to wait
	dials    sync.WaitGroup // those of the caller's Dial; added to by monitors and pools, so never after they have ended
	closers  sync.WaitGroup // of the pools of members that left; added to by the owner only

	mu       sync.Mutex // guards what follows; never held across a wait
	started  atomic.Bool
	closed   atomic.Bool
	closeCtx context.Context // limits Close; written before closing is closed
	closing  chan struct{}   // closed by Close
	ended    chan struct{}   // closed when the owner has ended
}

// view is the Description and what belongs to it, at one moment. It never changes; changed is closed when there is a
// newer one.
type view struct {
	desc    *topology.Description
	servers map[string]*Server
	changed chan struct{}
	memory  candidates

	once   sync.Once
	public event.Topology // see topology
}

// topology is the view for events of selections. Nobody may change it.
func (v *view) topology() event.Topology {
	v.once.Do(func() { v.public = v.desc.View() })
	return v.public
}

// New makes a Cluster. It does no I/O and starts no goroutine: Start, or the first Select, does.
func New(cfg Config) *Cluster {
	cfg.complete()
	c := &Cluster{
		cfg: cfg, streaming: streamingAllowed(cfg.MonitoringMode), pace: cfg.pace(), gap: cfg.longestGap(),
		publisher: newPublishing(cfg.Monitor, cfg.Log, cfg.Panicked),
		inbox:     make(chan report), closing: make(chan struct{}), ended: make(chan struct{}),
	}
	c.cfg.Conn.Apart = c.dials.Go
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.view.Store(&view{desc: topology.New(cfg.Topology, time.Time{}), changed: make(chan struct{})})
	return c
}

// Start begins to monitor the deployment. Further calls, and calls after Close, do nothing.
func (c *Cluster) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started.Load() || c.closed.Load() {
		return
	}
	c.started.Store(true)
	c.publisher.start()
	c.open()
	if c.cfg.SRV != nil && !c.cfg.Topology.LoadBalanced {
		c.monitors.Go(c.followSRV)
	}
	go c.run()
}

// closeGrace bounds how long Close lets operations in flight end by themselves.
const closeGrace = 10 * time.Second

// hangGrace is the time that goroutines have to end when nothing holds them any more.
const hangGrace = time.Second

// Close ends all monitoring and closes all connections. Whoever waits for a member or a connection fails with
// mongoerr.ErrClientClosed. Operations in flight may end by themselves until ctx ends, but no longer than ten
// seconds; then their connections are closed. It returns when every goroutine has ended, or with an error a second after
// that, when a function of the caller's, such as Dial or an event's callback, does not come back; further calls do nothing.
func (c *Cluster) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeGrace)
	defer cancel()
	c.mu.Lock()
	if c.closed.Load() {
		c.mu.Unlock()
		return nil
	}
	c.closed.Store(true)
	c.closeCtx = ctx
	close(c.closing)
	started := c.started.Load()
	c.mu.Unlock()
	c.cancel()
	if !started {
		return nil
	}
	return cmp.Or(c.awaitEnd(ctx), c.publisher.close(ctx))
}

// awaitEnd waits for all goroutines. Once ctx has ended nothing of the driver's waits any more: after hangGrace only a
// function of the caller's can be what still runs.
func (c *Cluster) awaitEnd(ctx context.Context) error {
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
	}
	grace := time.NewTimer(hangGrace)
	defer grace.Stop()
	select {
	case <-c.ended:
		return nil
	case <-grace.C:
		return fmt.Errorf("the client is closed, but a function of its configuration, such as Dial, has not returned: %w", ctx.Err())
	}
}

// Closing is closed as soon as Close is called.
func (c *Cluster) Closing() <-chan struct{} { return c.closing }

// Description is the present view.
func (c *Cluster) Description() *topology.Description { return c.view.Load().desc }

// Topology is the present view for the user, with the pools' numbers.
func (c *Cluster) Topology() event.Topology {
	v := c.view.Load()
	t := v.desc.View()
	for i := range t.Members {
		m := &t.Members[i]
		m.Dialled, _, _ = c.cfg.Conn.Mapped(m.Address)
		if s := v.servers[m.Address]; s != nil {
			m.Pool = s.pool.Stats()
		}
	}
	return t
}

// Dropped is the number of events that were not told because the callbacks were too slow.
func (c *Cluster) Dropped() int64 { return c.publisher.user.dropped.Load() }

// chance is the randomness of selections.
func chance(n int) int { return rand.IntN(n) }
