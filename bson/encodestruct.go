package bson

import "math"

// encode appends a struct as a document. Fields with short keys and common types are written here, the others by their
// codecs.
func (s *structCodec) encode(ps *plans, dst []byte, p place, depth int) ([]byte, Type, error) {
	if s.bad != nil {
		return dst, 0, s.bad
	}
	if depth > MaxDepth {
		return dst, 0, tooDeep()
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	fields := s.fields
	for i := range fields {
		f := &fields[i]
		q := p
		if f.plain {
			q = p.field(&f.at.spot)
		} else if q = f.present(p); q == (place{}) {
			continue
		}
		if f.op == opOther {
			var err error
			if dst, err = f.encode(ps, dst, q, depth+1); err != nil {
				return dst, 0, err
			}
			continue
		}
		n := len(dst)
		if cap(dst)-n < fieldRoom {
			dst = grow(dst, fieldRoom)
		}
		// The header is stored as three words, whatever its length: what is too much, the value overwrites.
		b := (*[fieldRoom]byte)(dst[n : n+fieldRoom])
		le.PutUint64(b[0:], f.head[0])
		le.PutUint64(b[8:], f.head[1])
		if f.size > 16 {
			le.PutUint64(b[16:], f.head[2])
		}
		k := int(f.size & 31) // it is below 32 anyway: the compiler should know
		switch f.op {
		case opString:
			text := *at[string](q)
			end := n + k + 5 + len(text)
			if end > cap(dst) {
				dst = grow(dst[:n+k], 5+len(text))
			}
			dst = dst[:end]
			le.PutUint32(dst[n+k:], uint32(len(text)+1))
			dst[end-1] = 0
			if !putText(roomOf(dst), n+k+4, text) {
				return dst, 0, encodeUnder(notUTF8(text), f.key)
			}
		case opInt32:
			le.PutUint32(b[k:], uint32(*at[int32](q)))
			dst = dst[:n+k+4]
		case opInt64:
			le.PutUint64(b[k:], uint64(*at[int64](q)))
			dst = dst[:n+k+8]
		case opFloat64:
			le.PutUint64(b[k:], math.Float64bits(*at[float64](q)))
			dst = dst[:n+k+8]
		case opBool:
			b[k] = boolByte(*at[bool](q))
			dst = dst[:n+k+1]
		case opObjectID:
			*(*ObjectID)(b[k:]) = *at[ObjectID](q)
			dst = dst[:n+k+12]
		case opDateTime:
			le.PutUint64(b[k:], uint64(*at[DateTime](q)))
			dst = dst[:n+k+8]
		case opTime:
			le.PutUint64(b[k:], uint64(at[timeValue](q).UnixMilli()))
			dst = dst[:n+k+8]
		case opInt:
			x := *at[int](q)
			le.PutUint64(b[k:], uint64(x))
			dst = dst[:n+k+4]
			if int(int32(x)) != x {
				b[0] = byte(TypeInt64)
				dst = dst[:n+k+8]
			}
		case opStruct:
			var err error
			if dst, _, err = f.codec.record.encode(ps, dst[:n+k], q, depth+1); err != nil {
				return dst, 0, encodeUnder(err, f.key)
			}
		}
	}
	if s.rest != nil {
		var err error
		if dst, err = s.encodeRest(ps, dst, p, depth); err != nil {
			return dst, 0, err
		}
	}
	dst = append(dst, 0)
	le.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst, TypeEmbeddedDocument, nil
}

// present returns where a field is, the zero place if it is left out.
func (f *field) present(p place) place {
	q, ok := f.at.find(p)
	if !ok || f.omit != nil && f.omit(q) {
		return place{}
	}
	return q
}

// encode appends a field by its codec.
func (f *field) encode(ps *plans, dst []byte, p place, depth int) ([]byte, error) {
	at := len(dst)
	dst, t, err := f.codec.enc(ps, append(dst, f.header...), p, depth)
	if err != nil {
		return dst, encodeUnder(err, f.key)
	}
	dst[at] = byte(t)
	return dst, nil
}

// encodeRest appends the entries of the inline map.
func (s *structCodec) encodeRest(ps *plans, dst []byte, p place, depth int) ([]byte, error) {
	q, ok := s.restAt.find(p)
	if !ok {
		return dst, nil
	}
	return s.rest.entries(ps, dst, q.value(s.rest.t), depth, s.byKey)
}
