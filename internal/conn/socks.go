package conn

import (
	"context"
	"errors"
	"net"

	"github.com/sextantdb/sextant/mongoerr"
	"golang.org/x/net/proxy"
)

// Proxy is a SOCKS5 proxy that every connection goes through, except to Unix sockets (specification "socks5-support").
type Proxy struct {
	Address            string // host:port
	Username, Password string // both or neither; the proxy may also do without
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// DialContext and Dial make a dialFunc what package proxy asks for.
func (d forward) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.dial(ctx, network, addr)
}

func (d forward) Dial(network, addr string) (net.Conn, error) {
	return d.dial(context.Background(), network, addr)
}

type forward struct{ dial dialFunc }

// through is a dialFunc that has the proxy, which open connects to, connect to the address. The proxy resolves names.
func (p *Proxy) through(open dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		var auth *proxy.Auth
		if p.Username != "" {
			auth = &proxy.Auth{User: p.Username, Password: p.Password}
		}
		d, err := proxy.SOCKS5("tcp", p.Address, auth, forward{open})
		if err != nil {
			return nil, proxyFailure{err}
		}
		// What package proxy returns always takes a context.
		nc, err := d.(proxy.ContextDialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, proxyFailure{err}
		}
		return nc, nil
	}
}

// proxyFailure says that it was the way through the proxy that failed: that tells nothing of the server's load.
type proxyFailure struct{ cause error }

func (f proxyFailure) Error() string { return f.cause.Error() }
func (f proxyFailure) Unwrap() error { return f.cause }

// proxyError is the error of a dial that failed in the proxy, nil if it did not.
func proxyError(ctx context.Context, addr string, err error) error {
	if f, ok := errors.AsType[proxyFailure](err); !ok {
		return nil
	} else if ctx.Err() != nil {
		return failure(mongoerr.StageDial, addr, endOf(ctx), "%s while connecting through the SOCKS5 proxy", endWords(ctx))
	} else {
		return failure(mongoerr.StageDial, addr, f, "the SOCKS5 proxy (proxyHost) gives no connection")
	}
}
