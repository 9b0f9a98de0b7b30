// Package value knows how the server looks at single BSON values: their order across types, their numbers,
// their truth, their names and the text it prints of them in error messages.
//
// Everything is a bson.RawValue; the zero RawValue stands for a missing field. The package is pure and every function
// in it is safe for concurrent use.
package value

import (
	"encoding/binary"
	"math"

	"github.com/sextantdb/sextant/bson"
)

// Missing is the value of a field that is not there.
var Missing bson.RawValue

// Canonical orders the types: values of different types compare by it, and a range predicate only looks at values
// of the same canonical type. Missing and undefined share 0; null is 5, so that the sum of both is 5 and nothing else's.
func Canonical(t bson.Type) int {
	if t == bson.TypeMinKey {
		return -1
	}
	return int(canonical[t&0x7f])
}

var canonical = [128]uint8{
	bson.TypeUndefined:        0,
	bson.TypeNull:             5,
	bson.TypeDouble:           10,
	bson.TypeInt32:            10,
	bson.TypeInt64:            10,
	bson.TypeDecimal128:       10,
	bson.TypeString:           15,
	bson.TypeSymbol:           15,
	bson.TypeEmbeddedDocument: 20,
	bson.TypeArray:            25,
	bson.TypeBinary:           30,
	bson.TypeObjectID:         35,
	bson.TypeBoolean:          40,
	bson.TypeDateTime:         45,
	bson.TypeTimestamp:        47,
	bson.TypeRegex:            50,
	bson.TypeDBPointer:        55,
	bson.TypeJavaScript:       60,
	bson.TypeCodeWithScope:    65,
	bson.TypeMaxKey:           127,
}

// TypeName is the alias that $type answers and error messages print: "int", "objectId", "missing" ...
func TypeName(t bson.Type) string {
	if n, ok := typeNames[t]; ok {
		return n
	}
	return "unknown"
}

var typeNames = map[bson.Type]string{
	0:                         "missing",
	bson.TypeDouble:           "double",
	bson.TypeString:           "string",
	bson.TypeEmbeddedDocument: "object",
	bson.TypeArray:            "array",
	bson.TypeBinary:           "binData",
	bson.TypeUndefined:        "undefined",
	bson.TypeObjectID:         "objectId",
	bson.TypeBoolean:          "bool",
	bson.TypeDateTime:         "date",
	bson.TypeNull:             "null",
	bson.TypeRegex:            "regex",
	bson.TypeDBPointer:        "dbPointer",
	bson.TypeJavaScript:       "javascript",
	bson.TypeSymbol:           "symbol",
	bson.TypeCodeWithScope:    "javascriptWithScope",
	bson.TypeInt32:            "int",
	bson.TypeTimestamp:        "timestamp",
	bson.TypeInt64:            "long",
	bson.TypeDecimal128:       "decimal",
	bson.TypeMinKey:           "minKey",
	bson.TypeMaxKey:           "maxKey",
}

// TypeFromName is the inverse of TypeName for the aliases that a query may use.
func TypeFromName(name string) (bson.Type, bool) {
	for t, n := range typeNames {
		if n == name && t != 0 {
			return t, true
		}
	}
	return 0, false
}

// Nullish says whether the value is missing, undefined or null.
func Nullish(v bson.RawValue) bool {
	return v.Type == 0 || v.Type == bson.TypeNull || v.Type == bson.TypeUndefined
}

// Truthy is the server's notion of a true value: not false, not a numeric zero, not null, undefined or missing.
func Truthy(v bson.RawValue) bool {
	switch v.Type {
	case 0, bson.TypeNull, bson.TypeUndefined:
		return false
	case bson.TypeBoolean:
		return len(v.Value) > 0 && v.Value[0] != 0
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := Int64(v)
		return n != 0
	case bson.TypeDouble:
		return Float(v) != 0
	case bson.TypeDecimal128:
		d := Decimal(v)
		return !d.IsZero()
	}
	return true
}

// IsNumber says whether the value is of one of the four numeric types.
func IsNumber(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		return true
	}
	return false
}

// Int64 gives the value of an int or a long exactly, false for any other type.
func Int64(v bson.RawValue) (int64, bool) {
	switch {
	case v.Type == bson.TypeInt32 && len(v.Value) >= 4:
		return int64(int32(binary.LittleEndian.Uint32(v.Value))), true
	case v.Type == bson.TypeInt64 && len(v.Value) >= 8:
		return int64(binary.LittleEndian.Uint64(v.Value)), true
	}
	return 0, false
}

