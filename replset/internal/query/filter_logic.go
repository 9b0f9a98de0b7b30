package query

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
)

type and struct{ subs []node }

// add takes in a clause; a conjunction in it is taken apart.
func (a *and) add(n node) {
	switch n := n.(type) {
	case nil:
	case *and:
		a.subs = append(a.subs, n.subs...)
	default:
		a.subs = append(a.subs, n)
	}
}

// order sorts the clauses as the server's planner does, by kind and path. It decides which clause is looked at last, and
// that one's array index is the positional $'s.
func (a *and) order() {
	slices.SortStableFunc(a.subs, func(x, y node) int {
		kx, px := rank(x)
		ky, py := rank(y)
		return cmp.Or(cmp.Compare(kx, ky), strings.Compare(px, py))
	})
}

func rank(n node) (kind int, path string) {
	switch n := n.(type) {
	case *and:
		return 0, ""
	case *or:
		return 1, ""
	case *leaf:
		return testRank(n.test), n.path.text
	case *not:
		return 20, ""
	}
	return 30, ""
}

func testRank(t test) int {
	switch t := t.(type) {
	case *elemMatchObject:
		return 2
	case *elemMatchValue:
		return 3
	case sizeTest:
		return 4
	case *comparison:
		return 5 + map[op]int{opEq: 0, opLte: 1, opLt: 2, opGt: 3, opGte: 4}[t.op]
	case *regexTest:
		return 10
	case modTest:
		return 11
	case existsTest:
		return 12
	case *in:
		return 13
	case *bitTest:
		return 14
	}
	return 21
}

func (a *and) match(doc bson.Raw, st *state) bool {
	for _, s := range a.subs {
		if !s.match(doc, st) {
			st.at(-1)
			return false
		}
	}
	return true
}

func (a *and) single(v bson.RawValue, st *state) bool {
	for _, s := range a.subs {
		if !s.single(v, st) {
			return false
		}
	}
	return true
}

type or struct{ subs []node }

func (o *or) match(doc bson.Raw, st *state) bool {
	for _, s := range o.subs {
		inner := state{pos: -1, vars: st.vars} // the server takes no position from a disjunction
		ok := s.match(doc, &inner)
		if inner.err != nil {
			return st.fail(inner.err)
		}
		if ok {
			return true
		}
	}
	return false
}

func (o *or) single(v bson.RawValue, st *state) bool {
	for _, s := range o.subs {
		if s.single(v, st) {
			return true
		}
	}
	return false
}

// not negates; a match inside says nothing about a position.
type not struct{ sub node }

func (n *not) match(doc bson.Raw, st *state) bool {
	inner := state{pos: -1, vars: st.vars}
	ok := n.sub.match(doc, &inner)
	if inner.err != nil {
		return st.fail(inner.err)
	}
	return !ok
}

func (n *not) single(v bson.RawValue, st *state) bool {
	inner := state{pos: -1, vars: st.vars}
	return !n.sub.single(v, &inner)
}

// constant is $alwaysTrue, $alwaysFalse, $comment.
type constant bool

func (c constant) match(bson.Raw, *state) bool       { return bool(c) }
func (c constant) single(bson.RawValue, *state) bool { return bool(c) }
