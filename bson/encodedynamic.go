package bson

import (
	"math"
	"strconv"
)

// encodeD appends an ordered document.
func encodeD(ps *plans, dst []byte, d D, depth int) ([]byte, Type, error) {
	if d == nil {
		return nothing(dst, TypeEmbeddedDocument, ps.opts.NilSliceAsEmpty)
	}
	if depth > MaxDepth {
		return dst, 0, tooDeep()
	}
	dst, err := ps.appendD(dst, d, depth)
	return dst, TypeEmbeddedDocument, err
}

// appendD appends a document that is not too deep.
func (ps *plans) appendD(dst []byte, d D, depth int) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	var err error
	if ps.quickScalars() {
		dst, err = ps.appendElements(dst, d, depth)
	} else {
		for i := 0; i < len(d) && err == nil; i++ {
			dst, err = ps.appendElement(dst, d[i].Key, d[i].Value, depth+1)
		}
	}
	if err != nil {
		return dst, err
	}
	return EndDocument(dst, start), nil
}

func encodeStringMap(ps *plans, dst []byte, m map[string]any, depth int) ([]byte, Type, error) {
	if m == nil {
		return nothing(dst, TypeEmbeddedDocument, ps.opts.NilMapAsEmpty)
	}
	if depth > MaxDepth {
		return dst, 0, tooDeep()
	}
	dst, start := BeginDocument(dst)
	quick := ps.quickScalars()
	for k, v := range m {
		var err error
		if quick {
			dst, err = ps.appendElements(dst, []E{{k, v}}, depth)
		} else {
			dst, err = ps.appendElement(dst, k, v, depth+1)
		}
		if err != nil {
			return dst, 0, err
		}
	}
	return EndDocument(dst, start), TypeEmbeddedDocument, nil
}

// quickScalars reports whether neither options nor registrations change how scalars are written.
func (ps *plans) quickScalars() bool { return !ps.opts.IntMinSize && !ps.registry.common }

// appendElements appends elements to a document of the given depth, where scalars are quick. Those of the commonest types
// are written here, with short keys; what needs a closer look is left to others.
func (ps *plans) appendElements(dst []byte, d []E, depth int) ([]byte, error) {
	to, n, limit := roomOf(dst), len(dst), cap(dst)-valueRoom
	var err error
	for i := range d {
		e := &d[i]
		key := e.Key
		at := n + 2 + len(key) // where the value goes
		if at > limit {
			dst = grow(dst[:n], len(key)+2+valueRoom)
			to, limit = roomOf(dst), cap(dst)-valueRoom
		}
		var bad uint64 // as in putKey, without a call
		switch {
		case len(key) >= 8 && len(key) <= 16:
			v, w := word64(key, 0), word64(key, len(key)-8)
			to.put64(n+1, v)
			to.put64(at-9, w)
			bad = v | (v - lowBits) | w | (w - lowBits)
		case len(key) >= 4 && len(key) < 8:
			v, w := word32(key, 0), word32(key, len(key)-4)
			to.put32(n+1, v)
			to.put32(at-5, w)
			bad = uint64(v) | uint64(w)<<32
			bad |= bad - lowBits
		case len(key) >= 2 && len(key) < 4:
			v, w := word16(key, 0), word16(key, len(key)-2)
			to.put16(n+1, v)
			to.put16(at-3, w)
			bad = uint64(v) | uint64(w)<<16 | lowBits&^0xffffffff
			bad |= bad - lowBits
		case !putKey(to, n+1, key):
			bad = highBits
		}
		if bad&highBits != 0 { // not ASCII, or with a NUL
			if dst, err = ps.appendElement(dst[:n], key, e.Value, depth+1); err != nil {
				return dst, err
			}
			to, n, limit = roomOf(dst), len(dst), cap(dst)-valueRoom
			continue
		}
		to.put8(at-1, 0)
		if x, ok := e.Value.(string); ok { // ordered by how common they are
			if len(x) > limit-at {
				dst = grow(dst[:at], len(x)+valueRoom)
				to, limit = roomOf(dst), cap(dst)-valueRoom
			}
			to.put8(n, byte(TypeString))
			to.put32(at, uint32(len(x)+1))
			if !putText(to, at+4, x) {
				return dst, encodeUnder(notUTF8(x), key)
			}
			n = at + 5 + len(x)
			to.put8(n-1, 0)
		} else if x, ok := e.Value.(int32); ok {
			to.put8(n, byte(TypeInt32))
			to.put32(at, uint32(x))
			n = at + 4
		} else if x, ok := e.Value.(int64); ok {
			to.put8(n, byte(TypeInt64))
			to.put64(at, uint64(x))
			n = at + 8
		} else if x, ok := e.Value.(float64); ok {
			to.put8(n, byte(TypeDouble))
			to.put64(at, math.Float64bits(x))
			n = at + 8
		} else if x, ok := e.Value.(bool); ok {
			to.put8(n, byte(TypeBoolean))
			to.put8(at, boolByte(x))
			n = at + 1
		} else if x, ok := e.Value.(D); ok && x != nil && depth < MaxDepth {
			to.put8(n, byte(TypeEmbeddedDocument))
			if dst, err = ps.appendElements(dst[:at+4], x, depth+1); err != nil {
				return dst, encodeUnder(err, key)
			}
			dst = EndDocument(dst, at)
			to, n, limit = roomOf(dst), len(dst), cap(dst)-valueRoom
		} else if t, size := putScalar(to, at, e.Value); size >= 0 {
			to.put8(n, byte(t))
			n = at + size
		} else {
			if dst, err = ps.appendValue(dst[:at], n, e.Value, depth+1); err != nil {
				return dst, encodeUnder(err, key)
			}
			to, n, limit = roomOf(dst), len(dst), cap(dst)-valueRoom
		}
	}
	return dst[:n], nil
}

