package doctor

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sextantdb/sextant/replset"
)

// socks is a SOCKS5 proxy that wants a login if a password is given, and answers every request with this reply: 0 lets
// it through.
func socks(password string, answer byte) func(net.Conn) {
	return func(c net.Conn) {
		b := make([]byte, 2)
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		methods := make([]byte, b[1])
		_, _ = io.ReadFull(c, methods)
		if password == "" {
			_, _ = c.Write([]byte{5, 0})
		} else {
			if !strings.Contains(string(methods), "\x02") {
				_, _ = c.Write([]byte{5, 0xff})
				return
			}
			_, _ = c.Write([]byte{5, 2})
			field(c, 1) // the name
			if field(c, 0) != password {
				_, _ = c.Write([]byte{1, 1})
				return
			}
			_, _ = c.Write([]byte{1, 0})
		}
		head := make([]byte, 4)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		var host string
		if head[3] == 1 {
			ip := make([]byte, 4)
			_, _ = io.ReadFull(c, ip)
			host = net.IP(ip).String()
		} else {
			host = field(c, 0)
		}
		port := make([]byte, 2)
		_, _ = io.ReadFull(c, port)
		if answer != 0 {
			_, _ = c.Write([]byte{5, answer, 0, 1, 0, 0, 0, 0, 0, 0})
			return
		}
		there, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.ParseIP(host), Port: int(port[0])<<8 | int(port[1])})
		if err != nil {
			return
		}
		defer there.Close()
		_, _ = c.Write([]byte{5, 0, 0, 3, 1, 'x', 0, 0})
		go func() { _, _ = io.Copy(there, c); there.Close() }()
		_, _ = io.Copy(c, there)
	}
}

// field reads a text with its length before it, after so many bytes more.
func field(c net.Conn, skip int) string {
	b := make([]byte, skip+1)
	_, _ = io.ReadFull(c, b)
	b = make([]byte, b[skip])
	_, _ = io.ReadFull(c, b)
	return string(b)
}

func TestDoctorNamesTheProxyThatGivesNoWay(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 1})
	member := set.Member(0).Addr()
	for _, c := range []struct {
		name, proxy, options string
		behind               bool // the finding is about the server behind the proxy
		cause, cure          string
	}{
		{"dead", closedPort(t), "", false, "nothing accepts connections at the SOCKS5 proxy", "proxyHost"},
		{"no such name", "proxy.nowhere:1080", "", false, "does not resolve", "proxyHost"},
		{"hangs up", listen(t, hangUp), "", false, "EOF", "proxyHost"},
		{"an HTTP server", listen(t, says("HTTP/1.1 400 Bad Request\r\n\r\n")), "", false, "an HTTP server", "proxyHost"},
		{"another protocol", listen(t, says("SSH-2.0-OpenSSH_9.6\r\n")), "", false, "no SOCKS5 proxy", "proxyHost"},
		{"wants a login", listen(t, socks("secret", 0)), "", false, "wants a login", "proxyUsername"},
		{"refuses the login", listen(t, socks("secret", 0)), "&proxyUsername=joe&proxyPassword=wrong", false, `login of user "joe"`, "proxyPassword"},
		{"forbids", listen(t, socks("", 2)), "", true, "do not allow", "rules"},
		{"no way", listen(t, socks("", 3)), "", true, "finds no way", "routes"},
		{"no host", listen(t, socks("", 4)), "", true, "does not reach the server's host", "the proxy resolves it"},
		{"refused behind it", listen(t, socks("", 5)), "", true, "connection refused), as seen from the SOCKS5 proxy 127", "net.bindIp"},
		{"too late behind it", listen(t, socks("", 6)), "", true, "in time", "routes"},
		{"an unknown reply", listen(t, socks("", 99)), "", true, "its reply is 99", "log"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			host, port, _ := net.SplitHostPort(c.proxy)
			d := look(t, "mongodb://"+member+"/?proxyHost="+host+"&proxyPort="+port+c.options, zone{}, nil)
			about := c.proxy
			if c.behind {
				about = member
			}
			d.expect(t, Unreachable, "proxy", about, c.cause, c.cure)
			if len(d.Findings) != 1 || !strings.Contains(d.Heading[0], c.proxy) {
				t.Errorf("%v, %v", d.Heading, d.Findings)
			}
		})
	}
}

func TestDoctorLooksThroughAProxyThatWorks(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 1})
	host, port, _ := net.SplitHostPort(listen(t, socks("secret", 0)))
	through := "&proxyHost=" + host + "&proxyPort=" + port + "&proxyUsername=joe&proxyPassword=secret"
	if d := look(t, set.URI()+through, zone{}, nil); d.Verdict != Healthy || len(d.Findings) != 0 {
		t.Errorf("%s: %v", d.Verdict, d.Findings)
	}
	ssh := listen(t, says("HTTP/1.0 200 OK\r\n"))
	look(t, "mongodb://"+ssh+"/?"+through[1:], zone{}, nil).expect(t, Unreachable, "hello", ssh, "HTTP server", "port")
}

func TestDoctorKnowsAFirewallBeforeTheProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		look(t, "mongodb://db/?proxyHost=proxy", zone{hosts: map[string]string{"proxy": "192.0.2.1"}}, never).
			expect(t, Unreachable, "proxy", "proxy:1080", "nobody answers", "proxyHost")
	})
}
