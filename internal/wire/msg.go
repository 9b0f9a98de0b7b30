package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/sextantdb/sextant/bson"
)

// The flag bits of OP_MSG. Bits 0 to 15 must be understood, bits 16 to 31 may be ignored.
const (
	ChecksumPresent uint32 = 1 << 0  // a CRC-32C of everything before it ends the message
	MoreToCome      uint32 = 1 << 1  // another message follows without a request; in a request: no reply is wanted
	ExhaustAllowed  uint32 = 1 << 16 // the client takes replies with MoreToCome
)

const (
	requiredFlags = uint32(0xFFFF)
	knownFlags    = ChecksumPresent | MoreToCome
	checksumLen   = 4

	kindBody     = 0
	kindSequence = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Msg is an OP_MSG taken apart. Its slices point into the parsed bytes.
type Msg struct {
	Header
	Flags     uint32
	Body      bson.Raw
	Sequences []Sequence
}

// Sequence is a document sequence section (kind 1): what would be an array field of the body, sent beside it.
type Sequence struct {
	ID   string
	Docs []bson.Raw
}

// AppendMsgStart begins an OP_MSG at the end of dst: header, flags and the kind byte of the body section. The body
// document follows, then any sequences, then EndMsg with the returned start.
func AppendMsgStart(dst []byte, requestID, responseTo int32, flags uint32) (out []byte, start int) {
	start = len(dst)
	dst = AppendHeader(dst, Header{RequestID: requestID, ResponseTo: responseTo, OpCode: OpMsg})
	dst = binary.LittleEndian.AppendUint32(dst, flags)
	return append(dst, kindBody), start
}

// AppendSequenceStart begins a document sequence section. The documents follow, then EndSequence with the returned
// start. The id must hold no zero byte.
func AppendSequenceStart(dst []byte, id string) (out []byte, start int) {
	dst = append(dst, kindSequence)
	start = len(dst)
	dst = appendInt32(dst, 0)
	dst = append(dst, id...)
	return append(dst, 0), start
}

// EndSequence writes the length of the section that began at start.
func EndSequence(dst []byte, start int) []byte {
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// EndMsg writes the length of the message that began at start, and the checksum if its flags promise one.
func EndMsg(dst []byte, start int) []byte {
	summed := binary.LittleEndian.Uint32(dst[start+HeaderLen:])&ChecksumPresent != 0
	n := len(dst) - start
	if summed {
		n += checksumLen
	}
	binary.LittleEndian.PutUint32(dst[start:], uint32(n))
	if summed {
		dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
	}
	return dst
}

// ParseMsg takes apart the one whole OP_MSG in b. It checks every length, refuses flag bits that it must understand
// and does not, verifies the checksum if there is one, and wants exactly one body and no two sequences of one id.
// Documents are framed, not validated. The result points into b.
func ParseMsg(b []byte) (Msg, error) {
	h, err := checkWhole(b, OpMsg)
	if err != nil {
		return Msg{}, err
	}
	if len(b) < HeaderLen+4 {
		return Msg{}, malformed("OP_MSG of %d bytes has no room for its flags", len(b))
	}
	m := Msg{Header: h, Flags: binary.LittleEndian.Uint32(b[HeaderLen:])}
	if unknown := m.Flags & requiredFlags &^ knownFlags; unknown != 0 {
		return Msg{}, malformed("OP_MSG has unknown required flag bits %#x", unknown)
	}
	sections := b[HeaderLen+4:]
	if m.Flags&ChecksumPresent != 0 {
		if sections, err = verifyChecksum(b); err != nil {
			return Msg{}, err
		}
	}
	if err := m.parseSections(sections); err != nil {
		return Msg{}, err
	}
	return m, nil
}

// verifyChecksum returns the sections of b without the checksum at its end.
func verifyChecksum(b []byte) ([]byte, error) {
	if len(b) < HeaderLen+4+checksumLen {
		return nil, malformed("OP_MSG of %d bytes has no room for its checksum", len(b))
	}
	end := len(b) - checksumLen
	want := binary.LittleEndian.Uint32(b[end:])
	if got := crc32.Checksum(b[:end], castagnoli); got != want {
		return nil, malformed("the OP_MSG checksum is %#08x, its bytes sum to %#08x", want, got)
	}
	return b[HeaderLen+4 : end], nil
}

func (m *Msg) parseSections(b []byte) error {
	for len(b) > 0 {
		kind := b[0]
		b = b[1:]
		var err error
		switch kind {
		case kindBody:
			if m.Body != nil {
				return malformed("OP_MSG has two bodies")
			}
			m.Body, b, err = takeDocument(b, "OP_MSG body")
		case kindSequence:
			b, err = m.parseSequence(b)
		default:
			err = malformed("OP_MSG section of unknown kind %d", kind)
		}
		if err != nil {
			return err
		}
	}
	if m.Body == nil {
		return malformed("OP_MSG has no body")
	}
	return nil
}

func (m *Msg) parseSequence(b []byte) (rest []byte, err error) {
	if len(b) < 4 {
		return nil, malformed("OP_MSG document sequence has no length")
	}
	n := readInt32(b)
	if n < 4+1 || int(n) > len(b) {
		return nil, malformed("OP_MSG document sequence of length %d, with %d bytes left", n, len(b))
	}
	rest, b = b[n:], b[4:n]
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return nil, malformed("OP_MSG document sequence has an unterminated id")
	}
	id := string(b[:end])
	for _, s := range m.Sequences {
		if s.ID == id {
			return nil, malformed("OP_MSG has two document sequences %q", id)
		}
	}
	docs, err := takeDocuments(b[end+1:], id)
	if err != nil {
		return nil, err
	}
	m.Sequences = append(m.Sequences, Sequence{ID: id, Docs: docs})
	return rest, nil
}

// takeDocuments cuts b into documents. It walks twice, so that a bad length costs no allocation and a good sequence
// costs exactly one.
func takeDocuments(b []byte, id string) ([]bson.Raw, error) {
	count := 0
	for rest := b; len(rest) > 0; count++ {
		_, after, err := takeDocument(rest, "")
		if err != nil {
			_, _, err = takeDocument(rest, fmt.Sprintf("OP_MSG document sequence %q, document %d", id, count))
			return nil, err
		}
		rest = after
	}
	docs := make([]bson.Raw, count)
	for i := range docs {
		docs[i], b, _ = takeDocument(b, "")
	}
	return docs, nil
}
