package bson

import "fmt"

// Options are the behaviour switches, the same for this package's functions and for a client. The zero value is the
// default everywhere. The functions of this package use it; the methods of Options with the same names use theirs:
//
//	b, err := bson.Options{NilSliceAsEmpty: true}.Marshal(v)
//
// Options can be compared, and each different value has plans of its own: make few, not one a call. Registrations hold for
// all of them.
type Options struct {
	// UseJSONStructTags takes a field's key and options from its json tag where it has no bson tag.
	UseJSONStructTags bool

	// Encoding.

	// NilSliceAsEmpty, NilMapAsEmpty and NilByteSliceAsEmpty write nil as an empty array, document or binary instead
	// of null. A D counts as a slice, but becomes a document.
	NilSliceAsEmpty, NilMapAsEmpty, NilByteSliceAsEmpty bool
	// OmitEmpty treats every struct field as if it were tagged omitempty.
	OmitEmpty bool
	// OmitZeroStruct makes omitempty leave out a struct whose exported fields are all empty.
	OmitZeroStruct bool
	// IntMinSize writes every Go integer as int32 where its value fits, as the tag minsize does for one field.
	IntMinSize bool
	// StringifyMapKeysWithFmt writes map keys of any type as fmt.Sprint prints them.
	StringifyMapKeysWithFmt bool
	// ErrorOnInlineDuplicates refuses a struct in which a field hides one of an inline struct. Two fields of the same
	// depth with one key are an error always.
	ErrorOnInlineDuplicates bool

	// Decoding.

	// Documents says what a document becomes in an any.
	Documents DocumentType
	// AllowTruncatingDoubles cuts off the fraction of a double that is decoded into an integer, as the tag truncate
	// does for one field.
	AllowTruncatingDoubles bool
	// BinaryAsSlice decodes binary of the subtypes 0 and 2 into an any as []byte instead of Binary.
	BinaryAsSlice bool
	// ObjectIDAsHexString lets an ObjectID be decoded into a string, as 24 hexadecimal digits; else it is an error.
	ObjectIDAsHexString bool
	// UseLocalTimeZone decodes into time.Time in the local time zone instead of UTC.
	UseLocalTimeZone bool
	// ZeroMaps empties a map before a document is decoded into it; else its other entries stay.
	ZeroMaps bool
	// ZeroStructs sets a struct to its zero value before a document is decoded into it; else its other fields stay.
	ZeroStructs bool
	// Strings says where the memory of decoded strings comes from.
	Strings StringMemory
}

// DocumentType says what a document becomes where the Go type, an any, leaves it open.
type DocumentType uint8

const (
	// DocumentsLikeParent decodes a document inside an M as an M, inside a map[string]any as such a map, else as a D.
	DocumentsLikeParent DocumentType = iota
	// DocumentsAsD decodes every such document as a D: what the official driver does by default.
	DocumentsAsD
	// DocumentsAsM decodes every such document as an M.
	DocumentsAsM
	// DocumentsAsMap decodes every such document as a map[string]any.
	DocumentsAsMap
)

// StringMemory says where the memory of decoded strings comes from, and so what a string that is kept keeps in memory.
type StringMemory uint8

const (
	// StringsInChunks puts the strings of a document, or of the documents of one Batch, into shared chunks. A string that
	// is kept keeps its chunk, of at most 8 KiB. In D, M and A a value of any type that is kept may do so too, together with
	// up to 32 values beside it, which take 16 bytes each. Strings of more than 2 KiB may have memory of their own.
	StringsInChunks StringMemory = iota
	// StringsCopied gives every string memory of its own: for programs that keep a few strings of many documents. In D, M
	// and A a number, date or ObjectID that is kept keeps up to 32 of them, which take 8 or 16 bytes each.
	StringsCopied
	// StringsAliased copies nothing: strings share the bytes that were decoded, which must not be changed as long as any
	// of the strings is in use. A string that is kept keeps all of these bytes: one document of a Decoder; of a cursor, the
	// batch that it came in; elsewhere the whole slice that the document given to decode is a part of. In D, M and A a value
	// of any type that is kept may do so too. Nothing keeps the bytes of another document that was decoded from elsewhere.
	StringsAliased
)

// Validate says which field has a value that stands for nothing.
func (o Options) Validate() error {
	switch {
	case o.Documents > DocumentsAsMap:
		return fmt.Errorf("bson: Options.Documents is %d, which is no DocumentType", o.Documents)
	case o.Strings > StringsAliased:
		return fmt.Errorf("bson: Options.Strings is %d, which is no StringMemory", o.Strings)
	}
	return nil
}
