package conn

import (
	"context"
	"errors"
	"net"
	"strings"

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
		reached := false
		d, err := proxy.SOCKS5("tcp", p.Address, auth, forward{func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := open(ctx, network, addr)
			reached = err == nil
			return nc, err
		}})
		if err != nil {
			return nil, &proxyFailure{p.Address, "takes no such login", err}
		}
		// What package proxy returns always takes a context.
		nc, err := d.(proxy.ContextDialer).DialContext(ctx, network, addr)
		switch {
		case err == nil:
			return nc, nil
		case !reached:
			return nil, &proxyFailure{p.Address, "cannot be reached", err}
		}
		return nil, refusedBy(p.Address, err)
	}
}

// proxyFailure says that it was the way through the proxy that failed: that tells nothing of the server's load.
type proxyFailure struct {
	proxy string // host:port
	what  string
	cause error
}

func (f *proxyFailure) Error() string { return f.cause.Error() }
func (f *proxyFailure) Unwrap() error { return f.cause }

// refusedBy is the failure of a proxy that was reached. Package proxy tells what the proxy answered by its text alone.
func refusedBy(addr string, err error) *proxyFailure {
	cause := err
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		cause = op.Err // without "socks connect tcp" and addresses, which the error tells anyhow
	}
	switch text := cause.Error(); {
	case strings.HasPrefix(text, "unknown error "): // a reply to the request, RFC 1928 section 6
		return &proxyFailure{addr, "cannot connect to it", errors.New(strings.TrimPrefix(text, "unknown error "))}
	case strings.Contains(text, "authentication"):
		return &proxyFailure{addr, "refuses the login (proxyUsername, proxyPassword)", cause}
	case isHangUp(err):
		return &proxyFailure{addr, "closed the connection", cause}
	case strings.Contains(text, "protocol version"):
		return &proxyFailure{addr, "does not answer as a SOCKS5 proxy does", cause}
	}
	return &proxyFailure{addr, "gives no connection", cause}
}

// proxyError is the error of a dial that failed in the proxy, nil if it did not. It has a stage of its own, so that nobody
// looks for the fault at the server.
func proxyError(ctx context.Context, addr string, err error) error {
	f, ok := errors.AsType[*proxyFailure](err)
	if !ok {
		return nil
	}
	if ended, cause := ioEnded(ctx, err); ended {
		return failure(mongoerr.StageProxy, addr, cause, "%s while connecting through the SOCKS5 proxy %s", endWords(ctx), f.proxy)
	}
	return failure(mongoerr.StageProxy, addr, f, "the SOCKS5 proxy %s %s", f.proxy, f.what)
}