// appendValue appends a value behind its header, whose type goes to dst[head].
func (ps *plans) appendValue(dst []byte, head int, v any, depth int) ([]byte, error) {
	dst, t, err := ps.appendAny(dst, v, depth)
	if err == nil {
		dst[head] = byte(t)
	}
	return dst, err
}

// valueRoom is what any scalar takes at most, and the parts of a string beside its text.
const valueRoom = 16

// putScalar puts a scalar of the less common types to a place with valueRoom. The size is -1 for others.
func putScalar(to room, at int, v any) (t Type, size int) {
	switch x := v.(type) {
	case int:
		to.put64(at, uint64(x))
		if int(int32(x)) != x {
			return TypeInt64, 8
		}
		return TypeInt32, 4
	case ObjectID:
		putObjectID(to, at, &x)
		return TypeObjectID, 12
	case DateTime:
		to.put64(at, uint64(x))
		return TypeDateTime, 8
	case Timestamp:
		to.put64(at, uint64(x.T)<<32|uint64(x.I))
		return TypeTimestamp, 8
	case nil:
		return TypeNull, 0
	}
	return 0, -1
}

func putObjectID(to room, at int, id *ObjectID) {
	to.put64(at, le.Uint64(id[:]))
	to.put32(at+8, le.Uint32(id[8:]))
}

// appendText appends a string behind a header; if it is not UTF-8 it cuts dst to the length before.
func appendText(dst []byte, before int, s string) ([]byte, bool) {
	at := len(dst)
	end := at + 5 + len(s)
	if end > cap(dst) {
		dst = grow(dst, end-at)
	}
	dst = dst[:end]
	le.PutUint32(dst[at:], uint32(len(s)+1))
	dst[end-1] = 0
	if !putText(roomOf(dst), at+4, s) {
		return dst[:before], false
	}
	return dst, true
}

func encodeAnys(ps *plans, dst []byte, a []any, depth int) ([]byte, Type, error) {
	if a == nil {
		return nothing(dst, TypeArray, ps.opts.NilSliceAsEmpty)
	}
	if depth > MaxDepth {
		return dst, 0, tooDeep()
	}
	dst, start := BeginDocument(dst)
	for i := range a {
		at := len(dst)
		var t Type
		var err error
		if dst, t, err = ps.appendAny(appendIndex(dst, i), a[i], depth+1); err != nil {
			return dst, 0, encodeUnder(err, strconv.Itoa(i))
		}
		dst[at] = byte(t)
	}
	return EndDocument(dst, start), TypeArray, nil
}

// appendIndex appends the header of an array's element, its type still zero.
func appendIndex(dst []byte, i int) []byte {
	switch {
	case i < 10:
		return append(dst, 0, '0'+byte(i), 0)
	case i < 100:
		return append(dst, 0, '0'+byte(i/10), '0'+byte(i%10), 0)
	}
	dst = append(dst, 0)
	dst = strconv.AppendInt(dst, int64(i), 10)
	return append(dst, 0)
}
