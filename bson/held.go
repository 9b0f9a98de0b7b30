package bson

import "reflect"

// held is the codec of a struct's field of type c. If that is an interface which holds a pointer, then what comes is decoded
// into what the pointer points to, so that a program can say which type it expects:
//
//	envelope := Envelope{Payload: &Invoice{}}
func (cc *compiler) held(c *codec) *codec {
	t := c.typ
	if t.Kind() != reflect.Interface {
		return c
	}
	own := *c
	open := t.NumMethod() == 0
	own.dec = func(d *decoder, v RawValue, p place, depth int) error {
		if open && *at[any](p) == nil {
			return c.dec(d, v, p, depth)
		}
		x := p.value(t).Elem()
		if x.Kind() != reflect.Pointer || x.IsNil() {
			return c.dec(d, v, p, depth)
		}
		return d.ps.pointed(d.ps.codecOf(x.Type())).dec(d, v, placeOf(x), depth)
	}
	return &own
}
