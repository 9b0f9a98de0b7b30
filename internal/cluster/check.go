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
	m.publish(event.HeartbeatEvent{Type: event.HeartbeatStarted, Awaited: awaited})
	start := time.Now()
	a, err := m.ask(ctx, awaited)
	a.awaited, a.took = awaited, time.Since(start)
	cut, restart := m.end(ctx)
	if cut && err == nil {
		err = ctx.Err()
	}
	var s *topology.Server
	if err == nil {
		s, err = topology.ParseHello(m.addr, a.reply, a.rtt, time.Now())
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
		sock, err := conn.Open(ctx, m.addr, &m.opts)
		if err != nil {
			return answer{}, err
		}
		m.sock = sock
		return answer{reply: sock.Hello(), rtt: sock.RTT()}, nil
	}
	limit := *m.c.cfg.ConnectTimeout
	if limit > 0 && awaited {
		limit += m.c.cfg.Topology.HeartbeatInterval
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	start := time.Now()
	reply, err := m.sock.Check(ctx, m.version, m.c.cfg.Topology.HeartbeatInterval)
	a := answer{reply: reply, rtt: time.Since(start)}
	if awaited {
		a.rtt = -1
	}
	return a, err
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
	if m.c.streaming && s.TopologyVersion.Set {
		m.version, _ = a.reply.Lookup("topologyVersion").DocumentOK()
	}
	m.c.report(topology.HelloReply{Server: s})
	m.reported()
	if m.version == nil {
		return done
	}
	if !m.rttBegun {
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
	e.Address = m.addr
	if m.sock != nil {
		e.ConnectionID = m.sock.ID()
	}
	m.c.publisher.heartbeat(e)
}

// quickSamples is the number of round trips measured at the least interval before the pace falls to the heartbeat's: the
// first one, of a handshake in a process that is just starting, is often much too long.
const quickSamples = 5

// measure is the body of the goroutine that measures round trips while the member streams, for a streamed reply says
// nothing about the way. Its failures are nobody's business: the monitor will notice.
func (m *monitor) measure() {
	opts := m.opts
	var sock *conn.Conn
	defer func() {
		if sock != nil {
			sock.Close()
		}
	}()
	for n := 0; ; n++ {
		var rtt time.Duration
		var err error
		if rtt, sock, err = m.ping(sock, &opts); err == nil {
			m.c.report(topology.RTTSample{Addr: m.addr, RTT: rtt})
		}
		pace := m.c.cfg.Topology.HeartbeatInterval
		if n < quickSamples {
			pace = topology.MinHeartbeatInterval
		}
		if !m.sleep(pace, nil) {
			return
		}
	}
}

// ping takes one sample, on the connection or on a new one.
func (m *monitor) ping(sock *conn.Conn, opts *conn.Options) (time.Duration, *conn.Conn, error) {
	if sock == nil {
		sock, err := conn.Open(m.ctx, m.addr, opts)
		if err != nil {
			return 0, nil, err
		}
		return sock.RTT(), sock, nil
	}
	ctx := m.ctx
	if limit := *m.c.cfg.ConnectTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	start := time.Now()
	if _, err := sock.Check(ctx, nil, 0); err != nil {
		sock.Close()
		return 0, nil, err
	}
	return time.Since(start), sock, nil
}
