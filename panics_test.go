package sextant_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

func TestDialThatPanicsIsToldForItsMember(t *testing.T) {
	cl := connect(t, "mongodb://a.invalid", func(c *sextant.Config) {
		c.Dial = func(context.Context, string, string) (net.Conn, error) { panic("boom") }
		c.ServerSelectionTimeout = 200 * time.Millisecond
	})
	refuse(t, ping(cl), mongoerr.IsSelection, "the Dial function panicked: boom")
}

// fragile is a connection that panics after a number of reads or writes.
type fragile struct {
	net.Conn
	left *atomic.Int64
}

func (f fragile) Read(b []byte) (int, error) {
	if f.left.Add(-1) < 0 {
		panic("boom")
	}
	return f.Conn.Read(b)
}

func (f fragile) Write(b []byte) (int, error) {
	if f.left.Add(-1) < 0 {
		panic("boom")
	}
	return f.Conn.Write(b)
}

// TestConnectionsThatPanicEndNoProcess: those of monitors, of the minimum size, of operations and of those that drain, with TLS
// and without. Each works for a while.
func TestConnectionsThatPanicEndNoProcess(t *testing.T) {
	for _, secure := range []*replset.TLS{nil, {}} {
		synctest.Test(t, func(t *testing.T) {
			network := replset.NewMemoryNetwork()
			set := replset.Run(t, replset.Options{Network: network, TLS: secure})
			panics := false
			cl := connect(t, set.URI(), func(c *sextant.Config) {
				c.MinPoolSize, c.HeartbeatFrequency = 2, time.Second
				c.Dial = func(ctx context.Context, kind, addr string) (net.Conn, error) {
					nc, err := network.Dial(ctx, kind, addr)
					left := new(atomic.Int64)
					left.Store(rand.Int64N(30))
					return fragile{nc, left}, err
				}
			})
			for i := range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%10)*time.Millisecond+time.Microsecond)
				_, err := cl.Database("shop").Collection("people").FindOne(ctx, bson.D{})
				cancel()
				panics = panics || err != nil && strings.Contains(err.Error(), "of the Dial function's connection panicked: boom")
				time.Sleep(50 * time.Millisecond)
			}
			if !panics {
				t.Error("no operation met a panic")
			}
			cl.Close(t.Context())
		})
	}
}

// oddResolver answers as its funcs do.
type oddResolver struct {
	srv func() []*net.SRV
	txt func() []string
}

func (r oddResolver) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", r.srv(), nil
}

func (r oddResolver) LookupTXT(context.Context, string) ([]string, error) { return r.txt(), nil }

func TestResolverThatPanicsIsAnError(t *testing.T) {
	host := &net.SRV{Target: "db.example.org.", Port: 27017}
	boom := "the Resolver panicked: boom"
	for _, tc := range []struct {
		r     oddResolver
		words string
	}{
		{oddResolver{func() []*net.SRV { panic("boom") }, func() []string { return nil }}, boom},
		{oddResolver{func() []*net.SRV { return []*net.SRV{host} }, func() []string { panic("boom") }}, boom},
		{oddResolver{func() []*net.SRV { return []*net.SRV{nil} }, func() []string { return nil }}, "no SRV record"},
		{oddResolver{func() []*net.SRV { return []*net.SRV{nil, host} }, func() []string { return nil }}, ""},
	} {
		cfg := &sextant.Config{SRVHost: "cluster.example.org", Resolver: tc.r}
		err := cfg.Resolve(t.Context())
		if tc.words == "" && (err != nil || len(cfg.Hosts) != 1) || tc.words != "" && (err == nil || !strings.Contains(err.Error(), tc.words)) {
			t.Errorf("hosts %v, %v; want %q", cfg.Hosts, err, tc.words)
		}
	}
}

