package repl

import "time"

// ballot is an election that this node runs.
type ballot struct {
	dry      bool
	takeover bool // against a living primary of lower priority, whose heartbeats must not end the dry run
	term     int64
	until    time.Time
	granted  []bool
}

// expectPrimary begins anew to wait for a sign of a primary. The jitter keeps two members from standing together.
func (n *Node) expectPrimary(now time.Time) {
	wait := n.cfg.ElectionTimeout
	n.electionAt = now.Add(wait + time.Duration(n.rnd()*0.15*float64(wait)))
}

// meet takes over a higher term: whatever this node was in the old one, it is a follower now.
func (n *Node) meet(term int64, now time.Time) {
	if term <= n.term {
		return
	}
	n.term = term
	n.ballot = nil
	n.primary = None
	n.takeoverAt = time.Time{}
	if n.role == RolePrimary {
		n.follow(now)
	}
}

// follow makes a primary a secondary.
func (n *Node) follow(now time.Time) {
	n.role, n.writable, n.stepping = RoleSecondary, false, false
	n.catchUp = time.Time{}
	n.primary = None
	n.expectPrimary(now)
}

// standable says whether the node may stand for election.
func (n *Node) standable(now time.Time) bool {
	me := n.cfg.Members[n.self]
	return me.Electable() && me.Votes > 0 && (n.role == RoleSecondary || n.role == RoleStartup2) && !now.Before(n.freeze)
}

func (n *Node) followTick(now time.Time, out *effects) {
	if n.primary != None && n.primary != n.self && !n.peers[n.primary].up {
		n.primary = None
	}
	switch {
	case !n.electionAt.IsZero() && !now.Before(n.electionAt):
		n.primary = None
		n.expectPrimary(now)
		if n.standable(now) && n.role == RoleSecondary {
			n.stand(true, false, now, out)
		} else if !n.freeze.IsZero() && now.Before(n.freeze) {
			n.electionAt = n.freeze
		}
	case !n.takeoverAt.IsZero() && !now.Before(n.takeoverAt):
		n.takeoverAt = time.Time{}
		if n.standable(now) && n.outranks(n.primary) && n.caughtUp() {
			n.stand(true, true, now, out)
		}
	}
}

// stand opens a ballot: a dry run for the next term, or the vote itself.
func (n *Node) stand(dry, takeover bool, now time.Time, out *effects) {
	term := n.term + 1
	if !dry {
		n.term = term
		n.primary = None
		n.vote = Vote{Term: term, For: n.self}
		out.add(SaveVote{n.vote})
	}
	n.ballot = &ballot{dry: dry, takeover: takeover, term: term, until: now.Add(n.cfg.ElectionTimeout), granted: make([]bool, len(n.peers))}
	n.ballot.granted[n.self] = true
	req := VoteRequest{From: n.self, Term: term, Applied: n.applied, DryRun: dry, Version: n.cfg.Version}
	for i, m := range n.cfg.Members {
		if i != n.self && m.Votes > 0 {
			out.add(SendVote{To: i, Request: req})
		}
	}
	n.count(now, out)
}

// count ends the ballot if a majority has granted.
func (n *Node) count(now time.Time, out *effects) {
	votes := 0
	for i, yes := range n.ballot.granted {
		if yes {
			votes += n.cfg.Members[i].Votes
		}
	}
	if votes < n.cfg.Majority() {
		return
	}
	if n.ballot.dry {
		n.stand(false, n.ballot.takeover, now, out)
		return
	}
	n.win(now, out)
}

func (n *Node) win(now time.Time, out *effects) {
	n.ballot = nil
	n.role, n.primary, n.writable = RolePrimary, n.self, false
	n.takeoverAt = time.Time{}
	n.catchUp = now.Add(n.cfg.CatchUpTimeout)
	for i := range n.peers {
		n.peers[i].heard = now // the lease begins with the election
	}
	n.announce(now)
	if n.freshest() == None {
		n.drain(out)
	}
}

func (n *Node) drain(out *effects) {
	n.catchUp = time.Time{}
	out.add(Drain{Term: n.term})
}

func (n *Node) ballotTick(now time.Time) {
	if !now.Before(n.ballot.until) {
		n.ballot = nil
		n.expectPrimary(now)
	}
}

func (n *Node) onVoteRequest(ev VoteRequest, now time.Time, out *effects) {
	why := n.refuse(ev)
	if !ev.DryRun {
		n.meet(ev.Term, now)
		if why == "" {
			n.vote = Vote{Term: ev.Term, For: ev.From}
			out.add(SaveVote{n.vote})
			n.expectPrimary(now)
		}
	}
	out.add(VoteAnswer{Reason: why,
		Reply: VoteReply{From: n.self, Term: n.term, For: ev.Term, DryRun: ev.DryRun, Granted: why == ""}})
}

