package sextant

import (
	"context"
	"reflect"

	"github.com/sextantdb/sextant/bson"
)

// InsertManyOptions are the options of InsertMany; zero fields are not sent.
type InsertManyOptions struct {
	Ordered                  *bool // nil is true: stop at the first document that fails
	BypassDocumentValidation *bool
	Comment                  any
	RawData                  *bool
}

// InsertManyResult says what was inserted. It is also returned beside an error, when a part was inserted.
type InsertManyResult struct {
	// InsertedIDs has the _id of each document given, at the same index; nil for one that was not inserted, or of
	// which that is not known since the connection failed.
	InsertedIDs   []any
	InsertedCount int64
	Acknowledged  bool
}

// InsertMany inserts the documents of a slice ([]T, []*T, []any, []bson.D ...), each with an _id as in InsertOne. It
// sends as many commands as the server's limits demand; each is retried once on its own. A document that is too large for
// the server is an error before anything is sent.
//
// An error names the documents that failed in its WriteErrors, by their index in docs; the result beside it says
// what was inserted all the same.
func (c *Collection[T]) InsertMany(ctx context.Context, docs any, opts ...InsertManyOptions) (*InsertManyResult, error) {
	o, err := one("insert", opts)
	if err != nil {
		return nil, err
	}
	n, at, err := c.at().documents(docs)
	if err != nil {
		return nil, err
	}
	raws, ids, err := c.at().encodeInserts(n, at)
	if err != nil {
		return nil, err
	}
	w := writes{
		h: c.at(), lots: []lot{{command: "insert", list: raws}}, noun: "document", ordered: o.Ordered == nil || *o.Ordered,
		bypass: o.BypassDocumentValidation, comment: o.Comment, rawData: o.RawData,
	}
	err = w.run(ctx)
	return w.inserted(ids), err
}

// documents is the number of documents in a slice of any type, and how to get at each.
func (h *handle) documents(docs any) (int, func(int) any, error) {
	switch docs.(type) {
	case bson.D, bson.Raw, bson.RawArray, []byte:
		return 0, nil, argument("insert", h.ns(), "InsertMany takes a slice of documents, not one document (%T)", docs)
	case nil:
		return 0, nil, nilDocument("insert", h.ns(), "the slice of documents")
	}
	v := reflect.ValueOf(docs)
	if v.Kind() != reflect.Slice {
		return 0, nil, argument("insert", h.ns(), "InsertMany takes a slice of documents, not a %T", docs)
	}
	if v.Len() == 0 {
		return 0, nil, argument("insert", h.ns(), "the slice of documents is empty")
	}
	return v.Len(), func(i int) any { return v.Index(i).Interface() }, nil
}

// inserted is the result of writes that are one lot of documents with these ids.
func (w *writes) inserted(ids []bson.RawValue) *InsertManyResult {
	r := &InsertManyResult{InsertedIDs: make([]any, len(ids)), Acknowledged: w.h.acknowledged()}
	for i, id := range ids {
		r.InsertedIDs[i] = anyOf(w.h.set.bson, id)
	}
	for _, i := range w.failed {
		r.InsertedIDs[i] = nil
	}
	r.InsertedCount = int64(len(ids) - len(w.failed))
	return r
}
