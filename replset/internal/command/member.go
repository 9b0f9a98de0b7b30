package command

import (
	"context"
	"crypto/tls"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/compress"
	"github.com/sextantdb/sextant/replset/internal/repl"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// The configuration of a set, for whoever starts members.
type (
	// Config is the configuration of the set.
	Config = repl.Config
	// MemberConfig is one member of it.
	MemberConfig = repl.MemberConfig
	// Tag is a name and value of a member.
	Tag = repl.Tag
	// Role is what a member is.
	Role = repl.Role
	// Lost is a change that a rollback takes back.
	Lost = store.Lost
)

// Misbehave makes a member break a promise on purpose, to prove that checks catch it.
type Misbehave uint8

const (
	// Honest members keep their promises.
	Honest Misbehave = iota
	// LostWrite acknowledges w:majority before anybody else has the write, and lets others have it late.
	LostWrite
	// StaleTag reports the tags of Options.StaleTags in hello in place of the configured ones.
	StaleTag
	// TwoVotes grants its vote though it has voted for another in the same term.
	TwoVotes
	// ForgottenRetries executes a retried statement again.
	ForgottenRetries
)

// Options are what a member is started with.
type Options struct {
	Config   *Config
	Self     int    // the member's number among those of this process, for logs and faults
	Host     string // its address, by which the configuration knows it
	Disk     *Disk
	Listener net.Listener          // listening at Host; the member closes it
	IndexOf  func(host string) int // another member's number, -1 if it is none of this process; nil: nobody's is known
	Dial     func(ctx context.Context, addr string) (net.Conn, error)
	TLS      func() *tls.Config            // for the next client; nil: no TLS
	DialTLS  func(addr string) *tls.Config // for another member; nil: no TLS
	Logger   *slog.Logger
	Secret   string   // shared by the members: who knows it on a connection is a member
	Users    *Users   // nil: no authentication
	OIDC     *OIDC    // nil: no MONGODB-OIDC
	Persona  *Persona // the server version to claim; nil: the newest
	Router   *Router  // it is a service behind a load balancer; nil: it is a member of a set
	Faults   *Faults
	Counters *Counters

	Compressors []string // that clients may negotiate; nil: all

	KeepAside func([]Lost) error // takes what a rollback is about to take back; nil: nobody does

	Misbehave Misbehave
	StaleTags []Tag
	Detour    func() *Member // runs the commands of clients in this member's place, save hello and authentication; nil: itself
}

// Member is one running member.
type Member struct {
	Store *store.Store

	opt        Options
	log        *slog.Logger
	self       int
	disk       *Disk
	table      map[string]*Spec
	started    time.Time
	clock      clock
	links      links
	sessions   sessions
	cursors    cursorTable
	messages   budget
	complaints complaints
	outbox     outbox
	codec      *compress.Codec

	moments       moments
	failPoints    failPoints
	fetching      atomic.Bool // a configuration is being fetched
	reconfiguring atomic.Bool // a replSetReconfig is under way
	steppingDown  atomic.Bool // a replSetStepDown is

	node      *repl.Node // the owner's alone
	visits    chan visit
	written   chan struct{} // capacity 1: the store has new entries
	state     atomic.Pointer[topology]
	progress  atomic.Pointer[progress]
	following *following   // the owner's alone
	owed      []repl.Event // the owner's alone: events that the last following left
	kept      lostRange    // the following's alone: what the last rollback has kept aside

	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	crashed atomic.Bool // nothing is sent any more

	lastOp atomic.Int32 // number of the newest operation

	mu     sync.Mutex // guards conns, ended, lastID
	conns  map[*Conn]struct{}
	ended  bool
	lastID int64
}

// Open starts a member. It takes over o.Listener.
func Open(o Options) *Member {
	ctx, cancel := context.WithCancelCause(context.Background())
	if o.Persona == nil {
		o.Persona = &personas[0]
	}
	o.Config = o.Disk.newer(o.Config)
	m := &Member{
		Store: o.Disk.store, opt: o, log: slog.New(calm{o.Logger.Handler()}), self: o.Self, disk: o.Disk, table: commandTable(), started: time.Now(),
		visits: make(chan visit), written: make(chan struct{}, 1), ctx: ctx, cancel: cancel, conns: map[*Conn]struct{}{},
		codec: compress.New(compress.DefaultLevel),
	}
	applied := m.Store.Latest().OpTime()
	m.clock.advance(applied.TS)
	m.node = repl.New(o.Config, o.Host, o.Disk.loadVote(), repl.OpTime(applied), time.Now(), rand.Float64)
	m.state.Store(&topology{Topology: m.node.Topology(), processID: bson.NewObjectID(), changed: make(chan struct{})})
	m.progress.Store(&progress{Progress: m.node.Progress(), changed: make(chan struct{})})
	m.wg.Add(2)
	go m.own()
	go m.accept()
	if m.disk.journal != nil {
		m.wg.Add(1)
		go m.keep()
	}
	return m
}

// Close ends the member in an orderly way: commands in progress are answered with InterruptedAtShutdown, and
// everything that it started has ended when Close returns.
func (m *Member) Close() { m.end(false) }

// Kill ends the member as a crash would: connections are cut in the middle of whatever they carry, and what is not in
// the data file yet, if the member has one, does not get there. A Disk in memory can be opened again; the file of any
// other can, by OpenDisk.
func (m *Member) Kill() { m.end(true) }

func (m *Member) end(crash bool) {
	m.stop(crash)
	m.wg.Wait()
	for _, n := range m.complaints.last() {
		m.sumUp(n)
	}
	m.cursors.closeAll()
	if err := m.disk.Close(m.crashed.Load()); err != nil {
		m.log.Error("the data file was not closed well", "member", m.self, "error", err)
	}
}

// stop makes everything that the member has started end, and does not wait for it.
func (m *Member) stop(crash bool) {
	m.mu.Lock()
	first := !m.ended
	m.ended = true
	conns := make([]*Conn, 0, len(m.conns))
	for c := range m.conns {
		conns = append(conns, c)
	}
	m.mu.Unlock()
	if first {
		m.crashed.Store(crash)
		m.shutDoor() // first: who is cut off must not come in again by a door that is still open
		if crash {   // nothing that a waiting command says when it is interrupted may still leave
			for _, c := range conns {
				c.end(true)
			}
		}
		m.cancel(errShutdown)
		for _, c := range conns {
			c.end(crash)
		}
		for _, l := range m.allLinks() {
			l.close()
		}
		m.complaints.rest(m)
	}
}

func (m *Member) shutDoor() {
	defer m.survive("closing the listener")
	_ = m.opt.Listener.Close()
}

// Ended says whether the member has ended or is about to: it was closed, killed, or could not go on.
func (m *Member) Ended() bool { return m.closing() }

func (m *Member) closing() bool { return m.ctx.Err() != nil }

// Addr is the address that the configuration gives the member.
func (m *Member) Addr() string { return m.opt.Host }

// Config is the member's present configuration.
func (m *Member) Config() *Config { return m.state.Load().Config }
