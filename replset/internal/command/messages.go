package command

import (
	"context"
	"fmt"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/repl"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// patience is how long a message between members may take before it counts as lost.
func (m *Member) patience() time.Duration { return m.state.Load().Config.ElectionTimeout }

func (m *Member) sendHeartbeat(e repl.SendHeartbeat) {
	ctx, cancel := context.WithTimeout(m.ctx, m.patience())
	defer cancel()
	q, begun := e.Request, time.Now()
	reply, err := m.link(e.Host).demand(ctx, "admin", bson.D{
		{Key: "replSetHeartbeat", Value: m.state.Load().Config.SetName},
		{Key: "configVersion", Value: q.Config.Version},
		{Key: "configTerm", Value: q.Config.Term},
		{Key: "hbv", Value: int32(1)},
		{Key: "from", Value: q.Host},
		{Key: "fromId", Value: int32(q.From)},
		{Key: "term", Value: q.Term},
		{Key: "primaryId", Value: int32(q.Primary)},
		{Key: "lastOpCommitted", Value: opTimeDocument(store.OpTime(q.Commit))},
	})
	if err != nil {
		m.tell(m.ctx, repl.HeartbeatFailed{From: e.To, Host: e.Host, Why: err.Error()})
		return
	}
	m.tell(m.ctx, repl.HeartbeatReply{
		From:    e.To,
		Host:    e.Host,
		Term:    intOf(reply, "term"),
		Role:    repl.Role(intOf(reply, "state")),
		Applied: opTimeOf(reply, "opTime"),
		Durable: opTimeOf(reply, "durableOpTime"),
		Commit:  opTimeOf(reply, "lastOpCommitted"),
		Primary: int(intOf(reply, "primaryId")),
		Config:  repl.ConfigID{Version: int32(intOf(reply, "v")), Term: intOf(reply, "configTerm")},
		Source:  int(intOf(reply, "syncSourceId")),
		Elected: opTimeOf(reply, "electionOpTime"),
		Ping:    time.Since(begun),
	})
}

func (m *Member) sendVote(e repl.SendVote) {
	ctx, cancel := context.WithTimeout(m.ctx, m.patience())
	defer cancel()
	q := e.Request
	reply, err := m.link(e.Host).demand(ctx, "admin", bson.D{
		{Key: "replSetRequestVotes", Value: int32(1)},
		{Key: "setName", Value: m.state.Load().Config.SetName},
		{Key: "dryRun", Value: q.DryRun},
		{Key: "term", Value: q.Term},
		{Key: "candidateIndex", Value: int32(q.From)},
		{Key: "configVersion", Value: q.Config.Version},
		{Key: "configTerm", Value: q.Config.Term},
		{Key: "lastAppliedOpTime", Value: opTimeDocument(store.OpTime(q.Applied))},
	})
	if err != nil {
		return // no answer is no vote
	}
	granted, _ := reply.Lookup("voteGranted").BooleanOK()
	if !granted {
		why, _ := reply.Lookup("reason").StringValueOK()
		m.log.Debug("vote refused", "member", m.self, "by", e.To, "term", q.Term, "dry run", q.DryRun, "reason", why)
	}
	m.tell(m.ctx, repl.VoteReply{From: e.To, Term: intOf(reply, "term"), For: q.Term, DryRun: q.DryRun, Granted: granted})
}

func (m *Member) sendStepUp(e repl.SendStepUp) {
	ctx, cancel := context.WithTimeout(m.ctx, m.patience())
	defer cancel()
	_, err := m.link(e.Host).demand(ctx, "admin", bson.D{{Key: "replSetStepUp", Value: int32(1)}, {Key: "skipDryRun", Value: true}})
	if err != nil {
		m.log.Info("hand-over failed: the election timeout will decide", "member", m.self, "heir", e.To, "error", err)
	}
}

// fetchConfig asks a member for its newer configuration, one at a time: the next heartbeat asks again.
func (m *Member) fetchConfig(e repl.FetchConfig) {
	if !m.fetching.CompareAndSwap(false, true) {
		return
	}
	defer m.fetching.Store(false)
	ctx, cancel := context.WithTimeout(m.ctx, m.patience())
	defer cancel()
	reply, err := m.link(e.Host).demand(ctx, "admin", bson.D{{Key: "replSetGetConfig", Value: int32(1)}})
	if err != nil {
		return
	}
	doc, _ := reply.Lookup("config").DocumentOK()
	cfg, err := readConfig(doc, m.state.Load().Config)
	if err == nil && cfg.SetName != m.state.Load().Config.SetName {
		err = fmt.Errorf("it is of the set %s", cfg.SetName)
	}
	if err != nil {
		m.log.Warn("a member sent a configuration that is none", "member", m.self, "from", e.Host, "error", err)
		return
	}
	m.tell(m.ctx, repl.Reconfig{Config: cfg})
}

func intOf(doc bson.Raw, key string) int64 {
	n, _ := doc.Lookup(key).AsInt64OK()
	return n
}

func opTimeOf(doc bson.Raw, key string) repl.OpTime {
	d, _ := doc.Lookup(key).DocumentOK()
	t, i, _ := d.Lookup("ts").TimestampOK()
	return repl.OpTime{TS: bson.Timestamp{T: t, I: i}, Term: intOf(d, "t")}
}
