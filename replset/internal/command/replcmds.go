package command

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/repl"
	"github.com/sextantdb/sextant/replset/internal/store"
)

var replCommands = []Spec{
	{Name: "replSetHeartbeat", Flags: AdminOnly, Handler: membersOnly(replSetHeartbeat)},
	{Name: "replSetRequestVotes", Flags: AdminOnly, Handler: membersOnly(replSetRequestVotes)},
	{Name: "replSetUpdatePosition", Flags: AdminOnly, Handler: membersOnly(replSetUpdatePosition)},
	{Name: "replSetStepUp", Flags: AdminOnly, Handler: replSetStepUp},
	{Name: "replSetStepDown", Flags: AdminOnly, Handler: replSetStepDown},
	{Name: "replSetFreeze", Flags: AdminOnly, Handler: replSetFreeze},
	{Name: "replSetMaintenance", Flags: AdminOnly, Handler: replSetMaintenance},
	{Name: "replSetGetStatus", Flags: AdminOnly, Handler: replSetGetStatus},
	{Name: "replSetGetConfig", Flags: AdminOnly, Handler: replSetGetConfig},
	{Name: "replSetReconfig", Flags: AdminOnly, Handler: replSetReconfig},
	{Name: "replSetInitiate", Flags: AdminOnly, Handler: replSetInitiate},
}

// membersOnly keeps strangers from speaking in a member's name.
func membersOnly(h Handler) Handler {
	return func(ctx context.Context, m *Member, r *Request) (bson.D, error) {
		if !r.Conn.internal {
			return nil, mongoerr.Server(mongoerr.CodeUnauthorized, "%s is for members of the set only", r.Name)
		}
		return h(ctx, m, r)
	}
}

func replSetHeartbeat(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	st := m.state.Load()
	if set, _ := r.Field("replSetHeartbeat").StringValueOK(); set != st.Config.SetName {
		return nil, mongoerr.Server(185, "replica set name does not match: mine is %s, the sender's %s", st.Config.SetName, set)
	}
	answers, err := m.ask(ctx, repl.HeartbeatRequest{
		From:    r.Conn.peer,
		Term:    intOf(r.Body, "term"),
		Primary: int(intOf(r.Body, "primaryId")),
		Commit:  opTimeOf(r.Body, "lastOpCommitted"),
		Version: int32(intOf(r.Body, "configVersion")),
	})
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		if a, ok := a.(repl.HeartbeatAnswer); ok {
			return bson.D{
				{Key: "set", Value: st.Config.SetName},
				{Key: "state", Value: int32(a.Reply.Role)},
				{Key: "v", Value: a.Reply.Version},
				{Key: "term", Value: a.Reply.Term},
				{Key: "primaryId", Value: int32(a.Reply.Primary)},
				{Key: "opTime", Value: opTimeDocument(store.OpTime(a.Reply.Applied))},
				{Key: "durableOpTime", Value: opTimeDocument(store.OpTime(a.Reply.Durable))},
				{Key: "lastOpCommitted", Value: opTimeDocument(store.OpTime(a.Reply.Commit))},
			}, nil
		}
	}
	return nil, mongoerr.Server(mongoerr.CodeInternalError, "the member has no answer to a heartbeat")
}

func replSetRequestVotes(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	dry, _ := r.Field("dryRun").BooleanOK()
	answers, err := m.ask(ctx, repl.VoteRequest{
		From:    r.Conn.peer,
		Term:    intOf(r.Body, "term"),
		Applied: opTimeOf(r.Body, "lastAppliedOpTime"),
		DryRun:  dry,
		Version: int32(intOf(r.Body, "configVersion")),
	})
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		if a, ok := a.(repl.VoteAnswer); ok {
			return bson.D{{Key: "term", Value: a.Reply.Term}, {Key: "voteGranted", Value: a.Reply.Granted}, {Key: "reason", Value: a.Reason}}, nil
		}
	}
	return nil, mongoerr.Server(mongoerr.CodeInternalError, "the member has no answer to a vote request")
}

