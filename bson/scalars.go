package bson

import (
	"fmt"
	"math"
	"reflect"
)

// The decoders of Go's own kinds. null sets the zero value of each.

// decodeText takes strings, symbols, and binary without a meaning of its own.
func decodeText(t reflect.Type) decodeFunc {
	return func(d *decoder, v RawValue, p place, _ int) (err error) {
		switch v.Type {
		case TypeString, TypeSymbol:
			*at[string](p), err = d.text(v, v.Type)
			return err
		case TypeBinary:
			if subtype, data, ok := v.BinaryOK(); ok && plainBytes(subtype) {
				*at[string](p) = string(data)
				return nil
			}
		case TypeObjectID:
			if d.ps.opts.ObjectIDAsHexString {
				*at[string](p) = v.ObjectID().Hex()
				return nil
			}
		case TypeNull, TypeUndefined:
			*at[string](p) = ""
			return nil
		}
		return mismatch(v, t)
	}
}

// plainBytes reports whether a subtype says nothing about the bytes, so that they may stand without it.
func plainBytes(subtype byte) bool {
	return subtype == TypeBinaryGeneric || subtype == TypeBinaryBinaryOld
}

// decodeBool takes numbers too: false is what equals zero.
func decodeBool(t reflect.Type) decodeFunc {
	return func(d *decoder, v RawValue, p place, _ int) error {
		var x bool
		switch v.Type {
		case TypeBoolean:
			b, ok := v.BooleanOK()
			if !ok {
				return malformed(v)
			}
			x = b
		case TypeInt32, TypeInt64, TypeDouble:
			f, _ := v.AsFloat64OK()
			x = f != 0
		case TypeNull, TypeUndefined:
		default:
			return mismatch(v, t)
		}
		*at[bool](p) = x
		return nil
	}
}

// toFloat takes every number but decimals, and booleans as 0 and 1.
func toFloat(v RawValue, t reflect.Type) (float64, error) {
	switch v.Type {
	case TypeDouble, TypeInt32, TypeInt64:
		f, _ := v.AsFloat64OK()
		return f, nil
	case TypeBoolean:
		n, err := toInt64(v, t, false)
		return float64(n), err
	case TypeNull, TypeUndefined:
		return 0, nil
	}
	return 0, mismatch(v, t)
}

func decodeFloat64(t reflect.Type) decodeFunc {
	return func(d *decoder, v RawValue, p place, _ int) error {
		f, err := toFloat(v, t)
		if err == nil {
			*at[float64](p) = f
		}
		return err
	}
}

func decodeFloat32(t reflect.Type, truncate bool) decodeFunc {
	return func(d *decoder, v RawValue, p place, _ int) error {
		f, err := toFloat(v, t)
		if err != nil {
			return err
		}
		if !truncate && !math.IsNaN(f) && float64(float32(f)) != f {
			return fmt.Errorf("cannot decode %v %v into %v: it would lose digits (the tag truncate allows it)", v.Type, f, t)
		}
		*at[float32](p) = float32(f)
		return nil
	}
}

// toInt64 takes every number but decimals, and booleans as 0 and 1. Doubles must be whole, unless truncate.
func toInt64(v RawValue, t reflect.Type, truncate bool) (int64, error) {
	switch v.Type {
	case TypeInt32, TypeInt64:
		n, _ := v.AsInt64OK()
		return n, nil
	case TypeDouble:
		f, _ := v.DoubleOK()
		if math.IsNaN(f) || f < -1<<63 || f >= 1<<63 {
			return 0, fmt.Errorf("cannot decode double %v into %v: out of range", f, t)
		}
		if f != math.Trunc(f) && !truncate {
			return 0, fmt.Errorf("cannot decode double %v into %v: it has a fraction (the tag truncate allows it)", f, t)
		}
		return int64(f), nil
	case TypeBoolean:
		b, ok := v.BooleanOK()
		if !ok {
			return 0, malformed(v)
		}
		if b {
			return 1, nil
		}
		return 0, nil
	case TypeNull, TypeUndefined:
		return 0, nil
	}
	return 0, mismatch(v, t)
}

func decodeInt[T int | int8 | int16 | int32 | int64 | uint | uint8 | uint16 | uint32 | uint64](t reflect.Type, truncate bool) decodeFunc {
	return func(d *decoder, v RawValue, p place, _ int) error {
		n, err := toInt64(v, t, truncate)
		if err != nil {
			return err
		}
		x := T(n)
		if int64(x) != n || (x < 0) != (n < 0) {
			return fmt.Errorf("cannot decode %v %d into %v: out of range", v.Type, n, t)
		}
		*at[T](p) = x
		return nil
	}
}
