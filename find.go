package sextant

import (
	"context"
	"math"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/readpref"
)

// CursorType says what a cursor does at the end of the data.
type CursorType uint8

// The cursor types. NonTailable is the default.
const (
	NonTailable   CursorType = iota
	Tailable                 // of a capped collection: stays open at the end; Next then returns false without an error
	TailableAwait            // the server waits a while for new data before it answers that there is none
)

// FindOptions are the options of Find; zero fields are not sent.
type FindOptions struct {
	ReadPreference      *readpref.ReadPref // of this call alone; nil inherits the collection's
	Pin                 *Pin               // go where it is, in the place of ReadPreference
	Selector            Selector           // of this call alone; nil: none
	AllowDiskUse        *bool              // for a sort (4.4)
	AllowPartialResults *bool              // from a sharded cluster of which a part is down
	BatchSize           int32              // documents a round trip; 0 is the server's choice
	Collation           *Collation
	Comment             any // a string before 4.4; sent with getMore too
	CursorType          CursorType
	Hint                any   // an index: its name or its keys
	Let                 any   // variables for expressions (5.0)
	Limit               int64 // 0 is no limit; -n is n in a single batch
	Max, Min            any   // bounds of the index that Hint names, exclusive and inclusive
	MaxAwaitTime        time.Duration
	MaxTime             time.Duration // how long the server may work on the first batch
	NoCursorTimeout     *bool
	Projection          any
	ReturnKey           *bool
	ShowRecordID        *bool
	Skip                int64
	Sort                any // a document; a map of several keys is an error, since its order is lost
	RawData             *bool
}

// FindOneOptions are the options of FindOne; zero fields are not sent.
type FindOneOptions struct {
	ReadPreference      *readpref.ReadPref
	Pin                 *Pin // go where it is, in the place of ReadPreference
	Selector            Selector
	AllowPartialResults *bool
	Collation           *Collation
	Comment             any
	Hint                any
	Let                 any
	Max, Min            any
	MaxTime             time.Duration
	Projection          any
	ReturnKey           *bool
	ShowRecordID        *bool
	Skip                int64
	Sort                any
	RawData             *bool
}

// Find returns a cursor over the documents that match the filter; bson.D{} matches all. The query is sent by this
// call, and its later batches come from the member that answered. It is retried once, later batches are not.
func (c *Collection[T]) Find(ctx context.Context, filter any, opts ...FindOptions) (*Cursor[T], error) {
	o, err := one("find", opts)
	if err != nil {
		return nil, err
	}
	b, err := c.at().find(ctx, filter, &o)
	if err != nil {
		return nil, err
	}
	return &Cursor[T]{b: b}, nil
}

// FindOne returns the first document that matches the filter, or ErrNoDocuments.
func (c *Collection[T]) FindOne(ctx context.Context, filter any, opts ...FindOneOptions) (T, error) {
	var out T
	o, err := one("find", opts)
	if err != nil {
		return out, err
	}
	full := o.find()
	cm := findCmd(c.at(), filter, &full)
	op := c.at().read(cm, full.route())
	found := false
	op.Decode = func(reply bson.Raw, r operation.Result) error {
		cur, err := readCursor(reply, c.at().db)
		if err != nil {
			return err
		}
		doc, _, _ := nextDoc(cur.docs)
		if doc == nil {
			return nil
		}
		found = true
		return decodeInto(c.at().set.bson, doc, &out, cm.name, cm.ns, r.Server)
	}
	if err := c.at().run(ctx, cm, op); err != nil {
		return *new(T), err
	}
	if !found {
		return out, ErrNoDocuments
	}
	return out, nil
}

// find is the same query as a Find of one document in a single batch.
func (o *FindOneOptions) find() FindOptions {
	return FindOptions{
		ReadPreference: o.ReadPreference, Pin: o.Pin, Selector: o.Selector, AllowPartialResults: o.AllowPartialResults, Collation: o.Collation,
		Comment: o.Comment, Hint: o.Hint, Let: o.Let, Max: o.Max, Min: o.Min, MaxTime: o.MaxTime,
		Projection: o.Projection, ReturnKey: o.ReturnKey, ShowRecordID: o.ShowRecordID, Skip: o.Skip, Sort: o.Sort,
		RawData: o.RawData, Limit: -1,
	}
}

func (h *handle) find(ctx context.Context, filter any, o *FindOptions) (*batches, error) {
	c := findCmd(h, filter, o)
	if o.CursorType != TailableAwait && o.MaxAwaitTime != 0 {
		c.fail(argument(c.name, c.ns, "MaxAwaitTime is for the cursor type TailableAwait only"))
	}
	limit, size, _ := findNumbers(o.Limit, o.BatchSize)
	b := &batches{
		h: h, op: "find", decoder: h.set.bson.NewBatch(), limit: limit, batchSize: size, tailable: o.CursorType != NonTailable, maxAwait: o.MaxAwaitTime,
	}
	b.setComment(c, o.Comment)
	return b, b.open(ctx, c, h.read(c, o.route()))
}

func (o *FindOptions) route() route { return route{o.ReadPreference, o.Pin, o.Selector} }

// findNumbers turns limit and batch size, of which negative ones ask for a single batch, into what the command takes
// ("find, getMore and killCursors commands", "mapping OP_QUERY behavior").
func findNumbers(limit int64, size int32) (int64, int32, bool) {
	single := limit < 0 || size < 0
	limit, size = max(limit, -limit), max(size, -size)
	if single && limit > 0 {
		size = int32(min(limit, 1<<31-1))
	}
	return limit, size, single
}

func findCmd(h *handle, filter any, o *FindOptions) *cmd {
	c := h.cmd("find")
	c.doc("filter", filter)
	c.ordered("sort", o.Sort)
	c.optDoc("projection", o.Projection)
	c.hint(o.Hint)
	if o.Skip < 0 {
		c.fail(argument(c.name, c.ns, "Skip is negative (%d)", o.Skip))
	}
	if o.Limit == math.MinInt64 || o.BatchSize == math.MinInt32 {
		c.fail(argument(c.name, c.ns, "Limit or BatchSize is the least number there is, which has no positive counterpart"))
	}
	limit, size, single := findNumbers(o.Limit, o.BatchSize)
	c.i64("skip", o.Skip)
	c.i64("limit", limit)
	if !single && limit > 0 && int64(size) == limit && size < math.MaxInt32 {
		size++ // else the server would keep the cursor open after the last document (CRUD specification, "batchSize")
	}
	if !(single && limit == 1) { // a single document needs no size of its batch
		c.i32("batchSize", size)
	}
	c.flag("singleBatch", single)
	c.any("comment", o.Comment)
	c.millis("maxTimeMS", o.MaxTime)
	c.ordered("max", o.Max)
	c.ordered("min", o.Min)
	c.opt("returnKey", o.ReturnKey)
	c.opt("showRecordId", o.ShowRecordID)
	if o.CursorType > TailableAwait {
		c.fail(argument(c.name, c.ns, "there is no cursor type %d", o.CursorType))
	}
	c.flag("tailable", o.CursorType != NonTailable)
	c.flag("awaitData", o.CursorType == TailableAwait)
	c.opt("noCursorTimeout", o.NoCursorTimeout)
	c.opt("allowPartialResults", o.AllowPartialResults)
	c.opt("allowDiskUse", o.AllowDiskUse)
	c.collation(o.Collation)
	c.optDoc("let", o.Let)
	c.rawData = o.RawData
	return c
}
