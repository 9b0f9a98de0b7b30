package pool

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sextantdb/sextant/event"
	"pgregory.net/rapid"
)

// twin is the ledger once more, slowly: plain slices, every rule written out, connections known by number.
type twin struct {
	max, min, maxConnecting int
	maxIdle                 time.Duration
	status                  status
	gen                     uint64
	last                    int64
	idle                    []twinConn // oldest first
	busy, pending, draining []twinConn // oldest first
	overdue                 []twinConn // the first to be overdue first
	waiting                 []*waiter
}

type twinConn struct {
	id    int64
	gen   uint64
	since time.Time
}

func (m *twin) total() int {
	return len(m.idle) + len(m.busy) + len(m.pending) + len(m.draining) + len(m.overdue)
}

func (m *twin) take(now time.Time) (id int64, drops []int64) {
	for len(m.idle) > 0 {
		c := m.idle[len(m.idle)-1]
		m.idle = m.idle[:len(m.idle)-1]
		if c.gen != m.gen || m.maxIdle > 0 && now.Sub(c.since) >= m.maxIdle {
			drops = append(drops, c.id)
			continue
		}
		m.busy = append(m.busy, c)
		return c.id, drops
	}
	return 0, drops
}

func (m *twin) dial(fill bool) int64 {
	forWaiter := len(m.waiting) > len(m.pending)
	forMinimum := fill && m.total() < m.min
	room := m.max == 0 || len(m.idle)+len(m.busy)+len(m.draining)+len(m.pending) < m.max
	if m.status == ready && len(m.pending) < m.maxConnecting && room && (forWaiter || forMinimum) {
		m.last++
		m.pending = append(m.pending, twinConn{id: m.last, gen: m.gen})
		return m.last
	}
	return 0
}

// out takes the connection id out of a list.
func out(list *[]twinConn, id int64) twinConn {
	i := slices.IndexFunc(*list, func(c twinConn) bool { return c.id == id })
	c := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return c
}

func (m *twin) place(c twinConn, now time.Time) (w *waiter, reason string) {
	if m.status == closed {
		return nil, event.ReasonPoolClosed
	}
	if c.gen != m.gen {
		return nil, event.ReasonStale
	}
	if len(m.waiting) > 0 {
		w, m.waiting = m.waiting[0], m.waiting[1:]
		m.busy = append(m.busy, c)
		return w, ""
	}
	c.since = now
	m.idle = append(m.idle, c)
	return nil, ""
}

// machine drives book and twin through the same steps.
type machine struct {
	b    book
	m    twin
	now  time.Time
	busy []*Conn // those handed out, as their users hold them
	late []*Conn // those that drain
	pend []*Conn
	wait []*waiter // those in the queue, as their callers know them
}

func (s *machine) handOver(t *rapid.T, c *Conn, gotW, wantW *waiter, gotReason, wantReason string) {
	if gotW != wantW || gotReason != wantReason {
		t.Fatalf("connection %d: waiter %p reason %q, twin says %p %q", c.id, gotW, gotReason, wantW, wantReason)
	}
	if gotW != nil {
		s.busy = append(s.busy, c)
		s.wait = slices.DeleteFunc(s.wait, func(w *waiter) bool { return w == gotW })
	}
}

func ids(drops []dropped) (out []int64) {
	for _, d := range drops {
		out = append(out, d.conn.id)
	}
	return out
}

func (s *machine) checkOut(t *rapid.T) {
	c, drops := s.b.take(s.now)
	id, wantDrops := s.m.take(s.now)
	if (c == nil) != (id == 0) || c != nil && c.id != id || !slices.Equal(ids(drops), wantDrops) {
		t.Fatalf("took %v and dropped %v, twin took %d and dropped %v", c, ids(drops), id, wantDrops)
	}
	switch {
	case c != nil:
		s.busy = append(s.busy, c)
	case s.b.status == ready:
		w := &waiter{}
		s.b.wait(w)
		s.m.waiting = append(s.m.waiting, w)
		s.wait = append(s.wait, w)
	}
}

