package command

import (
	"context"
	"fmt"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/repl"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// replSetGetStatus tells what this member knows of all. Not told: statistics of elections and of initial syncs.
func replSetGetStatus(ctx context.Context, m *Member, _ *Request) (bson.D, error) {
	var members []repl.MemberView
	if err := m.look(ctx, func(n *repl.Node) { members = n.Members() }); err != nil {
		return nil, err
	}
	st, p := m.state.Load(), m.progress.Load()
	now := time.Now()
	source, sourceID := "", int32(-1)
	if st.SyncFrom != repl.None {
		source, sourceID = st.Config.Members[st.SyncFrom].Host, int32(st.SyncFrom)
	}
	list := make([]bson.D, len(members))
	for i, v := range members {
		list[i] = m.memberStatus(st, i, v, now)
	}
	return bson.D{
		{Key: "set", Value: st.Config.SetName},
		{Key: "date", Value: now},
		{Key: "myState", Value: int32(st.Role)},
		{Key: "term", Value: st.Term},
		{Key: "syncSourceHost", Value: source},
		{Key: "syncSourceId", Value: sourceID},
		{Key: "heartbeatIntervalMillis", Value: st.Config.HeartbeatInterval.Milliseconds()},
		{Key: "majorityVoteCount", Value: int32(st.Config.Majority())},
		{Key: "writeMajorityCount", Value: int32(st.Config.WriteMajority())},
		{Key: "votingMembersCount", Value: int32(st.Config.Voters())},
		{Key: "optimes", Value: bson.D{
			{Key: "lastCommittedOpTime", Value: opTimeDocument(store.OpTime(p.Commit))},
			{Key: "appliedOpTime", Value: opTimeDocument(store.OpTime(p.Applied))},
			{Key: "durableOpTime", Value: opTimeDocument(store.OpTime(p.Durable))},
		}},
		{Key: "members", Value: list},
	}, nil
}

func (m *Member) memberStatus(st *topology, i int, v repl.MemberView, now time.Time) bson.D {
	health := 0.0
	if v.Up {
		health = 1
	}
	d := bson.D{
		{Key: "_id", Value: int32(i)},
		{Key: "name", Value: st.Config.Members[i].Host},
		{Key: "health", Value: health},
		{Key: "state", Value: int32(v.Role)},
		{Key: "stateStr", Value: v.Role.String()},
		{Key: "uptime", Value: int64(now.Sub(m.started) / time.Second)},
	}
	if !st.Config.Members[i].Arbiter {
		op := store.OpTime(v.Applied)
		d = append(d, bson.E{Key: "optime", Value: opTimeDocument(op)},
			bson.E{Key: "optimeDurable", Value: opTimeDocument(store.OpTime(v.Durable))},
			bson.E{Key: "optimeDate", Value: wallTime(m.Store.Latest(), op)})
	}
	if !v.Heartbeat.IsZero() {
		d = append(d, bson.E{Key: "lastHeartbeat", Value: v.Heartbeat})
	}
	if v.Failed != "" {
		d = append(d, bson.E{Key: "lastHeartbeatMessage", Value: v.Failed})
	}
	if v.Role == repl.RolePrimary && i == st.Self {
		d = append(d, bson.E{Key: "electionTime", Value: st.ElectionOp.TS})
	}
	if i == m.self {
		d = append(d, bson.E{Key: "self", Value: true})
	}
	return append(d, bson.E{Key: "configVersion", Value: st.Config.Version})
}

func replSetGetConfig(_ context.Context, m *Member, _ *Request) (bson.D, error) {
	return bson.D{{Key: "config", Value: configDocument(m.state.Load().Config)}}, nil
}

// configDocument is the configuration as replSetGetConfig shows it.
func configDocument(cfg *Config) bson.D {
	members := make([]bson.D, len(cfg.Members))
	for i, mc := range cfg.Members {
		members[i] = bson.D{
			{Key: "_id", Value: int32(i)},
			{Key: "host", Value: mc.Host},
			{Key: "arbiterOnly", Value: mc.Arbiter},
			{Key: "buildIndexes", Value: true},
			{Key: "hidden", Value: mc.Hidden},
			{Key: "priority", Value: mc.Priority},
			{Key: "tags", Value: tagsDocument(mc.Tags)},
			{Key: "secondaryDelaySecs", Value: int64(mc.Delay / time.Second)},
			{Key: "votes", Value: int32(mc.Votes)},
		}
	}
	modes := bson.D{}
	for name, tags := range cfg.Modes {
		var d bson.D
		for tag, n := range tags {
			d = append(d, bson.E{Key: tag, Value: int32(n)})
		}
		modes = append(modes, bson.E{Key: name, Value: d})
	}
	return bson.D{
		{Key: "_id", Value: cfg.SetName},
		{Key: "version", Value: cfg.Version},
		{Key: "term", Value: int64(1)},
		{Key: "members", Value: members},
		{Key: "protocolVersion", Value: int64(1)},
		{Key: "writeConcernMajorityJournalDefault", Value: true},
		{Key: "settings", Value: bson.D{
			{Key: "chainingAllowed", Value: false},
			{Key: "heartbeatIntervalMillis", Value: int32(cfg.HeartbeatInterval.Milliseconds())},
			{Key: "heartbeatTimeoutSecs", Value: int32(max(cfg.ElectionTimeout/time.Second, 1))},
			{Key: "electionTimeoutMillis", Value: int32(cfg.ElectionTimeout.Milliseconds())},
			{Key: "catchUpTimeoutMillis", Value: int32(cfg.CatchUpTimeout.Milliseconds())},
			{Key: "getLastErrorModes", Value: modes},
			{Key: "getLastErrorDefaults", Value: bson.D{{Key: "w", Value: int32(1)}, {Key: "wtimeout", Value: int32(0)}}},
		}},
	}
}

// replSetReconfig changes priorities, votes, tags, delays and what is hidden. Not done: adding, removing or moving
// members, and changing the settings.
func replSetReconfig(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	doc, ok := r.Field("replSetReconfig").DocumentOK()
	if !ok {
		return nil, mongoerr.Server(mongoerr.CodeTypeMismatch, "no configuration specified")
	}
	st := m.state.Load()
	if force, _ := r.Field("force").BooleanOK(); !st.Writable && !force {
		return nil, mongoerr.Server(mongoerr.CodeNotWritablePrimary,
			"replSetReconfig should only be run on PRIMARY, but my state is %s; use the \"force\" argument to override", st.Role)
	}
	cfg, err := parseConfig(doc, st.Config)
	if err != nil {
		return nil, mongoerr.Server(mongoerr.CodeInvalidReplicaSetConfig, "%v", err)
	}
	if cfg.Version <= st.Config.Version {
		return nil, mongoerr.Server(103, "New replica set configuration version must be greater than old, but %d is not greater than %d for replica set %s",
			cfg.Version, st.Config.Version, st.Config.SetName)
	}
	if len(cfg.Members) != len(st.Config.Members) {
		return nil, mongoerr.Server(mongoerr.CodeNotImplemented, "adding and removing members is not implemented")
	}
	for i, mc := range cfg.Members {
		if old := st.Config.Members[i]; mc.Host != old.Host || mc.Arbiter != old.Arbiter {
			return nil, mongoerr.Server(mongoerr.CodeNotImplemented, "changing the host of a member, or whether it is an arbiter, is not implemented (member %d)", i)
		}
	}
	_, err = m.ask(ctx, repl.Reconfig{Config: cfg})
	return nil, err
}

// parseConfig reads a configuration as another member shows it. Timers and modes stay those of old: they are the same
// for all members from the start.
func parseConfig(doc bson.Raw, old *Config) (*Config, error) {
	cfg := *old
	cfg.Version = int32(intOf(doc, "version"))
	cfg.Members = nil
	arr, ok := doc.Lookup("members").ArrayOK()
	if !ok {
		return nil, fmt.Errorf("the configuration has no members")
	}
	for i, v := range arr.All() {
		d, ok := v.DocumentOK()
		if !ok {
			return nil, fmt.Errorf("member %d is a %s", i, v.Type)
		}
		var mc MemberConfig
		mc.Host, _ = d.Lookup("host").StringValueOK()
		mc.Priority, _ = d.Lookup("priority").AsFloat64OK()
		mc.Votes = int(intOf(d, "votes"))
		mc.Hidden, _ = d.Lookup("hidden").BooleanOK()
		mc.Arbiter, _ = d.Lookup("arbiterOnly").BooleanOK()
		mc.Delay = time.Duration(intOf(d, "secondaryDelaySecs")) * time.Second
		tags, _ := d.Lookup("tags").DocumentOK()
		for name, t := range tags.All() {
			s, _ := t.StringValueOK()
			mc.Tags = append(mc.Tags, Tag{Name: name, Value: s})
		}
		cfg.Members = append(cfg.Members, mc)
	}
	return &cfg, cfg.Validate()
}
