//go:build !purego

package bson

import (
	"reflect"
	"sync/atomic"
	"unsafe"
)

// This is the only file of the package that knows package unsafe. portable.go does the same without it, for builds with
// the tag purego. What must hold, here and at the callers:
//
//  1. A place is the address of a live value, kept as a pointer that the collector sees, never as a number.
//  2. at[T] is only asked of a place whose value is a T, or of a named type whose underlying type is that of T.
//     A codec is only given places of the type that it was compiled for, so that this is settled when it is compiled.
//  3. field and item stay inside the value: spots come from reflect, item numbers are below the length.
//  4. Behind inside(v) is memory that belongs to an interface, behind bytesOf(s) that of a text. It is read, never written.
//  5. aliasText and the boxes hand out memory that nobody writes afterwards. An arena writes each byte or word once,
//     before it hands it out, and forgets it then. With StringsAliased the caller has promised the same for the input.
//  6. A room is only written, and words only read, where the caller has compared: the whole word lies inside the slice's
//     capacity, or inside the text or slice that is read.
//  7. Boxed words hold no pointers; boxed strings lie in a []string, so that the collector sees what they point to.

// place is where a Go value lies.
type place struct{ p unsafe.Pointer }

// spot leads from a struct to one of its fields.
type spot struct{ offset uintptr }

func spotOf(t reflect.Type, index []int) spot {
	return spot{t.FieldByIndex(index).Offset + outer(t, index)}
}

// outer is the offset of the struct that holds the last field of index: FieldByIndex knows the last step alone.
func outer(t reflect.Type, index []int) (sum uintptr) {
	for n := 1; n < len(index); n++ {
		sum += t.FieldByIndex(index[:n]).Offset
	}
	return sum
}

// placeOf returns where a pointer points.
func placeOf(pointer reflect.Value) place { return place{pointer.UnsafePointer()} }

// at returns the value at a place: see rule 2.
func at[T any](p place) *T { return (*T)(p.p) }

// value returns the value at a place, which is of type t, for package reflect.
func (p place) value(t reflect.Type) reflect.Value { return reflect.NewAt(t, p.p).Elem() }

func (p place) field(s *spot) place { return place{unsafe.Add(p.p, s.offset)} }

// item returns item i of what items, makeItems or the place of an array gave. Each takes size bytes.
func (p place) item(i int, size uintptr) place { return place{unsafe.Add(p.p, uintptr(i)*size)} }

// items returns the items of the slice at p, not ok for a nil slice.
func (p place) items() (first place, n int, ok bool) {
	s := *(*[]struct{})(p.p)
	return place{unsafe.Pointer(unsafe.SliceData(s))}, len(s), s != nil
}

// makeItems puts a new slice of n zero items at p, where a slice of type t is, and returns its items.
func (p place) makeItems(t reflect.Type, n int) place {
	v := p.value(t)
	v.SetZero() // never the old array: it may be in the hands of whoever decoded into this variable before
	if n == 0 {
		v.Set(reflect.MakeSlice(t, 0, 0))
	}
	v.Grow(n)
	v.SetLen(n)
	return place{v.UnsafePointer()}
}

// makeSlice is makeItems for slices of T.
func makeSlice[T any](p place, _ reflect.Type, n int) place {
	s := make([]T, n)
	*at[[]T](p) = s
	return place{unsafe.Pointer(unsafe.SliceData(s))}
}

// pointee returns where the pointer at p points, not ok for nil.
func (p place) pointee() (place, bool) {
	q := *(*unsafe.Pointer)(p.p)
	return place{q}, q != nil
}

// makePointee puts a pointer to a new value of type elem at p.
func (p place) makePointee(elem reflect.Type) place {
	q := reflect.New(elem).UnsafePointer()
	*(*unsafe.Pointer)(p.p) = q
	return place{q}
}

func (p place) setNil() { *(*unsafe.Pointer)(p.p) = nil }

// inside returns the place of the value in an interface that does not hold it in its word (isDirect), for reading.
func inside(v any) place { return place{(*[2]unsafe.Pointer)(unsafe.Pointer(&v))[1]} }

// target returns where the pointer in an interface points, not ok for nil.
func target(v any) (place, bool) {
	p := inside(v).p
	return place{p}, p != nil
}

