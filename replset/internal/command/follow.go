package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/repl"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// following is a run of pulling one member's oplog. It has two goroutines: one fetches and applies, one reports.
type following struct {
	m      *Member
	from   int    // its number
	host   string // and its address
	link   *link
	term   int64
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	news   chan struct{} // capacity 1: something was applied
	born   store.OpTime  // what the source had when this member began without data; run's
	left   []repl.Event  // what the owner could not be told since it waited for the end; run's, and the owner's after it
}

// follow pulls from whom the node wants to pull, and from nobody else. Only the owner calls it.
func (m *Member) follow(t repl.Topology) {
	source := t.Config.Member(t.SyncFrom)
	if f := m.following; f != nil {
		if source != nil && f.from == source.ID && f.host == source.Host && f.term == t.Term {
			return
		}
		m.stopFollowing()
	}
	if source == nil {
		return
	}
	f := &following{m: m, from: source.ID, host: source.Host, link: m.link(source.Host), term: t.Term, news: make(chan struct{}, 1)}
	f.ctx, f.cancel = context.WithCancel(m.ctx)
	m.following = f
	f.wg.Add(2)
	go f.run()
	go f.report()
}

// stopFollowing ends the pulling and waits until nothing more can be applied. Only the owner calls it.
func (m *Member) stopFollowing() {
	if f := m.following; f != nil {
		m.following = nil
		f.cancel()
		f.wg.Wait()
		m.owed = append(m.owed, f.left...)
	}
}

// insist tells the owner of a change that is made already. The owner may be waiting for this very goroutine to end: then
// it finds the event afterwards. Only run calls it.
func (f *following) insist(ev repl.Event) {
	if len(f.left) == 0 && f.m.told(f.ctx, ev) {
		return
	}
	f.left = append(f.left, ev)
}

// run pulls until it is cancelled, and begins again after a failure.
func (f *following) run() {
	defer f.wg.Done()
	defer f.m.guard("pulling the oplog")
	for wait := time.Duration(0); pause(f.ctx, time.Now().Add(wait)); {
		err := f.pull()
		if f.ctx.Err() != nil {
			return
		}
		switch wait = 20 * time.Millisecond; {
		case errors.Is(err, errCopied):
			wait = 0
		case errors.Is(err, errStale), errors.Is(err, errRefused):
			wait = f.m.patience()
		}
		f.m.log.Debug("pulling the oplog failed", "member", f.m.self, "from", f.host, "error", err)
	}
}

// pull opens a cursor on the source's oplog and applies what comes, until something fails.
func (f *following) pull() error {
	lc, err := f.link.connect(f.ctx)
	if err != nil {
		return err
	}
	defer lc.drop()
	if f.m.Store.Latest().OpTime().IsZero() {
		if err := f.begin(lc); err != nil {
			return err
		}
	}
	last := f.m.Store.Latest().OpTime()
	first, cursor, err := f.open(lc, last)
	if err != nil {
		return err
	}
	if !last.IsZero() {
		if len(first) == 0 || store.EntryOpTime(first[0]) != last {
			return f.diverged(lc, last)
		}
		first = first[1:]
	}
	if role := f.m.state.Load().Role; role == repl.RoleRollback || role == repl.RoleStartup2 || role == repl.RoleRecover {
		f.insist(f.m.rolled()) // whatever was amiss, this member goes on
	}
	for {
		if err := f.apply(first); err != nil {
			return err
		}
		if first, cursor, err = f.more(lc, cursor); err != nil {
			return err
		}
	}
}

// open starts a tailing cursor at the entry last, or at the beginning.
func (f *following) open(lc *linkConn, last store.OpTime) ([]bson.Raw, int64, error) {
	reply, err := f.demand(lc, "local", bson.D{
		{Key: "find", Value: "oplog.rs"},
		{Key: "filter", Value: bson.D{{Key: "ts", Value: bson.D{{Key: "$gte", Value: last.TS}}}}},
		{Key: "tailable", Value: true},
		{Key: "awaitData", Value: true},
	})
	if err != nil {
		return nil, 0, err
	}
	return f.batch(reply, "firstBatch")
}

// more waits for the next entries.
func (f *following) more(lc *linkConn, cursor int64) ([]bson.Raw, int64, error) {
	if cursor == 0 {
		return nil, 0, errors.New("the source ended the cursor on its oplog")
	}
	reply, err := f.demand(lc, "local", bson.D{
		{Key: "getMore", Value: cursor},
		{Key: "collection", Value: "oplog.rs"},
		{Key: "maxTimeMS", Value: max(f.m.patience().Milliseconds()/2, 1)},
		{Key: "term", Value: f.term},
	})
	if err != nil {
		return nil, 0, err
	}
	return f.batch(reply, "nextBatch")
}