func replSetUpdatePosition(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	docs, _, err := r.Documents("optimes")
	if err != nil {
		return nil, err
	}
	for _, d := range docs {
		if _, err := m.ask(ctx, repl.Position{From: r.Conn.peer, Applied: opTimeOf(d, "appliedOpTime"), Durable: opTimeOf(d, "durableOpTime")}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// appendReplData appends what a follower learns from every reply of its source.
func (m *Member) appendReplData(dst []byte) []byte {
	p, st := m.progress.Load(), m.state.Load()
	dst, start := bson.BeginDocumentElement(dst, "$replData")
	dst = bson.AppendInt64(dst, "term", st.Term)
	dst = store.OpTime(p.Commit).Append(dst, "lastOpCommitted")
	dst = bson.AppendInt32(dst, "primaryIndex", int32(st.Primary))
	return bson.EndDocument(dst, start)
}

func replSetStepUp(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	skip, _ := r.Field("skipDryRun").BooleanOK()
	if st := m.state.Load(); st.Role == repl.RolePrimary {
		return nil, nil
	}
	if err := m.StandForElection(ctx, skip); err != nil {
		return nil, err
	}
	return nil, nil
}

// StandForElection makes the member stand for election now, if it may.
func (m *Member) StandForElection(ctx context.Context, skipDryRun bool) error {
	_, err := m.ask(ctx, repl.StepUp{SkipDryRun: skipDryRun})
	return err
}

// maxSeconds is as good as for ever, and no overflow of a duration.
const maxSeconds = 1 << 31

func replSetStepDown(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	secs, catchUp := int64(60), int64(10)
	if v := r.Field("replSetStepDown"); v.IsNumber() {
		n, _ := v.AsFloat64OK()
		if n < 0 {
			return nil, mongoerr.Server(mongoerr.CodeBadValue, "stepdown period must be a positive integer")
		}
		if n > 0 { // 0 means the default
			secs = int64(min(n, maxSeconds))
		}
	}
	force, _ := r.Field("force").BooleanOK()
	if v := r.Field("secondaryCatchUpPeriodSecs"); v.IsNumber() {
		catchUp = intOf(r.Body, "secondaryCatchUpPeriodSecs")
	} else if force {
		catchUp = 0
	} else {
		catchUp = min(catchUp, secs)
	}
	if catchUp < 0 || secs < catchUp {
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "stepdown period must be longer than secondaryCatchUpPeriodSecs")
	}
	return nil, m.StepDown(ctx, time.Duration(secs)*time.Second, time.Duration(catchUp)*time.Second, force)
}

// StepDown makes a primary a secondary that stands for no election for the time of freeze. It takes no writes while it
// waits, up to catchUp, until a majority and an electable member have everything, and hands over to that member. With
// force it goes without an heir when catchUp is over.
func (m *Member) StepDown(ctx context.Context, freeze, catchUp time.Duration, force bool) error {
	if _, ok := m.WritablePrimary(); !ok {
		return mongoerr.Server(mongoerr.CodeNotWritablePrimary, "not primary so can't step down")
	}
	begun := time.Now()
	if _, err := m.ask(ctx, repl.AttemptStepDown{On: true}); err != nil {
		return err
	}
	heir, err := m.awaitHeir(ctx, begun.Add(catchUp), force)
	if err != nil {
		_, _ = m.ask(context.WithoutCancel(ctx), repl.AttemptStepDown{On: false})
		return err
	}
	_, err = m.ask(ctx, repl.StepDown{Until: begun.Add(freeze), HandTo: heir})
	return err
}

// awaitHeir waits for a member that can take over. No write is accepted any more; those in progress end with the
// writer's lock, which the empty write here waits for.
func (m *Member) awaitHeir(ctx context.Context, until time.Time, force bool) (int, error) {
	last, err := m.Store.Write(nil, func(*store.Tx) error { return nil })
	if err != nil {
		return repl.None, err
	}
	m.wrote()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for {
		changed := m.progress.Load().changed
		var heir int
		var enough bool
		if err := m.look(ctx, func(n *repl.Node) { heir, enough = n.Heir(repl.OpTime(last)) }); err != nil {
			return repl.None, err
		}
		if heir != repl.None && enough {
			return heir, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			if force {
				return heir, nil
			}
			return repl.None, mongoerr.Server(mongoerr.CodeExceededTimeLimit, "No electable secondaries caught up as of %s. Please use the "+
				"replSetStepDown command with the argument {force: true} to force node to step down.", time.Now().UTC().Format(time.RFC3339))
		case <-ctx.Done():
			return repl.None, context.Cause(ctx)
		}
	}
}

func replSetFreeze(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	secs := intOf(r.Body, "replSetFreeze")
	if secs < 0 {
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "frozen seconds must be >=0")
	}
	if st := m.state.Load(); st.Role == repl.RolePrimary {
		return nil, mongoerr.Server(mongoerr.CodeNotSecondary, "cannot freeze node when primary or running for election. state: Primary")
	}
	var until time.Time
	if secs = min(secs, maxSeconds); secs > 0 {
		until = time.Now().Add(time.Duration(secs) * time.Second)
	}
	_, err := m.ask(ctx, repl.Freeze{Until: until})
	return nil, err
}

func replSetMaintenance(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	st := m.state.Load()
	if st.Role == repl.RolePrimary {
		return nil, mongoerr.Server(mongoerr.CodeNotSecondary, "primaries can't modify maintenance mode")
	}
	on, _ := r.Field("replSetMaintenance").BooleanOK()
	if n, ok := r.Field("replSetMaintenance").AsInt64OK(); ok {
		on = n != 0
	}
	var role repl.Role
	if on {
		role = repl.RoleRecover
	} else if st.Role != repl.RoleRecover {
		return nil, mongoerr.Server(mongoerr.CodeOperationFailed, "already out of maintenance mode")
	}
	_, err := m.ask(ctx, repl.Recover{Role: role})
	return nil, err
}

func replSetInitiate(context.Context, *Member, *Request) (bson.D, error) {
	return nil, mongoerr.Server(23, "already initialized")
}
