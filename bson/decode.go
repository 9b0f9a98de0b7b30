package bson

import (
	"errors"
	"fmt"
	"reflect"
)

// errMismatch is what a decoder of an own type returns for a BSON type that it does not take.
var errMismatch = errors.New("type mismatch")

func isNull(v RawValue) bool { return v.Type == TypeNull || v.Type == TypeUndefined }

// Unmarshal stores a document into v, a pointer that is not nil or a map that is not nil. Into an any it stores a D.
// Keys without a field are left out; fields without a key keep what they have; null sets the zero value. What is stored
// shares no bytes with data. An interface in a struct's field that holds a pointer stays, and what it points to is stored into.
// The error is a *DecodeError; v may be partly set then.
func Unmarshal(data []byte, v any) error { return unmarshal(defaults(), data, v) }

// Unmarshal is the function Unmarshal with these options. With StringsAliased what is stored does share bytes with data.
func (o Options) Unmarshal(data []byte, v any) error { return unmarshal(o.plans(), data, v) }

func unmarshal(ps *plans, data []byte, v any) error {
	d := newDecoder(ps, len(data))
	err := d.whole(data, v)
	d.release()
	return err
}

// whole decodes a document that fills data.
func (d *decoder) whole(data []byte, v any) error {
	if n := length(data); n != len(data) || n < 5 {
		return decodeDone(invalid("length prefix %d, %d bytes", n, len(data)))
	}
	return d.into(RawValue{TypeEmbeddedDocument, data}, v)
}

// UnmarshalValue stores the value of type t and payload data into v, as RawValue.Unmarshal does.
func UnmarshalValue(t Type, data []byte, v any) error { return RawValue{t, data}.Unmarshal(v) }

// Unmarshal stores the value into what v points to; see the function Unmarshal.
func (v RawValue) Unmarshal(to any) error { return unmarshalValue(defaults(), v, to) }

// UnmarshalValue stores a value into what the pointer points to; see the function Unmarshal.
func (o Options) UnmarshalValue(v RawValue, to any) error { return unmarshalValue(o.plans(), v, to) }

func unmarshalValue(ps *plans, v RawValue, to any) error {
	if n := payloadLen(v.Type, v.Value); n != len(v.Value) {
		return decodeDone(invalid("%d bytes are no %v", len(v.Value), v.Type))
	}
	d := newDecoder(ps, len(v.Value))
	err := d.into(v, to)
	d.release()
	return err
}

// into decodes a value, whose outer length is right, into what v points to.
func (d *decoder) into(v RawValue, to any) error {
	if to == nil {
		return decodeDone(fmt.Errorf("cannot decode into nil"))
	}
	c := d.ps.of(to)
	switch c.typ.Kind() {
	case reflect.Pointer:
		if p, ok := target(to); ok {
			return decodeDone(d.ps.pointed(c).dec(d, v, p, 1))
		}
	case reflect.Map:
		if rv := reflect.ValueOf(to); !rv.IsNil() {
			p := reflect.New(c.typ)
			p.Elem().Set(rv) // the same map, at an address
			return decodeDone(c.dec(d, v, placeOf(p), 1))
		}
	default:
		return decodeDone(fmt.Errorf("cannot decode into %s: it needs a pointer", describe(to)))
	}
	return decodeDone(fmt.Errorf("cannot decode into %s", describe(to)))
}

// pointed is the codec of what the pointers of a type point to, also where the pointer itself was registered.
func (ps *plans) pointed(c *codec) *codec {
	if c.elem != nil {
		return c.elem
	}
	return ps.codecOf(c.typ.Elem())
}

// Any returns the Go value that a D would hold, a copy: D, A, string, ObjectID, DateTime, nil, ... It is nil for malformed
// bytes and for the zero RawValue.
func (v RawValue) Any() any {
	if payloadLen(v.Type, v.Value) != len(v.Value) {
		return nil
	}
	d := newDecoder(defaults(), len(v.Value))
	x, err := d.any(v, 1, insideD)
	d.release()
	if err != nil {
		return nil
	}
	return x
}

// Batch decodes documents one after the other, as Unmarshal does, and lets their strings share chunks: see StringMemory.
// The zero Batch has the default options. It must not be used by two goroutines at a time.
type Batch struct {
	options Options
	d       *decoder
}

// NewBatch returns a Batch with these options.
func (o Options) NewBatch() *Batch { return &Batch{options: o} }

// Unmarshal stores a document into v; see the function Unmarshal.
func (b *Batch) Unmarshal(doc []byte, v any) error {
	err := b.begin().whole(doc, v)
	b.d.endDocument()
	return err
}

// UnmarshalValue stores a value into what the pointer points to; see the function Unmarshal.
func (b *Batch) UnmarshalValue(v RawValue, to any) error {
	if n := payloadLen(v.Type, v.Value); n != len(v.Value) {
		return decodeDone(invalid("%d bytes are no %v", len(v.Value), v.Type))
	}
	err := b.begin().into(v, to)
	b.d.endDocument()
	return err
}

func (b *Batch) begin() *decoder {
	if b.d == nil {
		b.d = &decoder{batch: true}
	}
	b.d.start(b.options.plans(), maxChunk)
	return b.d
}
