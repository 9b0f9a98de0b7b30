package conn

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

func TestRoundTripsReuseTheirBuffers(t *testing.T) {
	c := open(t, played(t, func(p *peer) {
		p.greet()
		for m := p.read(); m != nil; m = p.read() {
			p.answer(m, doc("n", int(m.RequestID), "ok", 1.0))
		}
	}))
	var first *byte
	for range 3 {
		msg := ping(c, 0)
		if first == nil {
			first = &msg[0]
		} else if first != &msg[0] {
			t.Error("the write buffer was not reused")
		}
		m, err := c.RoundTrip(t.Context(), msg)
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := m.Body.Lookup("n").Int32OK(); n != m.ResponseTo {
			t.Errorf("reply %s to %d", m.Body, m.ResponseTo)
		}
	}
}

func TestHugeReplyIsReadAndItsBufferForgotten(t *testing.T) {
	huge := strings.Repeat("x", 5<<20)
	c := open(t, played(t, func(p *peer) {
		p.greet()
		p.answer(p.read(), doc("s", huge, "ok", 1.0))
		for m := p.read(); m != nil; m = p.read() {
			p.answer(m, doc("ok", 1.0))
		}
	}))
	m, err := c.RoundTrip(t.Context(), ping(c, 0))
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := m.Body.Lookup("s").StringValueOK(); s != huge {
		t.Errorf("%d bytes came", len(s))
	}
	if _, err := c.RoundTrip(t.Context(), ping(c, 0)); err != nil {
		t.Fatal(err)
	}
	if cap(c.rbuf) > keepBuffer {
		t.Errorf("the buffer still holds %d bytes", cap(c.rbuf))
	}
}

func TestALyingHeaderCostsNoMemory(t *testing.T) {
	c := open(t, played(t, func(p *peer) {
		p.greet()
		m := p.read()
		p.write(wire.AppendHeader(nil, wire.Header{Length: wire.MaxMessage, ResponseTo: m.RequestID, OpCode: wire.OpMsg}))
		p.write(make([]byte, 100))
	}))
	_, err := c.RoundTrip(t.Context(), ping(c, 0))
	if err == nil || !strings.Contains(err.Error(), "in the middle of a reply") {
		t.Errorf("%v", err)
	}
	if cap(c.rbuf) > keepBuffer {
		t.Errorf("%d bytes were set aside", cap(c.rbuf))
	}
}

func TestDeadlineEndsTheWaitAndLeavesAReplyDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, played(t, func(p *peer) { p.greet(); p.read(); p.hold() }))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err := c.RoundTrip(ctx, ping(c, 0))
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v", took)
		}
		e, _ := errors.AsType[*mongoerr.Error](err)
		if e == nil || e.Stage != mongoerr.StageRead || !errors.Is(err, context.DeadlineExceeded) || !mongoerr.IsTimeout(err) || c.Broken() || !c.Owes() {
			t.Errorf("%v, broken %v, owes %v", err, c.Broken(), c.Owes())
		}
		if e != nil && len(e.Labels) != 0 {
			t.Errorf("labels %v after the handshake", e.Labels)
		}
		if _, err := c.RoundTrip(t.Context(), ping(c, 0)); err == nil || !strings.Contains(err.Error(), "has not come yet") {
			t.Errorf("a connection that owes a reply was used: %v", err)
		}
	})
}

func TestCancelEndsTheWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, played(t, func(p *peer) {
			p.greet()
			m := p.read()
			b := message(1, m.RequestID, 0, doc("ok", 1.0))
			p.write(b[:len(b)-1])
			p.hold()
		}))
		boom := errors.New("the request was dropped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Hour, func() { cancel(boom) })
		start := time.Now()
		_, err := c.RoundTrip(ctx, ping(c, 0))
		if took := time.Since(start); took != time.Hour {
			t.Errorf("took %v", took)
		}
		if !errors.Is(err, context.Canceled) || !errors.Is(err, boom) || mongoerr.IsNetwork(err) || mongoerr.IsTimeout(err) || c.Broken() || !c.Owes() {
			t.Errorf("%v, broken %v, owes %v", err, c.Broken(), c.Owes())
		}
	})
}

