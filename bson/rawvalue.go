package bson

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// RawValue is one value as bytes: its type and its payload, without key. The zero RawValue stands for a missing one.
//
// Each type has two accessors: XOK returns false where the value is of another type or malformed; X panics then and is
// for values whose type the caller has checked.
type RawValue struct {
	Type  Type
	Value []byte
}

// IsZero reports whether the value is missing.
func (v RawValue) IsZero() bool { return v.Type == 0 && len(v.Value) == 0 }

// IsNumber reports whether the value is a double, an integer or a decimal.
func (v RawValue) IsNumber() bool {
	return v.Type == TypeInt32 || v.Type == TypeInt64 || v.Type == TypeDouble || v.Type == TypeDecimal128
}

// Equal reports whether type and bytes are the same: int32 1 and double 1 are not equal here.
func (v RawValue) Equal(o RawValue) bool { return v.Type == o.Type && bytes.Equal(v.Value, o.Value) }

// Clone returns a copy that does not share bytes.
func (v RawValue) Clone() RawValue { return RawValue{v.Type, append([]byte(nil), v.Value...)} }

// Validate checks the payload: its length, and as Raw.Validate what is in it.
func (v RawValue) Validate() error {
	if n := payloadLen(v.Type, v.Value); n != len(v.Value) {
		return invalid("%d bytes are no %v", len(v.Value), v.Type)
	}
	if err := validateValue(v.Type, v.Value, 0); err != nil {
		return err
	}
	return nil
}

// is reports whether the value has type t and a payload of n bytes.
func (v RawValue) is(t Type, n int) bool { return v.Type == t && len(v.Value) == n }

func (v RawValue) u64() uint64 { return binary.LittleEndian.Uint64(v.Value) }

// DoubleOK returns a double.
func (v RawValue) DoubleOK() (float64, bool) {
	if !v.is(TypeDouble, 8) {
		return 0, false
	}
	return math.Float64frombits(v.u64()), true
}

// StringValueOK returns a string, copied.
func (v RawValue) StringValueOK() (string, bool) { return v.text(TypeString) }

func (v RawValue) text(t Type) (string, bool) {
	b, ok := v.textBytes(t)
	return string(b), ok
}

// textBytes returns the bytes of a string-like value in place.
func (v RawValue) textBytes(t Type) ([]byte, bool) {
	if v.Type != t || prefixed(v.Value, 1, 4) != len(v.Value) || v.Value[len(v.Value)-1] != 0 {
		return nil, false
	}
	return v.Value[4 : len(v.Value)-1], true
}

// DocumentOK returns a document that shares the bytes.
func (v RawValue) DocumentOK() (Raw, bool) {
	if v.Type != TypeEmbeddedDocument || body(v.Value) == nil {
		return nil, false
	}
	return Raw(v.Value), true
}

// ArrayOK returns an array that shares the bytes.
func (v RawValue) ArrayOK() (RawArray, bool) {
	if v.Type != TypeArray || body(v.Value) == nil {
		return nil, false
	}
	return RawArray(v.Value), true
}

// BinaryOK returns subtype and data in place; the inner length of subtype 2 is taken off.
func (v RawValue) BinaryOK() (subtype byte, data []byte, ok bool) {
	if v.Type != TypeBinary || prefixed(v.Value, 0, 5) != len(v.Value) {
		return 0, nil, false
	}
	subtype, data = v.Value[4], v.Value[5:]
	if subtype == TypeBinaryBinaryOld {
		if length(data) != len(data)-4 || len(data) < 4 {
			return 0, nil, false
		}
		data = data[4:]
	}
	return subtype, data, true
}

// ObjectIDOK returns an ObjectID.
func (v RawValue) ObjectIDOK() (ObjectID, bool) {
	if !v.is(TypeObjectID, 12) {
		return ObjectID{}, false
	}
	return ObjectID(v.Value), true
}

// BooleanOK returns a boolean.
func (v RawValue) BooleanOK() (value, ok bool) {
	if !v.is(TypeBoolean, 1) || v.Value[0] > 1 {
		return false, false
	}
	return v.Value[0] == 1, true
}

// DateTimeOK returns a datetime in milliseconds since the Unix epoch.
func (v RawValue) DateTimeOK() (int64, bool) {
	if !v.is(TypeDateTime, 8) {
		return 0, false
	}
	return int64(v.u64()), true
}

