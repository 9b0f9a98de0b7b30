package bson

import "time"

// D is an ordered document: use it where the order of keys matters, as in commands and sort specifications.
//
//	bson.D{{"name", 1}, {"age", -1}}
type D []E

// E is one element of a D.
type E struct {
	Key   string
	Value any
}

// M is an unordered document. It is written in the random order of Go's maps.
type M map[string]any

// A is an array.
//
//	bson.A{"bar", "world", 3.14159, bson.D{{"qux", 12345}}}
type A []any

// Get returns the value of the first element with the key, and whether there is one.
func (d D) Get(key string) (any, bool) {
	for i := range d {
		if d[i].Key == key {
			return d[i].Value, true
		}
	}
	return nil, false
}

// Map returns the elements as an M. Of several elements with one key the last wins.
func (d D) Map() M {
	m := make(M, len(d))
	for _, e := range d {
		m[e.Key] = e.Value
	}
	return m
}

// DateTime is a UTC datetime in milliseconds since the Unix epoch.
type DateTime int64

// NewDateTimeFromTime cuts t to whole milliseconds.
func NewDateTimeFromTime(t time.Time) DateTime { return DateTime(t.UnixMilli()) }

// Time returns the instant in UTC.
func (d DateTime) Time() time.Time { return time.UnixMilli(int64(d)).UTC() }

// Timestamp is the type that the server uses for its own clock: seconds since the epoch, and an ordinal inside the second.
// It is not a date; for dates use DateTime or time.Time.
type Timestamp struct {
	T uint32
	I uint32
}

// Compare returns -1, 0 or 1.
func (t Timestamp) Compare(o Timestamp) int {
	switch {
	case t == o:
		return 0
	case t.T < o.T || t.T == o.T && t.I < o.I:
		return -1
	}
	return 1
}

// After reports whether t is later than o.
func (t Timestamp) After(o Timestamp) bool { return t.Compare(o) > 0 }

// Before reports whether t is earlier than o.
func (t Timestamp) Before(o Timestamp) bool { return t.Compare(o) < 0 }

// Equal reports whether both are the same.
func (t Timestamp) Equal(o Timestamp) bool { return t == o }

// IsZero reports whether both parts are zero.
func (t Timestamp) IsZero() bool { return t == Timestamp{} }

// Binary is bytes with a subtype that says what they mean. Data of the old subtype 2 is without its inner length.
type Binary struct {
	Subtype byte
	Data    []byte
}

// Equal reports whether subtype and bytes are the same.
func (b Binary) Equal(o Binary) bool {
	return b.Subtype == o.Subtype && string(b.Data) == string(o.Data)
}

// IsZero reports whether there is neither subtype nor data.
func (b Binary) IsZero() bool { return b.Subtype == 0 && len(b.Data) == 0 }

// Regex is a regular expression as the server understands it (PCRE). Options are single letters, kept in alphabetical
// order when written.
type Regex struct {
	Pattern string
	Options string
}

// Equal reports whether pattern and options are the same.
func (r Regex) Equal(o Regex) bool { return r == o }

// IsZero reports whether both parts are empty.
func (r Regex) IsZero() bool { return r == Regex{} }

// JavaScript is code without a scope.
type JavaScript string

// Symbol is a deprecated kind of string.
type Symbol string

// CodeWithScope is code with the variables that it sees. Scope is any value that encodes as a document; decoding gives a D.
type CodeWithScope struct {
	Code  JavaScript
	Scope any
}

// DBPointer is a deprecated reference to a document of another collection.
type DBPointer struct {
	DB      string
	Pointer ObjectID
}

// Equal reports whether both parts are the same.
func (d DBPointer) Equal(o DBPointer) bool { return d == o }

// IsZero reports whether both parts are zero.
func (d DBPointer) IsZero() bool { return d == DBPointer{} }

// Undefined is a deprecated value; Null is written for Go's nil too; MinKey and MaxKey sort before and after everything.
type (
	Undefined struct{}
	Null      struct{}
	MinKey    struct{}
	MaxKey    struct{}
)
