package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sextantdb/sextant/mongoerr"
)

// check is one claim of a run, with what was measured for it.
type check struct {
	Section  string `json:"section"`
	Name     string `json:"name"`
	Passed   bool   `json:"passed"`
	Measured string `json:"measured"`
}

// printer says how a run goes. Each has one way of printing and no opinion on what is checked.
type printer interface {
	section(title string)
	say(format string, args ...any)
	progress(format string, args ...any) // what is so at this moment; only a terminal shows it
	table(rows [][]string)               // the first row is the head
	row(cells []string, done bool)       // a row of a table that grows; a terminal shows it before it is done
	checked(c check)
	end(checks []check)
}

// report collects the checks of a run and hands everything to its printer.
type report struct {
	printer
	current string
	checks  []check
}

func newReport(p printer) *report { return &report{printer: p} }

func (r *report) section(title string) {
	r.current = title
	r.printer.section(title)
}

// check records one claim. measured says what was seen, whether it passed or not.
func (r *report) check(name string, passed bool, measured string, args ...any) {
	c := check{Section: r.current, Name: name, Passed: passed, Measured: fmt.Sprintf(measured, args...)}
	r.checks = append(r.checks, c)
	r.checked(c)
}

// failed lists the claims that did not hold.
func failed(checks []check) []check {
	var out []check
	for _, c := range checks {
		if !c.Passed {
			out = append(out, c)
		}
	}
	return out
}

// verdict is the last line of a run.
func verdict(checks []check) string {
	bad := failed(checks)
	if len(bad) == 0 {
		return fmt.Sprintf("all %d checks passed", len(checks))
	}
	names := make([]string, len(bad))
	for i, c := range bad {
		names[i] = fmt.Sprintf("%s (%s)", c.Name, c.Measured)
	}
	return fmt.Sprintf("%d of %d checks failed: %s", len(bad), len(checks), strings.Join(names, "; "))
}

// plain prints one line a thing, for pipes and logs.
type plain struct{ w io.Writer }

func (p plain) section(title string)           { fmt.Fprintf(p.w, "\n== %s\n", title) }
func (p plain) say(format string, args ...any) { fmt.Fprintf(p.w, "   "+format+"\n", args...) }
func (p plain) progress(string, ...any)        {}

func (p plain) table(rows [][]string) {
	for _, line := range align(rows) {
		fmt.Fprintf(p.w, "   %s\n", line)
	}
}

func (p plain) row(cells []string, done bool) {
	if done {
		fmt.Fprintf(p.w, "   %s\n", spread(cells))
	}
}

func (p plain) checked(c check) {
	mark := "ok  "
	if !c.Passed {
		mark = "FAIL"
	}
	fmt.Fprintf(p.w, "%s %s: %s\n", mark, c.Name, c.Measured)
}

func (p plain) end(checks []check) { fmt.Fprintf(p.w, "\n%s\n", verdict(checks)) }

// live is plain with colour, and with a line at the foot that is rewritten in place.
type live struct{ plain }

const (
	clearLine = "\r\x1b[2K"
	bold      = "\x1b[1m"
	green     = "\x1b[32m"
	red       = "\x1b[31m"
	grey      = "\x1b[90m"
	reset     = "\x1b[0m"
)

func (l live) section(title string) {
	fmt.Fprintf(l.w, "%s\n%s%s%s\n", clearLine, bold, title, reset)
}

func (l live) say(format string, args ...any) {
	fmt.Fprintf(l.w, clearLine+"   "+format+"\n", args...)
}

func (l live) progress(format string, args ...any) {
	fmt.Fprintf(l.w, clearLine+grey+"   "+format+reset, args...)
}

func (l live) table(rows [][]string) {
	fmt.Fprint(l.w, clearLine)
	for i, line := range align(rows) {
		if i == 0 {
			line = grey + line + reset
		}
		fmt.Fprintf(l.w, "   %s\n", line)
	}
}

func (l live) row(cells []string, done bool) {
	if !done {
		l.progress("%s", spread(cells))
		return
	}
	fmt.Fprint(l.w, clearLine)
	l.plain.row(cells, done)
}

func (l live) checked(c check) {
	mark := green + " ✓ " + reset
	if !c.Passed {
		mark = red + " ✗ " + reset
	}
	fmt.Fprintf(l.w, "%s%s%s: %s\n", clearLine, mark, c.Name, c.Measured)
}

func (l live) end(checks []check) {
	colour := green
	if len(failed(checks)) > 0 {
		colour = red
	}
	fmt.Fprintf(l.w, "%s\n%s%s%s\n", clearLine, colour, verdict(checks), reset)
}

// quiet prints the last line only.
type quiet struct{ plain }

func (quiet) section(string)       {}
func (quiet) say(string, ...any)   {}
func (quiet) table([][]string)     {}
func (quiet) row([]string, bool)   {}
func (quiet) checked(check)        {}
func (q quiet) end(checks []check) { fmt.Fprintln(q.w, verdict(checks)) }

// asJSON prints one document at the end.
type asJSON struct{ quiet }

func (a asJSON) end(checks []check) {
	bad := len(failed(checks))
	printJSON(a.w, map[string]any{"passed": len(checks) - bad, "failed": bad, "checks": checks})
}

// printJSON writes v indented, with a newline after it.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// spread sets a row of a table that grows, whose widths cannot be known in advance.
func spread(cells []string) string {
	var b strings.Builder
	for i, cell := range cells {
		width := 8
		if i == 0 {
			width = 20
		}
		fmt.Fprintf(&b, "%-*s", width, cell)
	}
	return strings.TrimRight(b.String(), " ")
}

// align pads the cells of every column to one width. What a server says of itself stays inside its cell.
func align(rows [][]string) []string {
	rows = slices.Clone(rows)
	var widths []int
	for n, row := range rows {
		rows[n] = slices.Clone(row)
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			rows[n][i] = mongoerr.OneLine(cell)
			widths[i] = max(widths[i], len([]rune(rows[n][i])))
		}
	}
	out := make([]string, len(rows))
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", widths[i]-len([]rune(cell))))
		}
		out[n] = strings.TrimRight(b.String(), " ")
	}
	return out
}
