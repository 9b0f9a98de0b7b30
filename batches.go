package sextant

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/internal/session"
	"github.com/sextantdb/sextant/mongoerr"
)

// batches is a cursor without its type: the batch at hand and how to get the next.
//
// Invariant: the cursor lives at server, and getMore and killCursors go there and nowhere else, within session; behind a
// load balancer over one connection, which nobody else gets until the cursor is over.
type batches struct {
	h        *handle
	op       string // the command that made the cursor
	server   string
	session  *session.Session
	line     *operation.Line // behind a load balancer: the connection to the service that has the cursor; else nil
	coll     string          // as the server named it in the reply
	db       string
	id       int64       // 0: the server has no more
	decoder  *bson.Batch // of the documents, whose strings share memory across batches
	batch    []byte      // the elements of the batch at hand
	rest     []byte      // the elements of batch not yet returned
	doc      bson.Raw
	comment  []byte // the element to send with getMore, nil if none
	closed   bool
	tailable bool
	maxAwait time.Duration

	limit     int64 // 0: none
	received  int64 // documents received so far, for the limit
	batchSize int32
}

// setComment keeps the comment of the first command for those that follow.
func (b *batches) setComment(c *cmd, comment any) {
	if comment == nil || c.err != nil {
		return
	}
	if e, err := c.appendValue(nil, "comment", comment); err == nil {
		b.comment = e
	}
}

// open sends the command that makes the cursor.
func (b *batches) open(ctx context.Context, c *cmd, op *operation.Op) error {
	op.Decode = func(reply bson.Raw, r operation.Result) error {
		b.server = r.Server
		cur, err := readCursor(reply, b.h.db)
		b.db, b.coll = cur.db, cur.coll
		b.take(cur)
		if b.id == 0 {
			return err
		}
		if r.Session != nil {
			r.Session.Keep()
			b.session = r.Session
		}
		r.Line.Hold()
		b.line = r.Line
		return err
	}
	if err := b.h.run(ctx, c, op); err != nil {
		b.close(ctx) // the reply may be malformed and the cursor open all the same
		return err
	}
	b.finish(ctx)
	return nil
}

// take takes a batch. The bytes are copied: those of the reply belong to the connection.
func (b *batches) take(cur cursorReply) {
	b.id = cur.id
	if b.h.set.bson.Strings == bson.StringsAliased {
		b.batch = nil // documents that were decoded share its bytes
	}
	b.batch = append(b.batch[:0], cur.docs...)
	b.rest = b.batch
	b.received += int64(cur.count)
}

// next returns the next document, nil at the end or where a tailable cursor has none yet.
func (b *batches) next(ctx context.Context) (bson.Raw, error) {
	if ctx == nil {
		return nil, argument("getMore", b.h.ns(), "the context is nil")
	}
	for {
		var err error
		b.doc, b.rest, err = nextDoc(b.rest)
		switch {
		case err != nil:
			return nil, decodeError(b.op, b.h.ns(), b.server, err)
		case b.doc != nil:
			return b.doc, nil
		case b.id == 0 || b.closed:
			return nil, nil
		}
		if err := b.more(ctx); err != nil {
			return nil, err
		}
		if b.tailable && len(b.rest) <= 1 {
			return nil, nil
		}
	}
}

// more fetches the next batch.
func (b *batches) more(ctx context.Context) error {
	size := moreSize(b.limit, b.received, b.batchSize)
	c := &cmd{name: "getMore", ns: b.db + "." + b.coll}
	c.b = bson.AppendInt64(c.b, "getMore", b.id)
	c.b = bson.AppendString(c.b, "collection", b.coll)
	c.i32("batchSize", size)
	c.millis("maxTimeMS", b.maxAwait)
	c.b = append(c.b, b.comment...)
	op := b.follow(c)
	op.Decode = func(reply bson.Raw, _ operation.Result) error {
		cur, err := readMore(reply, b.id)
		if err == nil {
			b.take(cur)
		}
		return err
	}
	if err := b.h.run(ctx, c, op); err != nil {
		late := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
		if mongoerr.IsNetwork(err) && !late || mongoerr.Code(err) == mongoerr.CodeCursorNotFound {
			b.id = 0 // it cannot, or need not, be closed
			b.releaseSession()
		}
		return err
	}
	b.finish(ctx)
	return nil
}

