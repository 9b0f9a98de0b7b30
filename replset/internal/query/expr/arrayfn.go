package expr

import (
	"slices"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func arrayOps() map[string]parseFunc {
	return map[string]parseFunc{
		"$arrayElemAt":  fixed(2, elemAt),
		"$first":        unary(func(c *Ctx, v bson.RawValue) (bson.RawValue, error) { return edge("$first", v, 0) }),
		"$last":         unary(func(c *Ctx, v bson.RawValue) (bson.RawValue, error) { return edge("$last", v, -1) }),
		"$concatArrays": variadic(concatArrays),
		"$in":           fixed(2, in),
		"$indexOfArray": between(2, 4, indexOfArray),
		"$isArray": unary(func(_ *Ctx, v bson.RawValue) (bson.RawValue, error) {
			return bson.BooleanValue(v.Type == bson.TypeArray), nil
		}),
		"$reverseArray": unary(reverse),
		"$size":         unary(size),
		"$slice":        between(2, 3, slice),
		"$range":        between(2, 3, rangeOf),
	}
}

func elemAt(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	if value.Nullish(a[0]) || value.Nullish(a[1]) {
		return null, nil
	}
	if a[0].Type != bson.TypeArray {
		return failed(28689, "$arrayElemAt's first argument must be an array, but is %s", typeOf(a[0]))
	}
	if !value.IsNumber(a[1]) {
		return failed(28690, "$arrayElemAt's second argument must be a numeric value, but is %s", typeOf(a[1]))
	}
	if !isInt(a[1]) {
		return failed(28691, "$arrayElemAt's second argument must be representable as a 32-bit integer: %s", value.FormatFloat(value.Float(a[1]), 6))
	}
	return at(a[0], value.Long(a[1])), nil
}

// at takes an element, from the end if i is negative; missing if there is none.
func at(v bson.RawValue, i int64) bson.RawValue {
	arr := bson.RawArray(v.Value)
	if i < 0 {
		i += int64(arr.Len())
	}
	if i < 0 {
		return value.Missing
	}
	return arr.Index(int(i))
}

func edge(name string, v bson.RawValue, i int64) (bson.RawValue, error) {
	switch {
	case value.Nullish(v):
		return null, nil
	case v.Type != bson.TypeArray:
		return failed(28689, "%s's argument must be an array, but is %s", name, typeOf(v))
	}
	return at(v, i), nil
}

func concatArrays(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	var out []bson.RawValue
	for _, v := range a {
		if value.Nullish(v) {
			return null, nil
		}
		if v.Type != bson.TypeArray {
			return failed(28664, "$concatArrays only supports arrays, not %s", typeOf(v))
		}
		out = append(out, value.Array(v)...)
	}
	return value.ArrayOf(out), nil
}

func in(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	if a[1].Type != bson.TypeArray {
		return failed(40081, "$in requires an array as a second argument, found: %s", typeOf(a[1]))
	}
	found := slices.ContainsFunc(value.Array(a[1]), func(e bson.RawValue) bool { return compare(c, a[0], e) == 0 })
	return bson.BooleanValue(found), nil
}

func indexOfArray(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	if value.Nullish(a[0]) {
		return null, nil
	}
	if a[0].Type != bson.TypeArray {
		return failed(40090, "$indexOfArray requires an array as a first argument, found: %s", typeOf(a[0]))
	}
	all := value.Array(a[0])
	from, end, err := bounds("$indexOfArray", a, len(all))
	if err != nil {
		return null, err
	}
	for i := from; i < end; i++ {
		if compare(c, all[i], a[1]) == 0 {
			return bson.Int32Value(int32(i)), nil
		}
	}
	return bson.Int32Value(-1), nil
}

func reverse(_ *Ctx, v bson.RawValue) (bson.RawValue, error) {
	switch {
	case value.Nullish(v):
		return null, nil
	case v.Type != bson.TypeArray:
		return failed(34435, "The argument to $reverseArray must be an array, but was of type: %s", typeOf(v))
	}
	all := value.Array(v)
	slices.Reverse(all)
	return value.ArrayOf(all), nil
}

func size(_ *Ctx, v bson.RawValue) (bson.RawValue, error) {
	if v.Type != bson.TypeArray {
		return failed(17124, "The argument to $size must be an array, but was of type: %s", typeOf(v))
	}
	return bson.Int32Value(int32(bson.RawArray(v.Value).Len())), nil
}

func slice(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	for _, v := range a {
		if value.Nullish(v) {
			return null, nil
		}
	}
	if a[0].Type != bson.TypeArray {
		return failed(28724, "First argument to $slice must be an array, but is of type: %s", typeOf(a[0]))
	}
	if !value.IsNumber(a[1]) {
		return failed(28725, "Second argument to $slice must be a numeric value, but is of type: %s", typeOf(a[1]))
	}
	if !isInt(a[1]) {
		return failed(28726, "Second argument to $slice can't be represented as a 32-bit integer: %s", value.FormatFloat(value.Float(a[1]), 6))
	}
	all, n := value.Array(a[0]), int(value.Long(a[1]))
	if len(a) == 2 {
		if n >= 0 {
			return value.ArrayOf(all[:min(n, len(all))]), nil
		}
		return value.ArrayOf(all[max(0, len(all)+n):]), nil
	}
	return sliceFrom(all, n, a[2])
}

func sliceFrom(all []bson.RawValue, from int, count bson.RawValue) (bson.RawValue, error) {
	if !value.IsNumber(count) {
		return failed(28727, "Third argument to $slice must be numeric, but is of type: %s", typeOf(count))
	}
	if !isInt(count) {
		return failed(28728, "Third argument to $slice can't be represented as a 32-bit integer: %s", value.FormatFloat(value.Float(count), 6))
	}
	n := int(value.Long(count))
	if n <= 0 {
		return failed(28729, "Third argument to $slice must be positive: %s", value.FormatFloat(value.Float(count), 6))
	}
	if from < 0 {
		from = max(0, len(all)+from)
	}
	from = min(from, len(all))
	return value.ArrayOf(all[from:min(from+n, len(all))]), nil
}

// rangeElement is the most bytes that an element of a $range takes: a type, a number, and an index of up to 7 digits.
const rangeElement = 1 + 8 + 4

func sign(d int64) int64 {
	if d < 0 {
		return -1
	}
	return 1
}

func rangeOf(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	start, end, step := a[0], a[1], bson.Int32Value(1)
	switch {
	case !value.IsNumber(start):
		return failed(34443, "$range requires a numeric starting value, found value of type: %s", typeOf(start))
	case !isInt(start):
		return failed(34444, "$range requires a starting value that can be represented as a 32-bit integer, found value: %s", value.Show(start))
	case !value.IsNumber(end):
		return failed(34445, "$range requires a numeric ending value, found value of type: %s", typeOf(end))
	case !isInt(end):
		return failed(34446, "$range requires an ending value that can be represented as a 32-bit integer, found value: %s", value.Show(end))
	}
	if len(a) == 3 {
		step = a[2]
		switch {
		case !value.IsNumber(step):
			return failed(34447, "$range requires a numeric step value, found value of type:%s", typeOf(step))
		case !isInt(step):
			return failed(34448, "$range requires a step value that can be represented as a 32-bit integer, found value: %s", value.Show(step))
		case value.Long(step) == 0:
			return failed(34449, "$range requires a non-zero step value")
		}
	}
	lo, hi, d := value.Long(start), value.Long(end), value.Long(step)
	count := max(0, (hi-lo+d-sign(d))/d)
	if err := c.repeated("$range", count, rangeElement); err != nil {
		return null, err
	}
	dst, begin := bson.BeginDocument(make([]byte, 0, 5+count*rangeElement))
	for i, n := 0, lo; d > 0 && n < hi || d < 0 && n > hi; i, n = i+1, n+d {
		dst = bson.AppendInt32(dst, value.Index(i), int32(n))
	}
	return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(dst, begin)}, nil
}
