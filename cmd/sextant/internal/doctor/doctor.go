// Package doctor follows a connection string stage by stage and says why this host cannot reach a deployment, or what is
// wrong with it: each finding with its cause and its cure. It looks at servers one by one, with the driver's public API,
// then at the set that they make, then does what a program would do first. Proxies and certificates it asks by itself, for
// what the driver does not tell. It writes nothing.
//
// Examine starts goroutines for its lookups and connections and waits for them; it ends within its time limit.
package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
)

// Verdict is the outcome of an examination.
type Verdict string

// Verdicts.
const (
	Healthy     Verdict = "healthy"
	Degraded    Verdict = "degraded"    // operations are served, but something is wrong
	Unreachable Verdict = "unreachable" // no operation is served
)

// Severity is how much a finding matters.
type Severity string

// Severities.
const (
	Note    Severity = "note"    // worth knowing, does no harm by itself
	Warning Severity = "warning" // works today, and is dangerous or about to fail; the verdict does not count it
	Trouble Severity = "trouble" // something does not work as it should
)

// weight puts first what matters most.
var weight = map[Severity]int{Trouble: 0, Warning: 1, Note: 2}

// Finding is one thing that was noticed. Its words hold no secret.
type Finding struct {
	Stage    string   `json:"stage"`  // uri dns proxy dial tls hello set names roles lag clock versions auth routing
	Server   string   `json:"server"` // empty: it is about no single one
	Severity Severity `json:"severity"`
	Cause    string   `json:"cause"`
	Cure     string   `json:"cure"`
}

// String is a finding in three lines.
func (f Finding) String() string {
	where := f.Stage
	if f.Server != "" {
		where += ", " + f.Server
	}
	line := mongoerr.OneLine // for a set may have any name, and a server any words
	return fmt.Sprintf("%s: %s\n  cause: %s\n  cure:  %s", f.Severity, line(where), line(f.Cause), line(f.Cure))
}

// Diagnosis is the result of an examination.
type Diagnosis struct {
	Verdict  Verdict   `json:"verdict"`
	Findings []Finding `json:"findings"` // never nil
	Heading  []string  `json:"-"`        // what the connection string asks for, a line each, without secrets

	probes []*probe
}

func (d *Diagnosis) add(f Finding) { d.Findings = append(d.Findings, f) }

// Page are the findings to be read by people: what is the same for several servers is said once.
func (d *Diagnosis) Page() []Finding {
	var out []Finding
	for _, f := range d.Findings {
		i := slices.IndexFunc(out, func(o Finding) bool {
			return o.Stage == f.Stage && o.Severity == f.Severity && o.Cause == f.Cause && o.Cure == f.Cure
		})
		if i < 0 || f.Server == "" {
			out = append(out, f)
			continue
		}
		out[i].Server += ", " + f.Server
	}
	return out
}

// troubled says whether a finding is more than a note.
func (d *Diagnosis) troubled() bool {
	for _, f := range d.Findings {
		if f.Severity == Trouble {
			return true
		}
	}
	return false
}

// Table has a row for each server that was asked, below a head.
func (d *Diagnosis) Table() [][]string {
	rows := [][]string{{"server", "named by", "address", "dial", "hello", "kind", "version", "lag", "clock", "tags"}}
	for _, p := range d.probes {
		rows = append(rows, p.row())
	}
	return rows
}

func (p *probe) row() []string {
	out := []string{p.addr, p.by, "-", "-", "-", "-", "-", "-", "-", "-"}
	if len(p.ips) > 0 {
		out[2] = strings.Join(p.ips[:min(len(p.ips), 2)], " ")
	}
	if p.tap.took > 0 {
		out[3] = event.FormatDuration(p.tap.took)
	}
	if !p.answered() {
		out[5] = "no address"
		if p.failed != nil {
			out[5] = stageName(p.failed.Stage) + " failed"
		}
		return out
	}
	if p.member.RTT > 0 {
		out[4] = event.FormatDuration(p.member.RTT)
	}
	out[5] = p.member.Kind.String()
	out[6] = p.version
	if p.lagKnown {
		out[7] = event.FormatDuration(p.lag.Round(100 * time.Millisecond))
	}
	if p.skewKnown {
		out[8] = event.FormatDuration(p.skew.Round(100 * time.Millisecond))
	}
	if len(p.member.Tags) > 0 {
		out[9] = tagText(p.member.Tags)
	}
	return out
}

func tagText(tags map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, k+":"+tags[k])
	}
	return strings.Join(out, ",")
}

// headline is the first line of an error.
func headline(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// within is a context for one step, which may use a part of the whole time.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}
