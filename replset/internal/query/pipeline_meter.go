package query

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
)

// Meter bounds what one command or cursor takes: see expr.Meter. Options without one bound nothing.
type Meter = expr.Meter

// What stages hold is counted by the execution's meter. Documents of a collection are there anyway and count with their
// place in a list; what a stage has made counts in full while a later one holds it. Much of this a server would write to a
// disk, with allowDiskUse. Here is no disk: with it such stages may hold more, without it all that they hold counts, so that
// what succeeds on a server succeeds here, and what fails there fails.

const (
	sortRefused  = "Sort exceeded memory limit of %d bytes, but did not opt in to external sorting. Aborting operation. Pass allowDiskUse:true to opt in."
	groupRefused = "Exceeded memory limit for $group, but didn't allow external spilling. Pass allowDiskUse:true to opt in."
)

// spilling are the stages that write to a disk, if they may.
var spilling = map[string]bool{"$sort": true, "$group": true, "$bucketAuto": true, "$setWindowFields": true}

// docCost is what holding a document takes beside its bytes.
const docCost = 64

// passing is a stage whose output are documents of its input.
type passing interface{ passes() }

func (*matchStage) passes()  {}
func (*sortStage) passes()   {}
func (*windowStage) passes() {}
func (*sampleStage) passes() {}

func (r *running) meter() *Meter { return r.ee.Meter }

// holding is what one stage holds beyond a single document. It ends with release, whatever other stages have held meanwhile.
type holding struct {
	m     *Meter
	stage string
	n     int
}

// disk says that the stage may hold what a server would write to a disk.
func (h *holding) disk() bool { return spilling[h.stage] && h.m.Spills() }

func (h *holding) add(n int) error {
	switch {
	case h.disk():
		if !h.m.Spill(n) {
			return fail(mongoerr.CodeExceededMemoryLimit, "%s would hold more than %d bytes, and nothing is written to a disk here", h.stage, int64(expr.MaxSpilled))
		}
		if err := h.m.Step(max(n, 0)); err != nil {
			h.m.Spill(-n)
			return err
		}
	case n <= 0:
		h.m.Release(h.m.Mark() + int64(n))
	default:
		if err := h.m.Hold(h.stage, n); err != nil {
			return h.refused(err)
		}
	}
	h.n += n
	return nil
}

// refused is what a server says when a stage has too much.
func (h *holding) refused(err error) error {
	switch e, ok := err.(*mongoerr.Error); {
	case !ok || e.Code != mongoerr.CodeExceededMemoryLimit:
		return err
	case h.stage == "$group":
		return fail(mongoerr.CodeQueryExceededMemoryLimitNoDiskUseAllowed, groupRefused)
	case spilling[h.stage]:
		return fail(mongoerr.CodeQueryExceededMemoryLimitNoDiskUseAllowed, sortRefused, h.m.Most())
	}
	return fail(mongoerr.CodeQueryExceededMemoryLimitNoDiskUseAllowed, "%s exceeded the memory limit of %d bytes, and it is never written to a disk", h.stage, h.m.Most())
}

// accumulated notes that an accumulator keeps so much, n bytes more or less than before. No server lets one go on that has
// too much, be there a disk or not.
func (h *holding) accumulated(name string, kept, n int) error {
	if n > 0 && int64(kept)+groupCost > h.m.Most() {
		return fail(mongoerr.CodeExceededMemoryLimit, "%s used too much memory and cannot spill to disk. Memory limit: %d bytes", name, h.m.Most())
	}
	return h.add(n)
}

func (h *holding) addAll(docs []bson.Raw) error {
	n := 0
	for _, d := range docs {
		n += len(d) + docCost
	}
	return h.add(n)
}

func (h *holding) release() {
	if h.disk() {
		h.m.Spill(-h.n)
		return
	}
	h.m.Release(h.m.Mark() - int64(h.n))
}

// collect gathers a stage's input.
func (r *running) collect(h *holding, in Docs) ([]bson.Raw, error) {
	var out []bson.Raw
	for d, err := range in {
		if err == nil {
			err = h.add(h.costOf(r, d))
		}
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// ofStage is for documents that the stage has made itself.
func (r *running) ofStage() *running {
	out := *r
	out.made = true
	return &out
}

// costOf is what holding d takes. A document of the collection is there anyway, but a server that must not write it to a
// disk has it in the stage.
func (h *holding) costOf(r *running, d bson.Raw) int {
	if r.made || spilling[h.stage] && !h.disk() {
		return len(d) + docCost
	}
	return docCost
}

// whole makes a stage's stream from a func over all its documents; nothing runs before the first is asked for.
func (r *running) whole(stage string, in Docs, f func(*holding, []bson.Raw) ([]bson.Raw, error)) Docs {
	return func(yield func(bson.Raw, error) bool) {
		h := &holding{m: r.meter(), stage: stage}
		defer h.release()
		docs, err := r.collect(h, in)
		if err == nil {
			docs, err = f(h, docs)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		docsOf(docs)(yield)
	}
}

// mapped makes a stage's stream from a func over each document; a nil result leaves the document out.
func (r *running) mapped(in Docs, f func(bson.Raw) (bson.Raw, error)) Docs {
	return func(yield func(bson.Raw, error) bool) {
		m := r.meter()
		for d, err := range in {
			if err == nil {
				err = m.Step(len(d))
			}
			if err == nil {
				mark := m.Mark()
				d, err = f(d)
				m.Release(mark)
			}
			if err == nil && int64(len(d)) > m.Most()/2 { // while the next stage makes another of it
				err = m.Refuse("a document", len(d))
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if d != nil && !yield(d, nil) {
				return
			}
		}
	}
}
