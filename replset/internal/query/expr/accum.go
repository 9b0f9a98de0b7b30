package expr

import (
	"bytes"
	"math"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Accumulator takes values one by one and gives their sum, least, list ...
type Accumulator interface {
	Add(v bson.RawValue) error
	Result() bson.RawValue
}

// Keeper is an accumulator that keeps what it is given. Kept is how many bytes it keeps.
type Keeper interface{ Kept() int }

// Own gives a value bytes of its own: what it is a part of may be much larger.
func Own(v bson.RawValue) bson.RawValue {
	v.Value = bytes.Clone(v.Value)
	return v
}

// KeptOf is what a list of values takes, the lists that it has outgrown and that which it will become included.
func KeptOf(size, n int) int { return 2*size + n*elementCost }

// NewAccumulator makes the accumulator of that name, nil if there is none.
func NewAccumulator(name string, env *Env) Accumulator {
	switch name {
	case "$sum":
		return &sumOf{}
	case "$avg":
		return &average{}
	case "$min", "$max":
		return &extreme{max: name == "$max", c: env.collator()}
	case "$first":
		return &first1{}
	case "$last":
		return &last1{}
	case "$push":
		return &push{}
	case "$addToSet":
		return &addToSet{c: env.collator()}
	case "$stdDevPop", "$stdDevSamp":
		return &deviation{sample: name == "$stdDevSamp"}
	case "$mergeObjects":
		return &merged{}
	case "$count":
		return &counted{}
	}
	return nil
}

type sumOf struct{ Sum }

func (s *sumOf) Add(v bson.RawValue) error { s.Sum.Add(v); return nil }
func (s *sumOf) Result() bson.RawValue     { return s.Value() }

type average struct {
	Sum
	n int64
}

func (a *average) Add(v bson.RawValue) error {
	if value.IsNumber(v) {
		a.Sum.Add(v)
		a.n++
	}
	return nil
}

func (a *average) Result() bson.RawValue {
	switch {
	case a.n == 0:
		return null
	case a.Kind() == bson.TypeDecimal128:
		return value.DecimalValue(value.Quo(a.Decimal(), value.IntDecimal(a.n)))
	}
	return bson.DoubleValue(a.Float() / float64(a.n))
}

type extreme struct {
	max bool
	c   *value.Collator
	v   bson.RawValue
}

func (e *extreme) Add(v bson.RawValue) error {
	if value.Nullish(v) {
		return nil
	}
	n := value.CompareWith(v, e.v, e.c)
	if e.v.Type == 0 || n < 0 && !e.max || n > 0 && e.max {
		e.v = Own(v)
	}
	return nil
}

func (e *extreme) Kept() int { return len(e.v.Value) }

func (e *extreme) Result() bson.RawValue { return orNull(e.v) }

type first1 struct {
	v   bson.RawValue
	any bool
}

func (f *first1) Add(v bson.RawValue) error {
	if !f.any {
		f.v, f.any = Own(v), true
	}
	return nil
}

func (f *first1) Kept() int { return len(f.v.Value) }

func (f *first1) Result() bson.RawValue { return orNull(f.v) }

type last1 struct{ v bson.RawValue }

func (l *last1) Add(v bson.RawValue) error { l.v = Own(v); return nil }
func (l *last1) Kept() int                 { return len(l.v.Value) }
func (l *last1) Result() bson.RawValue     { return orNull(l.v) }

type push struct {
	vs   []bson.RawValue
	size int
}

func (p *push) Add(v bson.RawValue) error {
	if v.Type != 0 {
		p.vs = append(p.vs, Own(v))
		p.size += len(v.Value)
	}
	return nil
}

func (p *push) Kept() int { return KeptOf(p.size, len(p.vs)) }

func (p *push) Result() bson.RawValue { return value.ArrayOf(p.vs) }

type addToSet struct {
	c    *value.Collator
	vs   []bson.RawValue
	size int
	seen map[string]bool
}

func (s *addToSet) Add(v bson.RawValue) error {
	if v.Type == 0 {
		return nil
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	if k := value.Key(v, s.c); !s.seen[k] {
		s.seen[k] = true
		s.vs = append(s.vs, Own(v))
		s.size += len(v.Value) + len(k)
	}
	return nil
}

func (s *addToSet) Kept() int { return KeptOf(s.size, 2*len(s.vs)) }

func (s *addToSet) Result() bson.RawValue { return value.ArrayOf(s.vs) }

// deviation is computed as the values come, by Welford's recurrence.
type deviation struct {
	sample   bool
	n        int64
	mean, m2 float64
}

func (d *deviation) Add(v bson.RawValue) error {
	if !value.IsNumber(v) {
		return nil
	}
	x := value.Float(v)
	d.n++
	delta := x - d.mean
	if delta != 0 || math.IsNaN(delta) {
		d.mean += delta / float64(d.n)
		d.m2 += delta * (x - d.mean)
	}
	return nil
}

func (d *deviation) Result() bson.RawValue {
	n := d.n
	if d.sample {
		n--
	}
	if n <= 0 {
		return null
	}
	return bson.DoubleValue(math.Sqrt(d.m2 / float64(n)))
}

type merged struct {
	docs []bson.Raw
	size int
}

func (m *merged) Add(v bson.RawValue) error {
	if value.Nullish(v) {
		return nil
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return fail(40400, "$mergeObjects requires object inputs, but input %s is of type %s", value.Show(v), typeOf(v))
	}
	m.docs = append(m.docs, bson.Raw(Own(v).Value))
	if m.size += len(v.Value); m.size > 2*len(m.docs[0])+1<<16 { // most of what is kept may be overwritten by now
		d := MergeObjects(m.docs)
		m.docs, m.size = []bson.Raw{d}, len(d)
	}
	return nil
}

func (m *merged) Kept() int { return KeptOf(m.size, len(m.docs)) }

func (m *merged) Result() bson.RawValue { return bson.DocumentValue(MergeObjects(m.docs)) }

type counted struct{ n int64 }

func (c *counted) Add(bson.RawValue) error { c.n++; return nil }
func (c *counted) Result() bson.RawValue   { return intOrLong(c.n) }
