package bson

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
)

// Marshaler is a type that writes itself as a whole document.
type Marshaler interface {
	MarshalBSON() ([]byte, error)
}

// ValueMarshaler is a type that writes itself as a value of any type: the type byte and the payload.
type ValueMarshaler interface {
	MarshalBSONValue() (typ byte, data []byte, err error)
}

// Unmarshaler is a type that reads itself from a value's payload, usually a document. It is not called for null, which
// sets the zero value. The bytes are a copy that it may keep.
type Unmarshaler interface {
	UnmarshalBSON(data []byte) error
}

// ValueUnmarshaler is a type that reads itself from a value of any type, null too. The bytes are a copy that it may keep.
type ValueUnmarshaler interface {
	UnmarshalBSONValue(typ byte, data []byte) error
}

// KeyMarshaler is a type that, as the key of a map, writes itself as a key.
type KeyMarshaler interface {
	MarshalKey() (key string, err error)
}

// KeyUnmarshaler is a type that, as the key of a map, reads itself from a key.
type KeyUnmarshaler interface {
	UnmarshalKey(key string) error
}

// Zeroer is a type that knows when it counts as empty, for the struct tags omitempty and omitzero.
type Zeroer interface {
	IsZero() bool
}

var (
	marshalerType        = reflect.TypeFor[Marshaler]()
	valueMarshalerType   = reflect.TypeFor[ValueMarshaler]()
	unmarshalerType      = reflect.TypeFor[Unmarshaler]()
	valueUnmarshalerType = reflect.TypeFor[ValueUnmarshaler]()
	zeroerType           = reflect.TypeFor[Zeroer]()
)

// hooks puts a type's own methods in the place of what follows from its kind.
func (cc *compiler) hooks(c *codec) {
	t, p := c.typ, reflect.PointerTo(c.typ)
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer {
		return // the methods are those of the value inside
	}
	switch {
	case p.Implements(valueMarshalerType):
		c.op = opOther
		cc.pointerHooks = cc.pointerHooks || !t.Implements(valueMarshalerType)
		c.enc = encodeByValueMarshaler(t)
	case p.Implements(marshalerType):
		c.op = opOther
		cc.pointerHooks = cc.pointerHooks || !t.Implements(marshalerType)
		c.enc = encodeByMarshaler(t)
	}
	switch {
	case p.Implements(valueUnmarshalerType):
		c.op = opOther
		c.dec = func(_ *decoder, v RawValue, p place, _ int) error {
			return p.value(t).Addr().Interface().(ValueUnmarshaler).UnmarshalBSONValue(byte(v.Type), v.Clone().Value)
		}
	case p.Implements(unmarshalerType):
		c.op = opOther
		c.dec = func(_ *decoder, v RawValue, p place, _ int) error {
			if isNull(v) {
				p.value(t).SetZero()
				return nil
			}
			return p.value(t).Addr().Interface().(Unmarshaler).UnmarshalBSON(v.Clone().Value)
		}
	}
}

func encodeByValueMarshaler(t reflect.Type) encodeFunc {
	return func(ps *plans, dst []byte, p place, depth int) ([]byte, Type, error) {
		if nilReference(t, p) {
			return dst, TypeNull, nil
		}
		typ, data, err := p.value(t).Addr().Interface().(ValueMarshaler).MarshalBSONValue()
		if err != nil {
			return dst, 0, err
		}
		dst, bt, err := encodeMade(ps, dst, RawValue{Type(typ), data}, depth)
		if err != nil {
			return dst, 0, fmt.Errorf("MarshalBSONValue of %v: %w", t, err)
		}
		return dst, bt, nil
	}
}

func encodeByMarshaler(t reflect.Type) encodeFunc {
	return func(ps *plans, dst []byte, p place, depth int) ([]byte, Type, error) {
		if nilReference(t, p) {
			return dst, TypeNull, nil
		}
		data, err := p.value(t).Addr().Interface().(Marshaler).MarshalBSON()
		if err != nil {
			return dst, 0, err
		}
		dst, bt, err := encodeMade(ps, dst, RawValue{TypeEmbeddedDocument, data}, depth)
		if err != nil {
			return dst, 0, fmt.Errorf("MarshalBSON of %v: %w", t, err)
		}
		return dst, bt, nil
	}
}

