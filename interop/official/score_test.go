package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const said = `=== RUN   TestUnifiedSpec
=== RUN   TestUnifiedSpec/crud/find.json
=== RUN   TestUnifiedSpec/crud/find.json/one
=== RUN   TestUnifiedSpec/crud/find.json/two
    unified_spec_runner.go:1: error verification failed: expected no error, but got (CommandNotFound) no such command: 'bulkWrite'
=== RUN   TestUnifiedSpec/crud/find.json/three
    runner.go:2: not today
--- FAIL: TestUnifiedSpec (1.00s)
    --- FAIL: TestUnifiedSpec/crud/find.json (1.00s)
        --- PASS: TestUnifiedSpec/crud/find.json/one (0.00s)
        --- FAIL: TestUnifiedSpec/crud/find.json/two (0.00s)
        --- SKIP: TestUnifiedSpec/crud/find.json/three (0.00s)
`

func TestSuitesAreNoCases(t *testing.T) {
	s := read(said)
	if s.passed != 1 || s.skipped != 1 || len(s.failed) != 1 {
		t.Errorf("%d pass, %d are skipped, %d fail; want one each", s.passed, s.skipped, len(s.failed))
	}
}

func TestFailuresAreListedByCause(t *testing.T) {
	var out strings.Builder
	read(said).print(&out, false)
	if want := "   1  command bulkWrite is not known\n        crud/find.json/two\n1 cases pass"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("%q does not begin with %q", out.String(), want)
	}
}

func TestCountMayNotFall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "passed.count")
	for text, fails := range map[string]bool{"1\n": false, "0\n": false, "2\n": true, "many": true} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := read(said).judge(file); (err != nil) != fails {
			t.Errorf("one passes, pinned are %q: %v", text, err)
		}
	}
}
