//go:build unix

package conn

import (
	"crypto/tls"
	"syscall"
)

// Alive looks at an idle connection without waiting: false if it is broken, if the server has closed it, or if bytes
// lie there that nobody asked for. It costs one system call. A socket that cannot be looked at counts as alive, and
// under TLS only the end of the stream counts, since records of TLS itself may lie there.
func (c *Conn) Alive() bool {
	if c.Broken() || len(c.rbuf) > c.used {
		return false
	}
	nc := c.nc
	secure, isTLS := nc.(*tls.Conn)
	if isTLS {
		nc = secure.NetConn()
	}
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	if raw == nil {
		return true
	}
	alive := true
	// Control and not Read: a deadline of the last use may have passed since.
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch err {
		case nil:
			alive = n > 0 && isTLS
		case syscall.EAGAIN, syscall.EINTR:
		default:
			alive = false
		}
	})
	return alive && err == nil
}
