package replset

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/mongoerr"
)

// world is one story while it is told: a set on a network in memory, a client of our driver, and who uses and hurts them.
type world struct {
	transcript
	plan    plan
	set     *Set
	client  *sextant.Client
	network *MemoryNetwork
	books   *accounts
	watch   *watch
	sockets atomic.Int64                 // that the client has open
	tags    map[string]map[string]string // of members, by address: no story changes them

	struck map[int]int // by act: the member that it struck. The director's alone.
	gone   bool        // data may have gone with a member, or been copied over. The director's alone.
	late   sync.WaitGroup

	judged sync.Mutex // guards all below
	broken []violation
	terms  map[int64]int // who won the election of a term
}

// outcome is what is left of a story.
type outcome struct {
	plan      plan
	broken    []violation
	elections int // beyond the first
	acked     int // writes
	unknown   int // writes that failed, or not
	reads     map[string]int
	text      string // what happened
}

// violation is a promise that was not kept.
type violation struct{ promise, how string }

func (v violation) String() string { return v.promise + ": " + v.how }

// The promises.
const (
	keeps    = "an acknowledged majority write is not lost"
	once     = "no write is applied twice"
	kinds    = "a read is answered by a member of the kind that it asked for"
	forward  = "a causal reader never goes backwards"
	punctual = "every operation ends within its budget"
	clean    = "nothing leaks"
	alike    = "members end identical"
	oneHead  = "a term has one primary"
	aside    = "what is rolled back is kept aside"
	newest   = "the client never takes an older primary for the newer one"
	truthful = "hello tells what is true"
	recovers = "a healed set works again"
)

func (w *world) accuse(promise, how string, args ...any) {
	v := violation{promise, fmt.Sprintf(how, args...)}
	w.note("BROKEN %v", v)
	w.judged.Lock()
	defer w.judged.Unlock()
	if len(w.broken) < 20 {
		w.broken = append(w.broken, v)
	}
}

func (w *world) elected(term int64, member int) {
	w.judged.Lock()
	other, known := w.terms[term]
	w.terms[term] = member
	w.judged.Unlock()
	if known && other != member {
		w.accuse(oneHead, "members %d and %d were both elected in term %d", other, member, term)
	}
}

// tell tells a story in a bubble of its own. fault makes the set break a promise. A story that finds no end in real time,
// since somebody works without a pause and so stops the clock, ends the whole process with what is known.
func tell(t *testing.T, p plan, fault Fault) (o outcome) {
	if p.folder {
		p.cast.o.Dir = t.TempDir()
	}
	w := &world{plan: p, books: newAccounts(), struck: map[int]int{}, terms: map[int64]int{}, tags: map[string]map[string]string{}}
	patience := time.AfterFunc(2*time.Minute, func() { panic(fmt.Sprintf("a story without an end\n%v\n%v", p, w)) })
	defer patience.Stop()
	synctest.Test(t, func(t *testing.T) {
		w.network, w.begun, w.watch = NewMemoryNetwork(), time.Now(), newWatch(w)
		w.live(t, fault)
	})
	o = outcome{plan: p, broken: w.broken, elections: len(w.terms) - 1, acked: w.books.acked, unknown: w.books.unknown, reads: w.books.reads}
	if len(w.broken) > 0 {
		o.text = w.String()
	}
	return o
}

// live is the life of a world.
func (w *world) live(t *testing.T, fault Fault) {
	o := w.plan.cast.o
	o.Network, o.Fault, o.Logger = w.network, fault, slog.New(setLog{w})
	var err error
	if w.set, err = Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.set.Close() }() // whichever set it is by then
	for i, m := range w.set.Members() {
		w.tags[m.addr] = o.Config[i].Tags
	}
	if w.client, err = sextant.ConnectConfig(t.Context(), w.config(t)); err != nil {
		t.Fatal(err)
	}
	w.prepare(t)
	ctx, cancel := context.WithCancel(t.Context())
	var actors sync.WaitGroup
	w.act(ctx, &actors)
	w.direct(t.Context())
	w.healAll()
	w.resync(t.Context())
	time.Sleep(1500 * time.Millisecond)
	cancel()
	actors.Wait()
	if w.settle(t.Context()) {
		w.audit()
	}
	if err := w.client.Close(t.Context()); err != nil {
		w.accuse(clean, "the client does not close: %v", err)
	}
	w.watch.audit()
	w.wantNoSockets()
	if o.Dir != "" {
		w.startAgain(t, o)
	}
}

func (w *world) wantNoSockets() {
	if n := w.sockets.Load(); n != 0 {
		w.accuse(clean, "the closed client has left %d connections open", n)
	}
}

