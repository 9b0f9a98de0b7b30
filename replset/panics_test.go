package replset

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// mined is a network in memory that panics where it is told to, as a mistake of the host's would.
type mined struct {
	*MemoryNetwork
	where atomic.Value // a string such as "accept m1:1"; connections are those that m1 accepted
}

func (n *mined) step(on string) {
	if where, _ := n.where.Load().(string); where == on {
		panic("mine: " + on)
	}
}

func (n *mined) Listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := n.MemoryNetwork.Listen(ctx, addr)
	return &minedListener{l, n, addr}, err
}

func (n *mined) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	n.step("dial " + addr)
	nc, err := n.MemoryNetwork.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &minedConn{nc, n, "out " + addr}, nil
}

type minedListener struct {
	net.Listener
	n    *mined
	addr string
}

func (l *minedListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	l.n.step("accept " + l.addr)
	if err != nil {
		return nil, err
	}
	return &minedConn{nc, l.n, "in " + l.addr}, nil
}

func (l *minedListener) Close() error {
	_ = l.Listener.Close()
	l.n.step("listener " + l.addr)
	return nil
}

type minedConn struct {
	net.Conn
	n    *mined
	name string
}

func (c *minedConn) Read(b []byte) (int, error) {
	k, err := c.Conn.Read(b)
	c.n.step("read " + c.name)
	return k, err
}

func (c *minedConn) Write(b []byte) (int, error) {
	c.n.step("write " + c.name)
	return c.Conn.Write(b)
}

func (c *minedConn) Close() error {
	_ = c.Conn.Close()
	c.n.step("close " + c.name)
	return nil
}

// mineField is a set of three on a mined network, and its log.
func mineField(t *testing.T) (*Set, *mined, *lockedBuffer) {
	t.Helper()
	n, log := &mined{MemoryNetwork: NewMemoryNetwork()}, &lockedBuffer{}
	s, err := Start(t.Context(), Options{Network: n, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Config: []MemberOptions{{Name: "m0", Port: 1}, {Name: "m1", Port: 1}, {Name: "m2", Port: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	return s, n, log
}

// A panic in a goroutine without which a member cannot go on ends the member, as a crash would, and not the process.
func TestPanicEndsItsMemberAndNotTheProcess(t *testing.T) {
	for where, ends := range map[string][]int{"dial m0:1": {1, 2}, "accept m1:1": {1}, "write out m0:1": {1, 2}, "read out m0:1": {1, 2}} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, n, log := mineField(t)
				defer s.Close()
				n.where.Store(where)
				if _, err := s.opt.Network.(*mined).MemoryNetwork.Dial(t.Context(), "tcp", "m1:1"); err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(where, "dial") { // their links are open: they dial when they come back
					for _, l := range []int{1, 2} {
						if err := s.Partition([]int{0}, []int{l}); err != nil {
							t.Fatal(err)
						}
					}
					s.Heal()
				}
				time.Sleep(3 * time.Second)
				for _, i := range ends {
					if state := s.Member(i).State(); state != "DOWN" {
						t.Errorf("member %d is %s", i, state)
					}
				}
				if text := log.String(); !strings.Contains(text, "mine: "+where) || !strings.Contains(text, "panics_test.go") {
					t.Errorf("logged: %s", text)
				}
				n.where.Store("")
				for _, i := range ends {
					if err := s.Kill(i); err != nil {
						t.Fatal(err)
					}
					if err := s.Restart(i); err != nil {
						t.Fatal(err)
					}
				}
				p, err := s.WaitPrimary(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				c := dialRaw(t, s, p.Index(), "app")
				c.must(t, "t", insert("after", w(3)))
			})
		})
	}
}

// A panic on a client's connection costs the connection alone; one that closes something costs nothing.
func TestPanicOnAConnectionCostsTheConnection(t *testing.T) {
	for _, where := range []string{"read in m0:1", "write in m0:1", "close in m0:1", "close out m0:1", "listener m0:1"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, n, _ := mineField(t)
				defer s.Close()
				c := dialRaw(t, s, 0, "app")
				n.where.Store(where)
				_, err := c.run("admin", pingCommand())
				if broken := strings.HasPrefix(where, "read") || strings.HasPrefix(where, "write"); broken != (err != nil) {
					t.Errorf("%v", err)
				}
				if state := s.Member(0).State(); state != "PRIMARY" {
					t.Errorf("the member is %s", state)
				}
				if err := s.Kill(0); err != nil {
					t.Fatal(err)
				}
				n.where.Store("")
				if err := s.Restart(0); err != nil {
					t.Fatal(err)
				}
				p, err := s.WaitPrimary(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				dialRaw(t, s, p.Index(), "app").must(t, "t", insert("after", w(3)))
			})
		})
	}
}

// brokenLog is a log handler that panics.
type brokenLog struct{ enabled bool }

func (l brokenLog) Enabled(context.Context, slog.Level) bool {
	if !l.enabled {
		panic("the log is full")
	}
	return true
}
func (brokenLog) Handle(context.Context, slog.Record) error { panic("the log is full") }
func (l brokenLog) WithAttrs([]slog.Attr) slog.Handler      { return l }
func (l brokenLog) WithGroup(string) slog.Handler           { return l }

func TestLoggerThatPanicsCostsItsLines(t *testing.T) {
	for _, enabled := range []bool{true, false} {
		s := Run(t, Options{Members: 3, Logger: slog.New(brokenLog{enabled})})
		if err := s.StepDown(t.Context()); err != nil {
			t.Fatal(err)
		}
		dialRaw(t, s, s.Primary().Index(), "app").must(t, "t", insert("x", w(3)))
	}
}

// Clients that begin messages of 48 MB and never end them keep nobody from small ones, nor for long from large ones.
func TestHalfSentMessagesKeepNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleSet(t, Options{})
		defer s.Close()
		const whole, sent = 48_000_000, 33_000_000
		for range 3 { // 99 of the 96 MB there are
			nc, err := s.opt.Network.Dial(t.Context(), "tcp", s.Member(0).Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			go func() {
				b := make([]byte, sent)
				b[0], b[1], b[2], b[3] = byte(whole&0xff), byte(whole>>8&0xff), byte(whole>>16&0xff), byte(whole>>24)
				b[12], b[13] = 0xdd, 0x07 // OP_MSG
				_, _ = nc.Write(b)
			}()
		}
		time.Sleep(time.Second)
		c := dialRaw(t, s, 0, "app")
		begun := time.Now()
		c.must(t, "t", insert("small", w(1)))
		if took := time.Since(begun); took > 0 {
			t.Errorf("a small message took %v", took)
		}
		begun = time.Now()
		if err := c.send(0, "t", insert(strings.Repeat("x", 1_000_000), w(1))); err != nil {
			t.Fatal(err)
		}
		_ = c.nc.SetReadDeadline(time.Time{})
		for {
			if _, err := c.br.Peek(1); err == nil {
				break
			}
		}
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("a large message took %v", took)
		}
		if _, err := c.receive(); err != nil {
			t.Error(err)
		}
	})
}
