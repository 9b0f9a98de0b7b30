package main

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// score is what a run of the official runner came to, its cases alone: a suite that has cases is none.
type score struct {
	passed, skipped int
	failed          []failure
}

type failure struct{ name, text string }

// cause is what many failures have in common.
type cause struct {
	name  string
	cases []failure
}

var (
	verdict = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+) \(`)
	turn    = regexp.MustCompile(`^=== (?:RUN|NAME|CONT|PAUSE)\s+(\S+)`)
)

// read takes the verdicts, and what each case said, out of what "go test -v" prints.
func read(out string) *score {
	verdicts, said := map[string]string{}, map[string][]string{}
	var order []string
	at := ""
	for line := range strings.Lines(out) {
		if m := verdict.FindStringSubmatch(line); m != nil {
			at = m[2]
			verdicts[at] = m[1]
			order = append(order, at)
		} else if m := turn.FindStringSubmatch(line); m != nil {
			at = m[1]
		} else if text := strings.TrimSpace(line); text != "" {
			said[at] = append(said[at], text)
		}
	}
	suites := map[string]bool{}
	for name := range verdicts {
		for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name[:i], '/') {
			suites[name[:i]] = true
		}
	}
	s := &score{}
	for _, name := range order {
		switch {
		case suites[name]:
		case verdicts[name] == "PASS":
			s.passed++
		case verdicts[name] == "SKIP":
			s.skipped++
		case !strings.Contains(name, "client-side-encryption/tests/unified"): // which has no cases: the tests are not there
			s.failed = append(s.failed, failure{strings.TrimPrefix(name, "TestUnifiedSpec/"), strings.Join(said[name], " ")})
		}
	}
	return s
}

// signs tell causes apart, the first that fits; $1 is the sign's group.
var signs = []struct {
	sign *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`multi-document transactions`), "transactions are not served"},
	{regexp.MustCompile(`readConcern level snapshot`), "snapshot reads outside transactions are not served"},
	{regexp.MustCompile(`stage name: '?(\$[A-Za-z]+)`), "stage $1 is not known"},
	{regexp.MustCompile(`no such command: '(\w+)'`), "command $1 is not known"},
	{regexp.MustCompile(`the fail point (\w+)`), "fail point $1 is not there"},
	{regexp.MustCompile(`creating fail point: (.{0,100})`), "fail point: $1"},
	{regexp.MustCompile(`expected no error, but got (.{0,90})`), "refused: $1"},
	{regexp.MustCompile(`expected error.{0,20}got nil`), "an error was expected"},
	{regexp.MustCompile(`error response comparison`), "the document of an error differs"},
	{regexp.MustCompile(`expected error (.{0,60})`), "another error: $1"},
	{regexp.MustCompile(`events? (?:verification|comparison)`), "events differ"},
	{regexp.MustCompile(`log messages`), "log messages differ"},
	{regexp.MustCompile(`result (?:comparison|verification)|comparison error`), "results differ"},
}

func causeOf(text string) string {
	for _, s := range signs {
		if m := s.sign.FindStringSubmatchIndex(text); m != nil {
			return string(s.sign.ExpandString(nil, s.name, text, m))
		}
	}
	return "other: " + text[:min(len(text), 80)]
}

// causes are the failures by cause, the most frequent first.
func (s *score) causes() []cause {
	at := map[string]int{}
	var out []cause
	for _, f := range s.failed {
		name := causeOf(f.text)
		i, ok := at[name]
		if !ok {
			i = len(out)
			at[name] = i
			out = append(out, cause{name: name})
		}
		out[i].cases = append(out[i].cases, f)
	}
	slices.SortStableFunc(out, func(a, b cause) int { return cmp.Compare(len(b.cases), len(a.cases)) })
	return out
}
