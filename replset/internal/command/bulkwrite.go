package command

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// bulkWrite is one such command (since version 8.0): writes of every kind to several collections. The batches, one an
// operation, share the request and its statement ids.
type bulkWrite struct {
	m          *Member
	all        batch // what the operations have in common; it counts nothing
	namespaces []string
	ops        []bulkOp
	errorsOnly bool
	batchSize  int64
	replies    []bson.Raw
	failed     int32
	inserted   int32
	matched    int32
	modified   int32
	upserts    int32
	deleted    int32
}

// bulkOp is one write.
type bulkOp struct {
	kind   string
	ns     string
	doc    bson.Raw
	update updateSpec
	delete deleteSpec
}

func runBulkWrite(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	w := &bulkWrite{m: m, all: batch{m: m, r: r, now: time.Now()}, batchSize: firstBatch}
	if err := w.parse(r); err != nil {
		return nil, err
	}
	err := w.all.execute(ctx, len(w.ops), w.run, w.retried)
	if err != nil {
		return nil, err
	}
	c := &cursor{ns: "admin.$cmd.bulkWrite", src: &listSource{w.replies}}
	d, err := m.openList(r, c, len(w.replies), w.batchSize)
	if err != nil {
		return nil, err
	}
	for _, n := range []bson.E{{Key: "nErrors", Value: w.failed}, {Key: "nInserted", Value: w.inserted}, {Key: "nMatched", Value: w.matched},
		{Key: "nModified", Value: w.modified}, {Key: "nUpserted", Value: w.upserts}, {Key: "nDeleted", Value: w.deleted}} {
		d = append(d, n)
	}
	return append(d, m.writeTimes(r)...), nil
}

