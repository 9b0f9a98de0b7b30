package command

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/sextantdb/sextant/internal/compress"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// Conn is one connection of a client or of another member. All but end belongs to its own goroutine.
type Conn struct {
	ID  int64  // unique in the member; hello tells it
	App string // the client's application name, as its metadata says

	m      *Member
	nc     net.Conn
	br     *bufio.Reader
	ctx    context.Context
	cancel context.CancelCauseFunc

	hailed   atomic.Bool     // a client has said hello
	greeted  bool            // a hello with metadata came
	balanced bool            // a hello has said that the client knows of the load balancer
	internal bool            // another member's
	peer     int             // that member's number, or -1
	pin      *store.Snapshot // all that another member reads on this connection is of this moment; nil: the newest
	auth     conversation
	users    []User // authenticated

	desk    desk          // what the connection is busy with, for all to see
	share   *share        // of the budget, for a large message; nil: none
	lastID  int32         // of the newest reply
	watch   *time.Timer   // starts the watcher when a command takes long
	watched chan struct{} // capacity 1: the watcher has ended
}

// watchAfter is how long a command may take before somebody looks whether its client is still there.
const watchAfter = 50 * time.Millisecond

// serve reads and answers messages until the client hangs up, sends garbage, or the member ends.
func (c *Conn) serve() {
	defer c.m.wg.Done()
	defer c.m.forget(c)
	defer c.m.opt.Router.reap(c)
	defer c.hangUp()
	defer c.cancel(errHungUp)
	defer c.free()
	defer c.m.survive("a connection")
	if !c.handshake() {
		return
	}
	for !c.m.closing() {
		msg, err := c.readMessage()
		if err != nil {
			c.logEnd(err)
			return
		}
		if err := c.m.opt.Faults.awake(c.ctx); err != nil {
			return
		}
		msg, packed, err := c.unpack(msg)
		if err != nil {
			c.logEnd(err)
			return
		}
		if c.share != nil {
			c.share.done()
		}
		if !c.answer(msg, packed) {
			return
		}
		c.free()
	}
}

// logEnd logs what the client did wrong; hanging up is no fault, save in the middle of a message.
func (c *Conn) logEnd(err error) {
	if errors.Is(err, wire.ErrMalformed) || errors.Is(err, errTooSlow) || errors.Is(err, errNotTaken) || errors.Is(err, io.ErrUnexpectedEOF) && !c.m.closing() {
		c.m.complain(slog.LevelWarn, "connection dropped", err.Error(), c.nc.RemoteAddr(), "connection", c.ID, "error", err)
	}
}

// readMessage reads one whole message of a client, within the member's budget.
func (c *Conn) readMessage() ([]byte, error) {
	msg, length, err := readHeader(c.br)
	if err == nil && length > smallMessage {
		return c.readLarge(msg, length)
	}
	if err != nil {
		return nil, err
	}
	return readRest(c.br, msg, length)
}

// free gives back what the last message took of the budget.
func (c *Conn) free() {
	c.share.end()
	c.share = nil
}

// readMessage reads one whole message of another member. Memory grows only as bytes arrive.
func readMessage(r io.Reader) ([]byte, error) {
	msg, length, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	return readRest(r, msg, length)
}

// onItsWord is how much memory a message gets for its header alone.
const onItsWord = 4 << 10

// readHeader reads the header of a message, and says how long the whole is.
func readHeader(r io.Reader) (msg []byte, length int, err error) {
	var head [wire.HeaderLen]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, 0, err
	}
	h, err := wire.CheckHeader(head[:], wire.MaxMessage)
	if err != nil {
		return nil, 0, err
	}
	msg = make([]byte, wire.HeaderLen, min(int(h.Length), onItsWord))
	copy(msg, head[:])
	return msg, int(h.Length), nil
}

func readRest(r io.Reader, msg []byte, length int) ([]byte, error) {
	for len(msg) < length {
		if len(msg) == cap(msg) {
			msg = append(msg, make([]byte, min(len(msg), length-len(msg)))...)[:len(msg)]
		}
		chunk := msg[len(msg):min(cap(msg), length)]
		if _, err := io.ReadFull(r, chunk); err != nil {
			return nil, cutShort(err)
		}
		msg = msg[:len(msg)+len(chunk)]
	}
	return msg, nil
}

