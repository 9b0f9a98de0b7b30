package repl

import (
	"slices"
	"testing"
	"time"
)

// TestTranscriptsOfElections: each story is run and held to its file in testdata, which is meant to be read.
func TestTranscriptsOfElections(t *testing.T) {
	three := func() []MemberConfig { return ordinary(3) }
	stories := map[string]struct {
		members []MemberConfig
		play    func(s *sim)
	}{
		"kill":               {three(), playKill},
		"step-down":          {three(), playStepDown},
		"partition":          {three(), playPartition},
		"takeover":           {[]MemberConfig{{Priority: 1, Votes: 1}, {Priority: 3, Votes: 1}, {Priority: 2, Votes: 1}}, playTakeover},
		"stale-candidate":    {[]MemberConfig{{Priority: 1, Votes: 1}, {Priority: 1, Votes: 1}, {Votes: 1}}, playStaleCandidate},
		"frozen":             {three(), playFrozen},
		"catch-up":           {ordinary(5), playCatchUp},
		"reconfigure":        {ordinary(4), playReconfigure},
		"chain":              {three(), playChain},
		"arbiter":            {[]MemberConfig{{Priority: 1, Votes: 1}, {Priority: 1, Votes: 1}, {Arbiter: true, Votes: 1}}, playKill},
		"forced-reconfigure": {three(), playForced},
	}
	for file, st := range stories {
		t.Run(file, func(t *testing.T) {
			s := newSim(t, 7, st.members)
			s.teller = &teller{s: s, last: map[int]Topology{}}
			for i, n := range s.nodes {
				s.teller.became(i, n)
			}
			st.play(s)
			s.teller.transcript(t, file)
		})
	}
}

func (s *sim) story(format string, args ...any) { s.teller.say("-- "+format, args...) }

func playKill(s *sim) {
	s.run(time.Second)
	s.story("a is killed")
	s.nodes[0] = nil
	s.run(3 * time.Second)
	s.story("a comes back")
	s.start(0)
	delete(s.teller.last, 0)
	s.run(time.Second)
}

func playStepDown(s *sim) {
	s.run(time.Second)
	heir, _ := s.nodes[0].Heir(s.last(0))
	s.story("a is told to step down for 5 seconds; %s is to take over", name(heir))
	s.step(0, StepDown{Until: s.now.Add(5 * time.Second), HandTo: heir})
	s.run(2 * time.Second)
}

func playPartition(s *sim) {
	s.run(time.Second)
	s.story("a is cut off from b and c, and goes on writing")
	s.isolate(0)
	s.run(3 * time.Second)
	s.story("the network is whole again")
	clear(s.cut)
	s.run(2 * time.Second)
}

func playTakeover(s *sim) { s.run(6 * time.Second) }

func playStaleCandidate(s *sim) {
	s.run(time.Second)
	s.quiet = true
	s.run(200 * time.Millisecond)
	s.story("a writes one more entry, which c alone gets; then a is killed. c may not be primary")
	s.write(0, s.nodes[0].Topology().Term)
	s.nodes[0] = nil
	s.logs[2] = append(s.logs[2], s.last(0))
	s.step(2, Applied{OpTime: s.last(2), Durable: s.last(2)})
	s.run(4 * time.Second)
}

func playFrozen(s *sim) {
	s.run(time.Second)
	s.story("b and c are frozen for 6 seconds, and a is killed")
	for _, i := range []int{1, 2} {
		s.step(i, Freeze{Until: s.now.Add(6 * time.Second)})
	}
	s.nodes[0] = nil
	s.run(4 * time.Second)
	s.story("c is thawed")
	s.step(2, Freeze{})
	s.run(4 * time.Second)
}

func playCatchUp(s *sim) {
	s.run(time.Second)
	s.quiet = true
	s.run(200 * time.Millisecond)
	s.story("c gets 40 entries that b, d and e have not; then a, who wrote them, is killed and b is told to stand")
	for range 40 {
		s.write(0, s.nodes[0].Topology().Term)
	}
	s.logs[2] = slices.Clone(s.logs[0])
	s.step(2, Applied{OpTime: s.last(2), Durable: s.last(2)})
	s.nodes[0] = nil
	s.step(1, StepUp{SkipDryRun: true})
	s.run(3 * time.Second)
}

func (s *sim) change(i int, edit func(c *Config)) {
	n := s.nodes[i]
	next := *n.Topology().Config
	next.Version, next.Term, next.Members = next.Version+1, n.Topology().Term, slices.Clone(next.Members)
	edit(&next)
	s.step(i, Reconfig{Config: &next, Lead: next.Term})
}

func playReconfigure(s *sim) {
	s.run(time.Second)
	s.story("a removes d")
	s.change(0, func(c *Config) { c.Members = c.Members[:3] })
	s.run(time.Second)
	s.story("a gives c the priority 5")
	s.change(0, func(c *Config) { c.Members[2].Priority = 5 })
	s.run(3 * time.Second)
	s.story("%s adds d again", name(s.writable()))
	s.change(s.writable(), func(c *Config) { c.Members = append(c.Members, numbered(ordinary(4))[3]) })
	s.run(time.Second)
}

func playForced(s *sim) {
	s.run(time.Second)
	s.story("a and b are killed; c alone is no majority")
	s.nodes[0], s.nodes[1] = nil, nil
	s.run(3 * time.Second)
	s.story("c is forced to be a set of its own")
	next := *s.cfgs[2]
	next.Version, next.Term, next.Members = 10_001, NoTerm, next.Members[2:]
	s.step(2, Reconfig{Config: &next})
	s.run(2 * time.Second)
	s.story("a comes back")
	s.start(0)
	delete(s.teller.last, 0)
	s.run(time.Second)
}

func playChain(s *sim) {
	s.run(time.Second)
	s.story("the line between a and c is cut")
	s.cut[[2]int{0, 2}], s.cut[[2]int{2, 0}] = true, true
	for range 400 {
		s.advance()
		if from := s.nodes[2].Topology().SyncFrom; from != None { // what every reply of the source tells
			src := s.nodes[from]
			s.step(2, SourceAlive{From: from, Term: src.Topology().Term, Applied: s.last(from), Commit: src.Progress().Commit, Primary: src.Topology().Primary})
		}
	}
	if behind := s.nodes[2].Progress().Commit; behind.IsZero() || s.nodes[0].Topology().Term != 1 || s.writable() == 1 {
		s.fail("the chain did not hold: c has %v as committed", behind)
	}
}
