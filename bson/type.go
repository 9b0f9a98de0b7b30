package bson

import "fmt"

// Type is the byte that precedes an element's key and says how its payload is laid out.
type Type byte

// The types of the BSON specification. Undefined, DBPointer, Symbol are deprecated but still read and written.
const (
	TypeDouble           Type = 0x01
	TypeString           Type = 0x02
	TypeEmbeddedDocument Type = 0x03
	TypeArray            Type = 0x04
	TypeBinary           Type = 0x05
	TypeUndefined        Type = 0x06
	TypeObjectID         Type = 0x07
	TypeBoolean          Type = 0x08
	TypeDateTime         Type = 0x09
	TypeNull             Type = 0x0A
	TypeRegex            Type = 0x0B
	TypeDBPointer        Type = 0x0C
	TypeJavaScript       Type = 0x0D
	TypeSymbol           Type = 0x0E
	TypeCodeWithScope    Type = 0x0F
	TypeInt32            Type = 0x10
	TypeTimestamp        Type = 0x11
	TypeInt64            Type = 0x12
	TypeDecimal128       Type = 0x13
	TypeMaxKey           Type = 0x7F
	TypeMinKey           Type = 0xFF
)

// Binary subtypes. From 0x80 on they belong to the user.
const (
	TypeBinaryGeneric     byte = 0x00
	TypeBinaryFunction    byte = 0x01
	TypeBinaryBinaryOld   byte = 0x02
	TypeBinaryUUIDOld     byte = 0x03
	TypeBinaryUUID        byte = 0x04
	TypeBinaryMD5         byte = 0x05
	TypeBinaryEncrypted   byte = 0x06
	TypeBinaryColumn      byte = 0x07
	TypeBinarySensitive   byte = 0x08
	TypeBinaryVector      byte = 0x09
	TypeBinaryUserDefined byte = 0x80
)

// MaxDepth is how deep documents and arrays may nest, the outermost document counting as one: the limit that MongoDB
// itself puts on a document. Deeper ones are refused when encoding, decoding and validating.
const MaxDepth = 200

// String returns the type's name in words, such as "embedded document".
func (t Type) String() string {
	switch t {
	case TypeDouble:
		return "double"
	case TypeString:
		return "string"
	case TypeEmbeddedDocument:
		return "embedded document"
	case TypeArray:
		return "array"
	case TypeBinary:
		return "binary"
	case TypeUndefined:
		return "undefined"
	case TypeObjectID:
		return "objectID"
	case TypeBoolean:
		return "boolean"
	case TypeDateTime:
		return "UTC datetime"
	case TypeNull:
		return "null"
	case TypeRegex:
		return "regex"
	case TypeDBPointer:
		return "dbPointer"
	case TypeJavaScript:
		return "javascript"
	case TypeSymbol:
		return "symbol"
	case TypeCodeWithScope:
		return "code with scope"
	case TypeInt32:
		return "32-bit integer"
	case TypeTimestamp:
		return "timestamp"
	case TypeInt64:
		return "64-bit integer"
	case TypeDecimal128:
		return "128-bit decimal"
	case TypeMinKey:
		return "min key"
	case TypeMaxKey:
		return "max key"
	case 0:
		return "missing"
	}
	return fmt.Sprintf("unknown type 0x%02x", byte(t))
}

// IsValid reports whether the specification knows the type.
func (t Type) IsValid() bool {
	return t >= TypeDouble && t <= TypeDecimal128 || t == TypeMinKey || t == TypeMaxKey
}
