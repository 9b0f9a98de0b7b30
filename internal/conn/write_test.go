package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/mongoerr"
)

// slowTimer is a context whose timer fires a little after its deadline, as all do on a busy machine.
type slowTimer struct {
	context.Context
	until time.Time
}

func (s slowTimer) Deadline() (time.Time, bool) { return s.until, true }

// odd is a connection whose Write does what the test wants, once it is set.
type odd struct {
	net.Conn
	write func(b []byte) (int, error)
}

func (o *odd) Write(b []byte) (int, error) {
	if o.write != nil {
		return o.write(b)
	}
	return o.Conn.Write(b)
}

// oddly opens a connection to a peer that answers, which the test may make odd.
func oddly(t *testing.T, script func(*peer)) (*Conn, *odd) {
	o := played(t, script)
	in := &odd{}
	dial := o.Dial
	o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		in.Conn = nc
		return in, err
	}
	return open(t, o), in
}

// ownDeadline fails the test unless err says that the caller's time was up.
func ownDeadline(t *testing.T, err error, words string) {
	t.Helper()
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "server") {
		t.Errorf("the error is %v, want the caller's deadline %q", err, words)
	}
}

func TestDeadlineBeforeTheFirstByteCostsNoConnection(t *testing.T) {
	for name, c := range map[string]struct {
		ctx   func(t *testing.T) context.Context
		write func([]byte) (int, error)
	}{
		"the timer is late": {func(t *testing.T) context.Context {
			now := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			t.Cleanup(cancel)
			return slowTimer{ctx, now}
		}, nil},
		"the socket takes nothing": {func(t *testing.T) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			t.Cleanup(cancel)
			return ctx
		}, nil},
		"a socket with an error of its own": {func(t *testing.T) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			t.Cleanup(cancel)
			return ctx
		}, func([]byte) (int, error) {
			time.Sleep(time.Second)
			return 0, &net.OpError{Op: "write", Err: ownTimeout{}}
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			conn, in := oddly(t, func(p *peer) {
				p.greet()
				time.Sleep(2 * time.Second) // and takes nothing meanwhile
				p.answer(p.read(), doc("n", 2, "ok", 1.0))
			})
			in.write = c.write
			_, err := conn.RoundTrip(c.ctx(t), ping(conn, 0))
			ownDeadline(t, err, "before anything was sent")
			if conn.Broken() || conn.Owes() || conn.Err() != nil {
				t.Errorf("%s: broken %v, owes %v, %v", name, conn.Broken(), conn.Owes(), conn.Err())
			}
			in.write = nil
			pingAgain(t, conn)
		})
	}
}

type ownTimeout struct{}

func (ownTimeout) Error() string   { return "too slow" }
func (ownTimeout) Timeout() bool   { return true }
func (ownTimeout) Temporary() bool { return true }

func TestDeadlineInTheMiddleOfAWriteCostsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, played(t, func(p *peer) {
			p.greet()
			_, _ = io.ReadFull(p.nc, make([]byte, 5))
			time.Sleep(2 * time.Second)
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.RoundTrip(ctx, ping(c, 0))
		ownDeadline(t, err, "when 5 of ")
		if !c.Broken() || c.Owes() || c.Err() != err {
			t.Errorf("broken %v, owes %v, because %v", c.Broken(), c.Owes(), c.Err())
		}
	})
}

// A write that failed is the end of TLS, whatever of it was sent.
func TestDeadlineInAWriteOfTLSCostsTheConnection(t *testing.T) {
	cert, roots := certificate(t, "db1", time.Now().Add(time.Hour))
	near, far := net.Pipe()
	in := &odd{Conn: near}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p := &peer{t, tls.Server(far, &tls.Config{Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: true})}
		p.greet()
		_, _ = io.Copy(io.Discard, far)
	}()
	c := open(t, &Options{TLS: &tls.Config{RootCAs: roots}, Dial: func(context.Context, string, string) (net.Conn, error) { return in, nil }})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	in.write = func([]byte) (int, error) { <-ctx.Done(); return 0, os.ErrDeadlineExceeded }
	_, err := c.RoundTrip(ctx, ping(c, 0))
	in.write = nil
	ownDeadline(t, err, "when 0 of ")
	if !c.Broken() {
		t.Error("the connection counts as good")
	}
	c.Close()
	<-done
}

// The network's own timeouts (of TCP, after packets that nobody answers) are no deadline of the caller.
func TestTimeoutOfTheNetworkIsNoDeadline(t *testing.T) {
	c, in := oddly(t, func(p *peer) { p.greet(); p.hold() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	in.write = func([]byte) (int, error) { return 0, &net.OpError{Op: "write", Err: syscall.ETIMEDOUT} }
	_, err := c.RoundTrip(ctx, ping(c, 0))
	if errors.Is(err, context.DeadlineExceeded) || !mongoerr.IsNetwork(err) || !c.Broken() {
		t.Errorf("%v, broken %v", err, c.Broken())
	}
}
