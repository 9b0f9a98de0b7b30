package bson

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// errMismatch is what a decoder of an own type returns for a BSON type that it does not take.
var errMismatch = errors.New("type mismatch")

func isNull(v RawValue) bool { return v.Type == TypeNull || v.Type == TypeUndefined }

// Unmarshal stores a document into v, a pointer that is not nil or a map that is not nil. Into an any it stores a D.
// Keys without a field are left out; fields without a key keep what they have; null sets the zero value. What is stored
// shares no bytes with data. The error is a *DecodeError; v may be partly set then.
func Unmarshal(data []byte, v any) error {
	if n := length(data); n != len(data) || n < 5 {
		return decodeDone(invalid("length prefix %d, %d bytes", n, len(data)))
	}
	return RawValue{TypeEmbeddedDocument, data}.Unmarshal(v)
}

// UnmarshalValue stores the value of type t and payload data into v, as RawValue.Unmarshal does.
func UnmarshalValue(t Type, data []byte, v any) error { return RawValue{t, data}.Unmarshal(v) }

// Unmarshal stores the value into what v points to; see the function Unmarshal.
func (v RawValue) Unmarshal(to any) error {
	if n := payloadLen(v.Type, v.Value); n != len(v.Value) {
		return decodeDone(invalid("%d bytes are no %v", len(v.Value), v.Type))
	}
	rv := reflect.ValueOf(to)
	switch {
	case !rv.IsValid() || rv.Kind() != reflect.Pointer && rv.Kind() != reflect.Map:
		return decodeDone(fmt.Errorf("cannot decode into %s: it needs a pointer", describe(to)))
	case rv.IsNil():
		return decodeDone(fmt.Errorf("cannot decode into %s", describe(to)))
	case rv.Kind() == reflect.Map:
		p := reflect.New(rv.Type())
		p.Elem().Set(rv) // the same map, at an address
		return decodeDone(codecOf(rv.Type()).dec(v, p.UnsafePointer(), 1))
	}
	return decodeDone(codecOf(rv.Type().Elem()).dec(v, rv.UnsafePointer(), 1))
}

// Any returns the Go value that a D would hold, a copy: D, A, string, ObjectID, DateTime, nil, ... It is nil for malformed
// bytes and for the zero RawValue.
func (v RawValue) Any() any {
	if payloadLen(v.Type, v.Value) != len(v.Value) {
		return nil
	}
	x, err := decodeAny(v, 1, insideD)
	if err != nil {
		return nil
	}
	return x
}

// container says what holds an any, and so what a document in it becomes.
type container uint8

const (
	insideD   container = iota // D
	insideM                    // M
	insideMap                  // map[string]any
)

// decodeAny makes the Go value that stands for v.
func decodeAny(v RawValue, depth int, in container) (any, error) {
	switch v.Type {
	case TypeDouble:
		return orMalformed[float64](v)(v.DoubleOK())
	case TypeString:
		return decodeString(v, TypeString)
	case TypeEmbeddedDocument:
		return decodeDocAny(v.Value, depth, in)
	case TypeArray:
		return decodeArrayAny(v.Value, depth, in)
	case TypeBoolean:
		return orMalformed[bool](v)(v.BooleanOK())
	case TypeNull:
		return nil, nil
	case TypeInt32:
		return orMalformed[int32](v)(v.Int32OK())
	case TypeInt64:
		return orMalformed[int64](v)(v.Int64OK())
	case TypeObjectID:
		return orMalformed[ObjectID](v)(v.ObjectIDOK())
	case TypeDateTime:
		ms, ok := v.DateTimeOK()
		return orMalformed[DateTime](v)(DateTime(ms), ok)
	case TypeTimestamp:
		t, i, ok := v.TimestampOK()
		return orMalformed[Timestamp](v)(Timestamp{t, i}, ok)
	case TypeDecimal128:
		return orMalformed[Decimal128](v)(v.Decimal128OK())
	}
	return decodeRare(v, depth)
}

