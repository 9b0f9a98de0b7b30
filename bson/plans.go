package bson

import (
	"reflect"
	"sync"
	"sync/atomic"
)

// encodeFunc appends the payload of the value at p. depth is what a document written here counts as.
type encodeFunc func(ps *plans, dst []byte, p place, depth int) ([]byte, Type, error)

// decodeFunc stores v into the value at p. The outer length of v has been checked, what is inside has not.
type decodeFunc func(d *decoder, v RawValue, p place, depth int) error

// codec is the compiled plan of one Go type under one set of options.
//
// Invariant: a codec that plans give out, and all that it refers to, are complete and never change again.
type codec struct {
	typ reflect.Type
	op  op
	enc encodeFunc
	dec decodeFunc
	// direct: an interface holds such a value in its word, not behind a pointer.
	direct bool
	// pointerHooks: the type, or one inside it, has marshalling methods with pointer receivers.
	pointerHooks bool
	record       *structCodec // of a struct without methods of its own
	// elem is the codec of what a pointer points to. more is what it adds to the depth: one for pointers to pointers and
	// to interfaces, since such values can hold themselves without a document in between.
	elem *codec
	more int
}

// op marks the types that are so common that the loops over fields and items handle them without a call.
type op uint8

const (
	opOther op = iota // ask the codec
	opString
	opInt // with the size that the value needs
	opInt32
	opInt64
	opFloat64
	opBool
	opObjectID
	opDateTime
	opTime
	opStruct
)

// plans hold the codecs for one set of options and registrations.
type plans struct {
	opts     Options
	registry *registry
	quick    quick
	codecs   sync.Map // reflect.Type -> *codec, of every type met so far
}

// known are all plans that were asked for. Registering a type replaces them by an empty list: who is at work goes on with
// the old, who comes later gets new.
var (
	known   atomic.Pointer[[]*plans] // the first has the zero Options
	knownMu sync.Mutex               // held while known is replaced
)

func init() { known.Store(&[]*plans{{registry: &registry{}}}) }

// plans returns those of the options.
func (o Options) plans() *plans {
	for _, ps := range *known.Load() {
		if ps.opts == o {
			return ps
		}
	}
	knownMu.Lock()
	defer knownMu.Unlock()
	list := *known.Load()
	for _, ps := range list {
		if ps.opts == o {
			return ps
		}
	}
	ps := &plans{opts: o, registry: list[0].registry}
	list = append(list[:len(list):len(list)], ps)
	known.Store(&list)
	return ps
}

func defaults() *plans { return (*known.Load())[0] }

// codecOf returns the codec of a type, which it compiles if need be.
func (ps *plans) codecOf(t reflect.Type) *codec {
	if c, ok := ps.codecs.Load(t); ok {
		return c.(*codec)
	}
	return ps.compileAll(t)
}

// compileAll compiles t and all types that it needs, and publishes them together. Two goroutines may do it at the same
// time: each has a complete set then, and it does not matter whose is kept.
func (ps *plans) compileAll(t reflect.Type) *codec {
	cc := &compiler{plans: ps, seen: map[planKey]*codec{}}
	c := cc.compile(t, ps.flags())
	for _, s := range cc.records {
		s.prepare()
	}
	for k, x := range cc.seen {
		x.pointerHooks = cc.pointerHooks
		if k.flags == ps.flags() {
			ps.codecs.LoadOrStore(k.t, x)
		}
	}
	return c
}

// planFlags are the settings of a struct tag that hold for the field's value and for what it is made of.
type planFlags struct{ minSize, truncate bool }

// flags are those that hold without any tag.
func (ps *plans) flags() planFlags {
	return planFlags{minSize: ps.opts.IntMinSize, truncate: ps.opts.AllowTruncatingDoubles}
}

type planKey struct {
	t     reflect.Type
	flags planFlags
}

// compiler is one run of compileAll. seen holds also those that are not complete yet, for recursive types.
type compiler struct {
	*plans
	seen         map[planKey]*codec
	records      []*structCodec
	pointerHooks bool
}

func (cc *compiler) compile(t reflect.Type, flags planFlags) *codec {
	key := planKey{t, flags}
	if c, ok := cc.seen[key]; ok {
		return c
	}
	if flags == cc.flags() {
		if c, ok := cc.codecs.Load(t); ok {
			cc.pointerHooks = cc.pointerHooks || c.(*codec).pointerHooks
			return c.(*codec)
		}
	}
	c := &codec{typ: t, direct: isDirect(t)}
	cc.seen[key] = c
	if own, ok := ownTypes[t]; ok {
		if c.enc, c.dec, c.op = own.enc, own.dec, own.op; c.op == opTime && cc.opts.UseLocalTimeZone {
			c.op = opOther
		}
		if own.dynamic {
			c.enc = cc.dynamic(c.enc, flags)
		}
	} else {
		cc.byKind(c, flags)
		cc.hooks(c)
	}
	cc.registered(c)
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
