package repl

import "time"

// Topology is what changes seldom: roles and the configuration. While two of them are equal, hello has nothing new to say.
type Topology struct {
	Config     *Config
	Self       int
	Term       int64
	Role       Role
	Writable   bool // a primary that takes writes
	Primary    int  // or None
	SyncFrom   int  // whom to pull the oplog from, or None
	ElectionOp OpTime
}

// Progress is what changes with every write.
type Progress struct {
	Applied OpTime
	Durable OpTime // of Applied, what would outlive a crash
	Commit  OpTime
	Peers   [7]OpTime // how far each member has applied, self included
	Safe    [7]OpTime // and how much of that would outlive its crash
}

// MemberView is what the node knows of a member, for replSetGetStatus and hand-over.
type MemberView struct {
	Role      Role
	Up        bool
	Applied   OpTime
	Durable   OpTime
	Heartbeat time.Time
	Failed    string
}

// Topology returns the seldom-changing part.
func (n *Node) Topology() Topology {
	return Topology{Config: n.cfg, Self: n.self, Term: n.term, Role: n.role, Writable: n.writable && !n.stepping,
		Primary: n.primary, SyncFrom: n.syncFrom(), ElectionOp: n.electionOp}
}

// Progress returns the part that changes with every write.
func (n *Node) Progress() Progress {
	p := Progress{Applied: n.applied, Durable: n.durable, Commit: n.commit}
	for i := range n.peers {
		p.Peers[i], p.Safe[i] = n.peers[i].applied, n.peers[i].durable
	}
	p.Peers[n.self], p.Safe[n.self] = n.applied, n.durable
	return p
}

// Members returns what is known of each member.
func (n *Node) Members() []MemberView {
	out := make([]MemberView, len(n.peers))
	for i, p := range n.peers {
		out[i] = MemberView{Role: p.role, Up: p.up, Applied: p.applied, Durable: p.durable, Heartbeat: p.heartbeat, Failed: p.failed}
	}
	out[n.self] = MemberView{Role: n.role, Up: true, Applied: n.applied, Durable: n.durable}
	return out
}

// syncFrom is the primary for a follower, a fresher member for a winner that catches up. Without a primary a follower
// pulls from a fresher member too: else a member that may not become primary could be ahead of the only one that may, and
// would refuse it its vote for ever.
func (n *Node) syncFrom() int {
	switch {
	case n.role == RoleArbiter:
		return None
	case n.role == RolePrimary && n.catchUp.IsZero():
		return None
	case n.role == RolePrimary:
		return n.freshest()
	case n.primary != None && n.primary != n.self:
		return n.primary
	case n.role == RoleStartup2: // a first copy is taken from a primary
		return None
	}
	return n.freshest()
}

// Heir is the member to hand over to: electable, alive, caught up with op, of the highest priority; None if there is
// none. enough says whether a majority of the voting data-bearing members has reached op.
func (n *Node) Heir(op OpTime) (heir int, enough bool) {
	heir = None
	have := 0
	for i, m := range n.cfg.Members {
		reached := i == n.self || n.peers[i].up && !n.peers[i].applied.Less(op)
		if !reached || m.Arbiter {
			continue
		}
		have += m.Votes
		if i != n.self && m.Electable() && m.Votes > 0 && (heir == None || m.Priority > n.cfg.Members[heir].Priority) {
			heir = i
		}
	}
	return heir, have >= n.cfg.WriteMajority()
}
