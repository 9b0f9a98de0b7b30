// Package corpus finds the official specification tests on this machine. They are not part of the project.
//
// SPEC_TESTS_DIR names their folder; without it, ../shared/spec-tests beside the module's root is taken. Two layouts
// are understood: <folder>/<specification>/..., and a clone of the specifications repository with
// <folder>/source/<specification>/tests/... (or its source folder itself).
package corpus

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// EnvDir names the folder of the specification tests; a relative one is seen from the module's root.
const EnvDir = "SPEC_TESTS_DIR"

// EnvVectors names the folder of answers recorded from a real server; ../shared/vectors beside the module's root else.
const EnvVectors = "SEXTANT_VECTORS_DIR"

// EnvNeed, if it is 1, makes it a failure that the tests are not there, so that no run which keeps a score is empty.
const EnvNeed = "SEXTANT_NEED_CORPUS"

// ErrMissing says that there are no specification tests, or not those of one specification.
var ErrMissing = errors.New("the specification tests are not there")

// Root is the folder of this module's go.mod, looked for from the working folder upwards.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if mod, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil &&
			strings.HasPrefix(string(mod), "module github.com/sextantdb/sextant\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod of this module above the working folder")
		}
		dir = up
	}
}

// Base is the folder of all specification tests; it need not exist.
func Base() (string, error) { return folder(EnvDir, "spec-tests") }

// folder is what an environment variable names, seen from the module's root, or else a folder of ../shared beside it.
func folder(env, name string) (string, error) {
	dir := os.Getenv(env)
	if filepath.IsAbs(dir) {
		return dir, nil
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	if dir != "" {
		return filepath.Join(root, dir), nil
	}
	return filepath.Join(filepath.Dir(root), "shared", name), nil
}

// Dir is the folder of one specification's tests, such as "server-selection". The error wraps ErrMissing.
func Dir(spec string) (string, error) {
	base, err := Base()
	if err != nil {
		return "", err
	}
	return In(base, spec)
}

// In is Dir with a given base folder.
func In(base, spec string) (string, error) {
	for _, layout := range []string{
		filepath.Join(base, "source", spec, "tests"),
		filepath.Join(base, spec, "tests"),
		filepath.Join(base, spec),
	} {
		if info, err := os.Stat(layout); err == nil && info.IsDir() {
			return filepath.EvalSymlinks(layout) // a walk does not enter a link
		}
	}
	return "", fmt.Errorf("%w: no %s in %s (set %s)", ErrMissing, spec, base, EnvDir)
}

// Need is Dir for a test, which is skipped with one line if the tests are not there. Missing data is the one reason of
// the project for which a test may be skipped, and this package the one place.
func Need(t testing.TB, spec string) string {
	t.Helper()
	dir, err := Dir(spec)
	need(t, err)
	return dir
}

// NeedVectors is the path of a file of answers recorded from a real server, such as "query.jsonl", for a test that is
// skipped if it is not there.
func NeedVectors(t testing.TB, file string) string {
	t.Helper()
	dir, err := folder(EnvVectors, "vectors")
	path := filepath.Join(dir, filepath.FromSlash(file))
	if err == nil {
		if _, missing := os.Stat(path); missing != nil {
			err = fmt.Errorf("no recorded vectors at %s (%s names another place)", path, EnvVectors)
		}
	}
	need(t, err)
	return path
}

// Data is the path of a file of ours that the specification tests want beside them, such as "dns-zone.json": in
// ../reference/conformance-data seen from their folder, or from where that is without EnvDir. The error wraps ErrMissing.
func Data(file string) (string, error) {
	base, err := Base()
	if err != nil {
		return "", err
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	for _, dir := range []string{filepath.Dir(base), filepath.Join(filepath.Dir(root), "shared")} {
		path := filepath.Join(dir, "reference", "conformance-data", file)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: no reference/conformance-data/%s beside %s", ErrMissing, file, base)
}

// Check fails a test on an error; on one that wraps ErrMissing it skips the test, as Need does.
func Check(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrMissing) {
		need(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func need(t testing.TB, err error) {
	t.Helper()
	if err != nil && os.Getenv(EnvNeed) == "1" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
}

// Files lists the JSON files below a folder in the order of their paths.
func Files(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".json") {
			out = append(out, path)
		}
		return err
	})
	slices.Sort(out)
	return out, err
}
