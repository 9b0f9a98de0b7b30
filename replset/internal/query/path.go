package query

import (
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// path is a dotted path cut into its parts: "a.0.b". Only the dot divides: parts may hold spaces, digits or nothing.
type path struct {
	text  string
	parts []string
}

func newPath(text string) path { return path{text, strings.Split(text, ".")} }

// reach walks through documents only. It ends at the last part or at the first array, and says how many parts it used;
// a scalar in the middle of the path is a missing value.
func reach(doc bson.Raw, parts []string) (v bson.RawValue, used int) {
	for i, part := range parts {
		v = value.Get(doc, part)
		switch v.Type {
		case 0:
			return v, i
		case bson.TypeEmbeddedDocument:
			doc = bson.Raw(v.Value)
		case bson.TypeArray:
			return v, i + 1
		default:
			if i+1 < len(parts) {
				return value.Missing, i
			}
		}
	}
	return v, len(parts)
}

// visit is called for each value that a path leads to; index is the position in the outermost array that was walked
// implicitly, -1 if there was none. Visiting ends when it answers true.
type visit func(v bson.RawValue, index int) bool

// each visits what a path leads to in a document, as a filter sees it: arrays on the way are walked element by element and
// by index, and an array at the end is visited element by element (if leaves is set) and then as a whole.
// A path that leads nowhere in a document visits one missing value; one that leads nowhere in an array visits nothing.
func each(doc bson.Raw, parts []string, leaves bool, f visit) bool {
	v, used := reach(doc, parts)
	if v.Type != bson.TypeArray {
		return f(v, -1)
	}
	rest := parts[used:]
	if len(rest) == 0 || len(rest) == 1 && rest[0] == "" { // "a." means a, once a is an array
		if leaves && eachElement(bson.RawArray(v.Value), f) {
			return true
		}
		return f(v, -1)
	}
	return eachInArray(bson.RawArray(v.Value), rest, leaves, f)
}

func eachElement(a bson.RawArray, f visit) bool {
	for i, e := range a.All() {
		if f(e, i) {
			return true
		}
	}
	return false
}

// eachInArray goes on with the rest of a path inside an array: into each document that lies in it, and, if the next part is
// a number, to the element of that index.
func eachInArray(a bson.RawArray, rest []string, leaves bool, f visit) bool {
	want, numeric := value.ParseIndex(rest[0])
	for i, e := range a.All() {
		outer := func(v bson.RawValue, _ int) bool { return f(v, i) }
		if e.Type == bson.TypeEmbeddedDocument && each(bson.Raw(e.Value), rest, leaves, outer) {
			return true
		}
		if numeric && i == want && atIndex(e, rest[1:], leaves, f) {
			return true
		}
	}
	return false
}

// atIndex goes on from an element that the path named by its index.
func atIndex(e bson.RawValue, rest []string, leaves bool, f visit) bool {
	switch {
	case len(rest) == 0:
		return f(e, -1)
	case e.Type == bson.TypeEmbeddedDocument:
		return each(bson.Raw(e.Value), rest, leaves, f)
	case e.Type == bson.TypeArray:
		return eachInArray(bson.RawArray(e.Value), rest, leaves, f)
	}
	return false
}

// onPath says whether one of two paths is the other or leads through it.
func onPath(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}
