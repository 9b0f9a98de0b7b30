package sextant

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/readpref"
)

// AggregateOptions are the options of Aggregate and AggregateDatabase; zero fields are not sent.
type AggregateOptions struct {
	ReadPreference           *readpref.ReadPref // of this call alone; nil inherits
	Pin                      *Pin               // go where it is, in the place of ReadPreference
	Selector                 Selector           // of this call alone; nil: none
	AllowDiskUse             *bool
	BatchSize                int32
	BypassDocumentValidation *bool // for $out and $merge
	Collation                *Collation
	Comment                  any
	Hint                     any
	Let                      any
	MaxTime                  time.Duration
	RawData                  *bool
}

// Aggregate runs a pipeline over a collection and returns a cursor over documents of type R. The pipeline is a slice
// of stages such as []bson.D. It is a function since R need not be the collection's type.
//
// With $out or $merge as the last stage it writes: then it is not retried, the collection's write concern is sent, and
// it runs on a secondary only if a read preference asks for one and every member is of version 5.0 or later.
func Aggregate[R, T any](ctx context.Context, c *Collection[T], pipeline any, opts ...AggregateOptions) (*Cursor[R], error) {
	return aggregate[R](ctx, c.at(), pipeline, opts)
}

// AggregateDatabase runs a pipeline that needs no collection, such as {$currentOp: {}} or {$documents: [...]}.
func AggregateDatabase[R any](ctx context.Context, d *Database, pipeline any, opts ...AggregateOptions) (*Cursor[R], error) {
	return aggregate[R](ctx, d.at(), pipeline, opts)
}

func aggregate[R any](ctx context.Context, h *handle, pipeline any, opts []AggregateOptions) (*Cursor[R], error) {
	o, err := one("aggregate", opts)
	if err != nil {
		return nil, err
	}
	b, err := h.aggregate(ctx, pipeline, &o)
	if err != nil {
		return nil, err
	}
	return &Cursor[R]{b: b}, nil
}

func (h *handle) aggregate(ctx context.Context, pipeline any, o *AggregateOptions) (*batches, error) {
	c := h.aggregateCmd()
	at := len(c.b)
	c.pipeline("pipeline", pipeline)
	writes := c.err == nil && endsInWrite(c.b[at:])
	c.cursor(o.BatchSize)
	c.opt("allowDiskUse", o.AllowDiskUse)
	if writes {
		c.opt("bypassDocumentValidation", o.BypassDocumentValidation)
	}
	c.collation(o.Collation)
	c.any("comment", o.Comment)
	c.hint(o.Hint)
	c.optDoc("let", o.Let)
	c.millis("maxTimeMS", o.MaxTime)
	c.rawData = o.RawData
	op := h.read(c, route{o.ReadPreference, o.Pin, o.Selector})
	if writes {
		op.WriteConcern, op.Retryable, op.OutMerge = h.set.writeConcern, false, true
	}
	b := &batches{h: h, op: "aggregate", decoder: h.set.bson.NewBatch(), batchSize: o.BatchSize}
	b.setComment(c, o.Comment)
	return b, b.open(ctx, c, op)
}

// aggregateCmd starts the command: a collection's name, or 1 for the whole database.
func (h *handle) aggregateCmd() *cmd {
	if h.coll != "" {
		return h.cmd("aggregate")
	}
	return h.encoded(&cmd{name: "aggregate", ns: h.ns(), b: bson.AppendInt32(nil, "aggregate", 1)})
}

// cursor appends {cursor: {batchSize}}, which every command that makes a cursor must have.
func (c *cmd) cursor(batchSize int32) {
	if batchSize < 0 {
		c.fail(argument(c.name, c.ns, "BatchSize is negative (%d)", batchSize))
	}
	var start int
	c.b, start = bson.BeginDocumentElement(c.b, "cursor")
	c.i32("batchSize", batchSize)
	c.b = bson.EndDocument(c.b, start)
}

// endsInWrite reports whether the encoded element "pipeline" ends in a stage that writes.
func endsInWrite(e []byte) bool {
	var last bson.RawValue
	for _, v := range bson.RawArray(e[1+len("pipeline")+1:]).All() {
		last = v
	}
	stage, ok := last.DocumentOK()
	if !ok {
		return false
	}
	for k := range stage.All() {
		return k == "$out" || k == "$merge"
	}
	return false
}
