package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/repl"
)

func replSetMaintenance(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	v := r.Field("replSetMaintenance")
	on, _ := v.BooleanOK()
	if n, ok := v.AsFloat64OK(); ok {
		on = n != 0
	}
	return nil, m.Maintenance(ctx, on)
}

// Maintenance takes a member that is no primary out of service (RECOVERING), or back. It counts: as often as it was taken
// out it must be put back.
func (m *Member) Maintenance(ctx context.Context, on bool) error {
	st := m.state.Load()
	state, busy := m.candidacy(ctx)
	switch {
	case busy && state == "Primary":
		return mongoerr.Server(mongoerr.CodeNotSecondary, "primaries can't modify maintenance mode")
	case busy:
		return mongoerr.Server(mongoerr.CodeNotSecondary, "currently running for election")
	case !st.Role.Member():
		return mongoerr.Server(mongoerr.CodeNotYetInitialized, "can't modify maintenance mode: the member is %s", st.Role)
	}
	times, err := m.InMaintenance(ctx)
	if err != nil {
		return err
	}
	if !on && times == 0 {
		return mongoerr.Server(mongoerr.CodeOperationFailed, "already out of maintenance mode")
	}
	_, err = m.ask(ctx, repl.Maintenance{On: on})
	return err
}

// InMaintenance is how often the member was taken out of service and not put back.
func (m *Member) InMaintenance(ctx context.Context) (times int, err error) {
	err = m.look(ctx, func(n *repl.Node) { times = n.Maintenance() })
	return times, err
}

func replSetSyncFrom(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	host, ok := r.Field("replSetSyncFrom").StringValueOK()
	if !ok {
		return nil, mongoerr.Server(mongoerr.CodeTypeMismatch, "replSetSyncFrom must name a member, \"host:port\"")
	}
	st := m.state.Load()
	if err := m.mayPull(ctx, st, strings.ToLower(host)); err != nil {
		return nil, err
	}
	target := st.Config.At(strings.ToLower(host))
	var behind time.Duration
	if err := m.look(ctx, func(n *repl.Node) {
		mine := n.Progress().Applied.TS.T
		for _, v := range n.Members() {
			if v.ID == target.ID && v.Applied.TS.T < mine {
				behind = time.Duration(mine-v.Applied.TS.T) * time.Second
			}
		}
	}); err != nil {
		return nil, err
	}
	if _, err := m.ask(ctx, repl.SyncFrom{Source: target.ID}); err != nil {
		return nil, err
	}
	out := bson.D{{Key: "syncFromRequested", Value: target.Host}}
	if behind > 10*time.Second {
		out = append(out, bson.E{Key: "warning", Value: fmt.Sprintf("requested member \"%s\" is more than 10 seconds behind us", target.Host)})
	}
	if prev := st.Config.Member(st.SyncFrom); prev != nil {
		out = append(out, bson.E{Key: "prevSyncTarget", Value: prev.Host})
	}
	return out, nil
}

// mayPull refuses sources that are none.
func (m *Member) mayPull(ctx context.Context, st *topology, host string) error {
	target := st.Config.At(host)
	switch {
	case !st.Role.Member():
		return mongoerr.Server(mongoerr.CodeNotSecondary, "the member is %s", st.Role)
	case target != nil && target.ID == st.Self:
		return mongoerr.Server(mongoerr.CodeInvalidOptions, "I cannot sync from myself")
	case st.Role == repl.RolePrimary:
		return mongoerr.Server(mongoerr.CodeNotSecondary, "primaries don't sync")
	case st.Role == repl.RoleArbiter:
		return mongoerr.Server(mongoerr.CodeNotSecondary, "arbiters don't sync")
	case target == nil:
		return mongoerr.Server(mongoerr.CodeNodeNotFound, "Could not find member \"%s\" in replica set", host)
	case target.Arbiter:
		return mongoerr.Server(mongoerr.CodeInvalidOptions, "Cannot sync from \"%s\" because it is an arbiter", host)
	}
	up := false
	if err := m.look(ctx, func(n *repl.Node) {
		for _, v := range n.Members() {
			up = up || v.ID == target.ID && v.Up
		}
	}); err != nil {
		return err
	}
	if !up {
		return mongoerr.Server(mongoerr.CodeHostUnreachable, "I cannot reach the requested member: %s", host)
	}
	return nil
}
