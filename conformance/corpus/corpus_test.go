package corpus

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestInUnderstandsBothLayouts(t *testing.T) {
	for _, layout := range []string{"max-staleness", "source/max-staleness/tests", "max-staleness/tests"} {
		base := tempDir(t)
		want := filepath.Join(base, layout)
		if err := os.MkdirAll(want, 0o755); err != nil {
			t.Fatal(err)
		}
		if got, err := In(base, "max-staleness"); err != nil || got != want {
			t.Errorf("%s: got %q, %v", layout, got, err)
		}
	}
}

func TestInNamesWhatIsMissing(t *testing.T) {
	if _, err := In(t.TempDir(), "crud"); !errors.Is(err, ErrMissing) {
		t.Errorf("got %v", err)
	}
}

func TestDirFollowsTheEnvironment(t *testing.T) {
	base := tempDir(t)
	if err := os.Mkdir(filepath.Join(base, "crud"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(EnvDir, base)
	if got, err := Dir("crud"); err != nil || got != filepath.Join(base, "crud") {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestFilesFindsJSONBelow(t *testing.T) {
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, "b"), 0o755)
	for _, name := range []string{"z.json", "b/a.json", "b/a.yml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := Files(dir)
	if err != nil || len(files) != 2 || filepath.Base(files[0]) != "a.json" || filepath.Base(files[1]) != "z.json" {
		t.Errorf("got %v, %v", files, err)
	}
}

func TestDataLiesBesideTheTests(t *testing.T) {
	base := filepath.Join(tempDir(t), "spec-tests")
	t.Setenv(EnvDir, base)
	want := filepath.Join(filepath.Dir(base), "reference", "conformance-data", "own.json")
	if _, err := Data("own.json"); !errors.Is(err, ErrMissing) {
		t.Errorf("before it is there: %v", err)
	}
	if err := os.MkdirAll(filepath.Dir(want), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(want, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Data("own.json"); err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
}

// tempDir is a temporary folder without a link on the way to it.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
