// Package bson holds BSON values and turns them into Go values, Go values into them, and both into Extended JSON.
//
// It has three layers, each usable alone:
//
//   - bytes: Raw, RawArray, RawElement and RawValue read a document in place, the Append family writes one element at
//     a time into a caller's slice. Neither makes garbage.
//   - values: D, M, A and the named types (ObjectID, Decimal128, DateTime, ...) stand for BSON where Go has no type.
//   - Marshal, Unmarshal and their relatives map structs, maps and slices by a plan that is compiled once a type.
//
// The names are those of the official driver's package of the same name. Differences: a nested document decodes into
// the container that its parent uses (M inside M, D inside D), and a named [12]byte type of another package is an
// error instead of an array of numbers.
//
// # Struct tags
//
//	Name string `bson:"name,omitempty"`
//
// The first word is the key, the lower-cased field name where it is empty; "-" leaves the field out. After it:
// omitempty (left out when false, 0, "", nil or empty), omitzero (left out when the zero value of its type, or when
// its IsZero method says so), minsize (int64, uint and uint64 as int32 where the value fits), truncate (a double with
// a fraction may be decoded into an integer or a float32), inline (the fields of a struct, or the entries of a map
// with string keys, appear in the parent). An embedded struct is a nested document unless it is tagged inline.
//
// # Concurrency
//
// Values are plain data. Functions may be called from any goroutine; the package starts none. The only shared states
// are the cache of compiled plans and the counter of NewObjectID, both safe for concurrent use.
package bson
