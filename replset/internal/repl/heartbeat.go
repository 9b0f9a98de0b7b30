package repl

import "time"

func (n *Node) sendHeartbeats(now time.Time, out *effects) {
	for i := range n.peers {
		p := &n.peers[i]
		if i == n.self || p.waiting || now.Before(p.next) {
			continue
		}
		p.waiting = true
		out.add(SendHeartbeat{To: i, Request: HeartbeatRequest{
			From: n.self, Term: n.term, Primary: n.primary, Commit: n.commit, Version: n.cfg.Version}})
	}
}

func (n *Node) onHeartbeatRequest(ev HeartbeatRequest, now time.Time, out *effects) {
	n.meet(ev.Term, now)
	p := &n.peers[ev.From]
	if !p.up && !p.waiting {
		p.next = now // it is back: ask it at once
	}
	if ev.Term == n.term && ev.Primary == ev.From && ev.From != n.self {
		n.heardPrimary(ev.From, now)
		n.learnCommit(ev.Commit)
	}
	n.compareConfig(ev.From, ev.Version, out)
	out.add(HeartbeatAnswer{n.state()})
}

// state is what the node tells in a heartbeat's answer.
func (n *Node) state() HeartbeatReply {
	return HeartbeatReply{From: n.self, Term: n.term, Role: n.role, Applied: n.applied, Durable: n.durable, Commit: n.commit,
		Primary: n.primary, Version: n.cfg.Version}
}

func (n *Node) onHeartbeatReply(ev HeartbeatReply, now time.Time, out *effects) {
	p := &n.peers[ev.From]
	if ev.Term > n.term && n.role == RolePrimary {
		p.next = now
	}
	n.meet(ev.Term, now)
	back := p.failed != "" // it may have crashed and come back with less
	p.waiting, p.up, p.failed = false, true, ""
	p.heard, p.heartbeat = now, now
	n.pauseHeartbeat(p, now)
	p.role, p.told = ev.Role, ev.Commit
	// A lower position than known is an old message that a position report has overtaken, unless the member says that
	// it lost entries.
	if p.applied.Less(ev.Applied) || back || ev.Role == RoleRollback || ev.Role == RoleStartup2 {
		p.applied, p.durable = ev.Applied, ev.Durable
	} else if p.durable.Less(ev.Durable) {
		p.durable = ev.Durable
	}
	if ev.Role == RolePrimary && ev.Term == n.term {
		n.heardPrimary(ev.From, now)
		n.learnCommit(ev.Commit)
	} else if n.primary == ev.From {
		n.primary = None
	}
	n.compareConfig(ev.From, ev.Version, out)
}

func (n *Node) compareConfig(from int, version int32, out *effects) {
	if version > n.cfg.Version {
		out.add(FetchConfig{From: from})
	}
}

func (n *Node) onHeartbeatFailed(ev HeartbeatFailed, now time.Time) {
	p := &n.peers[ev.From]
	p.waiting, p.up, p.role, p.failed = false, false, RoleDown, ev.Why
	n.pauseHeartbeat(p, now)
}

// pauseHeartbeat sets the time of the next heartbeat: at once if there is news that the last one did not carry.
func (n *Node) pauseHeartbeat(p *peer, now time.Time) {
	p.next = now.Add(n.cfg.HeartbeatInterval)
	if p.again {
		p.again, p.next = false, now
	}
}

// announce has all members hear from this one at once.
func (n *Node) announce(now time.Time) {
	for i := range n.peers {
		n.peers[i].again, n.peers[i].next = n.peers[i].waiting, now
	}
}

func (n *Node) heardPrimary(from int, now time.Time) {
	if from == n.self {
		return
	}
	n.peers[from].up, n.peers[from].role = true, RolePrimary
	n.primary = from
	if n.ballot != nil && !(n.ballot.takeover && n.ballot.dry) {
		n.ballot = nil
	}
	n.expectPrimary(now)
	n.planTakeover(now)
}

func (n *Node) onPrimaryAlive(ev PrimaryAlive, now time.Time) {
	if ev.Term != n.term || n.primary != ev.From {
		return
	}
	n.expectPrimary(now)
	n.learnCommit(ev.Commit)
}

// learnCommit takes a follower's commit point from its primary, as far as it has the entries itself: what it has not
// applied yet it cannot show as committed.
func (n *Node) learnCommit(op OpTime) {
	if n.role == RolePrimary {
		return
	}
	if n.role != RoleArbiter && n.applied.Less(op) {
		if n.applied.Term != op.Term {
			return // its newest entries may be of a branch that the commit point knows nothing of
		}
		op = n.applied
	}
	if n.commit.Less(op) {
		n.commit = op
	}
}

func (n *Node) onPosition(ev Position, now time.Time) {
	p := &n.peers[ev.From]
	if p.applied.Less(ev.Applied) {
		p.applied = ev.Applied
	}
	if p.durable.Less(ev.Durable) {
		p.durable = ev.Durable
	}
	if n.role == RolePrimary {
		p.heard = now
	}
}

// advanceCommit moves a primary's commit point over what a majority of the voting data-bearing members has, safe from a crash.
func (n *Node) advanceCommit() {
	if n.role != RolePrimary {
		return
	}
	var at []OpTime
	for i, m := range n.cfg.Members {
		if m.Votes == 0 || m.Arbiter {
			continue
		}
		op := n.peers[i].durable
		if i == n.self {
			op = n.durable
		}
		at = append(at, op)
		for j := len(at) - 1; j > 0 && at[j-1].Less(at[j]); j-- {
			at[j], at[j-1] = at[j-1], at[j]
		}
	}
	need := n.cfg.WriteMajority()
	if need == 0 || len(at) < need {
		return
	}
	if op := at[need-1]; op.Term == n.term && n.commit.Less(op) {
		n.commit = op
	}
	n.hurry()
}

// hurry brings the next heartbeat forward to members that could show what is committed and do not know it yet: those
// whose report came before the one that made it so.
func (n *Node) hurry() {
	for i := range n.peers {
		p := &n.peers[i]
		if i != n.self && p.up && p.told.Less(n.commit) && !p.applied.Less(n.commit) {
			if soon := p.heartbeat.Add(n.cfg.HeartbeatInterval / 10); soon.Before(p.next) {
				p.next = soon
			}
		}
	}
}
