package bson

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"
)

// The functions of this file append one whole element (type, key, payload) to dst and return the longer slice.
// A key ends at a NUL byte on the wire, so that it cannot hold one: these functions trust their caller with that;
// AppendAny and Marshal check it.

// AppendHeader appends type and key; the payload must follow.
func AppendHeader(dst []byte, t Type, key string) []byte {
	dst = append(dst, byte(t))
	dst = append(dst, key...)
	return append(dst, 0)
}

// AppendDouble appends a double.
func AppendDouble(dst []byte, key string, v float64) []byte {
	return binary.LittleEndian.AppendUint64(AppendHeader(dst, TypeDouble, key), math.Float64bits(v))
}

// AppendString appends a string, which should be valid UTF-8.
func AppendString(dst []byte, key, v string) []byte {
	return appendStringPayload(AppendHeader(dst, TypeString, key), v)
}

func appendStringPayload(dst []byte, s string) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(s)+1))
	dst = append(dst, s...)
	return append(dst, 0)
}

// AppendDocument appends a document; a nil or empty Raw counts as {}.
func AppendDocument(dst []byte, key string, v Raw) []byte {
	return appendDocPayload(AppendHeader(dst, TypeEmbeddedDocument, key), v)
}

// AppendArray appends an array; a nil or empty RawArray counts as [].
func AppendArray(dst []byte, key string, v RawArray) []byte {
	return appendDocPayload(AppendHeader(dst, TypeArray, key), v)
}

var emptyDoc = []byte{5, 0, 0, 0, 0}

func appendDocPayload(dst, doc []byte) []byte {
	if len(doc) == 0 {
		doc = emptyDoc
	}
	return append(dst, doc...)
}

// AppendBinary appends bytes with a subtype. Subtype 2 gets the inner length that it needs.
func AppendBinary(dst []byte, key string, subtype byte, data []byte) []byte {
	return appendBinaryPayload(AppendHeader(dst, TypeBinary, key), subtype, data)
}

func appendBinaryPayload(dst []byte, subtype byte, data []byte) []byte {
	if subtype == TypeBinaryBinaryOld {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(data)+4))
		dst = append(dst, subtype)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(data)))
		return append(dst, data...)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(data)))
	dst = append(dst, subtype)
	return append(dst, data...)
}

// AppendUndefined appends the deprecated undefined value.
func AppendUndefined(dst []byte, key string) []byte { return AppendHeader(dst, TypeUndefined, key) }

// AppendObjectID appends an ObjectID.
func AppendObjectID(dst []byte, key string, v ObjectID) []byte {
	return append(AppendHeader(dst, TypeObjectID, key), v[:]...)
}

