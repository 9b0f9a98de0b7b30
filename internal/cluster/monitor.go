package cluster

import (
	"context"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/mongoerr"
)

// monitor keeps the description of one member current. Its goroutine checks the member on a connection of its own:
// with the member's consent it asks once and hears of every change at once, otherwise it asks at every heartbeat. It
// never authenticates.
type monitor struct {
	c      *Cluster
	addr   string
	opts   conn.Options
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // capacity 1: a check is wanted soon
	stage  atomic.Value  // a mongoerr.Stage: how far the connection that is being opened has come

	mu      sync.Mutex // guards what follows
	current context.CancelCauseFunc
	awaited bool          // the current check waits for news
	heard   time.Time     // when the member last answered a check
	restart bool          // the current check was cancelled to begin anew at once
	fresh   bool          // the next check must not wait for news
	checked chan struct{} // closed when the next check has been reported

	// Of the monitor's goroutine alone.
	sock      *conn.Conn
	dialled   string    // where sock leads
	connID    int64     // of sock, or of the connection being opened
	version   bson.Raw  // the topologyVersion to await news from; nil: poll
	ended     time.Time // of the last check
	rechecked time.Time // when a check was last repeated at once
	rttBegun  bool
}

func newMonitor(c *Cluster, addr string) *monitor {
	m := &monitor{c: c, addr: addr, opts: c.cfg.Conn, wake: make(chan struct{}, 1), checked: make(chan struct{})}
	m.opts.Monitor, m.opts.Credential, m.opts.Diagnose = true, nil, c.cfg.FailFast
	m.opts.Reached = func(s mongoerr.Stage) { m.stage.Store(s) }
	m.ctx, m.cancel = context.WithCancel(c.ctx)
	return m
}

// start is called by the owner, once.
func (m *monitor) start() { m.c.monitors.Go(m.run) }

// run is the body of the monitor's goroutine.
func (m *monitor) run() {
	defer m.hangUp()
	for m.ctx.Err() == nil {
		m.c.beat()
		if next := m.check(); next != again {
			m.rest(next == cancelled)
		}
	}
}

func (m *monitor) hangUp() {
	if m.sock != nil {
		m.sock.Close()
	}
	m.sock, m.version = nil, nil
}

// rest waits for the next check: a heartbeat after the last one ended, or sooner if somebody asks, but never sooner
// than the least interval. A cancelled check does not count as the last one, but it begins the wait anew: nobody but
// who needs the member has reason to ask it again at once.
func (m *monitor) rest(cancelled bool) {
	since := time.Since(m.ended)
	if m.ended.IsZero() {
		since = 0
	}
	if !m.sleep(topology.MinHeartbeatInterval-since, nil) {
		return
	}
	pause := m.c.pace
	if !cancelled {
		pause -= max(since, topology.MinHeartbeatInterval)
	}
	m.sleep(pause, m.wake)
}

// sleep waits for a time or a wake. It is false when the monitor has to end.
func (m *monitor) sleep(d time.Duration, wake <-chan struct{}) bool {
	if d <= 0 {
		return m.ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-wake:
	case <-m.ctx.Done():
		return false
	}
	return true
}

// request asks for a check soon. A monitor that awaits news of a member needs none, and forgets the request: kept, it would
// have the member asked at once when the check is cancelled later, for somebody who is long gone. But once the member has
// been Unknown for a while, the news that should have come was lost, and the check begins anew.
func (m *monitor) request() {
	s := m.c.Description().Server(m.addr)
	known := s != nil && s.Kind.Known()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.awaited && known {
		return
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
	if m.awaited && s != nil && time.Since(s.LastUpdate) >= topology.MinHeartbeatInterval {
		m.cut(true, nil)
	}
}

// cancelCheck ends the check in progress and its connection.
func (m *monitor) cancelCheck(restart bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut(restart, nil)
}

// cut is called under mu.
func (m *monitor) cut(restart bool, cause error) {
	if m.current != nil {
		m.restart = m.restart || restart
		m.current(cause)
	}
}

// refresh asks for a check now and returns what is closed when one has been reported.
func (m *monitor) refresh() <-chan struct{} {
	m.mu.Lock()
	checked := m.checked
	if m.awaited {
		m.cut(true, nil)
	} else {
		m.fresh = true
	}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
	return checked
}

// begin opens a check: requests from before are answered by it. It awaits news if the member streams, unless somebody
// asked for a fresh answer.
func (m *monitor) begin() (ctx context.Context, awaited bool) {
	ctx, cancel := context.WithCancelCause(m.ctx)
	m.mu.Lock()
	select {
	case <-m.wake:
	default:
	}
	awaited = m.sock != nil && m.version != nil && !m.fresh
	m.current, m.awaited, m.restart, m.fresh = cancel, awaited, false, false
	m.mu.Unlock()
	if m.version != nil && !awaited {
		m.hangUp()
	}
	return ctx, awaited
}

// end closes a check. It says whether the check was cancelled, and whether to begin anew.
func (m *monitor) end(ctx context.Context) (cancelled, restart bool) {
	m.mu.Lock()
	cancelled, restart = ctx.Err() != nil, m.restart
	m.current(nil)
	m.current, m.awaited = nil, false
	m.mu.Unlock()
	if !cancelled {
		m.ended = time.Now()
	}
	return cancelled, restart
}

// reported tells those who wait for a fresh view.
func (m *monitor) reported() {
	m.mu.Lock()
	close(m.checked)
	m.checked = make(chan struct{})
	m.mu.Unlock()
}

// streamingAllowed says whether the mode lets members stream. Platforms that freeze an idle process make streams look
// broken (server monitoring, "streaming disabled").
func streamingAllowed(mode string) bool {
	switch mode {
	case ModePoll:
		return false
	case ModeStream:
		return true
	}
	for _, name := range []string{"AWS_LAMBDA_RUNTIME_API", "FUNCTIONS_WORKER_RUNTIME", "K_SERVICE", "FUNCTION_NAME", "VERCEL"} {
		if os.Getenv(name) != "" {
			return false
		}
	}
	return !strings.HasPrefix(os.Getenv("AWS_EXECUTION_ENV"), "AWS_Lambda_")
}
