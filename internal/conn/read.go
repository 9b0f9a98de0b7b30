package conn

import (
	"context"
	"io"

	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// read reads one message. It asks the socket for as much as the buffer holds, so that a common reply costs one system
// call; bytes behind the message stay for the next read.
func (c *Conn) read(ctx context.Context) (wire.Msg, error) {
	c.forget()
	for len(c.rbuf) < wire.HeaderLen {
		if err := c.fill(ctx); err != nil {
			return wire.Msg{}, err
		}
	}
	h, err := wire.CheckHeader(c.rbuf, maxReply)
	if err != nil {
		return wire.Msg{}, c.garbage(err)
	}
	packed := h.OpCode == wire.OpCompressed && c.codec != nil
	if h.OpCode != wire.OpMsg && !packed {
		return wire.Msg{}, c.garbage(opcodeError(h.OpCode))
	}
	n := int(h.Length)
	for len(c.rbuf) < n {
		c.grow(n)
		if err := c.fill(ctx); err != nil {
			return wire.Msg{}, err
		}
	}
	c.used = n
	msg := c.rbuf[:n:n]
	if packed {
		if msg, err = c.unpacked(msg); err != nil {
			return wire.Msg{}, c.garbage(err)
		}
	}
	m, err := wire.ParseMsg(msg)
	if err != nil {
		return wire.Msg{}, c.garbage(err)
	}
	return m, nil
}

// forget drops the last reply from the buffer, and the buffer itself if a huge reply made it large.
func (c *Conn) forget() {
	rest := c.rbuf[c.used:]
	c.used = 0
	if cap(c.zbuf) > keepBuffer {
		c.zbuf = nil
	}
	if cap(c.rbuf) > keepBuffer && len(rest) < keepBuffer/2 {
		c.rbuf = append(make([]byte, 0, max(firstBuffer, len(rest))), rest...)
		return
	}
	c.rbuf = c.rbuf[:copy(c.rbuf, rest)]
}

// grow makes room for a message of n bytes, but never more than double what has truly come: a header that lies must
// not cost 48 MB.
func (c *Conn) grow(n int) {
	if n <= cap(c.rbuf) || len(c.rbuf) < cap(c.rbuf) {
		return
	}
	larger := make([]byte, len(c.rbuf), min(n, max(2*cap(c.rbuf), 64<<10)))
	copy(larger, c.rbuf)
	c.rbuf = larger
}

// fill reads once.
func (c *Conn) fill(ctx context.Context) error {
	n, err := c.nc.Read(c.rbuf[len(c.rbuf):cap(c.rbuf)])
	c.rbuf = c.rbuf[:len(c.rbuf)+n]
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	if err == io.EOF && len(c.rbuf) > 0 {
		err = io.ErrUnexpectedEOF
	}
	return c.ioError(ctx, mongoerr.StageRead, err)
}
