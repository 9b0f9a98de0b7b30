package repl

import (
	"fmt"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// OpTime is a position in the oplog: the timestamp of an entry and the term in which it was written.
type OpTime struct {
	TS   bson.Timestamp
	Term int64
}

// Less reports whether o is before p: by term first, as elections demand, then by timestamp.
func (o OpTime) Less(p OpTime) bool {
	if o.Term != p.Term {
		return o.Term < p.Term
	}
	if o.TS.T != p.TS.T {
		return o.TS.T < p.TS.T
	}
	return o.TS.I < p.TS.I
}

// IsZero reports whether o is before every entry.
func (o OpTime) IsZero() bool { return o == OpTime{} }

// Tag is one name and value of a member's tags.
type Tag struct{ Name, Value string }

// MemberConfig is one member of the set's configuration.
type MemberConfig struct {
	ID       int    // 0 to 255: the number by which all else speaks of the member; it need not be its place in Config.Members
	Host     string // "127.0.0.1:27017", lower case
	Priority float64
	Votes    int // 0 or 1
	Hidden   bool
	Arbiter  bool
	Tags     []Tag
	Delay    time.Duration // how far this member stays behind on purpose
}

// Electable reports whether the member may ever be primary.
func (m MemberConfig) Electable() bool { return m.Priority > 0 && !m.Arbiter }

// Tag returns the value of a tag and whether the member has it.
func (m MemberConfig) Tag(name string) (string, bool) {
	for _, t := range m.Tags {
		if t.Name == name {
			return t.Value, true
		}
	}
	return "", false
}

// ConfigID orders configurations: by the term of the primary that made them, then by version. One that was forced has
// the term NoTerm and is ordered by its version alone.
type ConfigID struct {
	Version int32
	Term    int64
}

// NoTerm is the term of a configuration that no primary made.
const NoTerm = -1

// Less reports whether c is older than d.
func (c ConfigID) Less(d ConfigID) bool {
	if c.Term != d.Term && c.Term != NoTerm && d.Term != NoTerm {
		return c.Term < d.Term
	}
	return c.Version < d.Version
}

// String is the server's way to write it.
func (c ConfigID) String() string { return fmt.Sprintf("{version: %d, term: %d}", c.Version, c.Term) }

// Config is the set's configuration. It is never changed once in use: a new version replaces it. Version 0 is no
// configuration yet: a member that waits to be added knows the set's name and timers from it, and nobody else.
type Config struct {
	SetName           string
	Version           int32
	Term              int64
	NoChaining        bool // secondaries pull from the primary only, while there is one
	Members           []MemberConfig
	ElectionTimeout   time.Duration             // silence of the primary after which a secondary stands for election
	HeartbeatInterval time.Duration             // pause between two heartbeats to one member
	CatchUpTimeout    time.Duration             // how long a winner pulls what fresher members have before it takes writes
	Modes             map[string]map[string]int // write concern modes: name -> tag -> number of distinct values
}

// ID is the configuration's place in the order of all.
func (c *Config) ID() ConfigID { return ConfigID{Version: c.Version, Term: c.Term} }

// Member is the member of that number, nil if there is none.
func (c *Config) Member(id int) *MemberConfig {
	for i := range c.Members {
		if c.Members[i].ID == id {
			return &c.Members[i]
		}
	}
	return nil
}

// At is the member at that address, nil if there is none.
func (c *Config) At(host string) *MemberConfig {
	for i := range c.Members {
		if c.Members[i].Host == host {
			return &c.Members[i]
		}
	}
	return nil
}

// MaxMembers is how many members a set may have.
const MaxMembers = 7

// maxDelay is the longest delay of a member, as on a server.
const maxDelay = 366 * 24 * time.Hour

// Validate refuses what a replica set's configuration may not say.
func (c *Config) Validate() error {
	if n := len(c.Members); n < 1 || n > MaxMembers {
		return fmt.Errorf("replica set configuration contains %d members, but must have at least 1 and no more than %d: a replica set here has 1 to %d members", n, MaxMembers, MaxMembers)
	}
	if err := checkSetName(c.SetName); err != nil {
		return err
	}
	electable := false
	for i, m := range c.Members {
		if err := m.validate(); err != nil {
			return fmt.Errorf("member %d (%s): %w", i, m.Host, err)
		}
		for j, o := range c.Members[:i] {
			if o.ID == m.ID {
				return fmt.Errorf("found two member configurations with same _id field, members.%d._id == members.%d._id == %d", j, i, m.ID)
			}
			if o.Host == m.Host {
				return fmt.Errorf("member %d: two members have the host %s: found two member configurations with same host field, members.%d.host == members.%d.host == %s", i, m.Host, j, i, m.Host)
			}
		}
		electable = electable || m.Electable() && m.Votes > 0
	}
	if !electable {
		return fmt.Errorf("replica set configuration must contain at least one non-arbiter member with priority > 0")
	}
	return c.checkModes()
}

func (m MemberConfig) validate() error {
	switch {
	case m.ID < 0 || m.ID > 255:
		return fmt.Errorf("_id field value of %d is out of range", m.ID)
	case !(m.Priority >= 0 && m.Priority <= 1000): // so that NaN is out of range too
		return fmt.Errorf("priority field value of %v is out of range", m.Priority)
	case m.Votes != 0 && m.Votes != 1:
		return fmt.Errorf("votes field value is %d but must be 0 or 1", m.Votes)
	case m.Arbiter && m.Priority != 0:
		return fmt.Errorf("member %s is an arbiter but has priority %v: an arbiter's priority must be 0", m.Host, m.Priority)
	case m.Arbiter && m.Votes == 0:
		return fmt.Errorf("an arbiter must vote and cannot have 0 votes")
	case m.Hidden && m.Priority != 0:
		return fmt.Errorf("priority must be 0 when hidden=true")
	case m.Delay != 0 && m.Priority != 0:
		return fmt.Errorf("priority must be 0 when slaveDelay is used")
	case m.Delay < 0:
		return fmt.Errorf("the delay of %v is negative", m.Delay)
	case m.Delay > maxDelay:
		return fmt.Errorf("the delay of %v is longer than %d days", m.Delay, maxDelay/(24*time.Hour))
	case m.Votes == 0 && m.Priority != 0:
		return fmt.Errorf("priority must be 0 when non-voting (votes:0)")
	}
	if err := checkHost(m.Host); err != nil {
		return err
	}
	return m.checkTags()
}

// Voters is the number of members that vote.
func (c *Config) Voters() int {
	n := 0
	for _, m := range c.Members {
		n += m.Votes
	}
	return n
}

// Majority is the number of votes that wins an election.
func (c *Config) Majority() int { return c.Voters()/2 + 1 }

// WriteMajority is the number of voting data-bearing members that make a write majority-committed.
func (c *Config) WriteMajority() int { return min(c.Majority(), c.BearingVoters()) }

// DataBearing is the number of members that hold data.
func (c *Config) DataBearing() int {
	n := 0
	for _, m := range c.Members {
		if !m.Arbiter {
			n++
		}
	}
	return n
}

// BearingVoters is the number of members that vote and hold data.
func (c *Config) BearingVoters() int {
	n := 0
	for _, m := range c.Members {
		if m.Votes > 0 && !m.Arbiter {
			n++
		}
	}
	return n
}
