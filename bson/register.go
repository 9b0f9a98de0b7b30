package bson

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
)

// registry holds what was registered. It never changes: registering makes a new one.
type registry struct {
	objectIDs map[reflect.Type]bool
	types     map[reflect.Type]ownCodec
	common    bool // among types is one of those that appendAny knows without asking
}

// commonTypes are those that appendAny knows without asking.
var commonTypes = []any{
	"", 0, int32(0), int64(0), 0.0, false, ObjectID{}, D(nil), M(nil), A(nil), Raw(nil), RawValue{}, RawArray(nil), DateTime(0), time.Time{},
	Timestamp{}, []byte(nil), Binary{},
}

// Register makes T be written and read by two functions, in place of what follows from its kind or methods. Either may be
// nil, which leaves that direction as it is. write may return any value that has a type; read gets null too, and its
// RawValue is only good until it returns (Clone keeps it). Register may be called at any time, from any goroutine; calls
// that began before it ended may still go the old way. An interface type cannot be registered: it holds values of other
// types, and theirs is the codec that is used.
func Register[T any](write func(T) (RawValue, error), read func(RawValue) (T, error)) {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Interface {
		panic(fmt.Sprintf("bson: Register of the interface %v: register the types that it holds", t)) // a mistake in the program's text
	}
	var c ownCodec
	if write != nil {
		c.enc = func(ps *plans, dst []byte, p place, depth int) ([]byte, Type, error) {
			v, err := write(*at[T](p))
			if err != nil {
				return dst, 0, err
			}
			return encodeMade(ps, dst, v, depth)
		}
	}
	if read != nil {
		c.dec = func(_ *decoder, v RawValue, p place, _ int) error {
			x, err := read(v)
			if err == nil {
				*at[T](p) = x
			}
			return err
		}
	}
	register(func(r *registry) {
		r.types = maps.Clone(r.types)
		if r.types == nil {
			r.types = map[reflect.Type]ownCodec{}
		}
		old := r.types[t]
		if c.enc == nil {
			c.enc = old.enc
		}
		if c.dec == nil {
			c.dec = old.dec
		}
		r.types[t] = c
		r.common = r.common || slices.ContainsFunc(commonTypes, func(x any) bool { return reflect.TypeOf(x) == t })
	})
}

// RegisterObjectIDType makes T, another package's ObjectID, be written and read as one. Unregistered, such a type is an
// error, because nothing tells it from twelve bytes of something else. It may be called at any time, from any goroutine.
func RegisterObjectIDType[T ~[12]byte]() {
	t := reflect.TypeFor[T]()
	register(func(r *registry) {
		r.objectIDs = maps.Clone(r.objectIDs)
		if r.objectIDs == nil {
			r.objectIDs = map[reflect.Type]bool{}
		}
		r.objectIDs[t] = true
	})
}

// register changes a copy of the registry and starts with no plans at all from there.
func register(change func(*registry)) {
	knownMu.Lock()
	defer knownMu.Unlock()
	r := *defaults().registry
	change(&r)
	known.Store(&[]*plans{{registry: &r}})
}

// registered puts what was registered in the place of what follows from the type.
func (cc *compiler) registered(c *codec) {
	r, ok := cc.registry.types[c.typ]
	if !ok {
		return
	}
	c.op, c.record, c.elem = opOther, nil, nil
	if r.enc != nil {
		c.enc = r.enc
	}
	if r.dec != nil {
		c.dec = r.dec
	}
}
