package command

import (
	"context"
	"slices"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// aggregate is one such command.
type aggregate struct {
	m         *Member
	r         *Request
	ns        string // of the command
	base      string // of the collection that is read, behind views
	stages    []bson.Raw
	hint      bson.RawValue
	let       bson.Raw
	collation collation
	batchSize int64
	explain   bool
	now       time.Time
	wrote     store.OpTime // by $out or $merge
	meter     *query.Meter // of all that the cursor does
}

// runAggregate runs a pipeline. Not done: $changeStream, $geoNear, $search;
// sorting always happens in memory (allowDiskUse says how much of it may be taken).
func runAggregate(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	r.Body = bson.Raw(slices.Clone(r.Body)) // the cursor outlives the request's buffer
	a, err := m.parseAggregate(r)
	if err != nil {
		return nil, err
	}
	sn, err := m.Read(r)
	if err != nil {
		return nil, err
	}
	if err := a.resolve(sn); err != nil {
		return nil, err
	}
	if a.explain {
		return a.explained(sn)
	}
	docs, p, err := a.run(ctx, sn)
	if err != nil {
		return nil, err
	}
	if w := p.Writes(); w != nil && r.ReadConcern.Level == "linearizable" {
		return nil, mongoerr.Server(mongoerr.CodeInvalidOptions, "Aggregation stage that writes cannot run with a readConcern other than 'local', 'available' or 'majority'. Current readConcern: linearizable")
	}
	if p.Writes() == nil {
		docs = fitting(docs)
	}
	docs = failingAs(m.opt.Persona.aggregateWords(), docs)
	if p.Writes() != nil {
		return a.write(ctx, docs)
	}
	c := &cursor{ns: a.ns, src: newPullSource(docs), meter: a.meter}
	if coll := sn.Collection(a.ns); coll != nil && coll.Options().ViewOn == "" {
		c.uuid = coll.UUID()
	}
	return m.open(r, c, a.batchSize, false, nil)
}

// ignoredAggregate are accepted without an effect.
var ignoredAggregate = map[string]bool{
	"bypassDocumentValidation": true, "fromMongos": true, "needsMerge": true, "exchange": true,
	"collectionUUID": true, "isMapReduceCommand": true, "fromRouter": true, "includeQueryStatsMetrics": true,
}

func (m *Member) parseAggregate(r *Request) (*aggregate, error) {
	a := &aggregate{m: m, r: r, batchSize: firstBatch, now: time.Now(), meter: m.stageMeter(r.ctx)}
	err := a.parseTarget()
	if err == nil {
		err = r.eachField(a.read)
	}
	switch {
	case err != nil:
		return nil, err
	case r.Field("pipeline").IsZero():
		return nil, missingField("aggregate", "pipeline")
	case r.Field("cursor").IsZero() && !a.explain:
		return nil, mongoerr.Server(mongoerr.CodeFailedToParse, "The 'cursor' option is required, except for aggregate with the explain argument")
	}
	a.base = a.ns
	a.let, err = evaluateLet(r.ctx, m, a.now, a.let)
	return a, err
}

// stageMeter bounds a pipeline. Since version 6.0 its stages may write to a disk unless told otherwise.
func (m *Member) stageMeter(ctx context.Context) *query.Meter {
	return &query.Meter{Alive: alive(ctx), Disk: m.opt.Persona.wire >= wire60}
}

// parseTarget reads the collection, or 1 for a pipeline that has none.
func (a *aggregate) parseTarget() error {
	v := a.r.Field(a.r.Name)
	if v.IsNumber() {
		if n, _ := v.AsInt64OK(); n != 1 {
			return mongoerr.Server(mongoerr.CodeFailedToParse, "Invalid command format: the 'aggregate' field must specify a collection name or 1")
		}
		a.ns = a.r.DB + ".$cmd.aggregate"
		return nil
	}
	ns, err := a.r.Namespace()
	a.ns = ns
	return err
}

func (a *aggregate) read(key string, v bson.RawValue) (err error) {
	const path = "aggregate"
	switch key {
	case "pipeline":
		a.stages, err = pipelineField(v)
	case "cursor":
		err = a.readCursor(v)
	case "explain":
		a.explain, err = boolField(path, key, v)
	case "allowDiskUse":
		a.meter.Disk, err = boolField(path, key, v)
	case "hint":
		a.hint, err = v, a.r.checkHint(v)
	case "let":
		a.let, err = docField(path, key, v)
	case "collation":
		a.collation, err = collationField(key, v)
	default:
		if !ignoredAggregate[key] {
			return unknownField(path, key)
		}
	}
	return err
}

func pipelineField(v bson.RawValue) ([]bson.Raw, error) {
	arr, ok := v.ArrayOK()
	if !ok {
		return nil, mongoerr.Server(mongoerr.CodeTypeMismatch, "'pipeline' option must be specified as an array")
	}
	var stages []bson.Raw
	for _, e := range arr.All() {
		d, ok := e.DocumentOK()
		if !ok {
			return nil, mongoerr.Server(mongoerr.CodeTypeMismatch, "Each element of the 'pipeline' array must be an object")
		}
		stages = append(stages, d)
	}
	return stages, nil
}

func (a *aggregate) readCursor(v bson.RawValue) error {
	n, err := cursorOption(v)
	if n >= 0 {
		a.batchSize = n
	}
	return err
}

// resolve replaces a view by its collection and pipeline.
func (a *aggregate) resolve(sn *store.Snapshot) error {
	if coll := sn.Collection(a.base); coll != nil && coll.Options().ViewOn != "" {
		if err := a.collation.checkView(coll); err != nil {
			return err
		}
	}
	base, stages, err := resolveView(sn, a.base)
	a.base, a.stages = base, append(stages, a.stages...)
	return err
}

// maxViewDepth is how many views may stand on each other.
const maxViewDepth = 20

// resolveView follows views down to a collection and joins their pipelines.
func resolveView(sn *store.Snapshot, ns string) (base string, stages []bson.Raw, err error) {
	for range maxViewDepth + 1 {
		coll := sn.Collection(ns)
		if coll == nil || coll.Options().ViewOn == "" {
			return ns, stages, nil
		}
		own, err := pipelineField(bson.ArrayValue(coll.Options().Pipeline))
		if err != nil {
			return ns, nil, err
		}
		stages = append(own, stages...)
		ns = store.DatabaseOf(ns) + "." + coll.Options().ViewOn
	}
	return ns, nil, mongoerr.Server(mongoerr.CodeViewDepthLimitExceeded, "View depth too deep or view cycle detected; maximum depth is %d", maxViewDepth)
}

// run compiles the pipeline and runs it over the collection.
func (a *aggregate) run(ctx context.Context, sn *store.Snapshot) (query.Docs, *query.Pipeline, error) {
	own, stages, err := a.madeDocuments(sn)
	if err != nil {
		return nil, nil, err
	}
	p, err := query.ParsePipeline(arrayOf(stages), a.env(ctx, sn))
	if err != nil {
		return nil, nil, err
	}
	if own != nil {
		return p.Run(own), p, nil
	}
	coll := sn.Collection(a.base)
	if coll == nil || !p.ReadsCollection() {
		return p.Run(listOf()), p, nil
	}
	seq, _, err := coll.Find(store.Query{Filter: p.LeadingMatch(), Hint: a.hint, Collation: a.collation.on(sn.Collection(a.ns))})
	if err != nil {
		return nil, nil, err
	}
	return p.Run(recordSource(seq, nil, false)), p, nil
}

func (a *aggregate) env(ctx context.Context, sn *store.Snapshot) query.Env {
	o := a.m.queryOptions(ctx, a.now, a.let)
	o.Meter = a.meter
	o.Collation = a.collation.on(sn.Collection(a.ns))
	return query.Env{
		Options: o,
		DB:      store.DatabaseOf(a.ns), Coll: store.CollectionOf(a.ns),
		Lookup: func(coll string) query.Docs { return a.foreign(ctx, sn, store.DatabaseOf(a.ns)+"."+coll) },
		Write:  func(o query.Output, docs []bson.Raw) error { return a.store(ctx, &o, docs) },
	}
}

// foreign yields the documents of another collection or view, for $lookup.
func (a *aggregate) foreign(ctx context.Context, sn *store.Snapshot, ns string) query.Docs {
	sub := &aggregate{m: a.m, r: a.r, ns: ns, base: ns, now: a.now, meter: a.meter}
	sub.collation = collation{given: true, doc: a.collation.on(sn.Collection(a.ns))}
	if err := sub.resolve(sn); err != nil {
		return func(yield func(bson.Raw, error) bool) { yield(nil, err) }
	}
	docs, _, err := sub.run(ctx, sn)
	if err != nil {
		return func(yield func(bson.Raw, error) bool) { yield(nil, err) }
	}
	return docs
}

func firstStage(stages []bson.Raw) (string, bson.RawValue) {
	if len(stages) == 0 {
		return "", bson.RawValue{}
	}
	for key, v := range stages[0].All() {
		return key, v
	}
	return "", bson.RawValue{}
}

// listOf yields documents that are all there.
func listOf(docs ...bson.Raw) query.Docs {
	return func(yield func(bson.Raw, error) bool) {
		for _, d := range docs {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// evaluateLet computes the variables of a command, which may be expressions.
func evaluateLet(ctx context.Context, m *Member, now time.Time, let bson.Raw) (bson.Raw, error) {
	if let.IsEmpty() {
		return nil, nil
	}
	return query.EvalLet(let, m.queryOptions(ctx, now, nil))
}
