package cluster_test

import (
	"context"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
)

// script is a deployment of scripted members on in-memory connections.
type script struct {
	mu      sync.Mutex
	members map[string]*member
}

// member answers hello as its fields say and every other command with ok: 1.
type member struct {
	addr string

	mu      sync.Mutex
	hello   bson.D // without topologyVersion and ok
	streams bool   // tells a topologyVersion
	counter int64
	changed chan struct{}
	refuse  error // of a dial
	hung    bool  // answers nothing
	once    bool  // hangs up after one answer
	delay   time.Duration
	socks   map[net.Conn]bool
	dials   int
	hellos  int
	apps    []string // names of clients' commands, hello excluded
	strange bson.D   // what to answer to hello instead
}

func newScript(members ...*member) *script {
	s := &script{members: map[string]*member{}}
	for _, m := range members {
		m.changed, m.socks = make(chan struct{}), map[net.Conn]bool{}
		s.members[m.addr] = m
	}
	return s
}

var process = bson.NewObjectID()

// secondary and primary are members of the set rs of three.
func secondary(addr string, all ...string) *member {
	return &member{addr: addr, streams: true, hello: bson.D{
		{Key: "isWritablePrimary", Value: false}, {Key: "secondary", Value: true}, {Key: "setName", Value: "rs"},
		{Key: "hosts", Value: all}, {Key: "me", Value: addr}, {Key: "helloOk", Value: true},
		{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 21}, {Key: "logicalSessionTimeoutMinutes", Value: 30},
	}}
}

func primary(addr string, all ...string) *member {
	m := secondary(addr, all...)
	m.hello = append(bson.D{{Key: "isWritablePrimary", Value: true}, {Key: "secondary", Value: false}}, m.hello[2:]...)
	return m
}

func standalone(addr string) *member {
	return &member{addr: addr, hello: bson.D{{Key: "isWritablePrimary", Value: true}, {Key: "helloOk", Value: true},
		{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 21}}}
}

// become changes a member's hello and tells those who await it.
func (m *member) become(f func(m *member)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m)
	m.counter++
	close(m.changed)
	m.changed = make(chan struct{})
}

func setField(d bson.D, key string, v any) bson.D {
	out := append(bson.D(nil), d...)
	for i := range out {
		if out[i].Key == key {
			out[i].Value = v
			return out
		}
	}
	return append(out, bson.E{Key: key, Value: v})
}

// crash closes every connection and refuses new ones.
func (m *member) crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for c := range m.socks {
		c.Close()
	}
}

func (m *member) revive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse = nil
}

func (s *script) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	s.mu.Lock()
	m := s.members[addr]
	s.mu.Unlock()
	if m == nil {
		return nil, &net.DNSError{Err: "no such host", Name: addr, IsNotFound: true}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dials++
	if m.refuse != nil {
		return nil, m.refuse
	}
	client, server := net.Pipe()
	m.socks[server] = true
	go m.serve(server)
	return client, nil
}

func readMessage(sock net.Conn) (wire.Msg, error) {
	head := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(sock, head); err != nil {
		return wire.Msg{}, err
	}
	h, err := wire.CheckHeader(head, wire.MaxMessage)
	if err != nil {
		return wire.Msg{}, err
	}
	whole := append(head, make([]byte, h.Length-wire.HeaderLen)...)
	if _, err := io.ReadFull(sock, whole[wire.HeaderLen:]); err != nil {
		return wire.Msg{}, err
	}
	return wire.ParseMsg(whole)
}

func (m *member) serve(sock net.Conn) {
	// A client that hangs up must end a wait for news too.
	gone := make(chan struct{})
	requests := make(chan wire.Msg)
	go func() {
		defer close(gone)
		for {
			msg, err := readMessage(sock)
			if err != nil {
				return
			}
			requests <- msg
		}
	}()
	defer func() {
		sock.Close()
		for range drain(gone, requests) {
		}
		m.mu.Lock()
		delete(m.socks, sock)
		m.mu.Unlock()
	}()
	for {
		select {
		case msg := <-requests:
			if !m.answer(sock, msg, gone) || m.once {
				return
			}
		case <-gone:
			return
		}
	}
}

// drain lets the reader end.
func drain(gone chan struct{}, requests chan wire.Msg) func(func(int) bool) {
	return func(func(int) bool) {
		for {
			select {
			case <-requests:
			case <-gone:
				return
			}
		}
	}
}

func (m *member) answer(sock net.Conn, msg wire.Msg, gone chan struct{}) bool {
	var name string
	for key := range msg.Body.All() {
		name = key
		break
	}
	m.mu.Lock()
	hung, delay := m.hung, m.delay
	if name == "hello" || name == "isMaster" {
		m.hellos++
	} else {
		m.apps = append(m.apps, name)
	}
	m.mu.Unlock()
	if hung {
		<-gone
		return false
	}
	select {
	case <-time.After(delay):
	case <-gone: // nobody waits for it any more
		return false
	}
	if name != "hello" && name != "isMaster" {
		return write(sock, msg.RequestID, 0, bson.D{{Key: "ok", Value: 1}})
	}
	seen, awaits := msg.Body.Lookup("topologyVersion", "counter").AsInt64OK()
	wait, _ := msg.Body.Lookup("maxAwaitTimeMS").AsInt64OK()
	for {
		flags := uint32(0)
		if awaits {
			if !m.await(seen, time.Duration(wait)*time.Millisecond, gone) {
				return false
			}
			flags = wire.MoreToCome
		}
		reply, counter := m.state()
		seen = counter
		if !write(sock, msg.RequestID, flags, reply) {
			return false
		}
		if flags == 0 {
			return true
		}
	}
}

// await waits until the state is newer than seen.
func (m *member) await(seen int64, limit time.Duration, gone chan struct{}) bool {
	m.mu.Lock()
	newer, changed, hung := m.counter > seen, m.changed, m.hung
	m.mu.Unlock()
	if newer && !hung {
		return true
	}
	select {
	case <-changed:
		return true
	case <-time.After(limit):
	case <-gone:
		return false
	}
	m.mu.Lock()
	hung = m.hung
	m.mu.Unlock()
	if hung {
		<-gone
	}
	return !hung
}

func (m *member) state() (bson.D, int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.strange != nil {
		return m.strange, m.counter
	}
	reply := append(bson.D(nil), m.hello...)
	if m.streams {
		reply = append(reply, bson.E{Key: "topologyVersion", Value: bson.D{
			{Key: "processId", Value: process}, {Key: "counter", Value: m.counter}}})
	}
	return append(reply, bson.E{Key: "ok", Value: 1.0}), m.counter
}

func write(sock net.Conn, to int32, flags uint32, reply bson.D) bool {
	msg, start := wire.AppendMsgStart(nil, 7, to, flags)
	msg, err := bson.Append(msg, reply)
	if err != nil {
		panic(err)
	}
	_, err = sock.Write(wire.EndMsg(msg, start))
	return err == nil
}

func (m *member) count(f func(*member) int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return f(m)
}

func wantWords(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", words)
	}
	for _, w := range words {
		if !contains(firstLine(err), w) {
			t.Errorf("first line %q\ndoes not say %q", firstLine(err), w)
		}
	}
}
