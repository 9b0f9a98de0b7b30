package repl

import (
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// TestNeverTwoPrimariesInATermAndNothingCommittedIsLost runs sets of several shapes through random trouble; the
// invariants are checked after every step, and in the end the healed set must agree on a primary again.
func TestNeverTwoPrimariesInATermAndNothingCommittedIsLost(t *testing.T) {
	shapes := map[string][]MemberConfig{
		"three":         ordinary(3),
		"five":          ordinary(5),
		"five changing": ordinary(5),
		"with arbiter":  {{Host: "a", Priority: 1, Votes: 1}, {Host: "b", Priority: 1, Votes: 1}, {Host: "c", Arbiter: true, Votes: 1}},
		"priorities":    {{Host: "a", Priority: 3, Votes: 1}, {Host: "b", Priority: 2, Votes: 1}, {Host: "c", Priority: 0, Votes: 1}},
		"without votes": {{Host: "a", Priority: 1, Votes: 1}, {Host: "b", Priority: 1, Votes: 1}, {Host: "c", Priority: 1, Votes: 1}, {Host: "d"}},
	}
	for name, members := range shapes {
		t.Run(name, func(t *testing.T) {
			elections, changed := 0, 0
			for seed := range uint64(20) {
				s := newSim(t, seed, members)
				s.changes = name == "five changing"
				agreed := 0
				for k := range 1500 {
					s.advance()
					if k >= 1200 && s.writable() != None {
						agreed = k
					}
					if k%25 == 24 && k < 1000 {
						s.trouble()
					}
					if k == 1000 {
						clear(s.cut)
						for i := range s.nodes {
							if s.nodes[i] == nil {
								s.start(i)
							}
						}
					}
				}
				if agreed < 1200 { // a takeover by a higher priority may be under way at the very end
					s.fail("seed %d: in the last seconds after everything was mended there was no agreed primary", seed)
				}
				elections, changed = elections+len(s.won), changed+s.changed
			}
			if name == "five changing" && changed < 40 {
				t.Errorf("only %d changes of the configuration in 20 runs", changed)
			}
			if elections < 40 {
				t.Errorf("only %d elections in 20 runs: the trouble is too mild to prove anything", elections)
			}
		})
	}
}

func TestFirstElectionNeedsNoTimeout(t *testing.T) {
	s := newSim(t, 1, ordinary(3))
	for s.writable() != 0 {
		s.advance()
		if s.now.Sub(time.Unix(1000, 0)) > 200*time.Millisecond {
			t.Fatal("no primary after 200 ms")
		}
	}
	if s.nodes[0].Topology().Term != 1 {
		t.Errorf("the first term is %d", s.nodes[0].Topology().Term)
	}
}

func TestPrimaryWithoutMajorityStepsDown(t *testing.T) {
	s := newSim(t, 2, ordinary(3))
	s.run(500 * time.Millisecond)
	s.isolate(0)
	s.run(1200 * time.Millisecond)
	if s.nodes[0].Topology().Role != RoleSecondary {
		t.Errorf("the isolated primary is still %v", s.nodes[0].Topology().Role)
	}
	s.run(2 * time.Second)
	if s.nodes[1].Topology().Writable == s.nodes[2].Topology().Writable {
		t.Error("the majority has not elected exactly one primary")
	}
	if s.nodes[0].Topology().Term != 1 {
		t.Errorf("the isolated member raised its term to %d by itself: the dry run is missing", s.nodes[0].Topology().Term)
	}
}

// TestNewMemberDoesNotDeposeAPrimaryOfOne: it has an election timeout to be heard from, and no longer.
func TestNewMemberDoesNotDeposeAPrimaryOfOne(t *testing.T) {
	at := time.Unix(1000, 0)
	alone := &Config{SetName: "rs0", Version: 1, Members: []MemberConfig{{Host: "a", Priority: 1, Votes: 1}},
		ElectionTimeout: time.Second, HeartbeatInterval: time.Second / 5, CatchUpTimeout: time.Second}
	n := New(alone, "a", Vote{For: None}, OpTime{}, at, func() float64 { return 0 })
	for _, e := range n.Step(StepUp{SkipDryRun: true}, at) {
		if d, ok := e.(Drain); ok {
			n.Step(Drained{OpTime: OpTime{TS: bson.Timestamp{T: 1, I: 1}, Term: d.Term}}, at)
		}
	}
	two := *alone
	two.Version, two.Term = 2, 1
	two.Members = append(two.Members[:1:1], MemberConfig{ID: 1, Host: "b", Priority: 1, Votes: 1})
	at = at.Add(time.Hour)
	n.Step(Reconfig{Config: &two, Lead: 1}, at)
	if top := n.Topology(); !top.Writable || top.Config.Version != 2 {
		t.Fatalf("after the change it is %v with configuration %v", top.Role, top.Config.ID())
	}
	n.Step(Tick{}, at.Add(999*time.Millisecond))
	if !n.Topology().Writable {
		t.Error("deposed before the new member had its time")
	}
	n.Step(Tick{}, at.Add(time.Second))
	if n.Topology().Writable {
		t.Error("one of two, and still primary")
	}
}

// TestRemovalOfTheMemberThatWasHeardLeavesThePrimary: the other has said that it takes part in the configuration of two,
// and has not come to answer a heartbeat yet.
func TestRemovalOfTheMemberThatWasHeardLeavesThePrimary(t *testing.T) {
	s := newSim(t, 5, ordinary(3))
	s.run(3 * time.Second)
	p := s.writable()
	if p == None {
		t.Fatal("no primary")
	}
	other, gone := (p+1)%3, (p+2)%3
	s.isolate(other)
	s.run(2 * time.Second)
	n := s.nodes[p]
	if !n.Topology().Writable {
		t.Fatal("one of two was isolated, and the primary is none any more")
	}
	next := *n.Topology().Config
	next.Version++
	next.Members = append(append([]MemberConfig(nil), next.Members[:gone]...), next.Members[gone+1:]...)
	n.Step(Reconfig{Config: &next, Lead: n.Topology().Term}, s.now)
	n.Step(Tick{}, s.now)
	if top := n.Topology(); !top.Writable || top.Config.Version != next.Version {
		t.Errorf("it is %v with configuration %v", top.Role, top.Config.ID())
	}
}

func TestHigherPriorityTakesOver(t *testing.T) {
	members := ordinary(3)
	members[2].Priority = 5
	s := newSim(t, 3, members) // member 0 is told to stand first
	s.run(4 * time.Second)
	if s.writable() != 2 {
		t.Errorf("member %d rules, not the one of priority 5", s.writable())
	}
}

func TestPriorityZeroIsNeverPrimary(t *testing.T) {
	members := ordinary(3)
	members[1].Priority, members[2].Priority = 0, 0
	s := newSim(t, 4, members)
	s.run(time.Second)
	s.nodes[0] = nil
	s.run(10 * time.Second)
	for term, who := range s.won {
		if who != 0 {
			t.Errorf("member %d of priority 0 won term %d", who, term)
		}
	}
}

func TestMemberThatMayNotRuleLendsItsLeadToTheOneThatMay(t *testing.T) {
	members := ordinary(3)
	members[2].Priority = 0
	s := newSim(t, 6, members)
	s.run(time.Second)
	s.quiet = true
	s.run(200 * time.Millisecond)
	s.write(0, s.nodes[0].Topology().Term) // the last entry before the crash reaches member 2 alone
	s.nodes[0] = nil
	s.logs[2] = append(s.logs[2], s.last(0))
	s.step(2, Applied{OpTime: s.last(2), Durable: s.last(2)})
	s.run(5 * time.Second)
	if s.writable() != 1 {
		t.Errorf("member %d rules, not the one that may", s.writable())
	}
}

func TestEveryMemberLearnsSoonWhatIsCommitted(t *testing.T) {
	late := 0
	for seed := range uint64(20) {
		s := newSim(t, seed, ordinary(5))
		s.run(time.Second)
		s.quiet = true
		s.run(100 * time.Millisecond) // half a heartbeat interval: a few messages of up to 20 ms each
		want := s.last(s.writable())
		for _, n := range s.nodes {
			if n.Progress().Commit != want {
				late++
			}
		}
	}
	if late > 10 { // of 100: in the simulation a member may by chance not pull for half of that time
		t.Errorf("%d of 100 members did not know what was committed", late)
	}
}

func TestStaleCandidateGetsNoVote(t *testing.T) {
	op := func(ts uint32, term int64) OpTime { return OpTime{TS: bson.Timestamp{T: ts, I: 1}, Term: term} }
	now := time.Unix(1000, 0)
	voter := func() *Node {
		cfg := &Config{SetName: "s", Version: 1, Members: ordinary(3), ElectionTimeout: time.Second, HeartbeatInterval: time.Second}
		return New(cfg, "m0", Vote{Term: 3, For: None}, op(50, 3), now, func() float64 { return 0 })
	}
	ask := func(n *Node, from int, term int64, applied OpTime, dry bool) VoteAnswer {
		for _, e := range n.Step(VoteRequest{From: from, Term: term, Applied: applied, DryRun: dry, Config: ConfigID{Version: 1}}, now) {
			if a, ok := e.(VoteAnswer); ok {
				return a
			}
		}
		t.Fatal("no answer")
		return VoteAnswer{}
	}
	if a := ask(voter(), 1, 4, op(49, 3), false); a.Reply.Granted {
		t.Error("granted to a staler candidate")
	}
	if a := ask(voter(), 1, 4, op(60, 2), false); a.Reply.Granted {
		t.Error("granted to a candidate whose newest entry is of an older term, though of a later time")
	}
	if a := ask(voter(), 1, 2, op(50, 3), false); a.Reply.Granted || a.Reply.Term != 3 {
		t.Errorf("an old term's candidate got %+v", a)
	}
	n := voter()
	if a := ask(n, 1, 4, op(50, 3), true); !a.Reply.Granted {
		t.Errorf("dry run refused: %s", a.Reason)
	}
	if a := ask(n, 1, 4, op(50, 3), false); !a.Reply.Granted {
		t.Errorf("refused: %s", a.Reason)
	}
	if a := ask(n, 2, 4, op(50, 3), false); a.Reply.Granted {
		t.Error("two votes in one term")
	}
	if a := ask(n, 1, 4, op(50, 3), false); !a.Reply.Granted {
		t.Error("the same candidate asks again and is refused")
	}
}

func TestVoteIsSavedBeforeItIsGiven(t *testing.T) {
	cfg := &Config{SetName: "s", Version: 1, Members: ordinary(3), ElectionTimeout: time.Second, HeartbeatInterval: time.Second}
	now := time.Unix(1000, 0)
	n := New(cfg, "m0", Vote{For: None}, OpTime{}, now, func() float64 { return 0 })
	saved := false
	for _, e := range n.Step(VoteRequest{From: 1, Term: 1, Config: ConfigID{Version: 1}}, now) {
		switch e := e.(type) {
		case SaveVote:
			saved = e.Vote == Vote{Term: 1, For: 1}
		case VoteAnswer:
			if !saved || !e.Reply.Granted {
				t.Errorf("answered %+v, saved first: %v", e.Reply, saved)
			}
			return
		}
	}
	t.Fatal("no answer")
}

func TestConfigRefusesWhatAServerRefuses(t *testing.T) {
	bad := map[string]func([]MemberConfig) []MemberConfig{
		"no members":         func([]MemberConfig) []MemberConfig { return nil },
		"eight":              func([]MemberConfig) []MemberConfig { return ordinary(8) },
		"negative priority":  func(m []MemberConfig) []MemberConfig { m[0].Priority = -1; return m },
		"priority 1001":      func(m []MemberConfig) []MemberConfig { m[0].Priority = 1001; return m },
		"two votes":          func(m []MemberConfig) []MemberConfig { m[0].Votes = 2; return m },
		"arbiter electable":  func(m []MemberConfig) []MemberConfig { m[0].Arbiter = true; return m },
		"hidden electable":   func(m []MemberConfig) []MemberConfig { m[0].Hidden = true; return m },
		"delayed electable":  func(m []MemberConfig) []MemberConfig { m[0].Delay = time.Second; return m },
		"voteless electable": func(m []MemberConfig) []MemberConfig { m[0].Votes = 0; return m },
		"same host twice":    func(m []MemberConfig) []MemberConfig { m[0].Host = m[1].Host; return m },
		"nobody electable":   func(m []MemberConfig) []MemberConfig { m[0].Priority, m[1].Priority, m[2].Priority = 0, 0, 0; return m },
	}
	for name, spoil := range bad {
		if err := (&Config{SetName: "rs0", Members: spoil(ordinary(3))}).Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := (&Config{SetName: "rs0", Members: ordinary(3)}).Validate(); err != nil {
		t.Error(err)
	}
}

func (s *sim) run(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.advance()
	}
}

func (s *sim) isolate(i int) {
	for j := range s.nodes {
		s.cut[[2]int{i, j}], s.cut[[2]int{j, i}] = true, true
	}
}
