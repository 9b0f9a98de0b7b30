package replset

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// MemoryNetwork is a network inside the process: hosts are any names, connections are pairs of buffers with deadlines.
// It is safe for concurrent use and starts no goroutine.
type MemoryNetwork struct {
	mu        sync.Mutex // guards all below
	listeners map[string]*memoryListener
	lastPort  int
}

// NewMemoryNetwork is an empty network. Make it inside the synctest bubble that uses it.
func NewMemoryNetwork() *MemoryNetwork {
	return &MemoryNetwork{listeners: map[string]*memoryListener{}, lastPort: 27016}
}

// Listen listens at a name, such as "east-1:27017".
func (n *MemoryNetwork) Listen(_ context.Context, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if port == "0" {
		n.lastPort++
		port = strconv.Itoa(n.lastPort)
	}
	addr = net.JoinHostPort(host, port)
	if n.listeners[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "memory", Addr: memoryAddr(addr), Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	}
	l := &memoryListener{n: n, addr: memoryAddr(addr), queue: make(chan net.Conn, 128), closed: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

// Dial connects to a name on which somebody listens; otherwise the connection is refused.
func (n *MemoryNetwork) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[addr]
	n.lastPort++
	from := memoryAddr(fmt.Sprintf("client:%d", n.lastPort))
	n.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: "memory", Addr: memoryAddr(addr), Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	if l == nil {
		return nil, refused
	}
	near, far := memoryPipe(from, l.addr)
	select {
	case <-l.closed:
		return nil, refused
	default:
	}
	select {
	case l.queue <- far:
		return near, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: "memory", Addr: memoryAddr(addr), Err: ctx.Err()}
	}
}

type memoryAddr string

func (memoryAddr) Network() string  { return "memory" }
func (a memoryAddr) String() string { return string(a) }

type memoryListener struct {
	n      *MemoryNetwork
	addr   memoryAddr
	queue  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close refuses new connections and cuts those that nobody has accepted.
func (l *memoryListener) Close() error {
	l.once.Do(func() {
		l.n.mu.Lock()
		delete(l.n.listeners, string(l.addr))
		l.n.mu.Unlock()
		close(l.closed)
		for {
			select {
			case c := <-l.queue:
				_ = c.Close()
				continue
			default:
			}
			return
		}
	})
	return nil
}

func (l *memoryListener) Addr() net.Addr { return l.addr }

// memoryConn is one end of a connection.
type memoryConn struct {
	in, out       *memoryStream
	local, remote memoryAddr
}

func memoryPipe(client, server memoryAddr) (near, far *memoryConn) {
	up, down := newMemoryStream(), newMemoryStream()
	return &memoryConn{in: down, out: up, local: client, remote: server}, &memoryConn{in: up, out: down, local: server, remote: client}
}

func (c *memoryConn) Read(b []byte) (int, error)  { return c.in.read(b) }
func (c *memoryConn) Write(b []byte) (int, error) { return c.out.write(b) }
func (c *memoryConn) LocalAddr() net.Addr         { return c.local }
func (c *memoryConn) RemoteAddr() net.Addr        { return c.remote }

// Close ends both directions: the other end reads what is buffered, then EOF. Writing ends first: who reads here and learns
// of the end has nothing to say any more, as on a socket.
func (c *memoryConn) Close() error {
	c.out.shut(false)
	c.in.shut(true)
	return nil
}

func (c *memoryConn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *memoryConn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readBy, t)
	return nil
}

func (c *memoryConn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writeBy, t)
	return nil
}

// memoryStream is one direction: a bounded buffer.
type memoryStream struct {
	mu      sync.Mutex // guards all below
	buf     []byte
	writer  bool // the writing end is closed: EOF after the buffer
	reader  bool // the reading end is closed: nothing is taken any more
	readBy  time.Time
	writeBy time.Time
	changed chan struct{} // closed and replaced whenever one of the above changes
}

const memoryBuffer = 1 << 20

func newMemoryStream() *memoryStream { return &memoryStream{changed: make(chan struct{})} }

// wake tells whoever waits to look again. The caller holds mu.
func (s *memoryStream) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *memoryStream) shut(reader bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reader {
		s.reader, s.buf = true, nil
	} else {
		s.writer = true
	}
	s.wake()
}

func (s *memoryStream) setDeadline(which *time.Time, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*which = t
	s.wake()
}

func (s *memoryStream) read(b []byte) (int, error) {
	for {
		s.mu.Lock()
		switch {
		case s.reader:
			s.mu.Unlock()
			return 0, net.ErrClosed
		case expired(s.readBy):
			s.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case len(s.buf) > 0:
			n := copy(b, s.buf)
			s.buf = s.buf[n:]
			s.wake()
			s.mu.Unlock()
			return n, nil
		case s.writer:
			s.mu.Unlock()
			return 0, io.EOF
		case len(b) == 0:
			s.mu.Unlock()
			return 0, nil
		}
		changed, by := s.changed, s.readBy
		s.mu.Unlock()
		waitChange(changed, by)
	}
}

func (s *memoryStream) write(b []byte) (n int, err error) {
	for {
		s.mu.Lock()
		switch {
		case s.writer:
			err = net.ErrClosed
		case s.reader:
			err = os.NewSyscallError("write", syscall.EPIPE)
		case expired(s.writeBy):
			err = os.ErrDeadlineExceeded
		}
		if err != nil {
			s.mu.Unlock()
			return n, err
		}
		if room := memoryBuffer - len(s.buf); room > 0 && len(b) > 0 {
			k := min(room, len(b))
			s.buf = append(s.buf, b[:k]...)
			b, n = b[k:], n+k
			s.wake()
		}
		changed, by := s.changed, s.writeBy
		s.mu.Unlock()
		if len(b) == 0 {
			return n, nil
		}
		waitChange(changed, by)
	}
}

func expired(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

// waitChange waits until something changed or the deadline, if there is one, is over.
func waitChange(changed <-chan struct{}, by time.Time) {
	if by.IsZero() {
		<-changed
		return
	}
	timer := time.NewTimer(time.Until(by))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
}
