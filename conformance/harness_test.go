package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/conformance/corpus"
)

// TestHarnessReportsFlippedExpectations copies the corpus, turns the expectation of every third file into its opposite,
// and demands that exactly those cases fail: a harness that can not fail proves nothing.
func TestHarnessReportsFlippedExpectations(t *testing.T) {
	for _, s := range suites {
		if s.flip == nil {
			t.Errorf("%s/%s has no flip", s.spec, s.kind)
			continue
		}
		t.Run(s.spec+"/"+s.kind, func(t *testing.T) {
			dir := corpus.Need(t, s.spec)
			copied := filepath.Join(t.TempDir(), s.spec)
			flipped := copyFlipped(t, dir, copied, s.flip)
			cases, err := s.load(copied)
			corpus.Check(t, err)
			known := map[string]bool{}
			var failed []string
			for _, c := range cases {
				known[c.Name] = true
				if c.run(t) != nil {
					failed = append(failed, c.Name)
				}
			}
			flipped = slices.DeleteFunc(flipped, func(name string) bool { return !known[name] }) // files of other suites
			slices.Sort(flipped)
			slices.Sort(failed)
			if len(flipped) < 2 || !slices.Equal(flipped, failed) {
				t.Errorf("flipped %d cases, %d failed\nflipped %v\nfailed  %v", len(flipped), len(failed), flipped, failed)
			}
		})
	}
}

// copyFlipped copies the JSON files of a corpus and flips every third one. It returns the names of the flipped cases.
func copyFlipped(t *testing.T, from, to string, flip func(name string, file map[string]any) []string) []string {
	t.Helper()
	files, err := corpus.Files(from)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(from, f)
		if err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			var file map[string]any
			if err := json.Unmarshal(data, &file); err != nil {
				t.Fatal(err)
			}
			names = append(names, flip(strings.TrimSuffix(filepath.ToSlash(rel), ".json"), file)...)
			if data, err = json.Marshal(file); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(to, rel)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// flipSelection makes a file of server-selection or max-staleness expect what must not happen.
func flipSelection(name string, file map[string]any) []string {
	window, selects := file["in_latency_window"].([]any)
	switch {
	case strings.HasPrefix(name, "rtt/"):
		file["new_avg_rtt"] = file["new_avg_rtt"].(float64) + 1
	case strings.HasPrefix(name, "in_window/"):
		frequencies := file["outcome"].(map[string]any)["expected_frequencies"].(map[string]any)
		for addr := range frequencies {
			frequencies[addr] = 0
		}
	case file["error"] == true:
		file["error"] = false
	case !selects: // the logging cases, which are of the unified format
		return nil
	case len(window) > 0:
		file["in_latency_window"] = []any{}
	default:
		file["in_latency_window"] = []any{map[string]any{"address": "nobody:27017"}}
	}
	return []string{name}
}

// flipSDAM makes the last phase of a file expect another topology, or one event less.
func flipSDAM(name string, file map[string]any) []string {
	phases, ok := file["phases"].([]any)
	if !ok {
		return nil
	}
	outcome := phases[len(phases)-1].(map[string]any)["outcome"].(map[string]any)
	if events, ok := outcome["events"].([]any); ok {
		outcome["events"] = events[:len(events)-1]
	} else {
		outcome["topologyType"] = "Flipped"
	}
	return []string{name}
}

func TestReadSkipsRefusesLinesWithoutReason(t *testing.T) {
	path := filepath.Join(t.TempDir(), "skips.tsv")
	write := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("# comment\n\ncrud\tfile: case\tnot yet\n")
	if skips, err := ReadSkips(path); err != nil || len(skips) != 1 || skips[0] != (Skip{"crud", "file: case", "not yet"}) {
		t.Errorf("got %v, %v", skips, err)
	}
	write("crud\tcase\n")
	if _, err := ReadSkips(path); err == nil || !strings.Contains(err.Error(), "skips.tsv:1") {
		t.Errorf("got %v", err)
	}
}

func TestScoreIsWrittenAsDocumented(t *testing.T) {
	var s Score
	s.Add("crud", "unified", Passed)
	s.Add("crud", "unified", Failed)
	s.Add("crud", "unified", Skipped)
	path := filepath.Join(t.TempDir(), "build", "score.json")
	if err := s.Write(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Specs map[string]map[string]map[string]int `json:"specs"`
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	c := got.Specs["crud"]["unified"]
	if c["cases"] != 3 || c["passed"] != 1 || c["failed"] != 1 || c["skipped"] != 1 {
		t.Errorf("got %s", data)
	}
	if table := s.Table(); !strings.Contains(table, "crud") || !strings.Contains(table, "all") {
		t.Errorf("table\n%s", table)
	}
	if err := Remove(path); err != nil {
		t.Error(err)
	}
	if err := Remove(path); err != nil {
		t.Errorf("removing what is gone: %v", err)
	}
}
