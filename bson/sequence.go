package bson

import (
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"unsafe"
)

// sliceHeader is how Go lays out a slice.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// slice makes the codec of a slice: of bytes binary, of E a document, of anything else an array. nil is null, an empty
// slice is empty.
func (cc *compiler) slice(t reflect.Type, flags planFlags) (encodeFunc, decodeFunc) {
	switch {
	case t.Elem().Kind() == reflect.Uint8 && !hasHooks(t.Elem()):
		return plain(encodeBytes), decodeBytes(t)
	case t.Elem() == reflect.TypeFor[E]():
		return plain(encodeD), own(encodeD, decodeIntoD).dec
	}
	elem := cc.compile(t.Elem(), flags)
	size := t.Elem().Size()
	enc := func(dst []byte, p unsafe.Pointer, depth int) ([]byte, Type, error) {
		h := (*sliceHeader)(p)
		if h.data == nil {
			return dst, TypeNull, nil
		}
		return encodeItems(dst, h.data, h.len, size, elem, depth)
	}
	dec := func(v RawValue, p unsafe.Pointer, depth int) error {
		if isNull(v) {
			*(*sliceHeader)(p) = sliceHeader{}
			return nil
		}
		if v.Type != TypeArray {
			return mismatch(v, t)
		}
		n, err := enter(v.Value, depth)
		if err != nil {
			return err
		}
		// Always a new array: the old one may be in the hands of whoever decoded into this variable before.
		made := reflect.MakeSlice(t, n, n)
		if err := decodeItems(v.Value, made.UnsafePointer(), size, elem, depth); err != nil {
			return err
		}
		reflect.NewAt(t, p).Elem().Set(made)
		return nil
	}
	return enc, dec
}

func encodeItems(dst []byte, data unsafe.Pointer, n int, size uintptr, elem *codec, depth int) ([]byte, Type, error) {
	if depth > MaxDepth {
		return dst, 0, tooDeep()
	}
	dst, start := BeginDocument(dst)
	for i := range n {
		at := len(dst)
		var t Type
		var err error
		dst, t, err = elem.enc(appendIndex(dst, i), unsafe.Add(data, uintptr(i)*size), depth+1)
		if err != nil {
			return dst, 0, encodeUnder(err, strconv.Itoa(i))
		}
		dst[at] = byte(t)
	}
	return EndDocument(dst, start), TypeArray, nil
}

// decodeItems stores the elements of an array, which the caller has counted, one after the other.
func decodeItems(array []byte, data unsafe.Pointer, size uintptr, elem *codec, depth int) error {
	s := scan(array)
	for i := 0; s.next(); i++ {
		if err := elem.dec(s.value(), unsafe.Add(data, uintptr(i)*size), depth+1); err != nil {
			return decodeUnder(err, strconv.Itoa(i))
		}
	}
	return nil
}

// decodeBytes takes binary without a meaning of its own, and strings.
func decodeBytes(t reflect.Type) decodeFunc {
	return func(v RawValue, p unsafe.Pointer, _ int) error {
		var data []byte
		switch v.Type {
		case TypeNull, TypeUndefined:
			*(*[]byte)(p) = nil
			return nil
		case TypeBinary:
			subtype, b, ok := v.BinaryOK()
			if !ok {
				return malformed(v)
			}
			if !plainBytes(subtype) {
				return fmt.Errorf("cannot decode binary of subtype %d into %v, which would lose the subtype: use bson.Binary", subtype, t)
			}
			data = b
		case TypeString:
			b, ok := v.textBytes(TypeString)
			if !ok {
				return malformed(v)
			}
			data = b
		default:
			return mismatch(v, t)
		}
		*(*[]byte)(p) = append(make([]byte, 0, len(data)), data...)
		return nil
	}
}

// array makes the codec of an array: of bytes binary, of anything else an array with exactly or at most so many values.
func (cc *compiler) array(t reflect.Type, flags planFlags) (encodeFunc, decodeFunc) {
	if t.Elem().Kind() == reflect.Uint8 && !hasHooks(t.Elem()) {
		return byteArray(t)
	}
	elem := cc.compile(t.Elem(), flags)
	size := t.Elem().Size()
	enc := func(dst []byte, p unsafe.Pointer, depth int) ([]byte, Type, error) {
		return encodeItems(dst, p, t.Len(), size, elem, depth)
	}
	dec := func(v RawValue, p unsafe.Pointer, depth int) error {
		if v.Type != TypeArray && !isNull(v) {
			return mismatch(v, t)
		}
		reflect.NewAt(t, p).Elem().SetZero()
		if isNull(v) {
			return nil
		}
		n, err := enter(v.Value, depth)
		if err != nil {
			return err
		}
		if n > t.Len() {
			return fmt.Errorf("cannot decode an array of %d values into %v", n, t)
		}
		return decodeItems(v.Value, p, size, elem, depth)
	}
	return enc, dec
}

// objectIDTypes are the types that RegisterObjectIDType was told: reflect.Type -> struct{}.
var objectIDTypes sync.Map

// RegisterObjectIDType makes T, another package's ObjectID, be written and read as one. Unregistered, such a type is an
// error, because nothing tells it from twelve bytes of something else. It may be called at any time, from any goroutine.
func RegisterObjectIDType[T ~[12]byte]() {
	objectIDTypes.Store(reflect.TypeFor[T](), struct{}{})
}

// byteArray makes the codec of [N]byte.
func byteArray(t reflect.Type) (encodeFunc, decodeFunc) {
	n := t.Len()
	foreignID := t.Name() != "" && n == 12
	refuse := fmt.Errorf("%v looks like another package's ObjectID: convert it to bson.ObjectID, or to [12]byte for binary, or call bson.RegisterObjectIDType[%v]() once", t, t)
	enc := func(dst []byte, p unsafe.Pointer, _ int) ([]byte, Type, error) {
		data := unsafe.Slice((*byte)(p), n)
		if foreignID {
			if _, ok := objectIDTypes.Load(t); !ok {
				return dst, 0, refuse
			}
			return append(dst, data...), TypeObjectID, nil
		}
		return appendBinaryPayload(dst, TypeBinaryGeneric, data), TypeBinary, nil
	}
	dec := func(v RawValue, p unsafe.Pointer, depth int) error {
		to := unsafe.Slice((*byte)(p), n)
		if isNull(v) {
			clear(to)
			return nil
		}
		if foreignID {
			if _, ok := objectIDTypes.Load(t); !ok {
				return refuse
			}
			if v.Type != TypeObjectID {
				return mismatch(v, t)
			}
			copy(to, v.Value)
			return nil
		}
		return decodeByteArray(v, to, t)
	}
	return enc, dec
}

// decodeByteArray takes binary of exactly the array's length; a UUID goes into 16 bytes too.
func decodeByteArray(v RawValue, to []byte, t reflect.Type) error {
	if v.Type != TypeBinary {
		return mismatch(v, t)
	}
	subtype, data, ok := v.BinaryOK()
	if !ok {
		return malformed(v)
	}
	if !plainBytes(subtype) && (subtype != TypeBinaryUUID || len(to) != 16) || len(data) != len(to) {
		return fmt.Errorf("cannot decode binary of subtype %d and %d bytes into %v", subtype, len(data), t)
	}
	copy(to, data)
	return nil
}
