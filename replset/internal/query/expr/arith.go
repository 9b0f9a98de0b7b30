package expr

import (
	"math"

	"github.com/cockroachdb/apd/v3"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func arithmeticOps() map[string]parseFunc {
	return map[string]parseFunc{
		"$add":      variadic(add),
		"$subtract": fixed(2, subtract),
		"$multiply": variadic(multiply),
		"$divide":   fixed(2, divide),
		"$mod":      fixed(2, mod),
	}
}

// add sums numbers; with one date among them the result is a date.
func add(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	var s Sum
	date := false
	for _, v := range a {
		switch {
		case value.IsNumber(v):
			s.Add(v)
		case v.Type == bson.TypeDateTime:
			if date {
				return failed(16612, "only one date allowed in an $add expression")
			}
			date = true
			ms, _ := v.DateTimeOK()
			s.addLong(ms)
		case value.Nullish(v):
			return null, nil
		default:
			return failed(16554, "$add only supports numeric or date types, not %s", typeOf(v))
		}
	}
	if !date {
		return s.Value(), nil
	}
	s.round()
	n, ok := s.Long()
	if s.kind == bson.TypeDecimal128 {
		n, ok = value.RoundDecimal(s.Decimal()), true
	}
	if !ok {
		return failed(mongoerr.CodeOverflow, "date overflow in $add")
	}
	return bson.DateTimeValue(n), nil
}

func subtract(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	l, r := a[0], a[1]
	switch {
	case value.Nullish(l) || value.Nullish(r):
		return null, nil
	case value.IsNumber(l) && value.IsNumber(r):
		return subtractNumbers(l, r), nil
	case l.Type == bson.TypeDateTime && r.Type == bson.TypeDateTime:
		x, _ := l.DateTimeOK()
		y, _ := r.DateTimeOK()
		return bson.Int64Value(x - y), nil
	case l.Type == bson.TypeDateTime && value.IsNumber(r):
		x, _ := l.DateTimeOK()
		return bson.DateTimeValue(x - value.CutLong(r)), nil
	}
	return failed(16556, "cant $subtract a%s from a %s", typeOf(r), typeOf(l))
}

func subtractNumbers(l, r bson.RawValue) bson.RawValue {
	switch widest(l.Type, r.Type) {
	case bson.TypeDecimal128:
		var d apd.Decimal
		c := value.Decimals()
		_, _ = c.Sub(&d, value.AsDecimal(l), value.AsDecimal(r))
		return value.DecimalValue(&d)
	case bson.TypeDouble:
		return bson.DoubleValue(value.Float(l) - value.Float(r))
	}
	x, _ := value.Int64(l)
	y, _ := value.Int64(r)
	if widest(l.Type, r.Type) == bson.TypeInt64 {
		return bson.Int64Value(x - y)
	}
	return intOrLong(x - y)
}

// multiply keeps the product as a long as long as it fits one.
func multiply(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	kind, long, double := bson.TypeInt32, int64(1), 1.0
	var dec apd.Decimal
	c := value.Decimals()
	for _, v := range a {
		if value.Nullish(v) {
			return null, nil
		}
		if !value.IsNumber(v) {
			return failed(16555, "$multiply only supports numeric types, not %s", typeOf(v))
		}
		before := kind
		if kind = widest(kind, v.Type); kind == bson.TypeDecimal128 {
			if before == bson.TypeDouble {
				dec.Set(value.FloatDecimal(double))
			} else if before != bson.TypeDecimal128 {
				dec.Set(value.IntDecimal(long))
			}
			_, _ = c.Mul(&dec, &dec, value.AsDecimal(v))
			continue
		}
		double *= value.Float(v)
		n, ok := mulLong(long, value.CutLong(v))
		if !ok {
			kind = bson.TypeDouble
		}
		long = n
	}
	switch kind {
	case bson.TypeDecimal128:
		return value.DecimalValue(&dec), nil
	case bson.TypeDouble:
		return bson.DoubleValue(double), nil
	case bson.TypeInt64:
		return bson.Int64Value(long), nil
	}
	return intOrLong(long), nil
}

func divide(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	l, r := a[0], a[1]
	switch {
	case value.IsNumber(l) && value.IsNumber(r):
		return c.divideNumbers(l, r)
	case value.Nullish(l) || value.Nullish(r):
		return null, nil
	}
	return failed(c.sinceNewer(mongoerr.CodeTypeMismatch, 16609), "$divide only supports numeric types, not %s and %s", typeOf(l), typeOf(r))
}

// sinceNewer is the first code, or the second of a server of version 4.0.
func (c *Ctx) sinceNewer(code, before int32) int32 {
	if c != nil && c.Env != nil && !c.Env.Newer {
		return before
	}
	return code
}

func (c *Ctx) divideNumbers(l, r bson.RawValue) (bson.RawValue, error) {
	if widest(l.Type, r.Type) == bson.TypeDecimal128 {
		y := value.AsDecimal(r)
		if y.Form == apd.Finite && y.IsZero() {
			return failed(c.sinceNewer(mongoerr.CodeBadValue, 16608), "can't $divide by zero")
		}
		return value.DecimalValue(value.Quo(value.AsDecimal(l), y)), nil
	}
	if value.Float(r) == 0 {
		return failed(c.sinceNewer(mongoerr.CodeBadValue, 16608), "can't $divide by zero")
	}
	return bson.DoubleValue(value.Float(l) / value.Float(r)), nil
}

func mod(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	l, r := a[0], a[1]
	switch {
	case value.IsNumber(l) && value.IsNumber(r):
		return modNumbers(l, r)
	case value.Nullish(l) || value.Nullish(r):
		return null, nil
	}
	return failed(16611, "$mod only supports numeric types, not %s and %s", typeOf(l), typeOf(r))
}

func modNumbers(l, r bson.RawValue) (bson.RawValue, error) {
	if widest(l.Type, r.Type) == bson.TypeDecimal128 {
		y := value.AsDecimal(r)
		if y.Form == apd.Finite && y.IsZero() {
			return failed(16610, "can't $mod by zero")
		}
		return value.DecimalValue(remainder(value.AsDecimal(l), y)), nil
	}
	if value.Float(r) == 0 {
		return failed(16610, "can't $mod by zero")
	}
	if l.Type == bson.TypeDouble || r.Type == bson.TypeDouble && !isInt(r) {
		return bson.DoubleValue(math.Mod(value.Float(l), value.Float(r))), nil
	}
	x, y := value.CutLong(l), value.CutLong(r)
	if y == -1 {
		x = 0 // the smallest long has no quotient by -1
	}
	if l.Type == bson.TypeInt64 || r.Type == bson.TypeInt64 {
		return bson.Int64Value(x % y), nil
	}
	return bson.Int32Value(int32(x % y)), nil
}

// remainder is x - y*trunc(x/y) computed exactly.
func remainder(x, y *apd.Decimal) *apd.Decimal {
	var d apd.Decimal
	switch {
	case x.Form != apd.Finite || y.Form == apd.NaN || y.Form == apd.NaNSignaling:
		return &apd.Decimal{Form: apd.NaN}
	case y.Form == apd.Infinite:
		return d.Set(x)
	case x.IsZero():
		return d.Set(x)
	}
	c := apd.BaseContext.WithPrecision(uint32(min(13000, max(34, int64(x.Exponent)-int64(y.Exponent)+x.NumDigits()+40))))
	if _, err := c.Rem(&d, x, y); err != nil {
		return &apd.Decimal{Form: apd.NaN}
	}
	return &d
}

// isInt says whether a number is whole and fits 32 bits.
func isInt(v bson.RawValue) bool {
	n, ok := value.Integral(v)
	return ok && n == int64(int32(n))
}
