package replset

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// enough is the number of stories within which every fault must show.
const enough = 200

// TestStoriesCatchASetThatMisbehaves breaks the set in every way that it can be broken, and tells stories until one of
// the promises in question is seen to be broken. What a story says of a fault that is none of its business does not count.
func TestStoriesCatchASetThatMisbehaves(t *testing.T) {
	t.Parallel()
	for fault, promises := range map[Fault][]string{
		LostWrite:        {keeps},   // acknowledges before a majority has it
		TwoVotes:         {oneHead}, // votes twice in a term
		ForgottenRetries: {once},    // forgets the retry history
		WrongMember:      {kinds},   // one member answers in another's name
		StaleTag:         {kinds},   // hello tells tags that the configuration does not give
	} {
		t.Run(fault.String(), func(t *testing.T) {
			for seed := uint64(1); seed <= enough; seed++ {
				o := tell(t, planOf(seed), fault)
				for _, v := range o.broken {
					if slices.Contains(promises, v.promise) {
						t.Logf("caught by story %d: %v", seed, v)
						return
					}
				}
			}
			t.Errorf("%d stories have not seen that %q is broken", enough, strings.Join(promises, ", "))
		})
	}
}

// mutant is a change of one line of the driver that must not go unnoticed.
type mutant struct{ name, file, line, instead, promise string }

var mutants = []mutant{
	{"retries with a new transaction number", "internal/operation/attempt.go",
		"c.trial.allowed && c.txn == 0 {", "c.trial.allowed {", once},
	{"trusts a stale primary", "internal/topology/replicaset.go",
		"if c.staleElection(s) {", "if c.staleElection(s) && false {", newest},
	{"ignores how stale a member is", "internal/topology/select.go",
		"if staleness > limit {", "if staleness > limit && false {", kinds},
}

// TestStoriesCatchADriverThatMisbehaves changes a line of the driver, builds this test anew with it (go test -overlay: no
// file of the project is touched, and no hook is in the driver for it), and has it tell stories until a promise breaks.
// Building takes longer than telling: without SEXTANT_MUTANTS=1, which make stories sets, it does so with the first mutant
// alone, and only sees to it that the lines of the others are still there to be changed.
func TestStoriesCatchADriverThatMisbehaves(t *testing.T) {
	t.Parallel()
	all := number("SEXTANT_MUTANTS", 0) > 0
	for i, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			overlay := m.write(t)
			if all || i == 0 {
				m.mustBeCaught(t, overlay)
			}
		})
	}
}

// write makes the changed file, and the overlay that puts it in place of the true one.
func (m mutant) write(t *testing.T) (overlay string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", m.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.line); n != 1 {
		t.Fatalf("%s has %d lines %q: this test does not know any more what to change", m.file, n, m.line)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, filepath.Base(m.file))
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	for name, data := range map[string][]byte{changed: []byte(strings.Replace(string(text), m.line, m.instead, 1)), overlay: list} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}

func (m mutant) mustBeCaught(t *testing.T, overlay string) {
	t.Helper()
	program := filepath.Join(filepath.Dir(overlay), "stories.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-c", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run", "TestStoriesOfFaults", "-test.failfast")
	cmd.Env = append(os.Environ(), "SEXTANT_STORY=1", "SEXTANT_STORIES="+strconv.Itoa(enough))
	out, err := cmd.CombinedOutput()
	story := ""
	for line := range strings.Lines(string(out)) {
		if _, number, ok := strings.Cut(line, "--- FAIL: TestStoriesOfFaultsKeepEveryPromise/"); ok {
			story, _, _ = strings.Cut(number, " ")
		}
		if strings.Contains(line, m.promise) {
			t.Logf("caught by story %s: %s", story, strings.TrimSpace(line))
			return
		}
	}
	t.Errorf("%d stories have not seen that %q is broken (%v)\n%s", enough, m.promise, err, out)
}
