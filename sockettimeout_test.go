package sextant_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// slowed is a set of one whose next so many finds take five seconds, and a client that waits one second for a reply.
func slowed(t *testing.T, times int, change func(*sextant.Config), f func(t *testing.T, b *bubble)) {
	t.Helper()
	inBubble(t, func(o *replset.Options, cfg *sextant.Config) {
		o.Members = 1
		cfg.SocketTimeout = time.Second
		if change != nil {
			change(cfg)
		}
	}, func(t *testing.T, b *bubble) {
		if err := b.cl.WaitReady(t.Context(), sextant.Want{Write: true}); err != nil {
			t.Fatal(err)
		}
		if err := b.set.FailCommand(0, &replset.FailCommand{Commands: []string{"find"}, Block: 5 * time.Second, Times: times}); err != nil {
			t.Fatal(err)
		}
		b.start = time.Now()
		f(t, b)
	})
}

func TestSocketTimeoutEndsAnAttemptAndNotTheOperation(t *testing.T) {
	slowed(t, 1, nil, func(t *testing.T, b *bubble) {
		_, err := b.cl.Database("shop").Collection("people").FindOne(t.Context(), bson.M{})
		if !errors.Is(err, sextant.ErrNoDocuments) || b.at() != time.Second {
			t.Errorf("after %v: %v", b.at(), err)
		}
	})
}

func TestSocketTimeoutIsATimeoutOfTheNetworkThatBlamesNobody(t *testing.T) {
	slowed(t, 2, nil, func(t *testing.T, b *bubble) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := b.cl.Database("shop").Collection("people").FindOne(ctx, bson.M{})
		e, ok := errors.AsType[*mongoerr.Error](err)
		if !ok || !mongoerr.IsTimeout(err) || !mongoerr.IsNetwork(err) || errors.Is(err, context.DeadlineExceeded) || e.Attempts != 2 || e.Stage != mongoerr.StageRead {
			t.Fatalf("%#v", err)
		}
		if !strings.Contains(err.Error(), "no reply within socketTimeoutMS (1s)") || b.at() != 2*time.Second {
			t.Errorf("after %v: %v", b.at(), err)
		}
		m := b.member(0)
		if m.Kind != event.RSPrimary || m.Pool.Generation != 0 {
			t.Errorf("a slow operation changed the view: %v, pool %+v", m.Kind, m.Pool)
		}
	})
}

func TestSocketTimeoutGivesWayToTheContextAndToTimeout(t *testing.T) {
	slowed(t, 1, nil, func(t *testing.T, b *bubble) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := b.cl.Database("shop").Collection("people").FindOne(ctx, bson.M{})
		if !errors.Is(err, context.DeadlineExceeded) || b.at() != 500*time.Millisecond || strings.Contains(err.Error(), "socketTimeoutMS") {
			t.Errorf("after %v: %v", b.at(), err)
		}
	})
	slowed(t, 1, func(cfg *sextant.Config) { cfg.Timeout = 10 * time.Second }, func(t *testing.T, b *bubble) {
		_, err := b.cl.Database("shop").Collection("people").FindOne(t.Context(), bson.M{})
		if !errors.Is(err, sextant.ErrNoDocuments) || b.at() != 5*time.Second {
			t.Errorf("after %v: %v", b.at(), err)
		}
	})
}
