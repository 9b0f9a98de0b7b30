package sextant

import (
	"errors"
	"fmt"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// cmd gathers the elements of one command. A call's arguments are encoded before a server is chosen, so that a
// mistake is told at once and a retry sends the same bytes. The first error stays; later steps do nothing.
type cmd struct {
	name, ns string
	b        []byte
	err      error
	rawData  *bool        // appended once the server is known, see append
	bson     bson.Options // of the caller's values
}

// newCmd starts a command {name: target}, where target is most often the collection.
func newCmd(name, ns, target string) *cmd {
	return &cmd{name: name, ns: ns, b: bson.AppendString(make([]byte, 0, 256), name, target)}
}

// text appends a string as it is. One that is not UTF-8 must not reach the server, which would close the connection
// on it, and with it the whole pool.
func (c *cmd) text(key, v string) {
	if !utf8.ValidString(v) {
		c.fail(encodeError(c.name, c.ns, "the "+key, fmt.Errorf("%q is not UTF-8", v)))
		return
	}
	c.b = bson.AppendString(c.b, key, v)
}

func (c *cmd) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// str appends a string that is not empty.
func (c *cmd) str(key, v string) {
	if v != "" {
		c.text(key, v)
	}
}

// flag appends a boolean that is true.
func (c *cmd) flag(key string, v bool) {
	if v {
		c.b = bson.AppendBoolean(c.b, key, true)
	}
}

// opt appends a boolean that was given, true or false.
func (c *cmd) opt(key string, v *bool) {
	if v != nil {
		c.b = bson.AppendBoolean(c.b, key, *v)
	}
}

// i64 appends a number that is not zero.
func (c *cmd) i64(key string, v int64) {
	if v != 0 {
		c.b = bson.AppendInt64(c.b, key, v)
	}
}

// i32 appends a number that is not zero.
func (c *cmd) i32(key string, v int32) {
	if v != 0 {
		c.b = bson.AppendInt32(c.b, key, v)
	}
}

// millis appends a duration that is not zero, rounded up to a whole millisecond so that it never becomes "no limit".
func (c *cmd) millis(key string, d time.Duration) {
	switch {
	case d < 0:
		c.fail(argument(c.name, c.ns, "%s is negative (%v)", key, d))
	case d > 0:
		c.b = bson.AppendInt64(c.b, key, int64((d+time.Millisecond-1)/time.Millisecond))
	}
}

// any appends any value that is not nil (a comment, say).
func (c *cmd) any(key string, v any) {
	if v == nil || c.err != nil {
		return
	}
	b, err := c.appendValue(c.b, key, v)
	if err != nil {
		c.fail(encodeError(c.name, c.ns, "the "+key, err))
		return
	}
	c.b = b
}

// doc appends a document that must be there: nil is an error.
func (c *cmd) doc(key string, v any) { c.docAs(key, key, v) }

// docAs is doc for a key that an error should not show: what is the caller's word for it.
func (c *cmd) docAs(key, what string, v any) {
	if c.err != nil {
		return
	}
	if isNil(v) {
		c.fail(nilDocument(c.name, c.ns, "the "+what))
		return
	}
	at := len(c.b)
	b, err := c.appendValue(c.b, key, v)
	if err != nil {
		c.fail(encodeError(c.name, c.ns, "the "+what, err))
		return
	}
	c.b = b
	if t := bson.Type(b[at]); t != bson.TypeEmbeddedDocument {
		c.fail(argument(c.name, c.ns, "the %s must be a document, not %v (%T)", what, t, v))
	}
}

// optDoc appends a document if it is not nil.
func (c *cmd) optDoc(key string, v any) {
	if !isNil(v) {
		c.doc(key, v)
	}
}

// ordered is optDoc for documents whose order of fields has a meaning: a map of several keys is an error.
func (c *cmd) ordered(key string, v any) {
	if isNil(v) || c.err != nil {
		return
	}
	if m := reflect.ValueOf(v); m.Kind() == reflect.Map && m.Len() > 1 {
		c.fail(argument(c.name, c.ns, "the %s is a map of %d keys, whose order is lost: use bson.D", key, m.Len()))
		return
	}
	c.doc(key, v)
}

// hint appends an index by name or by its keys.
func (c *cmd) hint(v any) {
	if s, ok := v.(string); ok {
		c.str("hint", s)
		return
	}
	c.ordered("hint", v)
}

// docs appends an array of documents if there are any.
func (c *cmd) docs(key string, vs []any) {
	if vs == nil || c.err != nil {
		return
	}
	var start int
	c.b, start = bson.BeginArrayElement(c.b, key)
	for i, v := range vs {
		c.docAs(index(i), "element "+index(i)+" of "+key, v)
	}
	c.b = bson.EndDocument(c.b, start)
}

// collation appends the collation if there is one.
func (c *cmd) collation(v *Collation) {
	if v != nil {
		mine := c.bson
		c.bson = bson.Options{} // its fields are this package's
		c.doc("collation", v)
		c.bson = mine
	}
}

// pipeline appends an array of stages: any slice or array of documents, or a bson.RawArray.
func (c *cmd) pipeline(key string, v any) {
	if c.err != nil {
		return
	}
	if isNil(v) {
		c.fail(nilDocument(c.name, c.ns, "the "+key))
		return
	}
	at := len(c.b)
	c.any(key, v)
	if c.err == nil && bson.Type(c.b[at]) != bson.TypeArray {
		c.fail(argument(c.name, c.ns, "the %s must be an array of stages, not %v (%T)", key, bson.Type(c.b[at]), v))
	}
}

// appendValue appends one element. Raw bytes that the caller made are checked first: a wrong length inside them
// would shift every byte that follows in the message.
func (c *cmd) appendValue(dst []byte, key string, v any) ([]byte, error) {
	at := len(dst)
	dst, err := c.bson.AppendAny(dst, key, v)
	if err != nil {
		return dst, err
	}
	switch v.(type) {
	case bson.Raw, bson.RawArray, bson.RawValue:
		return dst, validateElement(dst[at:], len(key))
	}
	return dst, nil
}

// validateElement checks one whole element, by looking at it as a document of its own.
func validateElement(e []byte, keyLen int) error {
	switch bson.Type(e[0]) {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		return bson.Raw(e[keyLen+2:]).Validate()
	}
	b, start := bson.BeginDocument(nil)
	return bson.Raw(bson.EndDocument(append(b, e...), start)).Validate()
}

// isNil reports whether v is nil or a nil pointer, map or slice: none of them is a document.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return r.IsNil()
	}
	return false
}

func nilDocument(op, ns, what string) error {
	message := what + " is nil"
	if what == "the filter" {
		message += " (to match everything, pass bson.D{})"
	}
	return &mongoerr.Error{Op: op, NS: ns, Stage: mongoerr.StageConfig, Message: message, Cause: ErrNilDocument}
}

// firstKey is the first key of the document at the start of b.
func firstKey(doc bson.Raw) (string, error) {
	for k := range doc.All() {
		return k, nil
	}
	return "", errors.New("the document is empty")
}

// index is the key of an array's element.
func index(i int) string {
	const digits = "0123456789"
	if i < 10 {
		return digits[i : i+1]
	}
	return index(i/10) + digits[i%10:i%10+1]
}
