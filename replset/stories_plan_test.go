package replset

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// plan is a story before it is told. It follows from its number alone: the set, what happens to it and when, and how the
// actors' dice fall.
type plan struct {
	seed uint64
	cast cast
	acts []act
	// The client's settings.
	heartbeat time.Duration
	mode      string
	// hello has every member asked for news of itself all the time, by who knows what it may answer.
	hello bool
	// folder has the members keep their data in files: a kill drops what was not synced.
	folder bool
	// night has one member lag for more than two minutes in which little happens.
	night bool
	// liveness is the client's HeartbeatTimeout.
	liveness time.Duration
}

// cast is a set without the network.
type cast struct {
	name string
	o    Options
}

// act is one thing that happens to a set.
type act struct {
	at   time.Duration // since the story began
	do   deed
	whom int           // a member; thePrimary: whoever is it at the time
	side []int         // of a partition: one of its two sides
	n    int           // bytes: of an answer, or a second
	d    time.Duration // how slow, for how long, to what priority (in seconds)
	ends int           // the act that this one undoes, -1: none
}

const (
	thePrimary  = -1
	storyLength = 5 * time.Second
	nightLength = 140 * time.Second
)

type deed string

const (
	kill        deed = "kill"
	restart     deed = "restart"
	wipe        deed = "wipe"
	partition   deed = "partition"
	isolate     deed = "cut off"
	powerOff    deed = "lose its power"
	blackout    deed = "all members are killed"
	light       deed = "all start again"
	heal        deed = "heal"
	hang        deed = "hang"
	wake        deed = "wake"
	slow        deed = "be slow to clients"
	slowMembers deed = "be slow to the others"
	throttle    deed = "have a slow link to clients"
	lag         deed = "lag"
	keepUp      deed = "keep up again"
	cut         deed = "have a connection cut in the middle of an answer"
	fast        deed = "be fast again"
	stepDown    deed = "step down"
	coup        deed = "stand for election at once"
	rivalry     deed = "all who are left stand for election at once"
	slowAll     deed = "be slow to each other"
	freeze      deed = "freeze"
	maintain    deed = "be under maintenance"
	serve       deed = "serve again"
	priority    deed = "have another priority"
	admit       deed = "a new member joins"
	dismiss     deed = "leave the set"
)

func (a act) String() string {
	who := fmt.Sprintf("member %d", a.whom)
	if a.whom == thePrimary {
		who = "the primary"
	}
	switch a.do {
	case partition:
		return fmt.Sprintf("partition: %v apart from the rest", a.side)
	case heal:
		return "the partition is healed"
	case rivalry, blackout, light:
		return string(a.do)
	case slowAll:
		return fmt.Sprintf("all members: %s, %v", a.do, a.d)
	case admit:
		return string(a.do) + map[bool]string{true: ", without a vote"}[a.d > 0]
	case priority:
		return fmt.Sprintf("%s: %s, %v", who, a.do, a.d.Seconds())
	case restart, wipe, wake, fast, keepUp, serve:
		return fmt.Sprintf("whom act %d has struck: %s", a.ends+1, a.do)
	}
	if a.n > 0 {
		return fmt.Sprintf("%s: %s, %d bytes", who, a.do, a.n)
	}
	if a.d > 0 {
		return fmt.Sprintf("%s: %s, %v", who, a.do, a.d)
	}
	return fmt.Sprintf("%s: %s", who, a.do)
}

// length is how long a story lasts before all is well again.
func (p plan) length() time.Duration {
	if p.night {
		return storyLength + nightLength
	}
	return storyLength
}

// String tells the plan.
func (p plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Story %d: %s; the client's heartbeat is %v, its monitors %s; it notices a member that hangs in %v.", p.seed, p.cast.name, p.heartbeat, p.mode, p.liveness)
	for i, a := range p.acts {
		fmt.Fprintf(&b, "\n  act %2d at %6.3f  %v", i+1, a.at.Seconds(), a)
	}
	return b.String()
}

