package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// sentence is the verdict in one line of plain words: what was wanted, and who serves or why nobody does.
func (t *trial) sentence(found int) string {
	d, w := t.d, t.w
	where := ""
	if d.Kind.IsReplicaSet() && d.SetName != "" {
		where = " in set " + d.SetName
	}
	if found > 0 {
		return fmt.Sprintf("%d of %s serve%s %s%s", found, count(len(d.Servers), "member"), plural(found, "s", ""), w, where)
	}
	head := "no member serves " + w.String() + where + ": "
	if err := d.Invalid(*w); err != nil {
		return head + Short(err)
	}
	if t.fault != nil {
		return head + Short(t.fault)
	}
	if d.Kind == event.Single && len(d.Servers) == 1 && mongoerr.IsConfig(d.Servers[0].Err) {
		return head + Short(d.Servers[0].Err)
	}
	if w.Address != "" && d.Server(w.Address) == nil {
		return head + w.Address + " is not in the topology any more"
	}
	var parts []string
	if t.wantsPrimary() && d.Kind == event.ReplicaSetNoPrimary && len(d.Servers) > 0 {
		parts = append(parts, t.noPrimary())
	}
	for _, r := range d.Removed {
		if d.refused(r) {
			parts = append(parts, r.Addr+" "+r.Reason)
		}
	}
	parts = append(parts, t.tally()...)
	if len(parts) == 0 {
		parts = append(parts, "no member is known")
	}
	return head + strings.Join(parts, ", ")
}

// refused says whether a removal may be why nobody serves: always, unless the set is healthy without the server.
func (d *Description) refused(r Removal) bool {
	return d.Server(r.Addr) == nil && d.Primary() == nil
}

func (t *trial) wantsPrimary() bool {
	return t.w.Address == "" && t.d.mode(t.w) == readpref.PrimaryMode
}

// noPrimary says that there is none and, where some member answers, that one is likely to come.
func (t *trial) noPrimary() string {
	for _, s := range t.d.Servers {
		if s.Kind == event.RSSecondary {
			return "there is no primary (an election may be in progress)"
		}
	}
	return "no primary is known"
}

// group is members that fall for the same reason.
type group struct {
	rank      int    // the telling reasons come first
	one, many string // what is said of one member, of several
	kinds     []event.Kind
	notes     []string // distinct causes, for the brackets
}

// tally counts the members by what is wrong with them: "2 secondaries have other tags", "1 member unreachable (connection
// refused)", "1 is the primary".
func (t *trial) tally() []string {
	var groups []*group
	for i, s := range t.d.Servers {
		g, note := t.groupOf(i)
		at := slices.IndexFunc(groups, func(o *group) bool { return o.one == g.one })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &g)
		}
		in := groups[at]
		in.kinds = append(in.kinds, s.Kind)
		if note != "" && !slices.Contains(in.notes, note) {
			in.notes = append(in.notes, note)
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return a.rank - b.rank })
	out := make([]string, len(groups))
	for i, g := range groups {
		out[i] = g.String()
	}
	return out
}

// groupOf says in which group a server falls, and what to note in its brackets.
func (t *trial) groupOf(i int) (g group, note string) {
	s, r := t.d.Servers[i], t.why[i]
	switch r.rule {
	case ruleTags:
		return group{rank: 0, one: "has other tags", many: "have other tags"}, ""
	case ruleStale:
		limit := event.FormatDuration(r.limit)
		return group{rank: 0, one: "is staler than " + limit, many: "are staler than " + limit}, ""
	case ruleSelector:
		return same(0, "dropped by the caller's selector"), ""
	case ruleQuarantined:
		return same(0, "in quarantine"), t.d.Quarantined[s.Addr]
	case ruleUnavailable:
		if s.Err == nil {
			text, where := t.unheard(s)
			return same(2, text), where
		}
		return s.troubleGroup(), Short(s.Err)
	case ruleKind:
		return kindGroup(s.Kind), ""
	}
	return same(4, "not asked for"), ""
}

func same(rank int, text string) group { return group{rank: rank, one: text, many: text} }

// troubleGroup is for a server that is Unknown because something went wrong.
func (s *Server) troubleGroup() group {
	switch trouble := s.trouble(); trouble {
	case troubleLogin:
		return group{rank: 1, one: trouble, many: "refuse the login"}
	case troubleState:
		return group{rank: 1, one: trouble, many: "change their state"}
	default:
		return same(1, trouble)
	}
}

// kindGroup is for members of a kind that was not wanted. Its texts stand alone: "2 are secondaries".
func kindGroup(k event.Kind) group {
	one, many := "is "+k.String(), "are "+k.String()
	switch k {
	case event.RSPrimary:
		one = "is the primary"
	case event.RSSecondary:
		one, many = "is a secondary", "are secondaries"
	case event.RSArbiter:
		one, many = "is an arbiter", "are arbiters"
	case event.RSOther:
		one, many = "is hidden, starting up or recovering", "are hidden, starting up or recovering"
	case event.RSGhost:
		one, many = "is in no initiated set", "are in no initiated set"
	}
	return group{rank: 3, one: one, many: many}
}

// String counts the group.
func (g *group) String() string {
	n := len(g.kinds)
	s := strconv.Itoa(n)
	if g.rank != 3 {
		s = count(n, g.noun())
	}
	s += " " + plural(n, g.one, g.many)
	if len(g.notes) == 0 {
		return s
	}
	const shown = 2
	notes := g.notes
	if len(notes) > shown {
		notes = append(slices.Clone(notes[:shown]), "...")
	}
	return s + " (" + strings.Join(notes, "; ") + ")"
}

// noun is "secondary" if all are, else "member".
func (g *group) noun() string {
	if slices.ContainsFunc(g.kinds, func(k event.Kind) bool { return k != event.RSSecondary }) {
		return "member"
	}
	return "secondary"
}

func count(n int, noun string) string {
	switch word, y := strings.CutSuffix(noun, "y"); {
	case n == 1:
		return "1 " + noun
	case y:
		return fmt.Sprintf("%d %sies", n, word)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
