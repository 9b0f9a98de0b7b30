package command

import (
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// onView runs a find on a view as the pipeline that it comes to.
func (m *Member) onView(r *Request, sn *store.Snapshot, a *findArgs) (query.Docs, *query.Meter, error) {
	if err := a.checkView(); err != nil {
		return nil, nil, err
	}
	agg := &aggregate{m: m, r: r, ns: a.ns, base: a.ns, let: a.let, collation: a.collation, now: time.Now(), meter: m.stageMeter(r.ctx)}
	stage := func(name string, v any) {
		agg.stages = append(agg.stages, document(bson.D{{Key: name, Value: v}}))
	}
	if !a.filter.IsEmpty() {
		stage("$match", a.filter)
	}
	if !a.sort.IsEmpty() {
		stage("$sort", a.sort)
	}
	if a.skip > 0 {
		stage("$skip", a.skip)
	}
	if a.limit > 0 {
		stage("$limit", a.limit)
	}
	if !a.projection.IsEmpty() {
		stage("$project", a.projection)
	}
	if err := agg.resolve(sn); err != nil {
		return nil, nil, err
	}
	docs, _, err := agg.run(r.Context(), sn)
	return docs, agg.meter, err
}

// checkView refuses what a pipeline cannot do.
func (a *findArgs) checkView() error {
	_, natural := naturalOrder(a.sort)
	text := ""
	switch {
	case a.tailable:
		text = "Tailable cursors are not supported in aggregation."
	case natural:
		text = "Sort option $natural not supported in aggregation."
	case a.returnKey:
		text = "Option returnKey not supported in aggregation."
	case a.showRecordID:
		text = "Option showRecordId not supported in aggregation."
	case a.min != nil || a.max != nil:
		text = "Option min not supported in aggregation."
	default:
		return nil
	}
	return mongoerr.Server(mongoerr.CodeInvalidPipelineOperator, "%s", text)
}

func (m *Member) findOnView(r *Request, sn *store.Snapshot, coll *store.Coll, a *findArgs) (bson.D, error) {
	docs, meter, err := m.onView(r, sn, a)
	if err != nil {
		return nil, err
	}
	c := &cursor{ns: coll.NS(), noTimeout: a.noTimeout, src: newPullSource(fitting(docs)), meter: meter}
	return m.open(r, c, a.firstSize(), a.single, func(n int) bool { return a.limit > 0 && int64(n) >= a.limit })
}

func (m *Member) viewDocuments(r *Request, sn *store.Snapshot, a *findArgs) ([]bson.Raw, error) {
	seq, meter, err := m.onView(r, sn, a)
	if err != nil {
		return nil, err
	}
	var docs []bson.Raw
	for doc, err := range seq {
		if err != nil {
			return nil, err
		}
		if err := meter.Hold("a view", len(doc)); err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

func (m *Member) countView(r *Request, sn *store.Snapshot, a *findArgs) (bson.D, error) {
	seq, _, err := m.onView(r, sn, a)
	if err != nil {
		return nil, err
	}
	n := int64(0)
	for _, err := range seq {
		if err != nil {
			return nil, err
		}
		n++
	}
	return bson.D{{Key: "n", Value: countValue(n)}}, nil
}