// moreSize is the batch size that a getMore asks for, 0 for the server's choice: not more than the limit still allows.
func moreSize(limit, received int64, size int32) int32 {
	if limit == 0 || size == 0 {
		return size
	}
	return int32(min(int64(size), max(limit-received, 1)))
}

// follow makes the Op of a command that belongs to the cursor.
func (b *batches) follow(c *cmd) *operation.Op {
	return &operation.Op{
		Name: c.name, DB: b.db, Coll: b.coll, Kind: operation.Read, Append: c.append,
		Address: b.server, Session: b.session, Line: b.line,
	}
}

// finish ends what is over after a batch: at the limit the cursor, which servers since 5.0 keep open, and with the
// cursor the session.
func (b *batches) finish(ctx context.Context) {
	if b.id != 0 && b.limit > 0 && b.received >= b.limit {
		b.kill(ctx)
	}
	if b.id == 0 {
		b.release()
	}
}

// killTimeout bounds how long the closing of a cursor may take; killLate, how long if the caller's time is up already.
const (
	killTimeout = 5 * time.Second
	killLate    = time.Second
)

// kill closes the cursor at the server. Failure is of no consequence: the server forgets idle cursors by itself. So
// a member that is out of reach is not waited for.
func (b *batches) kill(ctx context.Context) {
	if s := b.h.client.cluster.Description().Server(b.server); s == nil || !s.Kind.Known() {
		b.id = 0
		return
	}
	limit := killTimeout
	if ctx.Err() != nil {
		limit = killLate
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if b.line != nil && !b.line.Usable(ctx) {
		b.id = 0 // the service lets go of the cursor when its connection ends
		return
	}
	c := newCmd("killCursors", b.db+"."+b.coll, b.coll)
	var start int
	c.b, start = bson.BeginArrayElement(c.b, "cursors")
	c.b = bson.EndDocument(bson.AppendInt64(c.b, "0", b.id), start)
	b.id = 0
	_ = b.h.run(ctx, c, b.follow(c))
}

// release gives back what the cursor kept.
func (b *batches) release() {
	b.releaseSession()
	b.line.Release()
	b.line = nil
}

// releaseSession gives the implicit session back.
func (b *batches) releaseSession() {
	if b.session != nil {
		b.h.client.exec.Release(b.session)
		b.session = nil
	}
}

func (b *batches) close(ctx context.Context) {
	if b.closed {
		return
	}
	b.closed = true
	if ctx == nil {
		ctx = context.Background()
	}
	if b.id != 0 {
		b.kill(ctx)
	}
	b.release()
	b.rest, b.doc = nil, nil
}

// elements is the array's elements without its length; the zero byte at the end stays.
func elements(arr []byte) []byte {
	if len(arr) < 5 {
		return nil
	}
	return arr[4:]
}

// nextDoc takes the first document off the elements of an array. The document is nil at the end.
func nextDoc(b []byte) (doc bson.Raw, rest []byte, err error) {
	if len(b) <= 1 {
		return nil, b, nil
	}
	end := 1
	for end < len(b) && b[end] != 0 {
		end++
	}
	b, t := b[min(end+1, len(b)):], bson.Type(b[0])
	if t != bson.TypeEmbeddedDocument {
		return nil, nil, errors.New("of type " + t.String())
	}
	if len(b) < 5 {
		return nil, nil, errors.New("cut short")
	}
	n := int64(binary.LittleEndian.Uint32(b))
	if n < 5 || n > int64(len(b)) {
		return nil, nil, errors.New("of a wrong length")
	}
	return bson.Raw(b[:n:n]), b[n:], nil
}

// countDocs is the number of documents in the elements of an array, as far as they can be read.
func countDocs(b []byte) int {
	for n := 0; ; n++ {
		doc, rest, err := nextDoc(b)
		if doc == nil || err != nil {
			return n
		}
		b = rest
	}
}
