package conn

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
)

// doc builds a document from keys and values of the few types that these tests need.
func doc(pairs ...any) bson.Raw {
	b, start := bson.BeginDocument(nil)
	for i := 0; i < len(pairs); i += 2 {
		key := pairs[i].(string)
		switch v := pairs[i+1].(type) {
		case int:
			b = bson.AppendInt32(b, key, int32(v))
		case float64:
			b = bson.AppendDouble(b, key, v)
		case bool:
			b = bson.AppendBoolean(b, key, v)
		case string:
			b = bson.AppendString(b, key, v)
		case []byte:
			b = bson.AppendBinary(b, key, 0, v)
		case bson.ObjectID:
			b = bson.AppendObjectID(b, key, v)
		case bson.Raw:
			b = bson.AppendDocument(b, key, v)
		case []string:
			var at int
			b, at = bson.BeginArrayElement(b, key)
			for i, s := range v {
				b = bson.AppendString(b, string(rune('0'+i)), s)
			}
			b = bson.EndDocument(b, at)
		default:
			panic(v)
		}
	}
	return bson.EndDocument(b, start)
}

var helloReply = doc("isWritablePrimary", true, "helloOk", true, "maxBsonObjectSize", 16777216, "maxMessageSizeBytes", 48000000,
	"maxWriteBatchSize", 100000, "maxWireVersion", 25, "connectionId", 42, "ok", 1.0)

// peer is the server's end of a connection, played by a script.
type peer struct {
	t  *testing.T
	nc net.Conn
}

// bytes takes the next message as it came, nil when the client is gone.
func (p *peer) bytes() []byte {
	b := make([]byte, 4)
	if _, err := io.ReadFull(p.nc, b); err != nil {
		return nil
	}
	b = append(b, make([]byte, binary.LittleEndian.Uint32(b)-4)...)
	if _, err := io.ReadFull(p.nc, b[4:]); err != nil {
		return nil
	}
	return b
}

// read takes the next message, nil when the client is gone.
func (p *peer) read() *wire.Msg {
	b := p.bytes()
	if b == nil {
		return nil
	}
	m, err := wire.ParseMsg(b)
	if err != nil {
		p.t.Errorf("the client sent no message: %v", err)
		return nil
	}
	return &m
}

func message(id, to int32, flags uint32, body bson.Raw) []byte {
	b, start := wire.AppendMsgStart(nil, id, to, flags)
	return wire.EndMsg(append(b, body...), start)
}

func (p *peer) write(b []byte) { _, _ = p.nc.Write(b) }

func (p *peer) answer(m *wire.Msg, body bson.Raw) {
	if m != nil {
		p.write(message(m.RequestID+1000, m.RequestID, 0, body))
	}
}

// greet answers the hello.
func (p *peer) greet() { p.answer(p.read(), helloReply) }

// hold waits until the client hangs up.
func (p *peer) hold() { _, _ = io.Copy(io.Discard, p.nc) }

// played are options whose Dial leads to the script over an in-memory pipe. The script's end is waited for.
func played(t *testing.T, script func(p *peer)) *Options {
	t.Helper()
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	return &Options{AppName: "test", Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		wg.Go(func() {
			defer server.Close()
			script(&peer{t, server})
		})
		return client, nil
	}}
}

func open(t *testing.T, o *Options) *Conn {
	t.Helper()
	c, err := Open(t.Context(), "db1:27017", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func ping(c *Conn, flags uint32) []byte {
	b, start := wire.AppendMsgStart(c.Buffer(), c.NextRequestID(), 0, flags)
	return wire.EndMsg(append(b, doc("ping", 1, "$db", "admin")...), start)
}
