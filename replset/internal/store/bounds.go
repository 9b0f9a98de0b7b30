package store

import (
	"math"
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// interval is a range of values of one field. A zero lo or hi (Type 0) is open: from
// the lowest value, to the highest.
type interval struct {
	lo, hi       bson.RawValue
	loOut, hiOut bool // the end itself is not in the range
}

func (iv interval) isPoint(coll *value.Collator) bool {
	return !iv.lo.IsZero() && !iv.hi.IsZero() && !iv.loOut && !iv.hiOut && value.CompareWith(iv.lo, iv.hi, coll) == 0
}

// collated reports whether a collation may matter to the interval: it has to do with strings, or with what may hold some.
// The empty string is the lowest in all of them.
func (iv interval) collated() bool {
	return mayHoldStrings(iv.lo) || mayHoldStrings(iv.hi) && !(iv.hiOut && isEmptyString(iv.hi))
}

func mayHoldStrings(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol, bson.TypeEmbeddedDocument, bson.TypeArray:
		return true
	}
	return false
}

func isEmptyString(v bson.RawValue) bool { s, ok := v.StringValueOK(); return ok && s == "" }

// condition is what one clause of a filter says of one path: a value must lie in one of
// the intervals. Invariant: every document that the clause matches has, among the keys
// that an index makes of the path, one in one of the intervals.
type condition struct {
	path      string
	intervals []interval // ascending, apart
	matchNull bool       // missing values match too: of no use to a sparse index
	coll      *value.Collator
	clauses   []Clause // that say just this, and no more
}

// preference says which of several conditions on a path with arrays is used: single values, then in a server's order.
func (c condition) preference() int {
	if c.isPoints() || len(c.clauses) == 0 {
		return 0
	}
	return 1 + slices.Index([]string{"$lte", "$lt", "$gt", "$gte"}, c.clauses[0].Op)
}

// Clause is one operator of a filter on one path: {path: {op: arg}}. {path: value} is $eq.
type Clause struct {
	Path, Op string
	Arg      bson.RawValue
}

func (c condition) collated() bool { return slices.ContainsFunc(c.intervals, interval.collated) }

func (c condition) isPoints() bool {
	for _, iv := range c.intervals {
		if !iv.isPoint(c.coll) {
			return false
		}
	}
	return true
}

// conditions reads the clauses of a filter that an index can serve: those at the top
// level and in $and. Whatever it does not know, it leaves out: the filter is always
// matched again.
func conditions(filter bson.Raw, coll *value.Collator) []condition {
	var out []condition
	for key, v := range filter.All() {
		switch {
		case key == "$and":
			arr, _ := v.ArrayOK()
			for _, sub := range arr.All() {
				d, _ := sub.DocumentOK()
				out = append(out, conditions(d, coll)...)
			}
		case strings.HasPrefix(key, "$"):
		default:
			for _, c := range fieldConditions(key, v) {
				c.coll = coll
				c.intervals = mergeOverlaps(c.intervals, coll)
				out = append(out, c)
			}
		}
	}
	return out
}

func fieldConditions(path string, v bson.RawValue) []condition {
	d, ok := v.DocumentOK()
	if ok && isOperators(d) {
		return operatorConditions(path, d)
	}
	if c, ok := equality(path, v); ok {
		c.note("$eq", v)
		return []condition{c}
	}
	return nil
}

// note remembers where the condition is from. A null is not all that its key stands for.
func (c *condition) note(op string, arg bson.RawValue) {
	if !c.matchNull {
		c.clauses = []Clause{{c.path, op, arg}}
	}
}

// isOperators tells {$gt: 1} from a document to be equal to (DBRefs among them).
func isOperators(d bson.Raw) bool {
	key, _ := firstElement(d)
	return strings.HasPrefix(key, "$") && key != "$ref" && key != "$id" && key != "$db"
}

func operatorConditions(path string, d bson.Raw) []condition {
	var out []condition
	for op, arg := range d.All() {
		var c condition
		ok := false
		switch op {
		case "$eq":
			c, ok = equality(path, arg)
		case "$in":
			c, ok = anyOf(path, arg)
		case "$gt", "$gte", "$lt", "$lte":
			c, ok = comparison(path, op, arg)
		}
		if ok {
			c.note(op, arg)
			out = append(out, c)
		}
	}
	return out
}