// encodeMade appends what a method of the program has made, after a look at all of it: one wrong length inside would shift
// everything behind it.
func encodeMade(ps *plans, dst []byte, v RawValue, depth int) ([]byte, Type, error) {
	at := len(dst)
	dst, t, err := encodeRawValue(ps, dst, v, depth)
	if err != nil {
		return dst, 0, err
	}
	if bad := validateValue(t, dst[at:], depth-1); bad != nil {
		return dst[:at], 0, bad
	}
	return dst, t, nil
}

// nilReference reports whether the value at p is a nil map or slice: null, as without the method.
func nilReference(t reflect.Type, p place) bool {
	return (t.Kind() == reflect.Map || t.Kind() == reflect.Slice) && p.value(t).IsNil()
}

// keyText returns how the keys of a map type become text: nil where they cannot.
func (cc *compiler) keyText(t reflect.Type) func(reflect.Value) (string, error) {
	switch {
	case cc.opts.StringifyMapKeysWithFmt:
		return func(k reflect.Value) (string, error) { return fmt.Sprint(k.Interface()), nil }
	case t.Kind() == reflect.Interface:
		return textOfKey // which says what it cannot
	case t.Implements(reflect.TypeFor[KeyMarshaler]()):
		return textOfKey
	case t.Kind() == reflect.String:
		return func(k reflect.Value) (string, error) { return k.String(), nil }
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return textOfKey
	}
	switch {
	case reflect.Zero(t).CanInt():
		return func(k reflect.Value) (string, error) { return strconv.FormatInt(k.Int(), 10), nil }
	case reflect.Zero(t).CanUint():
		return func(k reflect.Value) (string, error) { return strconv.FormatUint(k.Uint(), 10), nil }
	}
	return nil
}

// textOfKey asks a key's own method for its text. A nil pointer is the empty key, as officially and in encoding/json.
func textOfKey(k reflect.Value) (string, error) {
	if k.Kind() == reflect.Interface {
		k = k.Elem()
	}
	if k.Kind() == reflect.Pointer && k.IsNil() {
		return "", nil
	}
	if !k.IsValid() {
		return "", errors.New("a nil interface is not text")
	}
	switch x := k.Interface().(type) {
	case KeyMarshaler:
		return x.MarshalKey()
	case encoding.TextMarshaler:
		b, err := x.MarshalText()
		return string(b), err
	}
	return "", fmt.Errorf("a %v is not text", k.Type())
}

// setKey returns how text becomes a key of the type: nil where it cannot.
func setKey(t reflect.Type) func(reflect.Value, string) error {
	p := reflect.PointerTo(t)
	switch {
	case p.Implements(reflect.TypeFor[KeyUnmarshaler]()):
		return func(k reflect.Value, s string) error {
			return k.Addr().Interface().(KeyUnmarshaler).UnmarshalKey(s)
		}
	case t.Kind() == reflect.String:
		return func(k reflect.Value, s string) error { k.SetString(s); return nil }
	case p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return func(k reflect.Value, s string) error {
			return k.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s))
		}
	}
	refuse := func(s string) error { return fmt.Errorf("cannot decode the key %q into %v", s, t) }
	switch {
	case reflect.Zero(t).CanInt():
		return func(k reflect.Value, s string) error {
			n, err := strconv.ParseInt(s, 10, t.Bits())
			if k.SetInt(n); err != nil {
				return refuse(s)
			}
			return nil
		}
	case reflect.Zero(t).CanUint():
		return func(k reflect.Value, s string) error {
			n, err := strconv.ParseUint(s, 10, t.Bits())
			if k.SetUint(n); err != nil {
				return refuse(s)
			}
			return nil
		}
	}
	return nil
}
