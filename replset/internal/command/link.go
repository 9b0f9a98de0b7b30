package command

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// link is this member's way to another one: connections over which it sends that member's commands.
type link struct {
	m    *Member
	host string

	mu     sync.Mutex // guards all below
	idle   []*linkConn
	open   map[*linkConn]struct{}
	closed bool
}

func newLink(m *Member, host string) *link {
	return &link{m: m, host: host, open: map[*linkConn]struct{}{}}
}

// to is the number by which faults know the other, -1 if they do not. It may have come after the link.
func (l *link) to() int {
	if l.m.opt.IndexOf == nil {
		return -1
	}
	return l.m.opt.IndexOf(l.host)
}

// links are a member's links by the others' addresses.
type links struct {
	mu sync.Mutex // guards to
	to map[string]*link
}

// link is the way to the member at host.
func (m *Member) link(host string) *link {
	m.links.mu.Lock()
	defer m.links.mu.Unlock()
	l := m.links.to[host]
	if l == nil {
		l = newLink(m, host)
		l.closed = m.closing()
		if m.links.to == nil {
			m.links.to = map[string]*link{}
		}
		m.links.to[host] = l
	}
	return l
}

func (m *Member) allLinks() []*link {
	m.links.mu.Lock()
	defer m.links.mu.Unlock()
	return slices.Collect(maps.Values(m.links.to))
}

// cutStrangers closes what is idle of the ways to those who are in the configuration no more.
func (m *Member) cutStrangers(cfg *Config) {
	for _, l := range m.allLinks() {
		if cfg.At(l.host) == nil {
			l.rest()
		}
	}
}

// linkConn is one connection of a link. It belongs to one goroutine at a time.
type linkConn struct {
	l  *link
	nc net.Conn
	br *bufio.Reader
	id int32
}

// AppName is what member i calls itself when it connects to the others.
func AppName(i int) string { return "sextant member " + strconv.Itoa(i) }

var errLinkClosed = errors.New("the member is ending")

// call sends one command and returns the reply, which may be an error document.
func (l *link) call(ctx context.Context, db string, cmd bson.D) (bson.Raw, error) {
	lc, fresh, err := l.take(ctx)
	if err != nil {
		return nil, err
	}
	reply, err := lc.roundTrip(ctx, db, cmd)
	if err != nil && !fresh && ctx.Err() == nil { // an idle connection may have died of the other's restart
		if lc, err = l.connect(ctx); err != nil {
			return nil, err
		}
		reply, err = lc.roundTrip(ctx, db, cmd)
	}
	if err != nil {
		return nil, err
	}
	l.give(lc)
	return reply, nil
}

// take returns an idle connection or makes one.
func (l *link) take(ctx context.Context) (lc *linkConn, fresh bool, err error) {
	if err := l.m.opt.Faults.reach(ctx, l.to()); err != nil {
		return nil, false, err
	}
	l.mu.Lock()
	if n := len(l.idle); n > 0 {
		lc = l.idle[n-1]
		l.idle = l.idle[:n-1]
	}
	l.mu.Unlock()
	if lc != nil {
		return lc, false, nil
	}
	lc, err = l.connect(ctx)
	return lc, true, err
}

func (l *link) give(lc *linkConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const spare = 2
	if !l.closed && len(l.idle) < spare {
		l.idle = append(l.idle, lc)
		return
	}
	delete(l.open, lc)
	shut(raw(lc.nc))
}

// connect dials and introduces this member.
func (l *link) connect(ctx context.Context) (*linkConn, error) { return l.introduce(ctx, false) }

// pinned is a connection on which all reads see the other's data at one moment.
func (l *link) pinned(ctx context.Context) (*linkConn, error) { return l.introduce(ctx, true) }

