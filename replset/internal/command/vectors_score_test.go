package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// score counts what passes, by group and by operator.
type score struct {
	file            string
	passed, total   int
	group, operator map[string]*[2]int
	failed          []string
	passes          map[string]bool
	old             map[string]bool // of those, what only version 4.0 answers so
	unlisted        []string        // failed, and not one of the known differences
}

func newScore(file string) *score {
	return &score{file: file, group: map[string]*[2]int{}, operator: map[string]*[2]int{}, passes: map[string]bool{}, old: map[string]bool{}}
}

// add notes how a vector ended. cause is what the list of differences says of it, "" if nothing.
func (s *score) add(v vector, err error, cause string) {
	s.total++
	s.passes[v.id] = err == nil
	hit := 1
	if err != nil {
		hit = 0
		s.failed = append(s.failed, fmt.Sprintf("%s (%s): %v", v.id, cause, err))
		if cause == "" {
			s.unlisted = append(s.unlisted, v.id)
		}
	}
	if s.old[v.id] && cause == "" {
		s.unlisted = append(s.unlisted, v.id)
	}
	s.passed += hit
	count(s.group, v.group(), hit)
	ops := map[string]bool{}
	for _, key := range []string{"filter", "options", "op", "findAndModify", "pipeline", "command", "steps"} {
		collectOperators(v.get(key), ops)
	}
	for o := range ops {
		count(s.operator, o, hit)
	}
}

func count(m map[string]*[2]int, key string, hit int) {
	if m[key] == nil {
		m[key] = new([2]int)
	}
	m[key][0] += hit
	m[key][1]++
}

func collectOperators(v bson.RawValue, into map[string]bool) {
	for k, e := range value.Doc(v).All() {
		if strings.HasPrefix(k, "$") {
			into[k] = true
		}
		collectOperators(e, into)
	}
}

func (s *score) print(t *testing.T) {
	var b strings.Builder
	for _, f := range s.failed {
		fmt.Fprintf(&b, "FAIL %s\n", f)
	}
	for _, id := range slices.Sorted(maps.Keys(s.old)) {
		fmt.Fprintf(&b, "AS 4.0 %s\n", id)
	}
	b.WriteString("by operator:")
	for _, k := range slices.Sorted(maps.Keys(s.operator)) {
		fmt.Fprintf(&b, " %s %d/%d", k, s.operator[k][0], s.operator[k][1])
	}
	b.WriteString("\nby group:")
	for _, k := range slices.Sorted(maps.Keys(s.group)) {
		fmt.Fprintf(&b, " %s %d/%d", k, s.group[k][0], s.group[k][1])
	}
	fmt.Fprintf(&b, "\n%s: %d of %d pass", s.file, s.passed, s.total)
	t.Log("\n" + b.String())
}

// judge holds the score against what was reached before, and the failures against the list of differences.
func (s *score) judge(t *testing.T, pinned int, listed map[string]string) {
	if s.passed < pinned {
		t.Errorf("%s: %d vectors pass, %d did before", s.file, s.passed, pinned)
	} else if s.passed > pinned {
		t.Errorf("%s: %d pass, %d are pinned: raise testdata/vectors.count", s.file, s.passed, pinned)
	}
	if len(s.unlisted) > 0 {
		t.Errorf("%s: are answered otherwise and not listed in testdata/differences.tsv: %s", s.file, strings.Join(s.unlisted, " "))
	}
	for id := range listed {
		if s.passes[id] && !s.old[id] {
			t.Errorf("%s passes: take it off testdata/differences.tsv, and lower its count", id)
		}
	}
}
