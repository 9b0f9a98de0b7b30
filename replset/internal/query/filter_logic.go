package query

import (
	"github.com/sextantdb/sextant/bson"
)

type and struct{ subs []node }

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
		if s.match(doc, st) {
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
	inner := state{pos: -1}
	ok := n.sub.match(doc, &inner)
	if inner.err != nil {
		return st.fail(inner.err)
	}
	return !ok
}

func (n *not) single(v bson.RawValue, st *state) bool {
	inner := state{pos: -1}
	return !n.sub.single(v, &inner)
}

// constant is $alwaysTrue, $alwaysFalse, $comment.
type constant bool

func (c constant) match(bson.Raw, *state) bool       { return bool(c) }
func (c constant) single(bson.RawValue, *state) bool { return bool(c) }
