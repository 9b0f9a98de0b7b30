package conformance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/sextantdb/sextant/conformance/corpus"
)

// suite is the cases of one kind of one specification.
type suite struct {
	spec, kind string
	pinned     int // how many cases there are
	load       func(dir string) ([]Case, error)
	flip       func(name string, file map[string]any) (cases []string) // for the test of the harness
}

// suites are all that are run. A new one needs its line here.
var suites = []suite{
	{"bson-corpus", "pure", 983, loadBSON, flipBSON},
	{"bson-binary-vector", "pure", 22, loadVectors, flipVectors},
	{"server-selection", "pure", 103, loadServerSelection, flipSelection},
	{"max-staleness", "pure", 32, loadMaxStaleness, flipSelection},
	{"server-discovery-and-monitoring", "pure", 186, loadSDAM, flipSDAM},
	{"connection-monitoring-and-pooling", "unit", 26, loadCMAP("unit"), flipCMAP},
	{"connection-monitoring-and-pooling", "integration", 7, loadCMAP("integration"), flipCMAP},
	{"connection-string", "pure", 98, loadURIs, flipURIs},
	{"uri-options", "pure", 159, loadURIs, flipURIs},
	{"auth", "pure", 67, loadAuth, flipAuth},
	{"initial-dns-seedlist-discovery", "pure", 53, loadSeedlists, flipSeedlists},
	{"read-write-concern", "pure", 38, loadConcerns, flipConcerns},
}

// maxSkips pins the length of skips.tsv: lower it when a line goes, never raise it.
const maxSkips = 0

// EnvScore names the file of the score, relative to the module's root. Without it no score is written.
const EnvScore = "SEXTANT_SCORE"

var score Score

func TestMain(m *testing.M) {
	flag.Parse()
	path := os.Getenv(EnvScore)
	if path == "" {
		os.Exit(m.Run())
	}
	if !filepath.IsAbs(path) {
		root, err := corpus.Root()
		exitOn(err)
		path = filepath.Join(root, path)
	}
	exitOn(Remove(path))
	code := m.Run()
	fmt.Print(score.Table())
	exitOn(score.Write(path))
	os.Exit(code)
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestSpec runs every suite against the corpus.
func TestSpec(t *testing.T) {
	skips, err := ReadSkips("skips.tsv")
	if err != nil {
		t.Fatal(err)
	}
	if len(skips) > maxSkips {
		t.Errorf("skips.tsv has %d lines, %d are allowed: it only gets shorter", len(skips), maxSkips)
	}
	for _, s := range suites {
		t.Run(s.spec+"/"+s.kind, func(t *testing.T) {
			dir := corpus.Need(t, s.spec)
			cases, err := s.load(dir)
			corpus.Check(t, err)
			if len(cases) != s.pinned {
				t.Errorf("%d cases in %s, %d are pinned: the corpus lost or gained files", len(cases), dir, s.pinned)
			}
			for _, c := range cases {
				t.Run(c.Name, func(t *testing.T) { runCase(t, s, c, skips) })
			}
		})
	}
}

// run runs the case, on fake time if it waits.
func (c *Case) run(t *testing.T) (err error) {
	if !c.Timed {
		return c.Run()
	}
	synctest.Test(t, func(*testing.T) { err = c.Run() })
	return err
}

// runCase runs and counts one case. A case on the list of skips must fail.
func runCase(t *testing.T, s suite, c Case, skips []Skip) {
	listed := slices.ContainsFunc(skips, func(k Skip) bool { return k.Spec == s.spec && k.Case == c.Name })
	err := c.run(t)
	switch {
	case err == nil && listed:
		t.Errorf("passes, but is on the list of skips: take it off")
		score.Add(s.spec, s.kind, Passed)
	case err == nil:
		score.Add(s.spec, s.kind, Passed)
	case listed:
		score.Add(s.spec, s.kind, Skipped)
	default:
		score.Add(s.spec, s.kind, Failed)
		t.Error(err)
	}
}
