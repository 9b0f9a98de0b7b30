package command

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/store"
)

var readCommands = []Spec{
	{Name: "find", Flags: Reads | TakesReadConcern, Handler: runFind},
	{Name: "count", Flags: Reads | TakesReadConcern, Handler: runCount, Fields: "query limit skip hint collation fields encryptionInformation mirrored"},
	{Name: "distinct", Flags: Reads | TakesReadConcern, Handler: runDistinct, Fields: "key query collation hint mirrored encryptionInformation"},
	{Name: "aggregate", Flags: Reads | TakesReadConcern, Handler: runAggregate},
	{Name: "explain", Flags: Reads | TakesReadConcern, Handler: runExplain, Fields: "=:object verbosity:string"},
}

// findArgs are the arguments of find, and those of count and distinct as far as they
// have them.
type findArgs struct {
	ns                       string
	filter, sort, projection bson.Raw
	hint                     bson.RawValue
	min, max                 bson.Raw
	let                      bson.Raw
	collation                collation
	skip, limit              int64
	batchSize                int64 // -1: not given
	single, tailable, await  bool
	noTimeout                bool
	showRecordID, returnKey  bool
}

// runFind answers a query with a cursor. Options that are accepted and have no effect:
// allowDiskUse, oplogReplay, allowPartialResults, readOnce, maxScan.
func runFind(_ context.Context, m *Member, r *Request) (bson.D, error) {
	r.Body = bson.Raw(slices.Clone(r.Body)) // the cursor outlives the request's buffer
	a, err := parseFind(r)
	if err != nil {
		return nil, err
	}
	sn, err := m.Read(r)
	if err != nil {
		return nil, err
	}
	coll := sn.Collection(a.ns)
	q, err := m.compileFind(r.ctx, coll, a)
	if err != nil {
		return nil, err
	}
	switch {
	case coll == nil:
		return emptyCursor(a.ns), nil
	case coll.Options().ViewOn != "":
		return m.findOnView(r, sn, coll, a)
	case a.tailable:
		return m.openTail(r, coll, a, q)
	}
	seq, plan, err := q.run(coll)
	if err != nil {
		return nil, err
	}
	if a.returnKey { // and nothing else, be the record's number asked for
		a.showRecordID = false
		q.project = keyInIndex(plan.Index)
	}
	c := &cursor{ns: a.ns, uuid: coll.UUID(), noTimeout: a.noTimeout, src: newPullSource(failingAs(m.opt.Persona.findWords(a.ns), recordSource(seq, q.project, a.showRecordID))), meter: q.meter}
	if plan.Index != nil {
		c.index = plan.Index.Spec().Name
	}
	size := a.firstSize()
	return m.open(r, c, size, a.single, func(n int) bool { return a.limit > 0 && int64(n) >= a.limit })
}

// emptyCursor is the answer for what does not exist.
func emptyCursor(ns string) bson.D { return cursorReply("firstBatch", []bson.Raw{}, 0, ns) }

// firstSize is the size of the first batch: a single batch has all there is.
func (a *findArgs) firstSize() int64 {
	switch {
	case a.batchSize >= 0:
		return a.batchSize
	case a.single && a.limit == 0:
		return firstBatch
	case a.limit > 0 && (a.limit < firstBatch || a.single):
		return a.limit
	}
	return firstBatch
}

// ignoredFind are accepted without an effect.
var ignoredFind = map[string]bool{
	"allowDiskUse": true, "oplogReplay": true, "allowPartialResults": true, "readOnce": true, "maxScan": true,
	"snapshot": true, "term": true, "$_requestReshardingResumeToken": true, "includeQueryStatsMetrics": true,
}

func parseFind(r *Request) (*findArgs, error) {
	ns, err := r.Namespace()
	if err != nil {
		return nil, err
	}
	a := &findArgs{ns: ns, batchSize: -1, filter: bson.Raw{5, 0, 0, 0, 0}}
	if err := r.eachField(func(key string, v bson.RawValue) error { return a.read(r, key, v) }); err != nil {
		return nil, err
	}
	return a, a.check(r)
}

