package command

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"
)

// Faults are what a test does to a member from outside: it hangs, it is far away, it cannot reach others. They
// outlive the member's Kill. The zero value is no fault; it must not be copied.
type Faults struct {
	mu      sync.Mutex    // guards all below
	hung    chan struct{} // non-nil while the member hangs; closed at the end
	all     time.Duration
	paced   chan struct{} // closed and replaced when a delay or a rate changes; nil until somebody waits for that
	byApp   map[string]time.Duration
	blocked map[int]chan struct{} // members that cannot be reached; closed when they can
	lag     chan struct{}         // non-nil while the member applies nothing; closed at the end
	rate    int64                 // bytes a second, 0: as fast as can be
	rateOf  map[string]int64      // by application
	cut     *cut                  // nil: none
}

// cut drops one connection in the middle of an answer.
type cut struct {
	after int64
	apps  []string        // whose connections; none: any client's
	sent  map[*Conn]int64 // bytes of answers since the cut was made
}

// Hang makes the member accept and read, and never answer, until it is called with false.
func (f *Faults) Hang(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if on == (f.hung != nil) {
		return
	}
	if on {
		f.hung = make(chan struct{})
		return
	}
	close(f.hung)
	f.hung = nil
}

// Delay adds d to every round trip of the named client applications, or, without a name, of every client that has no
// delay of its own. 0 takes it away.
func (f *Faults) Delay(d time.Duration, apps ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.repace()
	if len(apps) == 0 {
		f.all = d
		return
	}
	f.byApp = own(f.byApp, d, apps)
}

// own gives applications a delay or a rate of their own; with 0 they have none of their own any more.
func own[N time.Duration | int64](of map[string]N, n N, apps []string) map[string]N {
	if of == nil {
		of = map[string]N{}
	}
	for _, app := range apps {
		if n == 0 {
			delete(of, app)
			continue
		}
		of[app] = n
	}
	return of
}

// repace wakes all that is under way: it may be there already now. The caller holds mu.
func (f *Faults) repace() {
	if f.paced != nil {
		close(f.paced)
		f.paced = nil
	}
}

// onTheWay waits while a message of a connection is under way, since begun: half of the round trip's delay, if delayed, and
// what its length takes on a slow link. When either is changed meanwhile, that counts for this message too. It is false
// when ctx ends first.
func (f *Faults) onTheWay(ctx context.Context, c *Conn, begun time.Time, size int, delayed bool) bool {
	for {
		f.mu.Lock()
		way := f.travel(c, size)
		if delayed {
			way += min(f.delay(c)/2, math.MaxInt64-way)
		}
		if f.paced == nil && way > 0 {
			f.paced = make(chan struct{})
		}
		paced := f.paced
		f.mu.Unlock()
		if way <= 0 {
			return true
		}
		if there, alive := pauseUnless(ctx, begun.Add(way), paced); there || !alive {
			return alive
		}
	}
}

// Block says which members this one cannot reach; none lifts all.
func (f *Faults) Block(members ...int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.blocked
	f.blocked = map[int]chan struct{}{}
	for _, i := range members {
		if ch := old[i]; ch != nil {
			f.blocked[i] = ch
			delete(old, i)
		} else {
			f.blocked[i] = make(chan struct{})
		}
	}
	for _, ch := range old {
		close(ch)
	}
}

// awake waits while the member hangs.
func (f *Faults) awake(ctx context.Context) error {
	for {
		f.mu.Lock()
		hung := f.hung
		f.mu.Unlock()
		if hung == nil {
			return nil
		}
		select {
		case <-hung:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// reach waits while the member cannot reach another one, or hangs itself.
func (f *Faults) reach(ctx context.Context, to int) error {
	for {
		if err := f.awake(ctx); err != nil {
			return err
		}
		f.mu.Lock()
		wall := f.blocked[to]
		f.mu.Unlock()
		if wall == nil {
			return nil
		}
		select {
		case <-wall:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Cut reports whether a member is blocked.
func (f *Faults) Cut(to int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.blocked[to] != nil
}

// CutAfter has one connection of the named client applications, or of any client, end after n more bytes of answers. The
// answers of a connection's beginning do not count. A negative n takes it back.
func (f *Faults) CutAfter(n int64, apps ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = nil
	if n >= 0 {
		f.cut = &cut{after: n, apps: apps, sent: map[*Conn]int64{}}
	}
}

// cutAt says how many of the next bytes of an answer get through, and whether the connection ends after them. The fault is
// over with the first connection that it ends.
func (f *Faults) cutAt(c *Conn, size int) (through int, end bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.cut
	if k == nil || len(k.apps) == 0 && c.internal || len(k.apps) > 0 && !slices.Contains(k.apps, c.App) {
		return size, false
	}
	sent := k.sent[c]
	if k.sent[c] += int64(size); k.sent[c] <= k.after {
		return size, false
	}
	f.cut = nil
	return int(k.after - sent), true
}

// Throttle lets n bytes a second through between the member and the named client applications, or, without a name, every
// client that has no rate of its own. 0 is no limit.
func (f *Faults) Throttle(n int64, apps ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.repace()
	if len(apps) == 0 {
		f.rate = n
		return
	}
	f.rateOf = own(f.rateOf, n, apps)
}

// travel is how long a message of a connection is under way because its link is slow. The caller holds mu.
func (f *Faults) travel(c *Conn, size int) time.Duration {
	rate, own := f.rateOf[c.App]
	if !own && !c.internal {
		rate = f.rate
	}
	if rate <= 0 {
		return 0
	}
	return time.Duration(float64(size) / float64(rate) * float64(time.Second))
}

// Lag makes the member apply nothing of what it pulls, until it is called with false.
func (f *Faults) Lag(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if on == (f.lag != nil) {
		return
	}
	if on {
		f.lag = make(chan struct{})
		return
	}
	close(f.lag)
	f.lag = nil
}

// current waits while the member lags.
func (f *Faults) current(ctx context.Context) error {
	for {
		f.mu.Lock()
		lag := f.lag
		f.mu.Unlock()
		if lag == nil {
			return nil
		}
		select {
		case <-lag:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// delay is how long the round trips of a connection take. Other members are near unless their name is given. The caller
// holds mu.
func (f *Faults) delay(c *Conn) time.Duration {
	if d, ok := f.byApp[c.App]; ok {
		return d
	}
	if c.internal {
		return 0
	}
	return f.all
}

// Counters count the commands that a member served, by client application and command name. They outlive its Kill.
type Counters struct {
	mu     sync.Mutex // guards counts
	counts map[string]map[string]int64
}

// maxApps bounds what clients can make the counters remember; what comes later is counted under "".
const maxApps = 1000

func (c *Counters) add(app, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]map[string]int64{}
	}
	byName := c.counts[app]
	if byName == nil {
		if len(c.counts) >= maxApps {
			app = ""
		}
		if byName = c.counts[app]; byName == nil {
			byName = map[string]int64{}
			c.counts[app] = byName
		}
	}
	byName[name]++
}

// all are the counts of all applications together.
func (c *Counters) all() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int64{}
	for _, byName := range c.counts {
		for name, n := range byName {
			out[name] += n
		}
	}
	return out
}

// Of returns a copy of the counts of one client application.
func (c *Counters) Of(app string) map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string]int64, len(c.counts[app]))
	for name, n := range c.counts[app] {
		out[name] = n
	}
	return out
}