// refuse says why the candidate does not get this node's vote, or "".
func (n *Node) refuse(ev VoteRequest) string {
	switch {
	case ev.Term < n.term:
		return "candidate's term is lower than mine"
	case ev.Version != n.cfg.Version:
		return "candidate's config version differs from mine"
	case ev.Applied.Less(n.applied):
		return "candidate's data is staler than mine"
	case !ev.DryRun && n.vote.Term == ev.Term && n.vote.For != None && n.vote.For != ev.From:
		return "I already voted for another candidate this term"
	case n.role == RoleArbiter && n.prefers(ev.From):
		return "I can see a healthy primary of equal or greater priority"
	}
	return ""
}

// prefers says whether an arbiter sees a primary that the candidate does not outrank: its vote shall not turn a broken
// link between two data-bearing members into an endless exchange of primaries.
func (n *Node) prefers(candidate int) bool {
	p := n.primary
	return p != None && p != candidate && n.peers[p].up && n.cfg.Members[p].Priority >= n.cfg.Members[candidate].Priority
}

func (n *Node) onVoteReply(ev VoteReply, now time.Time, out *effects) {
	n.meet(ev.Term, now)
	if n.ballot == nil || ev.For != n.ballot.term || ev.DryRun != n.ballot.dry || !ev.Granted {
		return
	}
	n.ballot.granted[ev.From] = true
	n.count(now, out)
}

func (n *Node) onStepUp(ev StepUp, now time.Time, out *effects) {
	if n.standable(now) && n.ballot == nil {
		n.stand(!ev.SkipDryRun, false, now, out)
	}
}

func (n *Node) onStepDown(ev StepDown, now time.Time, out *effects) {
	if n.role != RolePrimary {
		return
	}
	n.follow(now)
	n.freeze = ev.Until
	if ev.HandTo != None {
		out.add(SendStepUp{To: ev.HandTo})
	}
}

func (n *Node) onDrained(ev Drained) {
	if n.role != RolePrimary || ev.OpTime.Term != n.term {
		return
	}
	n.onApplied(ev.OpTime, ev.Durable)
	n.electionOp = ev.OpTime
	n.writable = true
}

// leadTick ends a primary's rule when a majority has been silent too long, and its catching up when it is done.
func (n *Node) leadTick(now time.Time, out *effects) {
	if end := n.leaseEnd(); !end.IsZero() && !now.Before(end) {
		n.follow(now)
		return
	}
	if !n.catchUp.IsZero() && (!now.Before(n.catchUp) || n.freshest() == None) {
		n.drain(out)
	}
}

// leaseEnd is when the primary loses its majority unless it hears from somebody; zero if it needs nobody.
func (n *Node) leaseEnd() time.Time {
	need := n.cfg.Majority() - n.cfg.Members[n.self].Votes
	if need <= 0 {
		return time.Time{}
	}
	var heard []time.Time
	for i, m := range n.cfg.Members {
		if i != n.self && m.Votes > 0 {
			heard = append(heard, n.peers[i].heard)
		}
	}
	// The need-th latest sign of life is the one that must not grow too old.
	for i := range heard {
		for j := i; j > 0 && heard[j].After(heard[j-1]); j-- {
			heard[j], heard[j-1] = heard[j-1], heard[j]
		}
	}
	return heard[need-1].Add(n.cfg.ElectionTimeout)
}

// freshest is a live member that has more of the oplog than this one, or None.
func (n *Node) freshest() int {
	best, at := None, n.applied
	for i := range n.peers {
		if i != n.self && n.peers[i].up && at.Less(n.peers[i].applied) && !n.cfg.Members[i].Arbiter {
			best, at = i, n.peers[i].applied
		}
	}
	return best
}

// outranks says whether this node's priority is above that of member p.
func (n *Node) outranks(p int) bool {
	return p != None && p != n.self && n.cfg.Members[n.self].Priority > n.cfg.Members[p].Priority
}

// caughtUp says whether this node is close enough to the primary to take its place.
func (n *Node) caughtUp() bool {
	if n.primary == None {
		return false
	}
	const window = 2 // seconds, as the server's priorityTakeoverFreshnessWindowSeconds
	return n.applied.TS.T+window >= n.peers[n.primary].applied.TS.T
}

// planTakeover schedules an election against a primary of lower priority.
func (n *Node) planTakeover(now time.Time) {
	if !n.takeoverAt.IsZero() || n.role != RoleSecondary || !n.outranks(n.primary) || !n.cfg.Members[n.self].Electable() {
		return
	}
	rank := 1
	for _, m := range n.cfg.Members {
		if m.Priority > n.cfg.Members[n.self].Priority {
			rank++
		}
	}
	wait := n.cfg.ElectionTimeout * time.Duration(rank)
	n.takeoverAt = now.Add(wait + time.Duration(n.rnd()*0.15*float64(n.cfg.ElectionTimeout)))
}
