package sextant

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/mongoerr"
)

// ReturnDocument says which state of the document FindOneAndUpdate and FindOneAndReplace return.
type ReturnDocument uint8

// The two states. Before is the default.
const (
	Before ReturnDocument = iota
	After
)

// FindOneAndUpdateOptions are the options of FindOneAndUpdate; zero fields are not sent.
type FindOneAndUpdateOptions struct {
	ArrayFilters             []any
	BypassDocumentValidation *bool
	Collation                *Collation
	Comment                  any
	Hint                     any // an index: its name or its keys (4.4)
	Let                      any
	MaxTime                  time.Duration
	Projection               any
	ReturnDocument           ReturnDocument // Before by default
	Sort                     any            // which of several matches
	Upsert                   bool
	RawData                  *bool
}

// FindOneAndReplaceOptions are the options of FindOneAndReplace; zero fields are not sent.
type FindOneAndReplaceOptions struct {
	BypassDocumentValidation *bool
	Collation                *Collation
	Comment                  any
	Hint                     any
	Let                      any
	MaxTime                  time.Duration
	Projection               any
	ReturnDocument           ReturnDocument
	Sort                     any
	Upsert                   bool
	RawData                  *bool
}

// FindOneAndDeleteOptions are the options of FindOneAndDelete; zero fields are not sent.
type FindOneAndDeleteOptions struct {
	Collation  *Collation
	Comment    any
	Hint       any
	Let        any
	MaxTime    time.Duration
	Projection any
	Sort       any
	RawData    *bool
}

// FindOneAndUpdate changes one document and returns it as it was, or with ReturnDocument: After as it became. If
// nothing matches, or an upsert inserted and Before was asked for, the error is ErrNoDocuments.
func (c *Collection[T]) FindOneAndUpdate(ctx context.Context, filter, update any, opts ...FindOneAndUpdateOptions) (T, error) {
	o, err := one("findAndModify", opts)
	if err != nil {
		return *new(T), err
	}
	return findAndModify(ctx, c, &modification{filter: filter, change: update, o: o})
}

// FindOneAndReplace puts a whole document in the place of one and returns the old, or with ReturnDocument: After the
// new one. If nothing matches, or an upsert inserted and Before was asked for, the error is ErrNoDocuments.
func (c *Collection[T]) FindOneAndReplace(ctx context.Context, filter, replacement any, opts ...FindOneAndReplaceOptions) (T, error) {
	o, err := one("findAndModify", opts)
	if err != nil {
		return *new(T), err
	}
	return findAndModify(ctx, c, &modification{filter: filter, change: replacement, replace: true, o: FindOneAndUpdateOptions{
		BypassDocumentValidation: o.BypassDocumentValidation, Collation: o.Collation, Comment: o.Comment, Hint: o.Hint,
		Let: o.Let, MaxTime: o.MaxTime, Projection: o.Projection, ReturnDocument: o.ReturnDocument, Sort: o.Sort,
		Upsert: o.Upsert, RawData: o.RawData,
	}})
}

// FindOneAndDelete deletes one document and returns it. If nothing matches, the error is ErrNoDocuments.
func (c *Collection[T]) FindOneAndDelete(ctx context.Context, filter any, opts ...FindOneAndDeleteOptions) (T, error) {
	o, err := one("findAndModify", opts)
	if err != nil {
		return *new(T), err
	}
	return findAndModify(ctx, c, &modification{filter: filter, remove: true, o: FindOneAndUpdateOptions{
		Collation: o.Collation, Comment: o.Comment, Hint: o.Hint, Let: o.Let, MaxTime: o.MaxTime,
		Projection: o.Projection, Sort: o.Sort, RawData: o.RawData,
	}})
}

// modification is one findAndModify command. All three calls share it.
type modification struct {
	filter, change  any
	replace, remove bool
	o               FindOneAndUpdateOptions
}

func (m *modification) cmd(h *handle) *cmd {
	c := h.cmd("findAndModify")
	c.docAs("query", "filter", m.filter)
	c.ordered("sort", m.o.Sort)
	if m.remove {
		c.flag("remove", true)
	} else {
		c.change("update", m.change, m.replace)
	}
	c.flag("new", m.o.ReturnDocument == After)
	if m.o.ReturnDocument > After {
		c.fail(argument(c.name, c.ns, "ReturnDocument %d is neither Before nor After", m.o.ReturnDocument))
	}
	if !isNil(m.o.Projection) {
		c.docAs("fields", "projection", m.o.Projection)
	}
	c.flag("upsert", m.o.Upsert)
	c.opt("bypassDocumentValidation", m.o.BypassDocumentValidation)
	c.millis("maxTimeMS", m.o.MaxTime)
	c.collation(m.o.Collation)
	c.docs("arrayFilters", m.o.ArrayFilters)
	c.hint(m.o.Hint)
	c.any("comment", m.o.Comment)
	c.optDoc("let", m.o.Let)
	c.rawData = m.o.RawData
	return c
}

// findAndModify runs a modification and decodes the document that it returns. The command is retried once.
func findAndModify[T any](ctx context.Context, col *Collection[T], m *modification) (T, error) {
	h := col.at()
	c := m.cmd(h)
	op := h.write(c, true)
	if m.o.Hint != nil {
		c.demand(op, "the option hint", wire42)
	}
	var out T
	found := false
	op.Decode = func(reply bson.Raw, r operation.Result) (err error) {
		doc, err := modified(reply)
		if doc == nil {
			return err
		}
		found = true
		return decodeInto(h.set.bson, doc, &out, c.name, c.ns, r.Server)
	}
	err := h.run(ctx, c, op)
	if done, err := partial(err, op.Decode); !done {
		return *new(T), err
	}
	if err == nil && !found {
		err = ErrNoDocuments
	}
	return out, err
}

// modified is the document that findAndModify returns, nil if there is none: if nothing matched, or if an upsert inserted
// what has no version from before. Servers then send null. Without a value it is believed if lastErrorObject says the same.
func modified(reply bson.Raw) (bson.Raw, error) {
	v := reply.Lookup("value")
	if doc, ok := v.DocumentOK(); ok {
		return doc, nil
	}
	n, counted := reply.Lookup("lastErrorObject", "n").AsInt64OK()
	none := counted && n == 0 || reply.Lookup("lastErrorObject", "upserted").Type != 0
	if v.Type == bson.TypeNull || v.Type == 0 && none {
		return nil, nil
	}
	return nil, mongoerr.Malformed("value", v, "a document or null")
}
