package repl

import "time"

// chooseSource says whom to pull from: whom somebody wished, if that one can be pulled from; the primary; where this
// member sees none, a fresher member. A winner that catches up pulls from the freshest.
func (n *Node) chooseSource(now time.Time) {
	switch {
	case n.role == RoleArbiter || n.self == None || n.role == RolePrimary && n.catchUp.IsZero():
		n.source, n.wanted = None, None
		return
	case n.role == RolePrimary:
		n.source = n.freshest()
		return
	case n.wanted != None && n.serves(n.wanted):
		n.source = n.wanted
		return
	}
	n.wanted = None
	switch {
	case n.primary != None && n.primary != n.self:
		n.source = n.primary
	case n.role == RoleStartup2: // a first copy is taken from a primary
		n.source = None
	case !n.stays(now):
		n.source = n.freshest()
	}
}

// stays says whether the source is kept though this member sees no primary: it may be the link to the primary alone that
// is broken, and then the source is how this member goes on. It is dropped when for a while somebody else was ahead and
// the source was not. Where there is no primary at all a member that may not become one could else stay ahead of the only
// one that may, and would refuse it its vote for ever; so a fresher member serves then even where chaining is forbidden.
func (n *Node) stays(now time.Time) bool {
	if n.source == None || n.cfg.NoChaining || !n.serves(n.source) {
		return false
	}
	if n.freshest() == None || n.applied.Less(n.peers[n.source].applied) {
		n.behind = time.Time{}
		return true
	}
	if n.behind.IsZero() {
		n.behind = now
	}
	return now.Sub(n.behind) < n.cfg.ElectionTimeout
}

// serves says whether a member can be this one's source.
func (n *Node) serves(id int) bool {
	p, m := n.peers[id], n.cfg.Member(id)
	return p != nil && m != nil && !m.Arbiter && p.up && p.source != n.self && (p.role == RoleSecondary || p.role == RolePrimary)
}
