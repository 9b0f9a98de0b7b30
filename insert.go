package sextant

import (
	"context"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/internal/wire"
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
	b := inserts{h: c.at(), ordered: true, docs: docs, bypass: o.BypassDocumentValidation, comment: o.Comment, rawData: o.RawData}
	if err := b.run(ctx); err != nil {
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

// inserts is one insert of any number of documents, sent in as many commands as the server's limits demand.
type inserts struct {
	h               *handle
	docs            []bson.Raw
	ordered         bool
	bypass, rawData *bool
	comment         any
	failed          []int // indexes of the documents that surely or possibly were not inserted
}

// run sends all batches. With ordered, the first failed document ends it; what was inserted stays. Errors of several
// batches become one, whose write errors have the indexes of the caller's documents.
func (b *inserts) run(ctx context.Context) error {
	var all batchError
	for done := 0; done < len(b.docs); {
		took, err := b.send(ctx, done)
		next := done + took
		if err == nil {
			done = next
			continue
		}
		if !all.add(err, done) { // not an answer about documents: nothing is known of this batch
			b.fail(done, len(b.docs))
			break
		}
		stop := b.note(&all, done, next)
		if stop {
			break
		}
		done = next
	}
	return all.err()
}

// note records which documents of the batch from done to next failed, and whether the rest is not to be sent.
func (b *inserts) note(all *batchError, done, next int) (stop bool) {
	first := next
	for _, w := range all.last {
		b.failed = append(b.failed, w)
		first = min(first, w)
	}
	if !b.ordered || first == next {
		return false
	}
	b.failed = b.failed[:len(b.failed)-len(all.last)]
	b.fail(first, len(b.docs))
	return true
}

func (b *inserts) fail(from, to int) {
	for i := from; i < to; i++ {
		b.failed = append(b.failed, i)
	}
}

// send sends one command with as many of the documents from first on as the chosen server takes.
func (b *inserts) send(ctx context.Context, first int) (took int, err error) {
	c := b.h.cmd("insert")
	c.b = bson.AppendBoolean(c.b, "ordered", b.ordered)
	c.opt("bypassDocumentValidation", b.bypass)
	c.any("comment", b.comment)
	c.rawData = b.rawData
	op := b.h.write(c, true)
	op.Sequence = func(dst []byte, t operation.Target) (_ []byte, err error) {
		dst, took, err = b.fill(dst, first, t)
		op.Statements = took
		return dst, err
	}
	err = b.h.run(ctx, c, op)
	return took, err
}

// fill appends documents from first on until the message is full, and returns how many.
func (b *inserts) fill(dst []byte, first int, t operation.Target) ([]byte, int, error) {
	dst, start := wire.AppendSequenceStart(dst, "documents")
	batch := operation.NewBatch(t, len(dst))
	for i, doc := range b.docs[first:] {
		ok, err := batch.Add(first+i, len(doc))
		if err != nil {
			return dst, 0, err
		}
		if !ok {
			break
		}
		dst = append(dst, doc...)
	}
	return wire.EndSequence(dst, start), batch.Count(), nil
}
