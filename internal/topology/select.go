package topology

import (
	"fmt"
	"slices"
	"time"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// trial is one run of the rules of server selection. It works on positions in d.Servers. With why it also keeps for
// each server the reason why it stays or falls; the rules are the same either way.
type trial struct {
	d   *Description
	w   *Want
	why []reason  // nil if nobody asks
	now time.Time // of the asking

	stage func(addr string) mongoerr.Stage // how far a server's connection has come; nil if nobody knows

	fault error // what the caller's selector panicked with
}

// rule is what let a server stay or made it fall.
type rule uint8

const (
	ruleNone            rule = iota
	ruleBlocked              // nothing is possible at all
	ruleOnly                 // stays: the topology has one way in, or the address was asked for
	ruleWindow               // stays: inside the latency window
	rulePinned               // stays: the pin is there
	ruleNotAsked             // another address was asked for
	ruleQuarantined          // left out by the user
	ruleDeprioritized        // failed in an earlier attempt, and others serve
	ruleUnavailable          // Unknown
	ruleKind                 // of a kind that was not wanted
	rulePrimaryServes        // a secondary, while the preferred primary serves
	ruleSecondaryServes      // the primary, while preferred secondaries serve
	ruleStale                // too far behind
	ruleTags                 // has other tags
	ruleSelector             // the caller's selector dropped it
	ruleSlow                 // outside the latency window
	ruleNotPinned            // the pin is elsewhere
)

// reason is a rule with its numbers.
type reason struct {
	rule        rule
	wanted      string // ruleKind: "primary", "secondary", "mongos"
	measured    time.Duration
	base, limit time.Duration
	tags        readpref.TagSet // ruleTags: the set that counted; nil if all sets were tried in vain
}

func (t *trial) mark(i int, r reason) {
	if t.why != nil {
		t.why[i] = r
	}
}

// run returns the positions of the candidates in ascending order.
func (t *trial) run() []int {
	all := make([]int, len(t.d.Servers))
	for i := range all {
		all[i] = i
	}
	if t.d.Invalid(*t.w) != nil {
		for i := range all {
			t.mark(i, reason{rule: ruleBlocked})
		}
		return nil
	}
	if t.w.Address != "" {
		return t.only(all)
	}
	free := t.free(all)
	kept := free
	if len(t.w.Deprioritized) > 0 {
		kept = t.withoutDeprioritized(free)
	}
	suitable := t.suitable(kept)
	if len(suitable) == 0 && len(kept) < len(free) {
		suitable = t.suitable(free)
	}
	chosen := t.selected(suitable)
	if at := t.pinned(chosen); at != nil {
		return at
	}
	return t.window(chosen)
}

// pinned keeps the pinned member alone, if it is among the set.
func (t *trial) pinned(set []int) []int {
	for _, i := range set {
		if t.d.Servers[i].Addr == t.w.Pinned {
			t.markAll(set, reason{rule: ruleNotPinned})
			t.mark(i, reason{rule: rulePinned})
			return []int{i}
		}
	}
	return nil
}

func (t *trial) only(set []int) []int {
	return t.keep(set, func(i int, s *Server) bool {
		switch {
		case s.Addr != t.w.Address:
			t.mark(i, reason{rule: ruleNotAsked})
		case !s.Kind.Known():
			t.mark(i, reason{rule: ruleUnavailable})
		default:
			t.mark(i, reason{rule: ruleOnly})
			return true
		}
		return false
	})
}

func (t *trial) keep(set []int, ok func(i int, s *Server) bool) []int {
	out := make([]int, 0, len(set))
	for _, i := range set {
		if ok(i, t.d.Servers[i]) {
			out = append(out, i)
		}
	}
	return out
}

func (t *trial) withoutDeprioritized(set []int) []int {
	return t.keep(set, func(i int, s *Server) bool {
		if isDeprioritized(t.w, s.Addr) {
			t.mark(i, reason{rule: ruleDeprioritized})
			return false
		}
		return true
	})
}

// suitable applies the rules of the topology's kind and, in a replica set, of the read preference.
func (t *trial) suitable(set []int) []int {
	switch t.d.Kind {
	case event.Single:
		return t.kinds(set, "server", event.Kind.Known)
	case event.LoadBalanced:
		return t.kinds(set, "load balancer", is(event.LoadBalancer))
	case event.Sharded:
		return t.kinds(set, "mongos", is(event.Mongos))
	case event.ReplicaSetNoPrimary, event.ReplicaSetWithPrimary:
		return t.inReplicaSet(set)
	}
	return t.kinds(set, "known deployment", func(event.Kind) bool { return false })
}

func is(k event.Kind) func(event.Kind) bool { return func(o event.Kind) bool { return o == k } }

func isMemberWithData(k event.Kind) bool { return k == event.RSPrimary || k == event.RSSecondary }

// kinds keeps the servers of a wanted kind.
func (t *trial) kinds(set []int, wanted string, ok func(event.Kind) bool) []int {
	return t.keep(set, func(i int, s *Server) bool {
		switch {
		case !s.Kind.Known():
			t.mark(i, reason{rule: ruleUnavailable})
		case !ok(s.Kind):
			t.mark(i, reason{rule: ruleKind, wanted: wanted})
		default:
			return true
		}
		return false
	})
}

func (t *trial) inReplicaSet(set []int) []int {
	switch t.d.mode(t.w) {
	case readpref.PrimaryMode:
		return t.kinds(set, "primary", is(event.RSPrimary))
	case readpref.PrimaryPreferredMode:
		secondaries := t.secondaries(set)
		if primary := t.primary(set); len(primary) > 0 {
			t.markAll(secondaries, reason{rule: rulePrimaryServes})
			return primary
		}
		return secondaries
	case readpref.SecondaryMode:
		return t.secondaries(set)
	case readpref.SecondaryPreferredMode:
		primary := t.primary(set)
		if secondaries := t.secondaries(set); len(secondaries) > 0 {
			t.markAll(primary, reason{rule: ruleSecondaryServes})
			return secondaries
		}
		return primary
	}
	return t.tagged(t.fresh(t.kinds(set, "primary or secondary", isMemberWithData)))
}

func (t *trial) markAll(set []int, r reason) {
	for _, i := range set {
		t.mark(i, r)
	}
}

// primary finds the primary without a word about the others.
func (t *trial) primary(set []int) []int {
	return t.keep(set, func(_ int, s *Server) bool { return s.Kind == event.RSPrimary })
}

func (t *trial) secondaries(set []int) []int {
	return t.tagged(t.fresh(t.kinds(set, "secondary", is(event.RSSecondary))))
}

// fresh drops what is staler than the read preference allows. It comes before the tags (max staleness).
func (t *trial) fresh(set []int) []int {
	limit, limited := t.w.ReadPref.MaxStaleness()
	if !limited {
		return set
	}
	newest := t.d.newest()
	return t.keep(set, func(i int, s *Server) bool {
		staleness := t.d.staleness(s, newest)
		if staleness > limit {
			t.mark(i, reason{rule: ruleStale, measured: staleness, limit: limit})
			return false
		}
		return true
	})
}

// tagged keeps the members that match the first tag set that anybody matches.
func (t *trial) tagged(set []int) []int {
	sets := t.w.ReadPref.TagSets()
	if len(sets) == 0 {
		return set
	}
	for _, tags := range sets {
		matching := t.keep(set, func(_ int, s *Server) bool { return tags.Match(s.Tags) })
		if len(matching) == 0 {
			continue
		}
		for _, i := range set {
			if !slices.Contains(matching, i) {
				t.mark(i, reason{rule: ruleTags, tags: tags})
			}
		}
		return matching
	}
	t.markAll(set, reason{rule: ruleTags})
	return nil
}

// selected asks the caller's own rule.
func (t *trial) selected(set []int) []int {
	if t.w.Selector == nil || len(set) == 0 {
		return set
	}
	members := make([]event.Member, len(set))
	for n, i := range set {
		members[n] = t.d.member(t.d.Servers[i])
	}
	chosen := t.ask(members)
	return t.keep(set, func(i int, s *Server) bool {
		if slices.ContainsFunc(chosen, func(m event.Member) bool { return m.Address == s.Addr }) {
			return true
		}
		t.mark(i, reason{rule: ruleSelector})
		return false
	})
}

// SelectorPanic is what the caller's selector panicked with.
type SelectorPanic struct{ Value any }

func (p SelectorPanic) Error() string {
	return mongoerr.OneLine(fmt.Sprintf("the caller's selector panicked: %v", p.Value))
}

// ask runs the caller's selector. One that panics chooses nobody.
func (t *trial) ask(members []event.Member) (chosen []event.Member) {
	defer func() {
		if r := recover(); r != nil {
			chosen, t.fault = nil, mongoerr.Wrap(mongoerr.StageSelection, SelectorPanic{r}, "")
		}
	}()
	return t.w.Selector(members)
}

// window keeps the members whose average round trip is at most the threshold above the shortest.
func (t *trial) window(set []int) []int {
	if t.d.Kind == event.Single || t.d.Kind == event.LoadBalanced {
		t.markAll(set, reason{rule: ruleOnly})
		return set
	}
	threshold := *t.d.cfg.LocalThreshold
	if t.w.LocalThreshold != nil {
		threshold = *t.w.LocalThreshold
	}
	var shortest time.Duration
	for n, i := range set {
		if rtt := t.d.Servers[i].RTT; n == 0 || rtt < shortest {
			shortest = rtt
		}
	}
	return t.keep(set, func(i int, s *Server) bool {
		r := reason{rule: ruleWindow, measured: s.RTT, base: shortest, limit: threshold}
		if s.RTT > shortest+threshold {
			r.rule = ruleSlow
		}
		t.mark(i, r)
		return r.rule == ruleWindow
	})
}
