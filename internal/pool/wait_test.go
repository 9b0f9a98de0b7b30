package pool_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/pool"
	"github.com/sextantdb/sextant/mongoerr"
)

// says holds an error to the words that it must contain.
func says(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v does not say %q", err, w)
		}
	}
}

// impatient waits for a connection for two seconds.
func impatient(t *testing.T, p *pool.Pool) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := p.CheckOut(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the wait ended with %v", err)
	}
	return err
}

func TestErrorOfAWaitNamesWhoHoldsTheConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPool(t, &member{}, pool.Options{Max: 4})
		var out []*pool.Conn
		for _, h := range []pool.Holder{pool.ByCursor, pool.ByCursor, pool.ByTransaction, pool.ByOperation} {
			c := checkOut(t, p)
			c.Hold(h)
			out = append(out, c)
		}
		if s := p.Stats(); s.HeldByCursors != 2 || s.HeldByTransactions != 1 || s.InUse != 4 {
			t.Errorf("stats %+v", s)
		}
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() { _, _ = p.CheckOut(ctx) })
		synctest.Wait()
		says(t, impatient(t, p), "within 2 s", "maxPoolSize: 4, connections in use by cursors: 2, connections in use by transactions: 1, connections in use by other operations: 1",
			"1 other caller waits")
		cancel()
		wg.Wait()
		for _, c := range out {
			c.CheckIn()
		}
		if s := p.Stats(); s.HeldByCursors != 0 || s.HeldByTransactions != 0 {
			t.Errorf("stats %+v", s)
		}
		closePool(t, p)
	})
}

func TestErrorOfAWaitTellsOfDialsAndDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{}
		p, _ := newPool(t, m, pool.Options{Max: 10})
		late := checkOut(t, p)
		m.fail = errors.New("no route to host")
		if _, err := p.CheckOut(t.Context()); !errors.Is(err, m.fail) {
			t.Error(err)
		}
		m.fail, m.delay = nil, time.Hour
		giveUp(t, m, late, 10*time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := p.CheckOut(ctx)
		says(t, err, "0 connections are in use", "1 being opened (maxConnecting 2)", "1 waits for the late reply",
			"the last attempt to open one failed 500 ms ago", "no route to host")
		closePool(t, p)
		time.Sleep(time.Hour) // the member's end
	})
}

func TestErrorOfAPausedPoolTellsWhetherItEverWorked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{}
		opts := &conn.Options{Dial: m.dial}
		p := pool.New("db1:27017", pool.Options{Open: func(ctx context.Context, _ func(bson.ObjectID)) (*conn.Conn, error) {
			return conn.Open(ctx, "db1:27017", opts)
		}})
		_, err := p.CheckOut(t.Context())
		says(t, err, "the member has not answered its monitor yet")
		if !mongoerr.IsPoolCleared(err) || strings.Contains(err.Error(), "failure") {
			t.Error(err)
		}
		p.Ready()
		p.Clear(errors.New("the primary stepped down"), false)
		_, err = p.CheckOut(t.Context())
		says(t, err, "paused after a failure", "the primary stepped down")
		p.Close(t.Context())
		_, err = p.CheckOut(t.Context())
		says(t, err, "the connection pool is closed")
	})
}

// The connection that became idle last is used first, so that those that are not needed grow old and go.
func TestIdleConnectionsAreUsedLastInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPool(t, &member{}, pool.Options{Max: 3})
		out := []*pool.Conn{checkOut(t, p), checkOut(t, p), checkOut(t, p)}
		for _, i := range []int{1, 0, 2} {
			out[i].CheckIn()
		}
		for _, want := range []int64{3, 1, 2} {
			if c := checkOut(t, p); c.ID() != want {
				t.Errorf("connection %d, want %d", c.ID(), want)
			}
		}
		for _, c := range out {
			c.CheckIn()
		}
		closePool(t, p)
	})
}
