package sextant

import (
	"context"

	"github.com/sextantdb/sextant/bson"
)

// InsertOneOptions are the options of InsertOne; zero fields are not sent.
type InsertOneOptions struct {
	BypassDocumentValidation *bool
	Comment                  any   // any value; servers before 4.4 refuse it
	RawData                  *bool // work on the raw buckets of a time series (8.2)
}

// InsertOneResult says what was inserted.
type InsertOneResult struct {
	InsertedID   any  // the _id: a bson.ObjectID if it was generated, else what the document held
	Acknowledged bool // false with an unacknowledged write concern: the server has not answered
}

// InsertOne inserts a document, which gets an _id (an ObjectID, first) unless it has one. A generated id is written
// back into a struct passed by pointer whose _id field is the zero ObjectID, into a map, and into a *bson.D.
// The insert is retried once if the connection fails or the primary changes.
func (c *Collection[T]) InsertOne(ctx context.Context, doc any, opts ...InsertOneOptions) (*InsertOneResult, error) {
	o, err := one("insert", opts)
	if err != nil {
		return nil, err
	}
	docs, ids, err := c.at().encodeInserts(1, func(int) any { return doc })
	if err != nil {
		return nil, err
	}
	w := writes{
		h: c.at(), lots: []lot{{command: "insert", list: docs}}, noun: "document", ordered: true,
		bypass: o.BypassDocumentValidation, comment: o.Comment, rawData: o.RawData,
	}
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	return &InsertOneResult{InsertedID: anyOf(c.at().set.bson, ids[0]), Acknowledged: c.at().acknowledged()}, nil
}

// acknowledged reports whether writes through this handle are answered.
func (h *handle) acknowledged() bool { return h.set.writeConcern.Acknowledged() }

// chunk is the size at which the encoding of many documents goes on in a new buffer, so that growing stays cheap.
const chunk = 1 << 18

// encodeInserts encodes n documents, giving each an _id.
func (h *handle) encodeInserts(n int, at func(int) any) ([]bson.Raw, []bson.RawValue, error) {
	if h.err != nil {
		return nil, nil, h.err
	}
	docs, ids := make([]bson.Raw, n), make([]bson.RawValue, n)
	var buf []byte
	for i := range n {
		doc := at(i)
		if isNil(doc) {
			return nil, nil, nilDocument("insert", h.ns(), which(n, i))
		}
		start := len(buf)
		var err error
		// Earlier documents stay where they are when buf grows into a new array: they keep the old one.
		if buf, ids[i], err = appendInsert(h.set.bson, buf, doc, bson.NewObjectID); err != nil {
			return nil, nil, encodeError("insert", h.ns(), which(n, i), err)
		}
		docs[i] = bson.Raw(buf[start:len(buf):len(buf)])
		if len(buf) >= chunk {
			buf = nil
		}
	}
	return docs, ids, nil
}

// which names a document of an insert in an error.
func which(n, i int) string {
	if n == 1 {
		return "the document"
	}
	return "document " + index(i)
}
