package repl

import "time"

// onReconfig takes over a newer configuration. What this member is in it may have changed, and who else there is.
func (n *Node) onReconfig(ev Reconfig, now time.Time, out *effects) {
	if !n.cfg.ID().Less(ev.Config.ID()) || ev.Lead != 0 && (n.role != RolePrimary || !n.writable || n.term != ev.Lead) {
		return
	}
	was, gone := n.self, n.peers
	n.cfg = ev.Config
	n.self = None
	if me := n.cfg.At(n.host); me != nil {
		n.self = me.ID
	}
	if p := gone[n.primary]; n.primary == was && was != None {
		n.primary = n.self
	} else if p != nil && (n.cfg.Member(n.primary) == nil || n.cfg.Member(n.primary).Host != p.host) {
		n.primary = None
	}
	n.meetPeers(now)
	n.before = n.commit
	n.takeoverAt, n.wanted = time.Time{}, None
	if n.ballot != nil {
		n.ballot = nil
		n.expectPrimary(now)
	}
	if n.role == RolePrimary {
		if me := n.me(); me == nil || !me.Electable() {
			n.follow(now)
		}
	}
	if ev.Lead != 0 { // a majority has just said that it takes part: the lease begins anew, as with an election
		for _, p := range n.peers {
			p.heard = now
		}
	}
	if was == None {
		n.expectPrimary(now)
	}
	n.announce(now)
	n.tellRemoved(gone, out)
}

// tellRemoved has a primary send one more heartbeat to those who are members no more: they learn it from there.
func (n *Node) tellRemoved(before map[int]*peer, out *effects) {
	if n.role != RolePrimary {
		return
	}
	for id := range 256 {
		if p := before[id]; p != nil && n.cfg.At(p.host) == nil {
			out.add(SendHeartbeat{To: id, Host: p.host, Request: n.heartbeat()})
		}
	}
}

// adopt makes a new primary's configuration one of its own term, so that it is newer than any that an older primary made.
func (n *Node) adopt(now time.Time) {
	if n.cfg.Term == n.term {
		return
	}
	mine := *n.cfg
	mine.Term = n.term
	n.cfg = &mine
	n.before = n.commit
	n.announce(now)
}

// ConfigHolders counts the votes of the members that have the present configuration.
func (n *Node) ConfigHolders() int {
	votes := 0
	for _, m := range n.cfg.Members {
		if m.ID == n.self || n.peers[m.ID] != nil && n.peers[m.ID].config == n.cfg.ID() {
			votes += m.Votes
		}
	}
	return votes
}

// configCommitted says that a majority has the present configuration: no primary can come that does not know it.
func (n *Node) configCommitted() bool { return n.ConfigHolders() >= n.cfg.Majority() }

// oplogCommitted says that what was committed under the configuration before is committed under the present one too, and
// that a primary has committed something of its own.
func (n *Node) oplogCommitted() bool {
	op, ok := n.reached(n.cfg.WriteMajority())
	return ok && !op.Less(n.before) && (n.role != RolePrimary || n.commit.Term == n.term)
}
