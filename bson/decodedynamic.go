package bson

import (
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// container says what holds an any, and so what a document in it becomes.
type container uint8

const (
	insideD   container = iota // D
	insideM                    // M
	insideMap                  // map[string]any
)

// within is the container that documents inside one of the kind in become.
func (d *decoder) within(in container) container {
	switch d.ps.opts.Documents {
	case DocumentsAsD:
		return insideD
	case DocumentsAsM:
		return insideM
	case DocumentsAsMap:
		return insideMap
	}
	return in
}

// any makes the Go value that stands for v.
func (d *decoder) any(v RawValue, depth int, in container) (any, error) {
	old := d.begin(v.Value)
	x, err := d.valueAt(v.Type, 0, len(v.Value), depth, d.within(in))
	d.end(old)
	return x, err
}

// source is what is decoded into any, and how far it has been copied.
type source struct {
	src    []byte
	window string
	winAt  int
	elems  int // how many lie on the stack already
	single bool
}

// begin makes b the source; end puts back what was the source before. A source inside another, which only the scope of a
// code is, may lie in a later chunk than what follows it: its strings share no boxes, so that no box keeps two chunks.
func (d *decoder) begin(b []byte) source {
	old := source{d.src, d.window, d.winAt, len(d.elems), d.single}
	d.src, d.window, d.winAt, d.single = b, "", 0, d.single || d.src != nil
	return old
}

func (d *decoder) end(old source) {
	d.src, d.window, d.winAt, d.single = old.src, old.window, old.winAt, old.single
}

// cut returns a text of the source. Most are cut from a window, a copy of up to 8 KiB that is made in one go: keys and
// strings are most of a document, and copying the rest costs less than finding out what it is.
func (d *decoder) cut(from, to int) string {
	if from >= d.winAt && to-d.winAt <= len(d.window) {
		return d.window[from-d.winAt : to-d.winAt]
	}
	return d.cutElsewhere(from, to)
}

func (d *decoder) cutElsewhere(from, to int) string {
	switch {
	case d.memory == StringsCopied, d.memory == StringsInChunks && to-from > maxShare:
		return string(d.src[from:to])
	case d.memory == StringsAliased:
		d.window, d.winAt = aliasText(d.src), 0
		return d.window[from:to]
	}
	rest := d.src[from:min(len(d.src), from+maxChunk)]
	if free := cap(d.chunk) - len(d.chunk); free < len(rest) {
		if free >= to-from && free >= maxShare {
			rest = rest[:free]
		} else {
			d.newChunk(len(rest))
		}
	}
	n := len(d.chunk)
	d.chunk = append(d.chunk, rest...)
	d.filled -= len(rest) // what is copied unseen says nothing about how much text there is
	d.window, d.winAt = aliasText(d.chunk[n:]), from
	if !d.single && d.boxed != d.chunks {
		d.boxes.another() // so that none keeps two chunks
		d.boxed = d.chunks
	}
	return d.cut(from, to)
}

// valueAt makes the Go value of type t whose payload is src[from:to]; in is what a document becomes.
func (d *decoder) valueAt(t Type, from, to int, depth int, in container) (any, error) {
	b := d.src[from:to:to]
	switch t {
	case TypeString:
		end := to - 1
		if len(b) < 5 || d.src[end] != 0 {
			return nil, malformed(RawValue{t, b})
		}
		if !validText(b[4 : len(b)-1]) {
			return nil, invalid("string %.60q is not UTF-8", b[4:len(b)-1])
		}
		s := d.cut(from+4, end)
		if len(s) > maxShare || d.single {
			return s, nil
		}
		return d.boxes.text(s), nil
	case TypeInt32:
		return d.boxes.int32(int32(le.Uint32(b))), nil
	case TypeInt64:
		return d.boxes.int64(int64(le.Uint64(b))), nil
	case TypeDouble:
		return d.boxes.float64(math.Float64frombits(le.Uint64(b))), nil
	case TypeBoolean:
		if b[0] > 1 {
			return nil, malformed(RawValue{t, b})
		}
		return b[0] == 1, nil
	case TypeNull:
		return nil, nil
	case TypeEmbeddedDocument:
		return d.documentAt(from, to, depth, in)
	case TypeArray:
		return d.arrayAt(from, to, depth, in)
	case TypeObjectID:
		return d.boxes.objectID(ObjectID(b)), nil
	case TypeDateTime:
		return d.boxes.dateTime(DateTime(le.Uint64(b))), nil
	}
	return d.rare(RawValue{t, b}, depth)
}

func (d *decoder) rare(v RawValue, depth int) (any, error) {
	switch v.Type {
	case TypeTimestamp:
		t, i := v.Timestamp()
		return d.boxes.timestamp(Timestamp{t, i}), nil
	case TypeDecimal128:
		return d.boxes.decimal(v.Decimal128()), nil
	case TypeBinary:
		if subtype, data, ok := v.BinaryOK(); ok && d.ps.opts.BinaryAsSlice && plainBytes(subtype) {
			return append(make([]byte, 0, len(data)), data...), nil
		}
		return fresh(d, v, depth, decodeBinary)
	case TypeRegex:
		return fresh(d, v, depth, decodeRegex)
	case TypeDBPointer:
		return fresh(d, v, depth, decodeDBPointer)
	case TypeJavaScript:
		return fresh(d, v, depth, decodeJavaScript)
	case TypeSymbol:
		return fresh(d, v, depth, decodeSymbol)
	case TypeCodeWithScope:
		return fresh(d, v, depth, decodeCodeWithScope)
	case TypeUndefined:
		return Undefined{}, nil
	case TypeMinKey:
		return MinKey{}, nil
	case TypeMaxKey:
		return MaxKey{}, nil
	}
	return nil, invalid("%v", v.Type)
}

func fresh[T any](d *decoder, v RawValue, depth int, dec func(*decoder, RawValue, *T, int) error) (any, error) {
	var x T
	if err := dec(d, v, &x, depth); err != nil {
		return nil, err
	}
	return x, nil
}

func malformed(v RawValue) error { return invalid("not a %v", v.Type) }

// documentAt makes the container of the document at src[from:to].
func (d *decoder) documentAt(from, to, depth int, in container) (any, error) {
	base := len(d.elems)
	if err := d.elements(from, to, depth, in); err != nil {
		return nil, err
	}
	if in == insideD {
		return d.popD(base), nil
	}
	m := make(map[string]any, len(d.elems)-base)
	d.popInto(m, base)
	if in == insideM {
		return M(m), nil
	}
	return m, nil
}

// popD takes the elements from base on off the stack.
func (d *decoder) popD(base int) D {
	top := d.elems[base:]
	out := make(D, len(top))
	copy(out, top)
	clear(top)
	d.elems = d.elems[:base]
	return out
}

func (d *decoder) popInto(m map[string]any, base int) {
	top := d.elems[base:]
	for i := range top {
		m[top[i].Key] = top[i].Value
	}
	clear(top)
	d.elems = d.elems[:base]
}

// elements pushes the elements of the document at src[from:to].
func (d *decoder) elements(from, to, depth int, in container) error {
	if depth > MaxDepth {
		return tooDeep()
	}
	src := d.src[:to]
	end := to - 1
	if to-from < 5 || src[end] != 0 {
		return invalid("no terminator")
	}
	for at := from + 4; at < end; {
		t := Type(src[at])
		if t == 0 {
			return invalid("bytes after the terminator")
		}
		z, plain := keyEnd(src, at+1)
		if z >= end {
			return invalid("key without end")
		}
		key := d.cut(at+1, z)
		if !plain && !utf8.ValidString(key) {
			return invalid("key %q is not UTF-8", key)
		}
		n := payloadLen(t, src[z+1:end])
		if n < 0 {
			return invalid("%v %q does not fit", t, key)
		}
		next := z + 1 + n
		x, err := d.valueAt(t, z+1, next, depth+1, in)
		if err != nil {
			return decodeUnder(err, key)
		}
		d.elems = append(d.elems, E{key, x})
		at = next
	}
	return nil
}

// keyEnd finds the NUL at or after at, and whether all before it is ASCII. The last byte of b is NUL.
func keyEnd(b []byte, at int) (end int, plain bool) {
	var high uint64
	for ; at+8 <= len(b); at += 8 {
		w := le.Uint64(b[at:])
		if z := (w - lowBits) &^ w & highBits; z != 0 {
			// The lowest bit is of the first NUL. Bytes behind it do not count.
			first := bits.TrailingZeros64(z)
			return at + first/8, (high|w<<(63-first))&highBits == 0
		}
		high |= w
	}
	plain = high&highBits == 0
	for ; b[at] != 0; at++ {
		plain = plain && b[at] < utf8.RuneSelf
	}
	return at, plain
}

// arrayAt makes the A of the array at src[from:to].
func (d *decoder) arrayAt(from, to, depth int, in container) (A, error) {
	if depth > MaxDepth {
		return nil, tooDeep()
	}
	src := d.src[:to]
	end := to - 1
	if to-from < 5 || src[end] != 0 {
		return nil, invalid("no terminator")
	}
	base := len(d.items)
	for at := from + 4; at < end; {
		t := Type(src[at])
		if t == 0 {
			return nil, invalid("bytes after the terminator")
		}
		z := at + 1
		for src[z] != 0 {
			z++
		}
		n := -1
		if z < end {
			n = payloadLen(t, src[z+1:end])
		}
		if n < 0 {
			return nil, invalid("%v %q does not fit", t, src[at+1:z])
		}
		next := z + 1 + n
		x, err := d.valueAt(t, z+1, next, depth+1, in)
		if err != nil {
			return nil, decodeUnder(err, strconv.Itoa(len(d.items)-base))
		}
		d.items = append(d.items, x)
		at = next
	}
	top := d.items[base:]
	out := make(A, len(top))
	copy(out, top)
	clear(top)
	d.items = d.items[:base]
	return out, nil
}
