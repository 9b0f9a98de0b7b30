package query

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
)

// Meter bounds what one command or cursor takes: see expr.Meter. Options without one bound nothing.
type Meter = expr.Meter

// What stages hold is counted by the execution's meter. Documents of a collection are there anyway and count with their
// place in a list; what a stage has made counts in full while a later one holds it. A server would write much of this to a
// disk; here is none, so that the limits hold whatever allowDiskUse says.

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

func (h *holding) add(n int) error {
	if n <= 0 {
		h.m.Release(h.m.Mark() + int64(n))
		h.n += n
		return nil
	}
	if err := h.m.Hold(h.stage, n); err != nil {
		if e, ok := err.(*mongoerr.Error); !ok || e.Code != mongoerr.CodeExceededMemoryLimit {
			return err
		}
		return fail(mongoerr.CodeQueryExceededMemoryLimitNoDiskUseAllowed, "%s exceeded the memory limit of %d bytes, and nothing is written to a disk here", h.stage, h.m.Most())
	}
	h.n += n
	return nil
}

// accumulated notes what an accumulator keeps more or less. No server lets one go on that has too much.
func (h *holding) accumulated(name string, n int) error {
	if n > 0 {
		if err := h.m.Hold(name, n); err != nil {
			return err
		}
		h.n += n
		return nil
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

func (h *holding) release() { h.m.Release(h.m.Mark() - int64(h.n)) }

// collect gathers a stage's input.
func (r *running) collect(h *holding, in Docs) ([]bson.Raw, error) {
	var out []bson.Raw
	for d, err := range in {
		if err == nil {
			err = h.add(r.costOf(d))
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

func (r *running) costOf(d bson.Raw) int {
	if r.made {
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