func (s *machine) dial(t *rapid.T) {
	fill := rapid.Bool().Draw(t, "fill")
	c, want := s.b.dial(fill), s.m.dial(fill)
	if (c == nil) != (want == 0) || c != nil && c.id != want {
		t.Fatalf("dial(%v) gave %v, twin %d", fill, c, want)
	}
	if c != nil {
		s.pend = append(s.pend, c)
	}
}

func pick[T any](t *rapid.T, list *[]T) T {
	if len(*list) == 0 {
		t.Skip("none")
	}
	i := rapid.IntRange(0, len(*list)-1).Draw(t, "which")
	v := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return v
}

func (s *machine) dialed(t *rapid.T) {
	c := pick(t, &s.pend)
	w, reason, replaced := s.b.dialed(c, s.now)
	wantW, wantReason := s.m.place(out(&s.m.pending, c.id), s.now)
	s.handOver(t, c, w, wantW, reason, wantReason)
	if s.m.max > 0 && s.m.total()-len(s.m.pending) > s.m.max {
		oldest := s.m.overdue[0]
		s.m.overdue = s.m.overdue[1:]
		if replaced == nil || replaced.id != oldest.id {
			t.Fatalf("connection %d took the place of %v, want %d", c.id, replaced, oldest.id)
		}
		s.late = slices.DeleteFunc(s.late, func(c *Conn) bool { return c == replaced })
	} else if replaced != nil {
		t.Fatalf("connection %d took the place of %d though there was room", c.id, replaced.id)
	}
}

// hold has a cursor or a transaction keep a connection, or let go of it.
func (s *machine) hold(t *rapid.T) {
	c := pick(t, &s.busy)
	s.b.hold(c, rapid.SampledFrom([]Holder{ByOperation, ByCursor, ByTransaction}).Draw(t, "holder"))
	s.busy = append(s.busy, c)
}

// comesLate is a check-in with a reply due.
func (s *machine) comesLate(t *rapid.T) {
	c := pick(t, &s.busy)
	reason := s.b.checkInLate(c)
	tc := out(&s.m.busy, c.id)
	want := ""
	switch {
	case s.m.status == closed:
		want = event.ReasonPoolClosed
	case tc.gen != s.m.gen:
		want = event.ReasonStale
	default:
		s.late, s.m.draining = append(s.late, c), append(s.m.draining, tc)
	}
	if reason != want {
		t.Fatalf("late connection %d: reason %q, want %q", c.id, reason, want)
	}
}

// graceEnds lets the place of a connection that drains go.
func (s *machine) graceEnds(t *rapid.T) {
	c := pick(t, &s.late)
	s.late = append(s.late, c)
	if c.where == overdue {
		return // it has ended already
	}
	s.b.graceOver(c)
	s.m.overdue = append(s.m.overdue, out(&s.m.draining, c.id))
}

// outLate takes a connection that owes a reply out of the twin.
func (m *twin) outLate(id int64) twinConn {
	if slices.ContainsFunc(m.overdue, func(c twinConn) bool { return c.id == id }) {
		return out(&m.overdue, id)
	}
	return out(&m.draining, id)
}

// drains is the late reply come.
func (s *machine) drains(t *rapid.T) {
	c := pick(t, &s.late)
	w, surplus := s.b.drained(c, s.now)
	wantW, wantReason := s.m.place(s.m.outLate(c.id), s.now)
	s.handOver(t, c, w, wantW, "", wantReason)
	over := s.m.max > 0 && s.m.total()-len(s.m.overdue) > s.m.max
	if over != (surplus != nil) {
		t.Fatalf("surplus %v, the twin has %+v", surplus, s.m)
	}
	if surplus != nil {
		if last := s.m.pending[len(s.m.pending)-1]; surplus.id != last.id {
			t.Fatalf("dial %d ended, want the last, %d", surplus.id, last.id)
		}
		out(&s.m.pending, surplus.id)
		s.pend = slices.DeleteFunc(s.pend, func(c *Conn) bool { return c == surplus })
	}
}

// drainFails is a late reply that does not come.
func (s *machine) drainFails(t *rapid.T) {
	c := pick(t, &s.late)
	s.b.notDrained(c)
	s.m.outLate(c.id)
}

