package sextant_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// Broken by a callback that runs on a goroutine which the client cannot do without, or under a lock: see experiment F.
func TestCallbackThatPanicsHarmsNothingOfAnyKind(t *testing.T) {
	told := map[string]int{}
	var mu sync.Mutex
	blow := func(kind string) {
		mu.Lock()
		told[kind]++
		mu.Unlock()
		panic(kind)
	}
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		primaryFirst(o)
		c.Monitor = &event.Monitor{
			CommandStarted:   func(context.Context, *event.CommandStartedEvent) { blow("started") },
			CommandSucceeded: func(context.Context, *event.CommandSucceededEvent) { blow("succeeded") },
			CommandFailed:    func(context.Context, *event.CommandFailedEvent) { blow("failed") },
			Pool:             func(*event.PoolEvent) { blow("pool") },
			Heartbeat:        func(*event.HeartbeatEvent) { blow("heartbeat") },
			TopologyChanged:  func(*event.TopologyEvent) { blow("topology") },
			Selection:        func(*event.SelectionEvent) { blow("selection") },
		}
	}, func(t *testing.T, b *bubble) {
		step := func() {
			t.Helper()
			if err := b.insert(t); err != nil {
				t.Fatal(err)
			}
			_, _ = b.cl.Database("shop").RunCommand(t.Context(), bson.D{{Key: "noSuchCommand", Value: 1}})
			synctest.Wait()
		}
		step()
		if err := b.set.Kill(0); err != nil { // the failover must be noticed for all that
			t.Fatal(err)
		}
		step()
		mu.Lock()
		defer mu.Unlock()
		for _, kind := range []string{"started", "succeeded", "failed", "pool", "heartbeat", "topology", "selection"} {
			if told[kind] < 2 {
				t.Errorf("%s: told %d times", kind, told[kind])
			}
		}
	})
}

// Broken by a publisher that waits for its callbacks, or by a queue without an end.
func TestCallbackThatHangsSlowsNoOperationAndItsEventsAreCounted(t *testing.T) {
	var gate chan struct{}
	inBubble(t, func(_ *replset.Options, c *sextant.Config) {
		gate = make(chan struct{})
		c.Monitor = &event.Monitor{
			TopologyChanged: func(*event.TopologyEvent) { <-gate },
			Pool:            func(*event.PoolEvent) {},
			Selection:       func(*event.SelectionEvent) {},
		}
	}, func(t *testing.T, b *bubble) {
		defer close(gate)
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		from := time.Now()
		for range 900 { // five events each: two of the selection, three of the pool
			if err := b.find(t); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(from); took > 0 { // on a network in memory
			t.Errorf("900 reads took %v", took)
		}
		if n := b.cl.DroppedEvents(); n < 400 || n > 500 {
			t.Errorf("%d events were dropped of 4,500, 4,096 may wait", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = b.cl.Close(ctx)
		if took := time.Since(from); took > 3*time.Second {
			t.Errorf("Close ended after %v", took)
		}
	})
}

// Broken by a Close that gives up waiting for a callback and says that all went well.
func TestCloseInsideACallbackSaysThatItWaitsForItself(t *testing.T) {
	var cl *sextant.Client
	var said chan error
	inBubble(t, func(_ *replset.Options, c *sextant.Config) {
		said = make(chan error, 1)
		closes := sync.OnceFunc(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			said <- cl.Close(ctx)
		})
		c.Monitor = &event.Monitor{Selection: func(*event.SelectionEvent) { closes() }}
	}, func(t *testing.T, b *bubble) {
		cl = b.cl
		_ = b.insert(t) // starts the client, or finds it closed
		if err := <-said; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "a callback of its events") {
			t.Errorf("Close in a callback: %v", err)
		}
	})
}

// Broken by an event that is told before its time, or not told at all (SDAM logging and monitoring, "guarantees").
func TestTopologyEventsBeginAndEndAsTheSpecificationDemands(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		_ = b.cl.Close(t.Context())
		list := b.log.topology
		first, second := list[0].E, list[1].E
		last, before := list[len(list)-1].E, list[len(list)-2].E
		if first.Type != event.TopologyOpened || last.Type != event.TopologyClosed {
			t.Errorf("first %v, last %v", first.Type, last.Type)
		}
		if second.Type != event.TopologyUpdated || second.Before.Kind != event.TopologyUnknown || len(second.Before.Members) != 0 {
			t.Errorf("second %v from %v", second.Type, second.Before)
		}
		if before.Type != event.TopologyUpdated || before.After.Kind != event.TopologyUnknown || len(before.After.Members) != 0 {
			t.Errorf("last but one %v to %v", before.Type, before.After)
		}
		opened := map[string]int{}
		for _, e := range list {
			if e.E.TopologyID != first.TopologyID || first.TopologyID == (bson.ObjectID{}) {
				t.Errorf("%v: topology %v, at first %v", e.E.Type, e.E.TopologyID, first.TopologyID)
			}
			switch e.E.Type {
			case event.MemberOpened:
				opened[e.E.Address]++
			case event.MemberClosed:
				opened[e.E.Address]--
			case event.MemberUpdated:
				if e.E.Address == "" || e.E.MemberBefore.Address != e.E.Address || e.E.MemberAfter.Address != e.E.Address {
					t.Errorf("%+v", e.E)
				}
			}
		}
		for addr, n := range opened {
			if n != 0 {
				t.Errorf("%s was opened %d times more than closed", addr, n)
			}
		}
	})
}

