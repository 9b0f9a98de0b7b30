package expr

import (
	"math"

	"github.com/cockroachdb/apd/v3"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func miscOps() map[string]parseFunc {
	return map[string]parseFunc{
		"$literal": func(_ *Parser, _ string, arg bson.RawValue) (Expr, error) { return Literal{arg}, nil },
		"$const":   func(_ *Parser, _ string, arg bson.RawValue) (Expr, error) { return Literal{arg}, nil },
		"$type":    unary(func(_ *Ctx, v bson.RawValue) (bson.RawValue, error) { return bson.StringValue(typeOf(v)), nil }),
		"$isNumber": unary(func(_ *Ctx, v bson.RawValue) (bson.RawValue, error) {
			return bson.BooleanValue(value.IsNumber(v)), nil
		}),
		"$rand":        parseRand,
		"$percentile":  parsePercentile,
		"$median":      parsePercentile,
		"$meta":        parseMeta,
		"$bsonSize":    unary(bsonSize),
		"$binarySize":  unary(binarySize),
		"$tsSecond":    unary(timestampPart("$tsSecond", 5687301, func(t, _ uint32) uint32 { return t })),
		"$tsIncrement": unary(timestampPart("$tsIncrement", 5687302, func(_, i uint32) uint32 { return i })),
		"$sum":         accumulate("$sum"),
		"$avg":         accumulate("$avg"),
		"$min":         accumulate("$min"),
		"$max":         accumulate("$max"),
		"$stdDevPop":   accumulate("$stdDevPop"),
		"$stdDevSamp":  accumulate("$stdDevSamp"),
	}
}

// accumulate is an accumulator used as an expression: over its arguments, or over the elements of a single array.
func accumulate(name string) parseFunc {
	return variadic(func(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
		if len(a) == 1 && a[0].Type == bson.TypeArray {
			a = value.Array(a[0])
		}
		acc := NewAccumulator(name, c.Env)
		for _, v := range a {
			if err := acc.Add(v); err != nil {
				return value.Missing, err
			}
		}
		return acc.Result(), nil
	})
}

// random is $rand; it is never computed before its time.
type random struct{}

func parseRand(_ *Parser, _ string, arg bson.RawValue) (Expr, error) {
	if n := len(value.Array(arg)); arg.Type == bson.TypeArray && n > 0 || arg.Type == bson.TypeEmbeddedDocument && !bson.Raw(arg.Value).IsEmpty() {
		return nil, fail(3040501, "$rand does not currently accept arguments")
	}
	return random{}, nil
}

// Eval asks the environment for chance.
func (random) Eval(c *Ctx) (bson.RawValue, error) {
	if c.Env == nil || c.Env.Random == nil {
		return failed(1, "$rand has no source of randomness here")
	}
	return bson.DoubleValue(c.Env.Random()), nil
}

func parseMeta(_ *Parser, _ string, arg bson.RawValue) (Expr, error) {
	s, ok := str(arg)
	if !ok {
		return nil, fail(17307, "$meta only supports string arguments")
	}
	if s == "textScore" {
		return nil, fail(40218, "pipeline requires text score metadata, but there is no text score available")
	}
	if s == "randVal" {
		return Literal{}, nil
	}
	return nil, fail(17308, "Unsupported argument to $meta: %s", s)
}

func bsonSize(_ *Ctx, v bson.RawValue) (bson.RawValue, error) {
	switch {
	case value.Nullish(v):
		return null, nil
	case v.Type != bson.TypeEmbeddedDocument:
		return failed(31393, "$bsonSize requires a document input, found: %s", typeOf(v))
	}
	return bson.Int32Value(int32(len(v.Value))), nil
}

func binarySize(_ *Ctx, v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case 0, bson.TypeNull, bson.TypeUndefined:
		return null, nil
	case bson.TypeString:
		return bson.Int32Value(int32(len(v.Value) - 5)), nil
	case bson.TypeBinary:
		return bson.Int32Value(int32(len(v.Value) - 5)), nil
	}
	return failed(51276, "$binarySize requires a string or BinData argument, found: %s", typeOf(v))
}

func timestampPart(name string, code int32, part func(t, i uint32) uint32) func(*Ctx, bson.RawValue) (bson.RawValue, error) {
	return func(_ *Ctx, v bson.RawValue) (bson.RawValue, error) {
		if value.Nullish(v) {
			return null, nil
		}
		t, i, ok := v.TimestampOK()
		if !ok {
			return failed(code, " Argument to %s must be a timestamp, but is %s", name, typeOf(v))
		}
		return bson.Int64Value(int64(part(t, i))), nil
	}
}

