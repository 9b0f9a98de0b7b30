package replset

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/sextantdb/sextant/internal/compress"
	"github.com/sextantdb/sextant/replset/internal/command"
)

// Options describe a set. The zero value is a set of one member.
type Options struct {
	// Members is the number of members, 1 to 7; 0 means len(Config), or 1.
	Members int
	// Config says what is special about the first members; those beyond it are ordinary.
	Config []MemberOptions
	// SetName is "rs0" if empty.
	SetName string
	// Users turn authentication on. Every user may do everything.
	Users []User
	// OIDC turns authentication on too, and has members take tokens.
	OIDC *OIDC
	// Host is the name or address that members listen on and advertise; "127.0.0.1" if empty.
	Host string
	// ElectionTimeout is the silence of a primary after which another is elected; 1 s if 0, at least 10 ms and at most 24 days.
	ElectionTimeout time.Duration
	// HeartbeatInterval is the pause between two heartbeats, shorter than ElectionTimeout; a fifth of it if 0.
	HeartbeatInterval time.Duration
	// CatchUpTimeout is how long a winner pulls what fresher members have before it takes writes; ElectionTimeout if 0,
	// at most 24 days.
	CatchUpTimeout time.Duration
	// OplogEntries is how many entries a member's oplog keeps, at least 10; 100,000 if 0. It keeps more for as long as no
	// majority has them. A member that was away for longer is too stale to go on and stays in RECOVERING until Wipe and Restart
	// have it copy all data, as a server does.
	OplogEntries int64
	// Dir is a folder in which every member keeps its data, vote and configuration in a file of its own, so that a set
	// started there again goes on where the last one ended, however it ended. A write concern with j: true then waits
	// until the write is on the disk, and so does a majority. Empty: data is in memory and ends with the process.
	Dir string
	// WriteModes are named write concerns: name -> tag -> number of distinct values of that tag which must have the write.
	WriteModes map[string]map[string]int
	// Version is the server version that the members claim, "4.0", "4.2", "4.4", "5.0", "6.0", "7.0" or "8.0"; "8.0" if empty.
	// What clients see follows it: the wire version, whether a step-down closes their connections (4.0), whether hello
	// streams (since 4.4), who labels errors of retryable writes (the server since 4.4), the default write concern (a
	// majority since 5.0). Commands that the version did not have are not refused.
	Version string
	// Compressors are those that clients may negotiate, of "snappy", "zlib" and "zstd" (which 4.0 does not have). nil: all;
	// empty: none.
	Compressors []string
	// Logger hears what members have to say; nil: nobody does.
	Logger *slog.Logger
	// TLS has the members speak TLS, to clients and to each other; nil: no TLS. The options of URI say so.
	TLS *TLS
	// Network is where members listen and dial; nil: TCP.
	Network Network
	// LoadBalancer puts a load balancer before the set, for clients with loadBalanced=true; it needs a Version from 5.0 on.
	// nil: there is none.
	LoadBalancer *LoadBalancerOptions
	// Fault makes the set break a promise on purpose, to prove that checks catch it.
	Fault Fault
}

// MemberOptions describe one member. The zero value is an ordinary electable member with priority 1.
type MemberOptions struct {
	Name           string            // the host it advertises in place of Options.Host; it must resolve to Options.Host (or be a name of Network)
	Port           int               // 0: any free one
	Priority       *float64          // nil: 1, or 0 where the rest demands it (arbiter, hidden, delayed, without vote)
	NoVote         bool              // a member that does not vote
	Hidden         bool              // in no list of hello
	Tags           map[string]string // for read preferences and write modes
	SecondaryDelay time.Duration     // how far it stays behind on purpose
	Arbiter        bool              // votes, and has no data
}

// Fault is a way to misbehave.
type Fault uint8

const (
	// NoFault keeps every promise.
	NoFault Fault = iota
	// WrongMember has the commands that clients send to one secondary's address answered by another member, while hello
	// still answers for the secondary.
	WrongMember
	// LostWrite has a primary acknowledge w:majority before anybody else has the write, and has the others get it late,
	// so that the write dies with the primary.
	LostWrite
	// StaleTag has one member's hello report tags that its configuration no longer has.
	StaleTag
	// TwoVotes has members forget, within a term, that they have voted: two primaries can win it.
	TwoVotes
	// ForgottenRetries has members forget which retryable writes they have executed: a retry is executed again.
	ForgottenRetries
)

// String is the fault's name, as the demo's --break takes it.
func (f Fault) String() string {
	switch f {
	case NoFault:
		return "none"
	case WrongMember:
		return "wrong-member"
	case LostWrite:
		return "lost-write"
	case StaleTag:
		return "stale-tag"
	case TwoVotes:
		return "two-votes"
	case ForgottenRetries:
		return "forgotten-retries"
	}
	return fmt.Sprintf("fault %d", f)
}

// longest is how long a time-out may be: configurations count milliseconds in 32 bits.
const longest = 24 * 24 * time.Hour