func orMalformed[T any](v RawValue) func(x T, ok bool) (any, error) {
	return func(x T, ok bool) (any, error) {
		if !ok {
			return nil, malformed(v)
		}
		return x, nil
	}
}

func malformed(v RawValue) error { return invalid("not a %v", v.Type) }

func decodeRare(v RawValue, depth int) (any, error) {
	switch v.Type {
	case TypeBinary:
		return fresh(v, depth, decodeBinary)
	case TypeRegex:
		return fresh(v, depth, decodeRegex)
	case TypeDBPointer:
		return fresh(v, depth, decodeDBPointer)
	case TypeJavaScript:
		return fresh(v, depth, decodeJavaScript)
	case TypeSymbol:
		return fresh(v, depth, decodeSymbol)
	case TypeCodeWithScope:
		return fresh(v, depth, decodeCodeWithScope)
	case TypeUndefined:
		return Undefined{}, nil
	case TypeMinKey:
		return MinKey{}, nil
	case TypeMaxKey:
		return MaxKey{}, nil
	}
	return nil, invalid("%v", v.Type)
}

func fresh[T any](v RawValue, depth int, dec func(RawValue, *T, int) error) (any, error) {
	var x T
	if err := dec(v, &x, depth); err != nil {
		return nil, err
	}
	return x, nil
}

func decodeString(v RawValue, t Type) (string, error) {
	b, ok := v.textBytes(t)
	if !ok {
		return "", malformed(v)
	}
	if !utf8.Valid(b) {
		return "", invalid("string %.60q is not UTF-8", b)
	}
	return string(b), nil
}

func decodeKey(b []byte) (string, error) {
	if !utf8.Valid(b) {
		return "", invalid("key %q is not UTF-8", b)
	}
	return string(b), nil
}

func decodeDocAny(doc []byte, depth int, in container) (any, error) {
	if in == insideD {
		return decodeD(doc, depth)
	}
	m := map[string]any{}
	if err := decodeStringMap(doc, m, depth, in); err != nil {
		return nil, err
	}
	if in == insideM {
		return M(m), nil
	}
	return m, nil
}

// enter checks depth and returns the number of elements, or why the document is malformed.
func enter(doc []byte, depth int) (int, error) {
	if depth > MaxDepth {
		return 0, tooDeep()
	}
	s := scan(doc)
	n := 0
	for s.next() {
		n++
	}
	if s.bad != "" {
		return 0, invalid("%s", s.bad)
	}
	return n, nil
}

func decodeD(doc []byte, depth int) (D, error) {
	n, err := enter(doc, depth)
	if err != nil {
		return nil, err
	}
	d := make(D, 0, n)
	for s := scan(doc); s.next(); {
		key, err := decodeKey(s.key())
		if err != nil {
			return nil, err
		}
		x, err := decodeAny(s.value(), depth+1, insideD)
		if err != nil {
			return nil, decodeUnder(err, key)
		}
		d = append(d, E{key, x})
	}
	return d, nil
}

func decodeStringMap(doc []byte, m map[string]any, depth int, in container) error {
	if _, err := enter(doc, depth); err != nil {
		return err
	}
	for s := scan(doc); s.next(); {
		key, err := decodeKey(s.key())
		if err != nil {
			return err
		}
		x, err := decodeAny(s.value(), depth+1, in)
		if err != nil {
			return decodeUnder(err, key)
		}
		m[key] = x
	}
	return nil
}

func decodeArrayAny(doc []byte, depth int, in container) (A, error) {
	n, err := enter(doc, depth)
	if err != nil {
		return nil, err
	}
	a := make(A, 0, n)
	for s := scan(doc); s.next(); {
		x, err := decodeAny(s.value(), depth+1, in)
		if err != nil {
			return nil, decodeUnder(err, strconv.Itoa(len(a)))
		}
		a = append(a, x)
	}
	return a, nil
}
