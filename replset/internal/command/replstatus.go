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

// replSetGetStatus tells what this member knows of all. Not told: statistics of initial syncs, and of elections in which
// it only voted.
func replSetGetStatus(ctx context.Context, m *Member, _ *Request) (bson.D, error) {
	switch m.state.Load().Role {
	case repl.RoleStartup:
		return nil, mongoerr.Server(mongoerr.CodeNotYetInitialized, "no replset config has been received")
	case repl.RoleRemoved:
		return nil, mongoerr.Server(mongoerr.CodeInvalidReplicaSetConfig, "Our replica set config is invalid or we are not a member of it")
	}
	s := status{m: m, now: time.Now()}
	err := m.look(ctx, func(n *repl.Node) {
		s.topology, s.progress, s.members, s.election = n.Topology(), n.Progress(), n.Members(), n.Election()
		s.stale, s.maintenance = n.Stale(), n.Maintenance()
	})
	if err != nil {
		return nil, err
	}
	return s.document(), nil
}

// status is one look at a member.
type status struct {
	m           *Member
	now         time.Time
	topology    repl.Topology
	progress    repl.Progress
	members     []repl.MemberView
	election    repl.Election
	stale       bool
	maintenance int
}

func (s *status) document() bson.D {
	cfg := s.topology.Config
	source, sourceID := s.source(s.topology.SyncFrom)
	d := bson.D{
		{Key: "set", Value: cfg.SetName},
		{Key: "date", Value: s.now},
		{Key: "myState", Value: int32(s.topology.Role)},
		{Key: "term", Value: s.topology.Term},
		{Key: "syncSourceHost", Value: source},
		{Key: "syncSourceId", Value: sourceID},
	}
	if s.maintenance > 0 {
		d = append(d, bson.E{Key: "maintenanceMode", Value: int32(s.maintenance)})
	}
	d = append(d, bson.D{
		{Key: "heartbeatIntervalMillis", Value: cfg.HeartbeatInterval.Milliseconds()},
		{Key: "majorityVoteCount", Value: int32(cfg.Majority())},
		{Key: "writeMajorityCount", Value: int32(cfg.WriteMajority())},
		{Key: "votingMembersCount", Value: int32(cfg.Voters())},
		{Key: "writableVotingMembersCount", Value: int32(cfg.BearingVoters())},
		{Key: "optimes", Value: s.optimes()},
	}...)
	if s.topology.Role == repl.RolePrimary {
		d = append(d, bson.E{Key: "electionCandidateMetrics", Value: s.candidate()})
	}
	list := make([]bson.D, len(s.members))
	for i, v := range s.members {
		list[i] = s.member(v)
	}
	return append(d, bson.E{Key: "members", Value: list})
}

func (s *status) wall(op repl.OpTime) bson.DateTime {
	if op.IsZero() {
		return 0
	}
	return wallTime(s.m.Store.Latest(), store.OpTime(op))
}

func (s *status) source(id int) (string, int32) {
	if src := s.topology.Config.Member(id); src != nil {
		return src.Host, int32(id)
	}
	return "", -1
}

func (s *status) optimes() bson.D {
	p := s.progress
	return bson.D{
		{Key: "lastCommittedOpTime", Value: position(p.Commit)},
		{Key: "lastCommittedWallTime", Value: s.wall(p.Commit)},
		{Key: "readConcernMajorityOpTime", Value: position(p.Commit)},
		{Key: "appliedOpTime", Value: position(p.Applied)},
		{Key: "durableOpTime", Value: position(p.Durable)},
		{Key: "writtenOpTime", Value: position(p.Applied)},
		{Key: "lastAppliedWallTime", Value: s.wall(p.Applied)},
		{Key: "lastDurableWallTime", Value: s.wall(p.Durable)},
		{Key: "lastWrittenWallTime", Value: s.wall(p.Applied)},
	}
}

// position is an optime as a server shows it: before any entry the term is -1.
func position(op repl.OpTime) bson.D {
	if op.IsZero() {
		op.Term = -1
	}
	return opTimeDocument(store.OpTime(op))
}

