package bson

import (
	"fmt"
	"math"
	"slices"
)

// The element types of a Vector.
const (
	Int8Vector      byte = 0x03
	Float32Vector   byte = 0x27
	PackedBitVector byte = 0x10
)

// Vector is a list of numbers of one type, packed into binary of subtype 9: see the specification bson-binary-vector. The
// zero Vector has no type and cannot be written.
type Vector struct {
	kind    byte
	ints    []int8
	floats  []float32
	bits    []byte
	padding uint8
}

// NewVector returns a Vector that shares data.
func NewVector[T int8 | float32](data []T) Vector {
	switch x := any(data).(type) {
	case []int8:
		return Vector{kind: Int8Vector, ints: x}
	case []float32:
		return Vector{kind: Float32Vector, floats: x}
	}
	panic("unreachable: T is one of two types")
}

// NewPackedBitVector returns a Vector of bits, the first being the highest of the first byte. padding, at most 7, is how
// many of the lowest bits of the last byte do not count: they must be zero. The Vector shares bits.
func NewPackedBitVector(bits []byte, padding uint8) (Vector, error) {
	switch {
	case padding > 7:
		return Vector{}, fmt.Errorf("bson: a vector of bits cannot have a padding of %d: at most 7", padding)
	case len(bits) == 0 && padding > 0:
		return Vector{}, fmt.Errorf("bson: an empty vector of bits cannot have a padding of %d", padding)
	case len(bits) > 0 && bits[len(bits)-1]&(1<<padding-1) != 0:
		return Vector{}, fmt.Errorf("bson: the %d padding bits of a vector must be zero, its last byte is 0x%02x", padding, bits[len(bits)-1])
	}
	return Vector{kind: PackedBitVector, bits: bits, padding: padding}, nil
}

// NewVectorFromBinary unpacks a binary of subtype 9.
func NewVectorFromBinary(b Binary) (Vector, error) {
	if b.Subtype != TypeBinaryVector {
		return Vector{}, fmt.Errorf("bson: binary of subtype %d is no vector, which has subtype %d", b.Subtype, TypeBinaryVector)
	}
	if len(b.Data) < 2 {
		return Vector{}, fmt.Errorf("bson: a vector needs at least 2 bytes, this one has %d", len(b.Data))
	}
	kind, padding, data := b.Data[0], b.Data[1], b.Data[2:]
	if kind == PackedBitVector {
		return NewPackedBitVector(slices.Clone(data), padding)
	}
	if padding != 0 {
		return Vector{}, fmt.Errorf("bson: only a vector of bits can have a padding, this one is of type 0x%02x", kind)
	}
	switch kind {
	case Int8Vector:
		ints := make([]int8, len(data))
		for i, c := range data {
			ints[i] = int8(c)
		}
		return NewVector(ints), nil
	case Float32Vector:
		if len(data)%4 != 0 {
			return Vector{}, fmt.Errorf("bson: a vector of float32 needs four bytes for each, this one has %d", len(data))
		}
		floats := make([]float32, len(data)/4)
		for i := range floats {
			floats[i] = math.Float32frombits(le.Uint32(data[4*i:]))
		}
		return NewVector(floats), nil
	}
	return Vector{}, fmt.Errorf("bson: a vector of the unknown type 0x%02x", kind)
}

// Type returns the type of the elements: Int8Vector, Float32Vector or PackedBitVector; 0 for the zero Vector.
func (v Vector) Type() byte { return v.kind }

// Int8OK returns the elements of a vector of int8, shared.
func (v Vector) Int8OK() ([]int8, bool) { return v.ints, v.kind == Int8Vector }

// Float32OK returns the elements of a vector of float32, shared.
func (v Vector) Float32OK() ([]float32, bool) { return v.floats, v.kind == Float32Vector }

// PackedBitOK returns the bytes of a vector of bits, shared, and its padding.
func (v Vector) PackedBitOK() (bits []byte, padding uint8, ok bool) {
	return v.bits, v.padding, v.kind == PackedBitVector
}

// Int8 is Int8OK that panics for another type.
func (v Vector) Int8() []int8 {
	v.must(Int8Vector)
	return v.ints
}

// Float32 is Float32OK that panics for another type.
func (v Vector) Float32() []float32 {
	v.must(Float32Vector)
	return v.floats
}

// PackedBit is PackedBitOK that panics for another type.
func (v Vector) PackedBit() (bits []byte, padding uint8) {
	v.must(PackedBitVector)
	return v.bits, v.padding
}

func (v Vector) must(kind byte) {
	if v.kind != kind {
		panic(fmt.Sprintf("bson: a vector of type 0x%02x, not 0x%02x", v.kind, kind))
	}
}

// Binary packs the vector.
func (v Vector) Binary() Binary {
	data := []byte{v.kind, v.padding}
	for _, n := range v.ints {
		data = append(data, byte(n))
	}
	for _, f := range v.floats {
		data = le.AppendUint32(data, math.Float32bits(f))
	}
	return Binary{TypeBinaryVector, append(data, v.bits...)}
}

func encodeVector(ps *plans, dst []byte, v Vector, depth int) ([]byte, Type, error) {
	if v.kind == 0 {
		return dst, 0, fmt.Errorf("the zero Vector has no type and cannot be written")
	}
	return encodeBinary(ps, dst, v.Binary(), depth)
}

func decodeVector(_ *decoder, v RawValue, p *Vector, _ int) error {
	subtype, data, ok := v.BinaryOK()
	if !ok {
		return errMismatch
	}
	x, err := NewVectorFromBinary(Binary{subtype, data})
	if err == nil {
		*p = x
	}
	return err
}
