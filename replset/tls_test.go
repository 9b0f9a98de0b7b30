package replset

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// overheard is a network in memory that keeps the first byte of everything written by whoever dialled.
type overheard struct {
	*MemoryNetwork
	mu     sync.Mutex // guards firsts
	firsts []byte
}

type overheardConn struct {
	net.Conn
	n    *overheard
	once sync.Once
}

func (n *overheard) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := n.MemoryNetwork.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &overheardConn{Conn: nc, n: n}, nil
}

func (c *overheardConn) Write(b []byte) (int, error) {
	c.once.Do(func() {
		c.n.mu.Lock()
		defer c.n.mu.Unlock()
		c.n.firsts = append(c.n.firsts, b[0])
	})
	return c.Conn.Write(b)
}

// tlsSet is a set of three on a network in memory that speaks TLS.
func tlsSet(t *testing.T, o TLS) (*Set, *overheard) {
	t.Helper()
	n := &overheard{MemoryNetwork: NewMemoryNetwork()}
	s, err := Start(t.Context(), Options{Network: n, TLS: &o, Config: []MemberOptions{{Name: "m0", Port: 1}, {Name: "m1", Port: 1}, {Name: "m2", Port: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	return s, n
}

// dialTLS is dialRaw over TLS.
func dialTLS(t *testing.T, s *Set, i int, app string) *raw {
	t.Helper()
	nc, err := s.opt.Network.Dial(t.Context(), "tcp", s.Member(i).Addr())
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.TLSConfig()
	cfg.ServerName = hostOf(s.Member(i).Addr())
	c, err := greet(tls.Client(nc, cfg), app)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMembersSpeakTLSToEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := tlsSet(t, TLS{ClientCertificates: true})
		defer s.Close()
		c := dialTLS(t, s, 0, "app")
		c.must(t, "t", insert(1, majority()))
		if err := s.Kill(0); err != nil {
			t.Fatal(err)
		}
		if _, err := c.run("t", insert(2, nil)); err == nil {
			t.Error("a killed member answers")
		}
		if _, err := s.WaitPrimary(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Partition([]int{1}, []int{2}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		s.Heal()
		if err := s.Restart(0); err != nil {
			t.Fatal(err)
		}
		p, err := s.WaitPrimary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d := dialTLS(t, s, p.Index(), "app")
		defer d.nc.Close()
		d.must(t, "t", insert(3, w(3)))
		if _, err := s.AddMember(t.Context(), MemberOptions{Name: "m3", Port: 1}); err != nil {
			t.Fatal(err)
		}
		d.must(t, "t", insert(4, w(4)))
		e := dialTLS(t, s, 3, "app")
		defer e.nc.Close()
		const handshakeRecord = 0x16
		n.mu.Lock()
		defer n.mu.Unlock()
		for i, b := range n.firsts {
			if b != handshakeRecord {
				t.Errorf("connection %d begins with %#x, which is no TLS", i, b)
			}
		}
		if len(n.firsts) < 6 {
			t.Errorf("only %d connections", len(n.firsts))
		}
	})
}

func TestMembersGoOnWithCertificatesThatClientsMustRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := tlsSet(t, TLS{})
		defer s.Close()
		for i := range 3 {
			if err := s.Certify(i, Certificate{Stranger: true, NotAfter: time.Now().Add(-time.Hour)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.StepDown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.AwaitReplication(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestMemberTakesNobodyForAMemberByItsAuthorityAlone(t *testing.T) {
	s := Run(t, Options{TLS: &TLS{}})
	cert, err := s.ClientCertificate("127.0.0.1", Certificate{Names: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	near, far := memoryPipe("a", "b") // a pipe without a buffer would stop when both ends write
	defer near.Close()
	go func() {
		defer far.Close()
		_ = tls.Server(far, &tls.Config{Certificates: []tls.Certificate{cert}}).Handshake()
	}()
	if err := tls.Client(near, s.tls.dial("127.0.0.1:1")).Handshake(); err == nil || !strings.Contains(err.Error(), "no member of the set") {
		t.Errorf("%v", err)
	}
}

func TestClientThatNeverFinishesTheHandshakeIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := tlsSet(t, TLS{})
		defer s.Close()
		for _, say := range []string{"", "\x16\x03\x01"} {
			nc, err := n.Dial(t.Context(), "tcp", "m0:1")
			if err != nil {
				t.Fatal(err)
			}
			if say != "" {
				if _, err := nc.Write([]byte(say)); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			if b, err := io.ReadAll(nc); len(b) != 0 || err != nil {
				t.Errorf("%q: %q, %v", say, b, err)
			}
			if took := time.Since(start); took != 10*time.Second {
				t.Errorf("%q: dropped after %v", say, took)
			}
			nc.Close()
		}
		c := dialTLS(t, s, 0, "app")
		defer c.nc.Close()
		c.must(t, "admin", bson.D{{Key: "ping", Value: 1}})
	})
}

func TestSetThatSpeaksTLSEndsWithClientsInEveryStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := tlsSet(t, TLS{})
		mute, err := n.Dial(t.Context(), "tcp", "m0:1")
		if err != nil {
			t.Fatal(err)
		}
		defer mute.Close()
		c := dialTLS(t, s, 0, "app")
		defer c.nc.Close()
		done := make(chan error, 1)
		go func() {
			_, err := c.run("t", insert(1, w(7)))
			done <- err
		}()
		synctest.Wait()
		start := time.Now()
		s.Close()
		if err := <-done; err == nil {
			t.Error("the set ended, and the write that seven members were to confirm was answered")
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it took %v to end", took)
		}
	})
}

func TestTLSOptionsThatCannotBeAreRefused(t *testing.T) {
	for name, o := range map[string]TLS{"a file for a folder": {Dir: "/dev/null/x"}} {
		if s, err := Start(t.Context(), Options{TLS: &o}); err == nil || !strings.HasPrefix(err.Error(), "replset: TLS:") {
			if s != nil {
				s.Close()
			}
			t.Errorf("%s: %v", name, err)
		}
	}
	s := Run(t, Options{TLS: &TLS{}})
	now := time.Now()
	if err := s.Certify(0, Certificate{NotBefore: now, NotAfter: now.Add(-time.Hour)}); err == nil || !strings.Contains(err.Error(), "before it begins") {
		t.Errorf("%v", err)
	}
	if err := s.Certify(5, Certificate{}); err == nil {
		t.Error("a sixth member was certified")
	}
}
