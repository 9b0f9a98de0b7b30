package bson

import (
	"fmt"
	"reflect"
)

// mapping makes the codec of a map: a document, nil is null.
func (cc *compiler) mapping(t reflect.Type, flags planFlags) (encodeFunc, decodeFunc) {
	if t.Key() == reflect.TypeFor[string]() && !cc.opts.StringifyMapKeysWithFmt && !cc.registry.common {
		switch t.Elem() {
		case reflect.TypeFor[any]():
			if !flags.minSize || cc.opts.IntMinSize {
				return plain(encodeStringMap), decodePlainMap(t)
			}
		case reflect.TypeFor[string]():
			return simpleMap(cc, t, flags, encodeString, readString)
		case reflect.TypeFor[float64]():
			return simpleMap(cc, t, flags, encodeFloat, plainly(RawValue.DoubleOK))
		case reflect.TypeFor[int32]():
			return simpleMap(cc, t, flags, encodeSmall[int32], plainly(RawValue.Int32OK))
		case reflect.TypeFor[int]():
			return simpleMap(cc, t, flags, encodeInt, readInt)
		case reflect.TypeFor[int64]():
			if !flags.minSize {
				return simpleMap(cc, t, flags, encodeInt64, plainly(RawValue.Int64OK))
			}
		}
	}
	m := cc.newMap(t, flags)
	return m.encode, m.decode
}

// simpleMap is for maps that need no reflection. read takes the type that enc writes, the codec of T all others.
func simpleMap[T any](cc *compiler, t reflect.Type, flags planFlags, enc func(*plans, []byte, T, int) ([]byte, Type, error), read func(*decoder, RawValue) (T, bool)) (encodeFunc, decodeFunc) {
	elem := cc.compile(t.Elem(), flags)
	encode := func(ps *plans, dst []byte, p place, depth int) ([]byte, Type, error) {
		m := *at[map[string]T](p)
		if m == nil {
			return nothing(dst, TypeEmbeddedDocument, ps.opts.NilMapAsEmpty)
		}
		if depth > MaxDepth {
			return dst, 0, tooDeep()
		}
		dst, start := BeginDocument(dst)
		for key, v := range m {
			head := len(dst)
			var t Type
			var err error
			if dst, err = appendKey(dst, key); err != nil {
				return dst, 0, err
			}
			if dst, t, err = enc(ps, dst, v, depth+1); err != nil {
				return dst, 0, encodeUnder(err, key)
			}
			dst[head] = byte(t)
		}
		return EndDocument(dst, start), TypeEmbeddedDocument, nil
	}
	decode := func(d *decoder, v RawValue, p place, depth int) error {
		m := at[map[string]T](p)
		if isNull(v) {
			*m = nil
			return nil
		}
		if v.Type != TypeEmbeddedDocument {
			return mismatch(v, t)
		}
		n, err := enter(v.Value, depth)
		if err != nil {
			return err
		}
		if *m == nil {
			*m = make(map[string]T, n)
		} else if d.ps.opts.ZeroMaps {
			clear(*m)
		}
		for doc, pos := v.Value, 4; pos < len(doc)-1; { // enter has looked at the lengths
			t := Type(doc[pos])
			z, _ := keyEnd(doc, pos+1)
			key, err := d.key(doc[pos+1 : z])
			if err != nil {
				return err
			}
			size := payloadLen(t, doc[z+1:])
			v := RawValue{t, doc[z+1 : z+1+size : z+1+size]}
			pos = z + 1 + size
			x, ok := read(d, v)
			if !ok {
				y := new(T)
				if err := elem.dec(d, v, placeOf(reflect.ValueOf(y)), depth+1); err != nil {
					return decodeUnder(err, key)
				}
				x = *y
			}
			(*m)[key] = x
		}
		return nil
	}
	return encode, decode
}

// plainly makes a reader of an accessor.
func plainly[T any](get func(RawValue) (T, bool)) func(*decoder, RawValue) (T, bool) {
	return func(_ *decoder, v RawValue) (T, bool) { return get(v) }
}

func readString(d *decoder, v RawValue) (string, bool) {
	b, ok := v.textBytes(TypeString)
	if !ok {
		return "", false
	}
	return d.checked(b)
}

