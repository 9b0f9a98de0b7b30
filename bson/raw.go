package bson

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// Raw is one whole document as bytes, length prefix included. Its readers work in place; values share the bytes.
// Documents from outside should be validated once with Validate: the readers never panic on malformed bytes, but they
// stop there without a word.
type Raw []byte

// RawArray is an array as bytes: laid out like a document whose keys are "0", "1", and so on.
type RawArray []byte

// RawElement is one element as bytes: type, key, payload.
type RawElement []byte

// ErrElementNotFound is returned by LookupErr when there is no such element.
var ErrElementNotFound = errors.New("bson: element not found")

// Validate checks lengths, terminators, nesting (MaxDepth) and UTF-8. The error is a *ValidationError.
func (r Raw) Validate() error {
	if err := validateDoc(r, 1); err != nil {
		return err
	}
	return nil
}

// All yields the elements in order. It stops at malformed bytes. The key is a copy, made on the heap only where the
// loop keeps it or it is longer than 32 bytes; the value shares r's bytes.
func (r Raw) All() iter.Seq2[string, RawValue] {
	return func(yield func(string, RawValue) bool) {
		s := scan(r)
		for s.next() {
			if !yield(string(s.key()), s.value()) {
				return
			}
		}
	}
}

// Lookup returns the value at the path of keys, going into arrays by the text of the index. It is the zero RawValue,
// of type 0, where there is none or the bytes before it are malformed.
func (r Raw) Lookup(keys ...string) RawValue {
	v := DocumentValue(r)
	for _, key := range keys {
		if v.Type != TypeEmbeddedDocument && v.Type != TypeArray {
			return RawValue{}
		}
		v = lookup(v.Value, key)
	}
	if len(keys) == 0 {
		return RawValue{}
	}
	return v
}

func lookup(doc []byte, key string) RawValue {
	s := scan(doc)
	for s.next() {
		if string(s.key()) == key {
			return s.value()
		}
	}
	return RawValue{}
}

// LookupErr is like Lookup but says with ErrElementNotFound that there is no such element, and with a *ValidationError
// that the document is malformed.
func (r Raw) LookupErr(keys ...string) (RawValue, error) {
	if v := r.Lookup(keys...); v.Type != 0 {
		return v, nil
	}
	if err := r.Validate(); err != nil {
		return RawValue{}, err
	}
	return RawValue{}, fmt.Errorf("%w: %s", ErrElementNotFound, strings.Join(keys, "."))
}

// Elements returns all elements. The error is a *ValidationError for malformed bytes, with the elements before them.
func (r Raw) Elements() ([]RawElement, error) {
	var out []RawElement
	s := scan(r)
	for {
		before := s.at
		if !s.next() {
			break
		}
		out = append(out, RawElement(s.doc[before:s.at:s.at]))
	}
	if s.bad != "" {
		return out, invalid("%s", s.bad)
	}
	return out, nil
}

// Values returns the values of all elements; errors as Elements.
func (r Raw) Values() ([]RawValue, error) { return RawArray(r).Values() }

// Len returns the number of elements.
func (r Raw) Len() int {
	n := 0
	for s := scan(r); s.next(); {
		n++
	}
	return n
}

// IsEmpty reports whether there are no elements; a nil Raw is empty.
func (r Raw) IsEmpty() bool {
	s := scan(r)
	return !s.next()
}

// Clone returns a copy that does not share bytes.
func (r Raw) Clone() Raw { return append(Raw(nil), r...) }

// Validate is Raw.Validate for an array.
func (a RawArray) Validate() error { return Raw(a).Validate() }

// All yields index and value in order; the keys, which should be the indexes, are not looked at.
func (a RawArray) All() iter.Seq2[int, RawValue] {
	return func(yield func(int, RawValue) bool) {
		s := scan(a)
		for i := 0; s.next(); i++ {
			if !yield(i, s.value()) {
				return
			}
		}
	}
}

// Values returns the values. The error is a *ValidationError for malformed bytes, with the values before them.
func (a RawArray) Values() ([]RawValue, error) {
	var out []RawValue
	s := scan(a)
	for s.next() {
		out = append(out, s.value())
	}
	if s.bad != "" {
		return out, invalid("%s", s.bad)
	}
	return out, nil
}

// Index returns the value at position i, the zero RawValue where there is none.
func (a RawArray) Index(i int) RawValue {
	for j, v := range a.All() {
		if j == i {
			return v
		}
	}
	return RawValue{}
}

// Len returns the number of values.
func (a RawArray) Len() int { return Raw(a).Len() }

// Key returns the key, empty for malformed bytes.
func (e RawElement) Key() string {
	s := scanner{doc: e}
	s.next()
	return string(s.key())
}

// Value returns the value, the zero RawValue for malformed bytes.
func (e RawElement) Value() RawValue {
	s := scanner{doc: e}
	if !s.next() {
		return RawValue{}
	}
	return s.value()
}

// NewRawArray builds an array of values.
func NewRawArray(values ...RawValue) RawArray {
	b, start := BeginDocument(nil)
	for i, v := range values {
		b = AppendValue(b, strconv.Itoa(i), v)
	}
	return RawArray(EndDocument(b, start))
}

// NewRawDocument builds a document of elements, each as the Append functions make them.
func NewRawDocument(elements ...RawElement) Raw {
	b, start := BeginDocument(nil)
	for _, e := range elements {
		b = append(b, e...)
	}
	return EndDocument(b, start)
}
