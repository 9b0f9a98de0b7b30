package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/mongoerr"
)

// A member that hangs keeps its connections open. While it streams its state, the specification lets connectTimeoutMS
// and a heartbeat go by, 20 s as a rule, before its silence means anything. With Config.HeartbeatTimeout the round
// trips that are measured beside the stream are signs of life too: they are taken twice in that time, and one that
// takes longer than it counts as the failure of the check that awaits news. So a hung member is known after one and a
// half times the HeartbeatTimeout at the latest. A member that is polled has no stream: it is polled at that pace.

// pace is the time between two signs of life of a member.
func (c *Config) pace() time.Duration {
	if c.HeartbeatTimeout <= 0 {
		return c.Topology.HeartbeatInterval
	}
	return min(c.Topology.HeartbeatInterval, c.HeartbeatTimeout/2)
}

// patience is how long an answer may take that the member does not hold back; 0 is no limit.
func (c *Config) patience() time.Duration {
	if c.HeartbeatTimeout > 0 && (*c.ConnectTimeout <= 0 || c.HeartbeatTimeout < *c.ConnectTimeout) {
		return c.HeartbeatTimeout
	}
	return *c.ConnectTimeout
}

// within limits a context; 0 is no limit.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// quickSamples is the number of round trips measured at the least interval before the pace falls to the heartbeat's: the
// first one, of a handshake in a process that is just starting, is often much too long.
const quickSamples = 5

// measure is the body of the goroutine that measures round trips while the member streams, for a streamed reply says
// nothing about the way. Its failures are nobody's business, the monitor will notice; except for silence, if there is a
// HeartbeatTimeout.
func (m *monitor) measure() {
	opts := m.opts
	if opts.ConnectTimeout = *m.c.cfg.ConnectTimeout; m.c.cfg.HeartbeatTimeout > 0 {
		opts.ConnectTimeout = m.c.cfg.HeartbeatTimeout
	}
	var sock *conn.Conn
	defer func() {
		if sock != nil {
			sock.Close()
		}
	}()
	for n := 0; ; n++ {
		m.c.beat()
		start := time.Now()
		var rtt time.Duration
		var err error
		rtt, sock, err = m.ping(sock, &opts)
		m.c.beat()
		if overslept(time.Since(start), opts.ConnectTimeout) {
			continue // neither the time it took nor its failure says anything of the member
		}
		if err == nil {
			m.c.report(topology.RTTSample{Addr: m.addr, RTT: rtt})
		} else if limit := m.c.cfg.HeartbeatTimeout; limit > 0 && mongoerr.IsTimeout(err) && time.Since(start) >= limit {
			m.silent(start)
		}
		pace := m.c.pace
		if n < quickSamples {
			pace = min(pace, topology.MinHeartbeatInterval)
		}
		if !m.sleep(pace-time.Since(start), nil) {
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
	ctx, cancel := within(m.ctx, opts.ConnectTimeout)
	defer cancel()
	start := time.Now()
	if _, err := sock.Check(ctx, nil, 0); err != nil {
		sock.Close()
		return 0, nil, err
	}
	return time.Since(start), sock, nil
}

// silent fails the check that awaits news, unless it has heard something since.
func (m *monitor) silent(since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.awaited || m.heard.After(since) {
		return
	}
	e := mongoerr.New(mongoerr.StageRead, "no sign of life for %s (HeartbeatTimeout)", event.FormatDuration(m.c.cfg.HeartbeatTimeout))
	e.Server, e.TimedOut = m.addr, true
	m.cut(false, e)
}

// silence is the error with which silent ended a check, nil if something else did.
func silence(ctx context.Context) error {
	if e, ok := errors.AsType[*mongoerr.Error](context.Cause(ctx)); ok {
		return e
	}
	return nil
}
