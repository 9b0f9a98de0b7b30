package repl

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// sim is a set of nodes on a network that loses, delays and reorders, in time of its own.
type sim struct {
	t       *testing.T
	rnd     *rand.Rand
	now     time.Time
	cfgs    []*Config // what each member has on its disk
	nodes   []*Node   // nil: crashed
	logs    [][]OpTime
	votes   []Vote
	commit  []OpTime // of each node's present life
	cut     map[[2]int]bool
	mail    []letter
	won     map[int64]int // term -> who was primary in it
	safe    []OpTime      // every entry that some primary called committed
	audited map[int]int64 // member -> the term at whose beginning its log was compared with safe
	ts      uint32
	trace   []string
	quiet   bool // primaries write nothing
	changes bool // members come and go
	changed int  // how often they did
	teller  *teller
}

// letter is an event on its way to a node.
type letter struct {
	at   time.Time
	to   int
	ev   Event
	lost Event // what the sender hears if the letter is lost; nil: nothing
	from int
}

func newSim(t *testing.T, seed uint64, members []MemberConfig) *sim {
	s := &sim{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1000, 0), cut: map[[2]int]bool{}, won: map[int64]int{}, audited: map[int]int64{}}
	cfg := &Config{SetName: "sim", Version: 1, Members: numbered(members), ElectionTimeout: time.Second,
		HeartbeatInterval: 200 * time.Millisecond, CatchUpTimeout: time.Second}
	n := len(members)
	s.cfgs = make([]*Config, n)
	for i := range n {
		s.cfgs[i] = cfg
	}
	s.nodes, s.logs, s.votes, s.commit = make([]*Node, n), make([][]OpTime, n), make([]Vote, n), make([]OpTime, n)
	for i := range n {
		s.votes[i] = Vote{For: None}
		s.start(i)
	}
	s.step(0, StepUp{SkipDryRun: true})
	return s
}

// numbered gives each member its place as its number, and an address that tells it.
func numbered(members []MemberConfig) []MemberConfig {
	for i := range members {
		members[i].ID, members[i].Host = i, fmt.Sprint("m", i)
	}
	return members
}

func ordinary(n int) []MemberConfig {
	out := make([]MemberConfig, n)
	for i := range out {
		out[i] = MemberConfig{Host: fmt.Sprint("m", i), Priority: 1, Votes: 1}
	}
	return numbered(out)
}

func (s *sim) last(i int) OpTime {
	if log := s.logs[i]; len(log) > 0 {
		return log[len(log)-1]
	}
	return OpTime{}
}

func (s *sim) start(i int) {
	s.commit[i] = OpTime{}
	s.nodes[i] = New(s.cfgs[i], fmt.Sprint("m", i), s.votes[i], s.last(i), s.now, s.rnd.Float64)
}

func (s *sim) step(i int, ev Event) {
	n := s.nodes[i]
	if n == nil {
		return
	}
	effects := n.Step(ev, s.now)
	s.cfgs[i] = n.Topology().Config
	s.teller.tell(i, n, ev, effects)
	for _, e := range effects {
		s.perform(i, e, ev)
	}
	s.check(i)
}

func (s *sim) perform(i int, e Effect, cause Event) {
	switch e := e.(type) {
	case SaveVote:
		s.votes[i] = e.Vote
	case SendHeartbeat:
		s.post(i, e.To, e.Request, HeartbeatFailed{From: e.To, Host: e.Host})
	case SendVote:
		s.post(i, e.To, e.Request, nil)
	case SendStepUp:
		s.post(i, e.To, StepUp{SkipDryRun: true}, nil)
	case HeartbeatAnswer:
		s.post(i, member(cause.(HeartbeatRequest).Host), e.Reply, nil)
	case FetchConfig:
		if from := s.nodes[member(e.Host)]; from != nil {
			s.post(member(e.Host), i, Reconfig{Config: from.Topology().Config}, nil)
		}
	case VoteAnswer:
		s.post(i, cause.(VoteRequest).From, e.Reply, nil)
	case Drain:
		s.write(i, e.Term)
		s.step(i, Drained{OpTime: s.last(i), Durable: s.last(i)})
	}
}

