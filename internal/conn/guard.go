package conn

import (
	"crypto/tls"
	"fmt"
	"net"
	"syscall"
	"time"
)

// guarded is a connection of the caller's Dial function. The driver uses it on goroutines of its own, where a panic would end
// the process: so a panic of one of its methods is that method's error, as is a count of bytes that cannot be.
type guarded struct{ nc net.Conn }

// guard leaves alone what the standard library makes: it does not panic, and a look at the socket is possible.
func guard(nc net.Conn) net.Conn {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
		return nc
	}
	return &guarded{nc}
}

// dialed is the connection of the caller's Dial function below nc, nil if the standard library made it.
func dialed(nc net.Conn) *guarded {
	if s, ok := nc.(*tls.Conn); ok {
		nc = s.NetConn()
	}
	g, _ := nc.(*guarded)
	return g
}

// caught makes a panic an error. It is deferred.
func caught(what string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s panicked: %v", what, r)
	}
}

// counted is what a method did with size bytes.
func counted(what string, n, size int, err error) (int, error) {
	if n < 0 || n > size {
		return 0, fmt.Errorf("the %s of the Dial function's connection says that it did %d of %d bytes", what, n, size)
	}
	return n, err
}

func (g *guarded) Read(b []byte) (n int, err error) {
	defer caught("the Read of the Dial function's connection", &err)
	n, err = g.nc.Read(b)
	return counted("Read", n, len(b), err)
}

func (g *guarded) Write(b []byte) (n int, err error) {
	defer caught("the Write of the Dial function's connection", &err)
	n, err = g.nc.Write(b)
	return counted("Write", n, len(b), err)
}

func (g *guarded) Close() (err error) {
	defer caught("the Close of the Dial function's connection", &err)
	return g.nc.Close()
}

func (g *guarded) SetDeadline(t time.Time) (err error) {
	defer caught("the SetDeadline of the Dial function's connection", &err)
	return g.nc.SetDeadline(t)
}

func (g *guarded) SetReadDeadline(t time.Time) (err error) {
	defer caught("the SetReadDeadline of the Dial function's connection", &err)
	return g.nc.SetReadDeadline(t)
}

func (g *guarded) SetWriteDeadline(t time.Time) (err error) {
	defer caught("the SetWriteDeadline of the Dial function's connection", &err)
	return g.nc.SetWriteDeadline(t)
}

// LocalAddr and RemoteAddr are nil where the connection's own panic.
func (g *guarded) LocalAddr() (a net.Addr) {
	defer caught("LocalAddr", new(error))
	return g.nc.LocalAddr()
}

func (g *guarded) RemoteAddr() (a net.Addr) {
	defer caught("RemoteAddr", new(error))
	return g.nc.RemoteAddr()
}

// SyscallConn is nil where there is no socket to look at.
func (g *guarded) SyscallConn() (raw syscall.RawConn, err error) {
	sc, ok := g.nc.(syscall.Conn)
	if !ok {
		return nil, nil
	}
	defer caught("the SyscallConn of the Dial function's connection", &err)
	return sc.SyscallConn()
}
