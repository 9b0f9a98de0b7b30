package event

import (
	"fmt"
	"strings"
	"time"
)

// Verdict says, member by member, who may serve an operation and why the others may not. An explain, the text of a
// failed selection, a log line and a dashboard print the same Verdict.
type Verdict struct {
	Want     string // what was asked for: `a read with mode secondary, tags [{dc: "north"}]`
	Sentence string // the outcome in one plain sentence
	Topology TopologyKind
	SetName  string
	Members  []MemberVerdict
	Cause    error // the failure that most likely explains why nobody serves; nil if there is none
}

// MemberVerdict is the verdict on one member.
type MemberVerdict struct {
	Address  string
	Kind     Kind
	Eligible bool
	Rule     string  // the rule that let it stay or made it fall, with its numbers: "40 ms > 2 ms + 15 ms"
	Load     int     // operations of this client that use a connection to the member or wait for one; of eligible members
	Chance   float64 // that the next such operation goes there: of two candidates taken at random the less loaded one
	RTT      time.Duration
	Lag      time.Duration
	LagKnown bool
	Tags     map[string]string
}

// Eligible returns the addresses of the members that may serve.
func (v Verdict) Eligible() []string {
	var out []string
	for _, m := range v.Members {
		if m.Eligible {
			out = append(out, m.Address)
		}
	}
	return out
}

// String is the sentence, then a line for each member.
func (v Verdict) String() string {
	var b strings.Builder
	b.WriteString(v.Sentence)
	for _, m := range v.Members {
		b.WriteString("\n  " + m.String())
	}
	return b.String()
}

// String is one line: "+ db1:27017 RSSecondary: 2 ms <= 2 ms + 15 ms, 3 operations under way, chance 67 %", or
// "- db2:27017 RSPrimary: ...". A chance that is certain is not told.
func (m MemberVerdict) String() string {
	sign := "- "
	if m.Eligible {
		sign = "+ "
	}
	s := sign + m.Address + " " + m.Kind.String() + ": " + m.Rule
	if !m.Eligible || m.Chance >= 1 || m.Chance == 0 && m.Load == 0 { // certain, or not worked out
		return s
	}
	switch {
	case m.Load == 1:
		s += ", 1 operation under way"
	case m.Load > 1:
		s += fmt.Sprintf(", %d operations under way", m.Load)
	}
	return s + fmt.Sprintf(", chance %.3g %%", 100*m.Chance)
}