// member is the number of the member at a host: in the simulation it never has another.
func member(host string) (i int) {
	_, _ = fmt.Sscanf(host, "m%d", &i)
	return i
}

func (s *sim) post(from, to int, ev, lost Event) {
	s.mail = append(s.mail, letter{at: s.now.Add(time.Duration(s.rnd.IntN(20)) * time.Millisecond), from: from, to: to, ev: ev, lost: lost})
}

func (s *sim) write(i int, term int64) {
	s.ts++
	s.logs[i] = append(s.logs[i], OpTime{TS: bson.Timestamp{T: 1000 + s.ts/10, I: s.ts}, Term: term})
}

// deliver brings what is due, in a random order.
func (s *sim) deliver() {
	s.rnd.Shuffle(len(s.mail), func(a, b int) { s.mail[a], s.mail[b] = s.mail[b], s.mail[a] })
	due := s.mail
	s.mail = nil
	for _, l := range due {
		switch {
		case l.at.After(s.now):
			s.mail = append(s.mail, l)
		case s.nodes[l.to] == nil || s.cut[[2]int{l.from, l.to}]:
			if l.lost != nil {
				s.step(l.from, l.lost)
			} else if r, ok := l.ev.(HeartbeatReply); ok {
				s.step(l.to, HeartbeatFailed{From: r.From, Host: r.Host})
			}
		default:
			s.step(l.to, l.ev)
		}
	}
}

// pull lets node i take its source's log, going back to the common point first.
func (s *sim) pull(i int) {
	n := s.nodes[i]
	if n == nil {
		return
	}
	from := n.Topology().SyncFrom
	if from == None || s.nodes[from] == nil || s.cut[[2]int{from, i}] || s.cut[[2]int{i, from}] {
		return
	}
	theirs := s.logs[from]
	keep := min(len(s.logs[i]), len(theirs)) // logs begin alike: the common part has the same places
	for keep > 0 && s.logs[i][keep-1] != theirs[keep-1] {
		keep--
	}
	if keep < len(s.logs[i]) {
		if n.Topology().Role == RolePrimary || len(theirs) > 0 && theirs[len(theirs)-1].Less(s.last(i)) {
			return
		}
		s.logs[i] = append([]OpTime(nil), s.logs[i][:keep]...)
		if s.last(i).Less(n.Progress().Commit) {
			s.fail("member %d rolls back to %v behind its commit point %v", i, s.last(i), n.Progress().Commit)
		}
		s.step(i, Rolled{To: s.last(i), Durable: s.last(i)})
	}
	next := keep
	for k := 0; next < len(theirs) && k < 3; k++ {
		s.logs[i] = append(s.logs[i], theirs[next])
		next++
	}
	s.step(i, Applied{OpTime: s.last(i), Durable: s.last(i)})
	s.post(i, from, Position{From: i, Direct: true, Term: n.Topology().Term, Version: n.Topology().Config.Version, Applied: s.last(i), Durable: s.last(i)}, nil)
}

func (s *sim) fail(format string, args ...any) {
	s.t.Helper()
	for _, line := range s.trace {
		s.t.Log(line)
	}
	s.t.Fatalf("at %v: "+format, append([]any{s.now.Sub(time.Unix(1000, 0))}, args...)...)
}

// check holds the invariants after a step of node i.
func (s *sim) check(i int) {
	s.t.Helper()
	n := s.nodes[i]
	top, p := n.Topology(), n.Progress()
	if top.Role == RolePrimary {
		if who, ok := s.won[top.Term]; ok && who != i {
			s.fail("members %d and %d are both primary in term %d", who, i, top.Term)
		}
		s.won[top.Term] = i
	}
	if p.Commit.Less(s.commit[i]) {
		s.fail("the commit point of member %d went back from %v to %v", i, s.commit[i], p.Commit)
	}
	if s.commit[i].Less(p.Commit) {
		s.commit[i] = p.Commit
		if top.Role == RolePrimary {
			s.safe = append(s.safe, p.Commit)
		}
		s.holds(i, p.Commit, "its own commit point")
	}
	if top.Writable && s.audited[i] != top.Term {
		s.audited[i] = top.Term
		for _, op := range s.safe {
			s.holds(i, op, "a committed entry, as primary")
		}
	}
}

