package sextant_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// The prose tests of the specification "socks5-support", over a network in memory in which the client reaches the proxies
// alone, and the proxies everybody. The members have names that nothing but the proxies' network knows.

// socks is a small SOCKS5 server (RFC 1928, 1929): CONNECT by name or IPv4 address, with or without a password.
type socks struct {
	network        *replset.MemoryNetwork
	user, password string            // empty: anybody
	mapped         map[string]string // what else an address leads to

	mu    sync.Mutex // guards asked
	asked []string
}

func (s *socks) serve(t *testing.T, addr string) {
	l, err := s.network.Listen(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				if far := s.handshake(nc); far != nil {
					wg.Go(func() { _, _ = io.Copy(far, nc); far.Close() })
					_, _ = io.Copy(nc, far)
				}
			})
		}
	})
}

// requests are the addresses that it was asked for.
func (s *socks) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// take reads n bytes, nil if there are not so many.
func take(r io.Reader, n int) []byte {
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil
	}
	return b
}

// handshake connects as the client asks; nil: it was refused, or hung up.
func (s *socks) handshake(nc net.Conn) (far net.Conn) {
	defer func() {
		if recover() != nil { // of take's nil
			far = nil
		}
	}()
	head := take(nc, 2)
	if head == nil || head[0] != 5 {
		return nil
	}
	want := byte(0)
	if s.user != "" {
		want = 2
	}
	if methods := string(take(nc, int(head[1]))); !strings.Contains(methods, string(rune(want))) || !strings.Contains(methods, "\x00") {
		_, _ = nc.Write([]byte{5, 0xff})
		return nil
	}
	_, _ = nc.Write([]byte{5, want})
	if want == 2 {
		user := string(take(nc, int(take(nc, 2)[1])))
		password := string(take(nc, int(take(nc, 1)[0])))
		if user != s.user || password != s.password {
			_, _ = nc.Write([]byte{1, 1})
			return nil
		}
		_, _ = nc.Write([]byte{1, 0})
	}
	request := take(nc, 4)
	var host string
	switch request[3] {
	case 1:
		host = net.IP(take(nc, 4)).String()
	case 3:
		host = string(take(nc, int(take(nc, 1)[0])))
	}
	addr := fmt.Sprintf("%s:%d", host, binary.BigEndian.Uint16(take(nc, 2)))
	s.mu.Lock()
	s.asked = append(s.asked, addr)
	s.mu.Unlock()
	if to := s.mapped[addr]; to != "" {
		addr = to
	}
	far, err := s.network.Dial(context.Background(), "tcp", addr)
	if err != nil {
		_, _ = nc.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0})
		return nil
	}
	_, _ = nc.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	return far
}

// proxied is a set behind two proxies, of which the one at port 1080 wants a password.
func proxied(t *testing.T) (set *replset.Set, locked, open *socks, dial dialFunc) {
	network := replset.NewMemoryNetwork()
	set = replset.Run(t, replset.Options{Network: network, Members: 3, Config: []replset.MemberOptions{
		{Name: "one.inside", Port: 27017}, {Name: "two.inside", Port: 27017}, {Name: "three.inside", Port: 27017}}})
	mapped := map[string]string{"localhost:12345": set.Member(0).Addr()}
	locked = &socks{network: network, user: "username", password: "p4ssw0rd", mapped: mapped}
	open = &socks{network: network, mapped: mapped}
	locked.serve(t, "localhost:1080")
	open.serve(t, "localhost:1081")
	return set, locked, open, func(ctx context.Context, kind, addr string) (net.Conn, error) {
		if !strings.HasPrefix(addr, "localhost:108") {
			return nil, fmt.Errorf("the client went to %s past the proxy", addr)
		}
		return network.Dial(ctx, kind, addr)
	}
}

