package query

import (
	"math"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Equality is one {path: value} that every matching document satisfies.
type Equality struct {
	Path  string
	Value bson.RawValue
}

// Equalities lists the equalities of the filter that hold for every match: at the top, under $and, $eq, $all and an $or of
// one clause. A path may occur twice. An upsert builds its document from them.
func (f *Filter) Equalities() []Equality { return equalities(f.root, nil) }

func equalities(n node, out []Equality) []Equality {
	switch n := n.(type) {
	case *and:
		for _, s := range n.subs {
			out = equalities(s, out)
		}
	case *or:
		if len(n.subs) == 1 {
			out = equalities(n.subs[0], out)
		}
	case *leaf:
		if c, ok := n.test.(*comparison); ok && c.op == opEq {
			out = append(out, Equality{n.path.text, c.want})
		}
	}
	return out
}

// Range is an interval of index keys. A point has Low equal to High and both included.
type Range struct {
	Low, High     bson.RawValue
	LowIn, HighIn bool
}

// Contains says whether an index key lies in the range.
func (r Range) Contains(key bson.RawValue) bool {
	lo, hi := value.Compare(key, r.Low), value.Compare(key, r.High)
	return (lo > 0 || lo == 0 && r.LowIn) && (hi < 0 || hi == 0 && r.HighIn)
}

// IsPoint says whether the range holds one key.
func (r Range) IsPoint() bool { return r.LowIn && r.HighIn && value.Compare(r.Low, r.High) == 0 }

// Bounds gives ranges of index keys on path, in no order and perhaps overlapping, so that each matching document has at
// least one key in one of them. It is a superset: what is found must still be matched. ok is false when the filter does
// not narrow the path, or compares by a collation, which index keys do not know.
func (f *Filter) Bounds(path string) (ranges []Range, ok bool) {
	if f.coll != nil {
		return nil, false
	}
	return bounds(f.root, path)
}

func bounds(n node, path string) ([]Range, bool) {
	switch n := n.(type) {
	case *and:
		return narrowest(n.subs, path)
	case *or:
		return union(n.subs, path)
	case *leaf:
		if n.path.text == path {
			return testBounds(n.test)
		}
	}
	return nil, false
}

// narrowest takes one clause alone: two ranges over an array may be met by two elements, so they cannot be intersected.
func narrowest(subs []node, path string) (best []Range, ok bool) {
	for _, s := range subs {
		r, narrows := bounds(s, path)
		if narrows && (!ok || len(r) == 1 && r[0].IsPoint()) {
			best, ok = r, true
		}
	}
	return best, ok
}

func union(subs []node, path string) (all []Range, ok bool) {
	for _, s := range subs {
		r, narrows := bounds(s, path)
		if !narrows {
			return nil, false
		}
		all = append(all, r...)
	}
	return all, len(subs) > 0
}

func testBounds(t test) ([]Range, bool) {
	switch t := t.(type) {
	case *comparison:
		r, ok := t.bounds()
		return []Range{r}, ok
	case *in:
		if len(t.regexes) > 0 {
			return nil, false
		}
		var out []Range
		for _, v := range t.values {
			if !indexable(v) {
				return nil, false
			}
			out = append(out, point(v))
		}
		return out, true
	}
	return nil, false
}

func point(v bson.RawValue) Range { return Range{Low: v, High: v, LowIn: true, HighIn: true} }

// indexable says whether equality with v is one point of an index. Null matches missing and undefined too, an array lies in
// the index by its elements.
func indexable(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeArray, bson.TypeNull, bson.TypeUndefined, bson.TypeMinKey, bson.TypeMaxKey, 0:
		return false
	}
	return !value.IsNaN(v)
}

func (c *comparison) bounds() (Range, bool) {
	if !indexable(c.want) {
		return Range{}, false
	}
	if c.op == opEq {
		return point(c.want), true
	}
	r, ok := bracket(c.want.Type)
	if c.op == opLt || c.op == opLte {
		r.High, r.HighIn = c.want, c.op == opLte
	} else {
		r.Low, r.LowIn = c.want, c.op == opGte
	}
	return r, ok
}

// bracket is the range of all keys of a canonical type: a comparison never leaves it.
func bracket(t bson.Type) (Range, bool) {
	var lo, hi bson.RawValue
	hiIn := true
	switch value.Canonical(t) {
	case value.Canonical(bson.TypeInt32):
		lo, hi = bson.DoubleValue(math.NaN()), bson.DoubleValue(math.Inf(1))
	case value.Canonical(bson.TypeString):
		lo, hi, hiIn = bson.StringValue(""), bson.DocumentValue(value.DocOf()), false
	case value.Canonical(bson.TypeObjectID):
		lo, hi, hiIn = bson.ObjectIDValue(bson.ObjectID{}), bson.BooleanValue(false), false
	case value.Canonical(bson.TypeBoolean):
		lo, hi = bson.BooleanValue(false), bson.BooleanValue(true)
	case value.Canonical(bson.TypeDateTime):
		lo, hi = bson.DateTimeValue(math.MinInt64), bson.DateTimeValue(math.MaxInt64)
	case value.Canonical(bson.TypeTimestamp):
		lo, hi = bson.TimestampValue(0, 0), bson.TimestampValue(math.MaxUint32, math.MaxUint32)
	default:
		return Range{}, false
	}
	return Range{Low: lo, High: hi, LowIn: true, HighIn: hiIn}, true
}