func (w *world) config(t *testing.T) *sextant.Config {
	cfg, err := sextant.ParseURI(w.set.URI())
	if err != nil {
		t.Fatal(err)
	}
	cfg.AppName, cfg.ServerSelectionTimeout, cfg.ConnectTimeout = app, selectionTimeout, new(connectTimeout)
	cfg.HeartbeatFrequency, cfg.ServerMonitoringMode = w.plan.heartbeat, w.plan.mode
	cfg.HeartbeatTimeout = w.plan.liveness
	cfg.Monitor = w.watch.monitor()
	cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := w.network.Dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		w.sockets.Add(1)
		return &counted{Conn: nc, open: &w.sockets}, nil
	}
	return cfg
}

const (
	app              = "story"
	selectionTimeout = 5 * time.Second
	connectTimeout   = 2 * time.Second
)

// counted is a connection that is missed when it is not closed.
type counted struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// prepare makes what the actors work on.
func (w *world) prepare(t *testing.T) {
	db := w.client.Database("story")
	majority := sextant.CollectionOptions{WriteConcern: concern.Majority()}
	counters := db.Collection("counters", majority)
	var docs []bson.D
	for g := range writers {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(g)}, {Key: "n", Value: int32(0)}, {Key: "ops", Value: bson.A{}}})
	}
	docs = append(docs, bson.D{{Key: "_id", Value: causalID}, {Key: "n", Value: int32(0)}})
	if _, err := counters.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []bson.D{
		{{Key: "createIndexes", Value: "docs"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "u", Value: 1}}}, {Key: "name", Value: "u_1"}, {Key: "unique", Value: true}}}}},
		{{Key: "create", Value: "ring"}, {Key: "capped", Value: true}, {Key: "size", Value: 100000}, {Key: "max", Value: 20}},
	} {
		if _, err := db.RunCommand(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
	}
}

// direct does what the plan says.
func (w *world) direct(ctx context.Context) {
	for i, a := range w.plan.acts {
		time.Sleep(time.Until(w.begun.Add(a.at)))
		w.perform(ctx, i, a)
	}
	time.Sleep(time.Until(w.begun.Add(w.plan.length())))
}

// perform does one act. What it cannot do any more, or not yet, it leaves.
func (w *world) perform(ctx context.Context, i int, a act) {
	who := a.whom
	switch {
	case a.ends >= 0:
		var ok bool
		if who, ok = w.struck[a.ends]; !ok {
			return
		}
	case who == thePrimary:
		p := w.set.Primary()
		if p == nil {
			w.note("act %d, %v: there is none", i+1, a)
			return
		}
		who = p.Index()
	}
	err := w.do(ctx, a, who)
	if err == nil {
		w.struck[i] = who
		w.gone = w.gone || a.do == wipe || a.do == dismiss || w.plan.folder && (a.do == kill || a.do == powerOff || a.do == blackout)
	}
	says := ""
	if err != nil {
		says = ": " + firstLine(err)
	}
	w.note("act %d, %v (member %d)%s", i+1, a, who, says)
}

func (w *world) do(ctx context.Context, a act, who int) error {
	s, n := w.set, len(w.set.Members())
	switch a.do {
	case kill:
		return s.Kill(who)
	case restart:
		return s.Restart(who)
	case powerOff:
		return w.powerOff(ctx, who, a.n)
	case blackout, light:
		for i, m := range s.Members() {
			if a.do == blackout && m.current() != nil {
				_ = s.Kill(i)
			} else if a.do == light && m.current() == nil {
				_ = s.Restart(i)
			}
		}
	case wipe:
		if mine := s.config().At(s.Member(who).addr); mine != nil && mine.Votes > 0 { // a majority relies on its data
			return fmt.Errorf("no: it votes")
		}
		return s.Wipe(who)
	case partition:
		return s.Partition(a.side, without(n, a.side...))
	case isolate:
		return s.Partition([]int{who}, without(n, who))
	case heal:
		s.Heal()
	case hang, wake:
		return s.Hang(who, a.do == hang)
	case slow:
		return s.Delay(who, a.d, app)
	case slowMembers:
		return s.Delay(who, a.d, apps(n)...)
	case slowAll:
		for i := range n {
			_ = s.Delay(i, a.d, apps(n)...)
		}
	case throttle:
		return s.Throttle(who, int64(a.n), app)
	case cut:
		return s.CutAfter(who, int64(a.n), app)
	case lag, keepUp:
		return s.Lag(who, a.do == lag)
	case fast:
		_ = s.Throttle(who, 0, app)
		for i := range n { // also those that another act slowed down: simpler to tell than a count
			_ = s.Delay(i, 0, append(apps(n), app)...)
		}
	case stepDown:
		w.meanwhile(ctx, a, s.StepDown)
	case coup:
		cfg, old := s.config(), s.Primary()
		for i := range n {
			m := s.Member((who + i) % n)
			mine, r := cfg.At(m.addr), m.current()
			if m != old && mine != nil && mine.Electable() && r != nil {
				w.note("    member %d stands", m.index)
				return r.StandForElection(ctx, false)
			}
		}
		return fmt.Errorf("nobody else may")
	case rivalry:
		for _, m := range s.Members() {
			if r := m.current(); r != nil {
				w.meanwhile(ctx, a, func(ctx context.Context) error { return r.StandForElection(ctx, false) })
			}
		}
	case freeze:
		return w.order(ctx, who, bson.D{{Key: "replSetFreeze", Value: int(a.d / time.Second)}})
	case maintain, serve:
		return w.order(ctx, who, bson.D{{Key: "replSetMaintenance", Value: a.do == maintain}})
	case priority:
		w.meanwhile(ctx, a, func(ctx context.Context) error {
			return s.Reconfigure(ctx, who, func(o *MemberOptions) {
				if o.Priority == nil || *o.Priority > 0 {
					o.Priority = new(a.d.Seconds())
				}
			})
		})
	case admit:
		o := MemberOptions{Name: fmt.Sprintf("m%d", n), Port: 27017, Tags: map[string]string{"dc": "east"}, NoVote: a.d > 0}
		w.tags[net.JoinHostPort(o.Name, "27017")] = o.Tags
		w.meanwhile(ctx, a, func(ctx context.Context) error { _, err := s.AddMember(ctx, o); return err })
	case dismiss:
		w.meanwhile(ctx, a, func(ctx context.Context) error { return s.RemoveMember(ctx, who) })
	default:
		return fmt.Errorf("there is no such deed")
	}
	return nil
}

