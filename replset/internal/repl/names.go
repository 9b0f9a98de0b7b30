package repl

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkSetName refuses names that cannot be told in a hello or asked for in a connection string.
func checkSetName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the set has no name")
	case unprintable(name), strings.Contains(name, "/"): // "name/host,host" is how old tools write a set
		return fmt.Errorf("the set name %q may hold neither a slash nor control characters", name)
	}
	return nil
}

// checkHost refuses what no connection string can hold as a host.
func checkHost(host string) error {
	if host == "" || unprintable(host) || strings.ContainsAny(host, " /,@?#") {
		return fmt.Errorf("%q is no host:port", host)
	}
	return nil
}

// checkTags refuses tags that no document can hold.
func (m MemberConfig) checkTags() error {
	if m.Arbiter && len(m.Tags) > 0 {
		return fmt.Errorf("an arbiter cannot have tags")
	}
	for _, t := range m.Tags {
		if t.Name == "" || unprintable(t.Name) || unprintable(t.Value) {
			return fmt.Errorf("the tag %q: %q has no name, or holds control characters", t.Name, t.Value)
		}
	}
	return nil
}

func unprintable(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl)
}

// checkModes refuses write concern modes without a meaning. One that asks for more values than there are stays, as on a
// server: more members may come.
func (c *Config) checkModes() error {
	for name, mode := range c.Modes {
		if name == "" || name == "majority" || unprintable(name) {
			return fmt.Errorf("a write concern mode cannot be called %q", name)
		}
		if len(mode) == 0 {
			return fmt.Errorf("the write concern mode %s asks for no tag", name)
		}
		for tag, n := range mode {
			if n < 1 {
				return fmt.Errorf("the write concern mode %s asks for %d values of the tag %s", name, n, tag)
			}
			if !c.hasTag(tag) {
				return fmt.Errorf("the write concern mode %s asks for the tag %s, which no member has", name, tag)
			}
		}
	}
	return nil
}

func (c *Config) hasTag(name string) bool {
	return slices.ContainsFunc(c.Members, func(m MemberConfig) bool { _, ok := m.Tag(name); return ok })
}
