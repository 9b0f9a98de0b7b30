package sextant

import (
	"context"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/operation"
)

// DeleteOneOptions are the options of DeleteOne; zero fields are not sent.
type DeleteOneOptions struct {
	Collation *Collation
	Comment   any
	Hint      any // an index: its name or its keys (4.4)
	Let       any // variables for expressions (5.0)
	RawData   *bool
}

// DeleteManyOptions are the options of DeleteMany; zero fields are not sent.
type DeleteManyOptions DeleteOneOptions

// DeleteResult says what a delete did.
type DeleteResult struct {
	DeletedCount int64
	Acknowledged bool
}

// DeleteOne deletes the first document that matches the filter. It is retried once if the connection fails or the
// primary changes.
func (c *Collection[T]) DeleteOne(ctx context.Context, filter any, opts ...DeleteOneOptions) (*DeleteResult, error) {
	o, err := one("delete", opts)
	if err != nil {
		return nil, err
	}
	return c.at().delete(ctx, filter, 1, &o)
}

// DeleteMany deletes all documents that match the filter; bson.D{} matches all. It is never retried.
func (c *Collection[T]) DeleteMany(ctx context.Context, filter any, opts ...DeleteManyOptions) (*DeleteResult, error) {
	o, err := one("delete", opts)
	if err != nil {
		return nil, err
	}
	d := DeleteOneOptions(o)
	return c.at().delete(ctx, filter, 0, &d)
}

// delete sends a delete with one statement; limit is 1 for the first match, 0 for all.
func (h *handle) delete(ctx context.Context, filter any, limit int32, o *DeleteOneOptions) (*DeleteResult, error) {
	c := h.cmd("delete")
	c.b = bson.AppendBoolean(c.b, "ordered", true)
	c.any("comment", o.Comment)
	c.optDoc("let", o.Let)
	c.rawData = o.RawData
	var list, entry int
	c.b, list = bson.BeginArrayElement(c.b, "deletes")
	c.b, entry = bson.BeginDocumentElement(c.b, "0")
	c.deletion(filter, limit, o.Hint, o.Collation)
	c.b = bson.EndDocument(bson.EndDocument(c.b, entry), list)
	op := h.write(c, limit == 1)
	if o.Hint != nil && !h.acknowledged() { // else the server tells
		c.demand(op, "the option hint", wire44)
	}
	op.Statements = 1
	res := &DeleteResult{Acknowledged: h.acknowledged()}
	op.Decode = res.decode
	err := h.run(ctx, c, op)
	if done, err := partial(err, res.decode); !done {
		return nil, err
	}
	return res, err
}

func (r *DeleteResult) decode(reply bson.Raw, _ operation.Result) error {
	r.DeletedCount = judged(reply, "n")
	return nil
}

// deletion appends the elements of one statement.
func (c *cmd) deletion(filter any, limit int32, hint any, collation *Collation) {
	c.docAs("q", "filter", filter)
	c.b = bson.AppendInt32(c.b, "limit", limit)
	c.hint(hint)
	c.collation(collation)
}
