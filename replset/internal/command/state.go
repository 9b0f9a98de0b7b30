package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/repl"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// topology is the published, seldom-changing part of the member's state. It is immutable.
type topology struct {
	repl.Topology
	processID bson.ObjectID
	counter   int64         // of topologyVersion
	changed   chan struct{} // closed when a newer one is published
}

func (t *topology) arbiter() bool { return t.Role == repl.RoleArbiter }

// self is the member's place in the configuration; a member that has none is nothing in particular.
func (t *topology) self() *repl.MemberConfig {
	if me := t.Config.Member(t.Self); me != nil {
		return me
	}
	return new(repl.MemberConfig)
}

func (t *topology) appendTopologyVersion(dst []byte) []byte {
	dst, start := bson.BeginDocumentElement(dst, "topologyVersion")
	dst = bson.AppendObjectID(dst, "processId", t.processID)
	dst = bson.AppendInt64(dst, "counter", t.counter)
	return bson.EndDocument(dst, start)
}

// progress is the published part of the member's state that changes with every write. It is immutable.
type progress struct {
	repl.Progress
	changed chan struct{} // closed when a newer one is published
}

// visit is a word to the owner of the node: an event, or a look at the node.
type visit struct {
	event repl.Event
	look  func(*repl.Node)
	done  chan []repl.Effect // buffered; nil when nobody waits
}

// own is the goroutine that owns the node.
func (m *Member) own() {
	defer m.wg.Done()
	defer m.stopFollowing()
	defer m.guard("the state of replication")
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var v visit
		select {
		case <-m.ctx.Done():
			return
		case v = <-m.visits:
		case <-m.written:
			v.event = m.applied()
		case <-timer.C:
			v.event = repl.Tick{}
		}
		if v.look != nil {
			v.look(m.node)
			close(v.done)
			continue
		}
		answers := m.step(v.event)
		m.settle()
		if v.done != nil {
			v.done <- answers
		}
		wait := time.Hour
		if next := m.node.NextTick(); !next.IsZero() {
			wait = time.Until(next)
		}
		timer.Reset(max(wait, 0))
	}
}

// settle deals with what a run of pulling that has ended could not tell any more. Only the owner calls it.
func (m *Member) settle() {
	for len(m.owed) > 0 {
		ev := m.owed[0]
		m.owed = m.owed[1:]
		m.step(ev)
	}
}

// step feeds one event to the node, performs the effects in order and publishes. Only the owner calls it. It returns
// the effects that are answers to whoever brought the event.
func (m *Member) step(ev repl.Event) (answers []repl.Effect) {
	effects := m.node.Step(ev, time.Now())
	m.publish()
	for _, e := range effects {
		switch e := e.(type) {
		case repl.SaveVote:
			if err := m.disk.saveVote(e.Vote); err != nil {
				m.fail("its data file fails", err)
				return nil // what was to follow the vote must not
			}
		case repl.HeartbeatAnswer, repl.VoteAnswer:
			answers = append(answers, e)
		case repl.SendHeartbeat:
			m.spawn(func() { m.sendHeartbeat(e) })
		case repl.SendVote:
			m.spawn(func() { m.sendVote(e) })
		case repl.SendStepUp:
			m.spawn(func() { m.sendStepUp(e) })
		case repl.FetchConfig:
			m.spawn(func() { m.fetchConfig(e) })
		case repl.PassOn:
			if m.following != nil {
				m.following.tell()
			}
		case repl.Drain:
			m.drain(e)
		}
	}
	return answers
}

// drain logs the first entry of the new term. Until it is there the member takes no writes, so that every entry of
// the term comes after those of earlier terms.
func (m *Member) drain(e repl.Drain) {
	m.stopFollowing()
	note := "new primary"
	if m.Store.Latest().OpTime().IsZero() {
		note = initiating
	}
	op, err := m.Store.Write(m.clock.inTerm(e.Term), func(tx *store.Tx) error {
		return tx.Noop(document(bson.D{{Key: "msg", Value: note}}))
	})
	if err != nil {
		m.log.Error("a new primary could not log its first entry", "error", err)
		return
	}
	m.log.Info("became primary", "member", m.self, "term", e.Term)
	_, durable := m.disk.positions()
	m.step(repl.Drained{OpTime: repl.OpTime(op), Durable: repl.OpTime(durable)})
}

