package sextant

import (
	"context"
	"errors"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// BulkWriteOptions are the options of BulkWrite, which hold for all its models; zero fields are not sent.
type BulkWriteOptions struct {
	Ordered                  *bool // nil is true: stop at the first write that fails
	BypassDocumentValidation *bool // for inserts, updates and replacements
	Comment                  any
	Let                      any // variables for expressions of updates, replacements and deletes (5.0)
	RawData                  *bool
}

// BulkWriteResult says what a bulk write did. It is also returned beside an error: it then says what was done all the same.
// With an unacknowledged write concern the counts are 0, for nobody knows them, and InsertedIDs has what was sent.
type BulkWriteResult struct {
	InsertedCount int64
	MatchedCount  int64 // documents that the filters of updates and replacements matched
	ModifiedCount int64 // of those, how often one was changed
	DeletedCount  int64
	UpsertedCount int64

	// InsertedIDs has the _id of each document that was inserted, by the index of its model; one of which that is not known,
	// since the connection failed, is not there.
	InsertedIDs map[int]any
	// UpsertedIDs has the _id of each document that an upsert inserted, by the index of its model.
	UpsertedIDs  map[int]any
	Acknowledged bool
}

// BulkWrite carries out many writes of any kind in as few commands as possible. In order, which is the default, consecutive
// models of a kind (inserts; updates and replacements; deletes) share a command, and the first write that fails is the last
// that is tried. Unordered, all models of a kind share one, and a write that fails does not keep others from being tried.
// What the server's limits do not allow in one command is sent in several. Each is retried once on its own, if the
// connection fails or the primary changes, unless it has an UpdateMany or a DeleteMany.
//
// Models that cannot be sent are an error before anything is: an empty slice, a model that is nil, one without filter, an
// update without operators, a document that is too large for the server. Its text begins with the model's index.
//
// An error of the server names the models that failed in its WriteErrors, by their index in models; those of several
// commands are one error. Failures of the write concern do not end an ordered bulk write; all are in WriteConcernErrors. A
// failure of the connection or of a whole command ends any. The result beside the error says what was done.
func (c *Collection[T]) BulkWrite(ctx context.Context, models []WriteModel, opts ...BulkWriteOptions) (*BulkWriteResult, error) {
	o, err := one(bulkName, opts)
	if err != nil {
		return nil, err
	}
	b, err := c.at().bulk(ctx, models, &o)
	if err != nil {
		return nil, err
	}
	err = b.w.run(ctx)
	return b.finish(), err
}

// bulkName is the name of the operation in errors of its arguments, which are not those of one command.
const bulkName = "bulkWrite"

// bulk is a BulkWrite: its models, encoded, and what has become of them so far.
type bulk struct {
	w   writes
	res BulkWriteResult
	ids map[int]bson.RawValue // of the inserts, by model
	buf []byte                // what was encoded last
}

// bulk encodes all models.
func (h *handle) bulk(ctx context.Context, models []WriteModel, o *BulkWriteOptions) (*bulk, error) {
	switch {
	case h.err != nil:
		return nil, h.err
	case ctx == nil:
		return nil, argument(bulkName, h.ns(), "the context is nil")
	case len(models) == 0:
		return nil, argument(bulkName, h.ns(), "the slice of models is empty")
	}
	b := &bulk{ids: map[int]bson.RawValue{}}
	b.w = writes{
		h: h, noun: "model", ordered: o.Ordered == nil || *o.Ordered, counted: b.count,
		bypass: o.BypassDocumentValidation, comment: o.Comment, let: o.Let, rawData: o.RawData,
	}
	all := h.encoded(&cmd{name: bulkName, ns: h.ns()})
	all.any("comment", o.Comment)
	all.optDoc("let", o.Let)
	if all.err != nil { // else a later command would tell, after others were sent
		return nil, all.err
	}
	for i, m := range models {
		if isNil(m) {
			return nil, argument(bulkName, h.ns(), "model %d is nil", i)
		}
		if !ours(m) {
			return nil, argument(bulkName, h.ns(), "model %d is a %T, want a model of this package or a pointer to one", i, m)
		}
		if err := b.add(i, m.write()); err != nil {
			return nil, ofModel(i, err)
		}
	}
	return b, nil
}

// ofModel is an error about a model, with its index.
func ofModel(i int, err error) error {
	e, ok := errors.AsType[*mongoerr.Error](err)
	if !ok {
		return err
	}
	told := *e
	told.Message = "model " + index(i) + ": " + e.Message
	return &told
}

// add encodes a write and puts it into its lot.
func (b *bulk) add(i int, m write) error {
	if len(b.buf) >= chunk {
		b.buf = nil // what was encoded stays where it is
	}
	start := len(b.buf)
	if err := b.encode(i, &m); err != nil {
		return err
	}
	l := b.lot(m.command)
	l.list = append(l.list, bson.Raw(b.buf[start:len(b.buf):len(b.buf)]))
	l.at = append(l.at, i)
	if m.multi && l.many == nil {
		l.many = make([]bool, len(l.list)-1)
	}
	if l.many != nil {
		l.many = append(l.many, m.multi)
	}
	return nil
}

// lot is the one that the next write of the command belongs to.
func (b *bulk) lot(command string) *lot {
	lots := b.w.lots
	for i := len(lots) - 1; i >= 0; i-- {
		if lots[i].command == command {
			return &lots[i]
		}
		if b.w.ordered {
			break
		}
	}
	b.w.lots = append(lots, lot{command: command})
	return &b.w.lots[len(lots)]
}

// encode appends the write to the buffer.
func (b *bulk) encode(i int, m *write) (err error) {
	h := b.w.h
	if m.command == "insert" {
		if isNil(m.document) {
			return nilDocument(bulkName, h.ns(), "the document")
		}
		if b.buf, b.ids[i], err = appendInsert(h.set.bson, b.buf, m.document, bson.NewObjectID); err != nil {
			return encodeError(bulkName, h.ns(), "the document", err)
		}
		return nil
	}
	c := h.encoded(&cmd{name: bulkName, ns: h.ns()})
	var start int
	c.b, start = bson.BeginDocument(b.buf)
	need := int32(wire42)
	if m.command == "update" {
		m.statement.append(c)
	} else {
		need = wire44
		c.deletion(m.filter, m.limit(), m.o.Hint, m.o.Collation)
	}
	if c.err != nil {
		return c.err
	}
	b.buf = bson.EndDocument(c.b, start)
	if m.o.Hint != nil && !h.acknowledged() { // else the server tells
		b.w.hints = max(b.w.hints, need)
	}
	// A marshaler of the caller's may have put anything in, and the server would close the connection on it.
	if err := bson.Raw(b.buf[start:]).Validate(); err != nil {
		return encodeError(bulkName, h.ns(), "the "+m.command, err)
	}
	return nil
}

// count adds what a reply says. Inserts are counted by what did not fail.
func (b *bulk) count(l *lot, first int, reply bson.Raw) {
	n := judged(reply, "n")
	switch l.command {
	case "delete":
		b.res.DeletedCount += n
	case "update":
		b.res.ModifiedCount += judged(reply, "nModified")
		b.res.MatchedCount += n - b.upserts(l, first, reply)
	}
}

// upserts notes the documents that upserts inserted, and returns how many there are.
func (b *bulk) upserts(l *lot, first int, reply bson.Raw) (n int64) {
	list, _ := reply.Lookup("upserted").ArrayOK()
	for _, v := range list.All() {
		doc, _ := v.DocumentOK()
		at, ok := doc.Lookup("index").AsInt64OK()
		if i := int64(first) + at; !ok || at < 0 || i >= int64(len(l.list)) {
			continue
		}
		if b.res.UpsertedIDs == nil {
			b.res.UpsertedIDs = map[int]any{}
		}
		b.res.UpsertedIDs[l.index(first+int(at))] = anyOf(b.w.h.set.bson, doc.Lookup("_id"))
		n++
	}
	b.res.UpsertedCount += n
	return n
}

// finish is the result, once nothing more is sent.
func (b *bulk) finish() *BulkWriteResult {
	for _, i := range b.w.failed {
		delete(b.ids, i)
	}
	b.res.Acknowledged = b.w.h.acknowledged()
	if b.res.Acknowledged {
		b.res.InsertedCount = int64(len(b.ids))
	}
	if len(b.ids) > 0 {
		b.res.InsertedIDs = make(map[int]any, len(b.ids))
	}
	for i, id := range b.ids {
		b.res.InsertedIDs[i] = anyOf(b.w.h.set.bson, id)
	}
	return &b.res
}
