// Package repl decides what a member of a replica set is: terms, votes, roles and the commit point, in the manner of
// MongoDB's protocol version 1 (Raft with pulled logs, dry runs, priorities and hand-over).
//
// Node is a pure state machine: Step takes what happened and the time and returns what must be done. It keeps no
// goroutine, lock, clock or socket; whoever owns a Node calls it from one goroutine, performs the effects in order,
// and calls it again with Tick at NextTick.
//
// Invariant: a member gives at most one vote a term, and says so to its shell (SaveVote) before the answer leaves.
// Invariant: the commit point never goes back, and advances only over an entry of the current term.
package repl

import "time"

// Vote is what must survive a crash: the term and whom the member voted for in it.
type Vote struct {
	Term int64
	For  int // None: nobody yet
}

// None is the number of no member.
const None = -1

// peer is what the node knows of another member.
type peer struct {
	host      string
	role      Role
	applied   OpTime
	durable   OpTime // what would outlive its crash: the commit point counts this
	relay     bool   // it, or one behind it, reports its positions here and not to the primary
	told      OpTime // the commit point that it said it knows
	config    ConfigID
	source    int // whom it said it pulls from, or None
	elected   OpTime
	ping      time.Duration
	heard     time.Time
	up        bool
	next      time.Time // when the next heartbeat is due
	waiting   bool      // a heartbeat is on its way
	again     bool      // and it carries old news: send another one right after it
	failed    string    // why the last heartbeat failed
	heartbeat time.Time // of the last answer
	asked     time.Time // when its own last heartbeat came
}

// Node is the state machine of one member.
type Node struct {
	cfg  *Config
	host string
	self int // None while the configuration does not have this member
	rnd  func() float64

	role     Role
	term     int64
	vote     Vote
	primary  int
	writable bool
	stepping bool // a step-down waits for a secondary to catch up: no writes meanwhile
	applied  OpTime
	durable  OpTime // of applied, what would outlive a crash
	commit   OpTime
	before   OpTime // the commit point when the present configuration came: it must be committed under this one too
	peers    map[int]*peer

	copying     bool // all data is being copied
	rolling     bool // a rollback is under way
	stale       bool // no source reaches back to applied
	maintenance int  // how often it was taken out of service

	source int       // whom to pull from, or None
	wanted int       // whom somebody asked it to pull from, or None
	behind time.Time // since when the source has nothing that this member has not, while another has

	electionAt time.Time // when silence is over; zero: never
	takeoverAt time.Time // zero: none planned
	freeze     time.Time // no candidacy before this
	ballot     *ballot   // the election that runs, or nil
	catchUp    time.Time // when a winner stops to catch up; zero: not catching up
	answersBy  time.Time // how long a winner waits to hear how far the others are
	electionOp OpTime
	election   Election // the last one this node stood in
}

// New is the member at host that has just started. vote is what it said before it ended; applied is its newest oplog
// entry. rnd returns numbers in [0, 1).
func New(cfg *Config, host string, vote Vote, applied OpTime, now time.Time, rnd func() float64) *Node {
	n := &Node{cfg: cfg, host: host, self: None, rnd: rnd, term: max(vote.Term, applied.Term), vote: vote, primary: None,
		applied: applied, durable: applied, source: None, wanted: None, peers: map[int]*peer{}}
	if me := cfg.At(host); me != nil {
		n.self = me.ID
	}
	n.meetPeers(now)
	n.settle()
	n.expectPrimary(now)
	return n
}

// meetPeers makes the list of the others, keeping what is known of those that stay. Who is new has an election timeout to
// be heard from: else a member that joins a primary of one would depose it.
func (n *Node) meetPeers(now time.Time) {
	old := n.peers
	n.peers = map[int]*peer{}
	for _, m := range n.cfg.Members {
		if m.ID == n.self {
			continue
		}
		p := old[m.ID]
		if p == nil || p.host != m.Host {
			p = &peer{host: m.Host, role: RoleUnknown, source: None, next: now, heard: now}
		}
		n.peers[m.ID] = p
	}
}

// me is this member's configuration, nil if it has none.
func (n *Node) me() *MemberConfig { return n.cfg.Member(n.self) }

// Step tells the node what happened and returns what must be done, in order.
func (n *Node) Step(ev Event, now time.Time) []Effect {
	var out effects
	n.take(ev, now, &out)
	n.settle()
	n.advanceCommit()
	n.tick(now, &out)
	n.chooseSource(now)
	return out
}

func (n *Node) take(ev Event, now time.Time, out *effects) {
	switch ev := ev.(type) {
	case Tick:
		// the clock alone: see tick
	case HeartbeatRequest:
		n.onHeartbeatRequest(ev, now, out)
	case HeartbeatReply:
		n.onHeartbeatReply(ev, now, out)
	case HeartbeatFailed:
		n.onHeartbeatFailed(ev, now)
	case VoteRequest:
		n.onVoteRequest(ev, now, out)
	case VoteReply:
		n.onVoteReply(ev, now, out)
	case Position:
		n.onPosition(ev, now, out)
	case Applied:
		n.onApplied(ev.OpTime, ev.Durable)
	case SourceAlive:
		n.onSourceAlive(ev, now)
	case StepUp:
		n.onStepUp(ev, now, out)
	case AttemptStepDown:
		n.stepping = ev.On && n.role == RolePrimary
	case StepDown:
		n.onStepDown(ev, now, out)
	case Freeze:
		n.onFreeze(ev, now)
	case Drained:
		n.onDrained(ev, now)
	case Reconfig:
		n.onReconfig(ev, now, out)
	default:
		n.takeState(ev)
	}
}

// tick does what the time alone demands.
func (n *Node) tick(now time.Time, out *effects) {
	if n.self == None {
		n.ballot, n.primary = nil, None
	}
	n.sendHeartbeats(now, out)
	switch {
	case n.self == None:
	case n.role == RolePrimary:
		n.leadTick(now, out)
	case n.ballot != nil:
		n.ballotTick(now)
	default:
		n.followTick(now, out)
	}
}

// NextTick is when the node wants its next Tick at the latest.
func (n *Node) NextTick() time.Time {
	var next time.Time
	earlier := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, p := range n.peers {
		if !p.waiting {
			earlier(p.next)
		}
	}
	if !n.catchUp.IsZero() {
		earlier(n.catchUp)
		if n.source == None { // what comes from a source comes with an event
			earlier(n.answersBy)
		}
	}
	switch {
	case n.self == None:
	case n.ballot != nil:
		earlier(n.ballot.until)
	case n.role == RolePrimary:
		earlier(n.leaseEnd())
	default:
		earlier(n.later(n.electionAt))
		earlier(n.later(n.takeoverAt))
	}
	return next
}

// later is t, or the end of the freeze if that comes after it.
func (n *Node) later(t time.Time) time.Time {
	if !t.IsZero() && t.Before(n.freeze) {
		return n.freeze
	}
	return t
}

func (n *Node) onApplied(op, durable OpTime) {
	if n.applied.Less(op) {
		n.applied = op
	}
	if n.durable.Less(durable) {
		n.durable = durable
	}
}
