package replset

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
)

// alone listens as a program does that shares its port with nobody.
func alone(addr string) error {
	exclusive := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		end := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0) })
		return errors.Join(end, err)
	}}
	l, err := exclusive.Listen(context.Background(), "tcp", addr)
	if err == nil {
		l.Close()
	}
	return err
}

// A port that a dead member leaves would be lent to the next who asks for any: another set of another test, say, that
// clients of this one then find where the member was.
func TestDeadMembersPortIsLentToNobody(t *testing.T) {
	hosts := []string{"127.0.0.1", "localhost"}
	if alone("[::1]:0") == nil { // not every machine speaks IPv6
		hosts = append(hosts, "::1")
	}
	for _, host := range hosts {
		t.Run(host, func(t *testing.T) {
			set := Run(t, Options{Members: 1, Host: host})
			addr := set.Member(0).Addr()
			for range 3 {
				if err := set.Kill(0); err != nil {
					t.Fatal(err)
				}
				if err := alone(addr); !errors.Is(err, syscall.EADDRINUSE) {
					t.Errorf("listening at a dead member's address: %v", err)
				}
				if _, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("dialling a dead member: %v", err)
				}
				if err := set.Restart(0); err != nil {
					t.Fatal(err)
				}
				if c, err := net.Dial("tcp", addr); err != nil {
					t.Error(err)
				} else {
					c.Close()
				}
			}
			if err := set.Kill(0); err != nil {
				t.Fatal(err)
			}
			if err := set.Close(); err != nil {
				t.Fatal(err)
			}
			if err := alone(addr); err != nil {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}
