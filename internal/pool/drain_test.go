package pool_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/pool"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
	"pgregory.net/rapid"
)

// ping is one round trip.
func ping(ctx context.Context, c *pool.Conn) error {
	msg, start := wire.AppendMsgStart(c.Buffer(), c.NextRequestID(), 0, 0)
	msg, doc := bson.BeginDocument(msg)
	msg = bson.EndDocument(bson.AppendInt32(msg, "ping", 1), doc)
	_, err := c.RoundTrip(ctx, wire.EndMsg(msg, start))
	return err
}

// giveUp sends a command to which the member answers after the time answer, and gives up at once.
func giveUp(t *testing.T, m *member, c *pool.Conn, answer time.Duration) {
	t.Helper()
	m.slow.Store(int64(answer))
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	start := time.Now()
	if err := ping(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the command ended with %v", err)
	}
	c.CheckIn()
	if took := time.Since(start); took > time.Microsecond {
		t.Errorf("the caller waited %v", took)
	}
	m.slow.Store(0)
}

func TestGivenUpCallLeavesAConnectionThatDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{}
		p, j := newPool(t, m, pool.Options{Max: 10})
		c := checkOut(t, p)
		j.take()
		giveUp(t, m, c, 300*time.Millisecond)
		sameEvents(t, j.take(), "CheckedIn", "PendingResponseStarted")
		if s := p.Stats(); s.Draining != 1 || s.Total != 1 || s.InUse != 0 || s.Idle != 0 || p.Load() != 0 {
			t.Errorf("stats %+v, load %d", s, p.Load())
		}
		time.Sleep(301 * time.Millisecond)
		if s := p.Stats(); s.Draining != 0 || s.Idle != 1 {
			t.Errorf("stats %+v", s)
		}
		again := checkOut(t, p)
		if again != c {
			t.Errorf("connection %d came, not the drained one", again.ID())
		}
		if err := ping(t.Context(), again); err != nil {
			t.Errorf("the drained connection is of no use: %v", err)
		}
		again.CheckIn()
		sameEvents(t, j.take(), "PendingResponseSucceeded", "CheckOutStarted", "CheckedOut", "CheckedIn")
		closePool(t, p)
	})
}

func TestLateReplyThatDoesNotComeCostsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{}
		p, j := newPool(t, m, pool.Options{Max: 10})
		limits := []time.Duration{time.Second, 3 * time.Second, 3 * time.Second} // a miss gives the next one more time
		for _, limit := range limits {
			c := checkOut(t, p)
			j.take()
			giveUp(t, m, c, time.Hour)
			time.Sleep(limit - time.Millisecond)
			sameEvents(t, j.take(), "CheckedIn", "PendingResponseStarted")
			time.Sleep(2 * time.Millisecond)
			sameEvents(t, j.take(), "PendingResponseFailed(timeout)", "Closed(error)")
			if s := p.Stats(); s.Total != 0 {
				t.Errorf("stats %+v", s)
			}
		}
		closePool(t, p)
		time.Sleep(time.Hour) // the member's ends
	})
}

// firstGrace is how long a place is kept for a connection that drains while nothing is known of late replies, over a way
// that takes no time.
const firstGrace = 100 * time.Millisecond

// Whoever waits gets the drained connection or, after the time of grace, a new one, whichever is first; and there are never
// more connections than the limit allows.
func TestWaiterGetsWhatComesFirst(t *testing.T) {
	for name, c := range map[string]struct {
		dial, drain, waits time.Duration
		id                 int64
		events             []string
	}{
		"drained at once": {800 * time.Millisecond, 90 * time.Millisecond, 90 * time.Millisecond, 1,
			[]string{"CheckOutStarted", "PendingResponseSucceeded", "CheckedOut"}},
		"drained first": {800 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond, 1,
			[]string{"CheckOutStarted", "Created", "PendingResponseSucceeded", "Closed(surplus)", "CheckedOut"}},
		"dialled first": {300 * time.Millisecond, 800 * time.Millisecond, firstGrace + 300*time.Millisecond, 2,
			[]string{"CheckOutStarted", "Created", "Ready", "PendingResponseFailed(error)", "Closed(error)", "CheckedOut"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &member{}
			p, j := newPool(t, m, pool.Options{Max: 1})
			first := checkOut(t, p)
			m.delay = c.dial
			giveUp(t, m, first, c.drain)
			j.take()
			start := time.Now()
			got := checkOut(t, p)
			if took := time.Since(start).Round(time.Millisecond); took != c.waits || got.ID() != c.id {
				t.Errorf("%s: connection %d after %v, want %d after %v", name, got.ID(), took, c.id, c.waits)
			}
			synctest.Wait()
			sameEvents(t, j.take(), c.events...)
			if s := p.Stats(); s.Total != 1 || s.InUse != 1 {
				t.Errorf("%s: stats %+v", name, s)
			}
			got.CheckIn()
			closePool(t, p)
			time.Sleep(time.Second) // the member's ends
		})
	}
}