// meanwhile does what takes its time, up to a second.
func (w *world) meanwhile(ctx context.Context, a act, deed func(context.Context) error) {
	w.late.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := deed(ctx); err != nil {
			w.note("    %s: %s", a.do, firstLine(err))
		}
	})
}

func firstLine(err error) string {
	if e, ok := err.(*mongoerr.Error); ok && e.Message != "" {
		err = fmt.Errorf("%s (code %d)", e.Message, e.Code)
	}
	for i, c := range err.Error() {
		if c == '\n' {
			return err.Error()[:i]
		}
	}
	return err.Error()
}

func without(n int, some ...int) (rest []int) {
	for i := range n {
		in := false
		for _, j := range some {
			in = in || i == j
		}
		if !in {
			rest = append(rest, i)
		}
	}
	return rest
}

func apps(n int) (names []string) {
	for i := range n {
		names = append(names, MemberApp(i))
	}
	return names
}

// order has a member do something, as its operator would, and does not wait long for it.
func (w *world) order(ctx context.Context, i int, cmd bson.D) error {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	c, err := tryDial(ctx, w.set, i, "")
	if err != nil {
		return err
	}
	defer c.nc.Close()
	defer context.AfterFunc(ctx, func() { c.nc.Close() })()
	_, err = c.run("admin", cmd)
	return err
}

// healAll takes every fault away.
func (w *world) healAll() {
	w.late.Wait() // a member may just be coming
	n := len(w.set.Members())
	w.set.Heal()
	for j := range n {
		_ = w.set.Hang(j, false)
		_ = w.set.Lag(j, false)
		_ = w.set.Throttle(j, 0, app)
		_ = w.set.CutAfter(j, -1, app)
		_ = w.set.Delay(j, 0, append(apps(n), app)...)
		if w.set.Member(j).State() == "DOWN" {
			if err := w.set.Restart(j); err != nil {
				w.accuse(recovers, "member %d does not start: %v", j, err)
			}
		}
	}
	synctest.Wait() // an order that a member was given while it hung is carried out when it wakes, though nobody waits for it any more
	for j := range n {
		if err := w.set.Maintenance(j, false); err != nil && w.set.Member(j).State() == "RECOVERING" { // however often it was ordered
			w.accuse(recovers, "member %d does not serve again: %v", j, err)
		}
	}
	w.note("all is well again")
}

// resync has members copy all data that were away for longer than the oplog reaches back. They stay in RECOVERING else,
// and who waits for them, or for a majority that needs them, waits for ever.
func (w *world) resync(ctx context.Context) {
	if w.plan.cast.o.OplogEntries == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := w.set.WaitPrimary(ctx); err != nil {
		return
	}
	time.Sleep(time.Second)
	for j, m := range w.set.Members() {
		if m.State() == "RECOVERING" {
			w.gone = true
			w.note("    member %d must copy all data: %v %v %v", j, w.set.Kill(j), w.set.Wipe(j), w.set.Restart(j))
		}
	}
}
