package value

import (
	"bytes"
	"encoding/binary"

	"github.com/sextantdb/sextant/bson"
)

// cursor walks a document by hand where two are walked side by side: an iterator cannot be paused without a coroutine.
type cursor struct {
	rest []byte
	key  []byte
	val  bson.RawValue
}

func walk(doc bson.Raw) cursor {
	if len(doc) < 5 {
		return cursor{}
	}
	return cursor{rest: doc[4:]}
}

// next steps to the next element; false at the end and at malformed bytes.
func (c *cursor) next() bool {
	if len(c.rest) < 2 || c.rest[0] == 0 {
		return false
	}
	end := bytes.IndexByte(c.rest[1:], 0)
	if end < 0 {
		return false
	}
	t := bson.Type(c.rest[0])
	c.key = c.rest[1 : 1+end]
	body := c.rest[2+end:]
	n := size(t, body)
	if n < 0 || n > len(body) {
		return false
	}
	c.val = bson.RawValue{Type: t, Value: body[:n:n]}
	c.rest = body[n:]
	return true
}

// size is the payload's length in bytes, -1 where it cannot be known.
func size(t bson.Type, b []byte) int {
	switch t {
	case bson.TypeNull, bson.TypeUndefined, bson.TypeMinKey, bson.TypeMaxKey:
		return 0
	case bson.TypeBoolean:
		return 1
	case bson.TypeInt32:
		return 4
	case bson.TypeDouble, bson.TypeInt64, bson.TypeDateTime, bson.TypeTimestamp:
		return 8
	case bson.TypeObjectID:
		return 12
	case bson.TypeDecimal128:
		return 16
	case bson.TypeRegex:
		first := bytes.IndexByte(b, 0)
		second := bytes.IndexByte(b[first+1:], 0)
		if first < 0 || second < 0 {
			return -1
		}
		return first + second + 2
	}
	if len(b) < 4 {
		return -1
	}
	n := int(int32(binary.LittleEndian.Uint32(b)))
	if n < 0 {
		return -1
	}
	switch t {
	case bson.TypeString, bson.TypeSymbol, bson.TypeJavaScript:
		return n + 4
	case bson.TypeBinary:
		return n + 5
	case bson.TypeDBPointer:
		return n + 16
	case bson.TypeEmbeddedDocument, bson.TypeArray, bson.TypeCodeWithScope:
		return n
	}
	return -1
}
