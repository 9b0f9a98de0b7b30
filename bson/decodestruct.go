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
// struct, and with the type that the struct writes: both are tried first, the rest is left to the codecs.
func (s *structCodec) fill(d *decoder, doc []byte, p place, depth int) error {
	fields, end, likely := s.fields, len(doc)-1, 0
	for pos := 4; pos < end; {
		t := Type(doc[pos])
		pos++
		var f *field
		if likely < len(fields) && fields[likely].matches(doc, pos) {
			f = &fields[likely]
			pos += int(f.span)
		} else {
			i, behind, err := s.seek(d, t, doc, pos, likely, p, depth)
			if err != nil {
				return err
			}
			pos = behind
			if i < 0 {
				continue
			}
			f, likely = &fields[i], i
		}
		likely++
		if pos > end {
			return invalid("key without end")
		}
		q := p
		if f.near {
			q = p.field(&f.at.spot)
		} else {
			q = f.at.reach(p)
		}
		b := doc[pos:end]
		if t == f.wire && len(b) >= int(f.least) {
			switch f.op {
			case opString:
				n := int(int32(le.Uint32(b)))
				if n < 1 || n > len(b)-4 || b[n+3] != 0 {
					return decodeUnder(invalid("%v does not fit", t), f.key)
				}
				text := b[4 : n+3]
				if !isASCII(text) && !utf8.Valid(text) {
					return decodeUnder(invalid("string %.60q is not UTF-8", text), f.key)
				}
				*at[string](q) = d.keep(text)
				pos += n + 4
				continue
			case opInt32:
				*at[int32](q) = int32(le.Uint32(b))
				pos += 4
				continue
			case opInt:
				*at[int](q) = int(int32(le.Uint32(b)))
				pos += 4
				continue
			case opInt64:
				*at[int64](q) = int64(le.Uint64(b))
				pos += 8
				continue
			case opFloat64:
				*at[float64](q) = math.Float64frombits(le.Uint64(b))
				pos += 8
				continue
			case opDateTime:
				*at[DateTime](q) = DateTime(le.Uint64(b))
				pos += 8
				continue
			case opTime:
				*at[timeValue](q) = DateTime(le.Uint64(b)).Time()
				pos += 8
				continue
			case opObjectID:
				*at[ObjectID](q) = ObjectID(b[:12])
				pos += 12
				continue
			case opBool:
				if b[0] <= 1 {
					*at[bool](q) = b[0] == 1
					pos++
					continue
				}
			}
		}
		n := payloadLen(t, b)
		if n < 0 {
			return invalid("%v %q does not fit", t, f.key)
		}
		if err := f.codec.dec(d, RawValue{t, b[:n:n]}, q, depth+1); err != nil {
			return decodeUnder(err, f.key)
		}
		pos += n
	}
	return nil
}

// seek finds the field of the key at pos, and goes behind the key; likely may be the one that matches could not tell. An
// element without a field is dealt with, and the field is -1.
func (s *structCodec) seek(d *decoder, t Type, doc []byte, pos, likely int, p place, depth int) (i, behind int, err error) {
	z, _ := keyEnd(doc, pos)
	key := doc[pos:z]
	if t != 0 {
		if likely < len(s.fields) && s.fields[likely].key == string(key) {
			return likely, z + 1, nil
		}
		if i = s.position(key); i >= 0 {
			return i, z + 1, nil
		}
	}
	behind, err = s.unknown(d, t, key, doc, z+1, p, depth)
	return -1, behind, err
}

// matches reports whether the key at doc[at:], with its NUL, is that of the field. It cannot tell for long keys, and at
// the end of doc.
func (f *field) matches(doc []byte, at int) bool {
	return at+16 <= len(doc) && f.span <= 16 &&
		(le.Uint64(doc[at:])^f.want[0])&f.mask[0]|(le.Uint64(doc[at+8:])^f.want[1])&f.mask[1] == 0
}

// position finds the field of a key, -1 for none. A key in other case finds the lower-case field.
func (s *structCodec) position(key []byte) int {
	if i, ok := s.byKey[string(key)]; ok {
		return i
	}
	if i, ok := s.byKey[strings.ToLower(string(key))]; ok && utf8.Valid(key) {
		return i
	}
	return -1
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
