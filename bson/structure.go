package bson

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// structCodec is the plan of a struct: its fields in the order of their declaration, those of inline structs in place.
type structCodec struct {
	t      reflect.Type
	fields []field
	byKey  map[string]int // key -> position in fields
	rest   *mapCodec      // inline map, nil without
	restAt location
	bad    error // why the type cannot be used: its every use returns this
}

// field is one key of a struct's document.
type field struct {
	key    string
	header []byte // type (zero), key, NUL
	at     location
	codec  *codec
	omit   func(unsafe.Pointer) bool // nil: never left out
	depth  int                       // how many inline structs lie between: Go's rule says which field wins
}

// location leads from a struct to a field: hops through inline pointers, then an offset.
type location struct {
	hops   []hop
	offset uintptr
}

type hop struct {
	offset uintptr
	elem   reflect.Type
}

// find returns the field's address, nil where an inline pointer on the way is nil.
func (l *location) find(p unsafe.Pointer) unsafe.Pointer {
	for i := range l.hops {
		if p = *(*unsafe.Pointer)(unsafe.Add(p, l.hops[i].offset)); p == nil {
			return nil
		}
	}
	return unsafe.Add(p, l.offset)
}

// reach is find that makes what is nil.
func (l *location) reach(p unsafe.Pointer) unsafe.Pointer {
	for i := range l.hops {
		q := (*unsafe.Pointer)(unsafe.Add(p, l.hops[i].offset))
		if *q == nil {
			*q = reflect.New(l.hops[i].elem).UnsafePointer()
		}
		p = *q
	}
	return unsafe.Add(p, l.offset)
}

func (cc *compiler) structure(t reflect.Type) (encodeFunc, decodeFunc) {
	s := &structCodec{t: t, byKey: map[string]int{}}
	if s.bad = cc.collect(s, t, location{}, nil); s.bad == nil {
		s.bad = s.resolve()
	}
	return s.encode, s.decode
}

// collect adds the fields of t, which lies at the location within s. outer are the structs around, against recursion.
func (cc *compiler) collect(s *structCodec, t reflect.Type, at location, outer []reflect.Type) error {
	for _, o := range outer {
		if o == t {
			return fmt.Errorf("%v contains itself inline", t)
		}
	}
	for i := range t.NumField() {
		sf := t.Field(i)
		tag := parseTag(sf)
		if tag.skip || !sf.IsExported() && !(sf.Anonymous && tag.inline && sf.Type.Kind() == reflect.Struct) {
			continue
		}
		here := location{at.hops, at.offset + sf.Offset}
		if tag.inline {
			if err := cc.inline(s, sf, here, append(outer, t)); err != nil {
				return err
			}
			continue
		}
		if err := checkKey(tag.key); err != nil {
			return fmt.Errorf("field %s of %v: %w", sf.Name, t, err)
		}
		f := field{key: tag.key, at: here, codec: cc.compile(sf.Type, tag.flags), depth: len(outer)}
		f.header = AppendHeader(nil, 0, tag.key)
		f.omit = omitter(sf.Type, tag)
		s.fields = append(s.fields, f)
	}
	return nil
}

// inline adds the fields of a struct, a pointer to one, or the entries of a map.
func (cc *compiler) inline(s *structCodec, sf reflect.StructField, at location, outer []reflect.Type) error {
	t := sf.Type
	switch {
	case t.Kind() == reflect.Struct:
		return cc.collect(s, t, at, outer)
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		hops := append(at.hops[:len(at.hops):len(at.hops)], hop{at.offset, t.Elem()})
		return cc.collect(s, t.Elem(), location{hops, 0}, outer)
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		if s.rest != nil {
			return errors.New(s.t.String() + " has more than one inline map")
		}
		s.rest = &mapCodec{t: t, elem: cc.compile(t.Elem(), planFlags{}), text: keyText(t.Key()), set: setKey(t.Key())}
		s.restAt = at
		return nil
	}
	return fmt.Errorf("field %s of %v: inline needs a struct, a pointer to a struct or a map with string keys, not %v", sf.Name, s.t, t)
}

