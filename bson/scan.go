package bson

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// length reads the int32 that starts b, or -1 where there is none or it is negative.
func length(b []byte) int {
	if len(b) < 4 {
		return -1
	}
	return int(int32(binary.LittleEndian.Uint32(b)))
}

// body returns what lies between a document's length and its end, terminator included; nil where the length is wrong.
func body(doc []byte) []byte {
	n := length(doc)
	if n < 5 || n > len(doc) {
		return nil
	}
	return doc[4:n]
}

// fixedSizes holds the size of every type that has one, -1 for all other types.
var fixedSizes = func() (sizes [256]int8) {
	for i := range sizes {
		sizes[i] = -1
	}
	for _, t := range []Type{TypeNull, TypeUndefined, TypeMinKey, TypeMaxKey} {
		sizes[t] = 0
	}
	for _, t := range []Type{TypeDouble, TypeDateTime, TypeTimestamp, TypeInt64} {
		sizes[t] = 8
	}
	sizes[TypeBoolean], sizes[TypeInt32], sizes[TypeObjectID], sizes[TypeDecimal128] = 1, 4, 12, 16
	return sizes
}()

// payloadLen returns how many bytes at the start of b a value of type t takes, -1 where b is too short or t unknown.
// The result never exceeds len(b).
func payloadLen(t Type, b []byte) int {
	n := int(fixedSizes[t])
	if n < 0 {
		n = variableLen(t, b)
	}
	if n > len(b) {
		return -1
	}
	return n
}

func variableLen(t Type, b []byte) int {
	switch t {
	case TypeString, TypeJavaScript, TypeSymbol:
		return prefixed(b, 1, 4)
	case TypeDBPointer:
		return prefixed(b, 1, 16)
	case TypeEmbeddedDocument, TypeArray:
		return prefixed(b, 5, 0)
	case TypeCodeWithScope:
		return prefixed(b, 14, 0)
	case TypeBinary:
		return prefixed(b, 0, 5)
	case TypeRegex:
		return regexLen(b)
	}
	return -1
}

// prefixed is the size of a value whose length prefix is at least least and does not count extra bytes.
func prefixed(b []byte, least, extra int) int {
	n := length(b)
	if n < least || n > len(b)-extra {
		return -1
	}
	return n + extra
}

func regexLen(b []byte) int {
	p := bytes.IndexByte(b, 0)
	if p < 0 {
		return -1
	}
	o := bytes.IndexByte(b[p+1:], 0)
	if o < 0 {
		return -1
	}
	return p + o + 2
}

// scanner walks over the elements of a document. It stops at the terminator, and at malformed bytes (bad says why).
// It keeps positions instead of slices: writing pointers would cost a write barrier each while the collector runs.
type scanner struct {
	doc           []byte // to the terminator
	at            int    // of the next element, which is the end of the present one
	keyAt, keyEnd int
	valueAt       int
	t             Type // of the present element
	bad           string
}

func scan(doc []byte) scanner {
	n := length(doc)
	if n < 5 || n > len(doc) {
		return scanner{bad: "wrong length"}
	}
	return scanner{doc: doc[:n], at: 4}
}

func (s *scanner) key() []byte { return s.doc[s.keyAt:s.keyEnd] }

func (s *scanner) value() RawValue { return RawValue{s.t, s.doc[s.valueAt:s.at:s.at]} }

func (s *scanner) next() bool {
	if s.at >= len(s.doc) {
		return s.stop("no terminator")
	}
	s.t = Type(s.doc[s.at])
	if s.t == 0 {
		if s.at < len(s.doc)-1 {
			return s.stop("bytes after the terminator")
		}
		return false
	}
	n := bytes.IndexByte(s.doc[s.at+1:], 0)
	if n < 0 {
		return s.stop("key without end")
	}
	s.keyAt, s.keyEnd = s.at+1, s.at+1+n
	s.valueAt = s.keyEnd + 1
	n = payloadLen(s.t, s.doc[s.valueAt:])
	if n < 0 {
		return s.stop(fmt.Sprintf("%v %q does not fit", s.t, s.key()))
	}
	s.at = s.valueAt + n
	return true
}

// stop ends the walk for good; the first reason is kept.
func (s *scanner) stop(why string) bool {
	if s.bad == "" {
		s.bad = why
	}
	s.doc, s.at, s.keyAt, s.keyEnd, s.valueAt = nil, 0, 0, 0, 0
	return false
}

// A ValidationError says what is malformed in a document and where: Path is the dotted path, empty for the document itself,
// an empty key as two quotes.
type ValidationError struct {
	Path   string
	Reason string
}

func (e *ValidationError) Error() string {
	if e.Path == "" {
		return "bson: malformed document: " + e.Reason
	}
	return "bson: malformed document at " + shortPath(strings.Split(e.Path, ".")) + ": " + e.Reason
}

func invalid(format string, args ...any) *ValidationError {
	return &ValidationError{Reason: fmt.Sprintf(format, args...)}
}

func (e *ValidationError) under(key []byte) *ValidationError {
	shown := path([]string{string(key)})
	if e.Path != "" {
		shown += "." + e.Path
	}
	e.Path = shown
	return e
}

// validateDoc checks a whole document or array at the given depth (outermost 1).
func validateDoc(doc []byte, depth int) *ValidationError {
	if depth > MaxDepth {
		return invalid("nested deeper than %d", MaxDepth)
	}
	if n := length(doc); n != len(doc) || n < 5 {
		return invalid("length prefix %d, %d bytes", n, len(doc))
	}
	s := scan(doc)
	for s.next() {
		if !utf8.Valid(s.key()) {
			return invalid("key %q is not UTF-8", s.key())
		}
		if err := validateValue(s.t, s.value().Value, depth); err != nil {
			return err.under(s.key())
		}
	}
	if s.bad != "" {
		return invalid("%s", s.bad)
	}
	return nil
}

// validateValue checks a payload whose outer length payloadLen has already found to be right.
func validateValue(t Type, v []byte, depth int) *ValidationError {
	switch t {
	case TypeString, TypeJavaScript, TypeSymbol:
		return validateString(v)
	case TypeDBPointer:
		return validateString(v[:len(v)-12])
	case TypeEmbeddedDocument, TypeArray:
		return validateDoc(v, depth+1)
	case TypeBoolean:
		if v[0] > 1 {
			return invalid("boolean is 0x%02x", v[0])
		}
	case TypeBinary:
		if v[4] == TypeBinaryBinaryOld && length(v[5:]) != len(v)-9 {
			return invalid("binary of subtype 2 with a wrong inner length")
		}
	case TypeRegex:
		if !utf8.Valid(v) {
			return invalid("regex is not UTF-8")
		}
	case TypeCodeWithScope:
		n := prefixed(v[4:], 1, 4)
		if n < 0 {
			return invalid("code with scope: the code does not fit")
		}
		if err := validateString(v[4 : 4+n]); err != nil {
			return err
		}
		return validateDoc(v[4+n:], depth+1)
	}
	return nil
}

func validateString(v []byte) *ValidationError {
	if v[len(v)-1] != 0 {
		return invalid("string without terminator")
	}
	if !utf8.Valid(v[4:]) {
		return invalid("string is not UTF-8")
	}
	return nil
}
