package command

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// runCount counts documents. Unknown arguments are ignored, as the server does here.
func runCount(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	ns, err := r.Namespace()
	if err != nil {
		return nil, err
	}
	a := &findArgs{ns: ns, filter: bson.Raw{5, 0, 0, 0, 0}}
	if err := r.eachField(func(key string, v bson.RawValue) error { return a.readCount(key, v) }); err != nil {
		return nil, err
	}
	sn, err := m.Read(r)
	if err != nil {
		return nil, err
	}
	coll := sn.Collection(ns)
	if coll != nil && coll.Options().ViewOn != "" {
		return m.countView(r, sn, a)
	}
	n, err := m.count(ctx, coll, a)
	if err != nil {
		return nil, err
	}
	return bson.D{{Key: "n", Value: countValue(n)}}, nil
}

// countValue is an int where it fits.
func countValue(n int64) any {
	if n > math.MaxInt32 {
		return n
	}
	return int32(n)
}

func (a *findArgs) readCount(key string, v bson.RawValue) error {
	var ok bool
	switch key {
	case "query":
		if v.Type == bson.TypeNull {
			return nil
		}
		if a.filter, ok = v.DocumentOK(); !ok {
			return wrongOld(key, v, "object or null")
		}
	case "limit":
		if a.limit, ok = truncated(v); !ok {
			return mongoerr.Server(mongoerr.CodeBadValue, "limit value is not a valid number")
		}
		if a.limit < 0 {
			a.limit = -a.limit
		}
	case "skip":
		if a.skip, ok = truncated(v); !ok {
			return mongoerr.Server(mongoerr.CodeBadValue, "skip value is not a valid number")
		}
		if a.skip < 0 {
			return mongoerr.Server(mongoerr.CodeBadValue, "skip value is negative in count query")
		}
	case "hint":
		a.hint = v
	case "collation":
		var err error
		a.collation, err = collationField(key, v)
		return err
	}
	return nil
}

func (m *Member) count(ctx context.Context, coll *store.Coll, a *findArgs) (int64, error) {
	q, err := m.compileFind(ctx, coll, a)
	if err != nil || coll == nil {
		return 0, err
	}
	if a.filter.IsEmpty() && a.hint.IsZero() {
		n := max(0, coll.Count()-a.skip)
		if a.limit > 0 {
			n = min(n, a.limit)
		}
		return n, nil
	}
	seq, _, err := q.run(coll)
	if err != nil {
		return 0, err
	}
	n := int64(0)
	for _, err := range seq {
		if err != nil {
			return 0, err
		}
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
	return n, nil
}

// runDistinct lists the different values of a path, those of arrays one by one.
func runDistinct(_ context.Context, m *Member, r *Request) (bson.D, error) {
	ns, err := r.Namespace()
	if err != nil {
		return nil, err
	}
	a := &findArgs{ns: ns, filter: bson.Raw{5, 0, 0, 0, 0}}
	path, hasPath := "", false
	err = r.eachField(func(key string, v bson.RawValue) error {
		var ok bool
		switch key {
		case "key":
			hasPath = true
			if path, ok = v.StringValueOK(); !ok {
				return wrongOld(key, v, "string")
			}
		case "query":
			if v.Type == bson.TypeNull {
				return nil
			}
			if a.filter, ok = v.DocumentOK(); !ok {
				return wrongOld(key, v, "object or null")
			}
		case "hint":
			a.hint = v
		case "collation":
			var err error
			a.collation, err = collationField(key, v)
			return err
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case !hasPath:
		return nil, mongoerr.Server(mongoerr.CodeNoSuchKey, `Missing expected field "key"`)
	}
	sn, err := m.Read(r)
	if err != nil {
		return nil, err
	}
	docs, err := m.documents(r, sn, a)
	if err != nil {
		return nil, err
	}
	return distinctReply(docs, path, a.collation.on(sn.Collection(ns)))
}

// documents are all that a query on a collection or view gives.
func (m *Member) documents(r *Request, sn *store.Snapshot, a *findArgs) ([]bson.Raw, error) {
	coll := sn.Collection(a.ns)
	q, err := m.compileFind(r.Context(), coll, a)
	if err != nil || coll == nil {
		return nil, err
	}
	if coll.Options().ViewOn != "" {
		return m.viewDocuments(r, sn, a)
	}
	seq, _, err := q.run(coll)
	if err != nil {
		return nil, err
	}
	var docs []bson.Raw
	for rec, err := range seq {
		if err != nil {
			return nil, err
		}
		docs = append(docs, rec.Doc)
	}
	return docs, nil
}

// distinctReply keeps the order in which values are first seen, those of one document
// in the order of values.
func distinctReply(docs []bson.Raw, path string, collation bson.Raw) (bson.D, error) {
	coll, err := value.ParseCollation(collation)
	if err != nil {
		return nil, err
	}
	values := bson.A{}
	size := 0
	seen := &valueSet{coll: coll}
	for _, doc := range docs {
		var of []bson.RawValue
		valuesAt(doc, path, func(v bson.RawValue) { of = append(of, v) })
		slices.SortStableFunc(of, seen.compare)
		for _, v := range of {
			if !seen.add(v) {
				continue
			}
			if size += len(v.Value) + 8; size > store.MaxDocumentSize {
				return nil, mongoerr.Server(17217, "distinct too big, 16mb cap")
			}
			values = append(values, v)
		}
	}
	return bson.D{{Key: "values", Value: values}}, nil
}

// valueSet is an ordered set of values.
type valueSet struct {
	list []bson.RawValue
	coll *value.Collator
}

func (s *valueSet) compare(a, b bson.RawValue) int { return value.CompareWith(a, b, s.coll) }

func (s *valueSet) add(v bson.RawValue) bool {
	i, found := slices.BinarySearchFunc(s.list, v, s.compare)
	if found {
		return false
	}
	s.list = slices.Insert(s.list, i, v)
	return true
}

// valuesAt calls f with each value that a path leads to, through arrays, and with the
// elements of an array at its end.
func valuesAt(doc bson.Raw, path string, f func(bson.RawValue)) {
	key, rest, dotted := strings.Cut(path, ".")
	v := doc.Lookup(key)
	if v.IsZero() {
		return
	}
	arr, isArray := v.ArrayOK()
	switch {
	case !dotted && isArray:
		for _, e := range arr.All() {
			f(e)
		}
	case !dotted:
		f(v)
	case isArray:
		valuesBelow(arr, rest, f)
	default:
		if d, ok := v.DocumentOK(); ok {
			valuesAt(d, rest, f)
		}
	}
}

// valuesBelow follows a path into an array: by position, or into each document.
func valuesBelow(arr bson.RawArray, path string, f func(bson.RawValue)) {
	head, _, _ := strings.Cut(path, ".")
	if _, err := strconv.ParseUint(head, 10, 31); err == nil {
		valuesAt(bson.Raw(arr), path, f)
	}
	for _, e := range arr.All() {
		if d, ok := e.DocumentOK(); ok {
			valuesAt(d, path, f)
		}
	}
}
