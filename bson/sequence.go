package bson

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// slice makes the codec of a slice: of bytes binary, of E a document, of anything else an array. nil is null, an empty
// slice is empty.
func (cc *compiler) slice(t reflect.Type, flags planFlags) (encodeFunc, decodeFunc) {
	switch {
	case t == reflect.TypeFor[[]byte]():
		return plain(encodeBytes), decodeBytes(t, nil)
	case t.Elem() == reflect.TypeFor[byte]():
		return plain(encodeNamedBytes), decodeBytes(t, cc.sliceOf(t, flags))
	case t.Elem() == reflect.TypeFor[E]():
		return cc.dynamic(plain(encodeD), flags), own(encodeD, decodeIntoD).dec
	}
	elem := cc.compile(t.Elem(), flags)
	size := t.Elem().Size()
	enc := func(ps *plans, dst []byte, p place, depth int) ([]byte, Type, error) {
		first, n, ok := p.items()
		if !ok {
			return nothing(dst, TypeArray, ps.opts.NilSliceAsEmpty)
		}
		return encodeItems(ps, dst, first, n, size, elem, depth)
	}
	return enc, cc.sliceOf(t, flags)
}

// sliceOf makes the decoder of an array into a slice.
func (cc *compiler) sliceOf(t reflect.Type, flags planFlags) decodeFunc {
	elem := cc.compile(t.Elem(), flags)
	size, makeItems := t.Elem().Size(), makerOf(t)
	return func(d *decoder, v RawValue, p place, depth int) error {
		if isNull(v) {
			p.value(t).SetZero()
			return nil
		}
		if v.Type != TypeArray {
			return mismatch(v, t)
		}
		n, err := enter(v.Value, depth)
		if err != nil {
			return err
		}
		return decodeItems(d, v.Value, makeItems(p, t, n), size, elem, depth)
	}
}

// makerOf is the way to make slices of type t: package reflect takes longer than the commonest items take to decode.
func makerOf(t reflect.Type) func(p place, t reflect.Type, n int) place {
	switch t.Elem() {
	case reflect.TypeFor[string]():
		return makeSlice[string]
	case reflect.TypeFor[float64]():
		return makeSlice[float64]
	case reflect.TypeFor[int32]():
		return makeSlice[int32]
	case reflect.TypeFor[int64]():
		return makeSlice[int64]
	case reflect.TypeFor[ObjectID]():
		return makeSlice[ObjectID]
	}
	return place.makeItems
}

// encodeItems appends n items as an array. Numbers and strings are written here, other items by their codec.
func encodeItems(ps *plans, dst []byte, first place, n int, size uintptr, elem *codec, depth int) ([]byte, Type, error) {
	if depth > MaxDepth {
		return dst, 0, tooDeep()
	}
	dst, start := BeginDocument(dst)
	for i := range n {
		q := first.item(i, size)
		head := len(dst)
		dst = appendIndex(dst, i)
		var t Type
		var err error
		switch elem.op {
		case opString:
			var ok bool
			if dst, ok = appendText(dst, head, *at[string](q)); !ok {
				return dst, 0, encodeUnder(notUTF8(*at[string](q)), strconv.Itoa(i))
			}
			t = TypeString
		case opFloat64:
			t, dst = TypeDouble, le.AppendUint64(dst, math.Float64bits(*at[float64](q)))
		case opInt64:
			t, dst = TypeInt64, le.AppendUint64(dst, uint64(*at[int64](q)))
		case opInt32:
			t, dst = TypeInt32, le.AppendUint32(dst, uint32(*at[int32](q)))
		case opStruct:
			dst, t, err = elem.record.encode(ps, dst, q, depth+1)
		default:
			dst, t, err = elem.enc(ps, dst, q, depth+1)
		}
		if err != nil {
			return dst, 0, encodeUnder(err, strconv.Itoa(i))
		}
		dst[head] = byte(t)
	}
	return EndDocument(dst, start), TypeArray, nil
}

// decodeItems stores the elements of an array, which the caller has counted and so checked, one after the other.
func decodeItems(d *decoder, array []byte, first place, size uintptr, elem *codec, depth int) error {
	pos := 4
	end := len(array) - 1
	for i := 0; pos < end; i++ {
		t := Type(array[pos])
		z := pos + 2 // the key is an index, which has a digit
		if array[pos+1] == 0 {
			z = pos + 1
		}
		for array[z] != 0 {
			z++
		}
		q := first.item(i, size)
		if elem.op == opString && t == TypeString {
			if text, next := d.stringAt(array, z+1, end); next > 0 {
				*at[string](q), pos = text, next
				continue
			}
		}
		b := array[z+1 : end]
		n := payloadLen(t, b)
		b = b[:n:n]
		pos = z + 1 + n
		switch {
		case elem.op == opFloat64 && t == TypeDouble:
			*at[float64](q) = math.Float64frombits(le.Uint64(b))
			continue
		case elem.op == opInt64 && t == TypeInt64:
			*at[int64](q) = int64(le.Uint64(b))
			continue
		case elem.op == opInt32 && t == TypeInt32:
			*at[int32](q) = int32(le.Uint32(b))
			continue
		}
		if err := elem.dec(d, RawValue{t, b}, q, depth+1); err != nil {
			return decodeUnder(err, strconv.Itoa(i))
		}
	}
	return nil
}

