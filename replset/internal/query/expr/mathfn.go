package expr

import (
	"math"

	"github.com/cockroachdb/apd/v3"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func mathOps() map[string]parseFunc {
	return map[string]parseFunc{
		"$abs":   numeric("$abs", abs),
		"$ceil":  numeric("$ceil", rounding(math.Ceil, apd.RoundCeiling)),
		"$floor": numeric("$floor", rounding(math.Floor, apd.RoundFloor)),
		"$trunc": between(1, 2, roundTo("$trunc", apd.RoundDown)),
		"$round": between(1, 2, roundTo("$round", apd.RoundHalfEven)),
		"$sqrt":  numeric("$sqrt", sqrt),
		"$exp":   numeric("$exp", exp),
		"$ln":    numeric("$ln", ln),
		"$log10": numeric("$log10", log10),
		"$log":   fixed(2, logBase),
		"$pow":   fixed(2, pow),
	}
}

// numeric is an operator of one number; null gives null.
func numeric(name string, fn func(v bson.RawValue) (bson.RawValue, error)) parseFunc {
	return unary(func(_ *Ctx, v bson.RawValue) (bson.RawValue, error) {
		switch {
		case value.Nullish(v):
			return null, nil
		case !value.IsNumber(v):
			return failed(28765, "%s only supports numeric types, not %s", name, typeOf(v))
		}
		return fn(v)
	})
}

func abs(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeDouble:
		return bson.DoubleValue(math.Abs(value.Float(v))), nil
	case bson.TypeDecimal128:
		d := value.Decimal(v)
		d.Negative = false
		return value.DecimalValue(d), nil
	}
	n, _ := value.Int64(v)
	if n == math.MinInt64 {
		return failed(28680, "can't take $abs of long long min")
	}
	if n < 0 {
		n = -n
	}
	if v.Type == bson.TypeInt64 {
		return bson.Int64Value(n), nil
	}
	return intOrLong(n), nil
}

func rounding(double func(float64) float64, mode apd.Rounder) func(bson.RawValue) (bson.RawValue, error) {
	return func(v bson.RawValue) (bson.RawValue, error) {
		switch v.Type {
		case bson.TypeDouble:
			return bson.DoubleValue(double(value.Float(v))), nil
		case bson.TypeDecimal128:
			return value.DecimalValue(quantize(value.Decimal(v), 0, mode)), nil
		}
		return v, nil
	}
}

// quantize rounds to the given number of decimal places, negative ones left of the point; an infinity has none.

func quantize(d *apd.Decimal, places int32, mode apd.Rounder) *apd.Decimal {
	if d.Form == apd.Infinite {
		return &apd.Decimal{Form: apd.NaN}
	}
	if d.Form != apd.Finite || d.Exponent >= -places {
		return d
	}
	c := apd.BaseContext.WithPrecision(uint32(max(34, d.NumDigits()+2)))
	c.Rounding = mode
	var out apd.Decimal
	if _, err := c.Quantize(&out, d, -places); err != nil {
		return d
	}
	return &out
}

// roundTo is $round and $trunc with an optional number of places.
func roundTo(name string, mode apd.Rounder) evalFunc {
	return func(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
		v, places := a[0], bson.Int32Value(0)
		if len(a) == 2 {
			places = a[1]
		}
		switch {
		case value.Nullish(v) || value.Nullish(places):
			return null, nil
		case !value.IsNumber(v) && len(a) == 1 && name == "$trunc": // which 4.0 had already
			return failed(c.sinceNewer(51081, 28765), "%s only supports numeric types, not %s", name, typeOf(v))
		case !value.IsNumber(v):
			return failed(51081, "%s only supports numeric types, not %s", name, typeOf(v))
		}
		n, ok := value.Integral(places)
		switch {
		case len(a) == 2 && v.Type == bson.TypeDecimal128 && value.Decimal(v).Form == apd.Infinite:
			return v, nil
		case !value.IsNumber(places):
			return failed(16004, "can't convert from BSON type %s to long", typeOf(places))
		case !ok || n != int64(int32(n)):
			return failed(51082, "precision argument to  %s must be a integral value", name)
		case n < -20 || n > 100:
			return failed(51083, "cannot apply %s with precision value %d value must be in [-20, 100]", name, n)
		}
		return roundNumber(name, v, int32(n), mode)
	}
}