func TestHeartbeatEventsComeInPairsWithTheirConnection(t *testing.T) {
	inBubble(t, func(o *replset.Options, _ *sextant.Config) { primaryFirst(o) }, func(t *testing.T, b *bubble) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := b.set.Kill(2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		_ = b.cl.Close(t.Context())
		begun := map[string]event.HeartbeatEvent{}
		failed := 0
		for _, told := range b.log.beats {
			e := told.E
			if e.Type == event.HeartbeatStarted {
				if _, twice := begun[e.Address]; twice {
					t.Errorf("%s began twice", e.Address)
				}
				begun[e.Address] = e
				continue
			}
			start, ok := begun[e.Address]
			if !ok || start.ConnectionID != e.ConnectionID || start.Awaited != e.Awaited || e.ConnectionID == 0 {
				t.Errorf("%+v follows %+v", e, start)
			}
			delete(begun, e.Address)
			switch {
			case e.Type == event.HeartbeatFailed:
				failed++
				if e.Err == nil {
					t.Errorf("%+v", e)
				}
			case e.ServerConnectionID == 0 || e.Reply == nil || e.Err != nil:
				t.Errorf("%+v", e)
			}
		}
		if len(begun) != 0 || failed == 0 {
			t.Errorf("left open %v, %d failed", begun, failed)
		}
	})
}

func TestSelectionEventsTellTheTopologyAndTheVerdict(t *testing.T) {
	var list []event.SelectionEvent
	inBubble(t, func(_ *replset.Options, c *sextant.Config) {
		c.ServerSelectionTimeout = time.Second
		c.Monitor = &event.Monitor{Selection: func(e *event.SelectionEvent) { list = append(list, *e) }}
	}, func(t *testing.T, b *bubble) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if err := b.set.Kill(i); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		list = nil
		err := b.insert(t)
		if !mongoerr.IsSelection(err) && !mongoerr.IsNetwork(err) {
			t.Errorf("%v", err)
		}
		_ = b.cl.Close(t.Context())
		types := ""
		for _, e := range list {
			types += string(e.Type) + " "
			if e.Operation == "insert" && (e.OperationID == 0 || e.Want == "" || len(e.Topology.Members) != 3) {
				t.Errorf("%+v", e)
			}
			switch e.Type {
			case event.SelectionWaiting:
				if e.Remaining != time.Second || e.Verdict.Sentence == "" || len(e.Verdict.Members) != 3 {
					t.Errorf("%+v", e)
				}
			case event.SelectionFailed:
				if e.Err == nil {
					t.Errorf("%+v", e)
				}
			}
		}
		if types != "ServerSelectionStarted ServerSelectionWaiting ServerSelectionFailed " {
			t.Errorf("events %s", types)
		}
	})
}
