package repl

import (
	"fmt"
	"slices"
	"time"
)

// ballot is an election that this node runs.
type ballot struct {
	dry      bool
	takeover bool // against a living primary of lower priority, whose heartbeats must not end the dry run
	term     int64
	until    time.Time
	granted  map[int]bool
}

// The reasons to stand for election, in the server's words.
const (
	ElectionTimedOut = "electionTimeout"
	PriorityTakeover = "priorityTakeover"
	StepUpRequest    = "stepUpRequest"
	StepUpHandOver   = "stepUpRequestSkipDryRun"
)

// Election is one in which a node stood.
type Election struct {
	Why     string
	Term    int64 // that it stood for
	At      time.Time
	Applied OpTime // its newest entry then
	Primary int    // whom it took for primary, or None
	Won     time.Time
}

// expectPrimary begins anew to wait for a sign of a primary. The jitter keeps two members from standing together.
func (n *Node) expectPrimary(now time.Time) {
	n.electionAt = now.Add(n.cfg.ElectionTimeout + n.jitter())
}

func (n *Node) jitter() time.Duration {
	return time.Duration(n.rnd() * 0.15 * float64(n.cfg.ElectionTimeout))
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
	n.settle()
	n.expectPrimary(now)
}

// standable says whether the node may stand for election.
func (n *Node) standable(now time.Time) bool {
	me := n.me()
	return me != nil && me.Electable() && me.Votes > 0 && (n.role == RoleSecondary || n.role == RoleStartup2 && !n.copying) && !now.Before(n.freeze)
}

func (n *Node) followTick(now time.Time, out *effects) {
	if p := n.peers[n.primary]; n.primary != n.self && (p == nil || !p.up) {
		n.primary = None
	}
	switch {
	case !n.electionAt.IsZero() && !now.Before(n.electionAt):
		n.primary = None
		n.expectPrimary(now)
		if n.standable(now) && n.role == RoleSecondary {
			n.stand(ElectionTimedOut, true, now, out)
		} else if !n.freeze.IsZero() && now.Before(n.freeze) {
			n.electionAt = n.freeze.Add(n.jitter())
		}
	case !n.takeoverAt.IsZero() && !now.Before(n.takeoverAt):
		n.takeoverAt = time.Time{}
		if n.standable(now) && n.outranks(n.primary) && n.caughtUp() {
			n.stand(PriorityTakeover, true, now, out)
		}
	}
}

// stand opens a ballot: a dry run for the next term, or the vote itself.
func (n *Node) stand(why string, dry bool, now time.Time, out *effects) {
	n.election = Election{Why: why, Term: n.term + 1, At: now, Applied: n.applied, Primary: n.primary}
	n.poll(dry, now, out)
}

func (n *Node) poll(dry bool, now time.Time, out *effects) {
	term := n.term + 1
	if !dry {
		n.term = term
		n.primary = None
		n.vote = Vote{Term: term, For: n.self}
		out.add(SaveVote{n.vote})
	}
	n.ballot = &ballot{dry: dry, takeover: n.election.Why == PriorityTakeover, term: term, until: now.Add(n.cfg.ElectionTimeout),
		granted: map[int]bool{n.self: true}}
	req := VoteRequest{From: n.self, Term: term, Applied: n.applied, DryRun: dry, Config: n.cfg.ID()}
	for _, m := range n.cfg.Members {
		if m.ID != n.self && m.Votes > 0 {
			out.add(SendVote{To: m.ID, Host: m.Host, Request: req})
		}
	}
	n.count(now, out)
}

// count ends the ballot if a majority has granted.
func (n *Node) count(now time.Time, out *effects) {
	votes := 0
	for _, m := range n.cfg.Members {
		if n.ballot.granted[m.ID] {
			votes += m.Votes
		}
	}
	if votes < n.cfg.Majority() {
		return
	}
	if n.ballot.dry {
		n.poll(false, now, out)
		return
	}
	n.win(now, out)
}

func (n *Node) win(now time.Time, out *effects) {
	n.ballot = nil
	n.role, n.primary, n.writable = RolePrimary, n.self, false
	n.takeoverAt = time.Time{}
	n.election.Won = now
	n.catchUp = now.Add(n.cfg.CatchUpTimeout)
	for _, p := range n.peers {
		p.heard = now // the lease begins with the election
	}
	n.announce(now)
	n.answersBy = now.Add(min(2*n.cfg.HeartbeatInterval, n.cfg.CatchUpTimeout))
	if n.caught(now) {
		n.drain(out)
	}
}

// caught says that a winner has all there is to get: those who are up have told how far they are since it won, or have had
// their time to, and nobody is further.
func (n *Node) caught(now time.Time) bool {
	if n.freshest() != None {
		return false
	}
	if !now.Before(n.answersBy) {
		return true
	}
	for _, m := range n.cfg.Members {
		if p := n.peers[m.ID]; p != nil && p.up && !m.Arbiter && p.heartbeat.Before(n.election.Won) {
			return false
		}
	}
	return true
}

