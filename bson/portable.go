//go:build purego

package bson

import "reflect"

// This file stands for unsafe.go where package unsafe is not wanted: the same functions over package reflect. It is
// slower, and what is shared there is copied here.

// place is where a Go value lies: an addressable value. A slice or array stands for its items, too.
type place struct{ v reflect.Value }

// spot leads from a struct to one of its fields.
type spot struct{ index []int }

func spotOf(_ reflect.Type, index []int) spot { return spot{index} }

// placeOf returns where a pointer points.
func placeOf(pointer reflect.Value) place { return place{pointer.Elem()} }

// at returns the value at a place, which is a T or of a named type with the underlying type of T.
func at[T any](p place) *T {
	if x, ok := p.v.Addr().Interface().(*T); ok {
		return x
	}
	return p.v.Addr().Convert(reflect.TypeFor[*T]()).Interface().(*T)
}

// value returns the value at a place for package reflect.
func (p place) value(reflect.Type) reflect.Value { return p.v }

func (p place) field(s *spot) place { return place{p.v.FieldByIndex(s.index)} }

// item returns item i of what items, makeItems or the place of an array gave.
func (p place) item(i int, _ uintptr) place { return place{p.v.Index(i)} }

// items returns the items of the slice at p, not ok for a nil slice.
func (p place) items() (first place, n int, ok bool) { return p, p.v.Len(), !p.v.IsNil() }

// makeItems puts a new slice of n zero items at p and returns its items.
func (p place) makeItems(t reflect.Type, n int) place {
	p.v.Set(reflect.MakeSlice(t, n, n))
	return p
}

// makeSlice is makeItems for slices of T.
func makeSlice[T any](p place, t reflect.Type, n int) place { return p.makeItems(t, n) }

// pointee returns where the pointer at p points, not ok for nil.
func (p place) pointee() (place, bool) { return place{p.v.Elem()}, !p.v.IsNil() }

// makePointee puts a pointer to a new value of type elem at p.
func (p place) makePointee(elem reflect.Type) place {
	p.v.Set(reflect.New(elem).Convert(p.v.Type()))
	return place{p.v.Elem()}
}

func (p place) setNil() { p.v.SetZero() }

// inside returns the place of a copy of the value in an interface.
func inside(v any) place {
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	return place{p.Elem()}
}

// target returns where the pointer in an interface points, not ok for nil.
func target(v any) (place, bool) {
	rv := reflect.ValueOf(v)
	return place{rv.Elem()}, !rv.IsNil()
}

// aliasText returns a copy.
func aliasText(b []byte) string { return string(b) }

// bytesOf returns a copy.
func bytesOf(s string) []byte { return []byte(s) }

// room is the memory of a slice, up to its capacity, at any index of which words are written and read.
type room struct{ b []byte }

func roomOf(b []byte) room { return room{b[:cap(b)]} }

func (r room) put8(at int, v byte)    { r.b[at] = v }
func (r room) put16(at int, v uint16) { le.PutUint16(r.b[at:], v) }
func (r room) put32(at int, v uint32) { le.PutUint32(r.b[at:], v) }
func (r room) put64(at int, v uint64) { le.PutUint64(r.b[at:], v) }

func (r room) get8(at int) byte    { return r.b[at] }
func (r room) get32(at int) uint32 { return le.Uint32(r.b[at:]) }
func (r room) get64(at int) uint64 { return le.Uint64(r.b[at:]) }

// word16, word32 and word64 read from a text.
func word16(s string, at int) uint16 { return uint16(s[at]) | uint16(s[at+1])<<8 }

func word32(s string, at int) uint32 { return uint32(word16(s, at)) | uint32(word16(s, at+2))<<16 }

func word64(s string, at int) uint64 { return uint64(word32(s, at)) | uint64(word32(s, at+4))<<32 }

// quick has nothing to do here.
type quick struct{}

// of is codecOf for the type of v.
func (ps *plans) of(v any) *codec { return ps.codecOf(reflect.TypeOf(v)) }

// boxes leaves putting scalars into interfaces to Go.
type boxes struct{}

func (*boxes) reset(bool) {}
func (*boxes) another()   {}

func (*boxes) float64(x float64) any     { return x }
func (*boxes) int32(x int32) any         { return x }
func (*boxes) int64(x int64) any         { return x }
func (*boxes) dateTime(x DateTime) any   { return x }
func (*boxes) timestamp(x Timestamp) any { return x }
func (*boxes) objectID(x ObjectID) any   { return x }
func (*boxes) decimal(x Decimal128) any  { return x }
func (*boxes) text(s string) any         { return s }
