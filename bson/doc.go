// Package bson holds BSON values and turns them into Go values, Go values into them, and both into Extended JSON.
//
// It has three layers, each usable alone:
//
//   - bytes: Raw, RawArray, RawElement and RawValue read a document in place, the Append family writes one element at
//     a time into a caller's slice. Neither makes garbage.
//   - values: D, M, A and the named types (ObjectID, Decimal128, DateTime, ...) stand for BSON where Go has no type.
//   - Marshal, Unmarshal and their relatives map structs, maps and slices by a plan that is compiled once a type.
//
// The names are those of the official driver's package of the same name; see Differences.
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
// With Options.UseJSONStructTags a field without a bson tag takes its json tag.
//
// # Plans and memory
//
// The plan of a type is compiled at its first use, once for each set of Options, and used from then on without locks.
// Append and the encoders write straight into the caller's slice. What decoded strings keep in memory is a choice:
// Options.Strings. Package unsafe is used in one file, which the build tag purego replaces by one that does without.
//
// # Differences
//
// The differences from the official package that are meant, each with its reason. A test of the module interop holds both
// packages to the same bytes and values in everything else.
//
//   - A document inside an M is decoded as an M, inside a map[string]any as such a map, since a program that asked for
//     maps would have to convert; Options.Documents has the official way, DocumentsAsD.
//   - A named [12]byte of another package is an error that says how to register it, instead of an array of numbers:
//     it is an ObjectID, and nobody wants it stored otherwise.
//   - Keys and strings that are not UTF-8 are refused when reading and writing: the server refuses them too.
//   - Documents nested deeper than 200 are refused, as the server does.
//   - Lengths are checked also in parts that are skipped, and a CodeWithScope's lengths must add up.
//   - Options.OmitEmpty holds for structs inside structs too; officially for the outermost alone.
//   - Options.UseJSONStructTags depends on nothing else; officially a struct that was used without it keeps its keys.
//   - The padding bits of a packed-bit Vector must be zero, as its specification asks of new implementations.
//   - The switches are one struct of plain values, that can be compared and printed, and functions see them as well as a
//     client. A Decoder never takes more memory than the bytes that have come.
//   - Types are registered one by one, and at any time; there are no registries, and none for kinds or interfaces.
//
// # Concurrency
//
// Values are plain data. Functions may be called from any goroutine; the package starts none. The only shared states
// are the cache of compiled plans, what was registered, and the counter of NewObjectID, all safe for concurrent use. A
// Batch, an Encoder and a Decoder belong to one goroutine at a time.
package bson
