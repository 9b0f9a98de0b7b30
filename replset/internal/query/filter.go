package query

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Filter is a parsed query predicate.
type Filter struct {
	root node
	raw  bson.Raw
	opts Options
	coll *value.Collator
}

// ParseFilter parses a query document. The error has the server's code and text.
func ParseFilter(f bson.Raw, o Options) (*Filter, error) {
	c, err := value.ParseCollation(o.Collation)
	if err != nil {
		return nil, err
	}
	p := parser{opts: o, coll: c}
	root, err := p.document(f, levelTop)
	if err != nil {
		return nil, err
	}
	return &Filter{root: root, raw: f, opts: o, coll: c}, nil
}

// Match says whether the document matches. Only $expr can fail on a document; Match takes that for no match, so
// commands that must report it use Eval.
func (f *Filter) Match(doc bson.Raw) bool {
	ok, _, err := f.Eval(doc)
	return ok && err == nil
}

// MatchPos is Match with the index for the positional $: where in the array the match was found, -1 if in none.
func (f *Filter) MatchPos(doc bson.Raw) (ok bool, arrayIndex int) {
	ok, pos, err := f.Eval(doc)
	return ok && err == nil, pos
}

// Eval matches a document and reports the index for the positional $ (-1: none) and a failed $expr.
func (f *Filter) Eval(doc bson.Raw) (ok bool, arrayIndex int, err error) { return f.eval(doc, nil) }

func (f *Filter) eval(doc bson.Raw, vars *expr.Vars) (ok bool, arrayIndex int, err error) {
	if err := f.opts.Meter.Step(0); err != nil {
		return false, -1, err
	}
	st := state{pos: -1, record: true, vars: vars}
	ok = f.root.match(doc, &st)
	if st.err == nil {
		st.err = f.opts.Meter.Over() // found by a part that can only say no, such as a schema's pattern
	}
	if st.err != nil || !ok {
		return false, -1, st.err
	}
	return true, st.pos, nil
}

// IsEmpty says that the filter has no conditions: every document matches.
func (f *Filter) IsEmpty() bool {
	a, ok := f.root.(*and)
	return ok && len(a.subs) == 0
}

// Raw is the document that was parsed.
func (f *Filter) Raw() bson.Raw { return f.raw }

// state travels with one match.
type state struct {
	pos    int
	record bool // false under a negation: what matches there says nothing about a position
	err    error
	vars   *expr.Vars
}

func (st *state) at(i int) {
	if st.record {
		st.pos = i
	}
}

func (st *state) fail(err error) bool {
	if st.err == nil {
		st.err = err
	}
	return false
}

// node is one expression of a filter. match looks at a whole document; single at one value, inside $elemMatch and for
// $pull, where the conditions have no path.
type node interface {
	match(doc bson.Raw, st *state) bool
	single(v bson.RawValue, st *state) bool
}

// test is a condition on one value.
type test interface {
	holds(v bson.RawValue, st *state) bool
}

// leaf applies a test to everything that a path leads to.
type leaf struct {
	path   path
	leaves bool // whether the elements of an array at the end are looked at one by one
	test   test
}

func (l *leaf) match(doc bson.Raw, st *state) bool {
	return each(doc, l.path.parts, l.leaves, func(v bson.RawValue, i int) bool {
		if !l.test.holds(v, st) {
			return false
		}
		if i >= 0 {
			st.at(i)
		}
		return true
	})
}

func (l *leaf) single(v bson.RawValue, st *state) bool { return l.test.holds(v, st) }