// publish shows what has changed in the node to everybody else: the commit point to the store first, so that who sees
// it can read it, then the role, then the positions. Who loads positions before the role therefore never takes
// positions of a later term for those of the term in which it is (or was) primary.
func (m *Member) publish() {
	p, oldP := m.node.Progress(), m.progress.Load()
	if p.Commit != oldP.Commit {
		m.Store.SetCommitted(store.OpTime(p.Commit))
	}
	t, oldT := m.node.Topology(), m.state.Load()
	if t.Config != oldT.Config {
		if err := m.disk.SaveConfig(t.Config); err != nil {
			m.fail("its data file fails", err)
		}
		m.cutStrangers(t.Config)
	}
	if t != oldT.Topology {
		next := &topology{Topology: t, processID: oldT.processID, counter: oldT.counter, changed: make(chan struct{})}
		quiet := oldT.Topology
		quiet.SyncFrom = t.SyncFrom
		if t.Config.Version == quiet.Config.Version {
			quiet.Config = t.Config // a new primary's term in it tells clients nothing
		}
		if quiet != t {
			next.counter++ // hello has something new to say
		}
		m.state.Store(next)
		close(oldT.changed)
		if m.opt.Persona.drops(oldT.Role, t.Role) {
			m.dropClients()
		}
	}
	if p != oldP.Progress {
		m.progress.Store(&progress{Progress: p, changed: make(chan struct{})})
		close(oldP.changed)
	}
	m.follow(t)
	if m.following != nil && (p.Durable != oldP.Durable || p.Applied != oldP.Applied) {
		m.following.tell()
	}
}

// tell gives the owner an event without waiting for what comes of it.
func (m *Member) tell(ctx context.Context, ev repl.Event) { m.told(ctx, ev) }

// told is tell, and says whether the owner has taken the event.
func (m *Member) told(ctx context.Context, ev repl.Event) bool {
	select {
	case m.visits <- visit{event: ev}:
		return true
	case <-ctx.Done():
	case <-m.ctx.Done():
	}
	return false
}

// ask gives the owner an event and waits until it has been dealt with and published.
func (m *Member) ask(ctx context.Context, ev repl.Event) ([]repl.Effect, error) {
	return m.visit(ctx, visit{event: ev, done: make(chan []repl.Effect, 1)})
}

// look runs fn on the owner's goroutine. fn must not wait.
func (m *Member) look(ctx context.Context, fn func(*repl.Node)) error {
	_, err := m.visit(ctx, visit{look: fn, done: make(chan []repl.Effect, 1)})
	return err
}

func (m *Member) visit(ctx context.Context, v visit) ([]repl.Effect, error) {
	select {
	case m.visits <- v:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-m.ctx.Done():
		return nil, errShutdown
	}
	select {
	case answers := <-v.done:
		return answers, nil
	case <-m.ctx.Done():
		return nil, errShutdown
	}
}

// wrote tells the owner that the store has new entries.
func (m *Member) wrote() {
	select {
	case m.written <- struct{}{}:
	default: // it will look anyway
	}
}

// spawn runs fn on a goroutine that Close waits for. Only the owner calls it, so that none starts after the end.
func (m *Member) spawn(fn func()) {
	m.wg.Add(1)
	go func() {
		defer m.wg.Done()
		defer m.guard("a message to another member")
		fn()
	}()
}

// Role is the member's state, such as PRIMARY.
func (m *Member) Role() repl.Role { return m.state.Load().Role }

// WritablePrimary reports whether the member is a primary that takes writes, and its term.
func (m *Member) WritablePrimary() (term int64, ok bool) {
	st := m.state.Load()
	return st.Term, st.Writable && !m.closing()
}

// Follows reports whether the member knows another one as primary and, unless it is an arbiter, has data.
func (m *Member) Follows(primary *Member) bool {
	st := m.state.Load()
	p := st.Config.Member(st.Primary)
	return p != nil && p.Host == primary.Addr() &&
		(st.Role == repl.RoleSecondary || st.Role == repl.RoleArbiter || st.Role == repl.RoleRecover)
}

// HasAllOf reports whether the member has everything that another one has.
func (m *Member) HasAllOf(other *Member) bool {
	return !m.Store.Latest().OpTime().Less(other.Store.Latest().OpTime()) &&
		!m.progress.Load().Applied.Less(other.progress.Load().Applied)
}

// TooStaleFor reports whether the member has found that it can not go on, and other's oplog does not help it either.
func (m *Member) TooStaleFor(other *Member) bool {
	if m.state.Load().Role != repl.RoleRecover {
		return false
	}
	mine, first := m.Store.Latest().OpTime(), other.Store.Latest().Collection(store.OplogNS).FirstRecord()
	return !mine.IsZero() && recordOf(mine.TS) < first
}

// OplogLength is how many entries the member's oplog holds.
func (m *Member) OplogLength() int64 { return m.Store.Latest().Collection(store.OplogNS).Count() }

// Unreachable tells which members did not answer the last heartbeat, and why; "" if all did.
func (m *Member) Unreachable() string {
	var out []string
	_ = m.look(m.ctx, func(n *repl.Node) {
		for _, v := range n.Members() {
			if v.Failed != "" {
				out = append(out, fmt.Sprintf("member %d (%s): %s", v.ID, v.Host, v.Failed))
			}
		}
	})
	return strings.Join(out, "; ")
}
