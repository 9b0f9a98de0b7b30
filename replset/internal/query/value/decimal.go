package value

import (
	"math"
	"math/big"
	"strconv"

	"github.com/cockroachdb/apd/v3"

	"github.com/sextantdb/sextant/bson"
)

// decimals is the arithmetic of decimal128: 34 digits, half-even, exponents as IEEE 754-2008 has them.
var decimals = apd.Context{
	Precision:   34,
	MaxExponent: 6144,
	MinExponent: -6143,
	Rounding:    apd.RoundHalfEven,
}

// Decimals is the context for decimal128 arithmetic; a copy, so that a caller may set traps of its own.
func Decimals() apd.Context { return decimals }

// Decimal gives a decimal128 in calculable form; NaN for anything malformed or of another type.
func Decimal(v bson.RawValue) *apd.Decimal {
	d, ok := v.Decimal128OK()
	if !ok {
		return &apd.Decimal{Form: apd.NaN}
	}
	return FromDecimal128(d)
}

// FromDecimal128 turns the BSON type into the calculable form.
func FromDecimal128(d bson.Decimal128) *apd.Decimal {
	if n, exp, err := d.BigInt(); err == nil {
		out := &apd.Decimal{Exponent: int32(exp), Negative: n.Sign() < 0}
		out.Coeff.SetMathBigInt(new(big.Int).Abs(n))
		if n.Sign() == 0 {
			out.Negative = d.String()[0] == '-'
		}
		return out
	}
	switch s := d.String(); s {
	case "Infinity":
		return &apd.Decimal{Form: apd.Infinite}
	case "-Infinity":
		return &apd.Decimal{Form: apd.Infinite, Negative: true}
	}
	return &apd.Decimal{Form: apd.NaN}
}

// DecimalValue rounds to decimal128 and gives the BSON value.
func DecimalValue(d *apd.Decimal) bson.RawValue {
	return bson.Decimal128Value(ToDecimal128(d))
}

// ToDecimal128 rounds to 34 digits; what is too large becomes an infinity, what is too small zero.
func ToDecimal128(d *apd.Decimal) bson.Decimal128 {
	switch d.Form {
	case apd.NaN, apd.NaNSignaling:
		return parseDecimal("NaN")
	case apd.Infinite:
		if d.Negative {
			return parseDecimal("-Infinity")
		}
		return parseDecimal("Infinity")
	}
	var r apd.Decimal
	if d.IsZero() {
		r.Set(d)
	} else if _, err := decimals.Round(&r, d); err != nil {
		return parseDecimal("NaN")
	}
	if r.Form == apd.Infinite {
		return ToDecimal128(&r)
	}
	if r.IsZero() {
		r.Exponent = max(-6176, min(r.Exponent, 6111))
	}
	text := r.Coeff.String() + "E" + strconv.Itoa(int(r.Exponent))
	if r.Negative {
		text = "-" + text
	}
	return parseDecimal(text)
}

func parseDecimal(s string) bson.Decimal128 {
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		d, _ = bson.ParseDecimal128("NaN")
	}
	return d
}

func isNaN(d *apd.Decimal) bool { return d.Form == apd.NaN || d.Form == apd.NaNSignaling }

// DecimalFloat rounds to the nearest double.
func DecimalFloat(d *apd.Decimal) float64 {
	switch d.Form {
	case apd.NaN, apd.NaNSignaling:
		return math.NaN()
	case apd.Infinite:
		if d.Negative {
			return math.Inf(-1)
		}
		return math.Inf(1)
	}
	f, _ := strconv.ParseFloat(d.Text('E'), 64)
	return f
}

// FloatDecimal is how a double enters decimal arithmetic: with 15 significant digits.
func FloatDecimal(f float64) *apd.Decimal {
	switch {
	case math.IsNaN(f):
		return &apd.Decimal{Form: apd.NaN}
	case math.IsInf(f, 0):
		return &apd.Decimal{Form: apd.Infinite, Negative: f < 0}
	case f == 0:
		return &apd.Decimal{Negative: math.Signbit(f)}
	}
	d, _, err := apd.NewFromString(strconv.FormatFloat(f, 'e', 14, 64))
	if err != nil {
		return &apd.Decimal{Form: apd.NaN}
	}
	return d
}

// IntDecimal is exact.
func IntDecimal(n int64) *apd.Decimal { return apd.New(n, 0) }

// AsDecimal brings any number into decimal arithmetic.
func AsDecimal(v bson.RawValue) *apd.Decimal {
	switch v.Type {
	case bson.TypeDecimal128:
		return Decimal(v)
	case bson.TypeDouble:
		return FloatDecimal(Float(v))
	}
	n, _ := Int64(v)
	return IntDecimal(n)
}

