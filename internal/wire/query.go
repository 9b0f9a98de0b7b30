package wire

import (
	"bytes"
	"encoding/binary"

	"github.com/sextantdb/sextant/bson"
)

// The flag bits of OP_REPLY.
const (
	ReplyCursorNotFound int32 = 1 << 0
	ReplyQueryFailure   int32 = 1 << 1 // the one document is {$err: text, code: number}
	ReplyAwaitCapable   int32 = 1 << 3
)

// QuerySecondaryOK is the OP_QUERY flag bit by which a client allows a secondary to answer.
const QuerySecondaryOK int32 = 1 << 2

// Query is an OP_QUERY taken apart. Servers since 5.1 answer it for hello, isMaster and the commands of
// authentication only. Its slices point into the parsed bytes.
type Query struct {
	Header
	Flags      int32
	Collection string // full name, "admin.$cmd" for a command
	Skip       int32
	Limit      int32 // numberToReturn
	Query      bson.Raw
	Fields     bson.Raw // nil when the client sent no projection
}

// ParseQuery takes apart the one whole OP_QUERY in b. Documents are framed, not validated. The result points into b.
func ParseQuery(b []byte) (Query, error) {
	h, err := checkWhole(b, OpQuery)
	if err != nil {
		return Query{}, err
	}
	q := Query{Header: h}
	b = b[HeaderLen:]
	if len(b) < 4 {
		return Query{}, malformed("OP_QUERY has no flags")
	}
	q.Flags, b = readInt32(b), b[4:]
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return Query{}, malformed("OP_QUERY has an unterminated collection name")
	}
	q.Collection, b = string(b[:end]), b[end+1:]
	if len(b) < 8 {
		return Query{}, malformed("OP_QUERY ends before its skip and limit")
	}
	q.Skip, q.Limit, b = readInt32(b), readInt32(b[4:]), b[8:]
	if q.Query, b, err = takeDocument(b, "OP_QUERY query"); err != nil {
		return Query{}, err
	}
	if len(b) > 0 {
		if q.Fields, b, err = takeDocument(b, "OP_QUERY projection"); err != nil {
			return Query{}, err
		}
	}
	if len(b) > 0 {
		return Query{}, malformed("OP_QUERY has %d bytes after its last document", len(b))
	}
	return q, nil
}

// AppendReply appends a whole OP_REPLY that answers the request responseTo. from is the position of the first
// document in the cursor's result, 0 for a command.
func AppendReply(dst []byte, requestID, responseTo, flags int32, cursorID int64, from int32, docs ...bson.Raw) []byte {
	start := len(dst)
	dst = AppendHeader(dst, Header{RequestID: requestID, ResponseTo: responseTo, OpCode: OpReply})
	dst = appendInt32(dst, flags)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(cursorID))
	dst = appendInt32(dst, from)
	dst = appendInt32(dst, int32(len(docs)))
	for _, d := range docs {
		dst = append(dst, d...)
	}
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}
