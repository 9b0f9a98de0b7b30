package replset

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// goodBooks and goodFacts agree with each other.
func goodBooks() *accounts {
	b := newAccounts()
	b.docs = map[string]fate{"kept": kept, "removed": removed, "tried": tried}
	b.batches = [][]string{{"a", "b", "c"}}
	b.counts[0] = count{low: 2, high: 4, acked: map[int32]bool{1: true, 3: true}, shown: 2}
	b.tick = 7
	return b
}

func goodFacts() facts {
	f := facts{docs: map[string]bool{"kept": true, "tried": true, "a": true}, tick: 7, ring: 20}
	f.counts[0].n, f.counts[0].ops = 3, []int32{1, 2, 3}
	return f
}

// TestEveryPromiseOfTheBooksCanBeBroken gives the judge of the books one fault at a time.
func TestEveryPromiseOfTheBooksCanBeBroken(t *testing.T) {
	if got := goodBooks().judge(goodFacts()); len(got) > 0 {
		t.Fatalf("nothing is wrong, and it is said that %v", got)
	}
	duplicate := &mongoerr.Error{Stage: mongoerr.StageServer, Code: mongoerr.CodeDuplicateKey}
	for name, k := range map[string]struct {
		wrong   func(b *accounts, f *facts)
		promise string
	}{
		"a lost document":             {func(_ *accounts, f *facts) { delete(f.docs, "kept") }, keeps},
		"a deletion undone":           {func(_ *accounts, f *facts) { f.docs["removed"] = true }, keeps},
		"a deletion of nothing":       {func(b *accounts, _ *facts) { b.deleted("removed", 0, nil) }, keeps},
		"an insert out of order":      {func(_ *accounts, f *facts) { f.docs["c"] = true }, once},
		"an insert that finds itself": {func(b *accounts, _ *facts) { b.inserted(duplicate, "x") }, once},
		"a lost increment":            {func(_ *accounts, f *facts) { f.counts[0].n, f.counts[0].ops = 2, []int32{1, 2} }, keeps},
		"an increment too many":       {func(_ *accounts, f *facts) { f.counts[0].n, f.counts[0].ops = 5, []int32{1, 2, 3, 4, 5} }, once},
		"a repeated increment":        {func(_ *accounts, f *facts) { f.counts[0].n, f.counts[0].ops = 4, []int32{1, 2, 3, 3} }, once},
		"half an update":              {func(_ *accounts, f *facts) { f.counts[0].n = 4 }, once},
		"a majority read taken back":  {func(b *accounts, _ *facts) { b.shown(0, 4) }, keeps},
		"findAndModify of the past":   {func(b *accounts, _ *facts) { b.counted(0, 3, 2, nil) }, keeps},
		"findAndModify of too many":   {func(b *accounts, _ *facts) { b.counted(0, 3, 5, nil) }, once},
		"a causal tick taken back":    {func(_ *accounts, f *facts) { f.tick = 6 }, keeps},
		"a ring too long":             {func(_ *accounts, f *facts) { f.ring = 21 }, alike},
	} {
		t.Run(name, func(t *testing.T) {
			b, f := goodBooks(), goodFacts()
			k.wrong(b, &f)
			if got := b.judge(f); !slices.ContainsFunc(got, func(v violation) bool { return v.promise == k.promise }) {
				t.Errorf("want %q, got %v", k.promise, got)
			}
		})
	}
}

// emptyWorld is a world in which nothing happens.
func emptyWorld() *world {
	w := &world{books: newAccounts(), terms: map[int64]int{}, set: &Set{}, tags: map[string]map[string]string{}}
	w.begun = time.Now()
	w.watch = newWatch(w)
	return w
}

func member(addr string, kind event.Kind, dc string) event.Member {
	return event.Member{Address: addr, Kind: kind, Tags: map[string]string{"dc": dc}}
}

