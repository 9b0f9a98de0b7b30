package value

import (
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"github.com/sextantdb/sextant/mongoerr"
)

// matchTimeout ends a pattern that would try for ever, when the engine that backtracks, as the server's does, is needed.
// That engine starts a clock of its own, which no test on fake time survives.
const matchTimeout = 2 * time.Second

// maxPattern is the longest pattern, in bytes, that the server compiles.
const maxPattern = 32764

// Regex is a compiled regular expression with look-around, as PCRE has it.
type Regex struct {
	Pattern, Options string
	re               *regexp2.Regexp
	hurried          *regexp2.Regexp // the same, never run: copies of it are, with a limit of their own
	linear           *regexp.Regexp  // the same for the linear engine, nil if it cannot do it
}

var regexFlags = map[rune]regexp2.RegexOptions{
	'i': regexp2.IgnoreCase,
	'm': regexp2.Multiline,
	's': regexp2.Singleline,
	'x': regexp2.IgnorePatternWhitespace,
}

// CompileRegex compiles a pattern with the options i, m, s, x; other letters are ignored as the server ignores them.
func CompileRegex(pattern, options string) (*Regex, error) {
	if len(pattern) > maxPattern {
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "Regular expression is too long")
	}
	var flags regexp2.RegexOptions
	for _, c := range options {
		flags |= regexFlags[c]
	}
	re, err := regexp2.Compile(asciiClasses(fromPCRE(pattern)), flags)
	if err != nil {
		return nil, mongoerr.Server(51091, "Regular expression is invalid: %s", err)
	}
	re.MatchTimeout = matchTimeout
	hurried := *re
	return &Regex{Pattern: pattern, Options: options, re: re, hurried: &hurried, linear: linear(asciiClasses(fromPCRE(pattern)), options)}, nil
}

// fromPCRE rewrites what PCRE says otherwise than the engine: quoting by \Q...\E and Python's way to name groups.
func fromPCRE(p string) string {
	for {
		before, rest, ok := strings.Cut(p, `\Q`)
		if !ok {
			break
		}
		quoted, after, _ := strings.Cut(rest, `\E`)
		p = before + regexp2.Escape(quoted) + after
	}
	if !strings.Contains(p, "(?P") {
		return p
	}
	p = strings.ReplaceAll(p, "(?P<", "(?<")
	return pythonReference.ReplaceAllString(p, `\k<$1>`)
}

var pythonReference = regexp.MustCompile(`\(\?P=(\w+)\)`)

// asciiClasses replaces the class letters that mean Unicode to the engine and ASCII to the server.
func asciiClasses(p string) string {
	if !strings.Contains(p, `\`) {
		return p
	}
	var b strings.Builder
	inClass := false
	for i := 0; i < len(p); i++ {
		c := p[i]
		if c == '\\' && i+1 < len(p) {
			i++
			b.WriteString(asciiEscape(p[i], inClass))
			continue
		}
		switch c {
		case '[':
			inClass = true
		case ']':
			inClass = false
		}
		b.WriteByte(c)
	}
	return b.String()
}

func asciiEscape(c byte, inClass bool) string {
	set, negated := "", false
	switch c {
	case 'd', 'D':
		set, negated = "0-9", c == 'D'
	case 'w', 'W':
		set, negated = "0-9A-Za-z_", c == 'W'
	case 's', 'S':
		set, negated = ` \t-\r`, c == 'S'
	}
	switch {
	case set == "" || inClass && negated:
		return `\` + string(c)
	case inClass:
		return set
	case negated:
		return "[^" + set + "]"
	}
	return "[" + set + "]"
}

// Backtracks says whether a match may take a time out of all proportion to the text.
func (r *Regex) Backtracks() bool { return r.linear == nil }

// Match says whether the pattern is found anywhere in s. The error says that the pattern took too long.
func (r *Regex) Match(s string) (bool, error) { return r.MatchWithin(s, matchTimeout) }

// MatchWithin is Match with less time, if limit is less than what a pattern has anyway.
func (r *Regex) MatchWithin(s string, limit time.Duration) (bool, error) {
	if r.linear != nil {
		return r.matchLinear(s), nil
	}
	re, limit := r.engine(limit)
	ok, err := re.MatchString(s)
	if err != nil {
		return false, r.tooLong(limit)
	}
	return ok, nil
}

// engine is the one that backtracks, with at most limit for a match.
func (r *Regex) engine(limit time.Duration) (*regexp2.Regexp, time.Duration) {
	if limit >= matchTimeout {
		return r.re, matchTimeout
	}
	own := *r.hurried
	own.MatchTimeout = max(limit, 0)
	return &own, own.MatchTimeout
}

func (r *Regex) tooLong(limit time.Duration) error {
	return mongoerr.Server(mongoerr.CodeBadValue, "regular expression /%s/ gave no answer within %v", r.Pattern, limit)
}

// Find gives the byte bounds of the first match at or after the given byte offset and of its groups; nil if there is none.
// A group that took no part has -1, -1.
func (r *Regex) Find(s string, from int) ([][2]int, error) {
	return r.FindWithin(s, from, matchTimeout)
}

// FindWithin is Find with less time, if limit is less than what a pattern has anyway.
func (r *Regex) FindWithin(s string, from int, limit time.Duration) ([][2]int, error) {
	if bounds, ok := r.findLinear(s, from); ok && utf8.ValidString(s) {
		return bounds, nil
	}
	runes := []rune(s)
	offsets := make([]int, 0, len(runes)+1)
	start := len(runes)
	for i := range s {
		if i == from {
			start = len(offsets)
		}
		offsets = append(offsets, i)
	}
	offsets = append(offsets, len(s))
	if len(offsets) != len(runes)+1 {
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "the text to search is not valid UTF-8")
	}
	re, limit := r.engine(limit)
	m, err := re.FindRunesMatchStartingAt(runes, start)
	if err != nil {
		return nil, r.tooLong(limit)
	}
	if m == nil {
		return nil, nil
	}
	var out [][2]int
	for _, g := range m.Groups() {
		if len(g.Captures) == 0 {
			out = append(out, [2]int{-1, -1})
			continue
		}
		out = append(out, [2]int{offsets[g.Index], offsets[g.Index+g.Length]})
	}
	return out, nil
}
