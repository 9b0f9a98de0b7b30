package bson

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// pathError is what EncodeError and DecodeError share: the keys that lead to the value, innermost first while the
// error travels outwards.
type pathError struct {
	keys []string
	err  error
}

// Keys returns the keys from the outermost to the value, empty for the document itself.
func (e *pathError) Keys() []string {
	keys := slices.Clone(e.keys)
	slices.Reverse(keys)
	return keys
}

// Path returns the keys joined with dots, an empty key as two quotes.
func (e *pathError) Path() string { return path(e.Keys()) }

func path(keys []string) string {
	shown := make([]string, len(keys))
	for i, key := range keys {
		if shown[i] = key; key == "" {
			shown[i] = `""`
		}
	}
	return strings.Join(shown, ".")
}

const (
	maxShown   = 24 // keys in an error's text: a value that holds itself has a path of MaxDepth keys
	shownFirst = 8
	shownLast  = 4
)

// shortPath is path without the middle of a long one.
func shortPath(keys []string) string {
	n := len(keys)
	if n <= maxShown {
		return path(keys)
	}
	return fmt.Sprintf("%s ... %s (%d levels)", path(keys[:shownFirst]), path(keys[n-shownLast:]), n)
}

// Unwrap returns the cause, without the path.
func (e *pathError) Unwrap() error { return e.err }

// Error says where and why; of a path of more than 24 keys the first and the last.
func (e *pathError) Error() string {
	text := strings.TrimPrefix(e.err.Error(), "bson: ")
	if len(e.keys) == 0 {
		return "bson: " + text
	}
	return "bson: " + shortPath(e.Keys()) + ": " + text
}

// An EncodeError says which part of a Go value cannot be written as BSON, and why.
type EncodeError struct{ pathError }

// A DecodeError says which value of a document does not fit the Go value, and why. Where the bytes themselves are
// malformed it wraps a *ValidationError.
type DecodeError struct{ pathError }

// encodeUnder adds the key that an error was met under.
func encodeUnder(err error, key string) error {
	if e, ok := err.(*EncodeError); ok {
		e.keys = append(e.keys, key)
		return e
	}
	return &EncodeError{pathError{[]string{key}, err}}
}

func decodeUnder(err error, key string) error {
	if e, ok := err.(*DecodeError); ok {
		e.keys = append(e.keys, key)
		return e
	}
	return &DecodeError{pathError{[]string{key}, err}}
}

// encodeDone turns any error into an *EncodeError.
func encodeDone(err error) error {
	if e, ok := err.(*EncodeError); ok {
		return e
	}
	return &EncodeError{pathError{err: err}}
}

func decodeDone(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*DecodeError); ok {
		return e
	}
	return &DecodeError{pathError{err: err}}
}

func mismatch(v RawValue, t reflect.Type) error {
	return fmt.Errorf("cannot decode %v into %v", v.Type, t)
}

func tooDeep() error { return fmt.Errorf("nested deeper than %d", MaxDepth) }
