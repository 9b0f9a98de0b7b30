package expr

import (
	"slices"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func setOps() map[string]parseFunc {
	return map[string]parseFunc{
		"$setUnion":        variadic(setUnion),
		"$setIntersection": variadic(setIntersection),
		"$setDifference":   fixed(2, setDifference),
		"$setEquals":       parseSetEquals,
		"$setIsSubset":     fixed(2, setIsSubset),
		"$allElementsTrue": unary(func(_ *Ctx, v bson.RawValue) (bson.RawValue, error) {
			return elementsTrue("$allElementsTrue", 17040, v, true)
		}),
		"$anyElementTrue": unary(func(_ *Ctx, v bson.RawValue) (bson.RawValue, error) {
			return elementsTrue("$anyElementTrue", 17041, v, false)
		}),
	}
}

// set sorts values and drops equal ones: the first of equals stays.
func set(c *Ctx, vs []bson.RawValue) []bson.RawValue {
	cmp := func(a, b bson.RawValue) int { return compare(c, a, b) }
	slices.SortStableFunc(vs, cmp)
	return slices.CompactFunc(vs, func(a, b bson.RawValue) bool { return cmp(a, b) == 0 })
}

func has(c *Ctx, sorted []bson.RawValue, v bson.RawValue) bool {
	_, ok := slices.BinarySearchFunc(sorted, v, func(a, b bson.RawValue) int { return compare(c, a, b) })
	return ok
}

func setUnion(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	var all []bson.RawValue
	for _, v := range a {
		if value.Nullish(v) {
			return null, nil
		}
		if v.Type != bson.TypeArray {
			return failed(17043, "All operands of $setUnion must be arrays. One argument is of type: %s", typeOf(v))
		}
		all = append(all, value.Array(v)...)
	}
	return value.ArrayOf(set(c, all)), nil
}

func setIntersection(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	var out []bson.RawValue
	for i, v := range a {
		if value.Nullish(v) {
			return null, nil
		}
		if v.Type != bson.TypeArray {
			return failed(17047, "All operands of $setIntersection must be arrays. One argument is of type: %s", typeOf(v))
		}
		next := set(c, value.Array(v))
		if i > 0 {
			next = slices.DeleteFunc(out, func(e bson.RawValue) bool { return !has(c, next, e) })
		}
		if out = next; len(out) == 0 {
			break
		}
	}
	return value.ArrayOf(out), nil
}

func setDifference(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	if value.Nullish(a[0]) || value.Nullish(a[1]) {
		return null, nil
	}
	if a[0].Type != bson.TypeArray {
		return failed(17048, "both operands of $setDifference must be arrays. First argument is of type: %s", typeOf(a[0]))
	}
	if a[1].Type != bson.TypeArray {
		return failed(17049, "both operands of $setDifference must be arrays. Second argument is of type: %s", typeOf(a[1]))
	}
	seen := map[string]bool{} // by key: of the second array, or taken already
	for _, v := range value.Array(a[1]) {
		seen[value.Key(v, c.Env.collator())] = true
	}
	var out []bson.RawValue
	for _, v := range value.Array(a[0]) { // the first array's order is kept
		if k := value.Key(v, c.Env.collator()); !seen[k] {
			seen[k] = true
			out = append(out, v)
		}
	}
	return value.ArrayOf(out), nil
}

func parseSetEquals(p *Parser, name string, arg bson.RawValue) (Expr, error) {
	args, err := p.args(arg)
	if err != nil {
		return nil, err
	}
	if len(args) < 2 {
		return nil, fail(17045, "$setEquals needs at least two arguments had: %d", len(args))
	}
	return &call{args, setEquals}, nil
}

func setEquals(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	var first []bson.RawValue
	for i, v := range a {
		if v.Type != bson.TypeArray {
			return failed(17044, "All operands of $setEquals must be arrays. One argument is of type: %s", typeOf(v))
		}
		s := set(c, value.Array(v))
		if i == 0 {
			first = s
		} else if !slices.EqualFunc(first, s, func(x, y bson.RawValue) bool { return compare(c, x, y) == 0 }) {
			return bson.BooleanValue(false), nil
		}
	}
	return bson.BooleanValue(true), nil
}

func setIsSubset(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	if a[0].Type != bson.TypeArray {
		return failed(17046, "both operands of $setIsSubset must be arrays. First argument is of type: %s", typeOf(a[0]))
	}
	if a[1].Type != bson.TypeArray {
		return failed(17042, "both operands of $setIsSubset must be arrays. Second argument is of type: %s", typeOf(a[1]))
	}
	whole := set(c, value.Array(a[1]))
	for _, v := range value.Array(a[0]) {
		if !has(c, whole, v) {
			return bson.BooleanValue(false), nil
		}
	}
	return bson.BooleanValue(true), nil
}

func elementsTrue(name string, code int32, v bson.RawValue, all bool) (bson.RawValue, error) {
	if v.Type != bson.TypeArray {
		return failed(code, "%s's argument must be an array, but is %s", name, typeOf(v))
	}
	for _, e := range bson.RawArray(v.Value).All() {
		if value.Truthy(e) != all {
			return bson.BooleanValue(!all), nil
		}
	}
	return bson.BooleanValue(all), nil
}
