package bson

import (
	"math"
	"reflect"
	"strings"
	"unicode/utf8"
)

// decode stores a document into a struct.
func (s *structCodec) decode(d *decoder, v RawValue, p place, depth int) error {
	if s.bad != nil {
		return s.bad
	}
	if v.Type != TypeEmbeddedDocument {
		if isNull(v) {
			p.value(s.t).SetZero()
			return nil
		}
		return mismatch(v, s.t)
	}
	if depth > MaxDepth {
		return tooDeep()
	}
	if v.Value[len(v.Value)-1] != 0 {
		return invalid("no terminator")
	}
	if s.zero {
		p.value(s.t).SetZero()
	}
	return s.fill(d, v.Value, p, depth)
}

// fill stores the elements of a document, whose length and terminator are right. Fields usually come in the order of the
// struct, and with the type that the struct writes: that is tried first, the rest is left to the codecs.
func (s *structCodec) fill(d *decoder, doc []byte, p place, depth int) error {
	from, end := roomOf(doc), len(doc)-1
	for pos, likely := 4, 0; ; {
		if likely < len(s.fields) && s.fields[likely].op != opString {
			var n int
			pos, n = readScalars(from, pos, end, s.fields[likely:], p)
			likely += n
		}
		if pos >= end {
			return nil
		}
		if likely < len(s.fields) {
			if f := &s.fields[likely]; f.op == opString && f.near && f.heads(from, pos, end) {
				if text, n := d.stringAt(doc, pos+int(f.size), end); n > 0 {
					*at[string](p.field(&f.at.spot)) = text
					pos, likely = n, likely+1
					continue
				}
			}
		}
		var err error
		if pos, likely, err = s.element(d, doc, pos, likely, p, depth); err != nil {
			return err
		}
	}
}

// heads reports whether the element at pos has the key of the field and the type that the field is written as, and whether
// a value of that type, if it has one size, fits before end. A field without such a type never does.
func (f *field) heads(from room, pos, end int) bool {
	if pos+int(f.need) > end {
		return false
	}
	differ := (from.get64(pos) ^ f.head[0]) | (from.get64(pos+int(f.tailAt)) ^ f.tail)
	return differ&f.mask == 0 && (f.size <= 16 || from.get64(pos+8) == f.head[1])
}

// readScalars stores elements as long as they are those of the fields, with scalars that need no closer look. It returns
// where the next element is, and how many it has stored. It calls nothing, so that all it needs stays in registers.
func readScalars(from room, pos, end int, fields []field, p place) (next, n int) {
	for i := range fields {
		f := &fields[i]
		if !f.near || f.op == opString || !f.heads(from, pos, end) {
			return pos, i
		}
		q, v := p.field(&f.at.spot), pos+int(f.size)
		switch f.op {
		case opInt32:
			*at[int32](q) = int32(from.get32(v))
		case opInt:
			*at[int](q) = int(int32(from.get32(v)))
		case opInt64:
			*at[int64](q) = int64(from.get64(v))
		case opFloat64:
			*at[float64](q) = math.Float64frombits(from.get64(v))
		case opDateTime:
			*at[DateTime](q) = DateTime(from.get64(v))
		case opTime:
			*at[timeValue](q) = DateTime(from.get64(v)).Time()
		case opObjectID:
			id := at[ObjectID](q)
			le.PutUint64(id[:], from.get64(v))
			le.PutUint32(id[8:], from.get32(v+8))
		case opBool:
			x := from.get8(v)
			if x > 1 {
				return pos, i
			}
			*at[bool](q) = x == 1
		default:
			return pos, i
		}
		pos = v + int(f.least)
	}
	return pos, len(fields)
}

// element stores any element. It returns where the next one is and which field that likely belongs to; it only finds the
// field, and stays where it is, if that is not the one that was likely.
func (s *structCodec) element(d *decoder, doc []byte, pos, likely int, p place, depth int) (next, then int, err error) {
	t, end := Type(doc[pos]), len(doc)-1
	pos++
	for i := likely; i < min(likely+3, len(s.fields)); i++ { // some may have been left out
		if !s.fields[i].named(doc, pos) {
			continue
		}
		if i > likely {
			return pos - 1, i, nil
		}
		next, err = s.fields[i].decode(d, t, doc[:end], pos+len(s.fields[i].key)+1, p, depth)
		return next, i + 1, err
	}
	z, _ := keyEnd(doc, pos)
	key := doc[pos:z]
	if i, ok := s.byKey[string(key)]; ok {
		return pos - 1, i, nil
	}
	if i, ok := s.byKey[strings.ToLower(string(key))]; ok && utf8.Valid(key) { // a key in other case finds the lower-case field
		next, err = s.fields[i].decode(d, t, doc[:end], z+1, p, depth)
		return next, i + 1, err
	}
	next, err = s.unknown(d, t, key, doc, z+1, p, depth)
	return next, likely, err
}

// named reports whether the key at doc[at:] is that of the field.
func (f *field) named(doc []byte, at int) bool {
	z := at + len(f.key)
	return z < len(doc) && doc[z] == 0 && string(doc[at:z]) == f.key
}

// decode stores a value of type t at the start of doc[at:], which may hold more, and returns where it ends.
func (f *field) decode(d *decoder, t Type, doc []byte, at int, p place, depth int) (end int, err error) {
	switch {
	case t == 0:
		return 0, invalid("bytes after the terminator")
	case at > len(doc):
		return 0, invalid("key without end")
	}
	n := payloadLen(t, doc[at:])
	if n < 0 {
		return 0, invalid("%v %q does not fit", t, f.key)
	}
	if err := f.codec.dec(d, RawValue{t, doc[at : at+n : at+n]}, f.at.reach(p), depth+1); err != nil {
		return 0, decodeUnder(err, f.key)
	}
	return at + n, nil
}

// unknown puts an element without a field into the inline map, if there is one. at is behind the key; the result is
// behind the value.
func (s *structCodec) unknown(d *decoder, t Type, key, doc []byte, at int, p place, depth int) (int, error) {
	end := len(doc) - 1
	switch {
	case t == 0:
		return 0, invalid("bytes after the terminator")
	case at > end:
		return 0, invalid("key without end")
	}
	n := payloadLen(t, doc[at:end])
	if n < 0 {
		return 0, invalid("%v %q does not fit", t, key)
	}
	if s.rest == nil {
		return at + n, nil
	}
	rv := s.restAt.reach(p).value(s.rest.t)
	if rv.IsNil() {
		rv.Set(reflect.MakeMap(s.rest.t))
	}
	return at + n, s.rest.put(d, rv, key, RawValue{t, doc[at : at+n : at+n]}, depth)
}
