package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/mongoerr"
)

// fragile is a connection of which one method panics.
type fragile struct {
	net.Conn
	method string
}

func (f *fragile) try(method string) {
	if f.method == method {
		panic("boom")
	}
}

func (f *fragile) Read(b []byte) (int, error) {
	if f.method == "a lie" {
		return len(b) + 1, nil
	}
	f.try("Read")
	return f.Conn.Read(b)
}
func (f *fragile) Write(b []byte) (int, error)   { f.try("Write"); return f.Conn.Write(b) }
func (f *fragile) Close() error                  { defer f.try("Close"); return f.Conn.Close() }
func (f *fragile) SetDeadline(t time.Time) error { f.try("SetDeadline"); return f.Conn.SetDeadline(t) }
func (f *fragile) SetReadDeadline(t time.Time) error {
	f.try("SetDeadline")
	return f.Conn.SetReadDeadline(t)
}
func (f *fragile) SetWriteDeadline(t time.Time) error {
	f.try("SetDeadline")
	return f.Conn.SetWriteDeadline(t)
}

func TestConnectionOfDialThatPanicsIsAnError(t *testing.T) {
	for method, words := range map[string]string{
		"Read": "the Read of the Dial function's connection panicked: boom", "Write": "the Write of the Dial function's connection panicked: boom",
		"a lie": "says that it did ",
	} {
		synctest.Test(t, func(t *testing.T) {
			in := &fragile{}
			o := played(t, func(p *peer) { p.greet(); p.hold() })
			dial := o.Dial
			o.Dial = func(ctx context.Context, network, addr string) (nc net.Conn, err error) {
				in.Conn, err = dial(ctx, network, addr)
				return in, err
			}
			c := open(t, o)
			in.method = method
			_, err := c.RoundTrip(t.Context(), ping(c, 0))
			if !mongoerr.IsNetwork(err) || !strings.Contains(err.Error(), words) || !c.Broken() {
				t.Errorf("%s: %v, broken %v", method, err, c.Broken())
			}
			in.method = "Close"
			if err := c.Close(); err == nil || !strings.Contains(err.Error(), "the Close of") {
				t.Errorf("Close: %v", err)
			}
			if _, err := Open(t.Context(), "db1:27017", &Options{Dial: func(context.Context, string, string) (net.Conn, error) {
				return &fragile{nil, method}, nil // all of its methods panic
			}}); err == nil || !strings.Contains(err.Error(), "the Dial function's connection") {
				t.Errorf("Open: %v", err)
			}
		})
	}
}

// TestSocketWithoutDeadlinesIsClosedUnderWhoGivesUp: nothing else would free it.
func TestSocketWithoutDeadlinesIsClosedUnderWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		o := &Options{Dial: func(context.Context, string, string) (net.Conn, error) { return &fragile{near, "SetDeadline"}, nil }}
		done := make(chan struct{})
		go func() { defer close(done); p := &peer{t, far}; p.greet(); p.hold(); far.Close() }()
		c := open(t, o)
		giveUp(t, c, 0)
		if !c.Broken() {
			t.Error("the connection counts as good")
		}
		<-done
	})
}

// deaf takes deadlines and heeds none.
type deaf struct{ net.Conn }

func (deaf) SetDeadline(time.Time) error      { return nil }
func (deaf) SetReadDeadline(time.Time) error  { return nil }
func (deaf) SetWriteDeadline(time.Time) error { return nil }

// TestDeafSocketIsClosedUnderWhoGivesUp: in a read or in a write, with TLS or without, at a deadline or when the caller gives up.
func TestDeafSocketIsClosedUnderWhoGivesUp(t *testing.T) {
	cert, roots := certificate(t, "db1", time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC)) // of the bubble's time
	for _, k := range []struct{ writes, secure, timeout bool }{{}, {timeout: true}, {writes: true}, {secure: true}, {secure: true, writes: true, timeout: true}} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			o := &Options{Dial: func(context.Context, string, string) (net.Conn, error) { return deaf{near}, nil }}
			p := &peer{t, far}
			if k.secure {
				o.TLS = &tls.Config{RootCAs: roots}
				p.nc = tls.Server(far, &tls.Config{Certificates: []tls.Certificate{cert}})
			}
			end := make(chan struct{})
			go func() {
				p.greet()
				if !k.writes {
					p.read()
				}
				<-end
				far.Close()
			}()
			defer close(end)
			c := open(t, o)
			ctx, cancel := context.WithCancel(t.Context())
			want := context.Canceled
			if k.timeout {
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
				want = context.DeadlineExceeded
			} else {
				time.AfterFunc(time.Second, cancel)
			}
			defer cancel()
			start := time.Now()
			_, err := c.RoundTrip(ctx, ping(c, 0))
			if took := time.Since(start); took != time.Second+deafAfter || !errors.Is(err, want) || !c.Broken() {
				t.Errorf("%+v: after %v: %v, broken %v", k, took, err, c.Broken())
			}
		})
	}
}
