package bson

import (
	"fmt"
	"io"
	"strconv"
)

// Index returns the element at position i; it panics where there is none.
func (r Raw) Index(i uint) RawElement {
	e, err := r.IndexErr(i)
	if err != nil {
		panic(err)
	}
	return e
}

// IndexErr returns the element at position i. The error is a *ValidationError for bytes that are malformed up to there, else
// ErrElementNotFound.
func (r Raw) IndexErr(i uint) (RawElement, error) {
	s := scan(r)
	for before := s.at; s.next(); before = s.at {
		if i == 0 {
			return RawElement(s.doc[before:s.at:s.at]), nil
		}
		i--
	}
	if s.bad != "" {
		return nil, invalid("%s", s.bad)
	}
	return nil, fmt.Errorf("%w: there are only %d", ErrElementNotFound, r.Len())
}

// IndexErr is Index with the errors of Raw.IndexErr.
func (a RawArray) IndexErr(i uint) (RawValue, error) {
	e, err := Raw(a).IndexErr(i)
	if err != nil {
		return RawValue{}, err
	}
	return e.Value(), nil
}

// Validate checks the element as Raw.Validate checks a document, and that there is just one.
func (e RawElement) Validate() error {
	b, start := BeginDocument(nil)
	doc := Raw(EndDocument(append(b, e...), start))
	if err := doc.Validate(); err != nil {
		return err
	}
	if n := doc.Len(); n != 1 {
		return invalid("%d elements where one should be", n)
	}
	return nil
}

// KeyErr is Key with a *ValidationError for malformed bytes.
func (e RawElement) KeyErr() (string, error) {
	s := scanner{doc: e}
	if !s.next() {
		return "", invalid("an element of %d bytes: %s", len(e), s.bad)
	}
	return string(s.key()), nil
}

// ValueErr is Value with a *ValidationError for malformed bytes.
func (e RawElement) ValueErr() (RawValue, error) {
	if _, err := e.KeyErr(); err != nil {
		return RawValue{}, err
	}
	return e.Value(), nil
}

// AsInt64 is AsInt64OK that panics where the value is no number, or none that an int64 holds.
func (v RawValue) AsInt64() int64 {
	x, ok := v.AsInt64OK()
	if !ok {
		panic("bson: " + v.Type.String() + " " + v.String() + " is not a 64-bit integer")
	}
	return x
}

// AsFloat64 is AsFloat64OK that panics where the value is no number, or none that a double holds.
func (v RawValue) AsFloat64() float64 {
	x, ok := v.AsFloat64OK()
	if !ok {
		panic("bson: " + v.Type.String() + " " + v.String() + " is not a double")
	}
	return x
}

// ReadDocument reads one document, its bytes as they come; see Decoder.Decode for the errors.
func ReadDocument(r io.Reader) (Raw, error) { return NewDecoder(r).next() }

// ReadArray reads the bytes of one array; see Decoder.Decode for the errors.
func ReadArray(r io.Reader) (RawArray, error) { return NewDecoder(r).next() }

// String returns the expression as relaxed Extended JSON, or why it cannot be encoded.
func (r Regex) String() string { return printed(r) }

// String returns the code as relaxed Extended JSON, or why it cannot be encoded.
func (c CodeWithScope) String() string { return printed(c) }

// String returns the reference as relaxed Extended JSON, or why it cannot be encoded.
func (d DBPointer) String() string { return printed(d) }

// String returns seconds and ordinal as relaxed Extended JSON.
func (t Timestamp) String() string {
	return `{"$timestamp":{"t":` + strconv.FormatUint(uint64(t.T), 10) + `,"i":` + strconv.FormatUint(uint64(t.I), 10) + `}}`
}
