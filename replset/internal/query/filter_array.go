package query

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// sizeTest is $size.
type sizeTest int

func (s sizeTest) holds(v bson.RawValue, _ *state) bool {
	return v.Type == bson.TypeArray && bson.RawArray(v.Value).Len() == int(s)
}

// elemMatchValue is $elemMatch with operators: one element satisfies them all.
type elemMatchValue struct{ subs []node }

func (m *elemMatchValue) holds(v bson.RawValue, st *state) bool {
	if v.Type != bson.TypeArray {
		return false
	}
	return eachElement(bson.RawArray(v.Value), func(e bson.RawValue, i int) bool {
		inner := state{pos: -1}
		for _, s := range m.subs {
			if !s.single(e, &inner) {
				return false
			}
		}
		st.at(i)
		return true
	})
}

// elemMatchObject is $elemMatch with a query: one element, a document or an array, matches it.
type elemMatchObject struct{ sub node }

func (m *elemMatchObject) holds(v bson.RawValue, st *state) bool {
	if v.Type != bson.TypeArray {
		return false
	}
	return eachElement(bson.RawArray(v.Value), func(e bson.RawValue, i int) bool {
		doc := value.Doc(e)
		inner := state{pos: -1}
		if doc == nil || !m.sub.match(doc, &inner) {
			return false
		}
		st.at(i)
		return true
	})
}
