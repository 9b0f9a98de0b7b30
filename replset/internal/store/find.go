package store

import (
	"iter"

	"github.com/sextantdb/sextant/bson"
)

// Record is one document with its place.
type Record struct {
	ID  RecordID
	Doc bson.Raw
}

// Find plans the query and runs it.
func (c *Coll) Find(q Query) (iter.Seq2[Record, error], *Plan, error) {
	p, err := c.Plan(q)
	if err != nil {
		return nil, nil, err
	}
	return p.Run(), p, nil
}

// Run yields the documents that match, in the order of the plan: the sort's when
// Sorted, else that of the index or the natural one. An error ends it.
func (p *Plan) Run() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for r := range p.candidates() {
			ok := true
			if p.filter != nil {
				var err error
				if ok, _, err = p.filter.Eval(r.Doc); err != nil {
					yield(Record{}, err)
					return
				}
			}
			if ok && !yield(r, nil) {
				return
			}
		}
	}
}

// Examined is what a plan has looked at, and how many documents matched.
type Examined struct{ Keys, Docs, Matched int64 }

// Examine runs the plan until so many documents have matched, 0 for all, and counts.
func (p *Plan) Examine(limit int64) (x Examined, err error) {
	look := func(r Record) bool {
		x.Docs++
		ok := true
		if p.filter != nil {
			ok, _, err = p.filter.Eval(r.Doc)
		}
		if ok {
			x.Matched++
		}
		return err == nil && (limit == 0 || x.Matched < limit)
	}
	if p.Index == nil {
		p.candidates()(look)
		return x, err
	}
	seen := map[RecordID]bool{}
	for e := range p.entries() {
		x.Keys++
		if seen[e.rid] {
			continue
		}
		seen[e.rid] = true
		if doc, ok := p.coll.Get(e.rid); ok && !look(Record{e.rid, doc}) {
			break
		}
	}
	return x, err
}

// candidates yields each record that may match, once.
func (p *Plan) candidates() iter.Seq[Record] {
	if p.Index != nil {
		return p.byIndex()
	}
	return func(yield func(Record) bool) {
		all := p.coll.Records(0)
		if p.Reverse {
			all = p.coll.RecordsReverse()
		}
		for rid, doc := range all {
			if !yield(Record{rid, doc}) {
				return
			}
		}
	}
}

func (p *Plan) byIndex() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		var seen map[RecordID]bool
		if p.Index.multikey {
			seen = map[RecordID]bool{}
		}
		for e := range p.entries() {
			if seen != nil {
				if seen[e.rid] {
					continue
				}
				seen[e.rid] = true
			}
			if doc, ok := p.coll.Get(e.rid); ok && !yield(Record{e.rid, doc}) {
				return
			}
		}
	}
}

// entries walks the index through every combination of the bounds' points and ranges,
// in index order, or backwards.
func (p *Plan) entries() iter.Seq[entry] {
	return func(yield func(entry) bool) {
		if p.hasMinMax {
			for e := range p.Index.scan(entry{vals: p.min, edge: -1}, p.upperLimit(), p.Reverse) {
				if !yield(e) {
					return
				}
			}
			return
		}
		p.walk(nil, yield)
	}
}

// upperLimit is the end of max, which is exclusive; without max the index's end.
func (p *Plan) upperLimit() entry {
	if p.max == nil {
		return entry{edge: 1}
	}
	return entry{vals: p.max, edge: -1}
}

// walk scans below a prefix of point values. It reports false when yield stopped it.
func (p *Plan) walk(prefix []bson.RawValue, yield func(entry) bool) bool {
	depth := len(prefix)
	if depth == len(p.bounds) {
		return p.scan(entry{vals: prefix, edge: -1}, entry{vals: prefix, edge: 1}, yield)
	}
	intervals := p.bounds[depth].intervals
	backwards := p.Reverse != p.Index.spec.Fields[depth].Descending
	for i := range intervals {
		iv := intervals[i]
		if backwards {
			iv = intervals[len(intervals)-1-i]
		}
		next := append(prefix[:depth:depth], iv.lo)
		if iv.isPoint(p.Index.spec.coll) {
			if !p.walk(next, yield) {
				return false
			}
			continue
		}
		lo, hi := p.ends(prefix, iv)
		if !p.scan(lo, hi, yield) {
			return false
		}
	}
	return true
}

// ends are the index entries between which an interval lies, in index order.
func (p *Plan) ends(prefix []bson.RawValue, iv interval) (lo, hi entry) {
	n := len(prefix)
	lo = entry{vals: append(prefix[:n:n], iv.lo), edge: -1}
	if iv.loOut {
		lo.edge = 1
	}
	hi = entry{vals: append(prefix[:n:n], iv.hi), edge: 1}
	if iv.hiOut {
		hi.edge = -1
	}
	if p.Index.spec.Fields[n].Descending {
		lo, hi = hi, lo
		lo.edge, hi.edge = -lo.edge, -hi.edge
	}
	return lo, hi
}

func (p *Plan) scan(lo, hi entry, yield func(entry) bool) bool {
	for e := range p.Index.scan(lo, hi, p.Reverse) {
		if !yield(e) {
			return false
		}
	}
	return true
}
