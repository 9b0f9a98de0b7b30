package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sextantdb/sextant/event"
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
		return head + err.Error()
	}
	if w.Address != "" && d.Server(w.Address) == nil {
		return head + w.Address + " is not in the topology any more"
	}
	var parts []string
	if t.wantsPrimary() && d.Kind == event.ReplicaSetNoPrimary && len(d.Servers) > 0 {
		parts = append(parts, t.noPrimary())
	}
	parts = append(parts, t.tally()...)
	for _, r := range d.Removed {
		if d.refused(r) {
			parts = append(parts, r.Addr+" "+r.Reason)
		}
	}
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
	text  string // "%s have other tags"; %s is the counted noun
	kinds []event.Kind
	notes []string // distinct causes in brackets
}

// tally counts the members by what is wrong with them: "2 secondaries have other tags", "1 member unreachable (connection
// refused)".
func (t *trial) tally() []string {
	var groups []*group
	for i, s := range t.d.Servers {
		text, note := t.tallyText(i)
		at := slices.IndexFunc(groups, func(g *group) bool { return g.text == text })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &group{text: text})
		}
		g := groups[at]
		g.kinds = append(g.kinds, s.Kind)
		if note != "" && !slices.Contains(g.notes, note) {
			g.notes = append(g.notes, note)
		}
	}
	out := make([]string, len(groups))
	for i, g := range groups {
		out[i] = g.String()
	}
	return out
}

// String counts the group: what stands before "|" in its text is for one member, what stands after it for several.
func (g *group) String() string {
	one, many, split := strings.Cut(g.text, "|")
	text := one
	if split && len(g.kinds) > 1 {
		text = many
	}
	s := count(len(g.kinds), noun(g.kinds)) + " " + text
	if len(g.notes) > 0 {
		const shown = 2
		notes := g.notes
		if len(notes) > shown {
			notes = append(slices.Clone(notes[:shown]), "...")
		}
		s += " (" + strings.Join(notes, "; ") + ")"
	}
	return s
}

func (t *trial) tallyText(i int) (text, note string) {
	s, r := t.d.Servers[i], t.why[i]
	switch r.rule {
	case ruleUnavailable:
		if s.Err == nil {
			return "not checked yet", ""
		}
		trouble := s.trouble()
		switch trouble {
		case "refuses the login":
			trouble = "refuses the login|refuse the login"
		case "changes its state":
			trouble = "changes its state|change their state"
		}
		return trouble, Short(s.Err)
	case ruleTags:
		return "has other tags|have other tags", ""
	case ruleStale:
		return "is staler than " + event.FormatDuration(r.limit) + "|are staler than " + event.FormatDuration(r.limit), ""
	case ruleSelector:
		return "dropped by the caller's selector", ""
	case ruleKind:
		return "can not serve it", ""
	case ruleNotAsked:
		return "not asked for", ""
	}
	return "out of question", ""
}

// noun is the common name of kinds: "secondary" if all are, else "member".
func noun(kinds []event.Kind) string {
	for _, k := range kinds {
		if k != kinds[0] {
			return "member"
		}
	}
	switch kinds[0] {
	case event.RSPrimary:
		return "primary"
	case event.RSSecondary:
		return "secondary"
	case event.RSArbiter:
		return "arbiter"
	case event.RSGhost:
		return "member without a set"
	case event.RSOther:
		return "hidden or starting member"
	}
	return "member"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if word, found := strings.CutSuffix(noun, "y"); found {
		return fmt.Sprintf("%d %sies", n, word)
	}
	if before, after, found := strings.Cut(noun, " without"); found {
		return fmt.Sprintf("%d %ss without%s", n, before, after)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
