package sextant_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
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

// stalled is a connection that takes nothing while it is told so.
type stalled struct {
	net.Conn
	stall *atomic.Bool
}

func (s stalled) Write(b []byte) (int, error) {
	if s.stall.Load() {
		time.Sleep(time.Second)
		return 0, os.ErrDeadlineExceeded
	}
	return s.Conn.Write(b)
}

// The deadline passes before the first byte of a command is sent: that is the caller's affair, and neither the connection nor
// the pool nor what the client thinks of the member changes.
func TestDeadlineBeforeTheFirstByteHarmsNeitherPoolNorMember(t *testing.T) {
	var stall atomic.Bool
	inSet(t, func(c *sextant.Config) {
		dial := c.Dial
		c.MaxPoolSize = new(1)
		c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := dial(ctx, network, addr)
			return stalled{nc, &stall}, err
		}
	}, func(t *testing.T, b *bubble) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // what the start has changed is older
		addr, now := b.set.Member(0).Addr(), time.Now()
		stall.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := b.orders().InsertOne(ctx, bson.M{})
		stall.Store(false)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "before anything was sent") {
			t.Errorf("the insert ended with %v", err)
		}
		if err := b.insert(t); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		for _, kind := range []event.PoolEventType{event.PoolCleared, event.ConnectionClosed, event.ConnectionCreated, event.PendingResponseStarted} {
			if n := len(b.log.pools(kind, addr, now)); n > 0 {
				t.Errorf("%d events %s", n, kind)
			}
		}
		if changes := b.memberEvents(0, now); len(changes) > 0 || b.member(0).LastError != nil {
			t.Errorf("the member changed: %v, %v", changes, b.member(0).LastError)
		}
	})
}

// The one connection of the pool drains; who comes next waits for that no longer than late replies commonly take, a tenth of a
// second while nobody knows, and then for a new one.
func TestNextOperationWaitsForALateReplyNoLongerThanItIsWorth(t *testing.T) {
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
		if took := time.Since(start); took > 105*time.Millisecond {
			t.Errorf("the next operation took %v", took)
		}
		if s := b.member(0).Pool; s.Total != 1 || s.Draining != 0 {
			t.Errorf("pool %+v", s)
		}
	})
}

// One connection is enough for a cursor that is read while other operations go on, one of them retried: nobody waits for a
// connection that it holds itself.
func TestOneConnectionServesACursorWritesAndARetry(t *testing.T) {
	inSet(t, func(c *sextant.Config) { c.MaxPoolSize, c.WaitQueueTimeout = new(1), 10*time.Second }, func(t *testing.T, b *bubble) {
		docs := make([]bson.D, 50)
		for i := range docs {
			docs[i] = bson.D{{Key: "_id", Value: i}}
		}
		if _, err := b.orders().InsertMany(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
		cur, err := b.orders().Find(t.Context(), bson.M{}, sextant.FindOptions{BatchSize: 2})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for d, err := range cur.Each(t.Context()) {
			if err != nil {
				t.Fatalf("after %d documents: %v", n, err)
			}
			if n == 9 || n == 20 {
				b.fail(t, 0, replset.FailCommand{Commands: []string{"update"}, ErrorCode: 10107, ErrorLabels: []string{"RetryableWriteError"}, Times: 1})
			}
			if _, err := b.cl.Database("shop").Collection("log").UpdateOne(t.Context(), bson.M{"_id": d[0].Value}, bson.M{"$set": bson.M{"n": n}},
				sextant.UpdateOneOptions{Upsert: true}); err != nil {
				t.Fatalf("write %d: %v", n, err)
			}
			n++
		}
		if s := b.member(0).Pool; n != 50 || s.Total != 1 || s.InUse != 0 || s.Waiting != 0 {
			t.Errorf("%d documents, pool %+v", n, s)
		}
	})
}

func TestManyClientsOfOneProcessAreRemarked(t *testing.T) {
	var log bytes.Buffer
	cfg := &sextant.Config{Hosts: []string{"many-clients.test"}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	make := func(n int) (out []*sextant.Client) {
		for range n {
			cl, err := sextant.ConnectConfig(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, cl)
		}
		return out
	}
	for range 30 { // one after the other are not many
		make(1)[0].Close(t.Context())
	}
	open := make(9)
	if log.Len() > 0 {
		t.Errorf("9 clients: %s", log.String())
	}
	open = append(open, make(12)...)
	for _, n := range []int{10, 20} {
		if says := fmt.Sprintf("%d clients of this process are open to many-clients.test:27017", n); strings.Count(log.String(), says) != 1 {
			t.Errorf("%d clients: %s", n, log.String())
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d remarks", n)
	}
	for _, cl := range open {
		cl.Close(t.Context())
	}
}
