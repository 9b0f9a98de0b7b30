package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
	"github.com/spf13/cobra"
)

func hostsCommand() *cobra.Command {
	var json bool
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "hosts URI",
		Short: "List the members of a set as this host sees them",
		Args:  exactly(1),
	}
	c.Flags().BoolVar(&json, "json", false, "print JSON")
	c.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "how long to look for members")
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(c.Context(), timeout)
		defer cancel()
		client, err := open(ctx, args[0], c.ErrOrStderr())
		if err != nil {
			return err
		}
		defer client.Close(context.WithoutCancel(ctx))
		look(ctx, client)
		why := trouble(ctx, client)
		if err := printHosts(c.OutOrStdout(), client.Hosts(), json); err != nil {
			return err
		}
		return why
	}
	return c
}

// open makes a client for one look: strict about the URI, since a person has just typed it.
func open(ctx context.Context, uri string, warnings io.Writer) (*sextant.Client, error) {
	cfg, err := sextant.ParseURI(uri)
	if err != nil {
		return nil, usageError{err}
	}
	cfg.Strict = true
	if cfg.AppName == "" {
		cfg.AppName = "sextant"
	}
	client, err := sextant.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, usageError{err}
	}
	return client, nil
}

// look waits until every member has answered or failed. Three times, since the first answer names members that nobody
// has asked yet, and a round trip is not told by its first sample; once if nobody answers.
func look(ctx context.Context, c *sextant.Client) event.Topology {
	for range 3 {
		answers := func(m event.Member) bool { return m.Kind.Known() }
		if c.Refresh(ctx) != nil || !slices.ContainsFunc(c.Hosts().Members, answers) {
			break
		}
	}
	return c.Hosts()
}

// trouble says why operations cannot reach the set, although monitors may: nobody answers, or the user may not log in.
func trouble(ctx context.Context, c *sextant.Client) error {
	anybody := readpref.Nearest()
	if v, _ := c.Explain(ctx, sextant.Want{ReadPreference: anybody}); len(v.Eligible()) == 0 {
		return errors.New(v.Sentence)
	}
	_, err := c.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}, sextant.RunCommandOptions{ReadPreference: anybody})
	if err != nil {
		return errors.New(headline(err))
	}
	return nil
}

// hostJSON is one member as scripts read it. What is not known is null.
type hostJSON struct {
	Address    string            `json:"address"`
	Dialled    string            `json:"dialled"`
	Kind       string            `json:"kind"`
	State      string            `json:"state"` // in the words of replSetGetStatus; empty for a server of no set
	Since      *time.Time        `json:"since"`
	RTT        *float64          `json:"rttMs"`
	MinRTT     *float64          `json:"minRttMs"`
	Lag        *float64          `json:"lagMs"`
	Tags       map[string]string `json:"tags"`
	Quarantine *string           `json:"quarantine"`
	LastError  *string           `json:"lastError"`
}

func printHosts(w io.Writer, set event.Topology, json bool) error {
	if json {
		members := make([]hostJSON, len(set.Members))
		for i, m := range set.Members {
			members[i] = toJSON(m)
		}
		return printJSON(w, map[string]any{"set": set.SetName, "members": members})
	}
	rows := [][]string{{"address", "dialled", "kind", "state", "since", "round trip", "lag", "tags", "quarantine", "last error"}}
	for _, m := range set.Members {
		j := toJSON(m)
		rows = append(rows, []string{j.Address, j.Dialled, j.Kind, cmp.Or(j.State, "-"), clock(j.Since), ms(j.RTT), ms(j.Lag),
			cmp.Or(tagText(m.Tags), "-"), text(j.Quarantine), strings.TrimPrefix(text(j.LastError), "on "+m.Address+": ")})
	}
	name := set.SetName
	if name == "" {
		name = "none"
	}
	fmt.Fprintf(w, "set %s, %s\n", mongoerr.OneLine(name), set.Kind)
	if len(set.Members) == 0 {
		return nil
	}
	for _, line := range align(rows) {
		fmt.Fprintln(w, line)
	}
	return nil
}

func toJSON(m event.Member) hostJSON {
	j := hostJSON{Address: m.Address, Dialled: cmp.Or(m.Dialled, m.Address), Kind: m.Kind.String(), State: m.StateStr(), Tags: m.Tags}
	if j.Tags == nil {
		j.Tags = map[string]string{}
	}
	if !m.Since.IsZero() {
		j.Since = new(m.Since.Round(time.Millisecond))
	}
	if m.RTT > 0 {
		j.RTT = new(inMs(m.RTT))
	}
	if m.MinRTT > 0 {
		j.MinRTT = new(inMs(m.MinRTT))
	}
	if m.LagKnown {
		j.Lag = new(inMs(m.Lag))
	}
	if m.Quarantine != "" {
		j.Quarantine = new(m.Quarantine)
	}
	if m.LastError != nil {
		j.LastError = new(headline(m.LastError))
	}
	return j
}

func inMs(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// clock is a moment of today, as it is this command's own start that most members have been known since.
func clock(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Local().Format(time.TimeOnly)
}

func ms(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", *v)
}

func text(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}
