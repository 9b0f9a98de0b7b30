package query

import (
	"math"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// existsTest is $exists: true.
type existsTest struct{}

func (existsTest) holds(v bson.RawValue, _ *state) bool { return v.Type != 0 }

// typeTest is $type: a set of types; "number" stands for all four numeric ones.
type typeTest struct {
	types   map[bson.Type]bool
	numbers bool
}

func (t *typeTest) holds(v bson.RawValue, _ *state) bool {
	return t.types[v.Type] || t.numbers && value.IsNumber(v)
}

// parseTypes reads the argument of $type: an alias, a code, or an array of these.
func parseTypes(name string, arg bson.RawValue) (*typeTest, error) {
	t := &typeTest{types: map[bson.Type]bool{}}
	if arg.Type != bson.TypeArray {
		return t, t.add(arg)
	}
	all := value.Array(arg)
	if len(all) == 0 {
		return nil, fail(mongoerr.CodeFailedToParse, "%s must match at least one type", name)
	}
	for _, v := range all {
		if err := t.add(v); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *typeTest) add(v bson.RawValue) error {
	if s, ok := value.Text(v); ok && v.Type == bson.TypeString {
		return t.addAlias(s)
	}
	if !value.IsNumber(v) {
		return fail(mongoerr.CodeTypeMismatch, "type must be represented as a number or a string")
	}
	n, ok := value.Integral(v)
	code := bson.Type(byte(n))
	if _, known := typeCodes[code]; !ok || n < math.MinInt8 || n > math.MaxInt8 || !known {
		return bad("Invalid numerical type code: %s", numberText(v))
	}
	t.types[code] = true
	return nil
}

func (t *typeTest) addAlias(s string) error {
	if s == "number" {
		t.numbers = true
		return nil
	}
	code, ok := value.TypeFromName(s)
	if !ok {
		return bad("Unknown type name alias: %s", s)
	}
	t.types[code] = true
	return nil
}

var typeCodes = func() map[bson.Type]bool {
	m := map[bson.Type]bool{0: true, bson.TypeMinKey: true, bson.TypeMaxKey: true}
	for t := bson.TypeDouble; t <= bson.TypeDecimal128; t++ {
		m[t] = true
	}
	return m
}()

// numberText prints a number in an error text as a stream would: six digits for a double.
func numberText(v bson.RawValue) string {
	if v.Type == bson.TypeDouble {
		return value.FormatFloat(value.Float(v), 6)
	}
	return value.Print(v)
}
