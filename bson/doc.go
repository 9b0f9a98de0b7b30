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
// # Checks
//
// What becomes a Go value is checked: each length, the last NUL of each document and string, keys and strings for UTF-8, and
// that documents nest no deeper than 200. What a struct has no field for is stepped over, and what goes into a Raw, RawArray,
// RawValue or an Unmarshaler is copied: of these the outer length alone is looked at, not what is inside, nor a key that no
// field has. Raw.Validate checks all of a document. Writing checks keys and strings for UTF-8, keys for NUL, the depth, the
// outer length of a Raw and everything in what a Marshaler returns.
//
// # Differences
//
// The differences from the official package that are meant, each with its reason. Tests of the module interop hold both
// packages to the same bytes and values in everything else, and this list to what they find.
//
//   - A document inside an M is decoded as an M, inside a map[string]any as such a map, since a program that asked for
//     maps would have to convert; Options.Documents has the official way, DocumentsAsD.
//   - A named [12]byte of another package is an error that says how to register it, instead of binary: it is an ObjectID,
//     and nobody wants it stored otherwise.
//   - Keys and strings that are not UTF-8 are refused when reading and writing, as far as Checks says: the server refuses
//     them too.
//   - Documents nested deeper than 200 are refused, as the server does; what is stepped over or stays raw may be deeper.
//   - The code of a CodeWithScope must end in NUL as every string does: another last byte would be lost without a word.
//   - Raw bytes are looked at before they are written: those of a Raw or RawValue from outside, those of a Marshaler
//     throughout. Officially a wrong length spoils the document around it without an error.
//   - Methods with pointer receivers (of Marshaler, ValueMarshaler, Zeroer) are used also where a value has no address, so
//     that it is written in one way everywhere; they are not called on a nil pointer, which is null.
//   - Null sets the zero value whatever the type, also a Vector, an Unmarshaler and an interface with methods; undefined
//     does as null does. Officially some of these are errors, and an Unmarshaler is given no bytes.
//   - A RawArray is an array: officially it is binary. A Raw takes no array, since it would come out as a document; a nil
//     Raw is null, as every nil slice.
//   - A whole document may also come from a ValueMarshaler or a RawValue that holds one. A nil map is no document:
//     most often it is a mistake.
//   - A string is not decoded into an ObjectID, neither 24 hexadecimal digits nor any twelve bytes: written again, it
//     would be of another type.
//   - An array of bytes takes binary of just its length, and of 16 bytes a UUID as well; the rest of an array that is
//     longer than what comes is set to zero. Officially what was there before stays behind.
//   - The exported fields of an inline struct count also where its type is not exported, as in encoding/json.
//   - A CodeWithScope without a scope has an empty one, instead of being an error.
//   - A double that is NaN may be decoded into a float32, which has a NaN too, and into no integer, also if doubles may be
//     truncated. Officially it is the other way round.
//   - The tag omitzero is known, as in encoding/json.
//   - Options.OmitEmpty holds for structs inside structs too; officially for the outermost alone.
//   - Options.UseJSONStructTags and ErrorOnInlineDuplicates depend on nothing else; officially a struct that was used
//     without them once keeps its keys.
//   - A Decimal128 with a coefficient of more than 34 digits is zero, as its specification says.
//   - Options.UseLocalTimeZone holds for a time that is read from a string too.
//   - The padding bits of a packed-bit Vector must be zero, as its specification asks of new implementations.
//   - Extended JSON is read and written by the letter of its specification and of JSON's: key order in wrappers does not
//     count, a text is read to its end, canonical excludes relaxed, version 1, NUL in keys, halves of surrogate pairs and
//     line ends in strings are errors; fractions of a second have three digits, and a DBPointer's namespace is escaped as
//     any string.
//   - A $uuid may be written without hyphens, which the specification leaves open: many tools print it so.
//   - A map key that is a string is written by its MarshalKey if it has one, and read by UnmarshalKey alone, so that what was
//     written is read back; officially it is written as it is, but read by UnmarshalKey or UnmarshalText. A nil pointer in
//     an interface is the empty key, as a nil pointer is; officially its method is called, and panics.
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