// fewest is how many entries the shortest oplog has.
const fewest = 10

// shortest is the election timeout below which a busy machine alone would depose primaries.
const shortest = 10 * time.Millisecond

// defaults fills in what was left open and refuses what cannot be.
func (o *Options) defaults() error {
	if o.Members == 0 {
		o.Members = max(len(o.Config), 1)
	}
	if o.Members < 1 || o.Members > 7 {
		return fmt.Errorf("replset: a set has 1 to 7 members, not %d", o.Members)
	}
	if len(o.Config) > o.Members {
		return fmt.Errorf("replset: %d members are configured, but Members is %d", len(o.Config), o.Members)
	}
	if o.Fault > ForgottenRetries {
		return fmt.Errorf("replset: unknown fault %d", o.Fault)
	}
	if o.Fault != NoFault && o.Members < 2 {
		return fmt.Errorf("replset: the fault %s needs at least two members", o.Fault)
	}
	if o.OplogEntries < 0 || o.OplogEntries > 0 && o.OplogEntries < fewest {
		return fmt.Errorf("replset: an oplog of %d entries: at least %d, or a member that is a moment behind the others could not catch up any more", o.OplogEntries, fewest)
	}
	if o.OIDC != nil && o.OIDC.Check == nil {
		return fmt.Errorf("replset: OIDC needs a Check")
	}
	if o.ElectionTimeout < 0 || o.HeartbeatInterval < 0 || o.CatchUpTimeout < 0 {
		return fmt.Errorf("replset: a time-out is negative")
	}
	if d := max(o.ElectionTimeout, o.CatchUpTimeout); d > longest {
		return fmt.Errorf("replset: a time-out of %v is too long: %v (24 days) at most", d, longest)
	}
	persona, err := command.PersonaOf(o.Version)
	if err != nil {
		return fmt.Errorf("replset: %w", err)
	}
	if o.LoadBalancer != nil {
		if o.LoadBalancer, err = o.LoadBalancer.complete(persona); err != nil {
			return err
		}
	}
	for _, name := range o.Compressors {
		if _, ok := compress.ByName(name); !ok {
			return fmt.Errorf("replset: there is no compressor %q; there are %s", name, strings.Join(compress.Names(), ", "))
		}
	}
	o.SetName = cmp.Or(o.SetName, "rs0")
	o.Host = cmp.Or(strings.ToLower(o.Host), "127.0.0.1")
	o.ElectionTimeout = cmp.Or(o.ElectionTimeout, time.Second)
	o.HeartbeatInterval = cmp.Or(o.HeartbeatInterval, o.ElectionTimeout/5)
	o.CatchUpTimeout = cmp.Or(o.CatchUpTimeout, o.ElectionTimeout)
	if o.ElectionTimeout < shortest || o.HeartbeatInterval >= o.ElectionTimeout {
		return fmt.Errorf("replset: a heartbeat every %v and an election after %v of silence: the election timeout must be longer than the heartbeats' interval, and at least %v",
			o.HeartbeatInterval, o.ElectionTimeout, shortest)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Network == nil {
		o.Network = tcp{}
	}
	return nil
}

// member returns the options of member i.
func (o *Options) member(i int) MemberOptions {
	if i < len(o.Config) {
		return o.Config[i]
	}
	return MemberOptions{}
}

// config is the set's configuration, once the addresses are known.
func (o *Options) config(hosts []string) (*command.Config, error) {
	cfg := o.unconfigured()
	cfg.Version, cfg.Modes = 1, o.WriteModes
	for i, host := range hosts {
		mc := o.member(i).config(host)
		mc.ID = i
		cfg.Members = append(cfg.Members, mc)
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("replset: %w", err)
	}
	return cfg, nil
}

// unconfigured is what a member knows that has no configuration yet: the set's name, and how long to wait for others.
func (o *Options) unconfigured() *command.Config {
	return &command.Config{SetName: o.SetName, ElectionTimeout: o.ElectionTimeout, HeartbeatInterval: o.HeartbeatInterval, CatchUpTimeout: o.CatchUpTimeout}
}

func (m MemberOptions) config(host string) command.MemberConfig {
	mc := command.MemberConfig{Host: host, Priority: 1, Votes: 1, Hidden: m.Hidden, Arbiter: m.Arbiter, Delay: m.SecondaryDelay, Tags: sortedTags(m.Tags)}
	if m.NoVote {
		mc.Votes = 0
	}
	if m.Arbiter || m.Hidden || m.NoVote || m.SecondaryDelay != 0 {
		mc.Priority = 0
	}
	if m.Priority != nil {
		mc.Priority = *m.Priority
	}
	return mc
}

func sortedTags(tags map[string]string) []command.Tag {
	var out []command.Tag
	for name, value := range tags {
		out = append(out, command.Tag{Name: name, Value: value})
	}
	slices.SortFunc(out, func(a, b command.Tag) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Versions are the values that Options.Version takes, the newest first.
func Versions() []string { return command.Versions() }
