package repl

import "time"

// Topology is what changes seldom: roles and the configuration. While two of them are equal, hello has nothing new to say.
type Topology struct {
	Config     *Config
	Self       int // None: the configuration does not have this member
	Term       int64
	Role       Role
	Writable   bool // a primary that takes writes
	Primary    int  // or None
	SyncFrom   int  // whom to pull the oplog from, or None
	ElectionOp OpTime
}

// Progress is what changes with every write.
type Progress struct {
	Config  *Config // by whose members the lists below are ordered
	Applied OpTime
	Durable OpTime // of Applied, what would outlive a crash
	Commit  OpTime
	Peers   [MaxMembers]OpTime // how far each member has applied, self included
	Safe    [MaxMembers]OpTime // and how much of that would outlive its crash
	Relay   [MaxMembers]bool   // whose positions reach the primary through this member
	Settled bool               // a majority has the configuration, and what was committed before it is committed under it
	Holds   bool               // a majority has the configuration
}

// MemberView is what the node knows of a member, for replSetGetStatus and hand-over.
type MemberView struct {
	MemberConfig
	Self      bool
	Role      Role
	Up        bool
	Applied   OpTime
	Durable   OpTime
	Elected   OpTime
	Config    ConfigID
	Source    int
	Ping      time.Duration
	Heartbeat time.Time
	Asked     time.Time // when its own last heartbeat came
	Failed    string
}

// Topology returns the seldom-changing part.
func (n *Node) Topology() Topology {
	return Topology{Config: n.cfg, Self: n.self, Term: n.term, Role: n.role, Writable: n.writable && !n.stepping,
		Primary: n.primary, SyncFrom: n.source, ElectionOp: n.electionOp}
}

// Progress returns the part that changes with every write.
func (n *Node) Progress() Progress {
	p := Progress{Config: n.cfg, Applied: n.applied, Durable: n.durable, Commit: n.commit, Holds: n.configCommitted()}
	p.Settled = p.Holds && n.oplogCommitted()
	for i, m := range n.cfg.Members {
		if m.ID == n.self {
			p.Peers[i], p.Safe[i] = n.applied, n.durable
		} else {
			o := n.peers[m.ID]
			p.Peers[i], p.Safe[i], p.Relay[i] = o.applied, o.durable, o.relay
		}
	}
	return p
}

// Members returns what is known of each member.
func (n *Node) Members() []MemberView {
	out := make([]MemberView, len(n.cfg.Members))
	for i, m := range n.cfg.Members {
		if m.ID == n.self {
			out[i] = MemberView{MemberConfig: m, Self: true, Role: n.role, Up: true, Applied: n.applied, Durable: n.durable,
				Elected: n.elected(), Config: n.cfg.ID(), Source: n.source}
			continue
		}
		p := n.peers[m.ID]
		out[i] = MemberView{MemberConfig: m, Role: p.role, Up: p.up, Applied: p.applied, Durable: p.durable, Elected: p.elected,
			Config: p.config, Source: p.source, Ping: p.ping, Heartbeat: p.heartbeat, Asked: p.asked, Failed: p.failed}
	}
	return out
}

// Election is the last one in which this node stood.
func (n *Node) Election() Election { return n.election }

// Maintenance is how often the member was taken out of service and not put back.
func (n *Node) Maintenance() int { return n.maintenance }

// Stale says that no source reaches back to this member's newest entry.
func (n *Node) Stale() bool { return n.stale }

// Standing says that the node runs an election.
func (n *Node) Standing() bool { return n.ballot != nil }

// Heir is the member to hand over to: electable, alive, caught up with op, of the highest priority; None if there is
// none. enough says whether a majority of the voting data-bearing members has reached op.
func (n *Node) Heir(op OpTime) (heir int, enough bool) {
	heir = None
	have := 0
	for _, m := range n.cfg.Members {
		if m.Arbiter {
			continue
		}
		if m.ID == n.self {
			have += m.Votes
			continue
		}
		p := n.peers[m.ID]
		if !p.up || p.applied.Less(op) {
			continue
		}
		have += m.Votes
		able := m.Electable() && m.Votes > 0 && p.role != RoleRecover && p.role != RoleRollback
		if able && (heir == None || m.Priority > n.cfg.Member(heir).Priority) {
			heir = m.ID
		}
	}
	return heir, have >= n.cfg.WriteMajority()
}
