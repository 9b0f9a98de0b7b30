// Package conn owns one socket to one server: it dials, secures, greets and authenticates it, and then carries
// messages over it, one round trip at a time, or a stream of replies to one request.
//
// A Conn has no goroutine of its own: the caller's goroutine writes and reads. It belongs to one goroutine at a time;
// only Close, Broken and the accessors may be called from others meanwhile. A context that ends while a message is
// under way ends the wait at once. If the request was sent whole, the connection then owes a reply and can be used again
// when Drain has read it; else it is broken.
//
// Every error is a *mongoerr.Error that names the server and the stage (proxy, dial, tls, handshake, auth, write, read), says
// in plain words what happened, and keeps what the system said as its cause. No error holds a secret.
package conn

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/compress"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// Options say how connections to a deployment are made. They are read, never changed, so that many Opens may share one
// value.
type Options struct {
	ID         int64       // what the Conn's ID will be; 0: NextID
	AppName    string      // client.application.name, at most 128 bytes; used when Metadata is nil
	Credential *Credential // nil: no authentication
	TLS        *tls.Config // nil: no TLS. An empty ServerName means the host of the address.
	// Revocation judges whether the certificates of servers were revoked; nil: nobody asks.
	Revocation *Revocation
	// Dial opens the socket; nil means net.Dialer with keep-alive. network is "tcp" or "unix".
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Apart starts a goroutine for a Dial that is given up when the context ends, and lasts until it returns. nil: nobody
	// waits for those.
	Apart func(func())
	// AddressMap says where to dial for an address, and for which name TLS asks there; nil, or what it leaves empty: the
	// address itself. Everything else, errors too, goes by the address. It must be safe for concurrent use.
	AddressMap     func(addr string) (dial, tlsServerName string)
	ConnectTimeout time.Duration // for all of Open: dial, TLS, hello, authentication; 0: only the context limits it
	LoadBalanced   bool          // greet with hello and loadBalanced: true, and demand to be told the service behind the balancer
	// Greeted is told, while Open works, the service that answered behind a load balancer, before the login. nil: nobody
	// wants to know.
	Greeted     func(service bson.ObjectID)
	Proxy       *Proxy       // that Dial, or the default, connects to in place of the server; nil: none
	Compression *Compression // nil: messages are not compressed
	Monitor     bool         // a monitor's connection: never authenticates, never asks for mechanisms
	Diagnose    bool         // find out by a second connection whether a server that hangs up on the greeting wants TLS, or none
	Metadata    *Metadata    // the client document of hello; nil: ClientMetadata(AppName) at each Open
	// Reached is told, while Open works, to which stage it has come: proxy or dial, tls, handshake. nil: nobody wants to know.
	Reached func(mongoerr.Stage)
}

// Conn is an open connection that has shaken hands. See the package comment for who may use it when.
type Conn struct {
	nc   net.Conn
	addr string
	id   int64

	hello        bson.Raw
	limits       limits
	serverConnID int64
	service      *bson.ObjectID // behind a load balancer
	rtt          time.Duration

	login  *authenticator // nil: nobody is logged in
	phase  mongoerr.Stage // handshake or auth while Open works, then ""
	armed  bool           // a deadline is set on nc
	owed   int32          // the request whose reply nobody waits for any more; 0: none
	broken atomic.Bool
	why    error // the first failure after which it was broken; of the goroutine that has the connection
	close  sync.Once
	// Unbuffered: the end of a context has set its deadline, and who waited has come back. The connection belongs to one
	// client, so the channel may live in a bubble of testing/synctest.
	interrupted chan struct{}

	lent bool   // the caller has wbuf
	wbuf []byte // what Buffer lends
	rbuf []byte // bytes read; the first used of them are the last reply
	used int

	codec      *compress.Codec // nil: the client compresses nothing
	offer      []compress.ID
	compressor compress.ID // that both sides have; Noop: none
	zbuf       []byte      // the last request packed, then its reply unpacked

	stream stream
}

// limits are what the server's hello says about sizes.
type limits struct{ bson, message, batch, wire int32 }

// stream is the state of an exhaust reply: after a reply with moreToCome the server sends the next one unasked.
type stream struct {
	open     bool
	request  int32 // the request that began it
	previous int32 // the reply before the next one
}

var lastID, lastRequestID atomic.Int64

// NextID reserves a number for a connection.
func NextID() int64 { return lastID.Add(1) }

// NextRequestID returns a positive number for a message header, unlike any of the last two thousand million ones of
// this process.
func NextRequestID() int32 { return int32(lastRequestID.Add(1)&0x7FFFFFFE) + 1 }

// NextRequestID returns a number for the header of the next request.
func (c *Conn) NextRequestID() int32 { return NextRequestID() }

// Hello returns the server's reply to this connection's handshake, without the authentication parts.
func (c *Conn) Hello() bson.Raw { return c.hello }

// Limits returns what the server takes: bytes of a document, bytes of a message, writes of a batch, and its
// maxWireVersion. A size that the server does not name has MongoDB's default.
func (c *Conn) Limits() (maxBSON, maxMessage, maxBatch, maxWire int32) {
	return c.limits.bson, c.limits.message, c.limits.batch, c.limits.wire
}

// Address returns the address that the connection was opened for, as it was given.
func (c *Conn) Address() string { return c.addr }

// ServerConnectionID is the server's number for this connection, 0 if it gave none.
func (c *Conn) ServerConnectionID() int64 { return c.serverConnID }

// Service is the service behind the load balancer that the connection leads to; nil if it was not opened as LoadBalanced.
func (c *Conn) Service() *bson.ObjectID { return c.service }

// ID is this process's number for the connection, from 1.
func (c *Conn) ID() int64 { return c.id }

// RTT is how long the hello of the handshake took.
func (c *Conn) RTT() time.Duration { return c.rtt }

// Broken says that the connection must not be used again: a write or read failed, a reply was not understood, or it was
// closed.
func (c *Conn) Broken() bool { return c.broken.Load() }

// Err is why the connection is broken, nil if it is not, or if Close alone broke it. It is for whoever has the connection.
func (c *Conn) Err() error { return c.why }

// Break has the connection not used again, for a reason that it cannot see itself.
func (c *Conn) Break(why error) {
	if c.why == nil {
		c.why = why
	}
	c.broken.Store(true)
}

// Streaming says that the server will send a further reply unasked: read it with ReadNext.
func (c *Conn) Streaming() bool { return c.stream.open }

// Close closes the socket. It may be called more than once and while another goroutine waits for a reply, which then
// fails at once.
func (c *Conn) Close() error {
	var err error
	c.close.Do(func() {
		c.broken.Store(true)
		err = c.nc.Close()
	})
	return err
}

// Buffer lends an empty buffer to build the next message in. Append a whole message, which may move it elsewhere, and
// give it to RoundTrip or Send, which take it back.
func (c *Conn) Buffer() []byte {
	c.lent = true
	return c.wbuf[:0]
}

// Buffers over keepBuffer bytes are dropped after use, so that one huge message does not stay in memory for good.
const (
	firstBuffer = 4 << 10
	keepBuffer  = 1 << 20
)

func (c *Conn) takeBack(msg []byte) {
	if !c.lent {
		return
	}
	c.lent = false
	if cap(msg) > keepBuffer {
		msg = nil
	}
	c.wbuf = msg[:0]
}

// maxReply is the largest message read from a server: the largest that a server sends, and room for its envelope.
const maxReply = wire.MaxMessage + 16<<10