func (s *machine) dialFails(t *rapid.T) {
	c := pick(t, &s.pend)
	got := s.b.blame(c)
	s.b.dialFailed(c)
	out(&s.m.pending, c.id)
	var want *waiter
	if c.gen == s.m.gen && len(s.m.waiting) > len(s.m.pending) {
		want, s.m.waiting = s.m.waiting[0], s.m.waiting[1:]
	}
	if got != want {
		t.Fatalf("failed dial %d goes to %p, twin says %p", c.id, got, want)
	}
	s.wait = slices.DeleteFunc(s.wait, func(w *waiter) bool { return w == got })
}

func (s *machine) checkIn(t *rapid.T) {
	c := pick(t, &s.busy)
	broken := rapid.Bool().Draw(t, "broken")
	w, reason := s.b.checkIn(c, broken, s.now)
	tc := out(&s.m.busy, c.id)
	wantW, wantReason := (*waiter)(nil), event.ReasonError
	if !broken {
		wantW, wantReason = s.m.place(tc, s.now)
	}
	s.handOver(t, c, w, wantW, reason, wantReason)
}

func (s *machine) cancel(t *rapid.T) {
	w := pick(t, &s.wait)
	if !s.b.cancel(w) {
		t.Fatal("a waiter in the queue could not leave it")
	}
	if s.b.cancel(w) {
		t.Fatal("a waiter left the queue twice")
	}
	i := slices.Index(s.m.waiting, w)
	s.m.waiting = slices.Delete(s.m.waiting, i, i+1)
}

func (s *machine) sweep(t *rapid.T, got sweep, gone status, cutBusy, cutPending bool) {
	if got.changed != (s.m.status != gone && (gone == closed || s.m.status == ready)) {
		t.Fatalf("changed is %v, the twin was %d", got.changed, s.m.status)
	}
	if n := len(got.drops); n != len(s.m.idle)+len(s.m.draining)+len(s.m.overdue) {
		t.Fatalf("%d idle and late connections dropped, the twin has %+v", n, s.m)
	}
	if !slices.Equal(got.failed, s.m.waiting) {
		t.Fatal("other waiters failed than those who waited, or in another order")
	}
	cut, aborted := 0, 0
	if cutBusy {
		cut = len(s.m.busy)
	}
	if cutPending {
		aborted = len(s.m.pending)
		s.m.pending, s.pend = nil, nil
	}
	if len(got.cut) != cut || len(got.aborted) != aborted {
		t.Fatalf("%d connections cut and %d dials ended, want %d and %d", len(got.cut), len(got.aborted), cut, aborted)
	}
	s.m.status, s.m.idle, s.m.waiting, s.wait = gone, nil, nil, nil
	s.m.draining, s.m.overdue, s.late = nil, nil, nil
}

func (s *machine) clear(t *rapid.T) {
	interrupt := rapid.Bool().Draw(t, "interrupt")
	got := s.b.clear(errors.New("x"), interrupt)
	if s.m.status == closed {
		if got.changed || s.b.gen != s.m.gen {
			t.Fatal("a closed pool was cleared")
		}
		return
	}
	s.m.gen++
	s.sweep(t, got, paused, interrupt, interrupt)
}

func (s *machine) resume(t *rapid.T) {
	if got, want := s.b.resume(), s.m.status == paused; got != want {
		t.Fatalf("resume: %v, want %v", got, want)
	}
	if s.m.status == paused {
		s.m.status = ready
	}
}

func (s *machine) expire(t *rapid.T) {
	drops, next := s.b.expire(s.now)
	var want []int64
	for s.m.maxIdle > 0 && len(s.m.idle) > 0 && s.now.Sub(s.m.idle[0].since) >= s.m.maxIdle {
		want = append(want, out(&s.m.idle, s.m.idle[0].id).id)
	}
	if !slices.Equal(ids(drops), want) {
		t.Fatalf("expired %v, twin %v", ids(drops), want)
	}
	if s.m.maxIdle > 0 && len(s.m.idle) > 0 {
		if due := s.m.idle[0].since.Add(s.m.maxIdle); !next.Equal(due) || !next.After(s.now) {
			t.Fatalf("next expiry %v, want %v", next, due)
		}
	} else if !next.IsZero() {
		t.Fatalf("an expiry at %v with nothing to expire", next)
	}
}