// enter checks depth and returns the number of elements, or why the document is malformed.
func enter(doc []byte, depth int) (int, error) {
	if depth > MaxDepth {
		return 0, tooDeep()
	}
	end := len(doc) - 1
	if doc[end] != 0 {
		return 0, invalid("no terminator")
	}
	n := 0
	for at := 4; at < end; n++ {
		t := Type(doc[at])
		z, _ := keyEnd(doc, at+1)
		if t == 0 || z >= end {
			return 0, whyMalformed(doc)
		}
		size := payloadLen(t, doc[z+1:end])
		if size < 0 {
			return 0, whyMalformed(doc)
		}
		at = z + 1 + size
	}
	return n, nil
}

// whyMalformed walks over a document again, more slowly, to say what is wrong.
func whyMalformed(doc []byte) error {
	s := scan(doc)
	for s.next() {
	}
	return invalid("%s", s.bad)
}

// encodeNamedBytes is for types made of []byte: nil is treated as that of any slice.
func encodeNamedBytes(ps *plans, dst []byte, v []byte, _ int) ([]byte, Type, error) {
	if v == nil && !ps.opts.NilSliceAsEmpty {
		return dst, TypeNull, nil
	}
	return appendBinaryPayload(dst, TypeBinaryGeneric, v), TypeBinary, nil
}

// decodeBytes takes binary without a meaning of its own, and strings. A []byte takes a symbol too; types made of it take an
// array of numbers instead, since they may stand for something else than bytes.
func decodeBytes(t reflect.Type, array decodeFunc) decodeFunc {
	return func(d *decoder, v RawValue, p place, depth int) error {
		var data []byte
		switch v.Type {
		case TypeNull, TypeUndefined:
			p.value(t).SetZero()
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
		case TypeString, TypeSymbol:
			if array != nil && v.Type == TypeSymbol {
				return mismatch(v, t)
			}
			b, ok := v.textBytes(v.Type)
			if !ok {
				return malformed(v)
			}
			data = b
		case TypeArray:
			if array != nil {
				return array(d, v, p, depth)
			}
			fallthrough
		default:
			return mismatch(v, t)
		}
		*at[[]byte](p) = append(make([]byte, 0, len(data)), data...)
		return nil
	}
}

// array makes the codec of an array: of bytes binary, of anything else an array with exactly or at most so many values.
func (cc *compiler) array(t reflect.Type, flags planFlags) (encodeFunc, decodeFunc) {
	if t.Elem() == reflect.TypeFor[byte]() {
		return cc.byteArray(t, flags)
	}
	elem := cc.compile(t.Elem(), flags)
	size := t.Elem().Size()
	enc := func(ps *plans, dst []byte, p place, depth int) ([]byte, Type, error) {
		return encodeItems(ps, dst, p, t.Len(), size, elem, depth)
	}
	return enc, cc.arrayOf(t, flags)
}

// arrayOf makes the decoder of an array into an array, which may be longer.
func (cc *compiler) arrayOf(t reflect.Type, flags planFlags) decodeFunc {
	elem := cc.compile(t.Elem(), flags)
	size := t.Elem().Size()
	return func(d *decoder, v RawValue, p place, depth int) error {
		if v.Type != TypeArray && !isNull(v) {
			return mismatch(v, t)
		}
		p.value(t).SetZero()
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
		return decodeItems(d, v.Value, p, size, elem, depth)
	}
}

// byteArray makes the codec of [N]byte.
func (cc *compiler) byteArray(t reflect.Type, flags planFlags) (encodeFunc, decodeFunc) {
	foreignID := t.Name() != "" && t.Len() == 12
	switch {
	case foreignID && cc.registry.objectIDs[t]:
		return foreignObjectID(t)
	case foreignID:
		refuse := fmt.Errorf("%v looks like another package's ObjectID: convert it to bson.ObjectID, or to [12]byte for binary, or call bson.RegisterObjectIDType[%v]() once", t, t)
		return func(_ *plans, dst []byte, _ place, _ int) ([]byte, Type, error) { return dst, 0, refuse },
			func(_ *decoder, _ RawValue, _ place, _ int) error { return refuse }
	}
	enc := func(_ *plans, dst []byte, p place, _ int) ([]byte, Type, error) {
		return appendBinaryPayload(dst, TypeBinaryGeneric, p.value(t).Bytes()), TypeBinary, nil
	}
	numbers := cc.arrayOf(t, flags)
	dec := func(d *decoder, v RawValue, p place, depth int) error {
		if v.Type == TypeArray || isNull(v) {
			return numbers(d, v, p, depth)
		}
		return decodeByteArray(v, p.value(t).Bytes(), t)
	}
	return enc, dec
}

// foreignObjectID makes the codec of a registered ObjectID type.
func foreignObjectID(t reflect.Type) (encodeFunc, decodeFunc) {
	enc := func(_ *plans, dst []byte, p place, _ int) ([]byte, Type, error) {
		return append(dst, p.value(t).Bytes()...), TypeObjectID, nil
	}
	dec := func(_ *decoder, v RawValue, p place, _ int) error {
		if isNull(v) {
			p.value(t).SetZero()
			return nil
		}
		if v.Type != TypeObjectID {
			return mismatch(v, t)
		}
		copy(p.value(t).Bytes(), v.Value)
		return nil
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
