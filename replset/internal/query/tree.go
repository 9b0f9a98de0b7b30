package query

import (
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// elem is one element of a document that is being updated. A container stays bytes until something inside it is asked for;
// then kids holds its elements and val is stale.
type elem struct {
	key    string
	val    bson.RawValue
	kids   []*elem
	open   bool
	parent *elem
}

// newTree is the root of a document; it has no key.
func newTree(doc bson.Raw) *elem {
	return &elem{val: bson.DocumentValue(doc)}
}

func (e *elem) container() bool {
	return e.val.Type == bson.TypeEmbeddedDocument || e.val.Type == bson.TypeArray
}

func (e *elem) isArray() bool { return e.val.Type == bson.TypeArray }

// children opens a container and gives its elements; nil for a scalar.
func (e *elem) children() []*elem {
	if !e.open && e.container() {
		e.open = true
		for k, v := range bson.Raw(e.val.Value).All() {
			e.kids = append(e.kids, &elem{key: k, val: v, parent: e})
		}
	}
	return e.kids
}

// child finds a field of a document by name, an element of an array by index; nil if there is none.
func (e *elem) child(part string) *elem {
	kids := e.children()
	if e.isArray() {
		i, ok := looseIndex(part)
		if !ok || i >= len(kids) {
			return nil
		}
		return kids[i]
	}
	for _, k := range kids {
		if k.key == part {
			return k
		}
	}
	return nil
}

// set replaces the value, keeping the key.
func (e *elem) set(v bson.RawValue) { e.val, e.kids, e.open = v, nil, false }

// insert puts a new element at position i of an open container.
func (e *elem) insert(i int, key string, v bson.RawValue) *elem {
	k := &elem{key: key, val: v, parent: e}
	e.kids = slices.Insert(e.children(), i, k)
	return k
}

func (e *elem) append(key string, v bson.RawValue) *elem {
	return e.insert(len(e.children()), key, v)
}

// remove takes the element out of its parent.
func (e *elem) remove() {
	if i := slices.Index(e.parent.kids, e); i >= 0 {
		e.parent.kids = slices.Delete(e.parent.kids, i, i+1)
	}
}

// index is the place among the siblings.
func (e *elem) index() int { return slices.Index(e.parent.kids, e) }

// value is the present value.
func (e *elem) value() bson.RawValue {
	if !e.open {
		return e.val
	}
	return bson.RawValue{Type: e.val.Type, Value: e.doc()}
}

// doc is the present content of a container.
func (e *elem) doc() bson.Raw {
	if !e.open {
		return bson.Raw(e.val.Value)
	}
	dst, start := bson.BeginDocument(nil)
	for i, k := range e.kids {
		key := k.key
		if e.isArray() {
			key = value.Index(i)
		}
		dst = bson.AppendValue(dst, key, k.value())
	}
	return bson.EndDocument(dst, start)
}

// text prints the element as error messages show it: a: [ 1, 2 ].
func (e *elem) text() string { return value.PrintElement(e.key, e.value()) }

// fullName is the dotted path from the root, as the server builds it: elements that were pushed onto an array have no name.
func (e *elem) fullName() string {
	if e.parent == nil || e.parent.parent == nil {
		return e.key
	}
	return e.parent.fullName() + "." + e.key
}

// idText names a document in an error message by its _id.
func (e *elem) idText() string {
	if id := e.child("_id"); id != nil {
		return id.text()
	}
	return "no id"
}

// indexKey is the text of the element's index in an array.
func (e *elem) indexKey() string { return value.Index(e.index()) }

// looseIndex reads an array index in an update's path, where leading zeros are allowed.
func looseIndex(s string) (int, bool) {
	if t := strings.TrimLeft(s, "0"); t != "" {
		return value.ParseIndex(t)
	}
	return 0, s != ""
}
