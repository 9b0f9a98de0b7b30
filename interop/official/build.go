package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sextantdb/sextant/conformance/corpus"
)

const (
	driver = "go.mongodb.org/mongo-driver/v2" // the version is that of interop/go.mod
	binary = "unified.test"
)

// build makes the runner in dir, with the specification tests in their place. What is there already is kept: remove the
// folder to start afresh.
func build(dir string) error {
	source, err := moduleDir()
	if err != nil {
		return err
	}
	mark := filepath.Join(dir, "copied-from")
	if text, _ := os.ReadFile(mark); string(text) != source {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := copyTree(source, dir); err != nil {
			return err
		}
		if err := os.WriteFile(mark, []byte(source), 0o644); err != nil {
			return err
		}
	}
	if err := placeTests(filepath.Join(dir, "testdata", "specifications", "source")); err != nil {
		return err
	}
	cmd := exec.Command("go", "test", "-c", "-o", filepath.Join(dir, binary), "./internal/integration/unified")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the official runner does not build: %w\n%s", err, out)
	}
	return nil
}

// moduleDir is where the module cache has the driver; it is fetched if need be.
func moduleDir() (string, error) {
	root, err := corpus.Root()
	if err != nil {
		return "", err
	}
	for _, args := range [][]string{{"mod", "download", driver}, {"list", "-m", "-f", "{{.Dir}}", driver}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = filepath.Join(root, "interop")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
		}
		if dir := strings.TrimSpace(string(out)); dir != "" {
			return dir, nil
		}
	}
	return "", fmt.Errorf("the module cache has no %s", driver)
}

// copyTree copies a module out of the cache, whose files are read-only.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		into := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(into, 0o755)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(into, text, 0o644)
	})
}

// placeTests puts links to the specification tests where the runner looks for them: source/<specification>/tests.
func placeTests(source string) error {
	base, err := corpus.Base()
	if err != nil {
		return err
	}
	names, err := specifications(base)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(source); err != nil {
		return err
	}
	for _, name := range names {
		tests, err := corpus.In(base, name)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(source, name), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(tests, filepath.Join(source, name, "tests")); err != nil {
			return err
		}
	}
	return os.MkdirAll(filepath.Join(source, "client-side-encryption", "tests", "unified"), 0o755) // the runner wants the folder
}

func specifications(base string) (names []string, err error) {
	if inner := filepath.Join(base, "source"); isDir(inner) {
		base = inner
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", corpus.ErrMissing, err)
	}
	for _, e := range entries {
		if dir := filepath.Join(base, e.Name()); isDir(dir) && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