// cutShort is the end of a connection in the middle of a message.
func cutShort(err error) error { return errors.Join(io.ErrUnexpectedEOF, err) }

// answer runs the command in msg and writes the reply, packed as the command was. It reports false when the connection is to
// end.
func (c *Conn) answer(msg []byte, packed compress.ID) bool {
	r, env, err := c.parse(msg)
	env.packed = packed
	if err != nil {
		c.logEnd(err)
		return false
	}
	begun := time.Now()
	c.noteMetadata(r)
	if !c.m.opt.Faults.onTheWay(c.ctx, c, begun, len(msg), true) {
		return false
	}
	for {
		r.ctx = c.ctx
		var rep reply
		if !env.find {
			c.startWatch()
			rep = c.run(r)
			c.stopWatch()
		}
		if rep.drop {
			return false
		}
		more := env.exhaust && rep.err == nil && r.streams()
		if !c.m.opt.Faults.onTheWay(c.ctx, c, time.Now(), 0, true) { // the other half of the delay
			return false
		}
		if c.m.opt.Faults.awake(c.ctx) != nil {
			return false
		}
		if !env.silent && !c.write(r, env, &rep, more) {
			c.replier(r).cursors.orphaned(&rep)
			return false
		}
		if !more {
			return true
		}
		r.nextHello()
		env.responseTo = c.lastID
	}
}

// serving is the member that runs the request: this one, unless a fault sends the clients' commands elsewhere.
func (c *Conn) serving(r *Request) *Member {
	if c.m.opt.Detour == nil || c.internal {
		return c.m
	}
	if spec := c.m.table[r.Name]; spec == nil || spec.Flags&BeforeAuth != 0 {
		return c.m
	}
	if other := c.m.opt.Detour(); other != nil {
		return other
	}
	return c.m
}

// pause waits until t; false means that ctx ended first.
func pause(ctx context.Context, t time.Time) bool {
	_, alive := pauseUnless(ctx, t, nil)
	return alive
}

// pauseUnless waits until t, or until other is closed: reached says that it is t. alive is false when ctx ended first.
func pauseUnless(ctx context.Context, t time.Time, other <-chan struct{}) (reached, alive bool) {
	d := time.Until(t)
	if d <= 0 {
		return true, ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true, true
	case <-other:
		return false, true
	case <-ctx.Done():
		return false, false
	}
}

// startWatch arranges that the client's hanging up ends a command that takes long.
func (c *Conn) startWatch() {
	if c.watch == nil {
		c.watch = time.AfterFunc(watchAfter, c.watchClient)
		return
	}
	c.watch.Reset(watchAfter)
}

func (c *Conn) watchClient() {
	defer func() { c.watched <- struct{}{} }()
	defer c.m.survive("a connection's watcher")
	_, err := c.br.Peek(1)
	if err != nil && !isTimeout(err) {
		c.cancel(errHungUp)
	}
}

// stopWatch ends the watcher, if it has begun, and waits for it: the reader is this goroutine's again.
func (c *Conn) stopWatch() {
	if c.watch.Stop() {
		return
	}
	_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	<-c.watched
	_ = c.nc.SetReadDeadline(time.Time{})
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// end makes the connection's goroutine end: at once and without goodbye, or after the reply it is about to write.
// It is safe to call from any goroutine, whatever the socket does.
func (c *Conn) end(crash bool) {
	defer c.m.survive("closing a connection")
	if crash {
		socket := raw(c.nc)
		if tcp, ok := socket.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, as from a process that is gone
		}
		shut(socket)
		c.cancel(errHungUp) // only now: a waiting command must not tell that it was interrupted
		return
	}
	_ = c.nc.SetWriteDeadline(time.Now().Add(time.Second))
	_ = c.nc.SetReadDeadline(time.Unix(1, 0))
}
