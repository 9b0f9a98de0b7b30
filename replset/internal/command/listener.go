package command

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"time"
)

// maxConns bounds what strangers can make a member hold.
const maxConns = 10000

// accept takes connections until the listener is closed.
func (m *Member) accept() {
	defer m.wg.Done()
	defer m.guard("accepting connections")
	for {
		nc, err := m.opt.Listener.Accept()
		if err != nil {
			if m.closing() || errors.Is(err, net.ErrClosed) {
				return
			}
			m.complain(slog.LevelWarn, "accept failed", err.Error(), m.opt.Listener.Addr(), "error", err)
			select { // such as too many open files: do not spin
			case <-time.After(10 * time.Millisecond):
				continue
			case <-m.ctx.Done():
				return
			}
		}
		m.admitConn(nc)
	}
}

func (m *Member) admitConn(nc net.Conn) {
	c := &Conn{m: m, nc: nc, br: bufio.NewReaderSize(nc, 16<<10), peer: -1, watched: make(chan struct{}, 1)}
	c.secure()
	m.mu.Lock()
	if m.ended || len(m.conns) >= maxConns {
		full := !m.ended
		m.mu.Unlock()
		_ = nc.Close()
		if full {
			m.complain(slog.LevelWarn, "connection refused: too many are open", "", nc.RemoteAddr())
		}
		return
	}
	m.lastID++
	c.ID = m.lastID
	m.conns[c] = struct{}{}
	c.ctx, c.cancel = context.WithCancelCause(m.ctx)
	m.wg.Add(1)
	m.mu.Unlock()
	go c.serve()
}

func (m *Member) forget(c *Conn) {
	m.mu.Lock()
	delete(m.conns, c)
	m.mu.Unlock()
}

// connections is the number of open connections.
func (m *Member) connections() (open int, ever int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.conns), m.lastID
}
