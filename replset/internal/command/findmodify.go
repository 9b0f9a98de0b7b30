package command

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// findAndModify is one such command.
type findAndModify struct {
	m      *Member
	r      *Request
	ns     string
	spec   updateSpec
	remove bool
	after  bool // answer with the document as it became
	fields bson.Raw
	bypass bool
	let    bson.Raw
	now    time.Time

	last  bson.D
	value bson.Raw // nil: null
}

// runFindAndModify changes or removes one document and answers with it.
func runFindAndModify(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	f := &findAndModify{m: m, r: r, now: time.Now()}
	if err := f.parse(); err != nil {
		return nil, err
	}
	id, _, err := r.stmtID(1)
	if err != nil {
		return nil, err
	}
	st := r.statement(id)
	_, err = m.Write(ctx, r, func(tx *store.Tx) error {
		out, err := m.retried(tx, st)
		if err != nil {
			return err
		}
		if out != nil {
			return f.retried(out)
		}
		tx.Statement(st)
		if f.bypass {
			tx.BypassValidation()
		}
		return f.execute(tx)
	})
	if err != nil {
		return nil, err
	}
	return f.reply()
}

func (f *findAndModify) parse() error {
	ns, err := f.r.Namespace()
	if err != nil {
		return err
	}
	f.ns, f.spec.filter = ns, bson.Raw{5, 0, 0, 0, 0}
	if err := f.r.eachField(f.readField); err != nil {
		return err
	}
	if err := checkWritable(ns); err != nil {
		return err
	}
	return f.check()
}

func (f *findAndModify) readField(key string, v bson.RawValue) (err error) {
	const path = "findAndModify"
	s := &f.spec
	switch key {
	case "query":
		var d bson.Raw
		if d, err = docField(path, key, v); d != nil {
			s.filter = d
		}
	case "sort":
		s.sort, err = docField(path, key, v)
	case "remove":
		f.remove, err = boolField(path, key, v)
	case "update":
		s.update = v
	case "new":
		f.after, err = boolField(path, key, v)
	case "fields", "projection":
		f.fields, err = docField(path, key, v)
	case "upsert":
		s.upsert, err = boolField(path, key, v)
	case "arrayFilters":
		s.arrayFilters, err = documents(path, key, v)
	case "bypassDocumentValidation":
		f.bypass, err = boolField(path, key, v)
	case "collation":
		s.collation, err = collationField(key, v)
	case "hint":
		s.hint = v
	case "let":
		if f.let, err = docField(path, key, v); err == nil {
			f.let, err = evaluateLet(f.r.ctx, f.m, f.now, f.let)
		}
	default:
		err = unknownField(path, key)
	}
	return err
}

func (f *findAndModify) check() error {
	s := &f.spec
	bad := func(text string) error { return mongoerr.Server(mongoerr.CodeFailedToParse, "%s", text) }
	switch {
	case f.remove && !s.update.IsZero():
		return bad("Cannot specify both an update and remove=true")
	case f.remove && s.upsert:
		return bad("Cannot specify both upsert=true and remove=true ")
	case f.remove && f.after:
		return bad("Cannot specify both new=true and remove=true; 'remove' always returns the deleted document")
	case f.remove && s.arrayFilters != nil:
		return bad("Cannot specify arrayFilters and remove=true")
	case !f.remove && s.update.IsZero():
		return bad("Either an update or remove=true must be specified")
	case !f.remove && s.update.Type != bson.TypeEmbeddedDocument && s.update.Type != bson.TypeArray:
		return bad("Update argument must be either an object or an array")
	}
	return nil
}

func (f *findAndModify) execute(tx *store.Tx) error {
	if f.remove {
		return f.delete(tx)
	}
	c, err := compileChange(tx.Collection(f.ns), &f.spec, f.m.queryOptions(f.r.ctx, f.now, f.let))
	if err != nil {
		return err
	}
	records, err := c.matches(tx.Collection(f.ns), false)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return f.upsert(tx, c)
	}
	img := store.PreImage
	if f.after {
		img = store.PostImage
	}
	_, after, err := c.change(tx, f.ns, records[0], img)
	f.last = lastError(1, false)
	f.value = records[0].Doc
	if f.after {
		f.value = after
	}
	return err
}

// upsert inserts, if asked to, when nothing matched.
func (f *findAndModify) upsert(tx *store.Tx, c *change) error {
	if !f.spec.upsert {
		f.last = bson.D{{Key: "n", Value: int32(0)}, {Key: "updatedExisting", Value: false}}
		return nil
	}
	id, err := c.insert(tx, f.ns)
	if err != nil {
		return err
	}
	f.last = upsertedError(id)
	if f.after {
		_, f.value, _ = tx.Collection(f.ns).FindID(id)
	}
	return nil
}

func (f *findAndModify) delete(tx *store.Tx) error {
	coll := tx.Collection(f.ns)
	if err := removable(coll); err != nil {
		return err
	}
	o := f.m.queryOptions(f.r.ctx, f.now, f.let)
	o.Collation = f.spec.collation.on(coll)
	filter, err := query.ParseFilter(f.spec.filter, o)
	if err != nil {
		return err
	}
	sort, err := query.ParseSortWith(f.spec.sort, o)
	if err != nil {
		return err
	}
	records, err := selectRecords(coll, store.Query{Filter: filter, Sort: f.spec.sort, Hint: f.spec.hint, Collation: o.Collation}, sort, 1)
	if err != nil {
		return err
	}
	f.last = lastError(int32(len(records)), true)
	if len(records) == 0 {
		return nil
	}
	f.value = records[0].Doc
	return tx.DeleteWithImage(f.ns, records[0].ID)
}

// lastError is lastErrorObject of a document that was there.
func lastError(n int32, removed bool) bson.D {
	d := bson.D{{Key: "n", Value: n}}
	if !removed {
		d = append(d, bson.E{Key: "updatedExisting", Value: true})
	}
	return d
}

func upsertedError(id bson.RawValue) bson.D {
	return bson.D{{Key: "n", Value: int32(1)}, {Key: "updatedExisting", Value: false}, {Key: "upserted", Value: id}}
}

func (f *findAndModify) reply() (bson.D, error) {
	var val any
	if f.value != nil {
		doc, err := f.project()
		if err != nil {
			return nil, err
		}
		val = doc
	}
	return bson.D{{Key: "lastErrorObject", Value: f.last}, {Key: "value", Value: val}}, nil
}

// project applies the command's fields to the answer.
func (f *findAndModify) project() (bson.Raw, error) {
	if f.fields == nil {
		return f.value, nil
	}
	filter, err := query.ParseFilter(f.spec.filter, f.m.queryOptions(f.r.ctx, f.now, f.let))
	if err != nil {
		return nil, err
	}
	p, err := query.ParseProjection(f.fields, filter)
	if err != nil {
		return nil, err
	}
	_, pos := filter.MatchPos(f.value)
	doc, err := p.Apply(f.value, pos)
	if err != nil {
		return nil, err
	}
	return doc, checkFits(doc)
}
