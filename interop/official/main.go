// Command official runs the official Go driver's own runner of the unified specification tests against an embedded set of
// three members without logins: a check of the set by a driver and a runner that nobody here wrote. A case that fails here and
// passes with our driver is the set's fault as much as one that fails with both.
//
// It builds the runner out of the module cache, in build/official beside the module's root, runs it, counts the cases that
// pass (not the suites around them), holds the count against passed.count, which may only rise, and lists failures by cause.
// The specification tests are found as package corpus says.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sextantdb/sextant/conformance/corpus"
	"github.com/sextantdb/sextant/replset"
)

func main() {
	only := flag.String("run", "TestUnifiedSpec", "which cases to run, as for go test; the count is judged only without it")
	verbose := flag.Bool("v", false, "print the text of every failure")
	flag.Parse()
	whole := *only == flag.Lookup("run").DefValue
	if err := run(*only, whole, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "official:", err)
		os.Exit(1)
	}
}

func run(only string, whole, verbose bool) error {
	root, err := corpus.Root()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "build", "official")
	start := time.Now()
	if err := build(dir); err != nil {
		return err
	}
	built := time.Since(start)
	out, err := play(dir, only)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "run.out"), out, 0o644); err != nil {
		return err
	}
	s := read(string(out))
	s.print(os.Stdout, verbose)
	fmt.Printf("built in %v, run in %v; everything it said is in %s\n", built.Round(time.Second), (time.Since(start) - built).Round(time.Second), filepath.Join(dir, "run.out"))
	if !whole {
		return nil
	}
	return s.judge(filepath.Join(root, "interop", "official", "passed.count"))
}

// play runs the runner against a set of its own. That cases fail is no error.
func play(dir, only string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	set, err := replset.Start(ctx, replset.Options{Members: 3})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, binary), "-test.v", "-test.run", only)
	cmd.Dir = filepath.Join(dir, "internal", "integration", "unified")
	cmd.Env = append(os.Environ(), "MONGODB_URI="+set.URI(), "GOWORK=off")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		err = nil
	}
	return out.Bytes(), errors.Join(err, set.Close())
}

// judge holds the count against the one that was reached before.
func (s *score) judge(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	want, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	switch {
	case s.passed < want:
		return fmt.Errorf("%d cases pass, %d did before", s.passed, want)
	case s.passed > want:
		fmt.Printf("%d cases pass, %d are pinned: raise %s\n", s.passed, want, file)
	}
	return nil
}

// print lists the failures by cause, the most frequent cause first.
func (s *score) print(w io.Writer, verbose bool) {
	for _, c := range s.causes() {
		fmt.Fprintf(w, "%4d  %s\n", len(c.cases), c.name)
		for i, f := range c.cases {
			if verbose {
				fmt.Fprintf(w, "        %s\n            %s\n", f.name, f.text)
			} else if i < 3 {
				fmt.Fprintf(w, "        %s\n", f.name)
			}
		}
	}
	fmt.Fprintf(w, "%d cases pass, %d fail, %d are skipped by the runner\n", s.passed, len(s.failed), s.skipped)
}