// planOf is the plan of a story.
func planOf(seed uint64) plan {
	rnd := rand.New(rand.NewPCG(seed, 7))
	p := plan{seed: seed, cast: castOf(seed), hello: seed%8 == 3}
	p.heartbeat = []time.Duration{500 * time.Millisecond, time.Second, 10 * time.Second}[rnd.IntN(3)]
	p.mode = []string{"stream", "stream", "poll"}[rnd.IntN(3)]
	p.liveness = []time.Duration{0, 0, time.Second}[rnd.IntN(3)]
	at := some(rnd, 200, 600)
	p.unseat(rnd, at)
	if p.night = seed%40 == 24; p.night {
		p.then(p.add(act{at: storyLength, do: lag, whom: p.anyone(rnd), ends: -1}), nightLength, keepUp)
	}
	for at += some(rnd, 300, 1500); at < storyLength-500*time.Millisecond; at += some(rnd, 200, 1500) {
		p.episode(rnd, at)
	}
	p.inOrder()
	return p
}

func some(rnd *rand.Rand, from, to int) time.Duration {
	return time.Duration(from+rnd.IntN(to-from)) * time.Millisecond
}

func (p *plan) add(a act) int {
	p.acts = append(p.acts, a)
	return len(p.acts) - 1
}

// then adds what ends the act i.
func (p *plan) then(i int, after time.Duration, do deed) {
	p.add(act{at: p.acts[i].at + after, do: do, ends: i})
}

// inOrder sorts the acts by time, and keeps ends pointing where it did.
func (p *plan) inOrder() {
	order := make([]int, len(p.acts))
	for i := range order {
		order[i] = i
	}
	for i := range order { // few, and the order of equals must not depend on a library
		for j := i; j > 0 && p.acts[order[j]].at < p.acts[order[j-1]].at; j-- {
			order[j], order[j-1] = order[j-1], order[j]
		}
	}
	sorted, place := make([]act, len(order)), make([]int, len(order))
	for i, o := range order {
		sorted[i], place[o] = p.acts[o], i
	}
	for i, a := range sorted {
		if a.ends >= 0 {
			sorted[i].ends = place[a.ends]
		}
	}
	p.acts = sorted
}

// unseat begins a story with the end of a primary.
func (p *plan) unseat(rnd *rand.Rand, at time.Duration) {
	switch rnd.IntN(9) {
	case 0, 1:
		p.strike(rnd, at, kill, thePrimary)
	case 2:
		p.then(p.add(act{at: at, do: isolate, whom: thePrimary, ends: -1}), some(rnd, 1200, 2500), heal)
	case 3:
		p.strike(rnd, at, hang, thePrimary)
	case 4:
		p.add(act{at: at, do: stepDown, whom: thePrimary, ends: -1})
	case 5, 6, 7:
		p.overthrow(rnd, at)
	case 8:
		p.contest(rnd, at)
	}
}

// strike kills or hangs a member for a while.
func (p *plan) strike(rnd *rand.Rand, at time.Duration, do deed, whom int) {
	i := p.add(act{at: at, do: do, whom: whom, ends: -1})
	if do == hang {
		p.then(i, some(rnd, 300, 2500), wake)
		return
	}
	back := some(rnd, 200, 2500)
	if rnd.IntN(2) == 0 {
		p.then(i, back/2, wipe)
	}
	p.then(i, back, restart)
}

// overthrow has another one stand while the primary is cut off: for a while there are two.
func (p *plan) overthrow(rnd *rand.Rand, at time.Duration) {
	i := p.add(act{at: at, do: isolate, whom: thePrimary, ends: -1})
	p.add(act{at: at + some(rnd, 0, 200), do: coup, whom: p.anyone(rnd), ends: -1}) // or whoever comes after it and may
	p.then(i, some(rnd, 500, 2000), heal)
}

// contest takes the primary away and has all others stand at once, on links so slow that their requests for votes cross.
func (p *plan) contest(rnd *rand.Rand, at time.Duration) {
	p.then(p.add(act{at: at, do: slowAll, d: some(rnd, 5, 80), ends: -1}), some(rnd, 600, 1500), fast)
	p.strike(rnd, at, kill, thePrimary)
	p.add(act{at: at + some(rnd, 0, 300), do: rivalry, ends: -1})
}

func (p *plan) anyone(rnd *rand.Rand) int { return rnd.IntN(len(p.cast.o.Config)) }

