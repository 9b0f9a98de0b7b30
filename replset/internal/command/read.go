package command

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/repl"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// Read returns the data that a command may see: the newest for read concern local, available and linearizable, what a
// majority has for majority. With afterClusterTime it waits until that much is there. Whether this member may answer
// at all was decided by the dispatcher (the flag Reads).
func (m *Member) Read(r *Request) (*store.Snapshot, error) {
	rc := r.ReadConcern
	if r.Conn.pin != nil {
		return r.Conn.pin, nil
	}
	if after := rc.AfterClusterTime; !after.IsZero() {
		if err := m.awaitTime(r.ctx, after, rc.Level == "majority"); err != nil {
			return nil, err
		}
	}
	switch rc.Level {
	case "majority":
		r.majority = true
		if m.opt.Misbehave == LostWrite {
			return m.Store.Latest(), nil
		}
		return m.committed(r.ctx)
	case "linearizable":
		if err := m.linearize(r); err != nil {
			return nil, err
		}
	case "snapshot":
		return m.readMoment(r)
	}
	if r.DB == "local" && !r.Conn.internal {
		return m.withConfig(m.Store.Latest())
	}
	return m.Store.Latest(), nil
}

// configNS is where clients look for the configuration, which lives with the member's state.
const configNS = "local.system.replset"

// withConfig is a snapshot in which the configuration is a document.
func (m *Member) withConfig(sn *store.Snapshot) (*store.Snapshot, error) {
	st := m.state.Load()
	if st.Role == repl.RoleStartup {
		return sn, nil
	}
	return sn.With(configNS, document(configDocument(st.Config)))
}

