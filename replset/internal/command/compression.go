package command

import (
	"fmt"
	"slices"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/compress"
	"github.com/sextantdb/sextant/internal/wire"
)

// compressors are those that a member of the claimed version has: zstd came with 4.2.
func (m *Member) compressors() []string {
	names := m.opt.Compressors
	if names == nil {
		names = compress.Names()
	}
	if m.opt.Persona.wire < wire42 {
		names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == compress.Zstd.String() })
	}
	return names
}

// compressionFields are those compressors of a hello's offer that the member has too, in the offer's order; none: no field.
func (m *Member) compressionFields(r *Request) bson.D {
	offer, _ := r.Field("compression").ArrayOK()
	var both []string
	for _, v := range offer.All() {
		if name, ok := v.StringValueOK(); ok && slices.Contains(m.compressors(), name) {
			both = append(both, name)
		}
	}
	if both == nil {
		return nil
	}
	return bson.D{{Key: "compression", Value: both}}
}

// unpack is the message that an OP_COMPRESSED holds, and by which compressor it was packed, which the reply is packed by as
// well. Any other message is left as it is. What a large one unpacks to counts in the budget of messages.
func (c *Conn) unpack(msg []byte) ([]byte, compress.ID, error) {
	if h, err := wire.CheckHeader(msg, wire.MaxMessage); err != nil || h.OpCode != wire.OpCompressed {
		return msg, 0, nil // the error is parse's to tell
	}
	p, err := wire.ParseCompressed(msg, wire.MaxMessage)
	if err != nil {
		return nil, 0, err
	}
	id := compress.ID(p.Compressor)
	if id != compress.Noop && !slices.Contains(c.m.compressors(), id.String()) {
		return nil, 0, fmt.Errorf("%w: %v is not spoken here", wire.ErrMalformed, id)
	}
	if size := int(p.Size); size > smallMessage {
		if c.share == nil {
			c.share = c.m.messages.begin(0)
		}
		if err := c.share.extend(c.ctx, size); err != nil {
			return nil, 0, err
		}
	}
	out, err := c.m.codec.Unpack(p.AppendUnpackedHeader(nil), p.Data, id, int(p.Size))
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", wire.ErrMalformed, err)
	}
	return out, id, nil
}

// pack is a reply as it goes over the wire to who sent the request packed by id.
func (c *Conn) pack(reply []byte, id compress.ID) ([]byte, error) {
	if id == compress.Noop {
		return reply, nil
	}
	out, start := wire.AppendCompressedStart(make([]byte, 0, len(reply)/2+wire.HeaderLen), reply, uint8(id))
	out, err := c.m.codec.Append(out, reply[wire.HeaderLen:], id)
	if err != nil {
		return nil, err
	}
	return wire.EndCompressed(out, start), nil
}
