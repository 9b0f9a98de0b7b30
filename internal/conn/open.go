package conn

import (
	"context"
	"errors"
	"net"
	"reflect"
	"strings"
	"time"

	"github.com/sextantdb/sextant/mongoerr"
)

// connectTimeout is the cause of a context that ended by Options.ConnectTimeout.
type connectTimeout time.Duration

func (t connectTimeout) Error() string {
	return "the connectTimeoutMS of " + time.Duration(t).String() + " ran out"
}
func (t connectTimeout) Timeout() bool { return true }

// Open connects to addr ("host:port", "[::1]:port", or the path of a Unix socket, which ends in ".sock"), secures the
// connection if o.TLS is set, shakes hands and authenticates. The error is a *mongoerr.Error of the stage proxy, dial, tls,
// handshake or auth; network failures up to the hello carry the labels SystemOverloadedError and RetryableError
// (client backpressure specification).
func Open(ctx context.Context, addr string, o *Options) (*Conn, error) {
	a, err := newAuthenticator(addr, o)
	if err != nil {
		return nil, failure(mongoerr.StageAuth, addr, err, "%s", o.Credential)
	}
	l := newLimit(ctx, o.ConnectTimeout)
	defer l.end()
	nc, err := dial(l.ctx, addr, o)
	if err != nil {
		return nil, o.behindProxy(addr, o.diagnosed(l.ctx, addr, err))
	}
	o.reached(mongoerr.StageHandshake)
	c := newConn(nc, addr)
	if c.id = o.ID; c.id == 0 {
		c.id = NextID()
	}
	if o.Compression != nil && !o.Monitor {
		c.codec, c.offer = o.Compression.Codec, o.Compression.Offer
	}
	if err := c.greet(l, o, a); err != nil {
		c.Close()
		return nil, o.behindProxy(addr, o.diagnosed(l.ctx, addr, err))
	}
	c.phase = ""
	return c, nil
}

func newConn(nc net.Conn, addr string) *Conn {
	return &Conn{
		nc: nc, addr: addr, phase: mongoerr.StageHandshake,
		interrupted: make(chan struct{}),
		wbuf:        make([]byte, 0, firstBuffer), rbuf: make([]byte, 0, firstBuffer),
	}
}

// dial opens the socket and, if asked, TLS on it.
func dial(ctx context.Context, addr string, o *Options) (net.Conn, error) {
	to, name, err := o.Mapped(addr)
	if err != nil {
		return nil, dialError(ctx, addr, err)
	}
	network := networkOf(to)
	open := dialer.DialContext
	if o.Dial != nil {
		open = o.dialed
	}
	stage := mongoerr.StageDial
	if o.Proxy != nil && network == "tcp" {
		open, stage = o.Proxy.through(open), mongoerr.StageProxy
	}
	o.reached(stage)
	nc, err := open(ctx, network, to)
	if err != nil {
		return nil, dialError(ctx, addr, err)
	}
	if o.TLS == nil {
		return nc, nil
	}
	tls := o.TLS
	if name != "" {
		tls = tls.Clone()
		tls.ServerName = name
	}
	o.reached(mongoerr.StageTLS)
	return secure(ctx, nc, addr, tls, o.Revocation)
}

// networkOf is "unix" for the path of a socket, which holds a slash, as no host does.
func networkOf(addr string) string {
	if strings.HasSuffix(addr, ".sock") || strings.Contains(addr, "/") {
		return "unix"
	}
	return "tcp"
}

// dialed is a connection of the Dial function, for which nobody waits longer than ctx lets him: of such functions some,
// those through SSH for one, know no context. What comes too late is closed.
func (o *Options) dialed(ctx context.Context, network, addr string) (net.Conn, error) {
	type outcome struct {
		nc  net.Conn
		err error
	}
	came := make(chan outcome)
	o.apart(func() {
		out := outcome{err: errors.New("the Dial function ended its goroutine")} // runtime.Goexit, unless it returns
		defer func() {
			select {
			case came <- out:
			case <-ctx.Done():
				if out.nc != nil {
					_ = out.nc.Close()
				}
			}
		}()
		out.nc, out.err = o.ask(ctx, network, addr)
	})
	select {
	case out := <-came:
		return out.nc, out.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// apart runs f on a goroutine of its own.
func (o *Options) apart(f func()) {
	if o.Apart != nil {
		o.Apart(f)
		return
	}
	go f()
}

// ask calls the Dial function, whose panic is an error as its other failures are.
func (o *Options) ask(ctx context.Context, network, addr string) (nc net.Conn, err error) {
	defer caught("the Dial function", &err)
	nc, err = o.Dial(ctx, network, addr)
	switch {
	case err != nil:
		return nil, err
	case absent(nc):
		return nil, errors.New("the Dial function returned neither a connection nor an error")
	}
	return guard(nc), nil
}

// absent says whether there is no connection: a nil, or one with a type such as (*net.TCPConn)(nil).
func absent(nc net.Conn) bool {
	v := reflect.ValueOf(nc)
	return nc == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

func (o *Options) reached(s mongoerr.Stage) {
	if o.Reached != nil {
		o.Reached(s)
	}
}

// Mapped is what AddressMap says of an address: where to dial, the address itself where it says nothing, and the name for
// TLS, empty where it says nothing. An error is a panic of the func.
func (o *Options) Mapped(addr string) (dial, name string, err error) {
	dial = addr
	if o.AddressMap == nil {
		return addr, "", nil
	}
	defer caught("the AddressMap function", &err)
	if dial, name = o.AddressMap(addr); dial == "" {
		dial = addr
	}
	return dial, name, nil
}

// greet shakes hands and authenticates. Arbiters hold no users (authentication specification).
func (c *Conn) greet(l *limit, o *Options, a *authenticator) error {
	if err := c.sayHello(l.ctx, o, a); err != nil {
		return err
	}
	if a == nil || c.isArbiter() {
		return nil
	}
	a.limit, c.login, c.phase = l, a, mongoerr.StageAuth
	return a.run(c)
}
