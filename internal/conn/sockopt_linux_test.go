package conn

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"
)

func TestOwnSocketsAreKeptAliveAndGiveUpOnSilentPeers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := dial(t.Context(), l.Addr().String(), &Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	raw, err := nc.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		name        string
		level, what int
		value       int
	}{
		{"SO_KEEPALIVE", syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
		{"TCP_KEEPIDLE", syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 120},
		{"TCP_KEEPINTVL", syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 10},
		{"TCP_KEEPCNT", syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 9},
		{"TCP_USER_TIMEOUT", syscall.IPPROTO_TCP, tcpUserTimeout, 210_000},
		{"TCP_NODELAY", syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1},
	}
	err = raw.Control(func(fd uintptr) {
		for _, w := range want {
			if got, err := syscall.GetsockoptInt(int(fd), w.level, w.what); err != nil || got != w.value {
				t.Errorf("%s is %d, want %d (%v)", w.name, got, w.value, err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestUnixSocketsAreDialledWithoutTCPOptions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := dial(t.Context(), path, &Options{Proxy: &Proxy{Address: "nowhere:1080"}}) // not through the proxy either
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}
