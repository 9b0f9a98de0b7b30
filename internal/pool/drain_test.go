package pool_test

import (
	"context"
	"errors"
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

// Whoever waits gets the drained connection or a new one, whichever is first, so that it never waits longer than if the
// connection had been closed; and there are never more connections than the limit allows.
func TestWaiterNeverWaitsLongerBecauseOfADrain(t *testing.T) {
	for name, c := range map[string]struct {
		dial, drain, waits time.Duration
		id                 int64
		events             []string
	}{
		"drained first": {800 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond, 1,
			[]string{"CheckOutStarted", "Created", "PendingResponseSucceeded", "Closed(surplus)", "CheckedOut"}},
		"dialled first": {300 * time.Millisecond, 800 * time.Millisecond, 300 * time.Millisecond, 2,
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
			if took, want := time.Since(start).Round(time.Millisecond), min(dial, drain); took != want {
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