func trigOps() map[string]parseFunc {
	out := map[string]parseFunc{
		"$degreesToRadians": numeric("$degreesToRadians", func(v bson.RawValue) (bson.RawValue, error) {
			return trig("$degreesToRadians", v, func(x float64) float64 { return x * (math.Pi / 180) }), nil
		}),
		"$radiansToDegrees": numeric("$radiansToDegrees", func(v bson.RawValue) (bson.RawValue, error) {
			return trig("$radiansToDegrees", v, func(x float64) float64 { return x * (180 / math.Pi) }), nil
		}),
		"$atan2": fixed(2, func(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
			switch {
			case value.Nullish(a[0]) || value.Nullish(a[1]):
				return null, nil
			case !value.IsNumber(a[0]):
				return failed(51044, "$atan2 only supports numeric types, not %s and %s", typeOf(a[0]), typeOf(a[1]))
			case !value.IsNumber(a[1]):
				return failed(51045, "$atan2 only supports numeric types, not %s and %s", typeOf(a[0]), typeOf(a[1]))
			}
			kind := widest(a[0].Type, a[1].Type)
			if kind == bson.TypeDecimal128 {
				if d := arcTangent2(value.AsDecimal(a[0]), value.AsDecimal(a[1])); d != nil {
					return value.DecimalValue(d), nil
				}
			}
			return doubleLike(kind, math.Atan2(value.Float(a[0]), value.Float(a[1]))), nil
		}),
	}
	inf := math.Inf(1)
	for name, f := range map[string]struct {
		fn     func(float64) float64
		lo, hi float64
		inside bool // the bounds themselves are not allowed
	}{
		"$sin": {math.Sin, -inf, inf, true}, "$cos": {math.Cos, -inf, inf, true}, "$tan": {math.Tan, -inf, inf, true},
		"$asin": {math.Asin, -1, 1, false}, "$acos": {math.Acos, -1, 1, false}, "$atan": {math.Atan, -inf, inf, false},
		"$sinh": {math.Sinh, -inf, inf, false}, "$cosh": {math.Cosh, -inf, inf, false}, "$tanh": {math.Tanh, -inf, inf, false},
		"$asinh": {math.Asinh, -inf, inf, false}, "$acosh": {math.Acosh, 1, inf, false}, "$atanh": {math.Atanh, -1, 1, false},
	} {
		out[name] = numeric(name, func(v bson.RawValue) (bson.RawValue, error) {
			x := value.Float(v)
			if !math.IsNaN(x) && (x < f.lo || x > f.hi || f.inside && (x == f.lo || x == f.hi)) {
				open, end := "[", "]"
				if f.inside {
					open, end = "(", ")"
				}
				return failed(50989, "cannot apply %s to %s, value must be in %s%s,%s%s", name, value.Show(v), open,
					value.FormatFloat(f.lo, 6), value.FormatFloat(f.hi, 6), end)
			}
			return trig(name, v, f.fn), nil
		})
	}
	return out
}

// doubleLike gives a double, or a decimal if that is what came in. Decimals are computed with a double's digits.
func doubleLike(t bson.Type, f float64) bson.RawValue {
	if t == bson.TypeDecimal128 {
		return value.DecimalValue(value.WideDecimal(f))
	}
	return bson.DoubleValue(f)
}

// trig computes a function of a number in the digits of its type.
func trig(name string, v bson.RawValue, fn func(float64) float64) bson.RawValue {
	x := value.Float(v)
	if v.Type == bson.TypeDecimal128 {
		if d := value.Decimal(v); d.Form == apd.Finite && !d.IsZero() {
			if out := decimalTrig[name](d); out != nil {
				return value.DecimalValue(out)
			}
		}
	} else if f, ok := trigOfDouble(name, x); ok {
		return bson.DoubleValue(f)
	}
	return doubleLike(v.Type, fn(x))
}

func bitOps() map[string]parseFunc {
	out := map[string]parseFunc{
		"$bitNot": unary(func(_ *Ctx, v bson.RawValue) (bson.RawValue, error) {
			switch v.Type {
			case 0, bson.TypeNull, bson.TypeUndefined:
				return null, nil
			case bson.TypeInt32:
				n, _ := value.Int64(v)
				return bson.Int32Value(^int32(n)), nil
			case bson.TypeInt64:
				n, _ := value.Int64(v)
				return bson.Int64Value(^n), nil
			}
			if !value.IsNumber(v) {
				return failed(28765, "$bitNot only supports numeric types, not %s", typeOf(v))
			}
			return failed(14, "$bitNot only supports int and long, not: %s.", typeOf(v))
		}),
	}
	for name, f := range map[string]struct {
		start int64
		fn    func(x, y int64) int64
	}{
		"$bitAnd": {-1, func(x, y int64) int64 { return x & y }},
		"$bitOr":  {0, func(x, y int64) int64 { return x | y }},
		"$bitXor": {0, func(x, y int64) int64 { return x ^ y }},
	} {
		out[name] = variadic(func(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
			acc, long := f.start, false
			for _, v := range a {
				if value.Nullish(v) {
					return null, nil
				}
				n, ok := value.Int64(v)
				if !ok {
					return failed(14, "%s only supports int and long operands.", name)
				}
				acc, long = f.fn(acc, n), long || v.Type == bson.TypeInt64
			}
			if long {
				return bson.Int64Value(acc), nil
			}
			return bson.Int32Value(int32(acc)), nil
		})
	}
	return out
}
