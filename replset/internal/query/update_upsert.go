package query

import (
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Upsert builds the document that an upsert inserts when nothing matched: the equalities of the filter (of a replacement
// only its _id), the update applied to them, and an _id in front, made by Options.ObjectID if nothing gave one.
func (u *Update) Upsert(f *Filter) (bson.Raw, error) {
	if usesExpr(f.root) {
		return nil, fail(mongoerr.CodeQueryFeatureNotAllowed, "$expr is not allowed in the query predicate for an upsert")
	}
	eqs, err := upsertEqualities(f)
	if err != nil {
		return nil, err
	}
	root := newTree(value.DocOf())
	for _, e := range eqs {
		if u.isDoc && e.Path != "_id" {
			if strings.HasPrefix(e.Path, "_id.") {
				return nil, fail(111, "field at '_id' must be exactly specified, field at sub-path '%s'found", e.Path)
			}
			continue
		}
		if err := u.setEquality(root, e); err != nil {
			return nil, err
		}
	}
	doc, _, err := u.Apply(root.doc(), -1, true)
	if err != nil {
		return nil, err
	}
	if doc, err = u.withID(doc); err != nil {
		return nil, err
	}
	return doc, u.opts.checkStored(doc)
}

// upsertEqualities are the filter's equalities in the order of their paths, each path once and none above another.
func upsertEqualities(f *Filter) ([]Equality, error) {
	eqs := f.Equalities()
	for i, e := range eqs {
		for _, other := range eqs[:i] {
			if other.Path == e.Path {
				return nil, fail(mongoerr.CodeNotSingleValueField, "cannot infer query fields to set, path '%s' is matched twice", e.Path)
			}
			if onPath(strings.Split(e.Path, "."), strings.Split(other.Path, ".")) {
				long, short := e.Path, other.Path
				if len(long) < len(short) {
					long, short = short, long
				}
				return nil, fail(mongoerr.CodeNotSingleValueField, "cannot infer query fields to set, both paths '%s' and '%s' are matched", long, short)
			}
		}
	}
	slices.SortFunc(eqs, func(a, b Equality) int { return strings.Compare(a.Path, b.Path) })
	return eqs, nil
}

func (u *Update) setEquality(root *elem, e Equality) error {
	at := cursorAt(root)
	for _, part := range strings.Split(e.Path, ".") {
		at = at.step(part)
	}
	if len(at.missing) == 0 {
		at.at.set(e.Value)
		return nil
	}
	return createAt(&applying{root: root, insert: true, opts: u.opts}, at, e.Value)
}

// withID moves the _id to the front, making one if there is none.
func (u *Update) withID(doc bson.Raw) (bson.Raw, error) {
	id := value.Get(doc, "_id")
	if id.Type == 0 {
		if u.opts.ObjectID == nil {
			return nil, fail(mongoerr.CodeInternalError, "an upsert needs a source of object ids")
		}
		id = bson.ObjectIDValue(u.opts.ObjectID())
	}
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendValue(dst, "_id", id)
	for k, v := range doc.All() {
		if k != "_id" {
			dst = bson.AppendValue(dst, k, v)
		}
	}
	return bson.EndDocument(dst, start), nil
}
