// Package conformance runs the official specification tests, counts them, and keeps the score.
//
// A suite is a list of cases read from the corpus (package corpus). Each case is a func that returns what is wrong, so
// that the harness itself can be tested: a corpus with flipped expectations must fail, and exactly there. The number of
// cases of each suite is pinned: a file that gets lost fails.
package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Case is one case of a specification's tests.
type Case struct {
	Name  string // file and description; unique in its suite
	Run   func() error
	Timed bool // it waits: it is run on fake time, in a bubble of testing/synctest
}

// Count is how a suite went.
type Count struct {
	Cases   int `json:"cases"`
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
}

// Score counts cases by specification and kind ("pure" without a server, "unified" with one). It is safe for concurrent
// use.
type Score struct {
	mu    sync.Mutex
	specs map[string]map[string]Count // guarded by mu
}

// Outcome is how one case went.
type Outcome uint8

// The outcomes.
const (
	Passed Outcome = iota
	Failed
	Skipped
)

// Add counts one case.
func (s *Score) Add(spec, kind string, o Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.specs == nil {
		s.specs = map[string]map[string]Count{}
	}
	if s.specs[spec] == nil {
		s.specs[spec] = map[string]Count{}
	}
	c := s.specs[spec][kind]
	c.Cases++
	switch o {
	case Passed:
		c.Passed++
	case Failed:
		c.Failed++
	case Skipped:
		c.Skipped++
	}
	s.specs[spec][kind] = c
}

// Count returns the count of one suite.
func (s *Score) Count(spec, kind string) Count {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.specs[spec][kind]
}

// Table prints the score, a line a suite and a line for the sum.
func (s *Score) Table() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	var sum Count
	fmt.Fprintf(&b, "%-40s %-8s %6s %6s %6s %7s\n", "specification", "kind", "cases", "passed", "failed", "skipped")
	line := func(spec, kind string, c Count) {
		fmt.Fprintf(&b, "%-40s %-8s %6d %6d %6d %7d\n", spec, kind, c.Cases, c.Passed, c.Failed, c.Skipped)
	}
	for _, spec := range slices.Sorted(maps.Keys(s.specs)) {
		for _, kind := range slices.Sorted(maps.Keys(s.specs[spec])) {
			c := s.specs[spec][kind]
			line(spec, kind, c)
			sum = Count{sum.Cases + c.Cases, sum.Passed + c.Passed, sum.Failed + c.Failed, sum.Skipped + c.Skipped}
		}
	}
	line("all", "", sum)
	return b.String()
}

// Write writes the score as JSON: {"specs": {"max-staleness": {"pure": {"cases": 32, ...}}}}.
func (s *Score) Write(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	specs := s.specs
	if specs == nil {
		specs = map[string]map[string]Count{}
	}
	data, err := json.MarshalIndent(map[string]any{"specs": specs}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// Remove deletes an old score, so that a run that dies leaves none.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Skip is a line of skips.tsv: a case that is known to fail, and why.
type Skip struct{ Spec, Case, Reason string }

// ReadSkips reads a list of specification, case and reason, parted by tabs, one a line. Lines that start with # are
// comments.
func ReadSkips(path string) ([]Skip, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []Skip
	for n, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 3 || fields[2] == "" {
			return nil, fmt.Errorf("%s:%d: specification, case and reason are needed, parted by tabs", path, n+1)
		}
		out = append(out, Skip{fields[0], fields[1], fields[2]})
	}
	return out, nil
}
