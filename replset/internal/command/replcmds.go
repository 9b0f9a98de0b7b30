package command

import (
	"context"

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
	{Name: "replSetSyncFrom", Flags: AdminOnly, Handler: replSetSyncFrom},
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
	if only, _ := r.Field("greeting").BooleanOK(); only { // from one who asks whether it may be a member
		return bson.D{{Key: "set", Value: st.Config.SetName}, {Key: "state", Value: int32(st.Role)}, {Key: "v", Value: st.Config.Version}}, nil
	}
	host, _ := r.Field("from").StringValueOK()
	answers, err := m.ask(ctx, repl.HeartbeatRequest{
		From:    int(intOf(r.Body, "fromId")),
		Host:    host,
		Term:    intOf(r.Body, "term"),
		Primary: int(intOf(r.Body, "primaryId")),
		Commit:  opTimeOf(r.Body, "lastOpCommitted"),
		Config:  configIDOf(r.Body),
	})
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		if a, ok := a.(repl.HeartbeatAnswer); ok {
			return bson.D{
				{Key: "set", Value: st.Config.SetName},
				{Key: "state", Value: int32(a.Reply.Role)},
				{Key: "v", Value: a.Reply.Config.Version},
				{Key: "configTerm", Value: a.Reply.Config.Term},
				{Key: "syncSourceId", Value: int32(a.Reply.Source)},
				{Key: "electionOpTime", Value: opTimeDocument(store.OpTime(a.Reply.Elected))},
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
		From:    int(intOf(r.Body, "candidateIndex")),
		Term:    intOf(r.Body, "term"),
		Applied: opTimeOf(r.Body, "lastAppliedOpTime"),
		DryRun:  dry,
		Config:  configIDOf(r.Body),
	})
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		if a, ok := a.(repl.VoteAnswer); ok {
			granted := a.Reply.Granted || m.opt.Misbehave == TwoVotes && a.Reason == repl.AlreadyVoted
			return bson.D{{Key: "term", Value: a.Reply.Term}, {Key: "voteGranted", Value: granted}, {Key: "reason", Value: a.Reason}}, nil
		}
	}
	return nil, mongoerr.Server(mongoerr.CodeInternalError, "the member has no answer to a vote request")
}

func replSetUpdatePosition(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	docs, _, err := r.Documents("optimes")
	if err != nil {
		return nil, err
	}
	for i, d := range docs {
		if _, err := m.ask(ctx, repl.Position{From: int(intOf(d, "memberId")), Direct: i == 0, Term: intOf(r.Body, "term"), Version: int32(intOf(d, "cfgver")),
			Applied: opTimeOf(d, "appliedOpTime"), Durable: opTimeOf(d, "durableOpTime")}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func configIDOf(doc bson.Raw) repl.ConfigID {
	return repl.ConfigID{Version: int32(intOf(doc, "configVersion")), Term: intOf(doc, "configTerm")}
}

// appendReplData appends what a follower learns from every reply of its source.
func (m *Member) appendReplData(dst []byte) []byte {
	p, st := m.progress.Load(), m.state.Load()
	dst, start := bson.BeginDocumentElement(dst, "$replData")
	dst = bson.AppendInt64(dst, "term", st.Term)
	dst = store.OpTime(p.Commit).Append(dst, "lastOpCommitted")
	dst = store.OpTime(p.Applied).Append(dst, "lastOpApplied")
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

func replSetInitiate(context.Context, *Member, *Request) (bson.D, error) {
	return nil, mongoerr.Server(23, "already initialized")
}
