package query

import (
	"slices"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// comparison is $eq, $lt, $lte, $gt, $gte. A value of another canonical type never matches, except that null, undefined and
// missing are alike, and that everything lies between MinKey and MaxKey.
type comparison struct {
	op   op
	want bson.RawValue
	coll *value.Collator
}

type op uint8

const (
	opEq op = iota
	opLt
	opLte
	opGt
	opGte
)

var compareOps = map[string]op{"$eq": opEq, "$lt": opLt, "$lte": opLte, "$gt": opGt, "$gte": opGte}

// inclusive says whether the operator accepts an equal value.
func (o op) inclusive() bool { return o != opLt && o != opGt }

func (o op) accepts(order int) bool {
	switch o {
	case opEq:
		return order == 0
	case opLt:
		return order < 0
	case opLte:
		return order <= 0
	case opGt:
		return order > 0
	}
	return order >= 0
}

func (c *comparison) holds(v bson.RawValue, _ *state) bool {
	cv, cw := value.Canonical(v.Type), value.Canonical(c.want.Type)
	if cv != cw {
		if cv+cw == 5 { // null on one side, missing or undefined on the other
			return c.op.inclusive()
		}
		if c.want.Type == bson.TypeMinKey || c.want.Type == bson.TypeMaxKey {
			return c.op != opEq
		}
		return false
	}
	if vn, wn := value.IsNaN(v), value.IsNaN(c.want); vn || wn {
		return vn && wn && c.op.inclusive()
	}
	return c.op.accepts(value.CompareWith(v, c.want, c.coll))
}

// in is $in: equal to one of the values or matched by one of the regular expressions.
type in struct {
	values  []bson.RawValue // sorted
	regexes []*regexTest
	hasNull bool
	coll    *value.Collator
}

func newIn(values []bson.RawValue, regexes []*regexTest, c *value.Collator) *in {
	t := &in{values: values, regexes: regexes, coll: c}
	slices.SortStableFunc(t.values, func(a, b bson.RawValue) int { return value.CompareWith(a, b, c) })
	for _, v := range values {
		t.hasNull = t.hasNull || v.Type == bson.TypeNull
	}
	return t
}

func (t *in) holds(v bson.RawValue, st *state) bool {
	if v.Type == 0 {
		return t.hasNull
	}
	_, found := slices.BinarySearchFunc(t.values, v, func(a, b bson.RawValue) int { return value.CompareWith(a, b, t.coll) })
	if found {
		return true
	}
	for _, r := range t.regexes {
		if r.holds(v, st) {
			return true
		}
	}
	return false
}

// modTest is $mod: both sides are cut to whole numbers.
type modTest struct{ divisor, remainder int64 }

func (m modTest) holds(v bson.RawValue, _ *state) bool {
	if !value.IsNumber(v) {
		return false
	}
	if m.divisor == -1 { // the smallest long divided by -1 has no answer in a long
		return m.remainder == 0
	}
	return value.CutLong(v)%m.divisor == m.remainder
}
