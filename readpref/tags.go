package readpref

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Tag is one word that a member of a replica set is marked with, such as dc: "east".
type Tag struct{ Key, Value string }

// TagSet is a set of tags that a member must all have. Order is kept for printing only. The empty set matches every
// member.
type TagSet []Tag

// Match says whether a member with these tags has every tag of the set.
func (s TagSet) Match(tags map[string]string) bool {
	for _, t := range s {
		if v, ok := tags[t.Key]; !ok || v != t.Value {
			return false
		}
	}
	return true
}

func (s TagSet) duplicate() (key string, twice bool) {
	for i, t := range s {
		if slices.ContainsFunc(s[:i], func(u Tag) bool { return u.Key == t.Key }) {
			return t.Key, true
		}
	}
	return "", false
}

// String is `{dc: "east", use: "reporting"}`.
func (s TagSet) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, t := range s {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(t.Key + ": " + strconv.Quote(t.Value))
	}
	b.WriteByte('}')
	return b.String()
}

// FormatTagSets is `[{dc: "east"}, {}]`.
func FormatTagSets(sets []TagSet) string {
	words := make([]string, len(sets))
	for i, s := range sets {
		words[i] = s.String()
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// TagSetOf makes a tag set of a map, its keys in alphabetical order.
func TagSetOf(tags map[string]string) TagSet {
	set := make(TagSet, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		set = append(set, Tag{k, tags[k]})
	}
	return set
}