func (s *sim) holds(i int, op OpTime, what string) {
	s.t.Helper()
	if me := s.cfgs[i].Member(i); me != nil && me.Arbiter {
		return
	}
	for k := len(s.logs[i]) - 1; k >= 0; k-- {
		if s.logs[i][k] == op {
			return
		}
	}
	s.fail("member %d does not have %v: %s", i, op, what)
}

// advance moves time by a step and does what it brings.
func (s *sim) advance() {
	s.now = s.now.Add(10 * time.Millisecond)
	for i, n := range s.nodes {
		if n == nil {
			continue
		}
		if next := n.NextTick(); !next.IsZero() && !next.After(s.now) {
			s.step(i, Tick{})
		}
		if top := n.Topology(); top.Writable && !s.quiet && s.rnd.IntN(4) == 0 {
			s.write(i, top.Term)
			s.step(i, Applied{OpTime: s.last(i), Durable: s.last(i)})
		}
		if s.rnd.IntN(3) == 0 {
			s.pull(i)
		}
	}
	s.deliver()
}

// trouble crashes, restarts, cuts and mends at random.
func (s *sim) trouble() {
	n := len(s.nodes)
	i, j := s.rnd.IntN(n), s.rnd.IntN(n)
	say := func(format string, args ...any) {
		s.trace = append(s.trace, fmt.Sprintf("%v: %s", s.now.Sub(time.Unix(1000, 0)), fmt.Sprintf(format, args...)))
	}
	switch s.rnd.IntN(s.kinds()) {
	case 8, 9:
		s.reconfigure(say)
	case 0:
		say("crash %d", i)
		s.nodes[i] = nil
	case 1, 2:
		if s.nodes[i] == nil {
			say("restart %d", i)
			s.start(i)
		}
	case 3:
		say("cut %d %d", i, j)
		s.cut[[2]int{i, j}], s.cut[[2]int{j, i}] = true, true
	case 4:
		say("cut %d -> %d", i, j)
		s.cut[[2]int{i, j}] = true
	case 5, 6:
		say("mend all links")
		clear(s.cut)
	case 7:
		if s.nodes[i] != nil && s.nodes[i].Topology().Role == RolePrimary {
			heir, _ := s.nodes[i].Heir(s.last(i))
			say("step down %d to %d", i, heir)
			s.step(i, StepDown{Until: s.now.Add(2 * time.Second), HandTo: heir})
		}
	}
}

// kinds is how many kinds of trouble there are.
func (s *sim) kinds() int {
	if s.changes {
		return 10
	}
	return 8
}

// reconfigure has a primary add or remove a member, if the present configuration is settled.
func (s *sim) reconfigure(say func(string, ...any)) {
	for i, n := range s.nodes {
		if n == nil || !n.Topology().Writable || !n.Progress().Settled {
			continue
		}
		next := *n.Topology().Config
		next.Version, next.Term, next.Members = next.Version+1, n.Topology().Term, append([]MemberConfig(nil), next.Members...)
		j := s.rnd.IntN(len(s.nodes))
		if k := next.Member(j); k == nil {
			say("%d adds %d", i, j)
			next.Members = append(next.Members, numbered(ordinary(j + 1))[j])
		} else if j != i && len(next.Members) > 2 {
			say("%d removes %d", i, j)
			next.Members = slices.DeleteFunc(next.Members, func(m MemberConfig) bool { return m.ID == j })
		} else {
			continue
		}
		s.step(i, Reconfig{Config: &next, Lead: next.Term})
		s.changed++
	}
}

// writable is the one member that takes writes and that all others follow, or None.
func (s *sim) writable() int {
	leader := None
	for i, n := range s.nodes {
		if n != nil && n.Topology().Writable {
			if leader != None {
				return None
			}
			leader = i
		}
	}
	for _, n := range s.nodes {
		if n != nil && n.Topology().Primary != leader && n.Topology().Role.Member() {
			return None
		}
	}
	return leader
}
