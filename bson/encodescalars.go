package bson

import (
	"fmt"
	"math"
)

// The encoders of Go's own kinds.

func encodeString(_ *plans, dst []byte, s string, _ int) ([]byte, Type, error) {
	if !validText(bytesOf(s)) {
		return dst, 0, notUTF8(s)
	}
	return appendStringPayload(dst, s), TypeString, nil
}

func notUTF8(s string) error { return fmt.Errorf("the string %.60q is not UTF-8", s) }

func encodeBool(_ *plans, dst []byte, v bool, _ int) ([]byte, Type, error) {
	return append(dst, boolByte(v)), TypeBoolean, nil
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// encodeSmall is for the integers that always fit an int32.
func encodeSmall[T int8 | int16 | int32 | uint8 | uint16](_ *plans, dst []byte, v T, _ int) ([]byte, Type, error) {
	return le.AppendUint32(dst, uint32(int32(v))), TypeInt32, nil
}

// encodeInt writes an int, the type of untyped constants, as int32 where it fits.
func encodeInt(ps *plans, dst []byte, v int, depth int) ([]byte, Type, error) {
	return encodeMinSize(ps, dst, v, depth)
}

func encodeMinSize[T int | int64 | uint | uint32 | uint64](ps *plans, dst []byte, v T, depth int) ([]byte, Type, error) {
	if n := int64(v); n == int64(int32(n)) && (n >= 0) == (v >= 0) {
		return encodeSmall(ps, dst, int32(n), depth)
	}
	return encodeWide(ps, dst, v, depth)
}

func encodeInt64(_ *plans, dst []byte, v int64, _ int) ([]byte, Type, error) {
	return le.AppendUint64(dst, uint64(v)), TypeInt64, nil
}

func encodeWide[T int | int64 | uint | uint32 | uint64](ps *plans, dst []byte, v T, depth int) ([]byte, Type, error) {
	if v > 0 && uint64(v) > math.MaxInt64 {
		return dst, 0, fmt.Errorf("%d does not fit a 64-bit integer of BSON, which is signed", v)
	}
	return encodeInt64(ps, dst, int64(v), depth)
}

func encodeFloat(_ *plans, dst []byte, v float64, _ int) ([]byte, Type, error) {
	return le.AppendUint64(dst, math.Float64bits(v)), TypeDouble, nil
}

func encodeFloat32(ps *plans, dst []byte, v float32, depth int) ([]byte, Type, error) {
	return encodeFloat(ps, dst, float64(v), depth)
}

// appendElement appends one element of any value.
func (ps *plans) appendElement(dst []byte, key string, v any, depth int) ([]byte, error) {
	start := len(dst)
	dst, err := appendKey(dst, key)
	if err != nil {
		return dst, err
	}
	dst, t, err := ps.appendAny(dst, v, depth)
	if err != nil {
		return dst, encodeUnder(err, key)
	}
	dst[start] = byte(t)
	return dst, nil
}

func encodeM(ps *plans, dst []byte, m M, depth int) ([]byte, Type, error) {
	return encodeStringMap(ps, dst, m, depth)
}

func encodeA(ps *plans, dst []byte, a A, depth int) ([]byte, Type, error) {
	return encodeAnys(ps, dst, a, depth)
}

// nothing is what a nil slice or map becomes: null, or an empty document or array where the options want that.
func nothing(dst []byte, t Type, asEmpty bool) ([]byte, Type, error) {
	if asEmpty {
		return append(dst, emptyDoc...), t, nil
	}
	return dst, TypeNull, nil
}
