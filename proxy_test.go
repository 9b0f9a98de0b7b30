package sextant_test

import (
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

// TestProxyIsBlamedForItsFailures: by the error of a selection, by Hosts and by Explain, with its address and without its
// password.
func TestProxyIsBlamedForItsFailures(t *testing.T) {
	reply := func(answers ...string) func(net.Conn) {
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
		"hangs up":     {func(t *testing.T) dialFunc { return proxyAt(t, func(net.Conn) {}) }, "the SOCKS5 proxy p:1080 closed the connection"},
		"is no proxy":  {func(t *testing.T) dialFunc { return proxyAt(t, reply("HT")) }, "the SOCKS5 proxy p:1080 does not answer as a SOCKS5 proxy does"},
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
				if m.LastErrorStage != string(mongoerr.StageProxy) || !strings.Contains(m.LastError.Error(), "the SOCKS5 proxy p:1080") {
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
