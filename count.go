package sextant

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/readpref"
)

// CountOptions are the options of CountDocuments; zero fields are not sent.
type CountOptions struct {
	ReadPreference *readpref.ReadPref // of this call alone; nil inherits
	Pin            *Pin               // go where it is, in the place of ReadPreference
	Selector       Selector           // of this call alone; nil: none
	Collation      *Collation
	Comment        any
	Hint           any
	Limit          int64 // count no further than this; 0 is no limit
	MaxTime        time.Duration
	Skip           int64
	RawData        *bool
}

// EstimatedDocumentCountOptions are the options of EstimatedDocumentCount; zero fields are not sent.
type EstimatedDocumentCountOptions struct {
	ReadPreference *readpref.ReadPref
	Pin            *Pin // go where it is, in the place of ReadPreference
	Selector       Selector
	Comment        any // 4.4.14 and later
	MaxTime        time.Duration
	RawData        *bool
}

// CountDocuments counts the documents that match the filter by an aggregation: exact, and as slow as the query. In a
// filter, $where, $near and $nearSphere do not work; use $expr, and $geoWithin with $center or $centerSphere.
func (c *Collection[T]) CountDocuments(ctx context.Context, filter any, opts ...CountOptions) (int64, error) {
	o, err := one("aggregate", opts)
	if err != nil {
		return 0, err
	}
	return c.at().countDocuments(ctx, filter, &o)
}

func (h *handle) countDocuments(ctx context.Context, filter any, o *CountOptions) (int64, error) {
	c := h.cmd("aggregate")
	c.countPipeline(filter, o)
	c.cursor(0)
	c.collation(o.Collation)
	c.any("comment", o.Comment)
	c.hint(o.Hint)
	c.millis("maxTimeMS", o.MaxTime)
	c.rawData = o.RawData
	op := h.read(c, route{o.ReadPreference, o.Pin, o.Selector})
	var n int64
	op.Decode = func(reply bson.Raw, _ operation.Result) error {
		cur, err := readCursor(reply, h.db)
		if err != nil {
			return err
		}
		n = 0
		if doc, _, _ := nextDoc(cur.docs); doc != nil { // no document: nothing matched
			n, err = count(doc, "n", "cursor.firstBatch.0.n")
		}
		return err
	}
	err := h.run(ctx, c, op)
	return n, err
}

// countPipeline appends the stages that count (CRUD specification, "count API details").
func (c *cmd) countPipeline(filter any, o *CountOptions) {
	if o.Skip < 0 || o.Limit < 0 {
		c.fail(argument(c.name, c.ns, "Skip and Limit must not be negative (%d, %d)", o.Skip, o.Limit))
	}
	var list int
	c.b, list = bson.BeginArrayElement(c.b, "pipeline")
	i := 0
	stage := func(add func()) {
		var start int
		c.b, start = bson.BeginDocumentElement(c.b, index(i))
		add()
		c.b = bson.EndDocument(c.b, start)
		i++
	}
	stage(func() { c.docAs("$match", "filter", filter) })
	if o.Skip > 0 {
		stage(func() { c.i64("$skip", o.Skip) })
	}
	if o.Limit > 0 {
		stage(func() { c.i64("$limit", o.Limit) })
	}
	stage(func() {
		c.any("$group", bson.D{{Key: "_id", Value: int32(1)}, {Key: "n", Value: bson.D{{Key: "$sum", Value: int32(1)}}}})
	})
	c.b = bson.EndDocument(c.b, list)
}

// EstimatedDocumentCount is the number of documents that the server keeps beside the collection: fast, and possibly
// wrong after a crash or on a sharded cluster. A collection that does not exist has none.
func (c *Collection[T]) EstimatedDocumentCount(ctx context.Context, opts ...EstimatedDocumentCountOptions) (int64, error) {
	o, err := one("count", opts)
	if err != nil {
		return 0, err
	}
	cm := c.at().cmd("count")
	cm.any("comment", o.Comment)
	cm.millis("maxTimeMS", o.MaxTime)
	cm.rawData = o.RawData
	op := c.at().read(cm, route{o.ReadPreference, o.Pin, o.Selector})
	var n int64
	op.Decode = func(reply bson.Raw, _ operation.Result) (err error) {
		n, err = count(reply, "n", "n")
		return err
	}
	err = c.at().run(ctx, cm, op)
	return n, err
}
