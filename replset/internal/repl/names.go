package repl

import (
	"cmp"
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
	case strings.Contains(name, "/"): // "name/host,host" is how old tools write a set
		return fmt.Errorf("the set name %q may hold no slash", name)
	case unprintable(name) != "":
		return fmt.Errorf("the set name %q %s", name, unprintable(name))
	}
	return nil
}

// checkHost refuses what no connection string can hold as a host.
func checkHost(host string) error {
	if host == "" || strings.ContainsAny(host, " /,@?#") {
		return fmt.Errorf("%q is no host:port", host)
	}
	if why := unprintable(host); why != "" {
		return fmt.Errorf("the host %q %s", host, why)
	}
	return nil
}

// checkTags refuses tags that no document can hold.
func (m MemberConfig) checkTags() error {
	if m.Arbiter && len(m.Tags) > 0 {
		return fmt.Errorf("an arbiter cannot have tags")
	}
	for _, t := range m.Tags {
		if t.Name == "" {
			return fmt.Errorf("the tag with the value %q has no name", t.Value)
		}
		if why := cmp.Or(unprintable(t.Name), unprintable(t.Value)); why != "" {
			return fmt.Errorf("the tag %q: %q %s", t.Name, t.Value, why)
		}
	}
	return nil
}

// unprintable says what is wrong with a text that somebody has to print, or send; "" if nothing is.
func unprintable(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "holds control characters"
	}
	return ""
}

// checkModes refuses write concern modes without a meaning. One that asks for more values than there are stays, as on a
// server: more members may come.
func (c *Config) checkModes() error {
	for name, mode := range c.Modes {
		if name == "" || name == "majority" {
			return fmt.Errorf("a write concern mode cannot be called %q", name)
		}
		if why := unprintable(name); why != "" {
			return fmt.Errorf("the name of the write concern mode %q %s", name, why)
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