// TestEveryPromiseOfTheWatchCanBeBroken has the watch see what must not be.
func TestEveryPromiseOfTheWatchCanBeBroken(t *testing.T) {
	elected := func(addr string, term byte) event.Member {
		m := member(addr, event.RSPrimary, "east")
		m.ElectionID = bson.ObjectID{11: term}
		return m
	}
	update := func(h *watch, members ...event.Member) {
		h.changed(&event.TopologyEvent{Type: event.TopologyUpdated, After: event.Topology{Members: members}})
	}
	ask := func(h *watch, server string, q want) {
		h.selected(&event.SelectionEvent{Type: event.SelectionSucceeded, OperationID: 1, Server: server})
		h.started(context.WithValue(t.Context(), wantKey{}, q), &event.CommandStartedEvent{Name: "find", OperationID: 1, Server: server, Command: bson.Raw("\x05\x00\x00\x00\x00")})
	}
	east := []readpref.TagSet{readpref.TagSetOf(map[string]string{"dc": "east"})}
	for name, k := range map[string]struct {
		see     func(w *world)
		promise string // "": none is broken
	}{
		"all is well": {func(w *world) {
			w.tags["b"] = map[string]string{"dc": "east"}
			update(w.watch, elected("a", 1), member("b", event.RSSecondary, "east"))
			ask(w.watch, "b", want{mode: readpref.SecondaryMode, tags: east})
		}, ""},
		"a read from the wrong kind": {func(w *world) {
			update(w.watch, elected("a", 1), member("b", event.RSSecondary, "east"))
			ask(w.watch, "b", want{mode: readpref.PrimaryMode})
		}, kinds},
		"a secondary where there is a primary": {func(w *world) {
			update(w.watch, elected("a", 1), member("b", event.RSSecondary, "east"))
			ask(w.watch, "b", want{mode: readpref.PrimaryPreferredMode})
		}, kinds},
		"the wrong tags": {func(w *world) {
			update(w.watch, elected("a", 1), member("b", event.RSSecondary, "west"))
			ask(w.watch, "b", want{mode: readpref.NearestMode, tags: east})
		}, kinds},
		"tags that the configuration does not give": {func(w *world) {
			w.tags["b"] = map[string]string{"dc": "west"}
			update(w.watch, elected("a", 1), member("b", event.RSSecondary, "east"))
			ask(w.watch, "b", want{mode: readpref.SecondaryMode, tags: east})
		}, kinds},
		"the primary while the only secondary is too stale, or was until just now": {func(w *world) {
			update(w.watch, elected("a", 1), member("b", event.RSSecondary, "east"))
			w.watch.behind["b"] = time.Now()
			time.Sleep(slack)
			ask(w.watch, "a", want{mode: readpref.SecondaryPreferredMode, stale: 100 * time.Second})
		}, ""},
		"the primary while one secondary is too stale and another is not": {func(w *world) {
			update(w.watch, elected("a", 1), member("b", event.RSSecondary, "east"), member("c", event.RSSecondary, "east"))
			w.watch.behind["b"] = time.Now()
			ask(w.watch, "a", want{mode: readpref.SecondaryPreferredMode, stale: 100 * time.Second})
		}, kinds},
		"the primary while the secondary has long not been stale": {func(w *world) {
			update(w.watch, elected("a", 1), member("b", event.RSSecondary, "east"))
			w.watch.behind["b"] = time.Now()
			time.Sleep(slack + time.Second)
			ask(w.watch, "a", want{mode: readpref.SecondaryPreferredMode, stale: 100 * time.Second})
		}, kinds},
		"a kind of the past": {func(w *world) {
			update(w.watch, member("b", event.RSSecondary, "east"))
			time.Sleep(time.Second)
			update(w.watch, elected("b", 1))
			time.Sleep(time.Second)
			ask(w.watch, "b", want{mode: readpref.SecondaryMode})
		}, kinds},
		"a member that nobody chose": {func(w *world) {
			update(w.watch, member("b", event.RSSecondary, "east"), member("c", event.RSSecondary, "east"))
			ask(w.watch, "b", want{mode: readpref.SecondaryMode})
			w.watch.reads[0].server = "c"
		}, kinds},
		"an older primary":    {func(w *world) { update(w.watch, elected("a", 2)); update(w.watch, elected("b", 1)) }, newest},
		"two primaries":       {func(w *world) { update(w.watch, elected("a", 1), elected("b", 2)) }, newest},
		"a connection kept":   {func(w *world) { w.watch.pooled(&event.PoolEvent{Type: event.ConnectionCheckOut}) }, clean},
		"a session each":      {func(w *world) { w.watch.sessions = manySessions() }, clean},
		"two heads of a term": {func(w *world) { w.elected(3, 0); w.elected(3, 1) }, oneHead},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := emptyWorld()
				k.see(w)
				w.watch.audit()
				if k.promise == "" && len(w.broken) > 0 {
					t.Errorf("nothing is wrong, and it is said that %v", w.broken)
				}
				if k.promise != "" && !slices.ContainsFunc(w.broken, func(v violation) bool { return v.promise == k.promise }) {
					t.Errorf("want %q, got %v", k.promise, w.broken)
				}
			})
		})
	}
}