func readInt(_ *decoder, v RawValue) (int, bool) {
	n, ok := v.Int32OK()
	return int(n), ok
}

// decodePlainMap is for map[string]any and named types of it: documents inside become map[string]any.
func decodePlainMap(t reflect.Type) decodeFunc {
	return func(d *decoder, v RawValue, p place, depth int) error {
		if isNull(v) {
			*at[map[string]any](p) = nil
			return nil
		}
		if v.Type != TypeEmbeddedDocument {
			return mismatch(v, t)
		}
		return d.intoMap(v, at[map[string]any](p), depth, insideMap)
	}
}

// mapCodec is for all other maps.
type mapCodec struct {
	t    reflect.Type
	elem *codec
	text func(reflect.Value) (string, error)
	set  func(reflect.Value, string) error
}

func (cc *compiler) newMap(t reflect.Type, flags planFlags) *mapCodec {
	return &mapCodec{t: t, elem: cc.compile(t.Elem(), flags), text: cc.keyText(t.Key()), set: setKey(t.Key())}
}

func (m *mapCodec) encode(ps *plans, dst []byte, p place, depth int) ([]byte, Type, error) {
	rv := p.value(m.t)
	if rv.IsNil() {
		return nothing(dst, TypeEmbeddedDocument, ps.opts.NilMapAsEmpty)
	}
	if depth > MaxDepth {
		return dst, 0, tooDeep()
	}
	dst, start := BeginDocument(dst)
	dst, err := m.entries(ps, dst, rv, depth, nil)
	if err != nil {
		return dst, 0, err
	}
	return EndDocument(dst, start), TypeEmbeddedDocument, nil
}

// entries appends the entries as elements. taken are keys that the document has already, for an inline map.
func (m *mapCodec) entries(ps *plans, dst []byte, rv reflect.Value, depth int, taken map[string]int) ([]byte, error) {
	scratch := reflect.New(m.t.Elem())
	for it := rv.MapRange(); it.Next(); {
		if m.text == nil { // an empty map needs no text
			return dst, fmt.Errorf("cannot encode %v: its keys are not text", m.t)
		}
		key, err := m.text(it.Key())
		if err != nil {
			return dst, fmt.Errorf("key of %v: %w", m.t, err)
		}
		if _, ok := taken[key]; ok {
			return dst, fmt.Errorf("the inline map has the key %q, which is a field of the struct too", key)
		}
		start := len(dst)
		if dst, err = appendKey(dst, key); err != nil {
			return dst, err
		}
		var t Type
		scratch.Elem().SetIterValue(it)
		if dst, t, err = m.elem.enc(ps, dst, placeOf(scratch), depth+1); err != nil {
			return dst, encodeUnder(err, key)
		}
		dst[start] = byte(t)
	}
	return dst, nil
}

func (m *mapCodec) decode(d *decoder, v RawValue, p place, depth int) error {
	rv := p.value(m.t)
	if isNull(v) {
		rv.SetZero()
		return nil
	}
	if v.Type != TypeEmbeddedDocument {
		return mismatch(v, m.t)
	}
	n, err := enter(v.Value, depth)
	if err != nil {
		return err
	}
	if rv.IsNil() {
		rv.Set(reflect.MakeMapWithSize(m.t, n))
	} else if d.ps.opts.ZeroMaps {
		rv.Clear()
	}
	for s := scan(v.Value); s.next(); {
		if err := m.put(d, rv, s.key(), s.value(), depth); err != nil {
			return err
		}
	}
	return nil
}

// put decodes one element into the map.
func (m *mapCodec) put(d *decoder, rv reflect.Value, rawKey []byte, v RawValue, depth int) error {
	if m.set == nil {
		return fmt.Errorf("cannot decode into %v: its keys are not text", m.t)
	}
	text, err := d.key(rawKey)
	if err != nil {
		return err
	}
	key := reflect.New(m.t.Key()).Elem()
	if err := m.set(key, text); err != nil {
		return decodeUnder(err, text)
	}
	value := reflect.New(m.t.Elem())
	if err := m.elem.dec(d, v, placeOf(value), depth+1); err != nil {
		return decodeUnder(err, text)
	}
	rv.SetMapIndex(key, value.Elem())
	return nil
}
