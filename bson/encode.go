package bson

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"sync"
	"time"
)

// Marshal returns v as a document. v is a D, an M, a Raw, a struct, a map with string keys, a pointer to one of them,
// or a Marshaler. A nil v is an error: write an empty document as D{}. The error is an *EncodeError.
func Marshal(v any) ([]byte, error) { return marshal(defaults(), v) }

// Marshal is the function Marshal with these options.
func (o Options) Marshal(v any) ([]byte, error) { return marshal(o.plans(), v) }

// Append appends v as a document to dst, without intermediate copies; see Marshal. On an error dst comes back as it was.
func Append(dst []byte, v any) ([]byte, error) { return appendDoc(defaults(), dst, v) }

// Append is the function Append with these options.
func (o Options) Append(dst []byte, v any) ([]byte, error) { return appendDoc(o.plans(), dst, v) }

func marshal(ps *plans, v any) ([]byte, error) {
	p := scratch.Get().(*[]byte)
	out, err := appendDoc(ps, (*p)[:0], v)
	var exact []byte
	if err == nil {
		exact = bytes.Clone(out)
	}
	if cap(out) <= maxScratch {
		*p = out
		scratch.Put(p)
	}
	return exact, err
}

// scratch holds buffers that Marshal encodes into before it knows the size. Larger ones are left to the collector, so
// that one huge document does not stay in memory.
var scratch = sync.Pool{New: func() any { return new(make([]byte, 0, 1024)) }}

const maxScratch = 64 << 10

func appendDoc(ps *plans, dst []byte, v any) ([]byte, error) {
	out, t, err := ps.appendAny(dst, v, 1)
	if err == nil {
		err = checkSize(int64(len(out) - len(dst)))
	}
	if err == nil && t != TypeEmbeddedDocument {
		err = fmt.Errorf("cannot encode %s as a document: it becomes %v", describe(v), t)
	}
	if err != nil {
		return dst, encodeDone(err)
	}
	return out, nil
}

// checkSize refuses what is larger than the lengths of BSON can say. No part is larger than the whole.
func checkSize(n int64) error {
	if n > math.MaxInt32 {
		return fmt.Errorf("a document of %d bytes: the lengths of BSON end at %d", n, math.MaxInt32)
	}
	return nil
}

func describe(v any) string {
	if v == nil {
		return "nil"
	}
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer || rv.Kind() == reflect.Map || rv.Kind() == reflect.Slice {
		if rv.IsNil() {
			return fmt.Sprintf("a nil %T", v)
		}
	}
	return fmt.Sprintf("a %T", v)
}

// AppendAny appends one element made of any Go value to dst. On an error dst comes back as it was.
func AppendAny(dst []byte, key string, v any) ([]byte, error) {
	return appendElementDone(defaults(), dst, key, v)
}

// AppendAny is the function AppendAny with these options.
func (o Options) AppendAny(dst []byte, key string, v any) ([]byte, error) {
	return appendElementDone(o.plans(), dst, key, v)
}

func appendElementDone(ps *plans, dst []byte, key string, v any) ([]byte, error) {
	out, err := ps.appendElement(dst, key, v, 2)
	if err == nil {
		err = checkSize(int64(len(out) - len(dst)))
	}
	if err != nil {
		return dst, encodeDone(err)
	}
	return out, nil
}

// ValueOf returns any Go value as BSON. The error is an *EncodeError.
func ValueOf(v any) (RawValue, error) { return valueOf(defaults(), v) }

// ValueOf is the function ValueOf with these options.
func (o Options) ValueOf(v any) (RawValue, error) { return valueOf(o.plans(), v) }

func valueOf(ps *plans, v any) (RawValue, error) {
	out, t, err := ps.appendAny(nil, v, 1)
	if err == nil {
		err = checkSize(int64(len(out)))
	}
	if err != nil {
		return RawValue{}, encodeDone(err)
	}
	return RawValue{t, out}, nil
}

// MarshalValue is ValueOf with type and payload apart.
func MarshalValue(v any) (Type, []byte, error) {
	rv, err := ValueOf(v)
	return rv.Type, rv.Value, err
}

// appendAny appends the payload of v. depth is what a document written here counts as.
// The cases are for speed: the codecs know all these types too.
func (ps *plans) appendAny(dst []byte, v any, depth int) ([]byte, Type, error) {
	if ps.registry.common {
		return ps.appendReflected(dst, v, depth)
	}
	switch x := v.(type) {
	case nil:
		return dst, TypeNull, nil
	case string:
		return encodeString(ps, dst, x, depth)
	case int:
		return encodeInt(ps, dst, x, depth)
	case int32:
		return encodeSmall(ps, dst, x, depth)
	case int64:
		if ps.opts.IntMinSize {
			return encodeMinSize(ps, dst, x, depth)
		}
		return encodeInt64(ps, dst, x, depth)
	case float64:
		return encodeFloat(ps, dst, x, depth)
	case bool:
		return encodeBool(ps, dst, x, depth)
	case ObjectID:
		return encodeObjectID(ps, dst, x, depth)
	case D:
		return encodeD(ps, dst, x, depth)
	case M:
		return encodeStringMap(ps, dst, x, depth)
	case A:
		return encodeAnys(ps, dst, x, depth)
	case Raw:
		return encodeRaw(ps, dst, x, depth)
	case RawValue:
		return encodeRawValue(ps, dst, x, depth)
	case RawArray:
		return encodeRawArray(ps, dst, x, depth)
	case DateTime:
		return encodeDateTime(ps, dst, x, depth)
	case time.Time:
		return encodeTime(ps, dst, x, depth)
	case Timestamp:
		return encodeTimestamp(ps, dst, x, depth)
	case []byte:
		return encodeBytes(ps, dst, x, depth)
	case Binary:
		return encodeBinary(ps, dst, x, depth)
	}
	return ps.appendReflected(dst, v, depth)
}

// appendReflected appends a value by the compiled codec of its type.
func (ps *plans) appendReflected(dst []byte, v any, depth int) ([]byte, Type, error) {
	if v == nil {
		return dst, TypeNull, nil
	}
	c := ps.of(v)
	if c.elem != nil {
		p, ok := target(v)
		if !ok {
			return dst, TypeNull, nil
		}
		if depth > MaxDepth+1 { // the one is for pointers to scalars in the deepest document
			return dst, 0, tooDeep()
		}
		return c.elem.enc(ps, dst, p, depth+c.more)
	}
	if c.direct || c.pointerHooks {
		// The word in the interface is the value itself, or a method with a pointer receiver could write to it.
		cp := reflect.New(c.typ)
		cp.Elem().Set(reflect.ValueOf(v))
		return c.enc(ps, dst, placeOf(cp), depth)
	}
	return c.enc(ps, dst, inside(v), depth)
}
