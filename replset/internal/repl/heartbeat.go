package repl

import "time"

func (n *Node) sendHeartbeats(now time.Time, out *effects) {
	for _, m := range n.cfg.Members {
		p := n.peers[m.ID]
		if p == nil || p.waiting || now.Before(p.next) {
			continue
		}
		p.waiting = true
		out.add(SendHeartbeat{To: m.ID, Host: m.Host, Request: n.heartbeat()})
	}
}

func (n *Node) heartbeat() HeartbeatRequest {
	return HeartbeatRequest{From: n.self, Host: n.host, Term: n.term, Primary: n.primary, Commit: n.commit, Config: n.cfg.ID()}
}

// sender is what is known of the member that calls itself from, at host. Strangers come from other configurations.
func (n *Node) sender(from int, host string) *peer {
	if p := n.peers[from]; p != nil && p.host == host {
		return p
	}
	return nil
}

func (n *Node) onHeartbeatRequest(ev HeartbeatRequest, now time.Time, out *effects) {
	n.meet(ev.Term, now)
	if p := n.sender(ev.From, ev.Host); p != nil {
		if !p.up && !p.waiting {
			p.next = now // it is back: ask it at once
		}
		p.asked = now
		p.config = ev.Config
		if ev.Term == n.term && ev.Primary == ev.From {
			n.heardPrimary(ev.From, now)
			n.learnCommit(ev.Commit)
		}
	}
	n.compareConfig(ev.Host, ev.Config, out)
	out.add(HeartbeatAnswer{n.state()})
}

// state is what the node tells in a heartbeat's answer.
func (n *Node) state() HeartbeatReply {
	return HeartbeatReply{From: n.self, Host: n.host, Term: n.term, Role: n.role, Applied: n.applied, Durable: n.durable, Commit: n.commit,
		Primary: n.primary, Config: n.cfg.ID(), Source: n.source, Elected: n.elected()}
}

func (n *Node) onHeartbeatReply(ev HeartbeatReply, now time.Time, out *effects) {
	p := n.sender(ev.From, ev.Host)
	if p == nil {
		n.meet(ev.Term, now)
		return // of a member that has been removed meanwhile
	}
	if ev.Term > n.term && n.role == RolePrimary {
		p.next = now
	}
	n.meet(ev.Term, now)
	back := p.failed != "" // it may have crashed and come back with less
	p.waiting, p.up, p.failed = false, true, ""
	p.heard, p.heartbeat, p.ping = now, now, ev.Ping
	n.pauseHeartbeat(p, now)
	p.role, p.told, p.source, p.elected = ev.Role, ev.Commit, ev.Source, ev.Elected
	p.config = ev.Config
	// A lower position than known is an old message that a position report has overtaken, unless the member says that
	// it lost entries.
	if lost := back || ev.Role == RoleRollback || ev.Role == RoleStartup2; lost || p.applied.Less(ev.Applied) {
		p.applied, p.durable = ev.Applied, ev.Durable
		p.relay = p.relay && !lost
	} else if p.durable.Less(ev.Durable) {
		p.durable = ev.Durable
	}
	if ev.Role == RolePrimary && ev.Term == n.term {
		n.heardPrimary(ev.From, now)
		n.learnCommit(ev.Commit)
	} else if n.primary == ev.From {
		n.primary = None
	}
	n.compareConfig(p.host, ev.Config, out)
}

func (n *Node) compareConfig(host string, c ConfigID, out *effects) {
	if n.cfg.ID().Less(c) {
		out.add(FetchConfig{Host: host})
	}
}

func (n *Node) onHeartbeatFailed(ev HeartbeatFailed, now time.Time) {
	p := n.sender(ev.From, ev.Host)
	if p == nil {
		return
	}
	p.waiting, p.up, p.role, p.failed, p.relay = false, false, RoleDown, ev.Why, false
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
	for _, p := range n.peers {
		p.again, p.next = p.waiting, now
	}
}

func (n *Node) heardPrimary(from int, now time.Time) {
	p := n.peers[from]
	if p == nil || n.self == None {
		return
	}
	p.up, p.role = true, RolePrimary
	n.primary = from
	if n.ballot != nil && !(n.ballot.takeover && n.ballot.dry) {
		n.ballot = nil
	}
	n.expectPrimary(now)
	n.planTakeover(now)
}

// onSourceAlive puts the election off while the source sees a primary, be it that this member sees none itself.
func (n *Node) onSourceAlive(ev SourceAlive, now time.Time) {
	p := n.peers[ev.From]
	if ev.Term != n.term || n.source != ev.From || p == nil {
		return
	}
	if p.applied.Less(ev.Applied) {
		p.applied = ev.Applied
	}
	if ev.Primary != None && n.role != RolePrimary {
		n.expectPrimary(now)
	}
	n.learnCommit(ev.Commit)
}

// learnCommit takes a follower's commit point from its primary, or its source in the same term, as far as it has the entries itself: what it has not
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

func (n *Node) onPosition(ev Position, now time.Time, out *effects) {
	n.meet(ev.Term, now)
	p := n.peers[ev.From]
	if p == nil || ev.Version != n.cfg.Version {
		return // the number may be another member's there
	}
	if p.applied.Less(ev.Applied) {
		p.applied = ev.Applied
	}
	if p.durable.Less(ev.Durable) {
		p.durable = ev.Durable
	}
	if n.role == RolePrimary {
		if ev.Direct {
			p.heard = now
		}
		return
	}
	p.relay = true
	if n.source != None && n.source != ev.From {
		out.add(PassOn{})
	}
}

// reached is the newest position that at least need of the voting data-bearing members have, safe from a crash.
func (n *Node) reached(need int) (op OpTime, ok bool) {
	var at []OpTime
	for _, m := range n.cfg.Members {
		if m.Votes == 0 || m.Arbiter {
			continue
		}
		op := n.durable
		if m.ID != n.self {
			op = n.peers[m.ID].durable
		}
		at = append(at, op)
		for j := len(at) - 1; j > 0 && at[j-1].Less(at[j]); j-- {
			at[j], at[j-1] = at[j-1], at[j]
		}
	}
	if need == 0 || len(at) < need {
		return OpTime{}, false
	}
	return at[need-1], true
}

// advanceCommit moves a primary's commit point over what a majority of the voting data-bearing members has, safe from a crash.
func (n *Node) advanceCommit() {
	if n.role != RolePrimary {
		return
	}
	op, ok := n.reached(n.cfg.WriteMajority())
	if !ok {
		return
	}
	if op.Term == n.term && n.commit.Less(op) {
		n.commit = op
	}
	n.hurry()
}

// hurry brings the next heartbeat forward to members that could show what is committed and do not know it yet: those
// whose report came before the one that made it so.
func (n *Node) hurry() {
	for _, p := range n.peers {
		if p.up && p.told.Less(n.commit) && !p.applied.Less(n.commit) {
			if soon := p.heartbeat.Add(n.cfg.HeartbeatInterval / 10); soon.Before(p.next) {
				p.next = soon
			}
		}
	}
}