// TestResolverThatHangsHoldsNobody: neither of its lookups heeds its context; polling must not hold Close.
func TestResolverThatHangsHoldsNobody(t *testing.T) {
	host := []*net.SRV{{Target: "db.example.org.", Port: 27017}}
	synctest.Test(t, func(t *testing.T) {
		stuck, asked := make(chan struct{}), new(atomic.Int64)
		hang := func() []*net.SRV { <-stuck; return nil }
		none := func() []string { return nil }
		for name, r := range map[string]oddResolver{"SRV": {hang, none}, "TXT": {func() []*net.SRV { return host }, func() []string { <-stuck; return nil }}} {
			cfg, start := &sextant.Config{SRVHost: "cluster.example.org", Resolver: r}, time.Now()
			_, err := sextant.ConnectConfig(t.Context(), cfg)
			if took := time.Since(start); took != 10*time.Second || !mongoerr.IsTimeout(err) || !strings.Contains(err.Error(), name+" record") {
				t.Errorf("%s: after %v: %v", name, took, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			start = time.Now()
			if _, err = sextant.ConnectConfig(ctx, cfg); time.Since(start) != time.Second || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: after %v: %v", name, time.Since(start), err)
			}
		}
		cl := must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), &sextant.Config{
			SRVHost: "cluster.example.org", ConnectTimeout: new(time.Duration(0)),
			Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("nobody there") },
			Resolver: oddResolver{func() []*net.SRV {
				if asked.Add(1) > 1 {
					return hang()
				}
				return host
			}, none},
		}))
		if err := ping(cl)(); !mongoerr.IsSelection(err) {
			t.Errorf("a ping of nobody: %v", err)
		}
		time.Sleep(2 * time.Minute)
		start := time.Now()
		if err := cl.Close(t.Context()); err != nil || time.Since(start) > time.Second || asked.Load() != 2 {
			t.Errorf("Close after %v: %v; asked %d times", time.Since(start), err, asked.Load())
		}
		close(stuck)
	})
}

// A Dial that knows no context, as those through SSH, holds nobody for longer than connectTimeoutMS: neither who waits for a
// connection, nor a monitor. Close says that it is still there.
func TestDialThatKnowsNoContextHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := replset.NewMemoryNetwork()
		set := replset.Run(t, replset.Options{Members: 1, Network: network})
		stuck := make(chan struct{})
		var hangs atomic.Bool
		var late atomic.Int32 // connections that came too late and are open
		cl := connect(t, set.URI(), func(c *sextant.Config) {
			c.ConnectTimeout = new(2 * time.Second)
			c.ServerSelectionTimeout = 5 * time.Second
			c.Dial = func(_ context.Context, n, addr string) (net.Conn, error) {
				if !hangs.Load() {
					return network.Dial(context.Background(), n, addr)
				}
				<-stuck
				nc, err := network.Dial(context.Background(), n, addr)
				if err == nil {
					late.Add(1)
					nc = closeCounted{nc, &late}
				}
				return nc, err
			}
		})
		if err := ping(cl)(); err != nil {
			t.Fatal(err)
		}
		const busy = 3
		if err := set.FailCommand(0, &replset.FailCommand{Commands: []string{"find"}, Block: time.Minute, Times: busy}); err != nil {
			t.Fatal(err)
		}
		var first sync.WaitGroup
		for range busy { // have all connections
			first.Go(func() { _ = ping(cl)() })
		}
		synctest.Wait()
		hangs.Store(true)
		for range 3 {
			start := time.Now()
			err := ping(cl)()
			if took := time.Since(start); err == nil || took > 10*time.Second {
				t.Errorf("a read that needs another connection: after %v %v", took, err)
			}
		}
		if err := set.Kill(0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second) // the monitor, whose own connection broke, gives its Dial up too
		if m := cl.Hosts().Members[0]; m.LastError == nil || !strings.Contains(m.LastError.Error(), "time") {
			t.Errorf("the member's last error is %v", m.LastError)
		}
		first.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := cl.Close(ctx); time.Since(start) > 2*time.Second || err == nil || !strings.Contains(err.Error(), "Dial") {
			t.Errorf("Close after %v: %v", time.Since(start), err)
		}
		if err := set.Restart(0); err != nil {
			t.Fatal(err)
		}
		close(stuck)
		synctest.Wait()
		if n := late.Load(); n != 0 {
			t.Errorf("%d connections that came too late are open", n)
		}
	})
}

// closeCounted counts itself off when it is closed.
type closeCounted struct {
	net.Conn
	open *atomic.Int32
}

func (c closeCounted) Close() error {
	c.open.Add(-1)
	return c.Conn.Close()
}

// TestCloseEndsWhenDialDoesNot: what hangs in the caller's code holds Close no longer than a second after its context.
func TestCloseEndsWhenDialDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		cl := connect(t, "mongodb://a.invalid", func(c *sextant.Config) {
			c.Dial = func(context.Context, string, string) (net.Conn, error) {
				<-stuck
				return nil, errors.New("too late")
			}
		})
		if err := ping(cl)(); err == nil {
			t.Error("a ping without a connection")
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := cl.Close(ctx)
		if took := time.Since(start); took > 2*time.Second || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Dial") {
			t.Errorf("after %v: %v", took, err)
		}
		close(stuck)
		synctest.Wait()
	})
}
