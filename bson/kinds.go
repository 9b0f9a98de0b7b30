package bson

import (
	"fmt"
	"reflect"
	"unsafe"
)

// byKind returns the codec functions that follow from a type's kind.
func (cc *compiler) byKind(t reflect.Type, flags planFlags) (encodeFunc, decodeFunc) {
	switch t.Kind() {
	case reflect.Pointer:
		return cc.pointer(t, flags)
	case reflect.Interface:
		return cc.iface(t)
	case reflect.Struct:
		return cc.structure(t)
	case reflect.Map:
		return cc.mapping(t, flags)
	case reflect.Slice:
		return cc.slice(t, flags)
	case reflect.Array:
		return cc.array(t, flags)
	case reflect.String:
		return plain(encodeString), decodeText(t)
	case reflect.Bool:
		return plain(encodeBool), decodeBool(t)
	case reflect.Float64:
		return plain(encodeFloat), decodeFloat64(t)
	case reflect.Float32:
		return plain(encodeFloat32), decodeFloat32(t, flags.truncate)
	}
	if enc, dec := integer(t, flags); enc != nil {
		return enc, dec
	}
	return func(dst []byte, _ unsafe.Pointer, _ int) ([]byte, Type, error) {
			return dst, 0, fmt.Errorf("cannot encode a value of type %v", t)
		}, func(v RawValue, _ unsafe.Pointer, _ int) error {
			return mismatch(v, t)
		}
}

// plain makes an encodeFunc for any type that is laid out like T.
func plain[T any](enc func([]byte, T, int) ([]byte, Type, error)) encodeFunc {
	return func(dst []byte, p unsafe.Pointer, depth int) ([]byte, Type, error) {
		return enc(dst, *(*T)(p), depth)
	}
}

func encodeFloat32(dst []byte, v float32, depth int) ([]byte, Type, error) {
	return encodeFloat(dst, float64(v), depth)
}

func integer(t reflect.Type, flags planFlags) (encodeFunc, decodeFunc) {
	cut := flags.truncate
	switch t.Kind() {
	case reflect.Int8:
		return plain(encodeSmall[int8]), decodeInt[int8](t, cut)
	case reflect.Int16:
		return plain(encodeSmall[int16]), decodeInt[int16](t, cut)
	case reflect.Int32:
		return plain(encodeSmall[int32]), decodeInt[int32](t, cut)
	case reflect.Uint8:
		return plain(encodeSmall[uint8]), decodeInt[uint8](t, cut)
	case reflect.Uint16:
		return plain(encodeSmall[uint16]), decodeInt[uint16](t, cut)
	case reflect.Int:
		return plain(encodeInt), decodeInt[int](t, cut)
	case reflect.Int64:
		return sized[int64](flags), decodeInt[int64](t, cut)
	case reflect.Uint32:
		return sized[uint32](flags), decodeInt[uint32](t, cut)
	case reflect.Uint64:
		return sized[uint64](flags), decodeInt[uint64](t, cut)
	case reflect.Uint:
		return sized[uint](flags), decodeInt[uint](t, cut)
	}
	return nil, nil
}

func sized[T int64 | uint | uint32 | uint64](flags planFlags) encodeFunc {
	if flags.minSize {
		return plain(encodeMinSize[T])
	}
	return plain(encodeWide[T])
}

func (cc *compiler) pointer(t reflect.Type, flags planFlags) (encodeFunc, decodeFunc) {
	elem := cc.compile(t.Elem(), flags)
	more := indirect(t.Elem())
	enc := func(dst []byte, p unsafe.Pointer, depth int) ([]byte, Type, error) {
		q := *(*unsafe.Pointer)(p)
		if q == nil {
			return dst, TypeNull, nil
		}
		if depth > MaxDepth+1 {
			return dst, 0, tooDeep()
		}
		return elem.enc(dst, q, depth+more)
	}
	dec := func(v RawValue, p unsafe.Pointer, depth int) error {
		if isNull(v) && t.Elem() != reflect.TypeFor[RawValue]() {
			*(*unsafe.Pointer)(p) = nil
			return nil
		}
		if depth > MaxDepth+1 {
			return tooDeep()
		}
		if *(*unsafe.Pointer)(p) == nil {
			*(*unsafe.Pointer)(p) = reflect.New(t.Elem()).UnsafePointer()
		}
		return elem.dec(v, *(*unsafe.Pointer)(p), depth+more)
	}
	return enc, dec
}

func (cc *compiler) iface(t reflect.Type) (encodeFunc, decodeFunc) {
	if t.NumMethod() > 0 {
		enc := func(dst []byte, p unsafe.Pointer, depth int) ([]byte, Type, error) {
			return appendAny(dst, reflect.NewAt(t, p).Elem().Interface(), depth)
		}
		dec := func(v RawValue, p unsafe.Pointer, _ int) error {
			if isNull(v) {
				reflect.NewAt(t, p).Elem().SetZero()
				return nil
			}
			return fmt.Errorf("cannot decode %v into the interface %v: which type to make is not known", v.Type, t)
		}
		return enc, dec
	}
	dec := func(v RawValue, p unsafe.Pointer, depth int) (err error) {
		*(*any)(p), err = decodeAny(v, depth, insideD)
		return err
	}
	return plain(appendAny), dec
}
