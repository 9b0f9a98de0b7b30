package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sextantdb/sextant/internal/wire"
)

// heard is the connection to a SOCKS5 proxy while the proxy is asked for a way. It keeps the beginning of what it says: what
// is no such proxy is known by that.
type heard struct {
	net.Conn
	first  []byte // of what was read; of the goroutine that reads
	any    atomic.Bool
	ending func()
}

// mostProvoked bounds the share of the time that is left to an answer that had to be provoked, a tenth of all.
const mostProvoked = time.Second

// provoke ends a line, shortly before the time is up, for who has said nothing until then. A SOCKS5 proxy that is as slow would
// hardly have been in time; a server of HTTP, or of another protocol of lines, waits for nothing else and shows itself.
func (h *heard) provoke(ctx context.Context) {
	h.ending = func() {}
	end, limited := ctx.Deadline()
	if !limited {
		return
	}
	left, done := time.Until(end), make(chan struct{})
	timer := time.AfterFunc(left-min(left/10, mostProvoked), func() {
		defer close(done)
		if !h.any.Load() && ctx.Err() == nil {
			_, _ = io.WriteString(h.Conn, "\r\n\r\n") // bounded by the deadline that package proxy sets
		}
	})
	h.ending = func() {
		if !timer.Stop() {
			<-done
		}
	}
}

// end waits until nothing is provoked any more.
func (h *heard) end() { h.ending() }

func (h *heard) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if h.first = append(h.first, b[:n]...); n > 0 {
		h.any.Store(true)
	}
	return n, err
}

// Close leaves the connection open: there may be more to hear.
func (h *heard) Close() error { return nil }

// moreToHear is how long the rest of a word is waited for.
const moreToHear = 100 * time.Millisecond

// guess is the protocol of what was said, "" if it is not known. Package proxy has read two bytes of it.
func (h *heard) guess(ctx context.Context) string {
	const enough = 4
	if len(h.first) == 0 || len(h.first) >= enough || h.first[0] == 5 || errors.Is(ctx.Err(), context.Canceled) {
		return wire.Guess(h.first)
	}
	_ = h.Conn.SetReadDeadline(time.Now().Add(moreToHear))
	more := make([]byte, enough-len(h.first))
	n, _ := io.ReadFull(h.Conn, more)
	h.first = append(h.first, more[:n]...)
	if len(h.first) < enough && strings.HasPrefix("HTTP", string(h.first)) {
		return "an HTTP answer"
	}
	return wire.Guess(h.first)
}