// Broken by a client that resolves names itself, goes past the proxy with one of its connections, offers only one of the
// two ways to authenticate, or takes a refusal of the proxy for success.
func TestProseSOCKS1To11(t *testing.T) {
	const auth, wrong = "&proxyUsername=username&proxyPassword=p4ssw0rd", "&proxyUsername=nonexistentuser&proxyPassword=badauth"
	const direct = "&directConnection=true"
	for i, c := range []struct {
		hosts, options string
		succeeds       bool
	}{
		{"mapped", "proxyPort=1080" + direct, false},
		{"mapped", "proxyPort=1081" + direct, true},
		{"set", "proxyPort=1080", false},
		{"set", "proxyPort=1081", true},
		{"mapped", "proxyPort=1080" + wrong + direct, false},
		{"mapped", "proxyPort=1081" + wrong + direct, true},
		{"set", "proxyPort=1081" + wrong, true},
		{"mapped", "proxyPort=1080" + auth + direct, true},
		{"mapped", "proxyPort=1081" + direct, true},
		{"set", "proxyPort=1080" + auth, true},
		{"set", "proxyPort=1081", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			set, locked, open, dial := proxied(t)
			hosts := "localhost:12345"
			if c.hosts == "set" {
				hosts = "one.inside,two.inside,three.inside"
			}
			uri := "mongodb://" + hosts + "/?proxyHost=localhost&serverSelectionTimeoutMS=2000&" + c.options
			cfg, err := sextant.ParseURI(uri)
			if err != nil {
				t.Fatal(err)
			}
			asFields := &sextant.Config{Hosts: cfg.Hosts, DirectConnection: cfg.DirectConnection, ServerSelectionTimeout: 2 * time.Second,
				ProxyHost: cfg.ProxyHost, ProxyPort: cfg.ProxyPort, ProxyUsername: cfg.ProxyUsername, ProxyPassword: cfg.ProxyPassword}
			for _, cfg := range []*sextant.Config{cfg, asFields} {
				var seen strings.Builder
				cfg.Dial = dial
				cfg.Monitor = &event.Monitor{CommandStarted: func(_ context.Context, e *event.CommandStartedEvent) { fmt.Fprintf(&seen, "%+v", e) }}
				cl, err := sextant.ConnectConfig(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				_, err = cl.Database("admin").RunCommand(t.Context(), bson.D{{Key: "hello", Value: 1}})
				if (err == nil) != c.succeeds {
					t.Errorf("%d: %s: %v", i+1, uri, err)
				}
				if err != nil && (!mongoerr.IsTimeout(err) && !mongoerr.IsNetwork(err) || strings.Contains(err.Error(), "badauth")) {
					t.Errorf("%d: the error is %v", i+1, err)
				}
				if strings.Contains(seen.String(), "localhost:108") {
					t.Errorf("%d: an event names the proxy: %s", i+1, seen.String())
				}
				cl.Close(t.Context())
			}
			if asked := append(locked.requests(), open.requests()...); c.succeeds && c.hosts == "set" && len(set.Members()) == 3 {
				if all := strings.Join(asked, " "); !strings.Contains(all, "one.inside:27017") || !strings.Contains(all, "three.inside:27017") {
					t.Errorf("%d: the proxy was asked for %s", i+1, all)
				}
			}
		})
	}
}

// A member is reached through a socket of the file system, whose path the URI escapes and whose case is kept.
func TestUnixSocketInAURI(t *testing.T) {
	set := replset.Run(t)
	dir, err := os.MkdirTemp("", "Sx") // t.TempDir may be longer than a socket's path may be
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "MongoDB-27017.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer l.Close()
	wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", set.Member(0).Addr())
			if err != nil {
				t.Error(err)
				return
			}
			wg.Go(func() { _, _ = io.Copy(far, near); far.Close() })
			wg.Go(func() { _, _ = io.Copy(near, far); near.Close() })
		}
	})
	cl, err := sextant.Connect(t.Context(), "mongodb://"+strings.ReplaceAll(path, "/", "%2F")+"/?directConnection=true")
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close(t.Context())
	if _, err := cl.Database("shop").Collection("orders").InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	if m := cl.Hosts().Members; len(m) != 1 || m[0].Address != path || m[0].Pool.Total != 1 {
		t.Errorf("members %+v", m)
	}
	if err := errors.Join(cl.Quarantine(path, "a test"), cl.Release(path)); err != nil {
		t.Error(err)
	}
}
