package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sextantdb/sextant/cmd/sextant/internal/doctor"
	"github.com/spf13/cobra"
)

func doctorCommand() *cobra.Command {
	var json bool
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "doctor URI",
		Short: "Say why this host can not reach a set, and what to do about it",
		Long: "doctor follows a connection string stage by stage: DNS, dial, TLS, hello, the names that the set advertises,\n" +
			"roles, lag, clocks, versions, login. Exit code 0: healthy, 1: degraded, 2: unreachable.",
		Args: exactly(1),
	}
	c.Flags().BoolVar(&json, "json", false, "print JSON")
	c.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "how long all of it may take")
	c.RunE = func(c *cobra.Command, args []string) error {
		if timeout <= 0 {
			return usageError{fmt.Errorf("--timeout must be more than 0, not %v", timeout)}
		}
		d := doctor.Examine(c.Context(), args[0], timeout, nil)
		if c.Context().Err() != nil {
			return errInterrupted
		}
		var err error
		if json {
			err = printJSON(c.OutOrStdout(), d)
		} else {
			err = printDiagnosis(c.OutOrStdout(), d)
		}
		if err != nil {
			return err
		}
		return exitOf(d.Verdict)
	}
	return c
}

// exitOf is what makes the command end with the code of the verdict.
func exitOf(v doctor.Verdict) error {
	switch v {
	case doctor.Healthy:
		return nil
	case doctor.Degraded:
		return errFailed
	}
	return errUnreachable
}

// printDiagnosis prints one page.
func printDiagnosis(w io.Writer, d *doctor.Diagnosis) error {
	var b strings.Builder
	for _, line := range d.Heading {
		b.WriteString(line + "\n")
	}
	if rows := d.Table(); len(rows) > 1 {
		b.WriteString("\n" + strings.Join(align(rows), "\n") + "\n")
	}
	fmt.Fprintf(&b, "\nverdict: %s\n", d.Verdict)
	for _, f := range d.Page() {
		fmt.Fprintf(&b, "\n%s\n", f)
	}
	_, err := io.WriteString(w, strings.TrimPrefix(b.String(), "\n"))
	return err
}
