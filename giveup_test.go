package sextant_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/replset"
)

// A caller who gives up is free at once; its connection drains and is used again (pain 4.29: short timeouts that close a
// connection each are what connection storms are made of).
func TestGivenUpFindsCostNoConnection(t *testing.T) {
	inSet(t, nil, func(t *testing.T, b *bubble) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		addr := b.set.Member(0).Addr()
		time.Sleep(time.Minute) // the monitors have all their connections
		before := len(b.log.pools(event.ConnectionCreated, addr, time.Time{}))
		for i := range 20 {
			b.fail(t, 0, replset.FailCommand{Commands: []string{"find"}, Block: 80 * time.Millisecond, Times: 1})
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			start := time.Now()
			_, err := b.orders().FindOne(ctx, bson.M{})
			cancel()
			if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > 51*time.Millisecond {
				t.Fatalf("find %d: %v after %v", i, err, took)
			}
			if s := b.member(0).Pool; s.Draining != 1 || s.Total != before || s.InUse != 0 {
				t.Errorf("find %d: pool %+v", i, s)
			}
			time.Sleep(50 * time.Millisecond)
			if _, err := b.orders().FindOne(t.Context(), bson.M{}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		created, closed := b.log.pools(event.ConnectionCreated, addr, time.Time{}), b.log.pools(event.ConnectionClosed, addr, time.Time{})
		if len(created) != before || len(closed) != 0 {
			t.Errorf("%d connections were opened and %d closed for 20 finds that were given up", len(created)-before, len(closed))
		}
		if n := len(b.log.pools(event.PendingResponseSucceeded, addr, b.start)); n != 20 {
			t.Errorf("%d late replies were drained", n)
		}
	})
}

// The one connection of the pool drains; who comes next does not wait for that longer than for a new one.
func TestNextOperationDoesNotWaitForALateReply(t *testing.T) {
	inSet(t, func(c *sextant.Config) { c.MaxPoolSize = new(1) }, func(t *testing.T, b *bubble) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		b.fail(t, 0, replset.FailCommand{Commands: []string{"find"}, Block: 2 * time.Second, Times: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := b.orders().FindOne(ctx, bson.M{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		start := time.Now()
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 5*time.Millisecond {
			t.Errorf("the next operation took %v", took)
		}
		if s := b.member(0).Pool; s.Total != 1 || s.Draining != 0 {
			t.Errorf("pool %+v", s)
		}
	})
}
