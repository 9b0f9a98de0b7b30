package conn

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/compress"
	"github.com/sextantdb/sextant/internal/wire"
)

var codec = compress.New(compress.DefaultLevel)

// packing are played options that offer all compressors.
func packing(t *testing.T, script func(p *peer)) *Options {
	o := played(t, script)
	o.Compression = &Compression{Offer: []compress.ID{compress.Zstd, compress.Snappy, compress.Zlib}, Codec: codec}
	return o
}

// pack is a reply in an OP_COMPRESSED that says it has size bytes more than it has.
func pack(t *testing.T, msg []byte, id compress.ID, more int32) []byte {
	t.Helper()
	b, start := wire.AppendCompressedStart(nil, msg, uint8(id))
	b, err := codec.Append(b, msg[wire.HeaderLen:], id)
	if err != nil {
		t.Fatal(err)
	}
	b[wire.HeaderLen+4] += byte(more)
	return wire.EndCompressed(b, start)
}

var packedHello = func() bson.Raw {
	b, start := bson.BeginDocument(nil)
	for key, v := range helloReply.All() {
		b = bson.AppendValue(b, key, v)
	}
	b, list := bson.BeginArrayElement(b, "compression")
	b = bson.EndDocument(bson.AppendString(b, "0", "snappy"), list)
	return bson.EndDocument(b, start)
}()

// A server may compress whatever it likes, the reply to the hello included, by any compressor of the offer, or not at all.
func TestRepliesAreUnpackedByTheirOwnCompressor(t *testing.T) {
	c := open(t, packing(t, func(p *peer) {
		hello := p.read()
		p.write(pack(t, message(1, hello.RequestID, 0, packedHello), compress.Zlib, 0))
		for n, id := range []compress.ID{compress.Snappy, compress.Zstd, compress.Zlib, compress.Noop, 99} {
			m := p.readPacked()
			reply := message(1, m.RequestID, 0, doc("n", n, "ok", 1.0))
			if id != 99 {
				reply = pack(t, reply, id, 0)
			}
			p.write(reply)
		}
	}))
	for n := range 5 {
		m, err := c.RoundTrip(t.Context(), ping(c, 0))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := m.Body.Lookup("n").Int32OK(); int(got) != n {
			t.Errorf("reply %d is %s", n, m.Body)
		}
	}
}

// readPacked reads a request that must be packed by snappy.
func (p *peer) readPacked() *wire.Msg {
	b := p.bytes()
	c, err := wire.ParseCompressed(b, wire.MaxMessage)
	if err != nil || compress.ID(c.Compressor) != compress.Snappy {
		p.t.Errorf("the request is %v, %v", c, err)
		return nil
	}
	out, err := codec.Unpack(c.AppendUnpackedHeader(nil), c.Data, compress.Snappy, int(c.Size))
	if err != nil {
		p.t.Error(err)
		return nil
	}
	m, err := wire.ParseMsg(out)
	if err != nil {
		p.t.Error(err)
	}
	return &m
}

func TestPackedRepliesThatLieAreRefused(t *testing.T) {
	whole := func(id int32) []byte { return message(1, id, 0, doc("ok", 1.0)) }
	for name, c := range map[string]struct {
		reply func(id int32) []byte
		says  string
	}{
		"one byte more": {func(id int32) []byte { return pack(t, whole(id), compress.Zstd, 1) }, "declared"},
		"one byte less": {func(id int32) []byte { return pack(t, whole(id), compress.Zlib, -1) }, "declared"},
		"a bomb": {func(id int32) []byte {
			b := pack(t, whole(id), compress.Zlib, 0)
			b[wire.HeaderLen+7] = 0x7f
			return b
		}, "at most"},
		"no OP_MSG": {func(id int32) []byte {
			b := pack(t, whole(id), compress.Zlib, 0)
			b[wire.HeaderLen] = 1
			b[wire.HeaderLen+1] = 0
			return b
		}, "OP_REPLY"},
	} {
		conn := open(t, packing(t, func(p *peer) {
			p.greet()
			p.write(c.reply(p.read().RequestID))
		}))
		if _, err := conn.RoundTrip(t.Context(), ping(conn, 0)); !errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), c.says) || !conn.Broken() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClientThatOffersNothingRefusesPackedReplies(t *testing.T) {
	c := open(t, played(t, func(p *peer) {
		p.greet()
		p.write(pack(t, message(1, p.read().RequestID, 0, doc("ok", 1.0)), compress.Snappy, 0))
	}))
	if _, err := c.RoundTrip(context.Background(), ping(c, 0)); !errors.Is(err, wire.ErrCompressed) {
		t.Error(err)
	}
}
