package replset

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/command"
)

// Member is one member of a set.
type Member struct {
	set      *Set
	index    int
	addr     string
	place    command.Place // where it was asked to be
	faults   *command.Faults
	counters *command.Counters

	mu       sync.Mutex // guards all below
	disk     *command.Disk
	running  *command.Member
	changing bool      // a Kill or Restart is in progress
	gone     bool      // it could not be added
	held     io.Closer // keeps its port while it is dead, where that can be done
	aside    []RolledBack
}

// Addr is the address that the member advertises and listens at, "127.0.0.1:41234".
func (m *Member) Addr() string { return m.addr }

// Index is the member's number in the set, from 0. It stays taken when the member is removed.
func (m *Member) Index() int { return m.index }

// State is the member's state in the server's words: STARTUP before it has a configuration, STARTUP2 while it copies all
// data, PRIMARY, SECONDARY, ARBITER, ROLLBACK, RECOVERING, REMOVED; or DOWN after Kill, or when it has ended by itself,
// since its data file failed or something in it panicked: then too Kill and Restart bring it back.
func (m *Member) State() string {
	if r := m.current(); r != nil && !r.Ended() {
		return r.Role().String()
	}
	return "DOWN"
}

// Tags are the tags that the set's configuration gives the member.
func (m *Member) Tags() map[string]string {
	cfg := m.set.config()
	tags := map[string]string{}
	if mine := cfg.At(m.addr); mine != nil {
		for _, t := range mine.Tags {
			tags[t.Name] = t.Value
		}
	}
	return tags
}

// OpCounters counts the commands that this member itself has run for a client application, by name, since the set
// started: a test knows by them who really answered. The count outlives Kill.
func (m *Member) OpCounters(appName string) map[string]int64 { return m.counters.Of(appName) }

// current is the running member, or nil.
func (m *Member) current() *command.Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running
}

// data is the member's disk.
func (m *Member) data() *command.Disk {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.disk
}

// insert gives the member another disk.
func (m *Member) insert(d *command.Disk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disk = d
}

// take claims the member for a change of whether it runs.
func (m *Member) take(running bool) (*command.Member, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.gone:
		return nil, fmt.Errorf("replset: member %d could not be added", m.index)
	case m.changing:
		return nil, fmt.Errorf("replset: member %d is being killed or restarted already", m.index)
	case running && m.running == nil:
		return nil, fmt.Errorf("replset: member %d is not running", m.index)
	case !running && m.running != nil:
		return nil, fmt.Errorf("replset: member %d is running already", m.index)
	}
	m.changing = true
	return m.running, nil
}

// leave claims a member that could not be added for its end, unless it is being changed.
func (m *Member) leave() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changing {
		return false
	}
	m.gone = true
	return true
}

func (m *Member) put(running *command.Member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running, m.changing = running, false
}

// listensAt is the address to listen at: on TCP, the one that it advertises may have another name.
func (m *Member) listensAt() string {
	if _, real := m.set.opt.Network.(tcp); !real {
		return m.addr
	}
	_, port, _ := net.SplitHostPort(m.addr)
	return net.JoinHostPort(m.set.opt.Host, port)
}

// hold keeps the port of a member that is dead, until letGo: another program's listener there, or one of another set,
// would have it pass for alive.
func (m *Member) hold() {
	if _, real := m.set.opt.Network.(tcp); !real {
		return
	}
	held, err := holdPort(m.listensAt())
	if err != nil {
		return // as good as it was without
	}
	m.mu.Lock()
	m.held = held
	m.mu.Unlock()
	if m.set.isClosed() { // Close may have come in between and not have seen it
		m.letGo()
	}
}

func (m *Member) letGo() {
	m.mu.Lock()
	held := m.held
	m.held = nil
	m.mu.Unlock()
	if held != nil {
		_ = held.Close()
	}
}

// FailCommand makes commands fail, as the server's fail point failCommand does. Zero fields have no effect.
type FailCommand struct {
	Commands          []string      // names as clients send them; hello does not match isMaster
	Times             int           // how many matching commands fail; 0: all
	Skip              int           // how many matching commands pass first
	ErrorCode         int32         // answer this error and do not run the command
	ErrorLabels       []string      // in place of the server's own labels; empty and not nil: none
	CloseConnection   bool          // close the connection and do not run the command
	Block             time.Duration // wait before anything else
	WriteConcernError *WriteConcernError
	AppName           string // only this client application's commands
	Namespace         string // only commands on this "db.collection"
}

// WriteConcernError is what a reply says in its field of that name, after the write was done.
type WriteConcernError struct {
	Code    int32
	Message string
}

func (f *FailCommand) point() *command.FailCommand {
	if f == nil || len(f.Commands) == 0 {
		return nil
	}
	p := &command.FailCommand{Commands: f.Commands, Times: f.Times, Skip: f.Skip, ErrorCode: f.ErrorCode, ErrorLabels: f.ErrorLabels,
		CloseConnection: f.CloseConnection, Block: f.Block, AppName: f.AppName, Namespace: f.Namespace}
	if w := f.WriteConcernError; w != nil {
		dst, start := bson.BeginDocument(nil)
		dst = bson.AppendInt32(dst, "code", w.Code)
		dst = bson.AppendString(dst, "errmsg", w.Message)
		p.WriteConcernError = bson.EndDocument(dst, start)
	}
	return p
}
