package conn

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// Check asks for the server's state again, as monitors do: without the arguments of the handshake, by hello if the
// server knows it. With a topologyVersion the server holds its answer until its state is newer or maxAwait is over,
// and may go on to tell unasked; while it does (Streaming), Check only waits for the next reply. The reply is a copy.
// An answer without ok: 1 is returned as it is.
func (c *Conn) Check(ctx context.Context, topologyVersion bson.Raw, maxAwait time.Duration) (bson.Raw, error) {
	if c.stream.open {
		return c.checked(c.ReadNext(ctx))
	}
	flags := uint32(0)
	if topologyVersion != nil {
		flags = wire.ExhaustAllowed
	}
	msg, start := wire.AppendMsgStart(c.Buffer(), c.NextRequestID(), 0, flags)
	msg, doc := bson.BeginDocument(msg)
	msg = c.appendCheck(msg)
	if topologyVersion != nil {
		msg = bson.AppendDocument(msg, "topologyVersion", topologyVersion)
		msg = bson.AppendInt64(msg, "maxAwaitTimeMS", maxAwait.Milliseconds())
	}
	msg = bson.AppendString(msg, "$db", "admin")
	msg = bson.EndDocument(msg, doc)
	return c.checked(c.RoundTrip(ctx, wire.EndMsg(msg, start)))
}

// checked copies the reply out of the buffer.
func (c *Conn) checked(m wire.Msg, err error) (bson.Raw, error) {
	if err != nil {
		return nil, err
	}
	if err := m.Body.Validate(); err != nil {
		return nil, c.fail(mongoerr.StageRead, err, "the server's hello is malformed")
	}
	if len(m.Body) > maxHello {
		return nil, c.fail(mongoerr.StageRead, nil, "the server's hello has %d bytes; at most %d are taken", len(m.Body), maxHello)
	}
	return m.Body.Clone(), nil
}

// maxHello bounds what is kept of a server's hello, by the monitor and each connection. A true one has a few kilobytes.
const maxHello = 256 << 10

func (c *Conn) appendCheck(dst []byte) []byte {
	_, greeted := c.hello.Lookup("isWritablePrimary").BooleanOK()
	if known, _ := c.hello.Lookup("helloOk").BooleanOK(); known || greeted {
		return bson.AppendInt32(dst, "hello", 1)
	}
	dst = bson.AppendInt32(dst, "isMaster", 1)
	return bson.AppendBoolean(dst, "helloOk", true)
}
