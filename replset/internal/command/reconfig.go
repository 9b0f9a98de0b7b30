package command

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/repl"
)

// Codes of replSetReconfig.
const (
	CodeIncompatibleConfig = 103
	CodeConfigInProgress   = 109
	CodeConfigNotCommitted = 308
)

// replSetReconfig replaces the configuration. Not supported: members that build no indexes, horizons.
func replSetReconfig(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	doc, ok := r.Field("replSetReconfig").DocumentOK()
	if !ok {
		return nil, mongoerr.Server(mongoerr.CodeTypeMismatch, "no configuration specified")
	}
	force, _ := r.Field("force").BooleanOK()
	st := m.state.Load()
	if err := mayReconfigure(st, force); err != nil {
		return nil, err
	}
	cfg, err := readConfig(doc, st.Config)
	if err != nil {
		return nil, mongoerr.Server(mongoerr.CodeInvalidReplicaSetConfig, "%v", err)
	}
	_, err = m.Reconfigure(ctx, cfg, force)
	return nil, err
}

func mayReconfigure(st *topology, force bool) error {
	switch {
	case st.Role == repl.RoleStartup:
		return mongoerr.Server(mongoerr.CodeNotYetInitialized, "Node not yet initialized; use the replSetInitiate command")
	case !st.Writable && !force:
		return mongoerr.Server(mongoerr.CodeNotWritablePrimary,
			"replSetReconfig should only be run on PRIMARY, but my state is %s; use the \"force\" argument to override", st.Role)
	}
	return nil
}

// Reconfigure replaces the set's configuration by cfg, whose version must be higher, and waits until a majority has it.
// With force any member does so, without asking or waiting for anybody: what a majority had committed may be lost.
//
// With an error, afoot says that this member may have had the new configuration, so that it may still come into force;
// else it is certain that it will not.
func (m *Member) Reconfigure(ctx context.Context, cfg *Config, force bool) (afoot bool, err error) {
	if !m.reconfiguring.CompareAndSwap(false, true) {
		return false, mongoerr.Server(CodeConfigInProgress, "Cannot run replSetReconfig because the node is currently updating its configuration")
	}
	defer m.reconfiguring.Store(false)
	st := m.state.Load()
	if err := mayReconfigure(st, force); err != nil {
		return false, err
	}
	next := *cfg
	if force {
		next.Version = max(next.Version, st.Config.Version) + 10_000 + rand.Int32N(90_000)
		next.Term = repl.NoTerm
	} else {
		next.Term = st.Term
	}
	if err := compatible(st, &next, force, m.Addr()); err != nil {
		return false, err
	}
	if force {
		_, err := m.ask(ctx, repl.Reconfig{Config: &next})
		return err != nil && ctx.Err() == nil, err
	}
	if err := m.awaitSettled(ctx, st); err != nil {
		return false, err
	}
	if err := m.quorum(ctx, &next); err != nil {
		return false, err
	}
	if _, err := m.ask(ctx, repl.Reconfig{Config: &next, Lead: st.Term}); err != nil {
		return m.closing(), err // one that was asked and has ended meanwhile may have kept it before
	}
	return m.awaitConfig(ctx, &next)
}

// compatible refuses what may not follow the present configuration.
func compatible(st *topology, next *Config, force bool, self string) error {
	old := st.Config
	bad := func(format string, args ...any) error {
		return mongoerr.Server(CodeIncompatibleConfig, format, args...)
	}
	if next.SetName != old.SetName {
		return bad("New and old configurations differ in replica set name; old was %s, and new is %s", old.SetName, next.SetName)
	}
	if next.Version <= old.Version {
		return bad("New replica set configuration version must be greater than old, but %d is not greater than %d for replica set %s",
			next.Version, old.Version, old.SetName)
	}
	if err := next.Validate(); err != nil {
		return mongoerr.Server(mongoerr.CodeInvalidReplicaSetConfig, "%v", err)
	}
	for _, m := range next.Members {
		o := old.At(m.Host)
		if o == nil {
			continue
		}
		if o.ID != m.ID {
			return bad("New and old configurations both have members with host of %s but in the new configuration the _id field is %d and in the old configuration it is %d for replica set %s",
				m.Host, m.ID, o.ID, old.SetName)
		}
		if o.Arbiter != m.Arbiter {
			return bad("New and old configurations differ in the setting of the arbiterOnly field for member %s; to make this change, remove then re-add the member", m.Host)
		}
	}
	me := next.At(self)
	if me == nil {
		return bad("No host described in new configuration %d for replica set %s maps to this node", next.Version, next.SetName)
	}
	if force {
		return nil
	}
	if !me.Electable() {
		return mongoerr.Server(mongoerr.CodeNodeNotElectable, "This node, %s, with _id %d is not electable under the new configuration with %v for replica set %s",
			me.Host, me.ID, next.ID(), next.SetName)
	}
	if n := votingChanges(old, next); n > 1 {
		return bad("Non force replica set reconfig can only add or remove at most 1 voting member")
	}
	return nil
}