// committed is what a majority has. A member that has just copied another one's data may hold nothing so old: it waits
// until the commit point has passed the copy.
func (m *Member) committed(ctx context.Context) (*store.Snapshot, error) {
	for {
		p := m.progress.Load()
		if sn := m.Store.CommittedSnapshot(); !m.Store.Committed().Less(sn.OpTime()) {
			return sn, nil
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// awaitTime waits until this member has applied (or knows as committed) everything up to a cluster time.
func (m *Member) awaitTime(ctx context.Context, after bson.Timestamp, committed bool) error {
	if top := m.clock.highest(); after.After(top) {
		return mongoerr.Server(mongoerr.CodeInvalidOptions, "readConcern afterClusterTime value must not be greater than the current clusterTime. "+
			"Requested clusterTime: { ts: Timestamp(%d, %d) }; current clusterTime: { ts: Timestamp(%d, %d) }", after.T, after.I, top.T, top.I)
	}
	for {
		p := m.progress.Load()
		have := p.Applied.TS
		if committed {
			have = p.Commit.TS
		} else if latest := m.Store.Latest().OpTime().TS; latest.After(have) {
			have = latest
		}
		if !after.After(have) {
			return nil
		}
		// A primary that was told of a time without an entry of its own would wait for ever: it makes one.
		if st := m.state.Load(); st.Writable && after.After(m.Store.Latest().OpTime().TS) {
			if _, err := m.noop(st.Term); err != nil {
				return err
			}
			continue
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// linearize makes sure that this member is still the primary, by getting an entry to a majority.
func (m *Member) linearize(r *Request) error {
	st := m.state.Load()
	if !st.Writable {
		return mongoerr.Server(mongoerr.CodeNotWritablePrimary, "cannot satisfy linearizable read concern on non-primary node")
	}
	op, err := m.noop(st.Term)
	if err != nil {
		return err
	}
	if w := m.await(r.ctx, need{op: op, term: st.Term, mode: "majority"}, 0); w != nil {
		return mongoerr.Server(w.Code, "%s", w.Message)
	}
	return nil
}

// noop logs an entry that changes nothing.
func (m *Member) noop(term int64) (store.OpTime, error) {
	op, err := m.Store.Write(m.clock.inTerm(term), func(tx *store.Tx) error {
		if st := m.state.Load(); !st.Writable || st.Term != term {
			return interrupted()
		}
		return tx.Noop(document(bson.D{{Key: "msg", Value: "noop write"}}))
	})
	m.wrote()
	return op, err
}

// Write changes data as the primary: fn runs alone, all or nothing, and its entries are logged in the current term. It
// returns the newest optime afterwards; the dispatcher waits for the write concern of it. Who calls has been admitted as a
// write on a primary: if the member is that no longer, the write is interrupted.
func (m *Member) Write(_ context.Context, r *Request, fn func(tx *store.Tx) error) (store.OpTime, error) {
	term := m.state.Load().Term
	op, err := m.Store.Write(m.clock.inTerm(term), func(tx *store.Tx) error {
		// Under the writer's lock: whoever follows another primary takes this lock after it has shown that it is none.
		if st := m.state.Load(); !st.Writable || st.Term != term {
			return interrupted()
		}
		if err := fn(tx); err != nil || r.TxnNumber < 0 || !tx.Changed() {
			return err
		}
		return m.failPoints.beforeCommit(r)
	})
	if err == nil {
		r.wrote, r.wroteIn = op, term
	}
	m.wrote()
	return op, err
}

// afterWrite waits for the write concern of a command that may have written. One that wrote nothing waits for
// everything before it, so that a retry is not confirmed before the write that it repeats.
func (m *Member) afterWrite(r *Request) *mongoerr.WriteConcernError {
	op := r.wrote
	if op.IsZero() {
		st := m.state.Load()
		op, r.wroteIn = m.Store.Latest().OpTime(), st.Term
	}
	return m.WaitWriteConcern(r.ctx, r, op)
}

// WaitWriteConcern waits until op has reached the members that r's write concern asks for. The dispatcher calls it
// after every command with the flag Writes; a handler that writes without that flag calls it itself.
func (m *Member) WaitWriteConcern(ctx context.Context, r *Request, op store.OpTime) *mongoerr.WriteConcernError {
	n := need{op: op, term: r.wroteIn, mode: r.WriteConcern.Mode, members: int(r.WriteConcern.W), journal: r.WriteConcern.Journal && m.disk.journal != nil}
	if !r.WriteConcern.Given {
		n.mode, n.members = m.defaultWrite()
	}
	if n.mode == "" && n.members <= 1 && !n.journal {
		return nil
	}
	if m.opt.Misbehave == LostWrite && n.mode == "majority" {
		return nil
	}
	return m.await(ctx, n, r.WriteConcern.WTimeout)
}

// defaultWrite is the implicit write concern since version 5.0: majority, unless arbiters make that fragile.
func (m *Member) defaultWrite() (mode string, members int) {
	if !m.opt.Persona.majorityByDefault() {
		return "", 1
	}
	cfg := m.state.Load().Config
	if bearing := cfg.DataBearing(); bearing < len(cfg.Members) && bearing <= cfg.Majority() {
		return "", 1
	}
	return "majority", 0
}

// need is what a write waits for.
type need struct {
	op      store.OpTime
	term    int64
	mode    string // "" for a number of members
	members int
	journal bool // only members that would still have it after a crash; a majority always means those
}

func (m *Member) await(ctx context.Context, n need, limit time.Duration) *mongoerr.WriteConcernError {
	if w := n.impossible(m.state.Load().Config); w != nil {
		return w
	}
	var expired <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		expired = t.C
	}
	for late := false; ; {
		p := m.progress.Load()
		st := m.state.Load() // after the positions: see publish
		if st.Role != repl.RolePrimary || st.Term != n.term {
			return &mongoerr.WriteConcernError{Code: mongoerr.CodePrimarySteppedDown,
				Message: "Primary stepped down while waiting for replication"}
		}
		if n.met(&p.Progress) {
			return nil
		}
		if late {
			return &mongoerr.WriteConcernError{Code: mongoerr.CodeWriteConcernFailed, Message: "waiting for replication timed out",
				Details: document(bson.D{{Key: "wtimeout", Value: true}})}
		}
		select {
		case <-p.changed:
		case <-st.changed:
		case <-expired:
			// What the owner has not yet heard of on a busy machine is not late: a set of one needs nobody else.
			late = true
			_, _ = m.ask(ctx, repl.Applied{OpTime: repl.OpTime(m.Store.Latest().OpTime())}) // its end is seen below
		case <-ctx.Done():
			e := serverError(ctx, context.Cause(ctx))
			return &mongoerr.WriteConcernError{Code: e.Code, Message: e.Message}
		}
	}
}

// impossible says that no number of living members could meet the need.
func (n need) impossible(cfg *repl.Config) *mongoerr.WriteConcernError {
	if n.mode == "" {
		if n.members > cfg.DataBearing() {
			return &mongoerr.WriteConcernError{Code: mongoerr.CodeUnsatisfiableWriteConcern, Message: "Not enough data-bearing nodes"}
		}
		return nil
	}
	if _, known := cfg.Modes[n.mode]; n.mode != "majority" && !known {
		return &mongoerr.WriteConcernError{Code: mongoerr.CodeUnknownReplWriteConcern,
			Message: "No write concern mode named '" + n.mode + "' found in replica set configuration"}
	}
	return nil
}

// met says whether the members that have the entry satisfy the need.
func (n need) met(p *repl.Progress) bool {
	op := repl.OpTime(n.op)
	if n.mode == "majority" {
		return !p.Commit.Less(op)
	}
	at := &p.Peers
	if n.journal {
		at = &p.Safe
	}
	have := 0
	values := map[string]map[string]bool{}
	for i, mc := range p.Config.Members {
		if mc.Arbiter || at[i].Less(op) {
			continue
		}
		have++
		for _, t := range mc.Tags {
			if values[t.Name] == nil {
				values[t.Name] = map[string]bool{}
			}
			values[t.Name][t.Value] = true
		}
	}
	if n.mode == "" {
		return have >= n.members
	}
	for tag, distinct := range p.Config.Modes[n.mode] {
		if len(values[tag]) < distinct {
			return false
		}
	}
	return true
}
