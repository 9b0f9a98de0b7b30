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
	for len(d) > 0 {
		n := 0
		var err error
		if ps.quickScalars() {
			if dst, n, err = ps.appendCommon(dst, d, depth); err != nil {
				return dst, err
			}
		}
		if d = d[n:]; len(d) > 0 {
			if dst, err = ps.appendElement(dst, d[0].Key, d[0].Value, depth+1); err != nil {
				return dst, err
			}
			d = d[1:]
		}
	}
	dst = append(dst, 0)
	le.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst, nil
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
		var n int
		var err error
		if quick {
			dst, n, err = ps.appendCommon(dst, []E{{k, v}}, depth)
		}
		if n == 0 && err == nil {
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

// appendCommon appends elements of the commonest types to a document of the given depth. It stops at the first of another
// type, or with a text that needs a closer look: appendElement knows what to do with it. It returns how many it has
// appended.
func (ps *plans) appendCommon(dst []byte, d []E, depth int) ([]byte, int, error) {
	for i := range d {
		e := &d[i]
		n := len(dst)
		k := n + 2 + len(e.Key) // of the value
		if cap(dst)-k < 16 {
			dst = grow(dst, len(e.Key)+18)
		}
		b := dst[:k+16] // room for any scalar
		key, to := bytesOf(e.Key), b[n+1:k-1]
		var bad uint64
		switch len(key) { // as in putKey, without a call
		case 4, 5, 6, 7:
			v, w := le.Uint32(key), le.Uint32(key[len(key)-4:])
			le.PutUint32(to, v)
			le.PutUint32(to[len(to)-4:], w)
			bad = uint64(v) | uint64(w)<<32
			bad |= bad - lowBits
		case 8, 9, 10, 11, 12, 13, 14, 15, 16:
			v, w := le.Uint64(key), le.Uint64(key[len(key)-8:])
			le.PutUint64(to, v)
			le.PutUint64(to[len(to)-8:], w)
			bad = v | (v - lowBits) | w | (w - lowBits)
		default:
			if !putKey(to, e.Key) {
				return dst, i, nil
			}
		}
		if bad&highBits != 0 {
			return dst, i, nil
		}
		b[k-1] = 0
		value := (*[16]byte)(b[k : k+16])
		if x, ok := e.Value.(string); ok { // the switch below takes longer to find the commonest
			end := k + 5 + len(x)
			if end > cap(b) {
				b = grow(b[:k], 5+len(x))
			}
			b = b[:end]
			b[n] = byte(TypeString)
			le.PutUint32(b[k:], uint32(len(x)+1))
			b[end-1] = 0
			if !putText(b[k+4:], x) {
				return dst, i, nil
			}
			dst = b
			continue
		}
		if x, ok := e.Value.(int32); ok {
			b[n] = byte(TypeInt32)
			le.PutUint32(value[:], uint32(x))
			dst = b[:k+4]
			continue
		}
		if x, ok := e.Value.(int64); ok {
			b[n] = byte(TypeInt64)
			le.PutUint64(value[:], uint64(x))
			dst = b[:k+8]
			continue
		}
		if x, ok := e.Value.(float64); ok {
			b[n] = byte(TypeDouble)
			le.PutUint64(value[:], math.Float64bits(x))
			dst = b[:k+8]
			continue
		}
		if x, ok := e.Value.(D); ok {
			if x == nil || depth == MaxDepth {
				return dst, i, nil
			}
			b[n] = byte(TypeEmbeddedDocument)
			var err error
			if dst, err = ps.appendD(b[:k], x, depth+1); err != nil {
				return dst, i, encodeUnder(err, e.Key)
			}
			continue
		}
		t, size := putScalar(value, e.Value)
		if size < 0 {
			return dst, i, nil
		}
		b[n] = byte(t)
		dst = b[:k+size]
	}
	return dst, len(d), nil
}

// putScalar puts a scalar of the less common types to the start of b, which has room for any. The size is -1 for others.
func putScalar(b *[16]byte, v any) (t Type, size int) {
	switch x := v.(type) {
	case bool:
		b[0] = boolByte(x)
		return TypeBoolean, 1
	case int:
		le.PutUint64(b[:], uint64(x))
		if int(int32(x)) != x {
			return TypeInt64, 8
		}
		return TypeInt32, 4
	case ObjectID:
		copy(b[:], x[:])
		return TypeObjectID, 12
	case DateTime:
		le.PutUint64(b[:], uint64(x))
		return TypeDateTime, 8
	case nil:
		return TypeNull, 0
	}
	return 0, -1
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
	if !putText(dst[at+4:], s) {
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