func (a *findArgs) read(r *Request, key string, v bson.RawValue) (err error) {
	switch key {
	case "filter":
		a.filter, err = r.findDoc(key, v)
	case "sort":
		a.sort, err = r.findDoc(key, v)
	case "projection":
		a.projection, err = r.findDoc(key, v)
	case "min":
		a.min, err = r.findDoc(key, v)
	case "max":
		a.max, err = r.findDoc(key, v)
	case "let":
		a.let, err = r.findDoc(key, v)
	case "hint":
		a.hint, err = v, r.checkHint(v)
	case "collation":
		var d bson.Raw
		if d, err = r.findDoc(key, v); err == nil {
			a.collation, err = readCollation(d)
		}
	case "skip":
		a.skip, err = r.findInt(key, "Skip", v)
	case "limit":
		a.limit, err = r.findInt(key, "Limit", v)
	case "batchSize":
		a.batchSize, err = r.findInt(key, "BatchSize", v)
	default:
		return a.readFlag(r, key, v)
	}
	return err
}

func (a *findArgs) readFlag(r *Request, key string, v bson.RawValue) error {
	flags := map[string]*bool{"singleBatch": &a.single, "tailable": &a.tailable, "awaitData": &a.await,
		"noCursorTimeout": &a.noTimeout, "showRecordId": &a.showRecordID, "returnKey": &a.returnKey}
	p, ok := flags[key]
	if !ok {
		if ignoredFind[key] {
			return nil
		}
		return r.parseFailure("Unrecognized field '%s'.", key)
	}
	if *p, ok = v.BooleanOK(); !ok {
		return r.failedField(key, v, "bool")
	}
	return nil
}

// failedField is find's wording of a field of the wrong type.
func (r *Request) failedField(key string, v bson.RawValue, want string) error {
	return mongoerr.Server(mongoerr.CodeFailedToParse, "Failed to parse: %s. '%s' field must be of BSON type %s.", value.PrintElement(key, v), key, want)
}

func (r *Request) findDoc(key string, v bson.RawValue) (bson.Raw, error) {
	d, ok := v.DocumentOK()
	if !ok {
		return nil, r.failedField(key, v, "object")
	}
	return d, nil
}

func (r *Request) findInt(key, name string, v bson.RawValue) (int64, error) {
	n, ok := truncated(v)
	if !ok {
		return 0, r.parseFailure("'%s' field must be numeric.", key)
	}
	if n < 0 {
		return 0, mongoerr.Server(mongoerr.CodeBadValue, "%s value must be non-negative, but received: %d", name, n)
	}
	return n, nil
}

func (r *Request) checkHint(v bson.RawValue) error {
	if v.Type != bson.TypeString && v.Type != bson.TypeEmbeddedDocument {
		return mongoerr.Server(mongoerr.CodeFailedToParse, "hint must be either a string or nested object")
	}
	return nil
}

func (a *findArgs) check(r *Request) error {
	switch {
	case a.await && !a.tailable:
		return mongoerr.Server(mongoerr.CodeFailedToParse, "Cannot set 'awaitData' without also setting 'tailable'")
	case a.tailable && a.single:
		return mongoerr.Server(mongoerr.CodeBadValue, "cannot use tailable option with the 'singleBatch' option")
	case a.tailable && a.sort != nil && !a.sort.IsEmpty():
		if reverse, ok := naturalOrder(a.sort); reverse || !ok {
			return mongoerr.Server(mongoerr.CodeBadValue, "cannot use tailable option with a sort other than {$natural: 1}")
		}
	case (a.min != nil || a.max != nil) && a.hint.IsZero():
		return mongoerr.Server(51173, "When using min()/max() a hint of which index to use must be provided")
	}
	if db, coll := r.DB, store.CollectionOf(a.ns); db == "" || coll == "" {
		return mongoerr.Server(mongoerr.CodeInvalidNamespace, "Invalid namespace specified '%s'", a.ns)
	}
	return nil
}