func TestEndedContextSendsNothingAndCostsNoConnection(t *testing.T) {
	c := open(t, played(t, func(p *peer) {
		p.greet()
		for m := p.read(); m != nil; m = p.read() {
			p.answer(m, doc("ok", 1.0))
		}
	}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.RoundTrip(ctx, ping(c, 0)); !errors.Is(err, context.Canceled) || c.Broken() {
		t.Fatalf("%v, broken %v", err, c.Broken())
	}
	if _, err := c.RoundTrip(t.Context(), ping(c, 0)); err != nil {
		t.Error(err)
	}
}

func TestAnOldDeadlineDoesNotHauntTheNextUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, played(t, func(p *peer) {
			p.greet()
			p.answer(p.read(), doc("ok", 1.0))
			m := p.read()
			time.Sleep(time.Minute)
			p.answer(m, doc("ok", 1.0))
			p.hold()
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.RoundTrip(ctx, ping(c, 0)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.RoundTrip(context.Background(), ping(c, 0)); err != nil {
			t.Error(err)
		}
	})
}

func TestStreamedRepliesAreReadOneByOne(t *testing.T) {
	c := open(t, played(t, func(p *peer) {
		p.greet()
		m := p.read()
		// All at once, so that later replies lie in the buffer behind the first.
		b := message(100, m.RequestID, wire.MoreToCome, doc("n", 1, "ok", 1.0))
		b = append(b, message(101, 100, wire.MoreToCome, doc("n", 2, "ok", 1.0))...)
		b = append(b, message(102, m.RequestID, 0, doc("n", 3, "ok", 1.0))...)
		p.write(b)
		p.answer(p.read(), doc("n", 4, "ok", 1.0))
		p.hold()
	}))
	m, err := c.RoundTrip(t.Context(), ping(c, wire.ExhaustAllowed))
	for want := int32(1); want <= 3; want++ {
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := m.Body.Lookup("n").Int32OK(); n != want || c.Streaming() != (want < 3) {
			t.Errorf("reply %s, streaming %v; want %d", m.Body, c.Streaming(), want)
		}
		if want < 3 {
			m, err = c.ReadNext(t.Context())
		}
	}
	if m, err = c.RoundTrip(t.Context(), ping(c, 0)); err != nil {
		t.Fatal(err)
	}
	if n, _ := m.Body.Lookup("n").Int32OK(); n != 4 {
		t.Errorf("after the stream: %s", m.Body)
	}
	if _, err = c.ReadNext(t.Context()); err == nil || !strings.Contains(err.Error(), "no streamed reply is due") {
		t.Errorf("%v", err)
	}
}

func TestAStreamIsNotInterruptedByARequest(t *testing.T) {
	c := open(t, played(t, func(p *peer) {
		p.greet()
		p.write(message(100, p.read().RequestID, wire.MoreToCome, doc("ok", 1.0)))
		p.hold()
	}))
	if _, err := c.RoundTrip(t.Context(), ping(c, wire.ExhaustAllowed)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RoundTrip(t.Context(), ping(c, 0)); err == nil || !strings.Contains(err.Error(), "streamed replies are due") {
		t.Errorf("%v", err)
	}
}

func TestStrayStreamedReplyIsRefused(t *testing.T) {
	c := open(t, played(t, func(p *peer) {
		p.greet()
		p.write(message(100, p.read().RequestID, wire.MoreToCome, doc("ok", 1.0)))
		p.write(message(101, 7, wire.MoreToCome, doc("ok", 1.0)))
		p.hold()
	}))
	if _, err := c.RoundTrip(t.Context(), ping(c, wire.ExhaustAllowed)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ReadNext(t.Context()); err == nil || !strings.Contains(err.Error(), "answers 7") || !c.Broken() {
		t.Errorf("%v", err)
	}
}

func TestSendWaitsForNoReply(t *testing.T) {
	got := make(chan bson.Raw, 1)
	c := open(t, played(t, func(p *peer) { p.greet(); got <- p.read().Body.Clone(); p.hold() }))
	if err := c.Send(t.Context(), ping(c, wire.MoreToCome)); err != nil {
		t.Fatal(err)
	}
	if b := <-got; b.Lookup("ping").IsZero() {
		t.Errorf("%s", b)
	}
}

func TestCloseFreesWhoeverWaits(t *testing.T) {
	asked := make(chan struct{})
	c := open(t, played(t, func(p *peer) { p.greet(); p.read(); close(asked); p.hold() }))
	closed := make(chan struct{})
	go func() { defer close(closed); <-asked; c.Close() }()
	defer func() { <-closed }()
	_, err := c.RoundTrip(t.Context(), ping(c, 0))
	if err == nil || !strings.Contains(err.Error(), "closed by this client") || !c.Broken() {
		t.Errorf("%v", err)
	}
}

func TestServerThatHangsUpMidwayIsANetworkError(t *testing.T) {
	c := open(t, played(t, func(p *peer) { p.greet(); p.read() }))
	_, err := c.RoundTrip(t.Context(), ping(c, 0))
	e, _ := errors.AsType[*mongoerr.Error](err)
	if !mongoerr.IsNetwork(err) || mongoerr.IsTimeout(err) || e.Stage != mongoerr.StageRead || e.BeforeHandshake() || len(e.Labels) != 0 {
		t.Errorf("%v, %+v", err, e)
	}
}

func TestAliveSeesWhatTheServerDidMeanwhile(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	act := make(chan func(*peer))
	served := make(chan struct{})
	go func() {
		defer close(served)
		for f := range act {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			p := &peer{t, nc}
			p.greet()
			f(p)
			p.hold()
			nc.Close()
		}
	}()
	defer func() { close(act); <-served }()
	for name, c := range map[string]struct {
		act  func(*peer)
		want bool
	}{
		"nothing":          {func(*peer) {}, true},
		"hung up":          {func(p *peer) { p.nc.(*net.TCPConn).CloseWrite() }, false},
		"sent stray bytes": {func(p *peer) { p.write([]byte("x")) }, false},
	} {
		done := make(chan struct{})
		act <- func(p *peer) { c.act(p); close(done) }
		cn, err := Open(t.Context(), l.Addr().String(), &Options{ConnectTimeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		<-done
		alive := cn.Alive()
		for end := time.Now().Add(2 * time.Second); alive != c.want && time.Now().Before(end); alive = cn.Alive() {
			time.Sleep(time.Millisecond) // the kernel delivers when it likes
		}
		if alive != c.want {
			t.Errorf("%s: alive %v", name, alive)
		}
		cn.Close()
	}
}
