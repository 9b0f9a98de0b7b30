package bson

import (
	"encoding/json"
	"net/url"
	"reflect"
	"sync"
	"time"
	"unsafe"
)

// encodeFunc appends the payload of the value at p. depth is what a document written here counts as.
type encodeFunc func(dst []byte, p unsafe.Pointer, depth int) ([]byte, Type, error)

// decodeFunc stores v into the value at p. The outer length of v has been checked, what is inside has not.
type decodeFunc func(v RawValue, p unsafe.Pointer, depth int) error

// codec is the compiled plan of one Go type.
//
// Invariant: a codec that codecOf returns, and all that it refers to, are complete and never change again.
type codec struct {
	typ reflect.Type
	enc encodeFunc
	dec decodeFunc
	// direct: an interface holds such a value in its word, not behind a pointer.
	direct bool
	// pointerHooks: the type, or one inside it, has marshalling methods with pointer receivers.
	pointerHooks bool
}

// codecs holds the codec of every type met so far: reflect.Type -> *codec.
var codecs sync.Map

func codecOf(t reflect.Type) *codec {
	if c, ok := codecs.Load(t); ok {
		return c.(*codec)
	}
	return compileAll(t)
}

// compileAll compiles t and all types that it needs, and publishes them together. Two goroutines may do it at the same
// time: each has a complete set then, and it does not matter whose is kept.
func compileAll(t reflect.Type) *codec {
	cc := &compiler{seen: map[planKey]*codec{}}
	c := cc.compile(t, planFlags{})
	for k, x := range cc.seen {
		x.pointerHooks = cc.pointerHooks
		if k.flags == (planFlags{}) {
			codecs.LoadOrStore(k.t, x)
		}
	}
	return c
}

// planFlags are the settings of a struct tag that hold for the field's value and for what it is made of.
type planFlags struct{ minSize, truncate bool }

type planKey struct {
	t     reflect.Type
	flags planFlags
}

// compiler is one run of compileAll. seen holds also those that are not complete yet, for recursive types.
type compiler struct {
	seen         map[planKey]*codec
	pointerHooks bool
}

func (cc *compiler) compile(t reflect.Type, flags planFlags) *codec {
	key := planKey{t, flags}
	if c, ok := cc.seen[key]; ok {
		return c
	}
	if flags == (planFlags{}) {
		if c, ok := codecs.Load(t); ok {
			cc.pointerHooks = cc.pointerHooks || c.(*codec).pointerHooks
			return c.(*codec)
		}
	}
	c := &codec{typ: t, direct: isDirect(t)}
	cc.seen[key] = c
	if own, ok := ownTypes[t]; ok {
		c.enc, c.dec = own.enc, own.dec
		return c
	}
	c.enc, c.dec = cc.byKind(t, flags)
	cc.hooks(c)
	return c
}

// isDirect reports whether an interface holds a value of type t in its word.
func isDirect(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return true
	case reflect.Struct:
		return t.NumField() == 1 && isDirect(t.Field(0).Type)
	case reflect.Array:
		return t.Len() == 1 && isDirect(t.Elem())
	}
	return false
}

type ownCodec struct {
	enc encodeFunc
	dec decodeFunc
}

// own makes a codec of two functions over the Go type itself. A null sets the zero value, save where dec wants it.
func own[T any](enc func([]byte, T, int) ([]byte, Type, error), dec func(RawValue, *T, int) error) ownCodec {
	t := reflect.TypeFor[T]()
	return ownCodec{
		enc: func(dst []byte, p unsafe.Pointer, depth int) ([]byte, Type, error) {
			return enc(dst, *(*T)(p), depth)
		},
		dec: func(v RawValue, p unsafe.Pointer, depth int) error {
			err := dec(v, (*T)(p), depth)
			if err != errMismatch {
				return err
			}
			if isNull(v) {
				*(*T)(p) = *new(T)
				return nil
			}
			return mismatch(v, t)
		},
	}
}

// ownTypes are the types whose meaning does not follow from their kind.
var ownTypes map[reflect.Type]ownCodec

func init() { // not a variable's initialiser: the functions refer to the table by way of codecOf
	ownTypes = map[reflect.Type]ownCodec{
		reflect.TypeFor[D]():             own(encodeD, decodeIntoD),
		reflect.TypeFor[M]():             own(encodeM, decodeIntoM),
		reflect.TypeFor[A]():             own(encodeA, decodeIntoA),
		reflect.TypeFor[Raw]():           own(encodeRaw, decodeRaw),
		reflect.TypeFor[RawArray]():      own(encodeRawArray, decodeRawArray),
		reflect.TypeFor[RawValue]():      own(encodeRawValue, decodeRawValue),
		reflect.TypeFor[ObjectID]():      own(encodeObjectID, decodeObjectID),
		reflect.TypeFor[UUID]():          own(encodeUUID, decodeUUID),
		reflect.TypeFor[DateTime]():      own(encodeDateTime, decodeDateTime),
		reflect.TypeFor[Timestamp]():     own(encodeTimestamp, decodeTimestamp),
		reflect.TypeFor[Decimal128]():    own(encodeDecimal, decodeDecimal),
		reflect.TypeFor[Binary]():        own(encodeBinary, decodeBinary),
		reflect.TypeFor[Regex]():         own(encodeRegex, decodeRegex),
		reflect.TypeFor[JavaScript]():    own(encodeJavaScript, decodeJavaScript),
		reflect.TypeFor[Symbol]():        own(encodeSymbol, decodeSymbol),
		reflect.TypeFor[CodeWithScope](): own(encodeCodeWithScope, decodeCodeWithScope),
		reflect.TypeFor[DBPointer]():     own(encodeDBPointer, decodeDBPointer),
		reflect.TypeFor[Undefined]():     own(encodeUndefined, decodeMarker[Undefined](TypeUndefined)),
		reflect.TypeFor[Null]():          own(encodeNull, decodeMarker[Null](TypeNull)),
		reflect.TypeFor[MinKey]():        own(encodeMinKey, decodeMarker[MinKey](TypeMinKey)),
		reflect.TypeFor[MaxKey]():        own(encodeMaxKey, decodeMarker[MaxKey](TypeMaxKey)),
		reflect.TypeFor[time.Time]():     own(encodeTime, decodeTime),
		reflect.TypeFor[json.Number]():   own(encodeNumber, decodeNumber),
		reflect.TypeFor[url.URL]():       own(encodeURL, decodeURL),
	}
}

func encodeM(dst []byte, m M, depth int) ([]byte, Type, error) { return encodeStringMap(dst, m, depth) }
func encodeA(dst []byte, a A, depth int) ([]byte, Type, error) { return encodeAnys(dst, a, depth) }
