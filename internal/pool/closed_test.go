package pool_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/pool"
)

// TestClosedForAnErrorSaysWhich: by whatever way a connection is lost.
func TestClosedForAnErrorSaysWhich(t *testing.T) {
	hung := errors.New("the member hangs")
	for name, c := range map[string]struct {
		lose  func(t *testing.T, p *pool.Pool, m *member)
		words string
		max   int
	}{
		"the server hangs up": {func(t *testing.T, p *pool.Pool, m *member) {
			c := checkOut(t, p)
			m.hangUp()
			if err := ping(t.Context(), c); err == nil {
				t.Error("a ping over a closed connection")
			}
			c.CheckIn()
		}, "the server closed the connection", 0},
		"its user closes it": {func(t *testing.T, p *pool.Pool, _ *member) {
			c := checkOut(t, p)
			c.Close()
			c.CheckIn()
		}, "closed by this client", 0},
		"its user distrusts it": {func(t *testing.T, p *pool.Pool, _ *member) {
			c := checkOut(t, p)
			c.Break(hung)
			c.CheckIn()
		}, hung.Error(), 0},
		"its member hangs": {func(t *testing.T, p *pool.Pool, _ *member) {
			c := checkOut(t, p)
			p.Clear(hung, true)
			c.CheckIn()
		}, hung.Error(), 0},
		"the late reply does not come": {func(t *testing.T, p *pool.Pool, m *member) {
			giveUp(t, m, checkOut(t, p), time.Hour)
			time.Sleep(5 * time.Second)
		}, "did not answer in time", 0},
		"the late reply comes later than a new connection": {func(t *testing.T, p *pool.Pool, m *member) {
			m.delay = 300 * time.Millisecond
			giveUp(t, m, checkOut(t, p), 800*time.Millisecond)
			checkOut(t, p).CheckIn()
		}, "before the late reply came", 1},
		"it does not answer after a freeze": {func(t *testing.T, p *pool.Pool, _ *member) {
			a, b := checkOut(t, p), checkOut(t, p)
			a.CheckIn()
			b.CheckIn()
			time.Sleep(time.Millisecond)
			p.Doubt()
			checkOut(t, p).CheckIn()
		}, "no sign of life", 0},
		"the dial fails": {func(t *testing.T, p *pool.Pool, m *member) {
			m.fail = hung
			if _, err := p.CheckOut(t.Context()); err == nil {
				t.Error("a connection without a dial")
			}
		}, hung.Error(), 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &member{}
			var closed []error
			opts := &conn.Options{Dial: m.dial}
			p := pool.New("db1:27017", pool.Options{
				Max: c.max,
				Open: func(ctx context.Context, _ func(bson.ObjectID)) (*conn.Conn, error) {
					return conn.Open(ctx, "db1:27017", opts)
				},
				Probe: func(context.Context, *conn.Conn) error { return errors.New("no sign of life") },
				Publish: func(e *event.PoolEvent) {
					if e.Type == event.ConnectionClosed && e.Reason == event.ReasonError {
						closed = append(closed, e.Err)
					}
				},
			})
			p.Ready()
			c.lose(t, p, m)
			synctest.Wait()
			if len(closed) == 0 {
				t.Errorf("%s: no connection was closed for an error", name)
			}
			for _, err := range closed {
				if err == nil || !strings.Contains(err.Error(), c.words) {
					t.Errorf("%s: closed because of %v, want %q", name, err, c.words)
				}
			}
			closePool(t, p)
			time.Sleep(2 * time.Hour) // the member's ends
		})
	}
}
