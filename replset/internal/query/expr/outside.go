package expr

import (
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// What stages compute without an expression of the user's.

// Add, Subtract, Multiply and Divide are the operators of these names on two numbers.
func Add(a, b bson.RawValue) (bson.RawValue, error)      { return add(nil, []bson.RawValue{a, b}) }
func Subtract(a, b bson.RawValue) (bson.RawValue, error) { return subtract(nil, []bson.RawValue{a, b}) }
func Multiply(a, b bson.RawValue) (bson.RawValue, error) { return multiply(nil, []bson.RawValue{a, b}) }
func Divide(a, b bson.RawValue) (bson.RawValue, error)   { return divide(nil, []bson.RawValue{a, b}) }

// AddUnits moves a date by n of a time unit.
func AddUnits(v bson.RawValue, unit string, n int64) (bson.RawValue, error) {
	if limit := amountLimits[unit]; n > limit || n < -limit {
		return failed(5976500, "invalid amount: %d %s", n, unit)
	}
	t, err := asDate(v)
	if err != nil {
		return null, err
	}
	return bson.DateTimeValue(addUnits(t.UTC(), unit, n).UnixMilli()), nil
}

// CheckUnit refuses what is no unit of time.
func CheckUnit(unit string) error {
	if _, known := amountLimits[unit]; !known {
		return fail(mongoerr.CodeFailedToParse, "unknown time unit value: %s", unit)
	}
	return nil
}

// Span is the length of a unit that always has the same, up to the week; 0 for the others.
func Span(unit string) time.Duration {
	switch unit {
	case "week":
		return 7 * 24 * time.Hour
	case "day":
		return 24 * time.Hour
	}
	return spans[unit]
}

// IsConstant gives the value of an expression that does not depend on a document.
func IsConstant(e Expr) (bson.RawValue, bool) {
	l, ok := e.(Literal)
	if ok && l.Value.Type == 0 {
		return bson.NullValue(), true
	}
	return l.Value, ok
}
