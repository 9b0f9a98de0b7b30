package bson

import (
	"fmt"
	"reflect"
	"unsafe"
)

// mapping makes the codec of a map: a document, nil is null.
func (cc *compiler) mapping(t reflect.Type, flags planFlags) (encodeFunc, decodeFunc) {
	if t.Key().Kind() == reflect.String && t.Elem() == reflect.TypeFor[any]() && !keyHooks(t.Key()) {
		return plain(encodeStringMap), decodePlainMap(t)
	}
	m := &mapCodec{t: t, elem: cc.compile(t.Elem(), flags), text: keyText(t.Key()), set: setKey(t.Key())}
	return m.encode, m.decode
}

func keyHooks(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[KeyMarshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[KeyUnmarshaler]())
}

// decodePlainMap is for map[string]any and named types of it: documents inside become map[string]any.
func decodePlainMap(t reflect.Type) decodeFunc {
	return func(v RawValue, p unsafe.Pointer, depth int) error {
		m := (*map[string]any)(p)
		if isNull(v) {
			*m = nil
			return nil
		}
		if v.Type != TypeEmbeddedDocument {
			return mismatch(v, t)
		}
		if *m == nil {
			*m = map[string]any{}
		}
		return decodeStringMap(v.Value, *m, depth, insideMap)
	}
}

type mapCodec struct {
	t    reflect.Type
	elem *codec
	text func(reflect.Value) (string, error)
	set  func(reflect.Value, string) error
}

func (m *mapCodec) encode(dst []byte, p unsafe.Pointer, depth int) ([]byte, Type, error) {
	rv := reflect.NewAt(m.t, p).Elem()
	if rv.IsNil() {
		return dst, TypeNull, nil
	}
	if depth > MaxDepth {
		return dst, 0, tooDeep()
	}
	dst, start := BeginDocument(dst)
	dst, err := m.entries(dst, rv, depth, nil)
	if err != nil {
		return dst, 0, err
	}
	return EndDocument(dst, start), TypeEmbeddedDocument, nil
}

// entries appends the entries as elements. taken are keys that the document has already, for an inline map.
func (m *mapCodec) entries(dst []byte, rv reflect.Value, depth int, taken map[string]int) ([]byte, error) {
	if m.text == nil {
		return dst, fmt.Errorf("cannot encode %v: its keys are not text", m.t)
	}
	scratch := reflect.New(m.t.Elem())
	for it := rv.MapRange(); it.Next(); {
		key, err := m.text(it.Key())
		if err != nil {
			return dst, fmt.Errorf("key of %v: %w", m.t, err)
		}
		if _, ok := taken[key]; ok {
			return dst, fmt.Errorf("the inline map has the key %q, which is a field of the struct too", key)
		}
		if err := checkKey(key); err != nil {
			return dst, err
		}
		at := len(dst)
		var t Type
		scratch.Elem().SetIterValue(it)
		if dst, t, err = m.elem.enc(AppendHeader(dst, 0, key), scratch.UnsafePointer(), depth+1); err != nil {
			return dst, encodeUnder(err, key)
		}
		dst[at] = byte(t)
	}
	return dst, nil
}

func (m *mapCodec) decode(v RawValue, p unsafe.Pointer, depth int) error {
	rv := reflect.NewAt(m.t, p).Elem()
	if isNull(v) {
		rv.SetZero()
		return nil
	}
	if v.Type != TypeEmbeddedDocument {
		return mismatch(v, m.t)
	}
	if _, err := enter(v.Value, depth); err != nil {
		return err
	}
	if rv.IsNil() {
		rv.Set(reflect.MakeMap(m.t))
	}
	for s := scan(v.Value); s.next(); {
		if err := m.put(rv, s.key(), s.value(), depth); err != nil {
			return err
		}
	}
	return nil
}

// put decodes one element into the map.
func (m *mapCodec) put(rv reflect.Value, rawKey []byte, v RawValue, depth int) error {
	if m.set == nil {
		return fmt.Errorf("cannot decode into %v: its keys are not text", m.t)
	}
	text, err := decodeKey(rawKey)
	if err != nil {
		return err
	}
	key := reflect.New(m.t.Key()).Elem()
	if err := m.set(key, text); err != nil {
		return decodeUnder(err, text)
	}
	value := reflect.New(m.t.Elem())
	if err := m.elem.dec(v, value.UnsafePointer(), depth+1); err != nil {
		return decodeUnder(err, text)
	}
	rv.SetMapIndex(key, value.Elem())
	return nil
}
