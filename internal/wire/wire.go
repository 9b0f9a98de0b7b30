// Package wire speaks MongoDB's message framing: OP_MSG in both directions, OP_QUERY and OP_REPLY for the server's
// side only (old clients still open a connection with them). It turns bytes into messages and back; it reads no
// socket, starts no goroutine and keeps no state, so every function is safe for concurrent use.
//
// Whatever it parses may come from a stranger: every length is checked before it is used, and what is refused is
// refused with an error that wraps ErrMalformed. The BSON documents inside are only framed here (length and closing
// zero); whoever does not trust the peer validates them.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sextantdb/sextant/bson"
)

// HeaderLen is the size in bytes of the header that every message begins with.
const HeaderLen = 16

// MaxMessage is the largest message in bytes, header included, that a server accepts unless it says otherwise in hello
// (maxMessageSizeBytes).
const MaxMessage = 48000000

// The operation codes.
const (
	OpReply      = 1
	OpQuery      = 2004
	OpCompressed = 2012
	OpMsg        = 2013
)

var (
	// ErrMalformed is wrapped by every error of this package: the bytes are no message that it could accept.
	ErrMalformed = errors.New("malformed message")
	// ErrTooLarge is wrapped, beside ErrMalformed, when a header announces more bytes than the reader allows.
	ErrTooLarge = errors.New("message too large")
	// ErrCompressed is wrapped, beside ErrMalformed, when the peer sent OP_COMPRESSED.
	ErrCompressed = errors.New("compressed message")
)

// Header begins every message. All integers are little-endian on the wire.
type Header struct {
	Length     int32 // of the whole message in bytes, this header included
	RequestID  int32
	ResponseTo int32 // the RequestID of the message that this one answers; 0 in a request
	OpCode     int32
}

// AppendHeader appends the 16 bytes of h to dst.
func AppendHeader(dst []byte, h Header) []byte {
	dst = appendInt32(dst, h.Length)
	dst = appendInt32(dst, h.RequestID)
	dst = appendInt32(dst, h.ResponseTo)
	return appendInt32(dst, h.OpCode)
}

// CheckHeader reads a header from the first 16 bytes of b and refuses a length that no message can have or that is
// over limit. The operation code is the caller's affair. When the bytes look like another protocol, the error says which.
func CheckHeader(b []byte, limit int32) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, malformed("%d bytes are too few for a header%s", len(b), guessed(b))
	}
	h := Header{
		Length:     readInt32(b),
		RequestID:  readInt32(b[4:]),
		ResponseTo: readInt32(b[8:]),
		OpCode:     readInt32(b[12:]),
	}
	if h.Length < HeaderLen {
		return h, malformed("message length %d is under the %d bytes of a header%s", h.Length, HeaderLen, guessed(b))
	}
	if h.Length > limit {
		return h, fmt.Errorf("%w: %w: length %d is over the limit of %d bytes%s", ErrMalformed, ErrTooLarge, h.Length, limit, guessed(b))
	}
	return h, nil
}

// OpName returns the name of an operation code, for errors and logs.
func OpName(code int32) string {
	switch code {
	case OpReply:
		return "OP_REPLY"
	case OpQuery:
		return "OP_QUERY"
	case OpCompressed:
		return "OP_COMPRESSED"
	case OpMsg:
		return "OP_MSG"
	}
	return fmt.Sprintf("operation code %d", code)
}

// Guess says what protocol the first bytes of a stream belong to when they are not MongoDB's ("an HTTP answer"), and ""
// when it cannot tell. It needs four bytes.
func Guess(b []byte) string {
	if len(b) < 4 {
		return ""
	}
	switch string(b[:4]) {
	case "HTTP":
		return "an HTTP answer"
	case "GET ", "POST", "PUT ", "HEAD", "OPTI", "CONN", "DELE", "PRI ":
		return "an HTTP request"
	case "SSH-":
		return "an SSH greeting"
	case "220 ", "220-":
		return "an SMTP or FTP greeting"
	case "-ERR", "-DEN", "-NOA":
		return "a Redis error"
	}
	if b[0] >= 0x14 && b[0] <= 0x17 && b[1] == 3 && b[2] <= 4 {
		return "a TLS record"
	}
	return ""
}

func guessed(b []byte) string {
	if g := Guess(b); g != "" {
		return " (the bytes are " + g + ")"
	}
	return ""
}

// checkWhole checks that b is exactly one message of the wanted operation code.
func checkWhole(b []byte, opcode int32) (Header, error) {
	if len(b) > maxInt32 {
		return Header{}, malformed("%d bytes are no single message", len(b))
	}
	h, err := CheckHeader(b, maxInt32)
	if err != nil {
		return h, err
	}
	if int(h.Length) != len(b) {
		return h, malformed("the header says %d bytes, the message has %d", h.Length, len(b))
	}
	if h.OpCode == OpCompressed && opcode != OpCompressed {
		return h, fmt.Errorf("%w: %w: OP_COMPRESSED is not supported here, no compressor was negotiated", ErrMalformed, ErrCompressed)
	}
	if h.OpCode != opcode {
		return h, malformed("expected %s, got %s", OpName(opcode), OpName(h.OpCode))
	}
	return h, nil
}

// takeDocument cuts one BSON document off the front of b. It checks the length prefix and the closing zero, no more.
func takeDocument(b []byte, what string) (doc bson.Raw, rest []byte, err error) {
	if len(b) < minDocument {
		return nil, nil, malformed("%s: %d bytes left, a document needs at least %d", what, len(b), minDocument)
	}
	n := readInt32(b)
	if n < minDocument || int(n) > len(b) {
		return nil, nil, malformed("%s: document length %d, with %d bytes left", what, n, len(b))
	}
	if b[n-1] != 0 {
		return nil, nil, malformed("%s: the document of %d bytes does not end in a zero byte", what, n)
	}
	return bson.Raw(b[:n:n]), b[n:], nil
}

const (
	minDocument = 5 // length and closing zero
	maxInt32    = 1<<31 - 1
)

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}

func appendInt32(dst []byte, v int32) []byte {
	return binary.LittleEndian.AppendUint32(dst, uint32(v))
}

func readInt32(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) }
