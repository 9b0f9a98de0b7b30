package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
)

// judgeSet says what is wrong with servers that do answer, and with the set that they make.
func (x *examination) judgeSet() {
	if x.oldName {
		x.add(x.oldNameFinding())
	}
	for _, p := range x.probes {
		if p.answered() {
			x.judgeMember(p)
		}
	}
	x.judgeClocks()
	if x.cfg.DirectConnection {
		return
	}
	x.judgeMixture()
	x.judgeVersions()
	if x.set != "" && len(x.roster()) > 0 {
		x.judgeRoles()
		x.judgeLags()
	}
}

func (x *examination) oldNameFinding() Finding {
	name := x.set
	if name == "" {
		name = "NAME"
	}
	return Finding{Stage: "uri", Severity: Trouble, Cause: "replicaSet=true is no set name: it is the option of an old PHP driver, and every client of today looks for a set that is called \"true\"",
		Cure: "write replicaSet=" + name + ", or leave it out"}
}

// judgeMember says what keeps a server that answers from being of use.
func (x *examination) judgeMember(p *probe) {
	m, want := p.member, x.cfg.ReplicaSet
	say := func(stage string, s Severity, cause, cure string) {
		x.add(Finding{Stage: stage, Server: p.addr, Severity: s, Cause: cause, Cure: cure})
	}
	const notASet = "leave out replicaSet if this server is meant; otherwise it was started without --replSet, or the host is the wrong one"
	switch {
	case m.MaxWire > 0 && m.MaxWire < oldestWire:
		say("versions", Trouble, fmt.Sprintf("the server speaks wire version %d at most, which is older than MongoDB 4.0", m.MaxWire), "upgrade the server")
	case m.Kind == event.RSGhost:
		say("set", Trouble, "the server was started as a member of a set, but is in none: the set is not initiated, or this member was removed from it",
			"run rs.initiate() for a new set, or rs.add() at the primary for a further member")
	case m.Kind == event.Standalone && want != "":
		say("set", Trouble, fmt.Sprintf("the server is a standalone, not a member of set %s", want), notASet)
	case m.Kind == event.Standalone && len(x.probes) > 1 && !x.cfg.DirectConnection:
		say("set", Trouble, "the server is a standalone among several seeds: clients leave it out", "list the members of one set only, or this server alone")
	case m.Kind == event.Mongos && want != "":
		say("set", Trouble, fmt.Sprintf("the server is a mongos, not a member of set %s", want), "leave out replicaSet: a sharded cluster has no set name")
	case m.SetName != "" && want != "" && m.SetName != want:
		say("set", Trouble, fmt.Sprintf("the server is a member of set %s, and the connection string asks for set %s", m.SetName, want),
			fmt.Sprintf("write replicaSet=%s, or take this host out of the connection string", m.SetName))
	case m.Kind == event.RSOther && !m.Hidden:
		say("roles", Trouble, "the member is neither primary nor secondary: it starts up, recovers, rolls back, or is too stale to go on",
			"wait, and look at rs.status() and the member's log; one that is too stale must copy all data anew")
	case m.Kind == event.RSArbiter && p.seed:
		say("roles", Note, "this seed is an arbiter: it votes, holds no data and serves nothing", "list members with data as seeds")
	}
	if p.seed {
		x.judgeName(p)
	}
}

const oldestWire = 7 // MongoDB 4.0

// judgeMixture finds seeds of different deployments.
func (x *examination) judgeMixture() {
	sets := map[string][]string{}
	var order []string
	for _, p := range x.probes {
		if !p.seed || !p.answered() || p.member.SetName == "" {
			continue
		}
		if sets[p.member.SetName] == nil {
			order = append(order, p.member.SetName)
		}
		sets[p.member.SetName] = append(sets[p.member.SetName], p.addr)
	}
	if len(order) < 2 {
		return
	}
	var parts []string
	for _, s := range order {
		parts = append(parts, s+" ("+strings.Join(sets[s], ", ")+")")
	}
	f := Finding{Stage: "set", Severity: Trouble, Cause: fmt.Sprintf("the seeds belong to %d sets: %s", len(order), strings.Join(parts, ", ")),
		Cure: "list members of one set only"}
	if x.cfg.ReplicaSet == "" {
		f.Cause += "; a client uses the one whose member answers first"
		f.Cure += ", and say which with replicaSet=" + order[0]
	}
	x.add(f)
}

