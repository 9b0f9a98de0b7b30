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

// MemberConfig is one member of the set's configuration. Its place in Config.Members is its number.
type MemberConfig struct {
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

// Config is the set's configuration. It is never changed once in use: a new version replaces it.
type Config struct {
	SetName           string
	Version           int32
	Members           []MemberConfig
	ElectionTimeout   time.Duration             // silence of the primary after which a secondary stands for election
	HeartbeatInterval time.Duration             // pause between two heartbeats to one member
	CatchUpTimeout    time.Duration             // how long a winner pulls what fresher members have before it takes writes
	Modes             map[string]map[string]int // write concern modes: name -> tag -> number of distinct values
}

// Validate refuses what a replica set's configuration may not say.
func (c *Config) Validate() error {
	if n := len(c.Members); n < 1 || n > 7 {
		return fmt.Errorf("a replica set here has 1 to 7 members, not %d", n)
	}
	if err := checkSetName(c.SetName); err != nil {
		return err
	}
	electable := false
	hosts := map[string]bool{}
	for i, m := range c.Members {
		if err := m.validate(); err != nil {
			return fmt.Errorf("member %d (%s): %w", i, m.Host, err)
		}
		if hosts[m.Host] {
			return fmt.Errorf("member %d: two members have the host %s", i, m.Host)
		}
		hosts[m.Host] = true
		electable = electable || m.Electable() && m.Votes > 0
	}
	if !electable {
		return fmt.Errorf("the configuration must contain at least one non-arbiter member with priority > 0")
	}
	return c.checkModes()
}

func (m MemberConfig) validate() error {
	switch {
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
func (c *Config) WriteMajority() int {
	bearing := 0
	for _, m := range c.Members {
		if m.Votes > 0 && !m.Arbiter {
			bearing++
		}
	}
	return min(c.Majority(), bearing)
}

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