func (n *Node) drain(out *effects) {
	n.catchUp, n.answersBy = time.Time{}, time.Time{}
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

// AlreadyVoted is the reason of a refusal for no other reason than an earlier vote.
const AlreadyVoted = "I already voted for another candidate this term"

// refuse says why the candidate does not get this node's vote, or "".
func (n *Node) refuse(ev VoteRequest) string {
	switch {
	case ev.Term < n.term:
		return "candidate's term is lower than mine"
	case n.self == None:
		return "I am not a member of the set"
	case ev.Config.Less(n.cfg.ID()):
		return fmt.Sprintf("candidate's config with %v is older than mine with %v", ev.Config, n.cfg.ID())
	case ev.Applied.Less(n.applied):
		return "candidate's data is staler than mine"
	case !ev.DryRun && n.vote.Term == ev.Term && n.vote.For != None && n.vote.For != ev.From:
		return AlreadyVoted
	case n.role == RoleArbiter && n.prefers(ev.From):
		return "I can see a healthy primary of equal or greater priority"
	}
	return ""
}

// prefers says whether an arbiter sees a primary that the candidate does not outrank: its vote shall not turn a broken
// link between two data-bearing members into an endless exchange of primaries.
func (n *Node) prefers(candidate int) bool {
	p, c, now := n.peers[n.primary], n.cfg.Member(candidate), n.cfg.Member(n.primary)
	return p != nil && n.primary != candidate && p.up && c != nil && now != nil && now.Priority >= c.Priority
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
	if !n.standable(now) || n.ballot != nil {
		return
	}
	if ev.SkipDryRun {
		n.stand(StepUpHandOver, false, now, out)
	} else {
		n.stand(StepUpRequest, true, now, out)
	}
}

func (n *Node) onStepDown(ev StepDown, now time.Time, out *effects) {
	if n.role != RolePrimary {
		return
	}
	n.follow(now)
	n.freeze = ev.Until
	if m := n.cfg.Member(ev.HandTo); m != nil {
		out.add(SendStepUp{To: m.ID, Host: m.Host})
	}
}

func (n *Node) onFreeze(ev Freeze, now time.Time) {
	switch {
	case ev.Until.IsZero():
		if n.freeze = ev.Until; n.electionAt.After(now.Add(n.cfg.ElectionTimeout)) {
			n.expectPrimary(now) // it was put off to the end of the freeze
		}
	case n.freeze.Before(ev.Until):
		n.freeze = ev.Until
	}
}

func (n *Node) onDrained(ev Drained, now time.Time) {
	if n.role != RolePrimary || ev.OpTime.Term != n.term {
		return
	}
	n.onApplied(ev.OpTime, ev.Durable)
	n.electionOp = ev.OpTime
	n.writable = true
	n.adopt(now)
}

// elected is the first entry of this node's rule, zero if it does not rule.
func (n *Node) elected() OpTime {
	if n.role != RolePrimary || !n.writable {
		return OpTime{}
	}
	return n.electionOp
}

// leadTick ends a primary's rule when a majority has been silent too long, and its catching up when it is done.
func (n *Node) leadTick(now time.Time, out *effects) {
	if end := n.leaseEnd(); !end.IsZero() && !now.Before(end) {
		n.follow(now)
		return
	}
	if !n.catchUp.IsZero() && (!now.Before(n.catchUp) || n.caught(now)) {
		n.drain(out)
	}
}

// leaseEnd is when the primary loses its majority unless it hears from somebody; zero if it needs nobody.
func (n *Node) leaseEnd() time.Time {
	need := n.cfg.Majority()
	var heard []time.Time
	for _, m := range n.cfg.Members {
		switch {
		case m.Votes == 0:
		case m.ID == n.self:
			need -= m.Votes
		default:
			heard = append(heard, n.peers[m.ID].heard)
		}
	}
	if need <= 0 {
		return time.Time{}
	}
	// The need-th latest sign of life is the one that must not grow too old.
	slices.SortFunc(heard, func(a, b time.Time) int { return b.Compare(a) })
	return heard[need-1].Add(n.cfg.ElectionTimeout)
}

// freshest is a live member that has more of the oplog than this one, or None.
func (n *Node) freshest() int {
	best, at := None, n.applied
	for _, m := range n.cfg.Members {
		if p := n.peers[m.ID]; p != nil && p.up && at.Less(p.applied) && !m.Arbiter {
			best, at = m.ID, p.applied
		}
	}
	return best
}

// outranks says whether this node's priority is above that of member p.
func (n *Node) outranks(p int) bool {
	me, m := n.me(), n.cfg.Member(p)
	return me != nil && m != nil && me.Priority > m.Priority
}

// caughtUp says whether this node is close enough to the primary to take its place.
func (n *Node) caughtUp() bool {
	p := n.peers[n.primary]
	const window = 2 // seconds, as the server's priorityTakeoverFreshnessWindowSeconds
	return p != nil && n.applied.TS.T+window >= p.applied.TS.T
}

// planTakeover schedules an election against a primary of lower priority: the second highest priority waits for twice
// the election timeout, and so on.
func (n *Node) planTakeover(now time.Time) {
	if !n.takeoverAt.IsZero() || n.role != RoleSecondary || !n.outranks(n.primary) || !n.me().Electable() {
		return
	}
	rank := 1
	for _, m := range n.cfg.Members {
		if m.Priority > n.me().Priority {
			rank++
		}
	}
	wait := n.cfg.ElectionTimeout * time.Duration(rank)
	n.takeoverAt = now.Add(wait + n.jitter())
}