func (f *following) demand(lc *linkConn, db string, cmd bson.D) (bson.Raw, error) {
	if err := f.m.opt.Faults.reach(f.ctx, f.link.to()); err != nil {
		return nil, err
	}
	reply, err := lc.roundTrip(f.ctx, db, cmd)
	if err != nil {
		return nil, err
	}
	if e := mongoerr.FromReply(reply); e != nil {
		return nil, e
	}
	return reply, nil
}

// batch reads a cursor's reply and tells the owner what came beside it.
func (f *following) batch(reply bson.Raw, field string) ([]bson.Raw, int64, error) {
	cursor, ok := reply.Lookup("cursor").DocumentOK()
	if !ok {
		return nil, 0, errors.New("the source answered without a cursor")
	}
	arr, ok := cursor.Lookup(field).ArrayOK()
	if !ok {
		return nil, 0, fmt.Errorf("the source's cursor has no %s", field)
	}
	var docs []bson.Raw
	for i, v := range arr.All() {
		d, ok := v.DocumentOK()
		if !ok {
			return nil, 0, fmt.Errorf("oplog entry %d is a %s", i, v.Type)
		}
		docs = append(docs, d)
	}
	if len(docs) == 0 {
		f.heard(reply)
	}
	return docs, intOf(cursor, "id"), nil
}

// heard tells the owner that the source is alive and what it knows of the commit point.
func (f *following) heard(reply bson.Raw) {
	data, ok := reply.Lookup("$replData").DocumentOK()
	if !ok {
		return
	}
	f.m.tell(f.ctx, repl.SourceAlive{From: f.from, Term: intOf(data, "term"), Applied: opTimeOf(data, "lastOpApplied"),
		Commit: opTimeOf(data, "lastOpCommitted"), Primary: int(intOf(data, "primaryIndex"))})
}

// apply takes entries over, a delayed member only when they are old enough.
func (f *following) apply(entries []bson.Raw) error {
	for len(entries) > 0 {
		ready, err := f.ripe(entries)
		if err != nil {
			return err
		}
		if err := f.m.opt.Faults.current(f.ctx); err != nil {
			return err
		}
		op, err := f.m.Store.ApplyOplog(entries[:ready])
		if err != nil {
			return err
		}
		f.m.clock.advance(op.TS)
		f.m.wrote()
		entries = entries[ready:]
	}
	return nil
}

// ripe waits until the first entry may be applied and says how many may. What a delayed member is born with it takes at
// once: it is late from then on, and not without data for as long as its delay.
func (f *following) ripe(entries []bson.Raw) (int, error) {
	delay := f.m.state.Load().self().Delay
	if delay == 0 {
		return len(entries), nil
	}
	if first := slices.IndexFunc(entries, func(e bson.Raw) bool { return f.born.Less(store.EntryOpTime(e)) }); first != 0 {
		return cmp.Or(max(first, 0), len(entries)), nil
	}
	wall := func(e bson.Raw) time.Time {
		t, _ := e.Lookup("wall").TimeOK()
		return t.Add(delay)
	}
	if !pause(f.ctx, wall(entries[0])) {
		return 0, context.Cause(f.ctx)
	}
	n, now := 1, time.Now()
	for n < len(entries) && !wall(entries[n]).After(now) {
		n++
	}
	return n, nil
}

// tell has the source hear soon how far this member is.
func (f *following) tell() {
	select {
	case f.news <- struct{}{}:
	default: // it is about to
	}
}

// report tells the source how far this member is, and those that pull from it, once after any number of changes.
//
// It tells what the owner has taken note of, and the term only after it: had this member voted in a later term before it
// took note, the term is that one, and an old primary will not count what the vote has not.
func (f *following) report() {
	defer f.wg.Done()
	defer f.m.guard("reporting positions")
	f.tell()
	for {
		select {
		case <-f.news:
		case <-f.ctx.Done():
			return
		}
		p := f.m.progress.Load()
		st := f.m.state.Load()
		reply, err := f.link.demand(f.ctx, "admin", bson.D{
			{Key: "replSetUpdatePosition", Value: int32(1)},
			{Key: "term", Value: st.Term},
			{Key: "optimes", Value: positionsOf(p, st.Self)},
		})
		if err != nil {
			if !pause(f.ctx, time.Now().Add(20*time.Millisecond)) {
				return
			}
			f.tell() // try again with whatever is newest then
			continue
		}
		f.heard(reply)
	}
}

// positionsOf are this member's position, first, and those of the members that pull through it.
func positionsOf(p *progress, self int) (out []bson.D) {
	add := func(i int) {
		out = append(out, bson.D{
			{Key: "appliedOpTime", Value: opTimeDocument(store.OpTime(p.Peers[i]))},
			{Key: "durableOpTime", Value: opTimeDocument(store.OpTime(p.Safe[i]))},
			{Key: "memberId", Value: int32(p.Config.Members[i].ID)},
			{Key: "cfgver", Value: p.Config.Version},
		})
	}
	for i, mc := range p.Config.Members {
		if mc.ID == self {
			add(i)
		}
	}
	for i := range p.Config.Members {
		if p.Relay[i] {
			add(i)
		}
	}
	return out
}
