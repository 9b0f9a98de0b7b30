package bson

import (
	"fmt"
	"reflect"
)

// byKind gives a codec what follows from its type's kind.
func (cc *compiler) byKind(c *codec, flags planFlags) {
	t := c.typ
	switch t.Kind() {
	case reflect.Pointer:
		cc.pointer(c, flags)
	case reflect.Interface:
		c.enc, c.dec = cc.iface(t, flags)
	case reflect.Struct:
		cc.structure(c, flags)
	case reflect.Map:
		c.enc, c.dec = cc.mapping(t, flags)
	case reflect.Slice:
		c.enc, c.dec = cc.slice(t, flags)
	case reflect.Array:
		c.enc, c.dec = cc.array(t, flags)
	case reflect.String:
		c.enc, c.dec, c.op = plain(encodeString), decodeText(t), opString
	case reflect.Bool:
		c.enc, c.dec, c.op = plain(encodeBool), decodeBool(t), opBool
	case reflect.Float64:
		c.enc, c.dec, c.op = plain(encodeFloat), decodeFloat64(t), opFloat64
	case reflect.Float32:
		c.enc, c.dec = plain(encodeFloat32), decodeFloat32(t, flags.truncate)
	default:
		c.integer(flags)
	}
	if c.enc == nil {
		c.enc = func(_ *plans, dst []byte, _ place, _ int) ([]byte, Type, error) {
			return dst, 0, fmt.Errorf("cannot encode a value of type %v", t)
		}
		c.dec = func(_ *decoder, v RawValue, _ place, _ int) error { return mismatch(v, t) }
	}
}

// plain makes an encodeFunc for any type whose underlying type is T.
func plain[T any](enc func(*plans, []byte, T, int) ([]byte, Type, error)) encodeFunc {
	return func(ps *plans, dst []byte, p place, depth int) ([]byte, Type, error) {
		return enc(ps, dst, *at[T](p), depth)
	}
}

func (c *codec) integer(flags planFlags) {
	t, cut := c.typ, flags.truncate
	switch t.Kind() {
	case reflect.Int8:
		c.enc, c.dec = plain(encodeSmall[int8]), decodeInt[int8](t, cut)
	case reflect.Int16:
		c.enc, c.dec = plain(encodeSmall[int16]), decodeInt[int16](t, cut)
	case reflect.Int32:
		c.enc, c.dec, c.op = plain(encodeSmall[int32]), decodeInt[int32](t, cut), opInt32
	case reflect.Uint8:
		c.enc, c.dec = plain(encodeSmall[uint8]), decodeInt[uint8](t, cut)
	case reflect.Uint16:
		c.enc, c.dec = plain(encodeSmall[uint16]), decodeInt[uint16](t, cut)
	case reflect.Int:
		c.enc, c.dec, c.op = plain(encodeInt), decodeInt[int](t, cut), opInt
	case reflect.Int64:
		c.enc, c.dec = sized[int64](flags), decodeInt[int64](t, cut)
		if !flags.minSize {
			c.op = opInt64
		}
	case reflect.Uint32:
		c.enc, c.dec = sized[uint32](flags), decodeInt[uint32](t, cut)
	case reflect.Uint64:
		c.enc, c.dec = sized[uint64](flags), decodeInt[uint64](t, cut)
	case reflect.Uint:
		c.enc, c.dec = sized[uint](flags), decodeInt[uint](t, cut)
	}
}

func sized[T int64 | uint | uint32 | uint64](flags planFlags) encodeFunc {
	if flags.minSize {
		return plain(encodeMinSize[T])
	}
	return plain(encodeWide[T])
}

// pointer makes the codec of a pointer: nil is null.
func (cc *compiler) pointer(c *codec, flags planFlags) {
	t := c.typ.Elem()
	elem := cc.compile(t, flags)
	more := 0
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		more = 1
	}
	c.elem, c.more = elem, more
	c.enc = func(ps *plans, dst []byte, p place, depth int) ([]byte, Type, error) {
		q, ok := p.pointee()
		if !ok {
			return dst, TypeNull, nil
		}
		if depth > MaxDepth+1 {
			return dst, 0, tooDeep()
		}
		return elem.enc(ps, dst, q, depth+more)
	}
	keepsNull := t == reflect.TypeFor[RawValue]()
	c.dec = func(d *decoder, v RawValue, p place, depth int) error {
		if isNull(v) && !keepsNull {
			p.setNil()
			return nil
		}
		if depth > MaxDepth+1 {
			return tooDeep()
		}
		q, ok := p.pointee()
		if !ok {
			q = p.makePointee(t)
		}
		return elem.dec(d, v, q, depth+more)
	}
}

// dynamic makes a tag minsize hold for what enc finds only when it writes, whose types no plan knows.
func (cc *compiler) dynamic(enc encodeFunc, flags planFlags) encodeFunc {
	if !flags.minSize || cc.opts.IntMinSize {
		return enc
	}
	opts := cc.opts
	opts.IntMinSize = true
	return func(_ *plans, dst []byte, p place, depth int) ([]byte, Type, error) {
		return enc(opts.plans(), dst, p, depth)
	}
}

// iface makes the codec of an interface: the value inside says how it is written.
func (cc *compiler) iface(t reflect.Type, flags planFlags) (encodeFunc, decodeFunc) {
	if t.NumMethod() == 0 {
		return cc.dynamic(plain(encodeAny), flags), decodeIntoAny
	}
	enc := cc.dynamic(func(ps *plans, dst []byte, p place, depth int) ([]byte, Type, error) {
		return ps.appendAny(dst, p.value(t).Interface(), depth)
	}, flags)
	dec := func(d *decoder, v RawValue, p place, _ int) error {
		if isNull(v) {
			p.value(t).SetZero()
			return nil
		}
		return fmt.Errorf("cannot decode %v into the interface %v: which type to make is not known", v.Type, t)
	}
	return enc, dec
}

func encodeAny(ps *plans, dst []byte, v any, depth int) ([]byte, Type, error) {
	return ps.appendAny(dst, v, depth)
}

func decodeIntoAny(d *decoder, v RawValue, p place, depth int) (err error) {
	*at[any](p), err = d.any(v, depth, insideD)
	return err
}
