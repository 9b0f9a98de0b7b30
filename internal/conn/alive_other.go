//go:build !unix

package conn

// Alive looks at an idle connection without waiting: false if it is known to be broken. On this system sockets cannot
// be looked at without reading.
func (c *Conn) Alive() bool { return !c.Broken() && len(c.rbuf) <= c.used }
