package bson

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
	"unsafe"
)

// Marshal returns v as a document. v is a D, an M, a Raw, a struct, a map with string keys, a pointer to one of them,
// or a Marshaler. A nil v is an error: write an empty document as D{}. The error is an *EncodeError.
func Marshal(v any) ([]byte, error) {
	p := scratch.Get().(*[]byte)
	out, err := Append((*p)[:0], v)
	var exact []byte
	if err == nil {
		exact = bytes.Clone(out)
	}
	if cap(out) <= maxScratch {
		*p = out
		scratch.Put(p)
	}
	return exact, err
}

// scratch holds buffers that Marshal encodes into before it knows the size. Larger ones are left to the collector, so
// that one huge document does not stay in memory.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

const maxScratch = 64 << 10

// Append appends v as a document to dst, without intermediate copies; see Marshal. On an error dst comes back as it was.
func Append(dst []byte, v any) ([]byte, error) {
	out, t, err := appendAny(dst, v, 1)
	if err == nil && t != TypeEmbeddedDocument {
		err = fmt.Errorf("cannot encode %s as a document: it becomes %v", describe(v), t)
	}
	if err != nil {
		return dst, encodeDone(err)
	}
	return out, nil
}

func describe(v any) string {
	if v == nil {
		return "nil"
	}
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer || rv.Kind() == reflect.Map || rv.Kind() == reflect.Slice {
		if rv.IsNil() {
			return fmt.Sprintf("a nil %T", v)
		}
	}
	return fmt.Sprintf("a %T", v)
}

// AppendAny appends one element made of any Go value to dst. On an error dst comes back as it was.
func AppendAny(dst []byte, key string, v any) ([]byte, error) {
	out, err := appendElement(dst, key, v, 2)
	if err != nil {
		return dst, encodeDone(err)
	}
	return out, nil
}

// ValueOf returns any Go value as BSON. The error is an *EncodeError.
func ValueOf(v any) (RawValue, error) {
	out, t, err := appendAny(nil, v, 1)
	if err != nil {
		return RawValue{}, encodeDone(err)
	}
	return RawValue{t, out}, nil
}

// MarshalValue is ValueOf with type and payload apart.
func MarshalValue(v any) (Type, []byte, error) {
	rv, err := ValueOf(v)
	return rv.Type, rv.Value, err
}

func checkKey(key string) error {
	if strings.IndexByte(key, 0) >= 0 {
		return fmt.Errorf("the key %q holds a NUL byte", key)
	}
	if !utf8.ValidString(key) {
		return fmt.Errorf("the key %q is not UTF-8", key)
	}
	return nil
}

func appendElement(dst []byte, key string, v any, depth int) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return dst, err
	}
	at := len(dst)
	dst, t, err := appendAny(AppendHeader(dst, 0, key), v, depth)
	if err != nil {
		return dst, encodeUnder(err, key)
	}
	dst[at] = byte(t)
	return dst, nil
}

// appendAny appends the payload of v. depth is what a document written here counts as.
// The cases are for speed: codecOf knows all these types too.
func appendAny(dst []byte, v any, depth int) ([]byte, Type, error) {
	switch x := v.(type) {
	case nil:
		return dst, TypeNull, nil
	case string:
		return encodeString(dst, x, depth)
	case int:
		return encodeInt(dst, x, depth)
	case int32:
		return encodeSmall(dst, x, depth)
	case int64:
		return encodeInt64(dst, x, depth)
	case float64:
		return encodeFloat(dst, x, depth)
	case bool:
		return encodeBool(dst, x, depth)
	case ObjectID:
		return encodeObjectID(dst, x, depth)
	case D:
		return encodeD(dst, x, depth)
	case M:
		return encodeStringMap(dst, x, depth)
	case A:
		return encodeAnys(dst, x, depth)
	case Raw:
		return encodeRaw(dst, x, depth)
	case RawValue:
		return encodeRawValue(dst, x, depth)
	case RawArray:
		return encodeRawArray(dst, x, depth)
	case DateTime:
		return encodeDateTime(dst, x, depth)
	case time.Time:
		return encodeTime(dst, x, depth)
	case Timestamp:
		return encodeTimestamp(dst, x, depth)
	case []byte:
		return encodeBytes(dst, x, depth)
	case Binary:
		return encodeBinary(dst, x, depth)
	}
	return appendReflected(dst, v, depth)
}

// appendReflected appends a value by the compiled codec of its type.
func appendReflected(dst []byte, v any, depth int) ([]byte, Type, error) {
	rv := reflect.ValueOf(v)
	if rv.Kind() == reflect.Pointer {
		if rv.IsNil() {
			return dst, TypeNull, nil
		}
		if depth > MaxDepth+1 { // the one is for pointers to scalars in the deepest document
			return dst, 0, tooDeep()
		}
		elem := rv.Type().Elem()
		return codecOf(elem).enc(dst, rv.UnsafePointer(), depth+indirect(elem))
	}
	c := codecOf(rv.Type())
	if c.direct || c.pointerHooks {
		// The word in the interface is the value itself, or a method with a pointer receiver could write to it.
		cp := reflect.New(rv.Type())
		cp.Elem().Set(rv)
		return c.enc(dst, cp.UnsafePointer(), depth)
	}
	return c.enc(dst, dataPointer(v), depth)
}