func (s *machine) check(t *rapid.T) {
	b, m := &s.b, &s.m
	if b.status != m.status || b.gen != m.gen || len(b.idle) != len(m.idle) || b.busy.n != len(m.busy) ||
		b.pending.n != len(m.pending) || b.waiting.n != len(m.waiting) {
		t.Fatalf("ledger: status %d gen %d idle %d busy %d pending %d waiting %d; twin: %+v",
			b.status, b.gen, len(b.idle), b.busy.n, b.pending.n, b.waiting.n, m)
	}
	if len(b.busy.all(nil)) != b.busy.n || len(b.pending.all(nil)) != b.pending.n {
		t.Fatal("a list has not as many members as it counts")
	}
	if open := b.total() - b.pending.n; b.max > 0 && (open > b.max || b.total()-b.overdue.n > b.max) {
		t.Fatalf("%d connections are open, %d pending, %d overdue: at most %d are allowed", open, b.pending.n, b.overdue.n, b.max)
	}
	for _, c := range b.overdue.all(b.draining.all(nil)) {
		if (c.where == overdue) != slices.ContainsFunc(m.overdue, func(t twinConn) bool { return t.id == c.id }) {
			t.Fatalf("connection %d counts as %v, the twin has %+v", c.id, c.where, m)
		}
	}
	if b.draining.n != len(m.draining) || b.overdue.n != len(m.overdue) || b.total() != m.total() {
		t.Fatalf("%d drain, %d are overdue, twin %+v", b.draining.n, b.overdue.n, m)
	}
	var held [holders]int
	for _, c := range s.busy {
		held[c.holder]++
	}
	if held[ByOperation] = 0; held != b.held {
		t.Fatalf("held by cursors and transactions: %v, want %v", b.held, held)
	}
	if b.waiting.n > 0 && len(b.idle) > 0 {
		t.Fatal("somebody waits while a connection is idle")
	}
	if b.pending.n > b.maxConnecting {
		t.Fatalf("%d dials at a time, at most %d allowed", b.pending.n, b.maxConnecting)
	}
	if b.status != ready && (len(b.idle) > 0 || b.late() > 0 || b.waiting.n > 0) {
		t.Fatal("a pool that is not ready keeps idle or draining connections, or waiters")
	}
}

func TestLedgerAgreesWithItsSlowTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxSize := rapid.IntRange(0, 4).Draw(t, "max")
		minSize := rapid.IntRange(0, 3).Draw(t, "min")
		maxConnecting := rapid.IntRange(1, 3).Draw(t, "maxConnecting")
		maxIdle := time.Duration(rapid.IntRange(0, 5).Draw(t, "maxIdle")) * time.Second
		s := &machine{
			b:   book{max: maxSize, min: minSize, maxConnecting: maxConnecting, maxIdle: maxIdle},
			m:   twin{max: maxSize, min: minSize, maxConnecting: maxConnecting, maxIdle: maxIdle},
			now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		}
		shut := func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "close") > 0 {
				t.Skip("a pool closes rarely")
			}
			s.sweep(t, s.b.shut(), closed, false, true)
		}
		t.Repeat(map[string]func(*rapid.T){
			"checkOut": s.checkOut, "checkOut again": s.checkOut, "dial": s.dial, "dial again": s.dial,
			"dialed": s.dialed, "dial fails": s.dialFails, "checkIn": s.checkIn, "cancel": s.cancel,
			"hold": s.hold, "comes late": s.comesLate, "grace ends": s.graceEnds, "drains": s.drains, "drain fails": s.drainFails,
			"clear": s.clear, "resume": s.resume, "resume again": s.resume, "expire": s.expire, "close": shut,
			"time": func(t *rapid.T) {
				s.now = s.now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			},
			"": s.check,
		})
	})
}