// episode is anything that may happen to a set.
func (p *plan) episode(rnd *rand.Rand, at time.Duration) {
	n := len(p.cast.o.Config)
	who := p.anyone(rnd)
	if rnd.IntN(2) == 0 {
		who = thePrimary
	}
	switch rnd.IntN(20) {
	case 0, 1:
		p.strike(rnd, at, kill, who)
	case 2, 3:
		i := p.add(act{at: at, do: partition, side: rnd.Perm(n)[:1+rnd.IntN(n-1)], ends: -1})
		p.then(i, some(rnd, 300, 2500), heal)
	case 4:
		p.strike(rnd, at, hang, who)
	case 5:
		p.then(p.add(act{at: at, do: slow, whom: who, d: some(rnd, 2, 400), ends: -1}), some(rnd, 500, 3000), fast)
	case 6, 7:
		p.then(p.add(act{at: at, do: slowMembers, whom: who, d: some(rnd, 2, 250), ends: -1}), some(rnd, 1000, 4000), fast)
	case 8:
		p.add(act{at: at, do: stepDown, whom: thePrimary, ends: -1})
	case 9:
		p.overthrow(rnd, at)
	case 10:
		p.add(act{at: at, do: freeze, whom: p.anyone(rnd), d: some(rnd, 1000, 3000), ends: -1})
	case 11:
		p.then(p.add(act{at: at, do: maintain, whom: p.anyone(rnd), ends: -1}), some(rnd, 300, 1500), serve)
	case 12:
		p.add(act{at: at, do: priority, whom: p.anyone(rnd), d: time.Duration(1+rnd.IntN(4)) * time.Second / 2, ends: -1})
	case 13:
		p.add(act{at: at, do: admit, d: time.Duration(rnd.IntN(2)), ends: -1})
	case 14:
		p.contest(rnd, at)
	case 16, 17:
		for range 1 + rnd.IntN(3) {
			p.add(act{at: at, do: cut, whom: who, n: 1 + rnd.IntN(400), ends: -1})
			at += some(rnd, 20, 200)
		}
	case 18:
		p.then(p.add(act{at: at, do: throttle, whom: who, n: 1000 + rnd.IntN(20000), ends: -1}), some(rnd, 500, 2000), fast)
	case 19:
		p.then(p.add(act{at: at, do: lag, whom: p.anyone(rnd), ends: -1}), some(rnd, 500, 3000), keepUp)
	case 15: // once: who is asked to hurt a set shall find one
		for _, a := range p.acts {
			if a.do == dismiss {
				return
			}
		}
		p.add(act{at: at, do: dismiss, whom: who, ends: -1})
	}
}

// castOf is one of several small sets: every heartbeat costs time, and there is one for each pair. Every second member is
// in the east.
func castOf(seed uint64) cast {
	var o Options
	member := func(m MemberOptions) {
		i := len(o.Config)
		m.Name, m.Port = fmt.Sprintf("m%d", i), 27017
		if !m.Arbiter {
			m.Tags = map[string]string{"dc": []string{"east", "west"}[i%2], "n": fmt.Sprint(i)}
		}
		o.Config = append(o.Config, m)
	}
	member(MemberOptions{})
	member(MemberOptions{})
	o.HeartbeatInterval = 400 * time.Millisecond
	name := ""
	switch seed % 8 {
	case 0, 4:
		name = "three equal members"
		member(MemberOptions{})
	case 1:
		name = "five equal members"
		member(MemberOptions{})
		member(MemberOptions{})
		member(MemberOptions{})
	case 2:
		name = "member 1 before 0 before 2, a delayed and hidden one"
		member(MemberOptions{Priority: new(0.5)})
		o.Config[1].Priority = new(2.0)
		member(MemberOptions{SecondaryDelay: 700 * time.Millisecond, NoVote: true, Hidden: true})
	case 3:
		name = "two members and an arbiter"
		member(MemberOptions{Arbiter: true})
	case 5:
		name = "three members, one more without a vote, an oplog of 40 entries"
		o.OplogEntries = 40
		member(MemberOptions{})
		member(MemberOptions{NoVote: true})
	case 6:
		name = "member 1 before 2, and 0 never"
		member(MemberOptions{})
		o.Config[0].Priority, o.Config[1].Priority = new(0.0), new(3.0)
	case 7:
		name = "four members and an arbiter"
		member(MemberOptions{})
		member(MemberOptions{})
		member(MemberOptions{Arbiter: true})
	}
	return cast{name, o}
}
