package command

import (
	"context"
	"iter"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// updateSpec is one update statement.
type updateSpec struct {
	filter       bson.Raw
	update       bson.RawValue
	multi        bool
	upsert       bool
	arrayFilters []bson.Raw
	hint         bson.RawValue
	sort         bson.Raw
	constants    bson.Raw
	collation    collation
}

// isReplacement tells a whole document from operators and from a pipeline.
func (s *updateSpec) isReplacement() bool {
	d, ok := s.update.DocumentOK()
	if !ok {
		return false
	}
	for key := range d.All() {
		return !strings.HasPrefix(key, "$")
	}
	return true
}

// runUpdate changes documents: operators, replacement or pipeline; upsert; arrayFilters.
func runUpdate(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	b, docs, err := m.parseBatch(r, "updates", func(key string, _ bson.RawValue) error { return unknownField(r.Name, key) })
	if err != nil {
		return nil, err
	}
	specs := make([]updateSpec, len(docs))
	for i, d := range docs {
		if specs[i], err = parseUpdateSpec(d.All(), updateWording); err != nil {
			return nil, err
		}
	}
	err = b.execute(ctx, len(specs), func(tx *store.Tx, i int) error { return b.update(tx, i, &specs[i]) }, b.retriedUpdate)
	if err != nil {
		return nil, err
	}
	return b.reply(true), nil
}

// wording is how a command calls the fields of a statement: names are those that differ from the update command's.
type wording struct {
	path  string
	names map[string]string
}

func (w wording) of(field string) string {
	if name, differs := w.names[field]; differs {
		return name
	}
	return field
}

var updateWording = wording{path: "update.updates"}

func parseUpdateSpec(fields iter.Seq2[string, bson.RawValue], w wording) (s updateSpec, err error) {
	path := w.path
	for key, v := range fields {
		switch key {
		case w.of("q"):
			s.filter, err = docField(path, key, v)
		case w.of("u"):
			s.update = v
		case "multi":
			s.multi, err = strictBool(path, key, v)
		case "upsert":
			s.upsert, err = strictBool(path, key, v)
		case "collation":
			s.collation, err = statementCollation(key, v)
		case "arrayFilters":
			s.arrayFilters, err = documents(path, key, v)
		case "hint":
			s.hint = v
		case "sort":
			s.sort, err = docField(path, key, v)
		case w.of("c"):
			s.constants, err = docField(path, key, v)
		case "upsertSupplied", "allowShardKeyUpdatesWithoutFullShardKeyInQuery", "sampleId":
		default:
			err = unknownField(path, key)
		}
		if err != nil {
			return s, err
		}
	}
	return s, s.check(w)
}

func (s *updateSpec) check(w wording) error {
	switch {
	case s.filter == nil:
		return missingField(w.path, w.of("q"))
	case s.update.IsZero():
		return missingField(w.path, w.of("u"))
	case s.update.Type != bson.TypeEmbeddedDocument && s.update.Type != bson.TypeArray:
		return mongoerr.Server(mongoerr.CodeFailedToParse, "Update argument must be either an object or an array")
	}
	if stages, ok := s.update.ArrayOK(); ok {
		return query.CheckStageNames(stages)
	}
	return nil
}

// documents are the elements of an array of documents.
func documents(path, key string, v bson.RawValue) ([]bson.Raw, error) {
	arr, ok := v.ArrayOK()
	if !ok {
		return nil, wrongField(path, key, v, "array")
	}
	var out []bson.Raw
	for i, e := range arr.All() {
		d, ok := e.DocumentOK()
		if !ok {
			return nil, wrongField(path+"."+key, indexKey(i), e, "object")
		}
		out = append(out, d)
	}
	return out, nil
}

// update makes one statement's changes.
func (b *batch) update(tx *store.Tx, i int, s *updateSpec) error {
	if s.multi && b.r.TxnNumber >= 0 {
		return mongoerr.Server(mongoerr.CodeInvalidOptions, "Cannot use (or request) retryable writes with multi=true")
	}
	if s.multi && s.isReplacement() {
		return mongoerr.Server(mongoerr.CodeFailedToParse, "multi update only works with $ operators")
	}
	if s.multi && s.sort != nil {
		return mongoerr.Server(mongoerr.CodeFailedToParse, "Cannot specify sort with multi=true")
	}
	c, err := compileChange(tx.Collection(b.ns), s, b.options())
	if err != nil {
		return err
	}
	records, err := c.matches(tx.Collection(b.ns), s.multi)
	if err != nil {
		return err
	}
	if len(records) == 0 && s.upsert {
		id, err := c.insert(tx, b.ns)
		if err != nil {
			return err
		}
		b.n++
		b.upserted = append(b.upserted, bson.D{{Key: "index", Value: int32(i)}, {Key: "_id", Value: id}})
		return nil
	}
	for _, rec := range records {
		changed, _, err := c.change(tx, b.ns, rec, store.NoImage)
		if err != nil {
			return err
		}
		c.matched++
		if changed {
			c.changed++
		}
	}
	b.n, b.modified = b.n+c.matched, b.modified+c.changed
	return nil
}

// change is a compiled update statement.
type change struct {
	spec    *updateSpec
	filter  *query.Filter
	update  *query.Update
	sort    *query.Sort
	options query.Options
	matched int32
	changed int32
}

func compileChange(coll *store.Coll, s *updateSpec, o query.Options) (*change, error) {
	if s.collation.fault != nil {
		return nil, s.collation.fault
	}
	o.Collation = s.collation.on(coll)
	c := &change{spec: s, options: o}
	if s.constants != nil {
		o.Let = s.constants
	}
	var err error
	if c.filter, err = query.ParseFilter(s.filter, c.options); err != nil {
		return nil, err
	}
	if c.sort, err = query.ParseSortWith(s.sort, o); err != nil {
		return nil, err
	}
	c.update, err = query.ParseUpdate(s.update, s.arrayFilters, o)
	return c, err
}

// matches collects the records to change before any of them is changed.
func (c *change) matches(coll *store.Coll, multi bool) ([]store.Record, error) {
	limit := 1
	if multi {
		limit = 0
	}
	return selectRecords(coll, store.Query{Filter: c.filter, Sort: c.spec.sort, Hint: c.spec.hint, Collation: c.options.Collation}, c.sort, limit)
}

// selectRecords returns the matching records in the sort's order, at most limit (0: all).
func selectRecords(coll *store.Coll, q store.Query, sort *query.Sort, limit int) ([]store.Record, error) {
	if coll == nil {
		return nil, nil
	}
	if coll.Options().ViewOn != "" {
		return nil, viewError(coll.NS())
	}
	seq, plan, err := coll.Find(q)
	if err != nil {
		return nil, err
	}
	var out []store.Record
	for rec, err := range seq {
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
		if plan.Sorted && limit > 0 && len(out) >= limit {
			return out, nil
		}
	}
	if !plan.Sorted {
		if err := sortRecords(out, sort); err != nil {
			return nil, err
		}
	}
	if limit > 0 && len(out) > limit {
		out = out[:limit]
	}
	return out, nil
}

// change applies the update to one record. after is the document as it is now.
func (c *change) change(tx *store.Tx, ns string, rec store.Record, img store.Image) (changed bool, after bson.Raw, err error) {
	_, pos := c.filter.MatchPos(rec.Doc)
	after, changed, err = c.update.Apply(rec.Doc, pos, false)
	if err != nil || !changed {
		return false, rec.Doc, err
	}
	if err := store.CheckStored(after); err != nil {
		return false, nil, err
	}
	after = append(bson.Raw(nil), after...) // it may lie in the request's buffer
	return true, after, tx.UpdateWithImage(ns, rec.ID, after, c.spec.isReplacement(), img)
}

// insert makes the upsert's document and stores it.
func (c *change) insert(tx *store.Tx, ns string) (id bson.RawValue, err error) {
	doc, err := c.update.Upsert(c.filter)
	if err != nil {
		return id, err
	}
	now := bson.Timestamp{T: uint32(c.options.Now.Unix()), I: 1}
	if doc, err = store.PrepareInsert(doc, bson.NewObjectID, now); err != nil {
		return id, err
	}
	_, err = tx.Insert(ns, doc)
	return doc.Lookup("_id"), err
}