// WideDecimal is a double with 34 significant digits, as sums and rounding take it into decimal arithmetic.
func WideDecimal(f float64) *apd.Decimal {
	d := ExactDecimal(f)
	if d.Form == apd.Finite && !d.IsZero() {
		_, _ = decimals.Round(d, d)
		trimZeros(d, 0)
	}
	return d
}

// trimZeros takes trailing zeros off the coefficient while the exponent is below ideal.
func trimZeros(d *apd.Decimal, ideal int32) {
	if d.Form != apd.Finite || d.IsZero() || d.Exponent >= ideal {
		return
	}
	var r apd.Decimal
	_, n := r.Reduce(d)
	if over := r.Exponent - ideal; over > 0 { // too far: put some zeros back
		n -= int(over)
		c := apd.BaseContext.WithPrecision(uint32(r.NumDigits()) + uint32(over))
		_, _ = c.Quantize(&r, &r, ideal)
	}
	if n > 0 {
		d.Set(&r)
	}
}

// Trimmed is the number without trailing zeros behind the point.
func Trimmed(d *apd.Decimal) *apd.Decimal {
	out := new(apd.Decimal).Set(d)
	trimZeros(out, 0)
	return out
}

// Quo divides; an exact quotient has no more digits than it needs.
func Quo(x, y *apd.Decimal) *apd.Decimal {
	var d apd.Decimal
	cond, _ := decimals.Quo(&d, x, y)
	if !cond.Inexact() {
		trimZeros(&d, max(-6176, x.Exponent-y.Exponent))
	}
	return &d
}

func exactDecimal(v bson.RawValue) *apd.Decimal {
	if v.Type != bson.TypeDouble {
		return AsDecimal(v)
	}
	return ExactDecimal(Float(v))
}

// ExactDecimal keeps every bit of a double.
func ExactDecimal(f float64) *apd.Decimal {
	if math.IsNaN(f) || math.IsInf(f, 0) || f == 0 {
		return FloatDecimal(f)
	}
	frac, exp := math.Frexp(math.Abs(f))
	coeff := big.NewInt(int64(frac * (1 << 53)))
	exp -= 53
	out := &apd.Decimal{Negative: f < 0}
	if exp >= 0 {
		coeff.Lsh(coeff, uint(exp))
	} else {
		coeff.Mul(coeff, new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(-exp)), nil))
		out.Exponent = int32(exp)
	}
	out.Coeff.SetMathBigInt(coeff)
	return out
}

func compareDecimals(a, b *apd.Decimal) int {
	switch na, nb := isNaN(a), isNaN(b); {
	case na && nb:
		return 0
	case na:
		return -1
	case nb:
		return 1
	}
	return a.Cmp(b)
}

func clampDecimal(d *apd.Decimal) int64 {
	if isNaN(d) {
		return 0
	}
	if d.Form == apd.Finite && d.NumDigits()+int64(d.Exponent) <= 20 {
		var cut apd.Decimal
		c := decimals
		c.Rounding = apd.RoundDown
		if _, err := c.RoundToIntegralValue(&cut, d); err == nil {
			if n, err := cut.Int64(); err == nil {
				return n
			}
		}
	}
	if d.Negative {
		return math.MinInt64
	}
	return math.MaxInt64
}

func integralDecimal(d *apd.Decimal) (int64, bool) {
	if d.Form != apd.Finite || d.NumDigits()+int64(d.Exponent) > 20 {
		return 0, d.IsZero()
	}
	n := clampDecimal(d)
	return n, d.Cmp(IntDecimal(n)) == 0
}

// RoundDecimal rounds half-even; the smallest long stands for what does not fit.
func RoundDecimal(d *apd.Decimal) int64 {
	if d.Form != apd.Finite || d.NumDigits()+int64(d.Exponent) > 20 {
		return math.MinInt64
	}
	var r apd.Decimal
	if _, err := decimals.RoundToIntegralValue(&r, d); err != nil {
		return math.MinInt64
	}
	n, err := r.Int64()
	if err != nil {
		return math.MinInt64
	}
	return n
}

// IsMultiple says whether a number is a whole multiple of another, computed exactly.
func IsMultiple(v, of bson.RawValue) bool {
	x, y := exactDecimal(v), exactDecimal(of)
	if x.Form != apd.Finite || y.Form != apd.Finite || y.IsZero() {
		return false
	}
	var rem apd.Decimal
	c := apd.BaseContext.WithPrecision(uint32(min(13000, max(40, int64(x.Exponent)-int64(y.Exponent)+x.NumDigits()+40))))
	_, err := c.Rem(&rem, x, y)
	return err == nil && rem.IsZero()
}
