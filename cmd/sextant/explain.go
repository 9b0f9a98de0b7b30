package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/readpref"
	"github.com/spf13/cobra"
)

func explainCommand() *cobra.Command {
	var json bool
	var timeout, staleness time.Duration
	var mode string
	var tags []string
	c := &cobra.Command{
		Use:   "explain URI",
		Short: "Say which members would serve a read, and why the others would not",
		Args:  exactly(1),
	}
	c.Flags().StringVar(&mode, "mode", "", "read preference mode: primary, primaryPreferred, secondary, secondaryPreferred, nearest (default: the URI's)")
	c.Flags().StringArrayVar(&tags, "tags", nil, "a tag set such as dc:east,use:reports; repeated, the sets are tried in order; \"\" matches any member")
	c.Flags().DurationVar(&staleness, "max-staleness", 0, "how far a secondary may be behind, 90s or more")
	c.Flags().BoolVar(&json, "json", false, "print JSON")
	c.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "how long to look for members")
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(c.Context(), timeout)
		defer cancel()
		pref, err := parsePref(mode, tags, staleness)
		if err != nil {
			return usageError{err}
		}
		client, err := open(ctx, args[0], c.ErrOrStderr())
		if err != nil {
			return err
		}
		defer client.Close(context.WithoutCancel(ctx))
		look(ctx, client)
		verdict, _ := client.Explain(ctx, sextant.Want{ReadPreference: pref}) // who has not answered in time is in the verdict
		if err := printVerdict(c.OutOrStdout(), verdict, json); err != nil {
			return err
		}
		if len(verdict.Eligible()) == 0 {
			return errFailed
		}
		return trouble(ctx, client) // a member that would serve may still refuse the user
	}
	return c
}

// parsePref reads the flags; nil means that the URI decides.
func parsePref(mode string, sets []string, staleness time.Duration) (*readpref.ReadPref, error) {
	if mode == "" {
		if len(sets) > 0 || staleness != 0 {
			return nil, fmt.Errorf("--tags and --max-staleness need --mode")
		}
		return nil, nil
	}
	m, err := readpref.ParseMode(mode)
	if err != nil {
		return nil, err
	}
	var opts []readpref.Option
	if len(sets) > 0 {
		parsed := make([]readpref.TagSet, len(sets))
		for i, s := range sets {
			if parsed[i], err = parseTagSet(s); err != nil {
				return nil, err
			}
		}
		opts = append(opts, readpref.TagSets(parsed...))
	}
	if staleness != 0 {
		opts = append(opts, readpref.MaxStaleness(staleness))
	}
	return readpref.New(m, opts...)
}

func parseTagSet(s string) (readpref.TagSet, error) {
	set := readpref.TagSet{}
	if s == "" {
		return set, nil
	}
	for pair := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(pair, ":")
		if !ok || name == "" {
			return nil, fmt.Errorf("--tags %q: %q is not name:value", s, pair)
		}
		set = append(set, readpref.Tag{Key: name, Value: value})
	}
	return set, nil
}

// verdictJSON is a verdict as scripts read it.
type verdictJSON struct {
	Want    string       `json:"want"`
	Verdict string       `json:"verdict"`
	Members []memberJSON `json:"members"`
}

type memberJSON struct {
	Address  string  `json:"address"`
	Kind     string  `json:"kind"`
	Eligible bool    `json:"eligible"`
	Rule     string  `json:"rule"`
	Chance   float64 `json:"chance"`
}

func printVerdict(w io.Writer, v event.Verdict, json bool) error {
	if !json {
		_, err := fmt.Fprintln(w, v)
		return err
	}
	j := verdictJSON{Want: v.Want, Verdict: v.Sentence, Members: make([]memberJSON, len(v.Members))}
	for i, m := range v.Members {
		j.Members[i] = memberJSON{m.Address, m.Kind.String(), m.Eligible, m.Rule, m.Chance}
	}
	return printJSON(w, j)
}
