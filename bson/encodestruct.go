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
	for i := 0; i < len(fields); {
		f := &fields[i]
		in := p
		if !f.plain {
			var ok bool
			if in, ok = f.present(p); !ok {
				i++
				continue
			}
		}
		run := fields[i : i+int(f.run)]
		switch {
		case f.op == opString:
			var n int
			if dst, n = appendTexts(dst, run, in); n < len(run) {
				return dst, 0, encodeUnder(notUTF8(*at[string](in.field(&run[n].at.spot))), run[n].key)
			}
			i += n
			continue
		case len(run) > 0:
			if room := int(f.room) + headSlack; cap(dst)-len(dst) < room {
				dst = grow(dst, room)
			}
			dst = dst[:putScalars(roomOf(dst), len(dst), run, in)]
			i += len(run)
			continue
		}
		i++
		var err error
		if dst, err = f.encode(ps, dst, in.field(&f.at.spot), depth+1); err != nil {
			return dst, 0, encodeUnder(err, f.key)
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

// putScalars writes a run of fields (see field.run), for which there is room, and returns where the next one goes. It calls
// nothing, so that all it needs stays in registers.
func putScalars(to room, n int, run []field, in place) int {
	for i := range run {
		f := &run[i]
		q := in.field(&f.at.spot)
		// The header is stored as three words, whatever its length: what is too much, the value overwrites.
		to.put64(n, f.head[0])
		to.put64(n+8, f.head[1])
		v := n + int(f.size)
		if f.size > 16 {
			to.put64(n+16, f.head[2])
		}
		switch f.op {
		case opInt32:
			to.put32(v, uint32(*at[int32](q)))
			n = v + 4
		case opInt64:
			to.put64(v, uint64(*at[int64](q)))
			n = v + 8
		case opFloat64:
			to.put64(v, math.Float64bits(*at[float64](q)))
			n = v + 8
		case opBool:
			to.put8(v, boolByte(*at[bool](q)))
			n = v + 1
		case opObjectID:
			putObjectID(to, v, at[ObjectID](q))
			n = v + 12
		case opDateTime:
			to.put64(v, uint64(*at[DateTime](q)))
			n = v + 8
		case opTime:
			to.put64(v, uint64(at[timeValue](q).UnixMilli()))
			n = v + 8
		case opInt:
			x := *at[int](q)
			to.put64(v, uint64(x))
			if int(int32(x)) != x {
				to.put8(n, byte(TypeInt64))
				v += 4
			}
			n = v + 4
		}
	}
	return n
}

// appendTexts writes a run of strings and returns how many: less than all only if one is not UTF-8.
func appendTexts(dst []byte, run []field, in place) ([]byte, int) {
	n := len(dst)
	for i := range run {
		f := &run[i]
		text := *at[string](in.field(&f.at.spot))
		v := n + int(f.size)
		end := v + 5 + len(text)
		if end+headSlack > cap(dst) {
			dst = grow(dst[:n], end+headSlack-n)
		}
		to := roomOf(dst)
		to.put64(n, f.head[0])
		to.put64(n+8, f.head[1])
		if f.size > 16 {
			to.put64(n+16, f.head[2])
		}
		to.put32(v, uint32(len(text)+1))
		if !putText(to, v+4, text) {
			return dst[:n], i
		}
		to.put8(end-1, 0)
		n = end
	}
	return dst[:n], len(run)
}

// present returns the struct that a field is in, not ok if it is left out.
func (f *field) present(p place) (place, bool) {
	in, ok := f.at.inner(p)
	if !ok || f.omit != nil && f.omit(in.field(&f.at.spot)) {
		return place{}, false
	}
	return in, true
}

// encode appends a field by its codec.
func (f *field) encode(ps *plans, dst []byte, p place, depth int) ([]byte, error) {
	at := len(dst)
	dst = append(dst, f.header...)
	if f.op == opStruct {
		dst[at] = byte(TypeEmbeddedDocument)
		dst, _, err := f.codec.record.encode(ps, dst, p, depth)
		return dst, err
	}
	dst, t, err := f.codec.enc(ps, dst, p, depth)
	if err == nil { // else dst may be anything
		dst[at] = byte(t)
	}
	return dst, err
}

// encodeRest appends the entries of the inline map.
func (s *structCodec) encodeRest(ps *plans, dst []byte, p place, depth int) ([]byte, error) {
	q, ok := s.restAt.find(p)
	if !ok {
		return dst, nil
	}
	return s.rest.entries(ps, dst, q.value(s.rest.t), depth, s.byKey)
}