func (w *bulkWrite) parse(r *Request) error {
	b := &w.all
	err := r.eachField(func(key string, v bson.RawValue) (err error) {
		switch key {
		case "ops", "nsInfo":
		case "ordered":
			var ordered bool
			ordered, err = boolField(r.Name, key, v)
			b.unordered = !ordered
		case "errorsOnly":
			w.errorsOnly, err = boolField(r.Name, key, v)
		case "bypassDocumentValidation":
			b.bypass, err = boolField(r.Name, key, v)
		case "let":
			if b.let, err = docField(r.Name, key, v); err == nil {
				b.let, err = evaluateLet(r.ctx, w.m, b.now, b.let)
			}
		case "cursor":
			var n int64
			if n, err = cursorOption(v); n >= 0 {
				w.batchSize = n
			}
		default:
			err = unknownField(r.Name, key)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := w.parseNamespaces(r); err != nil {
		return err
	}
	ops, err := r.statements("ops")
	if err != nil {
		return err
	}
	for _, d := range ops {
		op, err := w.parseOp(d)
		if err != nil {
			return err
		}
		w.ops = append(w.ops, op)
	}
	return b.parseStmtIDs(len(ops))
}

func (w *bulkWrite) parseNamespaces(r *Request) error {
	infos, ok, err := r.Documents("nsInfo")
	switch {
	case err != nil:
		return err
	case !ok:
		return missingField(r.Name, "nsInfo")
	}
	for _, d := range infos {
		ns, ok := d.Lookup("ns").StringValueOK()
		if !ok {
			return missingField("bulkWrite.nsInfo", "ns")
		}
		if err := checkWritable(ns); err != nil {
			return err
		}
		w.namespaces = append(w.namespaces, ns)
	}
	return nil
}

// parseOp reads {insert|update|delete: index of a namespace, ...}.
func (w *bulkWrite) parseOp(d bson.Raw) (op bulkOp, err error) {
	var at bson.RawValue
	for key, v := range d.All() {
		op.kind, at = key, v
		break
	}
	i, ok := at.AsInt64OK()
	switch {
	case !oneOf(op.kind, "insert", "update", "delete"):
		return op, mongoerr.Server(mongoerr.CodeFailedToParse, "Unrecognized bulkWrite operation: %s", op.kind)
	case !ok || i < 0 || i >= int64(len(w.namespaces)):
		return op, badOption("BulkWrite ops entry has an invalid nsInfo index.")
	}
	op.ns = w.namespaces[i]
	switch op.kind {
	case "insert":
		if op.doc, ok = d.Lookup("document").DocumentOK(); !ok {
			return op, missingField("bulkWrite.insert", "document")
		}
	case "update":
		op.update, err = parseUpdateSpec(renamed(d, map[string]string{"update": "", "filter": "q", "updateMods": "u", "constants": "c"}))
	case "delete":
		op.delete, err = parseDeleteSpec(renamed(d, map[string]string{"delete": "", "filter": "q", "multi": ""}))
		if op.delete.limit = bson.Int32Value(1); err == nil && !d.Lookup("multi").IsZero() {
			var multi bool
			if multi, err = boolField("bulkWrite.delete", "multi", d.Lookup("multi")); multi {
				op.delete.limit = bson.Int32Value(0)
			}
		}
	}
	return op, err
}

// renamed is the operation in the words of the older commands; "" leaves a field out. A delete says how many there.
func renamed(d bson.Raw, names map[string]string) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	for key, v := range d.All() {
		name, other := names[key]
		if !other {
			name = key
		}
		if name != "" {
			dst = bson.AppendValue(dst, name, v)
		}
	}
	if _, isDelete := names["delete"]; isDelete {
		dst = bson.AppendInt32(dst, "limit", 1)
	}
	return bson.EndDocument(dst, start)
}

// run makes the i-th write.
func (w *bulkWrite) run(tx *store.Tx, i int) error {
	op := &w.ops[i]
	b := w.all // a batch of its own to count with
	b.ns = op.ns
	var err error
	switch op.kind {
	case "insert":
		err = b.insert(tx, op.doc)
	case "update":
		err = b.update(tx, i, &op.update)
	case "delete":
		err = b.delete(tx, &op.delete)
	}
	if err != nil {
		w.fail(i, err)
		return err
	}
	w.succeed(i, &b)
	return nil
}

// retried tells of a write that was made before.
func (w *bulkWrite) retried(i int, out *store.Outcome) error {
	b := w.all
	b.ns = w.ops[i].ns
	tell := b.retried
	if w.ops[i].kind == "update" {
		tell = b.retriedUpdate
	}
	if err := tell(i, out); err != nil {
		return err
	}
	w.succeed(i, &b)
	return nil
}

func (w *bulkWrite) succeed(i int, b *batch) {
	d := bson.D{{Key: "ok", Value: 1.0}, {Key: "idx", Value: int32(i)}, {Key: "n", Value: b.n}}
	switch w.ops[i].kind {
	case "insert":
		w.inserted += b.n
	case "delete":
		w.deleted += b.n
	default:
		d = append(d, bson.E{Key: "nModified", Value: b.modified})
		w.modified += b.modified
		if len(b.upserted) > 0 {
			w.upserts++
			d = append(d, bson.E{Key: "upserted", Value: bson.D{b.upserted[0][1]}})
		} else {
			w.matched += b.n
		}
	}
	if !w.errorsOnly {
		w.replies = append(w.replies, document(d))
	}
}

func (w *bulkWrite) fail(i int, err error) {
	e := serverError(w.all.r.ctx, err)
	message, _ := w.m.opt.Persona.words(e)
	w.failed++
	room := store.MaxDocumentSize
	message, details := (&failedWrite{message: message, details: w.m.opt.Persona.details(e)}).within(&room)
	d := bson.D{{Key: "ok", Value: 0.0}, {Key: "idx", Value: int32(i)}, {Key: "code", Value: e.Code}, {Key: "errmsg", Value: message}}
	d = append(d, details...)
	d = append(d, bson.E{Key: "n", Value: int32(0)})
	if w.ops[i].kind == "update" {
		d = append(d, bson.E{Key: "nModified", Value: int32(0)})
	}
	w.replies = append(w.replies, document(d))
}
