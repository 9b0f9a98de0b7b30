package conn

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// sayHello sends the first message of a connection, always as OP_MSG: the legacy hello with helloOk, or hello behind a
// load balancer, with the client's metadata and, if a user is to be authenticated, the first step of that
// (handshake specification).
func (c *Conn) sayHello(ctx context.Context, o *Options, a *authenticator) error {
	start := time.Now()
	reply, err := c.command(ctx, "admin", func(dst []byte) []byte { return appendHello(dst, o, a) })
	if err != nil {
		return err
	}
	c.rtt = time.Since(start)
	if err := reply.Validate(); err != nil {
		return c.fail(mongoerr.StageHandshake, err, "the server's hello is malformed")
	}
	if len(reply) > maxHello {
		return c.fail(mongoerr.StageHandshake, nil, "the server's hello has %d bytes; at most %d are taken", len(reply), maxHello)
	}
	reply = reply.Clone()
	if e := mongoerr.FromReply(reply); e != nil {
		e.Stage, e.Server, e.Op = mongoerr.StageHandshake, c.addr, "hello"
		c.Break(e)
		return e
	}
	if err := c.recogniseService(o, reply); err != nil {
		return err
	}
	if a != nil {
		a.heard(reply)
	}
	c.hello = withoutAuth(reply)
	c.limits = limitsOf(c.hello)
	c.agree()
	c.serverConnID, _ = c.hello.Lookup("connectionId").AsInt64OK()
	return nil
}

// recogniseService notes the service behind a load balancer. One that names none was not set up to be behind one; the text
// is that of the load balancers specification, "connection establishment".
func (c *Conn) recogniseService(o *Options, hello bson.Raw) error {
	if !o.LoadBalanced {
		return nil
	}
	id, ok := hello.Lookup("serviceId").ObjectIDOK()
	if !ok {
		return c.fail(mongoerr.StageHandshake, nil,
			"Driver attempted to initialize in load balancing mode, but the server does not support this mode.")
	}
	c.service = &id
	if o.Greeted != nil {
		o.Greeted(id)
	}
	return nil
}

// appendBareHello is the hello of a client that says nothing of itself.
func appendBareHello(dst []byte) []byte {
	return bson.AppendBoolean(bson.AppendInt32(dst, "isMaster", 1), "helloOk", true)
}

func appendHello(dst []byte, o *Options, a *authenticator) []byte {
	if o.LoadBalanced {
		dst = bson.AppendInt32(dst, "hello", 1)
		dst = bson.AppendBoolean(dst, "helloOk", true)
		dst = bson.AppendBoolean(dst, "loadBalanced", true)
	} else {
		dst = bson.AppendInt32(dst, "isMaster", 1)
		dst = bson.AppendBoolean(dst, "helloOk", true)
	}
	metadata := o.Metadata
	if metadata == nil {
		metadata = ClientMetadata(o.AppName)
	}
	dst = bson.AppendDocument(dst, "client", metadata.Document())
	dst = o.appendCompression(dst)
	dst = bson.AppendString(dst, "backpressure", "2")
	if a != nil {
		dst = a.appendToHello(dst)
	}
	return dst
}

// withoutAuth drops what authentication said from a hello that is kept and shown.
func withoutAuth(reply bson.Raw) bson.Raw {
	if reply.Lookup("speculativeAuthenticate").IsZero() {
		return reply
	}
	out, start := bson.BeginDocument(make([]byte, 0, len(reply)))
	for key, v := range reply.All() {
		if key != "speculativeAuthenticate" {
			out = bson.AppendValue(out, key, v)
		}
	}
	return bson.EndDocument(out, start)
}

func limitsOf(hello bson.Raw) limits {
	positive := func(key string, fallback int32) int32 {
		if n, ok := hello.Lookup(key).AsInt64OK(); ok && n > 0 && n <= 1<<31-1 {
			return int32(n)
		}
		return fallback
	}
	return limits{
		bson:    positive("maxBsonObjectSize", 16<<20),
		message: positive("maxMessageSizeBytes", wire.MaxMessage),
		batch:   positive("maxWriteBatchSize", 100000),
		wire:    positive("maxWireVersion", 0),
	}
}

func (c *Conn) isArbiter() bool {
	arbiter, _ := c.hello.Lookup("arbiterOnly").BooleanOK()
	return arbiter
}

// command sends one command of the handshake and returns the reply's body, valid until the next use.
func (c *Conn) command(ctx context.Context, db string, elements func([]byte) []byte) (bson.Raw, error) {
	msg, start := wire.AppendMsgStart(c.Buffer(), c.NextRequestID(), 0, 0)
	msg, doc := bson.BeginDocument(msg)
	msg = elements(msg)
	msg = bson.AppendString(msg, "$db", db)
	msg = bson.EndDocument(msg, doc)
	m, err := c.RoundTrip(ctx, wire.EndMsg(msg, start))
	return m.Body, err
}
