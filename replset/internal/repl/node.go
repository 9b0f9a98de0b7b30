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

// Role is what a member is, with the server's numbers of states.
type Role int32

// The roles. A winner that still catches up is RolePrimary with View.Writable false.
const (
	RoleStartup2  Role = 5 // has no data yet
	RolePrimary   Role = 1
	RoleSecondary Role = 2
	RoleRecover   Role = 3
	RoleArbiter   Role = 7
	RoleDown      Role = 8
	RoleRollback  Role = 9
	RoleUnknown   Role = 6
)

// String is the server's name of the state.
func (r Role) String() string {
	switch r {
	case RolePrimary:
		return "PRIMARY"
	case RoleSecondary:
		return "SECONDARY"
	case RoleRecover:
		return "RECOVERING"
	case RoleStartup2:
		return "STARTUP2"
	case RoleArbiter:
		return "ARBITER"
	case RoleDown:
		return "(not reachable/healthy)"
	case RoleRollback:
		return "ROLLBACK"
	}
	return "UNKNOWN"
}

// Vote is what must survive a crash: the term and whom the member voted for in it.
type Vote struct {
	Term int64
	For  int // -1: nobody yet
}

// None is the number of no member.
const None = -1

// peer is what the node knows of another member.
type peer struct {
	role      Role
	applied   OpTime
	durable   OpTime // what would outlive its crash: the commit point counts this
	told      OpTime // the commit point that it said it knows
	heard     time.Time
	up        bool
	next      time.Time // when the next heartbeat is due
	waiting   bool      // a heartbeat is on its way
	again     bool      // and it carries old news: send another one right after it
	failed    string    // why the last heartbeat failed
	heartbeat time.Time // of the last answer
}

// Node is the state machine of one member.
type Node struct {
	cfg  *Config
	self int
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
	peers    []peer // by member number; self's is unused

	electionAt time.Time // when silence is over; zero: never
	takeoverAt time.Time // zero: none planned
	freeze     time.Time // no candidacy before this
	ballot     *ballot   // the election that runs, or nil
	catchUp    time.Time // when a winner stops to catch up; zero: not catching up
	electionOp OpTime
}

// New is a member that has just started. vote is what it said before it ended; applied is its newest oplog entry.
// rnd returns numbers in [0, 1).
func New(cfg *Config, self int, vote Vote, applied OpTime, now time.Time, rnd func() float64) *Node {
	n := &Node{cfg: cfg, self: self, rnd: rnd, term: max(vote.Term, applied.Term), vote: vote, primary: None, applied: applied, durable: applied,
		peers: make([]peer, len(cfg.Members))}
	n.role = RoleSecondary
	if cfg.Members[self].Arbiter {
		n.role = RoleArbiter
	} else if applied.IsZero() {
		n.role = RoleStartup2
	}
	for i := range n.peers {
		n.peers[i] = peer{role: RoleUnknown, next: now}
	}
	n.expectPrimary(now)
	return n
}

// Step tells the node what happened and returns what must be done, in order.
func (n *Node) Step(ev Event, now time.Time) []Effect {
	var out effects
	switch ev := ev.(type) {
	case Tick:
		// the clock alone, below
	case HeartbeatRequest:
		n.onHeartbeatRequest(ev, now, &out)
	case HeartbeatReply:
		n.onHeartbeatReply(ev, now, &out)
	case HeartbeatFailed:
		n.onHeartbeatFailed(ev, now)
	case VoteRequest:
		n.onVoteRequest(ev, now, &out)
	case VoteReply:
		n.onVoteReply(ev, now, &out)
	case Position:
		n.onPosition(ev, now)
	case Applied:
		n.onApplied(ev.OpTime, ev.Durable)
	case Rolled:
		n.onRolled(ev)
	case PrimaryAlive:
		n.onPrimaryAlive(ev, now)
	case StepUp:
		n.onStepUp(ev, now, &out)
	case AttemptStepDown:
		n.stepping = ev.On && n.role == RolePrimary
	case StepDown:
		n.onStepDown(ev, now, &out)
	case Freeze:
		n.freeze = ev.Until
	case Recover:
		n.onRecover(ev)
	case Drained:
		n.onDrained(ev)
	case Reconfig:
		n.onReconfig(ev, now)
	}
	n.advanceCommit()
	n.tick(now, &out)
	return out
}

// tick does what the time alone demands.
func (n *Node) tick(now time.Time, out *effects) {
	n.sendHeartbeats(now, out)
	switch {
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
	for i := range n.peers {
		if i != n.self && !n.peers[i].waiting {
			earlier(n.peers[i].next)
		}
	}
	earlier(n.catchUp)
	if n.ballot != nil {
		earlier(n.ballot.until)
	} else if n.role == RolePrimary {
		earlier(n.leaseEnd())
	} else {
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
	if n.role == RoleStartup2 && !n.applied.IsZero() {
		n.role = RoleSecondary
	}
}

func (n *Node) onRolled(ev Rolled) {
	n.applied = ev.To
	if n.applied.Less(n.durable) {
		n.durable = n.applied
	}
	n.onRecover(Recover{})
}

func (n *Node) onRecover(ev Recover) {
	if n.role == RolePrimary || n.role == RoleArbiter {
		return
	}
	switch {
	case ev.Role != 0:
		n.role = ev.Role
	case n.applied.IsZero():
		n.role = RoleStartup2
	default:
		n.role = RoleSecondary
	}
}

func (n *Node) onReconfig(ev Reconfig, now time.Time) {
	if ev.Config.Version <= n.cfg.Version || len(ev.Config.Members) != len(n.cfg.Members) {
		return
	}
	n.cfg = ev.Config
	n.takeoverAt = time.Time{}
	n.announce(now)
}
