package bson

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// ParseDecimal128 reads the text of a decimal: digits with an optional sign, point and exponent; NaN; Infinity or Inf in
// any case. What cannot be held without losing a digit that is not zero is an error.
func ParseDecimal128(s string) (Decimal128, error) {
	refuse := func(why string) (Decimal128, error) {
		if len(s) > 60 {
			return Decimal128{}, fmt.Errorf("bson: cannot parse %q... as Decimal128: %s", s[:60], why)
		}
		return Decimal128{}, fmt.Errorf("bson: cannot parse %q as Decimal128: %s", s, why)
	}
	text, neg := s, false
	if text != "" && (text[0] == '+' || text[0] == '-') {
		neg = text[0] == '-'
		text = text[1:]
	}
	switch strings.ToLower(text) {
	case "inf", "infinity":
		return signed(Decimal128{h: decimalInf}, neg), nil
	case "nan":
		return Decimal128{h: decimalNaN}, nil
	}
	digits, exp, why := splitDecimal(text)
	if why != "" {
		return refuse(why)
	}
	digits, exp, why = fitDecimal(digits, exp)
	if why != "" {
		return refuse(why)
	}
	c, _ := new(big.Int).SetString(digits, 10)
	return signed(packDecimal(c, exp), neg), nil
}

// splitDecimal turns unsigned text into digits and a power of ten; why is not empty where it is not a number.
func splitDecimal(text string) (digits string, exp int, why string) {
	mantissa, power, hasPower := text, "", false
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, power, hasPower = text[:i], text[i+1:], true
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", 0, "not a number"
	}
	if hasPower {
		if power == "" || strings.Trim(strings.TrimLeft(power[:1], "+-")+power[1:], "0123456789") != "" {
			return "", 0, "malformed exponent"
		}
		n, err := strconv.Atoi(power)
		// Far beyond any exponent that could still be fitted, and small enough not to overflow below.
		if err != nil && power[0] == '-' {
			n = -1 << 30
		} else if err != nil {
			n = 1 << 30
		}
		exp = max(-1<<30, min(1<<30, n))
	}
	return digits, exp - len(fraction), ""
}

// fitDecimal brings digits and exponent into range without changing the value.
func fitDecimal(digits string, exp int) (string, int, string) {
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		return "0", max(minDecimalExp, min(maxDecimalExp, exp)), ""
	}
	for len(digits) > maxDecimalDigits || exp < minDecimalExp {
		if digits[len(digits)-1] != '0' || len(digits) == 1 {
			return "", 0, "more digits than 34, or smaller than the smallest decimal"
		}
		digits = digits[:len(digits)-1]
		exp++
	}
	if exp > maxDecimalExp {
		pad := exp - maxDecimalExp
		if pad > maxDecimalDigits-len(digits) {
			return "", 0, "larger than the largest decimal"
		}
		digits += strings.Repeat("0", pad)
		exp = maxDecimalExp
	}
	return digits, exp, ""
}

// packDecimal packs a coefficient of at most 34 digits and an exponent in range.
func packDecimal(c *big.Int, exp int) Decimal128 {
	low := new(big.Int).And(c, new(big.Int).SetUint64(1<<64-1)).Uint64()
	high := new(big.Int).Rsh(c, 64).Uint64()
	return Decimal128{h: high | uint64(exp-minDecimalExp)<<49, l: low}
}

func signed(d Decimal128, negative bool) Decimal128 {
	if negative {
		d.h |= decimalSign
	}
	return d
}

// ParseDecimal128FromBigInt returns coefficient * 10^exp, and false where a decimal cannot hold it exactly.
func ParseDecimal128FromBigInt(coefficient *big.Int, exp int) (Decimal128, bool) {
	digits, exp, why := fitDecimal(new(big.Int).Abs(coefficient).String(), max(-1<<30, min(1<<30, exp)))
	if why != "" {
		return Decimal128{}, false
	}
	c, _ := new(big.Int).SetString(digits, 10)
	return signed(packDecimal(c, exp), coefficient.Sign() < 0), true
}
