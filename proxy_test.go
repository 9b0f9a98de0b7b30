package sextant_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// proxyAt is a network in which the client reaches the proxy at p:1080 alone; answer is what the proxy does.
func proxyAt(t *testing.T, answer func(net.Conn)) dialFunc {
	return func(ctx context.Context, _, addr string) (net.Conn, error) {
		if addr != "p:1080" {
			return nil, errors.New("past the proxy")
		}
		near, far := net.Pipe()
		go func() { defer far.Close(); answer(far) }()
		return near, nil
	}
}

// reply answers each message with the next of the answers, and then nothing any more.
func reply(answers ...string) func(net.Conn) {
	return func(nc net.Conn) {
		for _, answer := range answers {
			if _, err := nc.Read(make([]byte, 600)); err != nil {
				return
			}
			_, _ = nc.Write([]byte(answer))
		}
		_, _ = io.Copy(io.Discard, nc)
	}
}

// TestProxyIsBlamedForItsFailures: by the error of a selection, by Hosts and by Explain, with its address and without its
// password.
func TestProxyIsBlamedForItsFailures(t *testing.T) {
	for name, c := range map[string]struct {
		dial  func(t *testing.T) dialFunc
		words string
	}{
		"unreachable": {func(*testing.T) dialFunc {
			return func(ctx context.Context, kind, addr string) (net.Conn, error) {
				return replset.NewMemoryNetwork().Dial(ctx, kind, addr)
			}
		}, "the SOCKS5 proxy p:1080 cannot be reached: connection refused"},
		"wants a login": {func(t *testing.T) dialFunc { return proxyAt(t, reply("\x05\xff")) },
			"the SOCKS5 proxy p:1080 refuses the login (proxyUsername, proxyPassword): no acceptable authentication methods"},
		"refuses the login": {func(t *testing.T) dialFunc { return proxyAt(t, reply("\x05\x02", "\x01\x01")) },
			"the SOCKS5 proxy p:1080 refuses the login (proxyUsername, proxyPassword): username/password authentication failed"},
		"does not reach the member": {func(t *testing.T) dialFunc { return proxyAt(t, reply("\x05\x00", "\x05\x04\x00\x01")) },
			"the SOCKS5 proxy p:1080 cannot connect to it: host unreachable"},
		"hangs up":    {func(t *testing.T) dialFunc { return proxyAt(t, func(net.Conn) {}) }, "the SOCKS5 proxy p:1080 closed the connection"},
		"is no proxy": {func(t *testing.T) dialFunc { return proxyAt(t, reply("XY")) }, "the SOCKS5 proxy p:1080 does not answer as a SOCKS5 proxy does"},
		"is a server of HTTP": {func(t *testing.T) dialFunc { return proxyAt(t, reply("HTTP/1.1 400 Bad Request\r\n\r\n")) },
			"an HTTP server answers at the SOCKS5 proxy's address p:1080"},
		"is one that waits for the line's end": {func(t *testing.T) dialFunc {
			return proxyAt(t, func(nc net.Conn) {
				if _, err := bufio.NewReader(nc).ReadString('\n'); err == nil {
					_, _ = io.WriteString(nc, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n400 Bad Request")
				}
			})
		}, "an HTTP server answers at the SOCKS5 proxy's address p:1080"},
		"is SSH": {func(t *testing.T) dialFunc { return proxyAt(t, reply("SSH-2.0-OpenSSH_9.6\r\n")) },
			"what answers at the SOCKS5 proxy's address p:1080 speaks another protocol (its bytes are an SSH greeting)"},
		"is TLS": {func(t *testing.T) dialFunc { return proxyAt(t, reply("\x15\x03\x01\x00\x02\x02\x46")) },
			"what answers at the SOCKS5 proxy's address p:1080 speaks another protocol (its bytes are a TLS record)"},
		"says nothing": {func(t *testing.T) dialFunc { return proxyAt(t, reply()) }, "the time was up while connecting through the SOCKS5 proxy p:1080"},
	} {
		synctest.Test(t, func(t *testing.T) {
			cl := connect(t, "mongodb://db1,db2/?replicaSet=rs0&connectTimeoutMS=500&serverSelectionTimeoutMS=2000"+
				"&proxyHost=p&proxyUsername=joe&proxyPassword=s3cret", func(cfg *sextant.Config) { cfg.Dial = c.dial(t) })
			err := ping(cl)()
			first, _, _ := strings.Cut(err.Error(), "\n")
			if !mongoerr.IsSelection(err) || !strings.Contains(first, c.words) || strings.Count(err.Error(), c.words) != 3 {
				t.Errorf("%s: the ping ended with %v", name, err)
			}
			for _, m := range cl.Hosts().Members {
				if m.LastErrorStage != string(mongoerr.StageProxy) || !strings.Contains(m.LastError.Error(), "SOCKS5 proxy") || !strings.Contains(m.LastError.Error(), "p:1080") {
					t.Errorf("%s: Hosts says of %s: %s: %v", name, m.Address, m.LastErrorStage, m.LastError)
				}
				if text := m.LastError.Error() + err.Error(); strings.Contains(text, "s3cret") || !mongoerr.IsNetwork(m.LastError) {
					t.Errorf("%s: the error is %s", name, text)
				}
			}
			cl.Close(t.Context())
			time.Sleep(time.Minute) // the proxy's ends
		})
	}
}

// TestSilenceBehindAProxyIsTheServers: the error says that the proxy gave the way, and who was silent behind it, or hung up.
func TestSilenceBehindAProxyIsTheServers(t *testing.T) {
	const connected = "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
	const behind = " (behind the SOCKS5 proxy p:1080, which gave the way)"
	hangUp := func(nc net.Conn) {
		for _, answer := range []string{"\x05\x00", connected} {
			_, _ = nc.Read(make([]byte, 600))
			_, _ = io.WriteString(nc, answer)
		}
		_, _ = nc.Read(make([]byte, 600))
	}
	for name, c := range map[string]struct {
		answer         func(net.Conn)
		options, words string
	}{
		"silent":            {reply("\x05\x00", connected), "", "the server did not answer in time" + behind},
		"silent at TLS":     {reply("\x05\x00", connected), "&tls=true", behind},
		"hangs up":          {hangUp, "", "the server closed the connection during the handshake"},
		"hangs up, as told": {hangUp, "", behind},
		"hangs up at TLS":   {hangUp, "&tls=true", behind},
	} {
		synctest.Test(t, func(t *testing.T) {
			cl := connect(t, "mongodb://db1/?directConnection=true&connectTimeoutMS=500&serverSelectionTimeoutMS=2000&proxyHost=p"+c.options,
				func(cfg *sextant.Config) { cfg.Dial = proxyAt(t, c.answer) })
			err := ping(cl)()
			first, _, _ := strings.Cut(err.Error(), "\n")
			m := cl.Hosts().Members[0]
			if !mongoerr.IsSelection(err) || !strings.Contains(first, c.words) || !strings.Contains(m.LastError.Error(), c.words) || m.LastErrorStage == string(mongoerr.StageProxy) {
				t.Errorf("%s: %v; %s: %v", name, err, m.LastErrorStage, m.LastError)
			}
			cl.Close(t.Context())
			time.Sleep(time.Minute)
		})
	}
}

// TestFailFastEndsAtAProxysRefusal: as at a server's. What may pass is waited for.
func TestFailFastEndsAtAProxysRefusal(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(net.Conn)
		lasts  bool
	}{
		"wants a login":     {reply("\x05\xff"), true},
		"refuses the login": {reply("\x05\x02", "\x01\x01"), true},
		"is HTTP":           {reply("HTTP/1.1 400 Bad Request\r\n\r\n"), true},
		"reaches no member": {reply("\x05\x00", "\x05\x04\x00\x01"), false},
		"says nothing":      {reply(), false},
		"closes":            {func(net.Conn) {}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			cl := connect(t, "mongodb://db1,db2/?replicaSet=rs0&connectTimeoutMS=500&proxyHost=p&proxyUsername=joe&proxyPassword=s3cret",
				func(cfg *sextant.Config) { cfg.Dial, cfg.FailFast = proxyAt(t, c.answer), true })
			start := time.Now()
			err := ping(cl)()
			if took := time.Since(start); !mongoerr.IsSelection(err) || (took < 2*time.Second) != c.lasts {
				t.Errorf("%s: after %v: %v", name, took, err)
			}
			if strings.Contains(err.Error(), "(FailFast: waiting does not cure this)") != c.lasts {
				t.Errorf("%s: %v", name, err)
			}
			cl.Close(t.Context())
			time.Sleep(time.Minute)
		})
	}
}