func roundNumber(name string, v bson.RawValue, places int32, mode apd.Rounder) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeDouble:
		return bson.DoubleValue(roundFloat(value.Float(v), places, mode)), nil
	case bson.TypeDecimal128:
		d := value.Decimal(v)
		if places > 0 && d.Form == apd.Finite && d.Exponent > -places { // padded with zeros where there is room
			return value.DecimalValue(pad(d, places)), nil
		}
		return value.DecimalValue(quantize(d, places, mode)), nil
	}
	if places >= 0 {
		return v, nil
	}
	n, _ := value.Int64(v)
	d := quantize(value.IntDecimal(n), places, mode)
	c := value.Decimals()
	_, _ = c.Quantize(d, d, 0)
	out, err := d.Int64()
	if err != nil {
		return failed(51080, "invalid conversion from Decimal128 result in %s resulting from arguments: [%s, %d]", name, value.Show(v), places)
	}
	if v.Type == bson.TypeInt64 {
		return bson.Int64Value(out), nil
	}
	return intOrLong(out), nil
}

func pad(d *apd.Decimal, places int32) *apd.Decimal {
	var out apd.Decimal
	c := value.Decimals()
	if _, err := c.Quantize(&out, d, -places); err != nil || out.Form != apd.Finite {
		return d
	}
	return &out
}

func roundFloat(f float64, places int32, mode apd.Rounder) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) || f == 0 {
		return f
	}
	if places == 0 {
		if mode == apd.RoundDown {
			return math.Trunc(f)
		}
		return math.RoundToEven(f)
	}
	r := value.DecimalFloat(quantize(value.ExactDecimal(f), places, mode))
	return math.Copysign(r, f)
}

func sqrt(v bson.RawValue) (bson.RawValue, error) {
	const negative = "$sqrt's argument must be greater than or equal to 0"
	if v.Type == bson.TypeDecimal128 {
		d := value.Decimal(v)
		if d.Form == apd.Finite && d.Sign() < 0 || d.Form == apd.Infinite && d.Negative {
			return failed(28714, negative)
		}
		return decimalFn(d, func(c *apd.Context, out, d *apd.Decimal) (apd.Condition, error) { return c.Sqrt(out, d) }), nil
	}
	f := value.Float(v)
	if f < 0 {
		return failed(28714, negative)
	}
	return bson.DoubleValue(math.Sqrt(f)), nil
}

// decimalFn computes with some digits more and rounds once.
func decimalFn(d *apd.Decimal, fn func(c *apd.Context, out, d *apd.Decimal) (apd.Condition, error)) bson.RawValue {
	if d.Form != apd.Finite {
		return value.DecimalValue(d)
	}
	c := value.Decimals()
	c.Precision = 40
	var out apd.Decimal
	if _, err := fn(&c, &out, d); err != nil && out.Form != apd.Infinite {
		return value.DecimalValue(&apd.Decimal{Form: apd.NaN})
	}
	return value.DecimalValue(&out)
}

func exp(v bson.RawValue) (bson.RawValue, error) {
	if v.Type != bson.TypeDecimal128 {
		return bson.DoubleValue(math.Exp(value.Float(v))), nil
	}
	d := value.Decimal(v)
	if d.Form == apd.Infinite && d.Negative {
		return value.DecimalValue(&apd.Decimal{}), nil
	}
	switch f := value.DecimalFloat(d); { // far outside, the series would take for ever
	case d.Form == apd.Finite && f > 14200:
		return value.DecimalValue(&apd.Decimal{Form: apd.Infinite}), nil
	case d.Form == apd.Finite && f < -14200:
		return value.DecimalValue(apd.New(0, -6176)), nil
	}
	return decimalFn(d, func(c *apd.Context, out, d *apd.Decimal) (apd.Condition, error) { return c.Exp(out, d) }), nil
}

func ln(v bson.RawValue) (bson.RawValue, error) {
	return logarithm(v, 28766, "$ln", math.Log, func(c *apd.Context, out, d *apd.Decimal) (apd.Condition, error) { return c.Ln(out, d) })
}

func log10(v bson.RawValue) (bson.RawValue, error) {
	return logarithm(v, 28761, "$log10", preciseLog10, func(c *apd.Context, out, d *apd.Decimal) (apd.Condition, error) { return c.Log10(out, d) })
}

