package doctor

import (
	"fmt"
	"strings"

	"github.com/sextantdb/sextant/event"
)

// ours are the members that the set names and that answer as such a kind.
func (x *examination) ours(is func(event.Kind) bool) (out []*probe) {
	for _, a := range x.roster() {
		if p := x.probe(a); p != nil && p.answered() && p.member.SetName == x.set && is(p.member.Kind) {
			out = append(out, p)
		}
	}
	return out
}

// judgeRoles says whether the set can take writes, and keep them.
func (x *examination) judgeRoles() {
	n := len(x.roster())
	primaries := x.ours(func(k event.Kind) bool { return k == event.RSPrimary })
	withData := x.ours(event.Kind.DataBearing)
	alive := x.ours(event.Kind.Known)
	majority := n/2 + 1
	switch {
	case x.cutOff():
		// What a client can not reach may be in good order: the names are the trouble, and are told of already.
	case len(primaries) == 0 && x.elsewhere() != "":
		x.add(Finding{Stage: "roles", Severity: Trouble,
			Cause: fmt.Sprintf("writes are not possible from here: the members say that %s is the primary, and it can not be reached from here", x.elsewhere()),
			Cure:  "mend the way to that member first; if it has just died, the others elect a new one within about 12 s"})
	case len(primaries) == 0 && len(alive) < majority:
		cure := "bring back members until a majority is up"
		if len(withData) > 0 {
			cure += "; reads with secondaryPreferred or nearest go on meanwhile"
		}
		x.add(Finding{Stage: "roles", Severity: Trouble, Cure: cure,
			Cause: fmt.Sprintf("there is no primary, so writes are not possible: %d of %d members answer, and %d must agree to elect one", len(alive), n, majority)})
	case len(primaries) == 0:
		x.add(Finding{Stage: "roles", Severity: Trouble,
			Cause: fmt.Sprintf("there is no primary, so writes are not possible, though %d of %d members answer", len(alive), n),
			Cure:  "an election takes about 12 s: try again; if none comes, the members may not reach each other or none may stand (priority 0): see rs.status()"})
	case len(primaries) > 1:
		x.add(Finding{Stage: "roles", Severity: Trouble,
			Cause: fmt.Sprintf("%d members take themselves for the primary: %s", len(primaries), addresses(primaries)),
			Cure:  "the older one steps down as soon as it hears of the newer; if it lasts, a network between them is cut"})
	case len(withData) < majority:
		x.add(Finding{Stage: "roles", Severity: Trouble,
			Cause: fmt.Sprintf("writes with w: majority wait: %d members with data are up, and %d of %d must confirm (arbiters hold no data)", len(withData), majority, n),
			Cure:  "bring back members with data"})
	}
}

// elsewhere is the primary that members name and that does not answer here as one; empty if they name none.
func (x *examination) elsewhere() string {
	for _, p := range x.ours(event.Kind.Known) {
		if there := p.member.Primary; there != "" && there != p.addr {
			if q := x.probe(there); q == nil || !q.answered() {
				return there
			}
		}
	}
	return ""
}

func addresses(probes []*probe) string {
	var out []string
	for _, p := range probes {
		out = append(out, p.addr)
	}
	return strings.Join(out, ", ")
}
