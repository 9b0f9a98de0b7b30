package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// proxyAddress is where the connection string's SOCKS5 proxy is, empty for none. 1080 is where such proxies listen (RFC 1928).
func (x *examination) proxyAddress() string {
	if x.cfg.ProxyHost == "" {
		return ""
	}
	return net.JoinHostPort(strings.Trim(x.cfg.ProxyHost, "[]"), strconv.Itoa(cmp.Or(x.cfg.ProxyPort, 1080)))
}

// proxyFault is why a proxy gives no way to anybody, or to one server.
type proxyFault struct {
	cause, cure string
	err         error
}

func (f *proxyFault) Error() string { return f.cause }
func (f *proxyFault) Unwrap() error { return f.err }

// judgeProxy greets the proxy, once for all servers behind it, and says whether there is any use in asking for them.
func (x *examination) judgeProxy(ctx context.Context) bool {
	proxy := x.proxyAddress()
	if proxy == "" {
		return true
	}
	x.names.resolve(ctx, x.timeout/8, []string{proxy})
	ctx, cancel := within(ctx, x.timeout/5)
	defer cancel()
	c, err := x.greetProxy(ctx)
	if err == nil {
		c.Close()
		return true
	}
	f, ok := errors.AsType[*proxyFault](err)
	if !ok {
		f = &proxyFault{cause: headline(err), cure: "see the proxy's log"}
	}
	x.add(Finding{Stage: "proxy", Server: proxy, Severity: Trouble, Cause: f.cause, Cure: f.cure})
	return false
}

