package operation_test

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/internal/wire"
)

// member is a scripted server on in-memory connections: it polls as hello says and answers commands as the test's
// answers say, one each, then with ok: 1.
type member struct {
	addr string

	mu      sync.Mutex
	hello   bson.D
	answers []answer
	got     []command
	refuse  error
	socks   []net.Conn
}

// answer is what happens to a command: a reply, or the end of the connection, after a pause.
type answer struct {
	reply  bson.D
	hangUp bool
	pause  time.Duration
	before func() // runs first
}

// command is what a member received.
type command struct {
	name  string
	body  bson.Raw
	seqs  []wire.Sequence
	flags uint32
}

func (c command) has(key string) bool { return !c.body.Lookup(key).IsZero() }

var all = []string{"a:1", "b:1", "c:1"}

func helloOf(addr, role string) bson.D {
	d := bson.D{
		{Key: "helloOk", Value: true}, {Key: "isWritablePrimary", Value: role == "primary" || role == "standalone" || role == "mongos"},
		{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 21}, {Key: "logicalSessionTimeoutMinutes", Value: 30},
	}
	switch role {
	case "mongos":
		return append(d, bson.E{Key: "msg", Value: "isdbgrid"})
	case "standalone":
		return d
	}
	return append(d, bson.E{Key: "secondary", Value: role == "secondary"}, bson.E{Key: "setName", Value: "rs"},
		bson.E{Key: "hosts", Value: all}, bson.E{Key: "me", Value: addr})
}

func (m *member) become(role string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hello = helloOf(m.addr, role)
}

func (m *member) crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, s := range m.socks {
		s.Close()
	}
}

// script queues answers.
func (m *member) script(list ...answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers = append(m.answers, list...)
}

// commands are those received since the last call.
func (m *member) commands() []command {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.got
	m.got = nil
	return out
}

func (m *member) serve(sock net.Conn) {
	defer sock.Close()
	for {
		head := make([]byte, wire.HeaderLen)
		if _, err := io.ReadFull(sock, head); err != nil {
			return
		}
		h, err := wire.CheckHeader(head, wire.MaxMessage)
		if err != nil {
			return
		}
		whole := append(head, make([]byte, h.Length-wire.HeaderLen)...)
		if _, err := io.ReadFull(sock, whole[wire.HeaderLen:]); err != nil {
			return
		}
		msg, err := wire.ParseMsg(whole)
		if err != nil {
			return
		}
		a := m.answerTo(msg)
		if a.before != nil {
			a.before()
		}
		time.Sleep(a.pause)
		if a.hangUp {
			return
		}
		if msg.Flags&wire.MoreToCome != 0 {
			continue
		}
		out, start := wire.AppendMsgStart(nil, 1, msg.RequestID, 0)
		out, err = bson.Append(out, a.reply)
		if err != nil {
			panic(err)
		}
		if _, err := sock.Write(wire.EndMsg(out, start)); err != nil {
			return
		}
	}
}

func (m *member) answerTo(msg wire.Msg) answer {
	var name string
	for key := range msg.Body.All() {
		name = key
		break
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == "hello" || name == "isMaster" {
		return answer{reply: append(slices.Clone(m.hello), bson.E{Key: "ok", Value: 1.0})}
	}
	m.got = append(m.got, command{name, msg.Body, msg.Sequences, msg.Flags})
	if len(m.answers) == 0 {
		return answer{reply: okReply()}
	}
	a := m.answers[0]
	m.answers = m.answers[1:]
	return a
}

func okReply(more ...bson.E) bson.D { return append(bson.D{{Key: "ok", Value: 1.0}}, more...) }

func failure(code int32, name string, labels ...string) answer {
	d := bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: "no: " + name}, {Key: "code", Value: code}, {Key: "codeName", Value: name}}
	if len(labels) > 0 {
		d = append(d, bson.E{Key: "errorLabels", Value: labels})
	}
	return answer{reply: d}
}

// deployment is members, a cluster and an executor over them.
type deployment struct {
	a, b, c *member // the set; a is the primary
	x       *operation.Executor
	cluster *cluster.Cluster
	members map[string]*member
}

func (d *deployment) dial(_ context.Context, _, addr string) (net.Conn, error) {
	m := d.members[addr]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse != nil {
		return nil, m.refuse
	}
	client, server := net.Pipe()
	m.socks = append(m.socks, server)
	go m.serve(server)
	return client, nil
}

// settings change a deployment before it starts.
type settings struct {
	roles   map[string]string // default: a primary, b and c secondaries
	cluster func(*cluster.Config)
	exec    func(*operation.Config)
	monitor *event.Monitor
}

// deploy runs a test over a deployment on fake time; the bubble fails if a goroutine is left at its end.
func deploy(t *testing.T, s settings, f func(t *testing.T, d *deployment)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if s.roles == nil {
			s.roles = map[string]string{"a:1": "primary", "b:1": "secondary", "c:1": "secondary"}
		}
		d := &deployment{members: map[string]*member{}}
		var seeds []string
		for addr, role := range s.roles {
			d.members[addr] = &member{addr: addr, hello: helloOf(addr, role)}
			seeds = append(seeds, addr)
		}
		d.a, d.b, d.c = d.members["a:1"], d.members["b:1"], d.members["c:1"]
		cfg := cluster.Config{Topology: topology.Config{Seeds: seeds}}
		cfg.Conn = conn.Options{Dial: d.dial, Metadata: conn.ClientMetadata("test")}
		if s.cluster != nil {
			s.cluster(&cfg)
		}
		d.cluster = cluster.New(cfg)
		defer d.cluster.Close(context.Background())
		xc := operation.Config{Cluster: d.cluster, RetryReads: true, RetryWrites: true, Monitor: s.monitor}
		if s.exec != nil {
			s.exec(&xc)
		}
		d.x = operation.New(xc)
		f(t, d)
	})
}
