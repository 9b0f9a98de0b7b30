package cluster

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/mongoerr"
)

// answer is what a check heard.
type answer struct {
	reply   bson.Raw
	rtt     time.Duration // negative: the reply was held back and says nothing about the way
	awaited bool
	took    time.Duration
	limit   time.Duration // of the asking; 0: none
}

// outcome says what follows a check.
type outcome uint8

const (
	done      outcome = iota // a rest
	again                    // another check without a rest
	cancelled                // a rest from now on
)

// check checks the member once and reports what it heard. It is followed by another one at once to hear the next news
// of a stream, to begin anew after a restart, or because a connection to a member that was well broke, which may be a
// matter of the connection only.
func (m *monitor) check() outcome {
	ctx, awaited := m.begin()
	m.c.publisher.look()
	if m.sock == nil {
		m.connID = conn.NextID()
	}
	m.publish(event.HeartbeatEvent{Type: event.HeartbeatStarted, Awaited: awaited})
	start := time.Now()
	a, err := m.ask(ctx, awaited)
	a.awaited, a.took = awaited, time.Since(start)
	m.c.beat()
	cut, restart := m.end(ctx)
	if overslept(a.took, a.limit) {
		a.rtt = -1
		restart, cut = restart || err != nil, cut || err != nil
	}
	if hung := silence(ctx); hung != nil {
		cut, restart, err, m.ended = false, false, hung, time.Now()
	} else if cut && err == nil {
		err = ctx.Err()
	}
	var s *topology.Server
	if err == nil {
		s, err = topology.ParseHello(m.addr, a.reply, a.rtt, time.Now())
	}
	if err == nil {
		err = m.misled(s)
	}
	if err != nil {
		m.publish(event.HeartbeatEvent{Type: event.HeartbeatFailed, Duration: a.took, Err: err, Awaited: awaited})
		m.hangUp()
		switch {
		case restart:
			return again
		case cut:
			return cancelled
		}
		return m.failed(err)
	}
	m.publish(event.HeartbeatEvent{Type: event.HeartbeatSucceeded, Duration: a.took, Reply: a.reply, Awaited: awaited})
	return m.succeeded(s, a)
}

// ask gets one hello out of the member.
func (m *monitor) ask(ctx context.Context, awaited bool) (answer, error) {
	if m.sock == nil {
		a, opts := answer{limit: m.opts.ConnectTimeout}, m.opts
		opts.ID = m.connID
		sock, err := conn.Open(ctx, m.addr, &opts)
		if err != nil {
			return a, err
		}
		m.sock = sock
		m.dialled, _, _ = opts.Mapped(m.addr)
		a.reply, a.rtt = sock.Hello(), sock.RTT()
		return a, nil
	}
	limit := m.c.cfg.patience()
	if limit > 0 && awaited {
		limit = *m.c.cfg.ConnectTimeout
		if limit > 0 {
			limit += m.c.cfg.Topology.HeartbeatInterval
		}
	}
	ctx, cancel := within(ctx, limit)
	defer cancel()
	start := time.Now()
	reply, err := m.sock.Check(ctx, m.version, m.c.cfg.Topology.HeartbeatInterval)
	a := answer{reply: reply, rtt: time.Since(start), limit: limit}
	if awaited {
		a.rtt = -1
	}
	return a, err
}

// misled is the error of a hello that shows that AddressMap led to another member than the one that was looked for: the set
// has that one too. Taken for what it is, it would be dropped and, as the others list it, be back with each of their answers.
// Where a name that the set does not know leads is the user's affair: a seed may have any.
func (m *monitor) misled(s *topology.Server) error {
	if m.opts.AddressMap == nil || m.dialled == m.addr {
		return nil
	}
	s.Dialled = m.dialled
	if s.Me == "" || s.Me == m.addr || !s.Lists(m.addr) {
		return nil
	}
	e := mongoerr.New(mongoerr.StageConfig, "AddressMap has %s dialled at %s, where another member of the set answers, which calls itself %s", m.addr, m.dialled, s.Me)
	e.Server = m.addr
	return e
}

// failed reports a failure. The check is repeated at once after a network error of a member that was known before, but
// not again within the least interval: something on the way may break every connection after its first reply.
func (m *monitor) failed(err error) outcome {
	before := m.c.Description().Server(m.addr)
	network := mongoerr.IsNetwork(err)
	m.c.report(topology.CheckFailed{Addr: m.addr, Err: err, Timeout: network && mongoerr.IsTimeout(err)})
	m.reported()
	if !network || before == nil || !before.Kind.Known() || time.Since(m.rechecked) < topology.MinHeartbeatInterval {
		return done
	}
	m.rechecked = time.Now()
	return again
}

func (m *monitor) succeeded(s *topology.Server, a answer) outcome {
	before := m.version
	m.version = nil
	m.mu.Lock()
	m.heard = time.Now()
	m.mu.Unlock()
	if m.c.streaming && s.TopologyVersion.Set {
		m.version, _ = a.reply.Lookup("topologyVersion").DocumentOK()
	}
	m.c.report(topology.HelloReply{Server: s})
	m.reported()
	if m.version == nil {
		return done
	}
	// Nobody reads from an arbiter or a hidden member, save over a direct connection, however far it is.
	if !m.rttBegun && (s.Kind.DataBearing() || m.c.cfg.Topology.Direct) {
		m.rttBegun = true
		m.c.monitors.Go(m.measure)
	}
	// A member that answers an awaited hello at once though nothing changed does not know how to wait.
	hasty := a.awaited && a.took < topology.MinHeartbeatInterval/10 && string(before) == string(m.version)
	if hasty {
		return done
	}
	return again
}

func (m *monitor) publish(e event.HeartbeatEvent) {
	e.Address, e.ConnectionID = m.addr, m.connID
	if m.sock != nil {
		e.ServerConnectionID = m.sock.ServerConnectionID()
	}
	m.c.publisher.heartbeat(e)
}