// Float gives a number as a double, rounded where a double cannot hold it; 0 for other types.
func Float(v bson.RawValue) float64 {
	switch v.Type {
	case bson.TypeDouble:
		if len(v.Value) >= 8 {
			return math.Float64frombits(binary.LittleEndian.Uint64(v.Value))
		}
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := Int64(v)
		return float64(n)
	case bson.TypeDecimal128:
		return DecimalFloat(Decimal(v))
	}
	return 0
}

// Long gives a number as a long: doubles and decimals are cut toward zero, those out of range go to the nearest bound
// and NaN to 0. Other types give 0.
func Long(v bson.RawValue) int64 {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := Int64(v)
		return n
	case bson.TypeDouble:
		return clampFloat(Float(v))
	case bson.TypeDecimal128:
		return clampDecimal(Decimal(v))
	}
	return 0
}

// CutLong gives a number as the machine converts it: a double cut toward zero, a decimal rounded half-even, and the smallest
// long for what a long cannot hold, NaN too. $mod and the bit operators see numbers this way.
func CutLong(v bson.RawValue) int64 {
	switch v.Type {
	case bson.TypeDouble:
		f := Float(v)
		if math.IsNaN(f) || f >= math.MaxInt64 || f < math.MinInt64 {
			return math.MinInt64
		}
		return int64(f)
	case bson.TypeDecimal128:
		return RoundDecimal(Decimal(v))
	}
	n, _ := Int64(v)
	return n
}

func clampFloat(f float64) int64 {
	switch {
	case math.IsNaN(f):
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

// Integral gives the number as a long if it is a whole number that a long can hold.
func Integral(v bson.RawValue) (int64, bool) {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		return Int64(v)
	case bson.TypeDouble:
		f := Float(v)
		if f != math.Trunc(f) || f >= math.MaxInt64 || f < math.MinInt64 {
			return 0, false
		}
		return int64(f), true
	case bson.TypeDecimal128:
		return integralDecimal(Decimal(v))
	}
	return 0, false
}

// IsNaN says whether the number is a double or decimal NaN.
func IsNaN(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeDouble:
		return math.IsNaN(Float(v))
	case bson.TypeDecimal128:
		d := Decimal(v)
		return isNaN(d)
	}
	return false
}

// Text gives the characters of a string or a symbol.
func Text(v bson.RawValue) (string, bool) {
	if (v.Type != bson.TypeString && v.Type != bson.TypeSymbol && v.Type != bson.TypeJavaScript) || len(v.Value) < 5 {
		return "", false
	}
	return string(v.Value[4 : len(v.Value)-1]), true
}

// Doc gives the bytes of a document or an array as a document; nil for other types.
func Doc(v bson.RawValue) bson.Raw {
	if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray {
		return bson.Raw(v.Value)
	}
	return nil
}

// Array gives the elements of an array; nil for other types.
func Array(v bson.RawValue) []bson.RawValue {
	if v.Type != bson.TypeArray {
		return nil
	}
	var out []bson.RawValue
	for _, e := range bson.Raw(v.Value).All() {
		out = append(out, e)
	}
	return out
}

// ArrayOf builds an array value; missing elements become null.
func ArrayOf(vs []bson.RawValue) bson.RawValue {
	dst, start := bson.BeginDocument(nil)
	for i, v := range vs {
		if v.Type == 0 {
			v = bson.NullValue()
		}
		dst = bson.AppendValue(dst, Index(i), v)
	}
	return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(dst, start)}
}

// Field is one key and value of a document under construction.
type Field struct {
	Key   string
	Value bson.RawValue
}

// DocOf builds a document; fields whose value is missing are left out.
func DocOf(fields ...Field) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	for _, f := range fields {
		if f.Value.Type != 0 {
			dst = bson.AppendValue(dst, f.Key, f.Value)
		}
	}
	return bson.EndDocument(dst, start)
}

// Get gives the first field of that name, missing if there is none. No dots are looked at.
func Get(doc bson.Raw, key string) bson.RawValue { return doc.Lookup(key) }

// First gives the first element of a document, an empty key and missing for an empty one.
func First(doc bson.Raw) (string, bson.RawValue) {
	for k, v := range doc.All() {
		return k, v
	}
	return "", Missing
}