// naturalOrder reports whether a sort is {$natural: n} alone.
func naturalOrder(sort bson.Raw) (reverse, ok bool) {
	for key, v := range sort.All() {
		f, _ := v.AsFloat64OK()
		return f < 0, key == "$natural"
	}
	return false, false
}

// findQuery is a compiled find.
type findQuery struct {
	store.Query
	sort        *query.Sort
	project     func(bson.Raw) (bson.Raw, error) // nil: whole documents
	meter       *query.Meter
	skip, limit int64
}

// compileFind prepares a query on a collection, which need not exist.
func (m *Member) compileFind(ctx context.Context, coll *store.Coll, a *findArgs) (*findQuery, error) {
	let, err := evaluateLet(ctx, m, time.Now(), a.let)
	if err != nil {
		return nil, err
	}
	o := m.queryOptions(ctx, time.Now(), let)
	o.Collation = a.collation.on(coll)
	filter, err := query.ParseFilter(a.filter, o)
	if err != nil {
		return nil, err
	}
	q := &findQuery{Query: store.Query{Filter: filter, Sort: a.sort, Hint: a.hint, Min: a.min, Max: a.max, Collation: o.Collation}, skip: a.skip, limit: a.limit, meter: o.Meter}
	if q.sort, err = query.ParseSortWith(a.sort, o); err != nil {
		return nil, err
	}
	if a.projection == nil || a.projection.IsEmpty() {
		return q, nil
	}
	p, err := query.ParseProjection(a.projection, filter)
	if err != nil {
		return nil, err
	}
	q.project = func(doc bson.Raw) (bson.Raw, error) {
		_, pos := filter.MatchPos(doc)
		return p.Apply(doc, pos)
	}
	return q, nil
}

// run yields the records that the query asks for, sorted, skipped and limited.
func (q *findQuery) run(coll *store.Coll) (iter.Seq2[store.Record, error], *store.Plan, error) {
	seq, plan, err := coll.Find(q.Query)
	if err != nil {
		return nil, nil, err
	}
	if !plan.Sorted {
		seq = sorted(seq, q.sort)
	}
	return window(seq, q.skip, q.limit), plan, nil
}

// sorted collects and orders; records that compare equal keep their order.
func sorted(seq iter.Seq2[store.Record, error], sort *query.Sort) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		var all []store.Record
		for rec, err := range seq {
			if err != nil {
				yield(rec, err)
				return
			}
			all = append(all, rec)
		}
		if err := sortRecords(all, sort); err != nil {
			yield(store.Record{}, err)
			return
		}
		for _, rec := range all {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// sortRecords orders records by their sort keys, each made once.
func sortRecords(records []store.Record, sort *query.Sort) error {
	if sort.IsEmpty() {
		return nil
	}
	type keyed struct {
		key []bson.RawValue
		rec store.Record
	}
	list := make([]keyed, len(records))
	for i, rec := range records {
		key, err := sort.Key(rec.Doc)
		if err != nil {
			return err
		}
		list[i] = keyed{key, rec}
	}
	slices.SortStableFunc(list, func(a, b keyed) int { return sort.CompareKeys(a.key, b.key) })
	for i, k := range list {
		records[i] = k.rec
	}
	return nil
}

func window(seq iter.Seq2[store.Record, error], skip, limit int64) iter.Seq2[store.Record, error] {
	if skip == 0 && limit == 0 {
		return seq
	}
	return func(yield func(store.Record, error) bool) {
		seen, given := int64(0), int64(0)
		for rec, err := range seq {
			seen++
			if err == nil && seen <= skip {
				continue
			}
			given++
			if !yield(rec, err) || err != nil || limit > 0 && given >= limit {
				return
			}
		}
	}
}