// TimeOK returns a datetime as an instant in UTC.
func (v RawValue) TimeOK() (time.Time, bool) {
	ms, ok := v.DateTimeOK()
	if !ok {
		return time.Time{}, false
	}
	return DateTime(ms).Time(), true
}

// RegexOK returns pattern and options.
func (v RawValue) RegexOK() (pattern, options string, ok bool) {
	if v.Type != TypeRegex || regexLen(v.Value) != len(v.Value) {
		return "", "", false
	}
	p := bytes.IndexByte(v.Value, 0)
	return string(v.Value[:p]), string(v.Value[p+1 : len(v.Value)-1]), true
}

// DBPointerOK returns the collection's name and the document's id.
func (v RawValue) DBPointerOK() (string, ObjectID, bool) {
	if v.Type != TypeDBPointer || prefixed(v.Value, 1, 16) != len(v.Value) {
		return "", ObjectID{}, false
	}
	cut := len(v.Value) - 12
	ns, ok := RawValue{TypeString, v.Value[:cut]}.StringValueOK()
	return ns, ObjectID(v.Value[cut:]), ok
}

// JavaScriptOK returns code without a scope.
func (v RawValue) JavaScriptOK() (string, bool) { return v.text(TypeJavaScript) }

// SymbolOK returns a symbol.
func (v RawValue) SymbolOK() (string, bool) { return v.text(TypeSymbol) }

// CodeWithScopeOK returns code and the scope, which shares the bytes.
func (v RawValue) CodeWithScopeOK() (code string, scope Raw, ok bool) {
	if v.Type != TypeCodeWithScope || prefixed(v.Value, 14, 0) != len(v.Value) {
		return "", nil, false
	}
	n := prefixed(v.Value[4:], 1, 4)
	if n < 0 {
		return "", nil, false
	}
	code, ok = RawValue{TypeString, v.Value[4 : 4+n]}.StringValueOK()
	scope = Raw(v.Value[4+n:])
	return code, scope, ok && body(scope) != nil
}

// Int32OK returns a 32-bit integer; see AsInt64OK for any number.
func (v RawValue) Int32OK() (int32, bool) {
	if !v.is(TypeInt32, 4) {
		return 0, false
	}
	return int32(binary.LittleEndian.Uint32(v.Value)), true
}

// TimestampOK returns seconds and ordinal of a server timestamp.
func (v RawValue) TimestampOK() (t, i uint32, ok bool) {
	if !v.is(TypeTimestamp, 8) {
		return 0, 0, false
	}
	return uint32(v.u64() >> 32), uint32(v.u64()), true
}

// Int64OK returns a 64-bit integer; see AsInt64OK for any number.
func (v RawValue) Int64OK() (int64, bool) {
	if !v.is(TypeInt64, 8) {
		return 0, false
	}
	return int64(v.u64()), true
}

// Decimal128OK returns a decimal.
func (v RawValue) Decimal128OK() (Decimal128, bool) {
	if !v.is(TypeDecimal128, 16) {
		return Decimal128{}, false
	}
	return NewDecimal128(binary.LittleEndian.Uint64(v.Value[8:]), v.u64()), true
}

// AsInt64OK returns any number that is a whole one in the range of int64.
func (v RawValue) AsInt64OK() (int64, bool) {
	switch v.Type {
	case TypeInt32:
		n, ok := v.Int32OK()
		return int64(n), ok
	case TypeInt64:
		return v.Int64OK()
	case TypeDouble:
		f, ok := v.DoubleOK()
		// -2^63 is exact in a double, 2^63 is the first value above the range.
		if !ok || f != math.Trunc(f) || f < -1<<63 || f >= 1<<63 {
			return 0, false
		}
		return int64(f), true
	case TypeDecimal128:
		d, ok := v.Decimal128OK()
		if !ok {
			return 0, false
		}
		return d.int64OK()
	}
	return 0, false
}

// AsFloat64OK returns any number as the nearest double.
func (v RawValue) AsFloat64OK() (float64, bool) {
	switch v.Type {
	case TypeDouble:
		return v.DoubleOK()
	case TypeDecimal128:
		d, ok := v.Decimal128OK()
		if !ok {
			return 0, false
		}
		return d.float64(), true
	case TypeInt64:
		n, ok := v.Int64OK()
		return float64(n), ok
	}
	n, ok := v.Int32OK()
	return float64(n), ok
}

// wrongType is what the accessors without OK panic with.
func (v RawValue) wrongType(want Type) string {
	return fmt.Sprintf("bson: RawValue is %v, not %v", v.Type, want)
}
