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
		var way *heard
		d, err := proxy.SOCKS5("tcp", p.Address, auth, forward{func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := open(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			way = &heard{Conn: nc}
			way.provoke(ctx)
			return way, nil
		}})
		if err != nil {
			return nil, &proxyFailure{proxy: p.Address, what: "takes no such login", cause: err, lasts: true}
		}
		// What package proxy returns always takes a context.
		_, err = d.(proxy.ContextDialer).DialContext(ctx, network, addr)
		if way == nil {
			return nil, &proxyFailure{proxy: p.Address, what: "cannot be reached", cause: err}
		}
		way.end()
		if err == nil {
			return way.Conn, nil
		}
		defer way.Conn.Close()
		return nil, refusedBy(p.Address, err, way.guess(ctx))
	}
}

// proxyFailure says that it was the way through the proxy that failed: that tells nothing of the server's load.
type proxyFailure struct {
	proxy string // host:port
	what  string
	whole string // the sentence, where it is not "the SOCKS5 proxy" and what
	cause error
	lasts bool // only another configuration helps
}

func (f *proxyFailure) sentence() string {
	if f.whole != "" {
		return f.whole
	}
	return "the SOCKS5 proxy " + f.proxy + " " + f.what
}

// IsProxyRefusal says whether a SOCKS5 proxy refused the login, or is none, so that only another configuration helps.
func IsProxyRefusal(err error) bool {
	f, ok := errors.AsType[*proxyFailure](err)
	return ok && f.lasts
}

func (f *proxyFailure) Error() string { return f.cause.Error() }
func (f *proxyFailure) Unwrap() error { return f.cause }

// refusedBy is the failure of a proxy that was reached; guess is what protocol its bytes are of, if another one's. Package
// proxy tells what the proxy answered by its text alone.
func refusedBy(addr string, err error, guess string) *proxyFailure {
	cause := err
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		cause = op.Err // without "socks connect tcp" and addresses, which the error tells anyhow
	}
	f := &proxyFailure{proxy: addr, cause: cause}
	switch text := cause.Error(); {
	case guess == "an HTTP answer":
		f.whole, f.lasts = "an HTTP server answers at the SOCKS5 proxy's address "+addr+" (a proxy for HTTP is another thing)", true
		f.cause = errNoSOCKS
	case guess != "":
		f.whole, f.lasts = "what answers at the SOCKS5 proxy's address "+addr+" speaks another protocol (its bytes are "+guess+")", true
		f.cause = errNoSOCKS
	case strings.HasPrefix(text, "unknown error "): // a reply to the request, RFC 1928 section 6
		f.what, f.cause = "cannot connect to it", errors.New(strings.TrimPrefix(text, "unknown error "))
	case strings.Contains(text, "authentication"):
		f.what, f.lasts = "refuses the login (proxyUsername, proxyPassword)", true
	case isHangUp(err):
		f.what = "closed the connection"
	case strings.Contains(text, "protocol version"):
		f.what = "does not answer as a SOCKS5 proxy does"
	default:
		f.what = "gives no connection"
	}
	return f
}

var errNoSOCKS = errors.New("it is no SOCKS5 proxy")

// proxyError is the error of a dial that failed in the proxy, nil if it did not. It has a stage of its own, so that nobody
// looks for the fault at the server.
func proxyError(ctx context.Context, addr string, err error) error {
	f, ok := errors.AsType[*proxyFailure](err)
	if !ok {
		return nil
	}
	if ended, cause := ioEnded(ctx, err); ended && !f.lasts {
		return failure(mongoerr.StageProxy, addr, cause, "%s while connecting through the SOCKS5 proxy %s", endWords(ctx), f.proxy)
	}
	return failure(mongoerr.StageProxy, addr, f, "%s", f.sentence())
}

// behindProxy is the error of a greeting that nobody answered, or that the connection did not outlive: that the proxy had
// given the way tells on which side of it to look. Some proxies give it before they have found the server.
func (o *Options) behindProxy(addr string, err error) error {
	e, ok := errors.AsType[*mongoerr.Error](err)
	if !ok || o.Proxy == nil || e.Stage != mongoerr.StageTLS && e.Stage != mongoerr.StageHandshake || !e.TimedOut && !isHangUp(err) {
		return err
	}
	if to, _, bad := o.Mapped(addr); bad == nil && networkOf(to) == "tcp" {
		e.Message += " (behind the SOCKS5 proxy " + o.Proxy.Address + ", which gave the way)"
	}
	return err
}