// candidate tells of the election that this primary won.
func (s *status) candidate() bson.D {
	e, cfg := s.election, s.topology.Config
	d := bson.D{
		{Key: "lastElectionReason", Value: e.Why},
		{Key: "lastElectionDate", Value: e.Won},
		{Key: "electionTerm", Value: e.Term},
		{Key: "lastCommittedOpTimeAtElection", Value: position(s.progress.Commit)},
		{Key: "lastSeenOpTimeAtElection", Value: position(e.Applied)},
		{Key: "numVotesNeeded", Value: int32(cfg.Majority())},
		{Key: "priorityAtElection", Value: cfg.Member(s.topology.Self).Priority},
		{Key: "electionTimeoutMillis", Value: cfg.ElectionTimeout.Milliseconds()},
	}
	if prior := cfg.Member(e.Primary); prior != nil {
		d = append(d, bson.E{Key: "priorPrimaryMemberId", Value: int32(prior.ID)})
	}
	return d
}

func (s *status) member(v repl.MemberView) bson.D {
	health, uptime := 0.0, int64(0)
	if v.Up {
		health, uptime = 1, int64(s.now.Sub(s.m.started)/time.Second)
	}
	source, sourceID := s.source(v.Source)
	d := bson.D{
		{Key: "_id", Value: int32(v.ID)},
		{Key: "name", Value: v.Host},
		{Key: "health", Value: health},
		{Key: "state", Value: int32(v.Role)},
		{Key: "stateStr", Value: v.Role.String()},
		{Key: "uptime", Value: uptime},
	}
	if !v.Arbiter {
		op, durable := v.Applied, v.Durable
		if !v.Up {
			op, durable = repl.OpTime{}, repl.OpTime{}
		}
		d = append(d, bson.E{Key: "optime", Value: position(op)})
		if !v.Self {
			d = append(d, bson.E{Key: "optimeDurable", Value: position(durable)})
		}
		d = append(d, bson.E{Key: "optimeDate", Value: s.wall(op)})
		if !v.Self {
			d = append(d, bson.E{Key: "optimeDurableDate", Value: s.wall(durable)})
		}
		d = append(d, bson.E{Key: "lastAppliedWallTime", Value: s.wall(op)}, bson.E{Key: "lastDurableWallTime", Value: s.wall(durable)})
	}
	if !v.Self {
		d = append(d, bson.E{Key: "lastHeartbeat", Value: dateOf(v.Heartbeat)}, bson.E{Key: "lastHeartbeatRecv", Value: dateOf(v.Asked)},
			bson.E{Key: "pingMs", Value: v.Ping.Milliseconds()}, bson.E{Key: "lastHeartbeatMessage", Value: v.Failed})
	}
	d = append(d, bson.E{Key: "syncSourceHost", Value: source}, bson.E{Key: "syncSourceId", Value: sourceID},
		bson.E{Key: "infoMessage", Value: s.info(v)})
	if v.Role == repl.RolePrimary && !v.Elected.IsZero() {
		d = append(d, bson.E{Key: "electionTime", Value: v.Elected.TS}, bson.E{Key: "electionDate", Value: bson.DateTime(int64(v.Elected.TS.T) * 1000)})
	}
	version, term := v.Config.Version, v.Config.Term
	if !v.Up {
		version, term = -1, -1
	}
	d = append(d, bson.E{Key: "configVersion", Value: version}, bson.E{Key: "configTerm", Value: term})
	if v.Self {
		return append(d, bson.E{Key: "self", Value: true}, bson.E{Key: "lastHeartbeatMessage", Value: ""})
	}
	return d
}

// info is what the member has to say of itself.
func (s *status) info(v repl.MemberView) string {
	switch {
	case v.Self && s.stale:
		return "Could not find member to sync from: too stale to catch up"
	case v.Self && v.Role == repl.RolePrimary && !s.topology.Writable:
		return "catching up"
	case v.Self && s.maintenance > 0:
		return fmt.Sprintf("in maintenance mode (%d)", s.maintenance)
	}
	return ""
}

func dateOf(t time.Time) bson.DateTime {
	if t.IsZero() {
		return 0
	}
	return bson.DateTime(t.UnixMilli())
}
