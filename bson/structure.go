package bson

import (
	"errors"
	"fmt"
	"reflect"
	"time"
)

// structCodec is the plan of a struct: its fields in the order of their declaration, those of inline structs in place.
type structCodec struct {
	t      reflect.Type
	fields []field
	byKey  map[string]int // key -> position in fields
	rest   *mapCodec      // inline map, nil without
	restAt location
	zero   bool  // reset the struct before decoding
	bad    error // why the type cannot be used: its every use returns this
}

// field is one key of a struct's document. What the loops over fields use comes first, and is small.
type field struct {
	op    op        // opOther for keys that are too long for head
	wire  Type      // what values of the op are written as
	size  uint8     // of header, if that is not too long for head
	least uint8     // bytes that a value of the op takes at least
	plain bool      // neither hops on the way to it, nor ever left out
	near  bool      // no hops on the way to it
	run   int32     // fields from here on that are written in one go, all strings or all scalars; 0 for others
	room  int32     // bytes that scalars take at most
	head  [3]uint64 // header in three words, with the type that the op writes
	at    location

	// How to tell an element of the field: see heads.
	tail   uint64 // the last word of the header, the first if it is shorter
	tailAt uint8  // where that is
	need   uint8  // bytes that heads looks at, or that an element of a type with one size takes
	mask   uint64 // which bits of the first and last word count

	key    string
	header []byte // type (zero), key, NUL
	codec  *codec
	omit   func(place) bool // nil: never left out
	depth  int              // how many inline structs lie between: Go's rule says which field wins
}

const (
	maxHead    = 24 // bytes of a header that field.head has room for
	scalarRoom = 12 // bytes that a scalar takes at most
	headSlack  = 16 // bytes that may be written behind a field, since headers are stored in words
)

type timeValue = time.Time

// location leads from a struct to a field: hops through inline pointers, then a spot.
type location struct {
	spot spot
	hops []hop
}

// hop leads to an inline pointer, which points to elem.
type hop struct {
	spot spot
	elem reflect.Type
}

// find returns the field's place, not ok where an inline pointer on the way is nil.
func (l *location) find(p place) (q place, ok bool) {
	if p, ok = l.inner(p); !ok {
		return p, false
	}
	return p.field(&l.spot), true
}

// inner is find for the struct that the field's spot is in.
func (l *location) inner(p place) (in place, ok bool) {
	for i := range l.hops {
		if p, ok = p.field(&l.hops[i].spot).pointee(); !ok {
			return p, false
		}
	}
	return p, true
}

// reach is find that makes what is nil.
func (l *location) reach(p place) place {
	for i := range l.hops {
		h := &l.hops[i]
		at := p.field(&h.spot)
		q, ok := at.pointee()
		if !ok {
			q = at.makePointee(h.elem)
		}
		p = q
	}
	return p.field(&l.spot)
}

func (cc *compiler) structure(c *codec, flags planFlags) {
	s := &structCodec{t: c.typ, byKey: map[string]int{}, zero: cc.opts.ZeroStructs}
	if s.bad = cc.collect(s, inlined{t: c.typ, base: c.typ, flags: flags}); s.bad == nil {
		s.bad = s.resolve(cc.opts.ErrorOnInlineDuplicates)
	}
	c.enc, c.dec, c.op, c.record = s.encode, s.decode, opStruct, s
	cc.records = append(cc.records, s)
}

// inlined is a struct whose fields belong to the document: the struct itself, or one inline in it.
type inlined struct {
	t     reflect.Type
	base  reflect.Type // the struct that index starts from: the one behind the last hop
	index []int
	hops  []hop
	outer []reflect.Type // the structs around, against recursion
	flags planFlags      // of the field that the outermost struct is in
}

// spot is the place of field i.
func (l inlined) spot(i int) spot { return spotOf(l.base, l.path(i)) }

func (l inlined) path(i int) []int { return append(l.index[:len(l.index):len(l.index)], i) }

// collect adds the fields of a struct.
func (cc *compiler) collect(s *structCodec, l inlined) error {
	for _, o := range l.outer {
		if o == l.t {
			return fmt.Errorf("%v contains itself inline", l.t)
		}
	}
	for i := range l.t.NumField() {
		sf := l.t.Field(i)
		tag := parseTag(sf, cc.opts.UseJSONStructTags)
		if tag.skip || !sf.IsExported() && !(sf.Anonymous && tag.inline && sf.Type.Kind() == reflect.Struct) {
			continue
		}
		if tag.inline {
			if err := cc.inline(s, sf, l, i); err != nil {
				return err
			}
			continue
		}
		if err := checkKey(tag.key); err != nil {
			return fmt.Errorf("field %s of %v: %w", sf.Name, l.t, err)
		}
		s.fields = append(s.fields, cc.field(sf, tag, l, i))
	}
	return nil
}