// votingChanges counts the members that vote in one of two configurations and not in the other. Two majorities have a
// member in common as long as it is at most one.
func votingChanges(a, b *Config) (n int) {
	one := func(x, y *Config) {
		for _, m := range x.Members {
			if o := y.Member(m.ID); m.Votes > 0 && (o == nil || o.Votes == 0 || o.Host != m.Host) {
				n++
			}
		}
	}
	one(a, b)
	one(b, a)
	return n
}

// awaitSettled waits, for an election timeout at most, until a majority has the present configuration and all that was
// committed before it: right after an election that takes a moment.
func (m *Member) awaitSettled(ctx context.Context, st *topology) error {
	timer := time.NewTimer(m.patience())
	defer timer.Stop()
	for {
		p := m.progress.Load()
		if p.Settled {
			return nil
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting until a majority has the present configuration %v: %w", st.Config.ID(), context.Cause(ctx))
		case <-timer.C:
			return mongoerr.Server(CodeConfigNotCommitted, "Cannot run replSetReconfig because the current config: %v is not majority committed.", st.Config.ID())
		}
	}
}

// awaitConfig waits until a majority has next, which this member was asked to take. afoot is as in Reconfigure.
func (m *Member) awaitConfig(ctx context.Context, next *Config) (afoot bool, err error) {
	for {
		p, st := m.progress.Load(), m.state.Load()
		switch {
		case st.Config.ID().Less(next.ID()):
			return false, mongoerr.Server(mongoerr.CodeNotWritablePrimary, "the primary stepped down before it could change the configuration")
		case p.Holds && p.Config == next, next.ID().Less(st.Config.ID()) && st.Config.Version == next.Version:
			return false, nil
		case !st.Writable || st.Config != next:
			return true, mongoerr.Server(mongoerr.CodePrimarySteppedDown, "the primary stepped down while the new configuration %v was on its way to a majority: it may or may not come into force", next.ID())
		}
		select {
		case <-p.changed:
		case <-st.changed:
		case <-ctx.Done():
			return true, fmt.Errorf("the new configuration %v was on its way to a majority and may or may not come into force: %w", next.ID(), context.Cause(ctx))
		}
	}
}

// quorum asks all other members of a configuration whether they would take part: a majority of the voters must, and one
// that may become primary.
func (m *Member) quorum(asked context.Context, next *Config) error {
	ctx, cancel := context.WithTimeout(asked, m.patience())
	defer cancel()
	errs := make([]error, len(next.Members))
	var wg sync.WaitGroup
	for i, mc := range next.Members {
		if mc.Host != m.Addr() {
			errs[i] = errors.New("asking it panicked")
			wg.Go(func() {
				defer m.guard("asking another member")
				errs[i] = m.greet(ctx, next, mc.Host)
			})
		}
	}
	wg.Wait()
	if asked.Err() != nil { // what the members said or did not say means nothing then
		return fmt.Errorf("asking the members whether they would take part in the new configuration %v: %w", next.ID(), context.Cause(asked))
	}
	votes, electable := 0, false
	var yes, no []string
	for i, mc := range next.Members {
		if errs[i] != nil {
			if e, ok := errs[i].(*mongoerr.Error); ok && e.Code == CodeIncompatibleConfig {
				return e
			}
			no = append(no, fmt.Sprintf("%s failed with %v", mc.Host, errs[i]))
			continue
		}
		if mc.Votes > 0 {
			votes++
			yes = append(yes, mc.Host)
		}
		electable = electable || mc.Electable()
	}
	var why string
	switch {
	case votes < next.Majority():
		why = fmt.Sprintf("Quorum check failed because not enough voting nodes responded; required %d but only the following %d voting nodes responded: %s",
			next.Majority(), votes, strings.Join(yes, ", "))
	case !electable:
		why = "Quorum check failed because no electable nodes responded; at least one required for config"
	default:
		return nil
	}
	if len(no) > 0 {
		why += "; the following nodes did not respond affirmatively: " + strings.Join(no, ", ")
	}
	return mongoerr.Server(mongoerr.CodeNodeNotFound, "%s", why)
}

func (m *Member) greet(ctx context.Context, next *Config, host string) error {
	_, err := m.link(host).demand(ctx, "admin", bson.D{{Key: "replSetHeartbeat", Value: next.SetName}, {Key: "greeting", Value: true}})
	if e, ok := err.(*mongoerr.Error); ok && e.Code == 185 {
		return mongoerr.Server(CodeIncompatibleConfig, "Our set name did not match that of %s: %s", host, e.Message)
	}
	return err
}
