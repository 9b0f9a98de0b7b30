package conn

import (
	"fmt"
	"slices"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/compress"
	"github.com/sextantdb/sextant/internal/wire"
)

// Compression is what a client offers to compress with. It belongs to one client.
type Compression struct {
	Offer []compress.ID // in order of preference
	Codec *compress.Codec
}

// appendCompression offers the compressors, none if the client wants none, as the specification has it.
func (o *Options) appendCompression(dst []byte) []byte {
	dst, start := bson.BeginArrayElement(dst, "compression")
	if o.Compression != nil && !o.Monitor { // what a monitor sends is never compressed
		for i, id := range o.Compression.Offer {
			dst = bson.AppendString(dst, string(rune('0'+i)), id.String())
		}
	}
	return bson.EndDocument(dst, start)
}

// agree takes the first compressor of the offer that the server has as well.
func (c *Conn) agree() {
	if c.codec == nil {
		return
	}
	var theirs []string
	list, _ := c.hello.Lookup("compression").ArrayOK()
	for _, v := range list.All() {
		if name, ok := v.StringValueOK(); ok {
			theirs = append(theirs, name)
		}
	}
	for _, id := range c.offer {
		if slices.Contains(theirs, id.String()) {
			c.compressor = id
			return
		}
	}
}

// packed is what goes over the wire for a message: itself, or compressed.
func (c *Conn) packed(msg []byte) ([]byte, error) {
	if c.compressor == compress.Noop || !wire.Compressible(wire.CommandName(msg)) {
		return msg, nil
	}
	out, start := wire.AppendCompressedStart(c.zbuf[:0], msg, uint8(c.compressor))
	out, err := c.codec.Append(out, msg[wire.HeaderLen:], c.compressor)
	if err != nil {
		return nil, err
	}
	c.zbuf = out
	return wire.EndCompressed(out, start), nil
}

// unpacked is the message in a whole OP_COMPRESSED, whichever compressor the server used. It is valid until the next use of
// the connection.
func (c *Conn) unpacked(b []byte) ([]byte, error) {
	m, err := wire.ParseCompressed(b, maxReply)
	if err != nil {
		return nil, err
	}
	if m.Original != wire.OpMsg {
		return nil, opcodeError(m.Original)
	}
	out, err := c.codec.Unpack(m.AppendUnpackedHeader(c.zbuf[:0]), m.Data, compress.ID(m.Compressor), int(m.Size))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", wire.ErrMalformed, err)
	}
	c.zbuf = out
	return out, nil
}
