package bson

import (
	"encoding/binary"
	"math"
	"time"
)

// The functions of this file make a RawValue of a Go value. Each owns its bytes, save those that take raw bytes.

// DoubleValue returns a double.
func DoubleValue(v float64) RawValue {
	return RawValue{TypeDouble, binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))}
}

// StringValue returns a string.
func StringValue(v string) RawValue {
	return RawValue{TypeString, appendStringPayload(make([]byte, 0, len(v)+5), v)}
}

// DocumentValue returns a document that shares doc's bytes; nil counts as {}.
func DocumentValue(doc Raw) RawValue {
	if len(doc) == 0 {
		doc = emptyDoc[:len(emptyDoc):len(emptyDoc)]
	}
	return RawValue{TypeEmbeddedDocument, doc}
}

// ArrayValue returns an array that shares a's bytes; nil counts as [].
func ArrayValue(a RawArray) RawValue {
	if len(a) == 0 {
		a = emptyDoc[:len(emptyDoc):len(emptyDoc)]
	}
	return RawValue{TypeArray, a}
}

// BinaryValue returns bytes with a subtype.
func BinaryValue(subtype byte, data []byte) RawValue {
	return RawValue{TypeBinary, appendBinaryPayload(make([]byte, 0, len(data)+9), subtype, data)}
}

// UndefinedValue returns the deprecated undefined.
func UndefinedValue() RawValue { return RawValue{Type: TypeUndefined} }

// ObjectIDValue returns an ObjectID.
func ObjectIDValue(v ObjectID) RawValue { return RawValue{TypeObjectID, append([]byte(nil), v[:]...)} }

// BooleanValue returns a boolean.
func BooleanValue(v bool) RawValue {
	if v {
		return RawValue{TypeBoolean, []byte{1}}
	}
	return RawValue{TypeBoolean, []byte{0}}
}

// DateTimeValue returns a datetime in milliseconds since the Unix epoch.
func DateTimeValue(ms int64) RawValue {
	return RawValue{TypeDateTime, binary.LittleEndian.AppendUint64(nil, uint64(ms))}
}

// TimeValue returns a datetime, cut to milliseconds.
func TimeValue(t time.Time) RawValue { return DateTimeValue(t.UnixMilli()) }

// NullValue returns null.
func NullValue() RawValue { return RawValue{Type: TypeNull} }

// RegexValue returns a regular expression, its options sorted.
func RegexValue(pattern, options string) RawValue {
	return RawValue{TypeRegex, appendRegexPayload(nil, pattern, options)}
}

// DBPointerValue returns the deprecated reference.
func DBPointerValue(ns string, id ObjectID) RawValue {
	return RawValue{TypeDBPointer, append(appendStringPayload(nil, ns), id[:]...)}
}

// JavaScriptValue returns code without a scope.
func JavaScriptValue(code string) RawValue {
	return RawValue{TypeJavaScript, appendStringPayload(nil, code)}
}

// SymbolValue returns a deprecated symbol.
func SymbolValue(symbol string) RawValue {
	return RawValue{TypeSymbol, appendStringPayload(nil, symbol)}
}

// CodeWithScopeValue returns code with its scope.
func CodeWithScopeValue(code string, scope Raw) RawValue {
	return RawValue{TypeCodeWithScope, AppendCodeWithScope(nil, "", code, scope)[2:]}
}

// Int32Value returns a 32-bit integer.
func Int32Value(v int32) RawValue {
	return RawValue{TypeInt32, binary.LittleEndian.AppendUint32(nil, uint32(v))}
}

// TimestampValue returns a server timestamp.
func TimestampValue(t, i uint32) RawValue {
	return RawValue{TypeTimestamp, binary.LittleEndian.AppendUint64(nil, uint64(t)<<32|uint64(i))}
}

// Int64Value returns a 64-bit integer.
func Int64Value(v int64) RawValue {
	return RawValue{TypeInt64, binary.LittleEndian.AppendUint64(nil, uint64(v))}
}

// Decimal128Value returns a decimal.
func Decimal128Value(v Decimal128) RawValue {
	return RawValue{TypeDecimal128, AppendDecimal128(nil, "", v)[2:]}
}

// MinKeyValue returns the value that sorts first.
func MinKeyValue() RawValue { return RawValue{Type: TypeMinKey} }

// MaxKeyValue returns the value that sorts last.
func MaxKeyValue() RawValue { return RawValue{Type: TypeMaxKey} }
