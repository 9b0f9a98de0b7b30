package command

import (
	"context"
	"slices"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// runExplain tells which plan a command would use: the collection, or which index with
// which bounds. executionStats runs the query and counts what it looks at; the single
// stages tell no times and no works. Rejected plans are not known.
func runExplain(_ context.Context, m *Member, r *Request) (bson.D, error) {
	inner, ok := r.Field(r.Name).DocumentOK()
	if !ok {
		return nil, mongoerr.Server(mongoerr.CodeTypeMismatch, `"explain" had the wrong type. Expected object, found %s`, value.TypeName(r.Field(r.Name).Type))
	}
	verbosity := "allPlansExecution"
	if v := r.Field("verbosity"); !v.IsZero() {
		if verbosity, ok = v.StringValueOK(); !ok || !oneOf(verbosity, "queryPlanner", "executionStats", "allPlansExecution") {
			return nil, unsupportedVerbosity(v)
		}
	}
	sub := *r
	sub.Body, sub.Name = bson.Raw(slices.Clone(inner)), ""
	for key := range inner.All() {
		sub.Name = key
		break
	}
	if spec := m.table[sub.Name]; spec != nil {
		own := sub
		own.Spec = spec
		if err := m.checkFields(&own); err != nil {
			return nil, err
		}
	}
	e := &explain{m: m, r: &sub}
	if err := e.plan(); err != nil {
		return nil, err
	}
	return e.reply(verbosity), nil
}

// explain is the plan of one command.
type explain struct {
	m       *Member
	r       *Request
	ns      string
	filter  bson.Raw
	winning bson.D
	count   func() (int64, error)                // documents returned
	examine func() (x store.Examined, err error) // what is looked at for them
}

func (e *explain) plan() error {
	switch e.r.Name {
	case "find", "count", "distinct":
		return e.planQuery()
	case "aggregate":
		return e.planAggregate()
	case "update", "delete", "findAndModify", "findandmodify":
		return e.planWrite()
	}
	if e.m.table[e.r.Name] != nil {
		return mongoerr.Server(mongoerr.CodeIllegalOperation, "Cannot explain cmd: %s", e.r.Name)
	}
	return mongoerr.Server(mongoerr.CodeCommandNotFound, "Explain failed due to unknown command: %s", e.r.Name)
}

func (e *explain) planQuery() error {
	a := &findArgs{batchSize: -1, filter: bson.Raw{5, 0, 0, 0, 0}}
	ns, err := e.r.Namespace()
	if err != nil {
		return err
	}
	a.ns = ns
	read := func(key string, v bson.RawValue) error { return a.readCount(key, v) }
	if e.r.Name == "find" {
		read = func(key string, v bson.RawValue) error { return a.read(e.r, key, v) }
	}
	if err := e.r.eachField(read); err != nil {
		return err
	}
	if err := e.winner(a); err != nil {
		return err
	}
	switch {
	case e.r.Name == "count" && a.filter.IsEmpty() && a.hint.IsZero(): // the collection knows
		e.winning = bson.D{{Key: "stage", Value: "COUNT"}}
	case e.r.Name == "count":
		e.winning = bson.D{{Key: "stage", Value: "COUNT"}, {Key: "inputStage", Value: e.winning}}
	}
	return nil
}

func (e *explain) planAggregate() error {
	a, err := e.m.parseAggregate(e.r)
	if err != nil {
		return err
	}
	find := &findArgs{ns: a.ns, filter: bson.Raw{5, 0, 0, 0, 0}, hint: a.hint, collation: a.collation}
	if name, arg := firstStage(a.stages); name == "$match" {
		if d, ok := arg.DocumentOK(); ok {
			find.filter = d
		}
	}
	return e.winner(find)
}

// planWrite explains the first statement of a write command.
func (e *explain) planWrite() error {
	ns, err := e.r.Namespace()
	if err != nil {
		return err
	}
	a := &findArgs{ns: ns, filter: bson.Raw{5, 0, 0, 0, 0}}
	stage := "UPDATE"
	read := func(filter, hint bson.RawValue) {
		if d, ok := filter.DocumentOK(); ok {
			a.filter = d
		}
		a.hint = hint
	}
	switch e.r.Name {
	case "update":
		read(e.r.Body.Lookup("updates", "0", "q"), e.r.Body.Lookup("updates", "0", "hint"))
	case "delete":
		stage = "DELETE"
		read(e.r.Body.Lookup("deletes", "0", "q"), e.r.Body.Lookup("deletes", "0", "hint"))
	default:
		read(e.r.Field("query"), e.r.Field("hint"))
		if remove, _ := e.r.Field("remove").BooleanOK(); remove {
			stage = "DELETE"
		}
	}
	if err := e.winner(a); err != nil {
		return err
	}
	e.winning = bson.D{{Key: "stage", Value: stage}, {Key: "inputStage", Value: e.winning}}
	return nil
}

// winner makes the winning plan of a query.
func (e *explain) winner(a *findArgs) error {
	e.ns, e.filter = a.ns, a.filter
	sn, err := e.m.Read(e.r)
	if err != nil {
		return err
	}
	coll := sn.Collection(a.ns)
	q, err := e.m.compileFind(e.r.ctx, coll, a)
	if err != nil {
		return err
	}
	if coll == nil {
		e.winning = bson.D{{Key: "stage", Value: "EOF"}}
		return nil
	}
	plan, err := coll.Plan(q.Query)
	if err != nil {
		return err
	}
	e.winning = describePlan(plan, a)
	e.count = func() (int64, error) { return e.m.count(e.r.Context(), coll, a) }
	e.examine = func() (store.Examined, error) {
		switch {
		case e.r.Name == "count" && a.filter.IsEmpty() && a.hint.IsZero():
			return store.Examined{}, nil // the collection knows
		case a.limit > 0 && plan.Sorted:
			return plan.Examine(a.skip + a.limit)
		}
		return plan.Examine(0)
	}
	return nil
}

// describePlan is the tree of stages, the outermost first.
func describePlan(p *store.Plan, a *findArgs) bson.D {
	d := scanStage(p, a.filter)
	wrap := func(stage string, more ...bson.E) {
		d = append(append(bson.D{{Key: "stage", Value: stage}}, more...), bson.E{Key: "inputStage", Value: d})
	}
	if !p.Sorted {
		wrap("SORT", bson.E{Key: "sortPattern", Value: a.sort})
	}
	if a.skip > 0 {
		wrap("SKIP", bson.E{Key: "skipAmount", Value: countValue(a.skip)})
	}
	if a.limit > 0 {
		wrap("LIMIT", bson.E{Key: "limitAmount", Value: countValue(a.limit)})
	}
	if !a.projection.IsEmpty() {
		wrap("PROJECTION", bson.E{Key: "transformBy", Value: a.projection})
	}
	return d
}

func scanStage(p *store.Plan, filter bson.Raw) bson.D {
	direction := "forward"
	if p.Reverse {
		direction = "backward"
	}
	switch {
	case p.IDHack:
		return bson.D{{Key: "stage", Value: "IDHACK"}}
	case p.Index == nil:
		d := bson.D{{Key: "stage", Value: "COLLSCAN"}}
		if whole := joined(clauses(filter)); !whole.IsEmpty() {
			d = append(d, bson.E{Key: "filter", Value: whole})
		}
		return append(d, bson.E{Key: "direction", Value: direction})
	}
	spec := p.Index.Spec()
	bounds := bson.D{}
	for i, f := range spec.Fields {
		if p.Limited() {
			break // a server shows none
		}
		bounds = append(bounds, bson.E{Key: f.Path, Value: p.BoundsText(i)})
	}
	scan := bson.D{{Key: "stage", Value: "IXSCAN"}, {Key: "keyPattern", Value: spec.Key}, {Key: "indexName", Value: spec.Name},
		{Key: "isMultiKey", Value: p.Index.Multikey()}, {Key: "isUnique", Value: spec.Unique}, {Key: "isSparse", Value: spec.Sparse},
		{Key: "isPartial", Value: spec.Partial != nil}, {Key: "indexVersion", Value: int32(2)},
		{Key: "direction", Value: direction}, {Key: "indexBounds", Value: bounds}}
	d := bson.D{{Key: "stage", Value: "FETCH"}}
	if left := residual(filter, p.Covered()); !left.IsEmpty() {
		d = append(d, bson.E{Key: "filter", Value: left})
	}
	return append(d, bson.E{Key: "inputStage", Value: scan})
}

func (e *explain) reply(verbosity string) bson.D {
	planner := bson.D{{Key: "plannerVersion", Value: int32(1)}, {Key: "namespace", Value: e.ns}, {Key: "indexFilterSet", Value: false},
		{Key: "parsedQuery", Value: joined(clauses(e.filter))}, {Key: "winningPlan", Value: e.winning}, {Key: "rejectedPlans", Value: bson.A{}}}
	d := bson.D{{Key: "explainVersion", Value: "1"}, {Key: "queryPlanner", Value: planner}}
	if verbosity != "queryPlanner" {
		d = append(d, bson.E{Key: "executionStats", Value: e.stats(verbosity)})
	}
	return append(d, bson.E{Key: "command", Value: e.r.Body}, bson.E{Key: "serverInfo", Value: bson.D{{Key: "host", Value: "sextant"}}})
}

// stats runs the query.
func (e *explain) stats(verbosity string) bson.D {
	var n int64
	var x store.Examined
	start := time.Now()
	var err error
	if e.count != nil { // there is a collection
		if x, err = e.examine(); err == nil {
			n, err = e.count()
		}
	}
	d := bson.D{{Key: "executionSuccess", Value: err == nil}, {Key: "nReturned", Value: countValue(n)},
		{Key: "executionTimeMillis", Value: countValue(time.Since(start).Milliseconds())},
		{Key: "totalKeysExamined", Value: countValue(x.Keys)}, {Key: "totalDocsExamined", Value: countValue(x.Docs)},
		{Key: "executionStages", Value: countedStages(e.winning, n, x)}}
	if err != nil {
		told := serverError(e.r.ctx, err)
		d = append(d, bson.E{Key: "errorMessage", Value: told.Message}, bson.E{Key: "errorCode", Value: told.Code})
	}
	if verbosity == "allPlansExecution" {
		d = append(d, bson.E{Key: "allPlansExecution", Value: bson.A{}})
	}
	return d
}

// countedStages is a tree of stages with what each of them returned and looked at.
func countedStages(stages bson.D, n int64, x store.Examined) bson.D {
	var d bson.D
	for _, field := range stages {
		if inner, ok := field.Value.(bson.D); ok && field.Key == "inputStage" {
			field.Value = countedStages(inner, n, x)
		}
		d = append(d, field)
		if field.Key != "stage" {
			continue
		}
		switch field.Value {
		case "COLLSCAN", "FETCH", "IDHACK":
			d = append(d, bson.E{Key: "nReturned", Value: countValue(x.Matched)}, bson.E{Key: "docsExamined", Value: countValue(x.Docs)})
		case "IXSCAN":
			d = append(d, bson.E{Key: "nReturned", Value: countValue(x.Docs)}, bson.E{Key: "keysExamined", Value: countValue(x.Keys)})
		default:
			d = append(d, bson.E{Key: "nReturned", Value: countValue(n)})
		}
		if field.Value == "IDHACK" {
			d = append(d, bson.E{Key: "keysExamined", Value: countValue(x.Keys)})
		}
	}
	return d
}

// explained answers aggregate's own option explain.
func (a *aggregate) explained(*store.Snapshot) (bson.D, error) {
	e := &explain{m: a.m, r: a.r}
	if err := e.planAggregate(); err != nil {
		return nil, err
	}
	return e.reply("queryPlanner"), nil
}