func (l *link) introduce(ctx context.Context, copies bool) (*linkConn, error) {
	if err := l.m.opt.Faults.reach(ctx, l.to()); err != nil {
		return nil, err
	}
	nc, err := l.m.opt.Dial(ctx, l.host)
	if err != nil {
		return nil, err
	}
	if l.m.opt.DialTLS != nil {
		nc = tls.Client(nc, l.m.opt.DialTLS(l.host)) // agreed on by the first message, which the context bounds
	}
	lc := &linkConn{l: l, nc: nc, br: bufio.NewReader(nc)}
	l.mu.Lock()
	if l.closed || l.m.opt.Faults.Cut(l.to()) {
		l.mu.Unlock()
		shut(raw(nc))
		return nil, errLinkClosed
	}
	l.open[lc] = struct{}{}
	l.mu.Unlock()
	_, err = lc.roundTrip(ctx, "admin", bson.D{
		{Key: "hello", Value: int32(1)},
		{Key: "client", Value: bson.D{{Key: "application", Value: bson.D{{Key: "name", Value: AppName(l.m.self)}}}}},
		{Key: "sextantMember", Value: bson.D{{Key: "from", Value: int32(l.m.self)}, {Key: "secret", Value: l.m.opt.Secret}, {Key: "copies", Value: copies}}},
	})
	if err != nil {
		return nil, err
	}
	return lc, nil
}

// cut closes every connection of the link.
func (l *link) cut() {
	l.mu.Lock()
	open := l.open
	l.open, l.idle = map[*linkConn]struct{}{}, nil
	l.mu.Unlock()
	for lc := range open {
		shut(raw(lc.nc))
	}
}

// rest closes the connections that nobody uses.
func (l *link) rest() {
	l.mu.Lock()
	idle := l.idle
	l.idle = nil
	for _, lc := range idle {
		delete(l.open, lc)
	}
	l.mu.Unlock()
	for _, lc := range idle {
		shut(raw(lc.nc))
	}
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cut()
}

// CutLinks closes the connections to the members that the faults block.
func (m *Member) CutLinks() {
	for _, l := range m.allLinks() {
		if m.opt.Faults.Cut(l.to()) {
			l.cut()
		}
	}
}

func (lc *linkConn) drop() {
	lc.l.mu.Lock()
	delete(lc.l.open, lc)
	lc.l.mu.Unlock()
	shut(raw(lc.nc))
}

// roundTrip sends a command and reads the reply. After an error the connection is closed.
func (lc *linkConn) roundTrip(ctx context.Context, db string, cmd bson.D) (bson.Raw, error) {
	reply, err := lc.exchange(ctx, db, cmd)
	if err != nil {
		lc.drop()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}
	return reply, err
}

func (lc *linkConn) exchange(ctx context.Context, db string, cmd bson.D) (bson.Raw, error) {
	stop := context.AfterFunc(ctx, func() {
		defer lc.l.m.survive("a deadline")
		_ = lc.nc.SetDeadline(time.Unix(1, 0))
	})
	defer stop()
	lc.id++
	msg, start := wire.AppendMsgStart(nil, lc.id, 0, 0)
	msg, body := bson.BeginDocument(msg)
	msg, err := appendElements(msg, append(cmd, bson.E{Key: "$db", Value: db}))
	if err != nil {
		return nil, err
	}
	msg = wire.EndMsg(bson.EndDocument(msg, body), start)
	if _, err := lc.nc.Write(msg); err != nil {
		return nil, err
	}
	in, err := readMessage(lc.br)
	if err != nil {
		return nil, err
	}
	reply, err := wire.ParseMsg(in)
	if err != nil {
		return nil, err
	}
	if reply.ResponseTo != lc.id {
		return nil, fmt.Errorf("a reply to request %d came in answer to request %d", reply.ResponseTo, lc.id)
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	return reply.Body, reply.Body.Validate()
}

// demand is call for a command that must succeed.
func (l *link) demand(ctx context.Context, db string, cmd bson.D) (bson.Raw, error) {
	reply, err := l.call(ctx, db, cmd)
	if err != nil {
		return nil, err
	}
	if e := mongoerr.FromReply(reply); e != nil {
		return nil, e
	}
	return reply, nil
}
