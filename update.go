package sextant

import (
	"context"
	"strconv"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/operation"
)

// UpdateOneOptions are the options of UpdateOne and UpdateByID; zero fields are not sent.
type UpdateOneOptions struct {
	ArrayFilters             []any // which elements $[name] stands for
	BypassDocumentValidation *bool
	Collation                *Collation
	Comment                  any
	Hint                     any // an index: its name or its keys (4.2)
	Let                      any // variables for expressions (5.0)
	Sort                     any // which of several matches (8.0)
	Upsert                   bool
	RawData                  *bool
}

// UpdateManyOptions are the options of UpdateMany; zero fields are not sent.
type UpdateManyOptions struct {
	ArrayFilters             []any
	BypassDocumentValidation *bool
	Collation                *Collation
	Comment                  any
	Hint                     any
	Let                      any
	Upsert                   bool
	RawData                  *bool
}

// ReplaceOptions are the options of ReplaceOne; zero fields are not sent.
type ReplaceOptions struct {
	BypassDocumentValidation *bool
	Collation                *Collation
	Comment                  any
	Hint                     any
	Let                      any
	Sort                     any
	Upsert                   bool
	RawData                  *bool
}

// UpdateResult says what an update did. With an unacknowledged write concern only Acknowledged is set.
type UpdateResult struct {
	MatchedCount  int64 // documents that the filter matched
	ModifiedCount int64 // of those, the documents that are different now
	UpsertedCount int64
	UpsertedID    any // the _id of the document that an upsert inserted, else nil
	Acknowledged  bool
}

// UpdateOne changes the first document that matches the filter. The update is a document of operators such as
// {$set: {...}}, or an aggregation pipeline (4.2). It is retried once if the connection fails or the primary changes.
func (c *Collection[T]) UpdateOne(ctx context.Context, filter, update any, opts ...UpdateOneOptions) (*UpdateResult, error) {
	o, err := one("update", opts)
	if err != nil {
		return nil, err
	}
	return c.at().update(ctx, &statement{filter: filter, update: update, o: o})
}

// UpdateByID is UpdateOne of the document with this _id.
func (c *Collection[T]) UpdateByID(ctx context.Context, id, update any, opts ...UpdateOneOptions) (*UpdateResult, error) {
	if id == nil {
		return nil, argument("update", c.at().ns(), "the id is nil")
	}
	return c.UpdateOne(ctx, bson.D{{Key: "_id", Value: id}}, update, opts...)
}

// UpdateMany changes all documents that match the filter. It is never retried: doing it twice may not be the same.
func (c *Collection[T]) UpdateMany(ctx context.Context, filter, update any, opts ...UpdateManyOptions) (*UpdateResult, error) {
	o, err := one("update", opts)
	if err != nil {
		return nil, err
	}
	return c.at().update(ctx, &statement{filter: filter, update: update, multi: true, o: UpdateOneOptions{
		ArrayFilters: o.ArrayFilters, BypassDocumentValidation: o.BypassDocumentValidation, Collation: o.Collation,
		Comment: o.Comment, Hint: o.Hint, Let: o.Let, Upsert: o.Upsert, RawData: o.RawData,
	}})
}

// ReplaceOne puts a whole document in the place of the first one that matches the filter; the _id stays. The
// replacement must not begin with an operator. It is retried once as UpdateOne is.
func (c *Collection[T]) ReplaceOne(ctx context.Context, filter, replacement any, opts ...ReplaceOptions) (*UpdateResult, error) {
	o, err := one("update", opts)
	if err != nil {
		return nil, err
	}
	return c.at().update(ctx, &statement{filter: filter, update: replacement, replace: true, o: UpdateOneOptions{
		BypassDocumentValidation: o.BypassDocumentValidation, Collation: o.Collation, Comment: o.Comment,
		Hint: o.Hint, Let: o.Let, Sort: o.Sort, Upsert: o.Upsert, RawData: o.RawData,
	}})
}

// statement is one entry of an update command. All three calls share it.
type statement struct {
	filter, update any
	replace, multi bool
	o              UpdateOneOptions
}

