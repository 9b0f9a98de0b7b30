package command

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
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
