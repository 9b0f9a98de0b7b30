package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/replset"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// faults are the ways in which the demo's set can be made to misbehave, each caught by a check.
var faults = map[string]replset.Fault{
	"":             replset.NoFault,
	"wrong-member": replset.WrongMember,
	"lost-write":   replset.LostWrite,
	"stale-tag":    replset.StaleTag,
}

func demoCommand() *cobra.Command {
	var beQuiet, json bool
	var fault string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run the main job on an embedded set in two data centres, and check every step",
		Args:  exactly(0),
	}
	c.Flags().BoolVarP(&beQuiet, "quiet", "q", false, "print the last line only")
	c.Flags().BoolVar(&json, "json", false, "print each check with its measurement as JSON")
	c.Flags().StringVar(&fault, "break", "", "run against a set that misbehaves: wrong-member, lost-write or stale-tag")
	c.RunE = func(c *cobra.Command, _ []string) error {
		f, ok := faults[fault]
		if !ok {
			return usageError{fmt.Errorf("--break %q: known are wrong-member, lost-write and stale-tag", fault)}
		}
		return runDemo(c.Context(), demoPrinter(c.OutOrStdout(), beQuiet, json), conditions{fault: f, reads: reads})
	}
	return c
}

// demoPrinter chooses how to print: live on a terminal, plain lines into a pipe.
func demoPrinter(w io.Writer, beQuiet, json bool) printer {
	p := plain{w}
	switch f, isFile := w.(*os.File); {
	case json:
		return asJSON{quiet{p}}
	case beQuiet:
		return quiet{p}
	case isFile && term.IsTerminal(int(f.Fd())):
		return live{p}
	default:
		return p
	}
}

// The demo's set: two members in the east, and one in the west that can never be primary.
const (
	east1 = iota
	east2
	west1
)

var memberNames = []string{"east-1", "east-2", "west-1"}

// distance holds each client's round trip to each member.
var distance = map[string][]time.Duration{
	"east": {2 * time.Millisecond, 5 * time.Millisecond, 150 * time.Millisecond},
	"west": {150 * time.Millisecond, 150 * time.Millisecond, 2 * time.Millisecond},
}

// demo is one run: a set, a client in each data centre, and the report they fill.
type demo struct {
	*report
	set        *replset.Set
	east, west *sextant.Client
	started    time.Time
	conditions
}

// conditions are what a run takes place under.
type conditions struct {
	fault   replset.Fault
	reads   int                    // how many reads in each mode
	network *replset.MemoryNetwork // nil: TCP
}

func runDemo(ctx context.Context, p printer, c conditions) error {
	ctx, cancel := context.WithTimeout(ctx, 55*time.Second)
	defer cancel()
	d := &demo{report: newReport(p), started: time.Now(), conditions: c}
	defer d.close()
	err := d.run(ctx)
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return fmt.Errorf("%w after %d checks", errInterrupted, len(d.checks))
	}
	if err != nil {
		d.check("the demo runs to its end", false, "%s", headline(err))
	}
	d.end(d.checks)
	if len(failed(d.checks)) > 0 {
		return errFailed
	}
	return nil
}

func (d *demo) run(ctx context.Context) error {
	if err := d.start(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		d.discovery, d.documents, d.fiveModes, d.westReads, d.tags, d.override, d.failover, d.comeback,
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if len(failed(d.checks)) > 0 {
			d.say("the run ends here: what follows builds on what failed")
			return nil
		}
	}
	return nil
}

func (d *demo) start(ctx context.Context) (err error) {
	d.section("A replica set in two data centres")
	o := replset.Options{
		SetName: "rs0",
		Config: []replset.MemberOptions{
			east1: {Priority: new(2.0), Tags: map[string]string{"dc": "east", "name": memberNames[east1]}},
			east2: {Priority: new(1.0), Tags: map[string]string{"dc": "east", "name": memberNames[east2]}},
			west1: {Priority: new(0.0), Tags: map[string]string{"dc": "west", "name": memberNames[west1]}},
		},
		Fault: d.fault,
	}
	if d.network != nil {
		o.Network = d.network
	}
	if d.set, err = replset.Start(ctx, o); err != nil {
		return err
	}
	if _, err := d.set.WaitPrimary(ctx); err != nil {
		return err
	}
	for app, ways := range distance {
		for i, way := range ways {
			d.set.Delay(i, way, app)
		}
	}
	d.say("three members on %s, of which west-1 has priority 0", d.set.URI())
	d.say("the client in the east is 2, 5 and 150 ms away from them, the one in the west 150, 150 and 2 ms")
	if d.east, err = d.connect(ctx, "east", east1); err != nil {
		return err
	}
	d.west, err = d.connect(ctx, "west", west1)
	return err
}

// connect makes a client that knows one seed only.
func (d *demo) connect(ctx context.Context, app string, seed int) (*sextant.Client, error) {
	cfg, err := sextant.ParseURI(fmt.Sprintf("mongodb://%s/?replicaSet=rs0&appName=%s", d.set.Member(seed).Addr(), app))
	if err != nil {
		return nil, err
	}
	if d.network != nil {
		cfg.Dial = d.network.Dial
	}
	return sextant.ConnectConfig(ctx, cfg)
}

func (d *demo) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, c := range []*sextant.Client{d.east, d.west} {
		if c != nil {
			c.Close(ctx)
		}
	}
	if d.set != nil {
		d.set.Close()
	}
}

// name says which member an address is.
func (d *demo) name(addr string) string {
	for i, m := range d.set.Members() {
		if m.Addr() == addr {
			return memberNames[i]
		}
	}
	return addr
}
