package conn

import (
	"context"
	"encoding/binary"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// RoundTrip sends one whole message and waits for its reply, until the context ends. The reply's bytes are valid until
// the next use of the connection. If the request allows exhaust replies and the reply has moreToCome, further ones are
// read with ReadNext. After an error the connection is broken, unless only its context ended while the whole request was
// sent: then it owes a reply (Owes, Drain).
func (c *Conn) RoundTrip(ctx context.Context, msg []byte) (wire.Msg, error) {
	if err := c.usable(ctx, mongoerr.StageWrite); err != nil {
		return wire.Msg{}, err
	}
	if c.stream.open {
		return wire.Msg{}, c.fail(mongoerr.StageWrite, nil, "a request was made while streamed replies are due")
	}
	if len(msg) < wire.HeaderLen+4 {
		return wire.Msg{}, c.fail(mongoerr.StageWrite, nil, "%d bytes are no message", len(msg))
	}
	// msg goes back to the buffer when it is sent: read what is needed of it now.
	id := int32(binary.LittleEndian.Uint32(msg[4:]))
	exhaust := binary.LittleEndian.Uint32(msg[wire.HeaderLen:])&wire.ExhaustAllowed != 0
	stop := c.arm(ctx)
	m, err := c.exchange(ctx, msg, id, exhaust)
	c.disarm(stop)
	if err != nil {
		return wire.Msg{}, err
	}
	c.owed = 0
	if m.ResponseTo != id {
		return wire.Msg{}, c.fail(mongoerr.StageRead, nil, "the reply answers request %d, not %d", m.ResponseTo, id)
	}
	if m.Flags&wire.MoreToCome != 0 {
		if !exhaust {
			return wire.Msg{}, c.fail(mongoerr.StageRead, nil, "the server streams replies (moreToCome) though the request did not allow it")
		}
		c.stream = stream{open: true, request: id, previous: m.RequestID}
	}
	return m, nil
}

func (c *Conn) exchange(ctx context.Context, msg []byte, id int32, exhaust bool) (wire.Msg, error) {
	if err := c.write(ctx, msg); err != nil {
		return wire.Msg{}, err
	}
	if c.phase == "" && !exhaust { // a stream may go on for ever
		c.owed = id
	}
	return c.read(ctx)
}

// Owes says that the context of the last request ended before its reply had come: the connection is of no use until Drain
// has read it.
func (c *Conn) Owes() bool { return c.owed != 0 }

// Drain reads the reply that is owed, whatever part of it has come already, and forgets it. A cursor that it opened, of
// which nobody else knows, is closed: it would stay open at the server for ten minutes. If the replies have not come by the
// time until, the error is a timeout, and it may be drained further; after another error the connection is broken.
func (c *Conn) Drain(until time.Time) error {
	if c.owed == 0 {
		return nil
	}
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	stop := c.arm(ctx)
	err := c.drain(ctx)
	c.disarm(stop)
	if err == nil {
		c.forget()
	}
	return err
}

func (c *Conn) drain(ctx context.Context) error {
	for c.owed != 0 {
		m, err := c.read(ctx)
		if err == nil && (m.ResponseTo != c.owed || m.Flags&wire.MoreToCome != 0) {
			err = c.fail(mongoerr.StageRead, nil, "the late reply answers request %d, not %d", m.ResponseTo, c.owed)
		}
		if err != nil {
			return err
		}
		c.owed = 0
		msg, id := c.closeOrphan(m.Body)
		if msg == nil {
			return nil
		}
		if err := c.write(ctx, msg); err != nil {
			if c.Broken() {
				return err
			}
			return nil // the time was up before anything was sent: the server will find the cursor idle some time
		}
		c.owed = id
	}
	return nil
}

// closeOrphan is the request that closes the cursor that a reply opened, nil if it opened none.
func (c *Conn) closeOrphan(reply bson.Raw) (msg []byte, id int32) {
	if reply.Validate() != nil {
		return nil, 0
	}
	cursor, _ := reply.Lookup("cursor").DocumentOK()
	_, first := cursor.Lookup("firstBatch").ArrayOK() // of any other batch the cursor is known
	number, _ := cursor.Lookup("id").Int64OK()
	ns, _ := cursor.Lookup("ns").StringValueOK()
	db, collection, ok := strings.Cut(ns, ".")
	if !first || number == 0 || !ok {
		return nil, 0
	}
	id = c.NextRequestID()
	msg, start := wire.AppendMsgStart(c.Buffer(), id, 0, 0)
	msg, doc := bson.BeginDocument(msg)
	msg = bson.AppendString(msg, "killCursors", collection)
	msg, list := bson.BeginArrayElement(msg, "cursors")
	msg = bson.EndDocument(bson.AppendInt64(msg, "0", number), list)
	msg = bson.AppendString(msg, "$db", db)
	return wire.EndMsg(bson.EndDocument(msg, doc), start), id
}

// Send sends one whole message that asks for no reply (moreToCome).
func (c *Conn) Send(ctx context.Context, msg []byte) error {
	if err := c.usable(ctx, mongoerr.StageWrite); err != nil {
		return err
	}
	stop := c.arm(ctx)
	err := c.write(ctx, msg)
	c.disarm(stop)
	return err
}

// ReadNext waits for the next of the streamed replies. Its bytes are valid until the next use of the connection.
func (c *Conn) ReadNext(ctx context.Context) (wire.Msg, error) {
	if err := c.usable(ctx, mongoerr.StageRead); err != nil {
		return wire.Msg{}, err
	}
	if !c.stream.open {
		return wire.Msg{}, c.fail(mongoerr.StageRead, nil, "no streamed reply is due")
	}
	stop := c.arm(ctx)
	m, err := c.read(ctx)
	c.disarm(stop)
	if err != nil {
		return wire.Msg{}, err
	}
	// Servers answer either the request that began the stream or the reply before.
	if m.ResponseTo != c.stream.request && m.ResponseTo != c.stream.previous {
		return wire.Msg{}, c.fail(mongoerr.StageRead, nil, "the streamed reply answers %d, neither request %d nor reply %d",
			m.ResponseTo, c.stream.request, c.stream.previous)
	}
	c.stream.open = m.Flags&wire.MoreToCome != 0
	c.stream.previous = m.RequestID
	return m, nil
}

// usable refuses a dead connection and an ended context before anything is sent; the latter costs no connection.
func (c *Conn) usable(ctx context.Context, stage mongoerr.Stage) error {
	if c.broken.Load() {
		return c.fail(stage, nil, "the connection is closed")
	}
	if c.owed != 0 {
		return c.fail(stage, nil, "the reply to an earlier request has not come yet")
	}
	if ctx.Err() != nil {
		return c.unsent(ctx, stage, endOf(ctx))
	}
	return nil
}

// arm lets the context's end reach the socket. The deadline is set only when there is one or an old one must go.
func (c *Conn) arm(ctx context.Context) (stop func() bool) {
	if d, ok := ctx.Deadline(); ok {
		c.nc.SetDeadline(d)
		c.armed = true
	} else if c.armed {
		c.nc.SetDeadline(time.Time{})
		c.armed = false
	}
	if ctx.Done() == nil {
		return nil
	}
	return context.AfterFunc(ctx, c.interrupt)
}

var longAgo = time.Unix(1, 0)

// deafAfter is how long after its deadline a connection of the Dial function may go on with a read or write.
const deafAfter = 100 * time.Millisecond

// interrupt frees whoever waits on the socket, and lets disarm know. Who waits on a socket that knows no deadlines, or
// takes them and heeds none, must be freed all the same: it is closed.
func (c *Conn) interrupt() {
	if c.nc.SetDeadline(longAgo) != nil {
		c.Close()
	} else if g := dialed(c.nc); g != nil {
		late := time.NewTimer(deafAfter)
		defer late.Stop()
		select {
		case c.interrupted <- struct{}{}:
			return
		case <-late.C:
			c.broken.Store(true)
			g.Close() // first, as TLS would say goodbye, and wait with that
			c.Close()
		}
	}
	c.interrupted <- struct{}{}
}

// disarm ends what arm began. If the context's end won, even against a complete reply, its deadline is waited for: it must
// not fall into the connection's next use.
func (c *Conn) disarm(stop func() bool) {
	if stop != nil && !stop() {
		<-c.interrupted
		c.armed = true
	}
}

func (c *Conn) write(ctx context.Context, msg []byte) error {
	out, err := c.packed(msg)
	if err != nil {
		return c.fail(mongoerr.StageWrite, err, "the message cannot be compressed")
	}
	if cause := over(ctx); cause != nil {
		c.takeBack(msg)
		return c.unsent(ctx, mongoerr.StageWrite, cause)
	}
	n, err := c.nc.Write(out)
	c.takeBack(msg)
	if err == nil {
		return nil
	}
	return c.writeError(ctx, n, len(out), err)
}