// judgeVersions notes an upgrade that is not finished.
func (x *examination) judgeVersions() {
	var seen []string
	for _, p := range x.probes {
		if p.answered() && p.version != "-" && !slices.Contains(seen, p.version) {
			seen = append(seen, p.version)
		}
	}
	if len(seen) > 1 {
		slices.Sort(seen)
		x.add(Finding{Stage: "versions", Severity: Note, Cause: "the servers are of several versions: " + strings.Join(seen, ", "),
			Cure: "well during an upgrade; finish it, for drivers keep to what the oldest member can"})
	}
}

// Limits from which a difference is told.
const (
	clockLimit = 5 * time.Second
	lagLimit   = 15 * time.Second // an idle primary writes every 10 s
)

// judgeClocks tells wrong clocks: of this host if all servers agree that it is, else of the servers.
func (x *examination) judgeClocks() {
	var known []*probe
	for _, p := range x.probes {
		if p.answered() && p.skewKnown {
			known = append(known, p)
		}
	}
	if len(known) == 0 {
		return
	}
	least := slices.MinFunc(known, func(a, b *probe) int { return int(a.skew - b.skew) }).skew
	most := slices.MaxFunc(known, func(a, b *probe) int { return int(a.skew - b.skew) }).skew
	const why = "certificates, sessions, TTL indexes and the estimate of lag go by it: let NTP set "
	if len(known) > 1 && most-least < clockLimit && (least > clockLimit || most < -clockLimit) {
		x.add(Finding{Stage: "clock", Severity: Trouble, Cause: fmt.Sprintf("the clock of this host is %s those of all servers", apart(-least)),
			Cure: why + "the clock of this host"})
		return
	}
	for _, p := range known {
		if p.skew.Abs() > clockLimit {
			x.add(Finding{Stage: "clock", Server: p.addr, Severity: Trouble, Cause: fmt.Sprintf("the clock of the server is %s that of this host", apart(p.skew)),
				Cure: why + "the clocks of both"})
		}
	}
}

func apart(d time.Duration) string {
	if d < 0 {
		return span(-d) + " behind"
	}
	return span(d) + " ahead of"
}

// judgeLags tells secondaries that are far behind the primary, or where there is none, behind the freshest of them.
func (x *examination) judgeLags() {
	data := x.ours(event.Kind.DataBearing)
	data = slices.DeleteFunc(data, func(p *probe) bool { return p.member.LastWrite.IsZero() })
	var head *probe
	for _, p := range data {
		if head == nil || p.member.Kind == event.RSPrimary || head.member.Kind != event.RSPrimary && p.member.LastWrite.After(head.member.LastWrite) {
			head = p
		}
	}
	for _, p := range data {
		if p == head {
			continue
		}
		p.lag, p.lagKnown = max(head.member.LastWrite.Sub(p.member.LastWrite), 0), true
		if p.lag > lagLimit {
			x.add(Finding{Stage: "lag", Server: p.addr, Severity: Trouble,
				Cause: fmt.Sprintf("the secondary is about %s behind", event.FormatDuration(p.lag.Round(time.Second))),
				Cure:  "look for a slow disk or network, or a long index build; hide a member that is delayed on purpose; maxStalenessSeconds (90 or more) keeps reads away from it"})
		}
	}
}

func asError(err error) *mongoerr.Error {
	if e, ok := err.(*mongoerr.Error); ok {
		return e
	}
	return nil
}

// span writes a time that is longer than seconds as people say it.
func span(d time.Duration) string {
	if d < 2*time.Minute {
		return event.FormatDuration(d.Round(time.Second))
	}
	return fmt.Sprintf("%.0f minutes", d.Minutes())
}
