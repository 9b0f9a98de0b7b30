package replset

import (
	"context"
	"net"
)

// Network is where members listen and how they reach each other. TCP is the default; NewMemoryNetwork makes one in
// memory, on which testing/synctest can work.
type Network interface {
	// Listen listens at addr, "host:port"; port 0 asks for any free one, and the listener's Addr tells which.
	Listen(ctx context.Context, addr string) (net.Listener, error)
	// Dial connects to addr. network is "tcp".
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

type tcp struct{}

func (tcp) Listen(ctx context.Context, addr string) (net.Listener, error) {
	var c net.ListenConfig
	return c.Listen(ctx, "tcp", addr)
}

func (tcp) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}