// aliasText returns bytes as text that shares them.
func aliasText(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf returns the bytes of a text, for reading.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// room is the memory of a slice, up to its capacity, at any index of which words are written and read: see rule 6.
type room struct{ p unsafe.Pointer }

func roomOf(b []byte) room { return room{unsafe.Pointer(unsafe.SliceData(b))} }

func (r room) put8(at int, v byte)    { *(*byte)(unsafe.Add(r.p, at)) = v }
func (r room) put16(at int, v uint16) { le.PutUint16((*[2]byte)(unsafe.Add(r.p, at))[:], v) }
func (r room) put32(at int, v uint32) { le.PutUint32((*[4]byte)(unsafe.Add(r.p, at))[:], v) }
func (r room) put64(at int, v uint64) { le.PutUint64((*[8]byte)(unsafe.Add(r.p, at))[:], v) }

func (r room) get8(at int) byte    { return *(*byte)(unsafe.Add(r.p, at)) }
func (r room) get32(at int) uint32 { return le.Uint32((*[4]byte)(unsafe.Add(r.p, at))[:]) }
func (r room) get64(at int) uint64 { return le.Uint64((*[8]byte)(unsafe.Add(r.p, at))[:]) }

// word16, word32 and word64 read from a text: see rule 6.
func word16(s string, at int) uint16 {
	return le.Uint16((*[2]byte)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), at))[:])
}

func word32(s string, at int) uint32 {
	return le.Uint32((*[4]byte)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), at))[:])
}

func word64(s string, at int) uint64 {
	return le.Uint64((*[8]byte)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), at))[:])
}

// quick finds the codec of a value's type by the address of the type's description: a table that later types
// overwrite, in front of the real one.
type quick [256]atomic.Pointer[quickEntry]

type quickEntry struct {
	word unsafe.Pointer
	c    *codec
}

func typeWord(v any) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&v)) }

// of is codecOf for the type of v.
func (ps *plans) of(v any) *codec {
	word := typeWord(v)
	slot := &ps.quick[uintptr(word)>>5%uintptr(len(ps.quick))]
	if e := slot.Load(); e != nil && e.word == word {
		return e.c
	}
	c := ps.codecOf(reflect.TypeOf(v)) // whose typ keeps the description alive
	slot.Store(&quickEntry{word, c})
	return c
}

// boxes puts scalars into interfaces, many to one allocation.
type boxes struct {
	words []uint64
	texts []string
	apart bool // the boxes of both kinds have been started
}

// pair is what the boxes of a document start with: enough for many documents.
type pair struct {
	texts [8]string
	words [16]uint64
}

const moreBoxes = 32

// another makes the next string start another chunk of boxes.
func (b *boxes) another() { b.texts = nil }

func (b *boxes) start() {
	p := new(pair)
	b.words, b.texts, b.apart = p.words[:], p.texts[:], true
}

// reset makes the next box of strings start anew, and that of numbers too unless those that follow lie apart from strings:
// they keep nothing else then.
func (b *boxes) reset(apart bool) {
	b.texts = nil
	if b.apart = apart; !apart {
		b.words = nil
	}
}

var (
	float64Word   = typeWord(float64(0))
	int32Word     = typeWord(int32(0))
	int64Word     = typeWord(int64(0))
	dateTimeWord  = typeWord(DateTime(0))
	timestampWord = typeWord(Timestamp{})
	objectIDWord  = typeWord(ObjectID{})
	decimalWord   = typeWord(Decimal128{})
	stringWord    = typeWord("")
)

func boxed(word, data unsafe.Pointer) (v any) {
	*(*[2]unsafe.Pointer)(unsafe.Pointer(&v)) = [2]unsafe.Pointer{word, data}
	return v
}

func (b *boxes) take(n int) unsafe.Pointer {
	if len(b.words) < n {
		if b.apart {
			b.words = make([]uint64, moreBoxes)
		} else {
			b.start()
		}
	}
	p := unsafe.Pointer(unsafe.SliceData(b.words))
	b.words = b.words[n:]
	return p
}

func (b *boxes) float64(x float64) any {
	p := b.take(1)
	*(*float64)(p) = x
	return boxed(float64Word, p)
}

func (b *boxes) int32(x int32) any {
	p := b.take(1)
	*(*int32)(p) = x
	return boxed(int32Word, p)
}

func (b *boxes) int64(x int64) any {
	p := b.take(1)
	*(*int64)(p) = x
	return boxed(int64Word, p)
}

func (b *boxes) dateTime(x DateTime) any {
	p := b.take(1)
	*(*DateTime)(p) = x
	return boxed(dateTimeWord, p)
}

func (b *boxes) timestamp(x Timestamp) any {
	p := b.take(1)
	*(*Timestamp)(p) = x
	return boxed(timestampWord, p)
}

func (b *boxes) objectID(x ObjectID) any {
	p := b.take(2)
	*(*ObjectID)(p) = x
	return boxed(objectIDWord, p)
}

func (b *boxes) decimal(x Decimal128) any {
	p := b.take(2)
	*(*Decimal128)(p) = x
	return boxed(decimalWord, p)
}

func (b *boxes) text(s string) any {
	if len(b.texts) == 0 {
		if b.apart {
			b.texts = make([]string, moreBoxes)
		} else {
			b.start()
		}
	}
	p := unsafe.Pointer(unsafe.SliceData(b.texts))
	b.texts[0] = s
	b.texts = b.texts[1:]
	return boxed(stringWord, p)
}