// connect opens a socket to a server as the connection string wants it: directly, or through the proxy.
func (x *examination) connect(ctx context.Context, addr string) (net.Conn, error) {
	switch {
	case isSocket(addr):
		return x.names.dial(ctx, x.open, "unix", addr)
	case x.cfg.ProxyHost == "":
		return x.names.dial(ctx, x.open, "tcp", addr)
	}
	c, err := x.greetProxy(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	err = x.askProxy(c, addr)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// whyNoWay asks the proxy for a server once more, to hear its reason.
func (x *examination) whyNoWay(ctx context.Context, addr string) error {
	ctx, cancel := within(ctx, x.timeout/10)
	defer cancel()
	c, err := x.connect(ctx, addr)
	if err == nil {
		c.Close()
	}
	return err
}

const noProxy = "correct proxyHost and proxyPort, start the proxy, or leave proxyHost out if the servers can be reached without it"

// greetProxy opens a socket to the proxy and logs in there.
func (x *examination) greetProxy(ctx context.Context) (net.Conn, error) {
	proxy := x.proxyAddress()
	c, err := x.names.dial(ctx, x.open, "tcp", proxy)
	if err != nil {
		return nil, proxyDialFault(err, ctx)
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	err = x.logIntoProxy(c)
	if !stop() {
		err = &proxyFault{cause: "the proxy accepts the connection and does not answer in time: what listens there may be no SOCKS5 proxy, or it hangs",
			cure: noProxy, err: os.ErrDeadlineExceeded}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func proxyDialFault(err error, ctx context.Context) *proxyFault {
	f := &proxyFault{cure: noProxy, err: err}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		f.cause = "the name of the SOCKS5 proxy does not resolve on this host"
	case errors.As(err, &dns):
		f.cause = "DNS did not say where the SOCKS5 proxy is: " + dns.Err
	case errors.Is(err, syscall.ECONNREFUSED):
		f.cause = "nothing accepts connections at the SOCKS5 proxy's address (connection refused): no server can be asked for"
	case ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded):
		f.cause = "nobody answers the attempt to connect to the SOCKS5 proxy (timeout): its packets are dropped, or its host is down"
	default:
		f.cause = "the SOCKS5 proxy can not be connected to: " + errno(err)
	}
	return f
}

// SOCKS5 (RFC 1928) and its login by name and password (RFC 1929).
const (
	socksVersion  = 5
	socksNoLogin  = 0
	socksPassword = 2
	socksRefusal  = 0xff
)

func (x *examination) logIntoProxy(c net.Conn) error {
	user, password := x.cfg.ProxyUsername, x.cfg.ProxyPassword
	hello := []byte{socksVersion, 1, socksNoLogin}
	if user != "" {
		hello = []byte{socksVersion, 2, socksNoLogin, socksPassword}
	}
	answer, err := exchange(c, hello, 2)
	switch {
	case len(answer) > 0 && answer[0] != socksVersion:
		return &proxyFault{cause: "what listens there is no SOCKS5 proxy" + likeHTTP(answer), cure: noProxy}
	case err != nil:
		return &proxyFault{cause: "the proxy closes the connection after the first message of SOCKS5 (EOF): it is no SOCKS5 proxy, or refuses this address", cure: noProxy, err: err}
	case answer[1] == socksNoLogin:
		return nil
	case answer[1] == socksPassword && user != "":
		return passwordForProxy(c, user, password)
	case user == "":
		return &proxyFault{cause: "the SOCKS5 proxy wants a login, and the connection string has none for it", cure: "give proxyUsername and proxyPassword"}
	}
	return &proxyFault{cause: "the SOCKS5 proxy takes no login by name and password", cure: "leave proxyUsername and proxyPassword out, or have the proxy set up for them"}
}

func passwordForProxy(c net.Conn, user, password string) error {
	if len(user) > 255 || len(password) > 255 {
		return &proxyFault{cause: "proxyUsername or proxyPassword has more than 255 bytes, which SOCKS5 can not send", cure: "use shorter ones"}
	}
	m := append([]byte{1, byte(len(user))}, user...)
	m = append(append(m, byte(len(password))), password...)
	if answer, err := exchange(c, m, 2); err != nil || answer[1] != 0 {
		return &proxyFault{cause: fmt.Sprintf("the SOCKS5 proxy refuses the login of user %q", user), cure: "correct proxyUsername and proxyPassword"}
	}
	return nil
}

func likeHTTP(answer []byte) string {
	if strings.HasPrefix("HTTP/", string(answer)) {
		return ", but an HTTP server (a proxy for HTTP is another thing)"
	}
	return ""
}

// exchange sends a message and reads so many bytes.
func exchange(c net.Conn, m []byte, n int) ([]byte, error) {
	if _, err := c.Write(m); err != nil {
		return nil, err
	}
	answer := make([]byte, n)
	n, err := io.ReadFull(c, answer)
	return answer[:n], err
}

// askProxy has the proxy connect to a server.
func (x *examination) askProxy(c net.Conn, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || len(host) > 255 {
		return fmt.Errorf("%s is no address for SOCKS5", addr)
	}
	m := append([]byte{socksVersion, 1, 0, 3, byte(len(host))}, host...) // as a name, also where it is an address: proxies read both
	if ip := net.ParseIP(host); ip.To4() != nil {
		m = append([]byte{socksVersion, 1, 0, 1}, ip.To4()...)
	} else if ip != nil {
		m = append([]byte{socksVersion, 1, 0, 4}, ip.To16()...)
	}
	answer, err := exchange(c, append(m, byte(n>>8), byte(n)), 4)
	if err != nil {
		return &proxyFault{cause: "the SOCKS5 proxy does not say whether it reaches the server (" + reason(err) + ")",
			cure: "see the proxy's log; a firewall between it and the server may drop the packets", err: err}
	}
	if answer[1] != 0 {
		return refusedByProxy(answer[1])
	}
	return skipBound(c, answer[3])
}

func reason(err error) string {
	if isEOF(err) {
		return "EOF"
	}
	return "no answer in time"
}

// skipBound reads over the address that the proxy has bound.
func skipBound(c net.Conn, kind byte) error {
	n := map[byte]int64{1: 4, 4: 16}[kind]
	if kind == 3 {
		length := make([]byte, 1)
		if _, err := io.ReadFull(c, length); err != nil {
			return err
		}
		n = int64(length[0])
	}
	_, err := io.CopyN(io.Discard, c, n+2)
	return err
}

// refusedByProxy is a reply of RFC 1928, section 6.
func refusedByProxy(code byte) *proxyFault {
	const there = ", as seen from the SOCKS5 proxy"
	f := map[byte]proxyFault{
		2: {cause: "the SOCKS5 proxy's rules do not allow this connection", cure: "let the proxy's rules pass this host and port"},
		3: {cause: "the SOCKS5 proxy finds no way to the server's network", cure: "check address and routes" + there},
		4: {cause: "the SOCKS5 proxy does not reach the server's host", cure: "check that the name resolves (the proxy resolves it, not this host) and that the host is up" + there},
		5: {cause: "nothing accepts connections at the server (connection refused)" + there, cure: "start the server; check its port (net.port), and that it listens on an address that the proxy reaches (net.bindIp)"},
		6: {cause: "the SOCKS5 proxy does not reach the server in time", cure: "check address and routes, and whether the server's host is up" + there},
	}[code]
	if f.cause == "" {
		f = proxyFault{cause: fmt.Sprintf("the SOCKS5 proxy does not connect to the server (its reply is %d)", code),
			cure: "see the proxy's log; check that the server's name resolves and its port is open" + there}
	}
	return &f
}