// equality with arrays and regular expressions is not a matter of one key.
func equality(path string, v bson.RawValue) (condition, bool) {
	switch v.Type {
	case bson.TypeArray, bson.TypeRegex, bson.TypeUndefined, 0:
		return condition{}, false
	case bson.TypeNull:
		undefined := bson.RawValue{Type: bson.TypeUndefined}
		return condition{path: path, matchNull: true, intervals: []interval{{lo: undefined, hi: v}}}, true
	}
	return condition{path: path, intervals: []interval{{lo: v, hi: v}}}, true
}

func anyOf(path string, arg bson.RawValue) (condition, bool) {
	arr, ok := arg.ArrayOK()
	if !ok {
		return condition{}, false
	}
	c := condition{path: path}
	for _, v := range arr.All() {
		e, ok := equality(path, v)
		if !ok {
			return condition{}, false
		}
		c.matchNull = c.matchNull || e.matchNull
		c.intervals = append(c.intervals, e.intervals...)
	}
	return c, true
}

// mergeOverlaps joins intervals that share a value, so that no key is visited twice.
func mergeOverlaps(in []interval, coll *value.Collator) []interval {
	if len(in) < 2 {
		return in
	}
	slices.SortStableFunc(in, func(a, b interval) int { return value.CompareWith(a.lo, b.lo, coll) })
	var out []interval
	for _, iv := range in {
		if n := len(out); n > 0 && value.CompareWith(iv.lo, out[n-1].hi, coll) <= 0 {
			if value.CompareWith(iv.hi, out[n-1].hi, coll) > 0 {
				out[n-1].hi = iv.hi
			}
			continue
		}
		out = append(out, iv)
	}
	return out
}

// comparison keeps within the values of the argument's kind, as the operators do.
func comparison(path, op string, v bson.RawValue) (condition, bool) {
	low, high, ok := kindRange(v.Type)
	if !ok {
		return condition{}, false
	}
	iv := interval{lo: low, hi: high, hiOut: true}
	switch op {
	case "$gt":
		iv.lo, iv.loOut = v, true
	case "$gte":
		iv.lo = v
	case "$lt":
		iv.hi = v
	case "$lte":
		iv.hi, iv.hiOut = v, false
	}
	return condition{path: path, intervals: []interval{iv}}, true
}

// kindRange is the lowest value that compares like a type, and the lowest of the next
// kind in the order of values.
func kindRange(t bson.Type) (low, next bson.RawValue, ok bool) {
	switch t {
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
		return bson.DoubleValue(math.NaN()), bson.StringValue(""), true
	case bson.TypeString, bson.TypeSymbol:
		return bson.StringValue(""), bson.DocumentValue(emptyDocument()), true
	case bson.TypeEmbeddedDocument:
		return bson.DocumentValue(emptyDocument()), bson.ArrayValue(bson.RawArray(emptyDocument())), true
	case bson.TypeBinary:
		return bson.BinaryValue(0, nil), bson.ObjectIDValue(bson.ObjectID{}), true
	case bson.TypeTimestamp:
		return bson.TimestampValue(0, 0), bson.RegexValue("", ""), true
	case bson.TypeObjectID:
		return bson.ObjectIDValue(bson.ObjectID{}), bson.BooleanValue(false), true
	case bson.TypeBoolean:
		return bson.BooleanValue(false), bson.DateTimeValue(math.MinInt64), true
	case bson.TypeDateTime:
		return bson.DateTimeValue(math.MinInt64), bson.TimestampValue(0, 0), true
	}
	return bson.RawValue{}, bson.RawValue{}, false
}

// intersect narrows a by b: a value must lie in both. Only for one value, not for
// arrays, whose elements may satisfy each condition apart.
func intersect(a, b condition) condition {
	out := condition{path: a.path, matchNull: a.matchNull && b.matchNull, coll: a.coll}
	out.clauses = slices.Concat(a.clauses, b.clauses)
	for _, x := range a.intervals {
		for _, y := range b.intervals {
			if iv, ok := overlap(x, y, a.coll); ok {
				out.intervals = append(out.intervals, iv)
			}
		}
	}
	return out
}

func overlap(x, y interval, coll *value.Collator) (interval, bool) {
	out := x
	if c := value.CompareWith(y.lo, x.lo, coll); c > 0 || c == 0 && y.loOut {
		out.lo, out.loOut = y.lo, y.loOut
	}
	if c := value.CompareWith(y.hi, x.hi, coll); c < 0 || c == 0 && y.hiOut {
		out.hi, out.hiOut = y.hi, y.hiOut
	}
	c := value.CompareWith(out.lo, out.hi, coll)
	return out, c < 0 || c == 0 && !out.loOut && !out.hiOut
}
