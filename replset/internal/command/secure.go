package command

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"
)

// handshakeLimit is how long a client may take to agree on TLS.
const handshakeLimit = 10 * time.Second

// secure makes a connection one of TLS, if the member speaks that. Nothing is read or written before handshake.
func (c *Conn) secure() {
	if c.m.opt.TLS != nil {
		c.nc = tls.Server(c.nc, c.m.opt.TLS())
		c.br = bufio.NewReaderSize(c.nc, 16<<10)
	}
}

// handshake agrees on TLS. It reports false when the client does not.
func (c *Conn) handshake() bool {
	s, ok := c.nc.(*tls.Conn)
	if !ok {
		return true
	}
	if c.m.opt.Faults.awake(c.ctx) != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(c.ctx, handshakeLimit)
	defer cancel()
	err := s.HandshakeContext(ctx)
	if err == nil {
		return true
	}
	if !errors.Is(err, io.EOF) && !c.m.closing() {
		c.m.complain(slog.LevelWarn, "connection dropped: no TLS was agreed on", err.Error(), c.nc.RemoteAddr(), "connection", c.ID, "error", err)
		c.linger()
	}
	return false
}

// linger lets the client read why it was refused: closing a socket in which something lies unread would reset it, and
// overtake the alert.
func (c *Conn) linger() {
	tcp, ok := raw(c.nc).(*net.TCPConn)
	if !ok {
		return
	}
	_ = tcp.CloseWrite()
	_ = tcp.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = io.CopyN(io.Discard, tcp, 64<<10)
}

// raw is the socket under a connection.
func raw(nc net.Conn) net.Conn {
	if s, ok := nc.(*tls.Conn); ok {
		return s.NetConn()
	}
	return nc
}

// hangUp closes the connection at the end of its goroutine. TLS says goodbye, which a client that reads nothing could
// delay.
func (c *Conn) hangUp() {
	if _, ok := c.nc.(*tls.Conn); ok {
		socket := raw(c.nc)
		late := time.AfterFunc(time.Second, func() { shut(socket) })
		defer late.Stop()
	}
	shut(c.nc)
}
