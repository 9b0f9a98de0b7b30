package command

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// awaitDefault is how long a getMore on an awaitData cursor waits when it does not say.
const awaitDefault = time.Second

// tailSource reads a capped collection from a place that moves on with it.
type tailSource struct {
	q    *findQuery
	coll *store.Coll    // of the newest snapshot taken
	last store.RecordID // nothing up to here is wanted any more
	seen store.RecordID // the newest record looked at, 0: none; last may be a place between records
	all  bool           // the filter asks for nothing but the place from which on all records match
}

// openTail starts a tailable cursor. The oplog is entered at the timestamp that the
// filter asks for, not at its beginning.
func (m *Member) openTail(r *Request, coll *store.Coll, a *findArgs, q *findQuery) (bson.D, error) {
	if !coll.Options().Capped {
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "error processing query: ns=%sTree: $and\nSort: {}\nProj: {}\n tailable cursor requested on non capped collection", a.ns)
	}
	t := &tailSource{q: q, coll: coll}
	if a.ns == store.OplogNS {
		t.last, t.all = oplogStart(a.filter)
	}
	c := &cursor{ns: a.ns, uuid: coll.UUID(), src: t, tail: t, await: a.await, noTimeout: a.noTimeout}
	if coll.Count() == 0 && !a.await && a.ns != store.OplogNS {
		return emptyCursor(a.ns), nil // a tailable cursor on an empty collection is dead at once
	}
	return m.open(r, c, a.firstSize(), false, nil)
}

// oplogStart is the record before the first that {ts: {$gt or $gte: T}} may match. all says that the filter is this alone:
// then it matches every record after it.
func oplogStart(filter bson.Raw) (before store.RecordID, all bool) {
	v := filter.Lookup("ts")
	d, _ := v.DocumentOK()
	for op, arg := range d.All() {
		t, i, ok := arg.TimestampOK()
		if !ok {
			continue
		}
		id := store.RecordID(t)<<32 | store.RecordID(i)
		switch op {
		case "$gt":
			return id, single(filter) && single(d)
		case "$gte":
			return id - 1, single(filter) && single(d)
		case "$eq":
			return id - 1, false
		}
	}
	return 0, false
}

// single says that a document has one field.
func single(d bson.Raw) bool {
	n := 0
	for range d.All() {
		n++
	}
	return n == 1
}

func (t *tailSource) close() {}

func (t *tailSource) next() (bson.Raw, bool, error) {
	for rid, doc := range t.coll.Records(t.last + 1) {
		t.last, t.seen = rid, rid
		if !t.all {
			if ok, _, err := t.q.Filter.Eval(doc); err != nil {
				return nil, false, err
			} else if !ok {
				continue
			}
		}
		if t.q.project == nil {
			return doc, true, nil
		}
		doc, err := t.q.project(doc)
		return doc, err == nil, err
	}
	t.seen = max(t.seen, t.coll.LastRecord())
	return nil, false, nil
}

// advance takes a new snapshot. The record last seen must still be there, or some between may have been missed; of the
// oplog it must be the same, or a rollback has put others before it.
func (t *tailSource) advance(coll *store.Coll) error {
	if t.seen > 0 {
		lost := coll.FirstRecord() > t.seen
		if coll.NS() == store.OplogNS {
			before, _ := t.coll.Get(t.seen)
			now, ok := coll.Get(t.seen)
			lost = !ok || store.EntryOpTime(before) != store.EntryOpTime(now)
		}
		if lost {
			return positionLost(t.seen)
		}
	}
	t.coll = coll
	return nil
}

func positionLost(last store.RecordID) error {
	return mongoerr.Server(mongoerr.CodeCappedPositionLost,
		"CollectionScan died due to position in capped collection being deleted. Last seen record id: RecordId(%d)", last)
}

// nextTail fills a batch with what is new. With awaitData it waits for something to
// come, up to maxTimeMS.
func (m *Member) nextTail(ctx context.Context, r *Request, c *cursor, limit int64) ([]bson.Raw, bool, error) {
	var expired <-chan time.Time
	if c.await {
		wait := awaitDefault
		if r.MaxTimeMS > 0 {
			wait = time.Duration(r.MaxTimeMS) * time.Millisecond
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		expired = timer.C
	}
	for {
		changed := m.Store.Changed()
		coll := m.Store.Latest().Collection(c.ns)
		if coll == nil || coll.UUID() != c.uuid {
			return nil, true, m.checkSource(c)
		}
		if err := c.tail.advance(coll); err != nil {
			return nil, true, err
		}
		batch, _, err := c.fill(ctx, limit)
		if err != nil || len(batch) > 0 || !c.await {
			return batch, err != nil, err
		}
		select {
		case <-changed:
		case <-expired:
			return nil, false, nil
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}
