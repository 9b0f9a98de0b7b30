package conn

import (
	"context"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/compress"
	"github.com/sextantdb/sextant/internal/wire"
)

// fuzzLimit is how long an exchange with a server that sends rubbish and hangs up may take; it is a matter of microseconds.
const fuzzLimit = 20 * time.Second

// FuzzReplies: whatever a server answers after its hello, packed or not, the client gets an error or a whole reply to its
// request, and holds no more than was sent and what that unpacks to.
func FuzzReplies(f *testing.F) {
	good := message(1, 0, 0, doc("ok", 1.0))
	f.Add(good)
	f.Add(append(good[:len(good):len(good)], good...))
	f.Add(wire.AppendHeader(nil, wire.Header{Length: wire.MaxMessage, OpCode: wire.OpMsg}))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	for _, id := range []compress.ID{compress.Noop, compress.Snappy, compress.Zlib, compress.Zstd} {
		b, start := wire.AppendCompressedStart(nil, good, uint8(id))
		b, _ = codec.Append(b, good[wire.HeaderLen:], id)
		f.Add(wire.EndCompressed(b, start))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := open(t, packing(t, func(p *peer) {
			hello := p.read()
			p.answer(hello, packedHello)
			m := p.readPacked()
			if m == nil {
				return
			}
			reply := append([]byte(nil), data...)
			if len(reply) >= 12 { // it answers the request, so that more of it is looked at
				copy(reply[8:12], wire.AppendHeader(nil, wire.Header{RequestID: m.RequestID})[4:8])
			}
			p.write(reply)
		}))
		ctx, cancel := context.WithTimeout(t.Context(), fuzzLimit)
		defer cancel()
		m, err := c.RoundTrip(ctx, ping(c, wire.ExhaustAllowed))
		if ctx.Err() != nil {
			t.Fatal("it took too long")
		}
		if err != nil {
			if !c.Broken() {
				t.Fatalf("after %v the connection is in use", err)
			}
			return
		}
		if len(m.Body) > len(data) && len(m.Body) > wire.MaxMessage {
			t.Fatalf("a body of %d bytes from %d", len(m.Body), len(data))
		}
		for m.Body.Validate() == nil && c.Streaming() {
			if m, err = c.ReadNext(ctx); err != nil {
				return
			}
		}
	})
}

// FuzzHello: whatever document a server greets with, the client has an error or a connection whose limits can be worked with.
func FuzzHello(f *testing.F) {
	f.Add([]byte(helloReply))
	f.Add([]byte(packedHello))
	f.Add([]byte(doc("ok", 0.0, "errmsg", "no\nway", "code", 13)))
	f.Add([]byte(doc("isWritablePrimary", true, "maxWireVersion", 25, "maxBsonObjectSize", -1, "maxMessageSizeBytes", 5, "maxWriteBatchSize", 0,
		"compression", []string{"zstd", "nope"}, "saslSupportedMechs", []string{"x"}, "speculativeAuthenticate", doc("payload", []byte("r=")), "ok", 1.0)))
	f.Fuzz(func(t *testing.T, data []byte) {
		o := packing(t, func(p *peer) { p.answer(p.read(), bson.Raw(data)) })
		o.Credential = &Credential{Username: "joe", Password: "pencil", Source: "admin"}
		ctx, cancel := context.WithTimeout(t.Context(), fuzzLimit)
		defer cancel()
		c, err := Open(ctx, "db1:27017", o)
		if ctx.Err() != nil {
			t.Fatal("it took too long")
		}
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without words")
			}
			return
		}
		defer c.Close()
		if size, message, batch, _ := c.Limits(); size <= 0 || message <= 0 || batch <= 0 {
			t.Fatalf("limits %d, %d, %d", size, message, batch)
		}
	})
}
