package bson

import (
	"math"
	"strconv"
)

// encodeD appends an ordered document. The scalars that documents mostly hold are written here, with one look at the
// capacity for key and value together.
func encodeD(ps *plans, dst []byte, d D, depth int) ([]byte, Type, error) {
	if d == nil {
		return nothing(dst, TypeEmbeddedDocument, ps.opts.NilSliceAsEmpty)
	}
	if depth > MaxDepth {
		return dst, 0, tooDeep()
	}
	dst, start := BeginDocument(dst)
	quick := ps.quickScalars()
	for i := range d {
		e := &d[i]
		var done bool
		var err error
		if quick {
			dst, done = appendScalar(dst, e.Key, e.Value)
		}
		if !done {
			if dst, err = ps.appendElement(dst, e.Key, e.Value, depth+1); err != nil {
				return dst, 0, err
			}
		}
	}
	return EndDocument(dst, start), TypeEmbeddedDocument, nil
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
		var done bool
		var err error
		if quick {
			dst, done = appendScalar(dst, k, v)
		}
		if !done {
			if dst, err = ps.appendElement(dst, k, v, depth+1); err != nil {
				return dst, 0, err
			}
		}
	}
	return EndDocument(dst, start), TypeEmbeddedDocument, nil
}

// quickScalars reports whether neither options nor registrations change how scalars are written.
func (ps *plans) quickScalars() bool { return !ps.opts.IntMinSize && ps.registry.types == nil }

// appendScalar appends an element of the commonest types. It leaves all others, and keys that need a closer look, to
// appendElement, and then returns dst as it was.
func appendScalar(dst []byte, key string, v any) ([]byte, bool) {
	n := len(dst)
	k := n + 1 + len(key) // of the NUL that ends the key
	if cap(dst)-k < 17 {
		dst = grow(dst, len(key)+18)
	}
	b := dst[:k+17] // the largest scalar has sixteen bytes, and some are to spare
	copy(b[n+1:], key)
	if !plainKey(b[n+1 : k]) {
		return dst[:n], false
	}
	b[k] = 0
	var t Type
	size := 8
	switch x := v.(type) {
	case string:
		b[n] = byte(TypeString)
		return appendText(b[:k+1], n, x)
	case int32:
		t, size = TypeInt32, 4
		le.PutUint32(b[k+1:], uint32(x))
	case int64:
		t = TypeInt64
		le.PutUint64(b[k+1:], uint64(x))
	case float64:
		t = TypeDouble
		le.PutUint64(b[k+1:], math.Float64bits(x))
	case bool:
		t, size = TypeBoolean, 1
		b[k+1] = 0
		if x {
			b[k+1] = 1
		}
	case int:
		t, size = TypeInt32, 4
		le.PutUint64(b[k+1:], uint64(x))
		if int(int32(x)) != x {
			t, size = TypeInt64, 8
		}
	case ObjectID:
		t, size = TypeObjectID, 12
		copy(b[k+1:], x[:])
	case DateTime:
		t = TypeDateTime
		le.PutUint64(b[k+1:], uint64(x))
	case nil:
		t, size = TypeNull, 0
	default:
		return dst[:n], false
	}
	b[n] = byte(t)
	return b[:k+1+size], true
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
	copy(dst[at+4:], s)
	dst[end-1] = 0
	if !validText(dst[at+4 : end-1]) {
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
