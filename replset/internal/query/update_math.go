package query

import (
	"math"
	"math/bits"

	"github.com/cockroachdb/apd/v3"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// arithmetic is $inc and $mul. An int that overflows becomes a long; a long that overflows is refused.
type arithmetic struct {
	name string
	arg  bson.RawValue
}

func makeArithmetic(name, path string, arg bson.RawValue) (operator, error) {
	if !value.IsNumber(arg) {
		verb := "increment"
		if name == "$mul" {
			verb = "multiply"
		}
		return nil, fail(mongoerr.CodeTypeMismatch, "Cannot %s with non-numeric argument: {%s}", verb, value.PrintElement(path, arg))
	}
	return &arithmetic{name, arg}, nil
}

func (m *arithmetic) change(a *applying, e *elem, at place) (bool, error) {
	old := e.value()
	if !value.IsNumber(old) {
		return false, fail(mongoerr.CodeTypeMismatch, "Cannot apply %s to a value of non-numeric type. {%s} has the field '%s' of non-numeric type %s",
			m.name, a.root.idText(), e.key, value.TypeName(old.Type))
	}
	v, ok := m.combine(old)
	if !ok {
		return false, bad("Failed to apply %s operations to current value (%s) for document {%s}", m.name, safeText(old), a.root.idText())
	}
	if v.Equal(old) {
		return false, nil
	}
	e.set(v)
	return true, nil
}

func (m *arithmetic) create(*applying) (bson.RawValue, error) {
	if m.name == "$inc" {
		return m.arg, nil
	}
	zero, _ := m.combine(bson.Int32Value(0))
	return zero, nil
}

func (m *arithmetic) combine(old bson.RawValue) (bson.RawValue, bool) {
	if m.name == "$inc" {
		return addNumbers(old, m.arg)
	}
	return mulNumbers(old, m.arg)
}

// safeText prints a number with its type, as messages about arithmetic do.
func safeText(v bson.RawValue) string {
	names := map[bson.Type]string{
		bson.TypeInt32: "(NumberInt)", bson.TypeInt64: "(NumberLong)", bson.TypeDouble: "(NumberDouble)", bson.TypeDecimal128: "(NumberDecimal)",
	}
	return names[v.Type] + numberText(v)
}

func addNumbers(a, b bson.RawValue) (bson.RawValue, bool) {
	return combineNumbers(a, b, func(x, y int64) (int64, bool) {
		s := x + y
		return s, (s > x) == (y > 0)
	}, func(x, y float64) float64 { return x + y }, func(c *apd.Context, d, x, y *apd.Decimal) { _, _ = c.Add(d, x, y) })
}

func mulNumbers(a, b bson.RawValue) (bson.RawValue, bool) {
	return combineNumbers(a, b, mulInt, func(x, y float64) float64 { return x * y },
		func(c *apd.Context, d, x, y *apd.Decimal) { _, _ = c.Mul(d, x, y) })
}

func mulInt(x, y int64) (int64, bool) {
	neg := (x < 0) != (y < 0)
	hi, lo := bits.Mul64(abs(x), abs(y))
	switch {
	case hi != 0, !neg && lo > math.MaxInt64, neg && lo > 1<<63:
		return 0, false
	case neg:
		return -int64(lo), true
	}
	return int64(lo), true
}

func abs(x int64) uint64 {
	if x < 0 {
		return uint64(-x)
	}
	return uint64(x)
}

// combineNumbers promotes: decimal before double before long before int.
func combineNumbers(a, b bson.RawValue, ints func(x, y int64) (int64, bool), floats func(x, y float64) float64,
	decs func(c *apd.Context, d, x, y *apd.Decimal)) (bson.RawValue, bool) {
	switch {
	case a.Type == bson.TypeDecimal128 || b.Type == bson.TypeDecimal128:
		var d apd.Decimal
		c := value.Decimals()
		decs(&c, &d, value.AsDecimal(a), value.AsDecimal(b))
		return value.DecimalValue(&d), true
	case a.Type == bson.TypeDouble || b.Type == bson.TypeDouble:
		return bson.DoubleValue(floats(value.Float(a), value.Float(b))), true
	}
	x, _ := value.Int64(a)
	y, _ := value.Int64(b)
	n, ok := ints(x, y)
	if !ok {
		return value.Missing, false
	}
	if a.Type == bson.TypeInt32 && b.Type == bson.TypeInt32 && n == int64(int32(n)) {
		return bson.Int32Value(int32(n)), true
	}
	return bson.Int64Value(n), true
}

// bitwise is $bit: its operations run one after the other.
type bitwise struct{ steps []bitStep }

type bitStep struct {
	op  string
	arg bson.RawValue
}

func makeBit(_ *updateParser, path string, arg bson.RawValue) (operator, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, bad("The $bit modifier is not compatible with a %s. You must pass in an embedded document: {$bit: {field: {and/or/xor: #}}", value.TypeName(arg.Type))
	}
	b := &bitwise{}
	for k, v := range bson.Raw(arg.Value).All() {
		if k != "and" && k != "or" && k != "xor" {
			return nil, bad("The $bit modifier only supports 'and', 'or', and 'xor', not '%s' which is an unknown operator: {%s}", k, value.PrintElement(k, v))
		}
		if v.Type != bson.TypeInt32 && v.Type != bson.TypeInt64 {
			return nil, bad("The $bit modifier field must be an Integer(32/64 bit); a '%s' is not supported here: {%s}", value.TypeName(v.Type), value.PrintElement(k, v))
		}
		b.steps = append(b.steps, bitStep{k, v})
	}
	if len(b.steps) == 0 {
		return nil, bad("You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}")
	}
	return b, nil
}

func (b *bitwise) change(a *applying, e *elem, _ place) (bool, error) {
	old := e.value()
	if old.Type != bson.TypeInt32 && old.Type != bson.TypeInt64 {
		return false, bad("Cannot apply $bit to a value of non-integral type.%s has the field %s of non-integer type %s", a.root.idText(), e.key, value.TypeName(old.Type))
	}
	v := b.run(old)
	if v.Equal(old) {
		return false, nil
	}
	e.set(v)
	return true, nil
}

func (b *bitwise) create(*applying) (bson.RawValue, error) { return b.run(bson.Int32Value(0)), nil }

func (b *bitwise) run(v bson.RawValue) bson.RawValue {
	for _, s := range b.steps {
		x, _ := value.Int64(v)
		y, _ := value.Int64(s.arg)
		switch s.op {
		case "and":
			x &= y
		case "or":
			x |= y
		default:
			x ^= y
		}
		if v.Type == bson.TypeInt32 && s.arg.Type == bson.TypeInt32 {
			v = bson.Int32Value(int32(x))
		} else {
			v = bson.Int64Value(x)
		}
	}
	return v
}
