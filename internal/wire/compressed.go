package wire

import (
	"bytes"
	"encoding/binary"
)

// Compressed is an OP_COMPRESSED taken apart: another message without its header, packed. Data points into the parsed bytes.
type Compressed struct {
	Header
	Original   int32 // operation code of the message inside
	Size       int32 // bytes of the message inside when it is unpacked, its header left out
	Compressor uint8
	Data       []byte
}

// compressedLen is what OP_COMPRESSED has between its header and the packed bytes.
const compressedLen = 4 + 4 + 1

// ParseCompressed takes apart the one whole OP_COMPRESSED in b. It refuses a message inside that would be longer than
// limit bytes with its header, or be compressed itself.
func ParseCompressed(b []byte, limit int32) (Compressed, error) {
	h, err := checkWhole(b, OpCompressed)
	if err != nil {
		return Compressed{}, err
	}
	if len(b) < HeaderLen+compressedLen {
		return Compressed{}, malformed("OP_COMPRESSED of %d bytes has no room for its fields", len(b))
	}
	c := Compressed{Header: h, Original: readInt32(b[HeaderLen:]), Size: readInt32(b[HeaderLen+4:]), Compressor: b[HeaderLen+8],
		Data: b[HeaderLen+compressedLen:]}
	switch {
	case c.Size < 0 || c.Size > limit-HeaderLen:
		return Compressed{}, malformed("OP_COMPRESSED says that it unpacks to %d bytes; at most %d are allowed", c.Size, limit-HeaderLen)
	case c.Original == OpCompressed:
		return Compressed{}, malformed("OP_COMPRESSED inside OP_COMPRESSED")
	}
	return c, nil
}

// AppendUnpackedHeader appends the header that the message inside has when it stands alone. Its c.Size bytes follow.
func (c *Compressed) AppendUnpackedHeader(dst []byte) []byte {
	return AppendHeader(dst, Header{Length: HeaderLen + c.Size, RequestID: c.RequestID, ResponseTo: c.ResponseTo, OpCode: c.Original})
}

// AppendCompressedStart begins an OP_COMPRESSED that holds the whole message msg. The packed bytes of msg[HeaderLen:]
// follow, then EndCompressed with the returned start. msg must be a message.
func AppendCompressedStart(dst, msg []byte, compressor uint8) (out []byte, start int) {
	start = len(dst)
	dst = append(dst, msg[:12]...)
	dst = appendInt32(dst, OpCompressed)
	dst = append(dst, msg[12:HeaderLen]...)
	dst = appendInt32(dst, int32(len(msg)-HeaderLen))
	return append(dst, compressor), start
}

// EndCompressed writes the length of the message that began at start.
func EndCompressed(dst []byte, start int) []byte {
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// CommandName is the first key of the body of an OP_MSG as AppendMsgStart begins it, "" if it has another form.
func CommandName(msg []byte) []byte {
	const key = HeaderLen + 4 + 1 + 4 + 1 // flags, kind, length of the document, type of the element
	if len(msg) <= key || msg[HeaderLen+4] != kindBody {
		return nil
	}
	for i := key; i < len(msg); i++ {
		if msg[i] == 0 {
			return msg[key:i]
		}
	}
	return nil
}

// Compressible says whether a command may be sent in an OP_COMPRESSED: what holds secrets may not, since the size of packed
// bytes tells of their content (specification "OP_COMPRESSED", messages not allowed to be compressed).
func Compressible(command []byte) bool {
	for _, name := range uncompressed {
		if bytes.EqualFold(command, name) {
			return false
		}
	}
	return len(command) > 0
}

var uncompressed = [][]byte{
	[]byte("hello"), []byte("isMaster"), []byte("saslStart"), []byte("saslContinue"), []byte("getnonce"), []byte("authenticate"),
	[]byte("createUser"), []byte("updateUser"), []byte("copydbSaslStart"), []byte("copydbgetnonce"), []byte("copydb"),
}
