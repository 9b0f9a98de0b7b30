package expr

import (
	"math"

	"github.com/cockroachdb/apd/v3"

	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Trigonometry with more digits than a decimal128 has, so that its 34 are right, and those of a double too.

// wide is the arithmetic of these functions. Its errors are none: a result out of range becomes an infinity or zero.
var wide = apd.Context{Precision: 80, MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent, Rounding: apd.RoundHalfEven}

var (
	wideOne  = apd.New(1, 0)
	wideTwo  = apd.New(2, 0)
	widePi   = wideNumber("3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170680")
	halfPi   = wideOf((*apd.Context).Quo, widePi, wideTwo)
	perTurn  = wideOf((*apd.Context).Quo, widePi, apd.New(180, 0)) // radians of a degree
	farthest = apd.New(1, 20)                                      // an angle that can still be reduced without loss
	steepest = apd.New(20000, 0)                                   // beyond it exp is out of a decimal's range
	smallest = apd.New(1, -25)                                     // below it a number is its own sine in all digits that count
)

func wideNumber(s string) *apd.Decimal {
	d, _, err := apd.NewFromString(s)
	if err != nil {
		return &apd.Decimal{Form: apd.NaN}
	}
	return d
}

// wideOf applies an operation of two numbers.
func wideOf(op func(*apd.Context, *apd.Decimal, *apd.Decimal, *apd.Decimal) (apd.Condition, error), x, y *apd.Decimal) *apd.Decimal {
	var out apd.Decimal
	_, _ = op(&wide, &out, x, y) // no traps are set
	return &out
}

func wideAdd(x, y *apd.Decimal) *apd.Decimal { return wideOf((*apd.Context).Add, x, y) }
func wideSub(x, y *apd.Decimal) *apd.Decimal { return wideOf((*apd.Context).Sub, x, y) }
func wideMul(x, y *apd.Decimal) *apd.Decimal { return wideOf((*apd.Context).Mul, x, y) }
func wideQuo(x, y *apd.Decimal) *apd.Decimal { return wideOf((*apd.Context).Quo, x, y) }

func wideNeg(x *apd.Decimal) *apd.Decimal {
	out := new(apd.Decimal).Set(x)
	out.Negative = !out.Negative
	return out
}

func wideSqrt(x *apd.Decimal) *apd.Decimal {
	var out apd.Decimal
	_, _ = wide.Sqrt(&out, x)
	return &out
}

func wideExp(x *apd.Decimal) *apd.Decimal {
	var out apd.Decimal
	_, _ = wide.Exp(&out, x)
	return &out
}

func wideLn(x *apd.Decimal) *apd.Decimal {
	var out apd.Decimal
	_, _ = wide.Ln(&out, x)
	return &out
}

func beyond(x, limit *apd.Decimal) bool {
	var abs apd.Decimal
	return abs.Abs(x).Cmp(limit) > 0
}

// decimalTrig are the functions by the operator's name. nil is "no better than a double knows".
var decimalTrig = map[string]func(x *apd.Decimal) *apd.Decimal{
	"$sin": func(x *apd.Decimal) *apd.Decimal { s, _ := sineCosine(x); return s },
	"$cos": func(x *apd.Decimal) *apd.Decimal { _, c := sineCosine(x); return c },
	"$tan": func(x *apd.Decimal) *apd.Decimal {
		s, c := sineCosine(x)
		if s == nil || c.IsZero() {
			return nil
		}
		return wideQuo(s, c)
	},
	"$asin":  arcSine,
	"$acos":  func(x *apd.Decimal) *apd.Decimal { return wideSub(halfPi, arcSine(x)) },
	"$atan":  arcTangent,
	"$sinh":  func(x *apd.Decimal) *apd.Decimal { s, _ := hyperbolic(x); return s },
	"$cosh":  func(x *apd.Decimal) *apd.Decimal { _, c := hyperbolic(x); return c },
	"$tanh":  tanh,
	"$asinh": arcSinh,
	"$acosh": func(x *apd.Decimal) *apd.Decimal {
		return wideLn(wideAdd(x, wideSqrt(wideSub(wideMul(x, x), wideOne))))
	},
	"$atanh":            arcTanh,
	"$degreesToRadians": func(x *apd.Decimal) *apd.Decimal { return wideMul(x, perTurn) },
	"$radiansToDegrees": func(x *apd.Decimal) *apd.Decimal { return wideQuo(x, perTurn) },
}

// series sums terms, each made of the last by times x2 over two counted factors: x - x^3/3! + x^5/5! ...
func series(first, x2 *apd.Decimal, from int64) *apd.Decimal {
	sum, term := first, first
	for n := from; n < 400; n += 2 {
		term = wideNeg(wideQuo(wideMul(term, x2), apd.New(n*(n+1), 0)))
		if term.IsZero() || adjusted(term) < adjusted(sum)-int64(wide.Precision) {
			break
		}
		sum = wideAdd(sum, term)
	}
	return sum
}

// adjusted is the exponent of a number's first digit.
func adjusted(x *apd.Decimal) int64 {
	if x.IsZero() {
		return math.MinInt32
	}
	return x.NumDigits() + int64(x.Exponent)
}

func sineCosine(x *apd.Decimal) (sin, cos *apd.Decimal) {
	if beyond(x, farthest) {
		return nil, nil
	}
	var turns apd.Decimal
	_, _ = wide.RoundToIntegralValue(&turns, wideQuo(x, halfPi))
	quarter, err := turns.Int64()
	if err != nil {
		quarter = 0
		var rest apd.Decimal
		_, _ = wide.Rem(&rest, &turns, apd.New(4, 0))
		quarter, _ = rest.Int64()
	}
	r := wideSub(x, wideMul(&turns, halfPi))
	r2 := wideMul(r, r)
	sin, cos = series(r, r2, 2), series(wideOne, r2, 1)
	switch ((quarter % 4) + 4) % 4 {
	case 1:
		return cos, wideNeg(sin)
	case 2:
		return wideNeg(sin), wideNeg(cos)
	case 3:
		return wideNeg(cos), sin
	}
	return sin, cos
}

// arcTangent halves the angle until the series is short.
func arcTangent(x *apd.Decimal) *apd.Decimal {
	if x.Form == apd.Infinite {
		if x.Negative {
			return wideNeg(halfPi)
		}
		return halfPi
	}
	const halvings = 4
	for range halvings {
		x = wideQuo(x, wideAdd(wideOne, wideSqrt(wideAdd(wideOne, wideMul(x, x)))))
	}
	x2, power, sum := wideMul(x, x), x, x
	for n := int64(3); n < 400; n += 2 {
		power = wideNeg(wideMul(power, x2))
		term := wideQuo(power, apd.New(n, 0))
		if term.IsZero() || adjusted(term) < adjusted(sum)-int64(wide.Precision) {
			break
		}
		sum = wideAdd(sum, term)
	}
	return wideMul(sum, apd.New(1<<halvings, 0))
}

func arcSine(x *apd.Decimal) *apd.Decimal {
	rest := wideSub(wideOne, wideMul(x, x))
	if rest.IsZero() {
		return wideMul(halfPi, x)
	}
	return arcTangent(wideQuo(x, wideSqrt(rest)))
}

func hyperbolic(x *apd.Decimal) (sinh, cosh *apd.Decimal) {
	if beyond(x, steepest) {
		return &apd.Decimal{Form: apd.Infinite, Negative: x.Negative}, &apd.Decimal{Form: apd.Infinite}
	}
	up, down := wideExp(x), wideExp(wideNeg(x))
	sinh, cosh = wideQuo(wideSub(up, down), wideTwo), wideQuo(wideAdd(up, down), wideTwo)
	if !beyond(x, smallest) {
		sinh = x
	}
	return sinh, cosh
}

func tanh(x *apd.Decimal) *apd.Decimal {
	if beyond(x, steepest) {
		return &apd.Decimal{Coeff: wideOne.Coeff, Negative: x.Negative}
	}
	s, c := hyperbolic(x)
	return wideQuo(s, c)
}

func arcSinh(x *apd.Decimal) *apd.Decimal {
	if !beyond(x, smallest) {
		return x
	}
	var abs apd.Decimal
	abs.Abs(x)
	out := wideLn(wideAdd(&abs, wideSqrt(wideAdd(wideMul(x, x), wideOne))))
	out.Negative = x.Negative
	return out
}

func arcTanh(x *apd.Decimal) *apd.Decimal {
	below := wideSub(wideOne, x)
	above := wideAdd(wideOne, x)
	if !beyond(x, smallest) || below.IsZero() || above.IsZero() {
		return nil
	}
	return wideQuo(wideLn(wideQuo(above, below)), wideTwo)
}

// arcTangent2 is the angle of the point (x, y).
func arcTangent2(y, x *apd.Decimal) *apd.Decimal {
	if y.Form != apd.Finite || x.Form != apd.Finite || x.IsZero() || y.IsZero() {
		return nil
	}
	out := arcTangent(wideQuo(y, x))
	switch {
	case !x.Negative:
		return out
	case y.Negative:
		return wideSub(out, widePi)
	}
	return wideAdd(out, widePi)
}

// trigOfDouble gives the nearest double, where the processor's own function may be off by one in the last place.
func trigOfDouble(name string, x float64) (float64, bool) {
	if name != "$sin" && name != "$cos" && name != "$tan" || math.IsNaN(x) || math.Abs(x) > 1e15 || math.Abs(x) < 1e-8 {
		return 0, false
	}
	d := decimalTrig[name](value.ExactDecimal(x))
	if d == nil {
		return 0, false
	}
	return value.DecimalFloat(d), true
}