// dataPointer returns the address of the value inside an interface. It may only be read from.
func dataPointer(v any) unsafe.Pointer { return (*[2]unsafe.Pointer)(unsafe.Pointer(&v))[1] }

// indirect counts pointers to pointers and to interfaces as depth: such values can hold themselves without a document
// in between.
func indirect(elem reflect.Type) int {
	if elem.Kind() == reflect.Pointer || elem.Kind() == reflect.Interface {
		return 1
	}
	return 0
}

func encodeString(dst []byte, s string, _ int) ([]byte, Type, error) {
	if !utf8.ValidString(s) {
		return dst, 0, fmt.Errorf("the string %.60q is not UTF-8", s)
	}
	return appendStringPayload(dst, s), TypeString, nil
}

func encodeBool(dst []byte, v bool, _ int) ([]byte, Type, error) {
	if v {
		return append(dst, 1), TypeBoolean, nil
	}
	return append(dst, 0), TypeBoolean, nil
}

// encodeSmall is for the integers that always fit an int32.
func encodeSmall[T int8 | int16 | int32 | uint8 | uint16](dst []byte, v T, _ int) ([]byte, Type, error) {
	return binary.LittleEndian.AppendUint32(dst, uint32(int32(v))), TypeInt32, nil
}

// encodeInt writes an int, the type of untyped constants, as int32 where it fits.
func encodeInt(dst []byte, v int, depth int) ([]byte, Type, error) {
	return encodeMinSize(dst, v, depth)
}

func encodeMinSize[T int | int64 | uint | uint32 | uint64](dst []byte, v T, depth int) ([]byte, Type, error) {
	if n := int64(v); n == int64(int32(n)) && (n >= 0) == (v >= 0) {
		return encodeSmall(dst, int32(n), depth)
	}
	return encodeWide(dst, v, depth)
}

func encodeInt64(dst []byte, v int64, _ int) ([]byte, Type, error) {
	return binary.LittleEndian.AppendUint64(dst, uint64(v)), TypeInt64, nil
}

func encodeWide[T int | int64 | uint | uint32 | uint64](dst []byte, v T, depth int) ([]byte, Type, error) {
	if v > 0 && uint64(v) > math.MaxInt64 {
		return dst, 0, fmt.Errorf("%d does not fit a 64-bit integer of BSON, which is signed", v)
	}
	return encodeInt64(dst, int64(v), depth)
}

func encodeFloat(dst []byte, v float64, _ int) ([]byte, Type, error) {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v)), TypeDouble, nil
}

func encodeD(dst []byte, d D, depth int) ([]byte, Type, error) {
	if d == nil {
		return dst, TypeNull, nil
	}
	if depth > MaxDepth {
		return dst, 0, tooDeep()
	}
	dst, start := BeginDocument(dst)
	for i := range d {
		var err error
		if dst, err = appendElement(dst, d[i].Key, d[i].Value, depth+1); err != nil {
			return dst, 0, err
		}
	}
	return EndDocument(dst, start), TypeEmbeddedDocument, nil
}

func encodeStringMap(dst []byte, m map[string]any, depth int) ([]byte, Type, error) {
	if m == nil {
		return dst, TypeNull, nil
	}
	if depth > MaxDepth {
		return dst, 0, tooDeep()
	}
	dst, start := BeginDocument(dst)
	for k, v := range m {
		var err error
		if dst, err = appendElement(dst, k, v, depth+1); err != nil {
			return dst, 0, err
		}
	}
	return EndDocument(dst, start), TypeEmbeddedDocument, nil
}

func encodeAnys(dst []byte, a []any, depth int) ([]byte, Type, error) {
	if a == nil {
		return dst, TypeNull, nil
	}
	if depth > MaxDepth {
		return dst, 0, tooDeep()
	}
	dst, start := BeginDocument(dst)
	for i := range a {
		at := len(dst)
		var t Type
		var err error
		if dst, t, err = appendAny(appendIndex(dst, i), a[i], depth+1); err != nil {
			return dst, 0, encodeUnder(err, strconv.Itoa(i))
		}
		dst[at] = byte(t)
	}
	return EndDocument(dst, start), TypeArray, nil
}

// appendIndex appends the header of an array's element, its type still zero.
func appendIndex(dst []byte, i int) []byte {
	dst = append(dst, 0)
	dst = strconv.AppendInt(dst, int64(i), 10)
	return append(dst, 0)
}