func logarithm(v bson.RawValue, code int32, name string, double func(float64) float64,
	dec func(c *apd.Context, out, d *apd.Decimal) (apd.Condition, error)) (bson.RawValue, error) {
	f := value.Float(v)
	if d := value.Decimal(v); v.Type == bson.TypeDecimal128 && d.Form != apd.NaN && d.Sign() > 0 {
		return decimalFn(d, dec), nil
	}
	if f <= 0 {
		return failed(code, "%s's argument must be a positive number, but is %s", name, value.FormatFloat(f, 6))
	}
	return bson.DoubleValue(double(f)), nil
}

func logBase(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	x, base := a[0], a[1]
	switch {
	case value.Nullish(x) || value.Nullish(base):
		return null, nil
	case !value.IsNumber(x):
		return failed(28756, "$log's argument must be numeric, not %s", typeOf(x))
	case !value.IsNumber(base):
		return failed(28757, "$log's base must be numeric, not %s", typeOf(base))
	}
	f, b := value.Float(x), value.Float(base)
	if f <= 0 {
		return failed(28758, "$log's argument must be a positive number, but is %s", value.FormatFloat(f, 6))
	}
	if b <= 0 || b == 1 {
		return failed(28759, "$log's base must be a positive number not equal to 1, but is %s", value.FormatFloat(b, 6))
	}
	if widest(x.Type, base.Type) != bson.TypeDecimal128 {
		return bson.DoubleValue(math.Log(f) / math.Log(b)), nil
	}
	c := value.Decimals()
	var n, d, out apd.Decimal
	_, _ = c.Ln(&n, value.AsDecimal(x))
	_, _ = c.Ln(&d, value.AsDecimal(base))
	_, _ = c.Quo(&out, &n, &d)
	if near := quantize(&out, 30, apd.RoundHalfEven); value.Trimmed(near).Exponent >= 0 { // logarithms of powers are whole
		return value.DecimalValue(value.Trimmed(near)), nil
	}
	return value.DecimalValue(&out), nil
}

// preciseLog10 rounds once: the quotient of two logarithms can be off in the last digit.
func preciseLog10(f float64) float64 {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return math.Log10(f)
	}
	var out apd.Decimal
	c := apd.BaseContext.WithPrecision(25)
	if _, err := c.Log10(&out, value.ExactDecimal(f)); err != nil {
		return math.Log10(f)
	}
	return value.DecimalFloat(&out)
}

func pow(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	base, e := a[0], a[1]
	const zero = "$pow cannot take a base of 0 and a negative exponent"
	switch {
	case value.Nullish(base) || value.Nullish(e):
		return null, nil
	case !value.IsNumber(base):
		return failed(28762, "$pow's base must be numeric, not %s", typeOf(base))
	case !value.IsNumber(e):
		return failed(28763, "$pow's exponent must be numeric, not %s", typeOf(e))
	case value.Float(base) == 0 && value.Float(e) < 0:
		return failed(28764, zero)
	}
	switch widest(base.Type, e.Type) {
	case bson.TypeDecimal128:
		return powDecimal(value.AsDecimal(base), value.AsDecimal(e)), nil
	case bson.TypeDouble:
		return bson.DoubleValue(math.Pow(value.Float(base), value.Float(e))), nil
	}
	return powLong(base, e), nil
}

func powDecimal(x, y *apd.Decimal) bson.RawValue {
	if x.Form != apd.Finite || y.Form != apd.Finite {
		return value.DecimalValue(value.FloatDecimal(math.Pow(value.DecimalFloat(x), value.DecimalFloat(y))))
	}
	var out apd.Decimal
	c := value.Decimals()
	c.Precision = 40
	if _, err := c.Pow(&out, x, y); err != nil && out.Form == apd.Finite {
		return value.DecimalValue(&apd.Decimal{Form: apd.NaN})
	}
	return value.DecimalValue(&out)
}

// powLong raises exactly while the result fits a long, else as doubles.
func powLong(base, e bson.RawValue) bson.RawValue {
	b, _ := value.Int64(base)
	n, _ := value.Int64(e)
	double := bson.DoubleValue(math.Pow(float64(b), float64(n)))
	long := base.Type == bson.TypeInt64 || e.Type == bson.TypeInt64
	result := func(r int64) bson.RawValue {
		if long {
			return bson.Int64Value(r)
		}
		return intOrLong(r)
	}
	switch {
	case b == 1 || n == 0:
		return result(1)
	case b == -1:
		return result(1 - 2*(n&1))
	case b == 0:
		return result(0)
	case n < 0 || n > 64:
		return double
	}
	r := int64(1)
	for range n {
		var ok bool
		if r, ok = mulLong(r, b); !ok {
			return double
		}
	}
	return result(r)
}
