package sextant_test

import (
	"context"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/replset"
)

// freezer is a network over which nothing of a process moves while it is frozen: whatever reads, writes or dials is stuck
// until the thaw, whatever its limits, as all goroutines of a suspended process are.
type freezer struct {
	dial dialFunc
	mu   sync.Mutex    // guards all below
	gate chan struct{} // closed: the process runs
	born []*frozen
}

func newFreezer() *freezer {
	f := &freezer{gate: make(chan struct{})}
	close(f.gate)
	return f
}

func (f *freezer) freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gate = make(chan struct{})
}

// thaw lets the process go on. If what it had was lost meanwhile, its connections swallow what is written.
func (f *freezer) thaw(lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.born {
		c.lost = lost
	}
	close(f.gate)
}

func (f *freezer) wait() {
	f.mu.Lock()
	gate := f.gate
	f.mu.Unlock()
	<-gate
}

func (f *freezer) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	f.wait()
	nc, err := f.dial(ctx, network, addr)
	f.wait()
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &frozen{Conn: nc, f: f}
	f.born = append(f.born, c)
	return c, nil
}

type frozen struct {
	net.Conn
	f     *freezer
	lost  bool // guarded by f.mu, as is limit
	limit time.Time
}

func (c *frozen) SetDeadline(t time.Time) error {
	c.f.mu.Lock()
	c.limit = t
	c.f.mu.Unlock()
	return c.Conn.SetDeadline(t)
}

// late says whether the limit ran out: a socket of the system tells so even if what was waited for is there.
func (c *frozen) late() bool {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	return !c.limit.IsZero() && time.Now().After(c.limit)
}

func (c *frozen) Read(b []byte) (int, error) {
	c.f.wait()
	n, err := c.Conn.Read(b)
	c.f.wait()
	if c.late() {
		return 0, os.ErrDeadlineExceeded
	}
	return n, err
}

func (c *frozen) Write(b []byte) (int, error) {
	c.f.wait()
	c.f.mu.Lock()
	lost := c.lost
	c.f.mu.Unlock()
	if lost {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// inFrozen runs a test with a client that has been frozen for a while, with idle connections, and has just gone on.
func inFrozen(t *testing.T, pause time.Duration, lost bool, f func(t *testing.T, b *bubble, thawed time.Time)) {
	t.Helper()
	var fr *freezer
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		primaryFirst(o)
		o.ElectionTimeout = 20 * time.Second // so that heartbeats of the set are few
		fr = newFreezer()
		fr.dial, c.Dial = c.Dial, fr.Dial
	}, func(t *testing.T, b *bubble) {
		var wg sync.WaitGroup
		for range 4 { // several connections
			wg.Go(func() {
				if err := b.insert(t); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		time.Sleep(15 * time.Second)
		fr.freeze()
		time.Sleep(pause)
		fr.thaw(lost)
		f(t, b, time.Now())
	})
}

// TestFrozenProcessUsesNoConnectionThatWasLost: broken by an operation that trusts an idle connection from before the freeze,
// which takes its command and never answers.
func TestFrozenProcessUsesNoConnectionThatWasLost(t *testing.T) {
	inFrozen(t, 10*time.Minute, true, func(t *testing.T, b *bubble, thawed time.Time) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := b.orders().InsertOne(ctx, bson.D{}); err != nil || time.Since(thawed) > 3*time.Second {
			t.Errorf("after %v: %v", time.Since(thawed), err)
		}
		thawed = time.Now()
		if _, err := b.orders().InsertOne(ctx, bson.D{}); err != nil || time.Since(thawed) > 0 {
			t.Errorf("the next one: after %v: %v", time.Since(thawed), err)
		}
	})
}

// TestFrozenProcessKeepsWhatItHas: broken by taking the limits that ran out in the freeze for failures of the members, or
// the time it took for a round trip. Half a minute is shorter than the longest ordinary silence, but not than a check.
func TestFrozenProcessKeepsWhatItHas(t *testing.T) {
	for _, pause := range []time.Duration{30 * time.Second, 10 * time.Minute} {
		for _, first := range []string{"operation", "monitors"} {
			t.Run(pause.String()+", "+first, func(t *testing.T) {
				inFrozen(t, pause, false, func(t *testing.T, b *bubble, thawed time.Time) {
					if first == "monitors" {
						time.Sleep(20 * time.Second)
					}
					begun := time.Now()
					if err := b.insert(t); err != nil || time.Since(begun) > 0 {
						t.Errorf("after %v: %v", time.Since(begun), err)
					}
					time.Sleep(20 * time.Second)
					b.lostNothing(t, thawed)
				})
			})
		}
	}
}

// lostNothing wants all members looked at at once since the thaw, and nothing given up.
func (b *bubble) lostNothing(t *testing.T, thawed time.Time) {
	t.Helper()
	for i := range 3 {
		addr := b.set.Member(i).Addr()
		if n := len(b.log.pools(event.PoolCleared, addr, time.Time{})); n != 0 {
			t.Errorf("the pool of member %d was cleared", i)
		}
		if m := b.member(i); !m.Kind.DataBearing() || m.RTT > 100*time.Millisecond {
			t.Errorf("%v", m)
		}
		if first := b.log.firstBeat(t, event.HeartbeatStarted, addr, thawed); first.At.After(thawed) {
			t.Errorf("member %d was looked at only %v after the thaw", i, first.At.Sub(thawed))
		}
	}
	if n := len(b.log.pools(event.ConnectionCreated, b.set.Member(0).Addr(), thawed)); n != 0 {
		t.Errorf("%d connections were opened anew", n)
	}
}
