package expr

import (
	"math"
	"math/bits"

	"github.com/cockroachdb/apd/v3"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Sum adds numbers of all types: the sum of doubles is compensated so that no digit is lost on the way, decimals are summed
// apart, and the result has the widest type that was added.
type Sum struct {
	sum, rest, plain float64 // double-double sum and, for infinities and NaN, the plain one
	dec              apd.Decimal
	kind             bson.Type
}

// Kind is the widest type added so far; 0 before the first number.
func (s *Sum) Kind() bson.Type { return s.kind }

// Add adds a number; other types are ignored.
func (s *Sum) Add(v bson.RawValue) {
	switch v.Type {
	case bson.TypeDecimal128:
		c := value.Decimals()
		_, _ = c.Add(&s.dec, &s.dec, value.Decimal(v))
	case bson.TypeDouble:
		s.addFloat(value.Float(v))
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := value.Int64(v)
		s.addLong(n)
	default:
		return
	}
	s.kind = widest(s.kind, v.Type)
}

// widest orders int, long, double, decimal.
func widest(a, b bson.Type) bson.Type {
	rank := func(t bson.Type) int {
		switch t {
		case bson.TypeInt32:
			return 1
		case bson.TypeInt64:
			return 2
		case bson.TypeDouble:
			return 3
		case bson.TypeDecimal128:
			return 4
		}
		return 0
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

func twoSum(a, b float64) (sum, err float64) {
	sum = a + b
	z := sum - a
	return sum, (a - (sum - z)) + (b - z)
}

func (s *Sum) addFloat(x float64) {
	s.plain += x
	x, c := twoSum(x, s.rest)
	var a float64
	s.sum, a = twoSum(s.sum, x)
	c += a
	s.sum, s.rest = twoSum(s.sum, c)
}

func (s *Sum) addLong(n int64) {
	high := n / (1 << 32) * (1 << 32)
	s.addFloat(float64(n - high))
	s.addFloat(float64(high))
}

// Float is the sum of what is no decimal, as a double.
func (s *Sum) Float() float64 {
	if math.IsNaN(s.sum) {
		return s.plain
	}
	return s.sum
}

// Long is the sum of what is no decimal as a long, false if it does not fit.
func (s *Sum) Long() (int64, bool) {
	if math.IsNaN(s.sum) || s.sum >= math.MaxInt64 && s.rest >= 0 || s.sum > math.MaxInt64 || s.sum < math.MinInt64 || s.sum == math.MinInt64 && s.rest < 0 {
		return 0, false
	}
	if s.sum >= math.MaxInt64 {
		return math.MaxInt64 + int64(s.rest) + 1, true
	}
	return int64(s.sum) + int64(s.rest), true
}

// round rounds the sum to a whole number, half away from zero.
func (s *Sum) round() {
	if f := math.Round(s.sum); f != s.sum {
		s.sum, s.rest = f, 0
	}
}

// Decimal is the whole sum in decimal arithmetic.
func (s *Sum) Decimal() *apd.Decimal {
	c := value.Decimals()
	out := s.floats()
	_, _ = c.Add(out, out, &s.dec)
	return out
}

func (s *Sum) floats() *apd.Decimal {
	if math.IsNaN(s.sum) {
		return value.WideDecimal(s.plain)
	}
	c := value.Decimals()
	out := value.WideDecimal(s.sum)
	_, _ = c.Add(out, out, value.WideDecimal(s.rest))
	return out
}

// Value is the sum in the narrowest type that holds it and is not narrower than what was added; int 0 if nothing was.
func (s *Sum) Value() bson.RawValue {
	n, fits := s.Long()
	switch {
	case s.kind == bson.TypeDecimal128:
		return value.DecimalValue(s.Decimal())
	case s.kind == bson.TypeDouble || !fits:
		return bson.DoubleValue(s.Float())
	case s.kind == bson.TypeInt64:
		return bson.Int64Value(n)
	}
	return intOrLong(n)
}

// mulLong multiplies, false if the product does not fit a long.
func mulLong(x, y int64) (int64, bool) {
	neg := (x < 0) != (y < 0)
	hi, lo := bits.Mul64(magnitude(x), magnitude(y))
	switch {
	case hi != 0, !neg && lo > math.MaxInt64, neg && lo > 1<<63:
		return 0, false
	case neg:
		return -int64(lo), true
	}
	return int64(lo), true
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return uint64(-x)
	}
	return uint64(x)
}
