package replset

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// A soak is a long time of mixed operations by many goroutines through our driver, on a set that random faults strike. What
// was acknowledged by a majority must be there afterwards, what nobody changes must be read in whole at any time, no operation
// may outlast its limit by much, and goroutines, sockets and heap must be back to what they were. Stories (TestStories) judge
// more finely, on fake time, with few at work; a soak is about weight: many at a time, real sockets, and for long.

// soak is one while it is under way.
type soak struct {
	set     *Set
	client  *sextant.Client
	workers int
	seed    uint64
	pause   time.Duration // between two operations of a worker: from half of it to one and a half times as much
	loads   int           // so far
	usual   time.Duration // the delay of the links that no fault slows down
	late    atomic.Int64  // by how much timers are, in nanoseconds: see pulse
	books   soakBooks

	logs     sync.Mutex // guards messages
	messages map[string]int
}

// TestSoak soaks for SOAK, a number of seconds or a Go duration, over TCP in real time (make soak). Without SOAK it is
// short, and on fake time.
func TestSoak(t *testing.T) {
	length, err := soakLength(os.Getenv("SOAK"))
	if err != nil {
		t.Fatal(err)
	}
	w := &soak{workers: 200, seed: number("SOAK_SEED", 1), pause: 100 * time.Millisecond, messages: map[string]int{}}
	if length > 0 {
		w.run(t, length, tcp{}, nil)
		return
	}
	w.workers, w.pause = 25, 120*time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		network := NewMemoryNetwork()
		w.run(t, 4*time.Second, network, network.Dial)
	})
}

// soakLength reads SOAK: 0 if it is empty.
func soakLength(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if n, notNumber := strconv.Atoi(s); notNumber == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d < time.Second {
		return 0, fmt.Errorf("SOAK=%q: want seconds or a Go duration such as 10m, at least one second", s)
	}
	return d, nil
}

