package query

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Update is a parsed update: operators, a replacement document, or a pipeline.
type Update struct {
	opts     Options
	root     *objectNode // operators
	replace  bson.Raw    // replacement
	isDoc    bool        // it is a replacement
	pipeline *Pipeline
}

// ParseUpdate parses the update argument of a command with its array filters.
func ParseUpdate(u bson.RawValue, arrayFilters []bson.Raw, o Options) (*Update, error) {
	out := &Update{opts: o}
	if u.Type == bson.TypeArray {
		return out, out.parsePipeline(bson.RawArray(u.Value), arrayFilters)
	}
	doc := value.Doc(u)
	first, _ := value.First(doc)
	if !strings.HasPrefix(first, "$") {
		out.replace, out.isDoc = doc, true
		return out, nil
	}
	p, err := newUpdateParser(o, arrayFilters)
	if err != nil {
		return nil, err
	}
	if out.root, err = p.operators(doc); err != nil {
		return nil, err
	}
	return out, p.unusedFilter(doc)
}

// IsReplacement says that the update is a whole document; such an update cannot be multi.
func (u *Update) IsReplacement() bool { return u.isDoc }

// Apply gives the updated document. pos is the index that the filter matched in an array, for the positional $, -1 if none.
// insert is true for the document of an upsert: $setOnInsert works and _id may be set. The result is not changed (and is
// doc itself) when the update would write what is there.
func (u *Update) Apply(doc bson.Raw, pos int, insert bool) (out bson.Raw, changed bool, err error) {
	if out, changed, err = u.apply(doc, pos, insert); err == nil && changed {
		err = checkDepth(out)
	}
	return out, changed, err
}

func (u *Update) apply(doc bson.Raw, pos int, insert bool) (out bson.Raw, changed bool, err error) {
	switch {
	case u.pipeline != nil:
		return u.applyPipeline(doc, insert)
	case u.isDoc:
		return u.applyReplacement(doc, insert)
	}
	a := &applying{root: newTree(doc), insert: insert, opts: u.opts}
	if pos >= 0 {
		a.matched = value.Index(pos)
	}
	changed, err = u.root.apply(a, cursorAt(a.root))
	if err != nil {
		return nil, false, err
	}
	if !changed {
		return doc, false, nil
	}
	return a.root.doc(), true, nil
}

// applying is the state of one application.
type applying struct {
	root    *elem
	insert  bool
	matched string // array index for the positional operator, empty if the filter gave none
	opts    Options
}

// place is where a path has come to: the last element that exists, and the parts that do not exist yet.
type place struct {
	at      *elem
	taken   []string
	missing []string
}

func cursorAt(root *elem) place { return place{at: root} }

// step goes one part further.
func (p place) step(part string) place {
	if len(p.missing) == 0 {
		if k := p.at.child(part); k != nil {
			return place{at: k, taken: extend(p.taken, part)}
		}
	}
	return place{at: p.at, taken: p.taken, missing: extend(p.missing, part)}
}

// extend appends without ever sharing the tail with another path.
func extend(parts []string, part string) []string { return append(parts[:len(parts):len(parts)], part) }

func (p place) text() string {
	return strings.Join(append(p.taken[:len(p.taken):len(p.taken)], p.missing...), ".")
}