// resolve drops fields that a shallower one of the same key hides, as Go does for embedded fields, and builds byKey.
func (s *structCodec) resolve() error {
	best := map[string]field{}
	for _, f := range s.fields {
		b, ok := best[f.key]
		if !ok || f.depth < b.depth {
			best[f.key] = f
		}
	}
	seen := map[string]bool{}
	kept := s.fields[:0]
	for _, f := range s.fields {
		if f.depth > best[f.key].depth {
			continue
		}
		if seen[f.key] {
			return fmt.Errorf("%v has two fields with the key %q", s.t, f.key)
		}
		seen[f.key] = true
		s.byKey[f.key] = len(kept)
		kept = append(kept, f)
	}
	s.fields = kept
	return nil
}

func (s *structCodec) encode(dst []byte, p unsafe.Pointer, depth int) ([]byte, Type, error) {
	if s.bad != nil {
		return dst, 0, s.bad
	}
	if depth > MaxDepth {
		return dst, 0, tooDeep()
	}
	dst, start := BeginDocument(dst)
	for i := range s.fields {
		f := &s.fields[i]
		q := f.at.find(p)
		if q == nil || f.omit != nil && f.omit(q) {
			continue
		}
		at := len(dst)
		var t Type
		var err error
		if dst, t, err = f.codec.enc(append(dst, f.header...), q, depth+1); err != nil {
			return dst, 0, encodeUnder(err, f.key)
		}
		dst[at] = byte(t)
	}
	if s.rest != nil {
		if q := s.restAt.find(p); q != nil {
			var err error
			if dst, err = s.rest.entries(dst, reflect.NewAt(s.rest.t, q).Elem(), depth, s.byKey); err != nil {
				return dst, 0, err
			}
		}
	}
	return EndDocument(dst, start), TypeEmbeddedDocument, nil
}

func (s *structCodec) decode(v RawValue, p unsafe.Pointer, depth int) error {
	if s.bad != nil {
		return s.bad
	}
	if isNull(v) {
		reflect.NewAt(s.t, p).Elem().SetZero()
		return nil
	}
	if v.Type != TypeEmbeddedDocument {
		return mismatch(v, s.t)
	}
	if depth > MaxDepth {
		return tooDeep()
	}
	next := 0
	sc := scan(v.Value)
	for sc.next() {
		i := s.position(sc.key(), next)
		if i < 0 {
			if err := s.unknown(p, sc.key(), sc.value(), depth); err != nil {
				return err
			}
			continue
		}
		next = i + 1
		f := &s.fields[i]
		if err := f.codec.dec(sc.value(), f.at.reach(p), depth+1); err != nil {
			return decodeUnder(err, f.key)
		}
	}
	if sc.bad != "" {
		return invalid("%s", sc.bad)
	}
	return nil
}

// position finds the field of a key: next is the likely one. A key in other case finds the lower-case field.
func (s *structCodec) position(key []byte, next int) int {
	if next < len(s.fields) && s.fields[next].key == string(key) {
		return next
	}
	if i, ok := s.byKey[string(key)]; ok {
		return i
	}
	if i, ok := s.byKey[strings.ToLower(string(key))]; ok && utf8.Valid(key) {
		return i
	}
	return -1
}

// unknown puts an element without a field into the inline map, if there is one.
func (s *structCodec) unknown(p unsafe.Pointer, key []byte, v RawValue, depth int) error {
	if s.rest == nil {
		return nil
	}
	rv := reflect.NewAt(s.rest.t, s.restAt.reach(p)).Elem()
	if rv.IsNil() {
		rv.Set(reflect.MakeMap(s.rest.t))
	}
	return s.rest.put(rv, key, v, depth)
}