// field makes the plan of one field.
func (cc *compiler) field(sf reflect.StructField, tag fieldTag, l inlined, i int) field {
	flags := planFlags{tag.flags.minSize || l.flags.minSize, tag.flags.truncate || l.flags.truncate}
	f := field{key: tag.key, at: location{l.spot(i), l.hops}, codec: cc.held(cc.compile(sf.Type, flags)), depth: len(l.outer)}
	f.header = AppendHeader(nil, 0, tag.key)
	f.omit = omitter(sf.Type, tag, &cc.opts)
	f.near = f.at.hops == nil
	f.plain = f.near && f.omit == nil
	return f
}

// inline adds the fields of a struct, a pointer to one, or the entries of a map.
func (cc *compiler) inline(s *structCodec, sf reflect.StructField, l inlined, i int) error {
	t := sf.Type
	outer := append(l.outer[:len(l.outer):len(l.outer)], l.t)
	switch {
	case t.Kind() == reflect.Struct:
		return cc.collect(s, inlined{t: t, base: l.base, index: l.path(i), hops: l.hops, outer: outer, flags: l.flags})
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		hops := append(l.hops[:len(l.hops):len(l.hops)], hop{l.spot(i), t.Elem()})
		return cc.collect(s, inlined{t: t.Elem(), base: t.Elem(), hops: hops, outer: outer, flags: l.flags})
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		if s.rest != nil {
			return errors.New(s.t.String() + " has more than one inline map")
		}
		s.rest = cc.newMap(t, l.flags)
		s.restAt = location{l.spot(i), l.hops}
		return nil
	}
	return fmt.Errorf("field %s of %v: inline needs a struct, a pointer to a struct or a map with string keys, not %v", sf.Name, s.t, t)
}

// prepare fills in what the loops over fields use. It waits until all codecs are complete.
func (f *field) prepare() {
	var words [maxHead]byte
	if f.op = f.codec.op; len(f.header) > maxHead {
		f.op = opOther
	} else {
		f.size = uint8(len(f.header))
	}
	copy(words[:], f.header)
	f.wire, f.least = f.op.wire()
	words[0] = byte(f.wire)
	for i := range f.head {
		f.head[i] = le.Uint64(words[8*i:])
	}
	f.tailAt = max(f.size, 8) - 8
	f.tail = le.Uint64(words[f.tailAt:])
	f.mask = ^uint64(0) >> (8 * (8 - min(f.size, 8)))
	f.need = max(f.size+f.least, 8)
}

// wire is the type that values of the op are written as, and how many bytes they take at least; an opInt may need
// TypeInt64.
func (o op) wire() (t Type, least uint8) {
	switch o {
	case opString:
		return TypeString, 5
	case opInt, opInt32:
		return TypeInt32, 4
	case opInt64:
		return TypeInt64, 8
	case opFloat64:
		return TypeDouble, 8
	case opBool:
		return TypeBoolean, 1
	case opObjectID:
		return TypeObjectID, 12
	case opDateTime, opTime:
		return TypeDateTime, 8
	case opStruct:
		return TypeEmbeddedDocument, 5
	}
	return 0, 0
}

// resolve drops fields that a shallower one of the same key hides, as Go does for embedded fields, and builds byKey.
func (s *structCodec) resolve(refuse bool) error {
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
		if f.depth > best[f.key].depth && !refuse {
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

// prepare is called when the codecs of all fields are complete: what is recursive was not before.
func (s *structCodec) prepare() {
	for i := len(s.fields) - 1; i >= 0; i-- {
		f := &s.fields[i]
		f.prepare()
		if f.op == opOther || f.op == opStruct {
			continue
		}
		f.run, f.room = 1, int32(f.size)+scalarRoom
		if i+1 == len(s.fields) {
			continue
		}
		if next := &s.fields[i+1]; f.plain && next.plain && next.run > 0 && (f.op == opString) == (next.op == opString) {
			f.run += next.run
			f.room += next.room
		}
	}
}