func (h *handle) update(ctx context.Context, s *statement) (*UpdateResult, error) {
	c := h.cmd("update")
	c.b = bson.AppendBoolean(c.b, "ordered", true)
	c.opt("bypassDocumentValidation", s.o.BypassDocumentValidation)
	c.any("comment", s.o.Comment)
	c.optDoc("let", s.o.Let)
	c.rawData = s.o.RawData
	var list, entry int
	c.b, list = bson.BeginArrayElement(c.b, "updates")
	c.b, entry = bson.BeginDocumentElement(c.b, "0")
	s.append(c)
	c.b = bson.EndDocument(bson.EndDocument(c.b, entry), list)
	op := h.write(c, !s.multi)
	if s.o.Hint != nil && !h.acknowledged() { // else the server tells
		c.demand(op, "the option hint", wire42)
	}
	op.Statements = 1
	res := &UpdateResult{Acknowledged: h.acknowledged()}
	op.Decode = func(reply bson.Raw, _ operation.Result) error { return res.decode(reply, h.set.bson) }
	err := h.run(ctx, c, op)
	if done, err := partial(err, op.Decode); !done {
		return nil, err
	}
	return res, err
}

func (r *UpdateResult) decode(reply bson.Raw, o bson.Options) error {
	r.MatchedCount = judged(reply, "n")
	r.ModifiedCount = judged(reply, "nModified")
	upserted, _ := reply.Lookup("upserted").ArrayOK()
	for _, v := range upserted.All() {
		if d, ok := v.DocumentOK(); ok {
			r.UpsertedID = anyOf(o, d.Lookup("_id"))
			r.UpsertedCount++
		}
	}
	r.MatchedCount -= r.UpsertedCount
	return nil
}

func (s *statement) append(c *cmd) {
	c.docAs("q", "filter", s.filter)
	c.change("u", s.update, s.replace)
	c.flag("multi", s.multi)
	c.flag("upsert", s.o.Upsert)
	c.docs("arrayFilters", s.o.ArrayFilters)
	c.hint(s.o.Hint)
	c.collation(s.o.Collation)
	c.ordered("sort", s.o.Sort)
}

// change appends an update or a replacement after checking which of the two it is (CRUD specification, "update vs.
// replace"): the server takes a document without operators for a replacement, which would erase the rest.
func (c *cmd) change(key string, v any, replace bool) {
	what := "update"
	if replace {
		what = "replacement"
	}
	if c.err != nil {
		return
	}
	if isNil(v) {
		c.fail(nilDocument(c.name, c.ns, "the "+what))
		return
	}
	at := len(c.b)
	b, err := c.appendValue(c.b, key, v)
	if err != nil {
		c.fail(encodeError(c.name, c.ns, "the "+what, err))
		return
	}
	c.b = b
	if err := checkChange(c.b[at:], len(key), what, replace); err != "" {
		c.fail(argument(c.name, c.ns, "%s (it is a %T)", err, v))
	}
}

// emptyDocument is the shortest document, and the shortest array.
var emptyDocument = []byte{5, 0, 0, 0, 0}

// checkChange looks at the encoded element and says what is wrong with it.
func checkChange(e []byte, keyLen int, what string, replace bool) string {
	body := e[keyLen+2:]
	switch t := bson.Type(e[0]); {
	case t == bson.TypeArray && !replace:
		if len(body) == len(emptyDocument) {
			return "the update is a pipeline without stages"
		}
		return ""
	case t != bson.TypeEmbeddedDocument:
		return "the " + what + " must be a document, not " + t.String()
	}
	first, empty := "", true
	for k := range bson.Raw(body).All() {
		first, empty = k, false
		break
	}
	switch {
	case replace && strings.HasPrefix(first, "$"):
		return "the replacement begins with the operator " + first + ": to change single fields use an update"
	case !replace && empty:
		return "the update is empty"
	case !replace && !strings.HasPrefix(first, "$"):
		return "the update begins with the field " + strconv.Quote(first) + ", not with an operator such as $set: to put a whole document in place use a replace"
	}
	return ""
}
