package bson

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strconv"
)

// Decimal128 is an IEEE 754 decimal of 34 digits in the binary (BID) encoding. Its zero value is 0E-6176.
type Decimal128 struct {
	h, l uint64
}

// The parts of the format: the exponent's range, the most digits, and the bits of the special values.
const (
	minDecimalExp    = -6176
	maxDecimalExp    = 6111
	maxDecimalDigits = 34

	decimalSign = 1 << 63
	decimalInf  = 0x78 << 56
	decimalNaN  = 0x7c << 56
)

var (
	decimalTen        = big.NewInt(10)
	decimalMax        = new(big.Int).Sub(new(big.Int).Exp(decimalTen, big.NewInt(maxDecimalDigits), nil), big.NewInt(1))
	errDecimalSpecial = errors.New("bson: Decimal128 is NaN or infinite")
)

// NewDecimal128 returns the decimal of the high and low 64 bits.
func NewDecimal128(h, l uint64) Decimal128 { return Decimal128{h: h, l: l} }

// GetBytes returns the high and low 64 bits.
func (d Decimal128) GetBytes() (h, l uint64) { return d.h, d.l }

// IsNaN reports whether the value is not a number.
func (d Decimal128) IsNaN() bool { return d.h&decimalNaN == decimalNaN }

// IsInf returns 1 for infinity, -1 for negative infinity, else 0.
func (d Decimal128) IsInf() int {
	if d.h&decimalNaN != decimalInf {
		return 0
	}
	if d.negative() {
		return -1
	}
	return 1
}

// IsZero reports whether the value is zero in any of its forms (either sign, any exponent).
func (d Decimal128) IsZero() bool {
	if d.h&decimalInf == decimalInf {
		return false
	}
	_, coefficient := d.parts()
	return coefficient.Sign() == 0
}

func (d Decimal128) negative() bool { return d.h&decimalSign != 0 }

// parts returns exponent and unsigned coefficient of a finite value. Coefficients above 34 digits count as zero, and so
// do those of the second encoding, which can only stand for such: the BSON Decimal128 specification.
func (d Decimal128) parts() (int, *big.Int) {
	if d.h>>61&3 == 3 {
		return int(d.h>>47&0x3fff) + minDecimalExp, new(big.Int)
	}
	exp := int(d.h>>49&0x3fff) + minDecimalExp
	c := new(big.Int).SetUint64(d.h & (1<<49 - 1))
	c.Lsh(c, 64).Or(c, new(big.Int).SetUint64(d.l))
	if c.Cmp(decimalMax) > 0 {
		return exp, new(big.Int)
	}
	return exp, c
}

// BigInt returns coefficient and exponent: value = coefficient * 10^exponent. NaN and infinities are an error.
func (d Decimal128) BigInt() (*big.Int, int, error) {
	if d.h&decimalInf == decimalInf {
		return nil, 0, errDecimalSpecial
	}
	exp, c := d.parts()
	if d.negative() {
		c.Neg(c)
	}
	return c, exp, nil
}

// String returns the value in the notation of the specification: scientific where the exponent is positive or the
// value very small, plain otherwise.
func (d Decimal128) String() string {
	if d.IsNaN() {
		return "NaN"
	}
	sign := ""
	if d.negative() {
		sign = "-"
	}
	if d.IsInf() != 0 {
		return sign + "Infinity"
	}
	exp, c := d.parts()
	return sign + formatDecimal(c.String(), exp)
}

func formatDecimal(digits string, exp int) string {
	adjusted := exp + len(digits) - 1
	if exp > 0 || adjusted < -6 {
		s := digits[:1]
		if len(digits) > 1 {
			s += "." + digits[1:]
		}
		if adjusted >= 0 {
			return s + "E+" + strconv.Itoa(adjusted)
		}
		return s + "E" + strconv.Itoa(adjusted)
	}
	if exp == 0 {
		return digits
	}
	for len(digits) <= -exp {
		digits = "0" + digits
	}
	cut := len(digits) + exp
	return digits[:cut] + "." + digits[cut:]
}

// int64OK returns the value where it is a whole number that an int64 can hold.
func (d Decimal128) int64OK() (int64, bool) {
	c, exp, err := d.BigInt()
	if err != nil {
		return 0, false
	}
	for ; exp < 0 && c.Sign() != 0; exp++ {
		var rem big.Int
		if c.QuoRem(c, decimalTen, &rem); rem.Sign() != 0 {
			return 0, false
		}
	}
	for ; exp > 0 && c.Sign() != 0 && c.IsInt64(); exp-- {
		c.Mul(c, decimalTen)
	}
	return c.Int64(), c.IsInt64()
}

// float64 returns the nearest double.
func (d Decimal128) float64() float64 {
	if d.IsNaN() {
		return math.NaN()
	}
	f, _ := strconv.ParseFloat(d.String(), 64) // out of range gives an infinity or zero, which is the nearest
	return f
}

// MarshalJSON returns the canonical text as {"$numberDecimal": "..."}.
func (d Decimal128) MarshalJSON() ([]byte, error) {
	return []byte(`{"$numberDecimal":"` + d.String() + `"}`), nil
}

// UnmarshalJSON reads {"$numberDecimal": "..."}, a JSON string or number; null leaves the value.
func (d *Decimal128) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var ext struct {
		N *string `json:"$numberDecimal"`
	}
	s := string(b)
	if json.Unmarshal(b, &ext) == nil && ext.N != nil {
		s = *ext.N
	} else {
		_ = json.Unmarshal(b, &s) // not a JSON string: the text of a number, or text that the parser refuses
	}
	x, err := ParseDecimal128(s)
	if err == nil {
		*d = x
	}
	return err
}