func manySessions() map[string]bool {
	sessions := map[string]bool{}
	for i := range writers + readers + 2 {
		sessions[string(rune('a'+i))] = true
	}
	return sessions
}

// TestEveryOtherPromiseCanBeBroken: an operation that takes its time, a counter that goes back, connections left open,
// members that differ.
func TestEveryOtherPromiseCanBeBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := emptyWorld()
		for range 20 { // with each of the limits
			_ = w.timed(rand.New(rand.NewPCG(1, 1)), "a sleep", func(context.Context) error { time.Sleep(slowest + time.Second); return errors.New("late") })
		}
		w.wantBroken(t, punctual)
		w.hears(5, nil)
		w.hears(4, nil)
		w.wantBroken(t, forward)
		w.books.dared("w1-x", nil)
		w.judgeAside(facts{})
		w.wantBroken(t, aside)
		near, far := net.Pipe()
		w.sockets.Add(1)
		c := &counted{Conn: near, open: &w.sockets}
		w.wantNoSockets()
		w.wantBroken(t, clean)
		c.Close()
		c.Close()
		if far.Close(); w.sockets.Load() != 0 {
			t.Errorf("%d connections are open after all were closed", w.sockets.Load())
		}
	})
	a, b := store.NewSized(10, 1000), store.NewSized(10, 1000)
	for i, s := range []*store.Store{a, b} {
		if _, err := s.Write(func() (store.OpTime, time.Time) {
			return store.OpTime{TS: bson.Timestamp{T: 1, I: uint32(1 + i)}, Term: 1}, time.Unix(1, 0)
		},
			func(tx *store.Tx) error { return tx.Noop(bson.Raw{5, 0, 0, 0, 0}) }); err != nil {
			t.Fatal(i, err)
		}
	}
	if got := differences(a.Latest(), a.Latest()); len(got) > 0 {
		t.Errorf("a store differs from itself: %v", got)
	}
	if got := differences(a.Latest(), b.Latest()); len(got) == 0 {
		t.Error("two oplogs with other entries are alike")
	}
}

// TestSetThatDoesNotRecoverIsNoticed: one that has lost its majority, and a member that claims what it is not.
func TestSetThatDoesNotRecoverIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := emptyWorld()
		w.set = bubbleSet(t, Options{})
		defer w.set.Close()
		if !w.settle(t.Context()) {
			t.Fatalf("a set that is well is said not to be: %v", w.broken)
		}
		for i := 1; i < 3; i++ {
			if err := w.set.Kill(i); err != nil {
				t.Fatal(err)
			}
		}
		if w.settle(t.Context()) {
			t.Error("a set without a majority is said to be well")
		}
		w.wantBroken(t, recovers)
		hello, err := bson.Marshal(bson.D{{Key: "me", Value: w.set.Member(0).Addr()}, {Key: "isWritablePrimary", Value: true}, {Key: "secondary", Value: true}})
		if err != nil {
			t.Fatal(err)
		}
		w.checkHello(0, hello)
		w.wantBroken(t, truthful)
	})
}

func (w *world) wantBroken(t *testing.T, promise string) {
	t.Helper()
	if !slices.ContainsFunc(w.broken, func(v violation) bool { return v.promise == promise }) {
		t.Errorf("want %q, got %v", promise, w.broken)
	}
	w.broken = nil
}
