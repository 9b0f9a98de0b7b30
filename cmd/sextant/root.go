package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// errFailed ends a command whose own output has already said what failed.
var errFailed = errors.New("failed")

// errUnreachable ends doctor where no operation is possible.
var errUnreachable = errors.New("unreachable")

// errInterrupted ends a command that was stopped from outside before it could tell a result.
var errInterrupted = errors.New("interrupted")

// run executes one command line and gives the exit code: 0 done, 1 failed, 2 not understood (doctor: or unreachable), 130
// interrupted.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errFailed):
		return 1
	case errors.Is(err, errUnreachable):
		return 2
	case errors.Is(err, errInterrupted):
		fmt.Fprintf(errOut, "sextant: %v\n", err)
		return 130
	case errors.As(err, &usage):
		fmt.Fprintf(errOut, "sextant: %v\n", err)
		return 2
	default:
		fmt.Fprintf(errOut, "sextant: %v\n", err)
		return 1
	}
}

// usageError is a command line that cannot be understood.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "sextant",
		Short:         "A MongoDB driver that knows, and can say, where every read goes",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          exactly(0),
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(demoCommand(), serveCommand(), hostsCommand(), explainCommand(), doctorCommand())
	return root
}

// exactly demands n arguments, and says so in one line.
func exactly(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		if c.HasParent() {
			return usageError{fmt.Errorf("%s takes %d argument(s), got %d: %s", c.Name(), n, len(args), c.UseLine())}
		}
		return usageError{fmt.Errorf("unknown command %q; sextant --help lists them", args[0])}
	}
}