func TestLengthOfASoakIsSecondsOrADuration(t *testing.T) {
	for s, want := range map[string]time.Duration{"": 0, "90": 90 * time.Second, "10m": 10 * time.Minute} {
		if got, err := soakLength(s); got != want || err != nil {
			t.Errorf("SOAK=%q is %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"soon", "0", "-5", "10ms", "1h30"} {
		if d, err := soakLength(s); err == nil {
			t.Errorf("SOAK=%q was taken for %v", s, d)
		}
	}
}

// figures are what must not grow.
type figures struct{ goroutines, sockets, heap, cursors int }

func (f figures) String() string {
	return fmt.Sprintf("%d goroutines, %d forgotten cursors, %d sockets, %.1f MB of heap", f.goroutines, f.cursors, f.sockets, float64(f.heap)/(1<<20))
}

func measure() (f figures) {
	runtime.GC()
	runtime.GC() // the first only moves what pools of the runtime keep
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	names, _ := filepath.Glob("/proc/self/fd/*") // elsewhere there are none
	for _, name := range names {
		if to, err := os.Readlink(name); err == nil && strings.HasPrefix(to, "socket:") {
			f.sockets++
		}
	}
	f.goroutines, f.heap = runtime.NumGoroutine(), int(m.HeapAlloc)
	return f
}

// The network between members keeps connections for reuse, at most so many of a set of three.
const spareConns = 12

func (w *soak) run(t *testing.T, length time.Duration, network Network, dial func(context.Context, string, string) (net.Conn, error)) {
	before := measure()
	w.start(t, network, dial)
	w.prepare(t)
	w.load(t, max(length/10, time.Second), false) // pools, oplog and what else is bounded fill
	for length > time.Minute && w.set.members[0].current().Store.Latest().Collection(store.OplogNS).Count() < soakOplog {
		w.load(t, time.Second, false)
	}
	w.tidy(t)
	base := w.atRest(t, figures{})
	w.load(t, length, true)
	w.books.audit(t, w.client)
	w.tidy(t)
	after := w.atRest(t, base)
	w.report(t, length, before, base, after)
	if err := w.client.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := w.set.Close(); err != nil {
		t.Error(err)
	}
	end := measure()
	for until := time.Now().Add(5 * time.Second); end.goroutines > before.goroutines || end.sockets > before.sockets; end = measure() {
		if time.Now().After(until) {
			t.Errorf("%v before and, when all was closed, %v\n%s", before, end, stacks())
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("closed: %v", end)
}

const soakOplog = 3000

func (w *soak) start(t *testing.T, network Network, dial func(context.Context, string, string) (net.Conn, error)) {
	logger := slog.New(soakLog{w})
	names := []MemberOptions{{Tags: map[string]string{"dc": "east"}}, {Tags: map[string]string{"dc": "west"}}, {Tags: map[string]string{"dc": "west"}}}
	if dial != nil {
		for i := range names {
			names[i].Name, names[i].Port = fmt.Sprintf("m%d", i), 27017
		}
	}
	var err error
	if w.set, err = Start(t.Context(), Options{Config: names, Network: network, OplogEntries: soakOplog, Logger: logger}); err != nil {
		t.Fatal(err)
	}
	cfg, err := sextant.ParseURI(w.set.URI())
	if err != nil {
		t.Fatal(err)
	}
	cfg.AppName, cfg.ServerSelectionTimeout, cfg.MaxIdleTime = app, selectionTimeout, time.Second
	cfg.HeartbeatFrequency, cfg.Compressors, cfg.Logger, cfg.Dial = 2*time.Second, []string{"snappy"}, logger, dial
	if dial == nil {
		cfg.Compressors = []string{"zstd"} // too dear for the short one
	}
	if w.client, err = sextant.ConnectConfig(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if dial != nil { // what takes no time would stop the fake clock
		w.usual = 2 * time.Millisecond
		for i := range names {
			if err := w.set.Delay(i, w.usual, app); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// load has all workers at work for so long.
func (w *soak) load(t *testing.T, length time.Duration, faults bool) {
	w.loads++
	ctx, cancel := context.WithCancel(t.Context())
	var crew sync.WaitGroup
	crew.Go(func() { w.pulse(ctx) })
	for g := range w.workers {
		crew.Go(func() { w.work(ctx, g) })
	}
	if faults {
		limited, end := context.WithTimeout(ctx, length)
		crew.Go(func() { w.hurtMembers(limited, t); end() })
		crew.Go(func() { w.hurtLinks(limited, t) })
		<-limited.Done()
	} else {
		time.Sleep(length)
	}
	cancel()
	crew.Wait()
	waiting, end := context.WithTimeout(t.Context(), 30*time.Second)
	defer end()
	if err := w.set.AwaitReplication(waiting); err != nil {
		t.Fatal(err)
	}
}

// atRest waits until idle connections are closed and what ends by itself has ended; with a base, until that is reached.
// Cursors whose first answer was on the way when its connection ended are nobody's: servers keep them for ten minutes, with all that
// they show, and most of them with a goroutine. They are counted, and ended with their sessions. No more of them can be than operations
// have failed.
func (w *soak) atRest(t *testing.T, base figures) (f figures) {
	for until := time.Now().Add(20 * time.Second); ; {
		time.Sleep(3 * time.Second)
		forgotten := max(f.cursors, w.cursors(t))
		f = measure()
		f.cursors = forgotten
		ok := f.goroutines <= base.goroutines+spareConns && f.sockets <= base.sockets+2*spareConns && f.heap <= base.heap*3/2+16<<20
		if base.goroutines == 0 || ok {
			return f
		}
		if time.Now().After(until) {
			t.Errorf("at rest there were %v, and now there are %v\n%s", base, f, stacks())
			return f
		}
	}
}

// cursors are those that were open at all members, and ends them.
func (w *soak) cursors(t *testing.T) (n int) {
	for i := range w.set.Members() {
		c, err := tryDial(t.Context(), w.set, i, app)
		if err != nil {
			t.Fatal(err)
		}
		open, _ := c.must(t, "admin", bson.D{{Key: "serverStatus", Value: 1}}).Lookup("metrics", "cursor", "open", "total").AsInt64OK()
		n += int(open)
		c.must(t, "admin", bson.D{{Key: "killAllSessions", Value: bson.A{}}})
		_ = c.nc.Close()
	}
	return n
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// hurtMembers strikes one member after another until the context ends, and mends what it did.
func (w *soak) hurtMembers(ctx context.Context, t *testing.T) {
	rnd := rand.New(rand.NewPCG(w.seed, 1000))
	strike := func(what string, err error) {
		if err != nil && ctx.Err() == nil {
			t.Errorf("%s: %v", what, err)
		}
		w.books.struck(what)
	}
	for ctx.Err() == nil {
		i := rnd.IntN(3)
		if p := w.set.Primary(); p != nil && rnd.IntN(3) > 0 {
			i = p.Index()
		}
		length := time.Duration(100+rnd.IntN(2000)) * time.Millisecond
		switch rnd.IntN(5) {
		case 0:
			strike("kill", w.set.Kill(i))
			rest(ctx, length)
			strike("restart", w.set.Restart(i))
		case 1:
			_ = w.set.StepDown(ctx) // without another that has caught up, or a primary at all, it may fail
			w.books.struck("step down")
		case 2:
			strike("partition", w.set.Partition([]int{i}, without(3, i)))
			rest(ctx, length)
			w.set.Heal()
		case 3:
			strike("hang", w.set.Hang(i, true))
			rest(ctx, length)
			strike("wake", w.set.Hang(i, false))
		case 4:
			strike("lag", w.set.Lag(i, true))
			rest(ctx, length)
			strike("keep up", w.set.Lag(i, false))
		}
		rest(ctx, time.Duration(200+rnd.IntN(1500))*time.Millisecond)
	}
}

// hurtLinks slows down and cuts links, and has commands fail, until the context ends, and mends what it did.
func (w *soak) hurtLinks(ctx context.Context, t *testing.T) {
	rnd := rand.New(rand.NewPCG(w.seed, 2000))
	usual := w.usual
	for ctx.Err() == nil {
		i := rnd.IntN(3)
		length := time.Duration(50+rnd.IntN(1000)) * time.Millisecond
		var errs [2]error
		switch rnd.IntN(4) {
		case 0:
			errs[0] = w.set.Delay(i, time.Duration(10+rnd.IntN(200))*time.Millisecond, app)
			rest(ctx, length)
			errs[1] = w.set.Delay(i, usual, app)
			w.books.struck("slow link")
		case 1:
			errs[0] = w.set.Throttle(i, int64(10_000+rnd.IntN(500_000)), app)
			rest(ctx, length)
			errs[1] = w.set.Throttle(i, 0, app)
			w.books.struck("narrow link")
		case 2:
			errs[0] = w.set.CutAfter(i, int64(rnd.IntN(5000)), app)
			rest(ctx, length)
			errs[1] = w.set.CutAfter(i, -1, app)
			w.books.struck("cut answer")
		case 3:
			f := &FailCommand{Commands: []string{"insert", "update", "find", "getMore", "aggregate", "ping", "findAndModify"}, Times: 1 + rnd.IntN(20), AppName: app}
			if f.ErrorCode = []int32{0, 91, 189, 10107, 11600, 6}[rnd.IntN(6)]; f.ErrorCode == 0 {
				f.CloseConnection = true
			}
			errs[0] = w.set.FailCommand(i, f)
			rest(ctx, length)
			errs[1] = w.set.FailCommand(i, nil)
			w.books.struck("fail point")
		}
		for _, err := range errs {
			if err != nil {
				t.Error(err)
			}
		}
		rest(ctx, time.Duration(100+rnd.IntN(1000))*time.Millisecond)
	}
}

// rest waits, at most until the context ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// report tells what a soak came to, and has it fail where nothing happened.
func (w *soak) report(t *testing.T, length time.Duration, before, base, after figures) {
	b := &w.books
	b.mu.Lock()
	defer b.mu.Unlock()
	t.Logf("%v of %d goroutines: %d operations, %d failed, %d documents and %d increments acknowledged, the longest took %v",
		length, w.workers, b.done, b.failed, b.inserts, b.counted, b.longest)
	t.Logf("before: %v; at rest: %v; afterwards: %v", before, base, after)
	t.Logf("faults %v", b.faults)
	for _, tally := range []map[string]int{b.kinds, b.errors, w.messages} {
		keys := slices.SortedFunc(maps.Keys(tally), func(x, y string) int { return tally[y] - tally[x] })
		for _, k := range keys[:min(len(keys), 25)] {
			t.Logf("%7d %s", tally[k], k)
		}
	}
	if after.cursors > b.failed {
		t.Errorf("%d cursors were forgotten, and only %d operations have failed", after.cursors, b.failed)
	}
	if len(b.faults) < 3 || b.counted == 0 || b.inserts == 0 || b.failed == 0 {
		t.Error("that was no soak: too little happened")
	}
	for _, broken := range b.broken {
		t.Error(broken)
	}
}

// soakLog counts messages. Of the set and of the driver, what is above debugging.
type soakLog struct{ w *soak }

func (soakLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (s soakLog) WithAttrs([]slog.Attr) slog.Handler         { return s }
func (s soakLog) WithGroup(string) slog.Handler              { return s }

func (s soakLog) Handle(_ context.Context, r slog.Record) error {
	s.w.logs.Lock()
	defer s.w.logs.Unlock()
	s.w.messages[r.Level.String()+" "+r.Message]++
	return nil
}

// prepare makes what the workers use.
func (w *soak) prepare(t *testing.T) {
	db := w.client.Database("soak", sextant.DatabaseOptions{WriteConcern: concern.Majority()})
	var stock, own []bson.D
	for i := range soakStock {
		stock = append(stock, bson.D{{Key: "_id", Value: int32(i)}, {Key: "kind", Value: int32(i % soakKinds)}, {Key: "price", Value: int32(1)}, {Key: "text", Value: strings.Repeat("word ", 20)}})
	}
	for g := range w.workers {
		own = append(own, bson.D{{Key: "_id", Value: int32(g)}, {Key: "v", Value: int32(0)}})
	}
	for name, docs := range map[string][]bson.D{"stock": stock, "own": own} {
		if _, err := db.Collection(name).InsertMany(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Collection("kept").CreateIndex(t.Context(), sextant.IndexModel{Keys: bson.D{{Key: "g", Value: 1}, {Key: "k", Value: -1}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Collection("counter").InsertOne(t.Context(), bson.D{{Key: "_id", Value: "n"}, {Key: "n", Value: int64(0)}}); err != nil {
		t.Fatal(err)
	}
	if err := w.set.AwaitReplication(t.Context()); err != nil {
		t.Fatal(err)
	}
}
