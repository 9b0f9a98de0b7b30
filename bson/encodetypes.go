package bson

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// The encoders of the package's own types and of those of the standard library that have a meaning in BSON.

func encodeObjectID(ps *plans, dst []byte, v ObjectID, _ int) ([]byte, Type, error) {
	return append(dst, v[:]...), TypeObjectID, nil
}

func encodeUUID(ps *plans, dst []byte, v UUID, _ int) ([]byte, Type, error) {
	return appendBinaryPayload(dst, TypeBinaryUUID, v[:]), TypeBinary, nil
}

func encodeDateTime(ps *plans, dst []byte, v DateTime, _ int) ([]byte, Type, error) {
	return binary.LittleEndian.AppendUint64(dst, uint64(v)), TypeDateTime, nil
}

func encodeTime(ps *plans, dst []byte, v time.Time, _ int) ([]byte, Type, error) {
	return binary.LittleEndian.AppendUint64(dst, uint64(v.UnixMilli())), TypeDateTime, nil
}

func encodeTimestamp(ps *plans, dst []byte, v Timestamp, _ int) ([]byte, Type, error) {
	return binary.LittleEndian.AppendUint64(dst, uint64(v.T)<<32|uint64(v.I)), TypeTimestamp, nil
}

func encodeBytes(ps *plans, dst []byte, v []byte, _ int) ([]byte, Type, error) {
	if v == nil && !ps.opts.NilByteSliceAsEmpty {
		return dst, TypeNull, nil
	}
	return appendBinaryPayload(dst, TypeBinaryGeneric, v), TypeBinary, nil
}

func encodeBinary(ps *plans, dst []byte, v Binary, _ int) ([]byte, Type, error) {
	return appendBinaryPayload(dst, v.Subtype, v.Data), TypeBinary, nil
}

func encodeDecimal(ps *plans, dst []byte, v Decimal128, _ int) ([]byte, Type, error) {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, v.l), v.h), TypeDecimal128, nil
}

func encodeRegex(ps *plans, dst []byte, v Regex, _ int) ([]byte, Type, error) {
	if strings.IndexByte(v.Pattern, 0) >= 0 || strings.IndexByte(v.Options, 0) >= 0 {
		return dst, 0, fmt.Errorf("the regular expression %q holds a NUL byte", v.Pattern)
	}
	if !utf8.ValidString(v.Pattern) || !utf8.ValidString(v.Options) {
		return dst, 0, fmt.Errorf("the regular expression %q is not UTF-8", v.Pattern)
	}
	return appendRegexPayload(dst, v.Pattern, v.Options), TypeRegex, nil
}

func encodeJavaScript(ps *plans, dst []byte, v JavaScript, depth int) ([]byte, Type, error) {
	dst, _, err := encodeString(ps, dst, string(v), depth)
	return dst, TypeJavaScript, err
}

func encodeSymbol(ps *plans, dst []byte, v Symbol, depth int) ([]byte, Type, error) {
	dst, _, err := encodeString(ps, dst, string(v), depth)
	return dst, TypeSymbol, err
}

func encodeCodeWithScope(ps *plans, dst []byte, v CodeWithScope, depth int) ([]byte, Type, error) {
	start := len(dst)
	dst, _, err := encodeString(ps, append(dst, 0, 0, 0, 0), string(v.Code), depth)
	if err != nil {
		return dst, 0, err
	}
	scope := v.Scope
	if scope == nil {
		scope = D{}
	}
	dst, t, err := ps.appendAny(dst, scope, depth)
	if err != nil {
		return dst, 0, encodeUnder(err, "$scope")
	}
	if t != TypeEmbeddedDocument {
		return dst, 0, fmt.Errorf("the scope of code is %s, which is no document", describe(scope))
	}
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst, TypeCodeWithScope, nil
}

func encodeDBPointer(ps *plans, dst []byte, v DBPointer, depth int) ([]byte, Type, error) {
	dst, _, err := encodeString(ps, dst, v.DB, depth)
	return append(dst, v.Pointer[:]...), TypeDBPointer, err
}

func encodeUndefined(ps *plans, dst []byte, _ Undefined, _ int) ([]byte, Type, error) {
	return dst, TypeUndefined, nil
}
func encodeNull(ps *plans, dst []byte, _ Null, _ int) ([]byte, Type, error) {
	return dst, TypeNull, nil
}
func encodeMinKey(ps *plans, dst []byte, _ MinKey, _ int) ([]byte, Type, error) {
	return dst, TypeMinKey, nil
}
func encodeMaxKey(ps *plans, dst []byte, _ MaxKey, _ int) ([]byte, Type, error) {
	return dst, TypeMaxKey, nil
}

func encodeRaw(ps *plans, dst []byte, v Raw, _ int) ([]byte, Type, error) {
	return encodeWhole(dst, v, TypeEmbeddedDocument)
}

func encodeRawArray(ps *plans, dst []byte, v RawArray, _ int) ([]byte, Type, error) {
	return encodeWhole(dst, v, TypeArray)
}

// encodeWhole copies raw bytes after a look at their outer length: what is inside is the maker's business.
func encodeWhole(dst, v []byte, t Type) ([]byte, Type, error) {
	if v == nil {
		return dst, TypeNull, nil
	}
	return encodeRawValue(nil, dst, RawValue{t, v}, 0)
}

func encodeRawValue(ps *plans, dst []byte, v RawValue, _ int) ([]byte, Type, error) {
	if v.Type == 0 {
		return dst, 0, fmt.Errorf("a RawValue without a type stands for a missing field and cannot be written")
	}
	n := payloadLen(v.Type, v.Value)
	if n != len(v.Value) || (v.Type == TypeEmbeddedDocument || v.Type == TypeArray) && v.Value[n-1] != 0 {
		return dst, 0, fmt.Errorf("the %d raw bytes are not a value of type %v", len(v.Value), v.Type)
	}
	return append(dst, v.Value...), v.Type, nil
}

// encodeNumber writes a json.Number as an integer where it is one, else as a double.
func encodeNumber(ps *plans, dst []byte, v json.Number, depth int) ([]byte, Type, error) {
	if n, err := v.Int64(); err == nil {
		if ps.opts.IntMinSize {
			return encodeMinSize(ps, dst, n, depth)
		}
		return encodeInt64(ps, dst, n, depth)
	}
	f, err := v.Float64()
	if err != nil {
		return dst, 0, fmt.Errorf("the json.Number %q is not a number", string(v))
	}
	return encodeFloat(ps, dst, f, depth)
}

func encodeURL(ps *plans, dst []byte, v url.URL, depth int) ([]byte, Type, error) {
	return encodeString(ps, dst, v.String(), depth)
}