func TestWaiterOfAnyPoolGetsWhatComesFirst(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dial := time.Duration(rapid.IntRange(1, 900).Draw(rt, "dial")) * time.Millisecond
		drain := time.Duration(rapid.IntRange(1, 900).Draw(rt, "drain")) * time.Millisecond
		size := rapid.IntRange(1, 4).Draw(rt, "max")
		synctest.Test(t, func(t *testing.T) {
			m := &member{}
			p, _ := newPool(t, m, pool.Options{Max: size})
			var out []*pool.Conn
			for range size {
				out = append(out, checkOut(t, p))
			}
			m.delay = dial
			giveUp(t, m, out[0], drain)
			start := time.Now()
			got := checkOut(t, p)
			if took, want := time.Since(start).Round(time.Millisecond), min(firstGrace+dial, drain); took != want {
				t.Errorf("waited %v: the dial takes %v, the reply comes after %v", took, dial, drain)
			}
			for _, c := range append(out[1:], got) {
				c.CheckIn()
			}
			time.Sleep(time.Second)
			if s := p.Stats(); s.Total > size || s.Draining != 0 {
				t.Errorf("stats %+v of at most %d", s, size)
			}
			closePool(t, p)
		})
	})
}

// TestQuickLateRepliesOpenNoConnections: callers give up one after the other at a pool at its limit, others wait for their
// places, and the late replies come soon. To close the connections would open one for each.
func TestQuickLateRepliesOpenNoConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, calls, late = 5, 200, 20 * time.Millisecond
		m := &member{delay: 5 * time.Millisecond}
		p, _ := newPool(t, m, pool.Options{Max: size})
		m.slow.Store(int64(late))
		var wg sync.WaitGroup
		var longest atomic.Int64
		for range 4 * size {
			wg.Go(func() {
				for range calls / (4 * size) {
					start := time.Now()
					c := checkOut(t, p)
					if w := int64(time.Since(start)); w > longest.Load() {
						longest.Store(w)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					if err := ping(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("the command ended with %v", err)
					}
					cancel()
					c.CheckIn()
				}
			})
		}
		wg.Wait()
		if dials := m.dials(); dials > size+2 {
			t.Errorf("%d calls that were given up opened %d connections, the pool holds %d", calls, dials, size)
		}
		// Four callers a place: each waits for three others at most, of which each drains for the rest of its 20 ms.
		if got := time.Duration(longest.Load()); got > 4*late+10*time.Millisecond {
			t.Errorf("somebody waited %v", got)
		}
		closePool(t, p)
		time.Sleep(time.Minute)
	})
}

// Where late replies are slow, nobody waits for them first.
func TestSlowLateRepliesDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{delay: 5 * time.Millisecond}
		p, _ := newPool(t, m, pool.Options{Max: 1})
		waits := make([]time.Duration, 4)
		for i := range waits {
			c := checkOut(t, p)
			giveUp(t, m, c, time.Hour)
			start := time.Now()
			checkOut(t, p).CheckIn()
			waits[i] = time.Since(start).Round(time.Millisecond)
			time.Sleep(5 * time.Second)
			if i == 0 { // one that nobody waits for the place of, so that the pool learns how long they take
				giveUp(t, m, checkOut(t, p), time.Hour)
				time.Sleep(5 * time.Second)
			}
		}
		if want := []time.Duration{firstGrace + m.delay, m.delay, m.delay, m.delay}; !slices.Equal(waits, want) {
			t.Errorf("the waits were %v, want %v", waits, want)
		}
		closePool(t, p)
		time.Sleep(2 * time.Hour)
	})
}

func TestClearAndCloseEndDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{}
		p, j := newPool(t, m, pool.Options{Max: 10})
		giveUp(t, m, checkOut(t, p), time.Minute)
		j.take()
		p.Clear(errors.New("gone"), false)
		synctest.Wait()
		sameEvents(t, j.take(), "PoolCleared", "PendingResponseFailed(error)", "Closed(stale)")
		p.Ready()
		giveUp(t, m, checkOut(t, p), time.Minute)
		j.take()
		start := time.Now()
		closePool(t, p)
		if took := time.Since(start); took != 0 {
			t.Errorf("Close waited %v for a late reply", took)
		}
		sameEvents(t, j.take(), "PendingResponseFailed(error)", "Closed(poolClosed)", "PoolClosed")
		time.Sleep(time.Hour) // the member's ends
	})
}

// What came back late, while the pool was cleared, is not drained.
func TestLateConnectionOfAnOldGenerationIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{}
		p, j := newPool(t, m, pool.Options{Max: 10})
		c := checkOut(t, p)
		p.Clear(errors.New("gone"), false)
		j.take()
		giveUp(t, m, c, time.Minute)
		sameEvents(t, j.take(), "CheckedIn", "Closed(stale)")
		p.Clear(mongoerr.ErrPoolCleared, false)
		closePool(t, p)
		time.Sleep(time.Hour)
	})
}
