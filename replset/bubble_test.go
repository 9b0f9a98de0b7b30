package replset

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// start makes a set of names on a network in memory, inside a synctest bubble: time is exact.
func bubbleSet(t *testing.T, o Options) *Set {
	t.Helper()
	o.Network = NewMemoryNetwork()
	o.Config = []MemberOptions{{Name: "east-1", Port: 27017}, {Name: "east-2", Port: 27017}, {Name: "west-1", Port: 27017}}
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestElectionTimingIsExactOnFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleSet(t, Options{})
		defer s.Close()
		if addr := s.Member(2).Addr(); addr != "west-1:27017" {
			t.Fatalf("member 2 is %s", addr)
		}
		time.Sleep(10 * time.Second)
		if term, _ := s.Member(0).current().WritablePrimary(); term != 1 {
			t.Errorf("in ten quiet seconds the term became %d", term)
		}
		c := dialRaw(t, s, 0, "app")
		c.must(t, "t", insert(1, majority()))
		begun := time.Now()
		if err := s.Kill(0); err != nil {
			t.Fatal(err)
		}
		if _, err := s.WaitPrimary(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 800*time.Millisecond || took > 1200*time.Millisecond {
			t.Errorf("elected after %v; the timeout is 1 s, with up to 15 %% of jitter, from the last heartbeat (at most 200 ms before the kill)", took)
		}
		c.nc.Close()
	})
}

func TestDelayIsExactOnFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleSet(t, Options{})
		defer s.Close()
		if err := s.Delay(0, 150*time.Millisecond, "west"); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		c := dialRaw(t, s, 0, "west")
		if took := time.Since(begun); took != 150*time.Millisecond {
			t.Errorf("the greeting took %v", took)
		}
		begun = time.Now()
		c.must(t, "admin", bson.D{{Key: "ping", Value: 1}})
		if took := time.Since(begun); took != 150*time.Millisecond {
			t.Errorf("a ping took %v", took)
		}
		c.nc.Close()
	})
}

func TestMinorityPrimaryStepsDownWithinTheElectionTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleSet(t, Options{})
		defer s.Close()
		time.Sleep(5 * time.Second)
		if err := s.Partition([]int{0}, []int{1, 2}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1001 * time.Millisecond)
		if state := s.Member(0).State(); state != "SECONDARY" {
			t.Errorf("the cut-off primary is %s", state)
		}
		time.Sleep(500 * time.Millisecond)
		if s.Primary() == nil {
			t.Error("the majority has no primary")
		}
		s.Heal()
		time.Sleep(time.Second)
		if err := s.AwaitReplication(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p := s.Primary(); p == nil || p.Index() == 0 {
			t.Errorf("after healing the primary is %v: the member that came back disturbed the others", p)
		}
	})
}

func TestMemoryNetworkBehavesLikeANetwork(t *testing.T) {
	synctest.Test(t, memoryNetwork)
}

func memoryNetwork(t *testing.T) {
	n := NewMemoryNetwork()
	if _, err := n.Dial(t.Context(), "tcp", "a:1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	l, err := n.Listen(t.Context(), "a:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Listen(t.Context(), "a:1"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listening twice: %v", err)
	}
	near, err := n.Dial(t.Context(), "tcp", "a:1")
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := near.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 10)
	if k, err := far.Read(b); err != nil || string(b[:k]) != "hello" {
		t.Errorf("read %q, %v", b[:k], err)
	}
	_ = far.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := far.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	_ = far.SetReadDeadline(time.Time{})
	_ = near.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	if k, err := near.Write(make([]byte, 2*memoryBuffer)); k != memoryBuffer || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a full buffer took %d bytes, %v", k, err)
	}
	near.Close()
	if rest, err := io.ReadAll(far); err != nil || len(rest) != memoryBuffer {
		t.Errorf("after the other end's Close: %d bytes, %v", len(rest), err)
	}
	if _, err := far.Write(b); err == nil {
		t.Error("writing to a closed end succeeds")
	}
	if _, err := near.Read(b); !errors.Is(err, net.ErrClosed) {
		t.Errorf("reading after Close: %v", err)
	}
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accepting after Close: %v", err)
	}
}