// AppendBoolean appends a boolean.
func AppendBoolean(dst []byte, key string, v bool) []byte {
	dst = AppendHeader(dst, TypeBoolean, key)
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendDateTime appends a datetime in milliseconds since the Unix epoch.
func AppendDateTime(dst []byte, key string, ms int64) []byte {
	return binary.LittleEndian.AppendUint64(AppendHeader(dst, TypeDateTime, key), uint64(ms))
}

// AppendTime appends a datetime, cut to milliseconds.
func AppendTime(dst []byte, key string, t time.Time) []byte {
	return AppendDateTime(dst, key, t.UnixMilli())
}

// AppendNull appends null.
func AppendNull(dst []byte, key string) []byte { return AppendHeader(dst, TypeNull, key) }

// AppendRegex appends a regular expression, its options sorted. Neither part may hold a NUL byte.
func AppendRegex(dst []byte, key, pattern, options string) []byte {
	return appendRegexPayload(AppendHeader(dst, TypeRegex, key), pattern, options)
}

func appendRegexPayload(dst []byte, pattern, options string) []byte {
	dst = append(dst, pattern...)
	dst = append(dst, 0)
	dst = append(dst, sortedOptions(options)...)
	return append(dst, 0)
}

func sortedOptions(s string) string {
	if len(s) < 2 || slices.IsSorted([]byte(s)) {
		return s
	}
	b := strings.Split(s, "")
	slices.Sort(b)
	return strings.Join(b, "")
}

// AppendDBPointer appends the deprecated reference to a document of the collection ns.
func AppendDBPointer(dst []byte, key, ns string, id ObjectID) []byte {
	dst = appendStringPayload(AppendHeader(dst, TypeDBPointer, key), ns)
	return append(dst, id[:]...)
}

// AppendJavaScript appends code without a scope.
func AppendJavaScript(dst []byte, key, code string) []byte {
	return appendStringPayload(AppendHeader(dst, TypeJavaScript, key), code)
}

// AppendSymbol appends a deprecated symbol.
func AppendSymbol(dst []byte, key, symbol string) []byte {
	return appendStringPayload(AppendHeader(dst, TypeSymbol, key), symbol)
}

// AppendCodeWithScope appends code with its scope.
func AppendCodeWithScope(dst []byte, key, code string, scope Raw) []byte {
	dst = AppendHeader(dst, TypeCodeWithScope, key)
	start := len(dst)
	dst = appendStringPayload(append(dst, 0, 0, 0, 0), code)
	dst = appendDocPayload(dst, scope)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// AppendInt32 appends a 32-bit integer.
func AppendInt32(dst []byte, key string, v int32) []byte {
	return binary.LittleEndian.AppendUint32(AppendHeader(dst, TypeInt32, key), uint32(v))
}

// AppendTimestamp appends a server timestamp: seconds t, ordinal i.
func AppendTimestamp(dst []byte, key string, t, i uint32) []byte {
	dst = AppendHeader(dst, TypeTimestamp, key)
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(dst, i), t)
}

// AppendInt64 appends a 64-bit integer.
func AppendInt64(dst []byte, key string, v int64) []byte {
	return binary.LittleEndian.AppendUint64(AppendHeader(dst, TypeInt64, key), uint64(v))
}

// AppendDecimal128 appends a decimal.
func AppendDecimal128(dst []byte, key string, v Decimal128) []byte {
	dst = AppendHeader(dst, TypeDecimal128, key)
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, v.l), v.h)
}

// AppendMinKey appends the value that sorts first.
func AppendMinKey(dst []byte, key string) []byte { return AppendHeader(dst, TypeMinKey, key) }

// AppendMaxKey appends the value that sorts last.
func AppendMaxKey(dst []byte, key string) []byte { return AppendHeader(dst, TypeMaxKey, key) }

// AppendValue appends a value as it is. The zero RawValue (a missing field) appends nothing.
func AppendValue(dst []byte, key string, v RawValue) []byte {
	if v.Type == 0 {
		return dst
	}
	return append(AppendHeader(dst, v.Type, key), v.Value...)
}

// BeginDocument reserves a document's length at the end of dst; elements follow, then EndDocument with the same start.
func BeginDocument(dst []byte) (out []byte, start int) {
	return append(dst, 0, 0, 0, 0), len(dst)
}

// BeginDocumentElement appends type and key of an embedded document and reserves its length.
func BeginDocumentElement(dst []byte, key string) (out []byte, start int) {
	return BeginDocument(AppendHeader(dst, TypeEmbeddedDocument, key))
}

// BeginArrayElement appends type and key of an array and reserves its length. The elements' keys are "0", "1", ...
func BeginArrayElement(dst []byte, key string) (out []byte, start int) {
	return BeginDocument(AppendHeader(dst, TypeArray, key))
}

// EndDocument ends what a Begin function started: it appends the final 0 and writes the length.
func EndDocument(dst []byte, start int) []byte {
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// grow returns dst with room for n more bytes. It is out of the way of the loops that call it.
//
//go:noinline
func grow(dst []byte, n int) []byte { return slices.Grow(dst, n) }
