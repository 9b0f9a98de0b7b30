package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// errorf makes an error of the stage; while Open still works, its phase is the stage.
func (c *Conn) errorf(stage mongoerr.Stage, cause error, format string, args ...any) *mongoerr.Error {
	if c.phase != "" {
		stage = c.phase
	}
	return failure(stage, c.addr, cause, format, args...)
}

// fail makes an error after which the connection is broken.
func (c *Conn) fail(stage mongoerr.Stage, cause error, format string, args ...any) *mongoerr.Error {
	e := c.errorf(stage, cause, format, args...)
	c.Break(e)
	return e
}

func failure(stage mongoerr.Stage, addr string, cause error, format string, args ...any) *mongoerr.Error {
	e := mongoerr.New(stage, format, args...)
	if cause != nil {
		e = mongoerr.Wrap(stage, cause, format, args...)
	}
	e.Server = addr
	return e
}

// garbage is the error for bytes that are no reply.
func (c *Conn) garbage(err error) error {
	return c.fail(mongoerr.StageRead, c.marked(err), "the server's bytes are no reply")
}

func opcodeError(code int32) error {
	if code == wire.OpCompressed {
		return fmt.Errorf("%w: it is compressed (OP_COMPRESSED), though no compressor was negotiated", wire.ErrCompressed)
	}
	return fmt.Errorf("%w: expected OP_MSG, got %s", wire.ErrMalformed, wire.OpName(code))
}

// ioError is the error for a write or read that the socket refused.
func (c *Conn) ioError(ctx context.Context, stage mongoerr.Stage, err error) error {
	partial := c.rbuf[c.used:]
	switch ended, cause := ioEnded(ctx, err); {
	case ended && c.owed != 0:
		return c.errorf(stage, cause, "%s", lateWords(ctx)) // not broken: Drain may yet read the reply
	case ended:
		return c.overloaded(ctx, c.fail(stage, cause, "%s", lateWords(ctx)))
	case errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) && c.Broken():
		return c.fail(stage, err, "the connection was closed by this client")
	case wire.Guess(partial) != "":
		return c.fail(stage, c.marked(err), "the server closed the connection after bytes that are %s%s", wire.Guess(partial), tlsHint(partial))
	case alertWords(err) != "":
		return c.refusedByTLS(stage, err)
	case !isHangUp(err):
		return c.overloaded(ctx, c.fail(stage, err, "the connection failed"))
	case c.phase == mongoerr.StageHandshake && len(partial) == 0:
		return c.overloaded(ctx, c.fail(stage, err, "the server closed the connection during the handshake%s", c.refusalHint()))
	case len(partial) > 0:
		return c.overloaded(ctx, c.fail(stage, err, "the server closed the connection in the middle of a reply"))
	}
	return c.overloaded(ctx, c.fail(stage, err, "the server closed the connection"))
}

// unsent is the error of a request of which nothing was sent: it costs no connection.
func (c *Conn) unsent(ctx context.Context, stage mongoerr.Stage, cause error) error {
	return c.errorf(stage, cause, "%s before anything was sent", endWords(ctx))
}

// writeError is the error for a write of which n of size bytes went. When the context ended before the first byte the
// connection is as it was; but TLS does not go on after a write that failed.
func (c *Conn) writeError(ctx context.Context, n, size int, err error) error {
	ended, cause := ioEnded(ctx, err)
	_, secure := c.nc.(*tls.Conn)
	switch {
	case !ended:
		return c.ioError(ctx, mongoerr.StageWrite, err)
	case n == 0 && !secure && isTimeout(err) && !c.Broken():
		return c.unsent(ctx, mongoerr.StageWrite, cause)
	}
	return c.overloaded(ctx, c.fail(mongoerr.StageWrite, cause, "%s when %d of %d bytes were sent", endWords(ctx), n, size))
}

// over is why the context has ended, nil if it has not. Its timer may be a little behind its deadline.
func over(ctx context.Context) error {
	if ctx.Err() != nil {
		return endOf(ctx)
	}
	if d, ok := ctx.Deadline(); !ok || time.Now().Before(d) {
		return nil
	}
	return awaitEnd(ctx)
}

// awaitEnd is why a context ended that should have by the clock: only the context can say which limit it was.
func awaitEnd(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return endOf(ctx)
	case <-time.After(100 * time.Millisecond):
		return context.DeadlineExceeded
	}
}

func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

// ioEnded says whether it was the context's end that stopped the socket, and with what cause.
func ioEnded(ctx context.Context, err error) (bool, error) {
	if ctx.Err() == nil && errors.Is(err, os.ErrDeadlineExceeded) { // the socket's clock was a little faster than the context's
		return true, awaitEnd(ctx)
	}
	if ctx.Err() == nil && !isTimeout(err) { // which may also be the network's own
		return false, nil
	}
	cause := over(ctx)
	return cause != nil, cause
}

// endOf is why the context ended: its error, with the cause in front if there is a special one.
func endOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) || errors.Is(cause, err) {
		return err
	}
	return fmt.Errorf("%w (%w)", cause, err)
}

func endWords(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.Canceled) {
		return "the caller gave up"
	}
	return "the time was up"
}

func lateWords(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.Canceled) {
		return "the caller gave up while waiting for the server"
	}
	return "the server did not answer in time"
}

// overloaded adds the labels of the backpressure specification to a network failure up to the hello. When the caller
// gave up, nothing is known about the server's load.
func (c *Conn) overloaded(ctx context.Context, e *mongoerr.Error) *mongoerr.Error {
	if c.phase != mongoerr.StageHandshake {
		return e
	}
	return overloaded(ctx, e)
}

func overloaded(ctx context.Context, e *mongoerr.Error) *mongoerr.Error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return e
	}
	return e.AddLabel(mongoerr.LabelSystemOverloaded, mongoerr.LabelRetryable)
}

func isHangUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// refusalHint says what commonly makes a server hang up on a greeting.
func (c *Conn) refusalHint() string {
	if _, secure := c.nc.(*tls.Conn); secure {
		return ": it may refuse this client's certificate or address (an access list)"
	}
	return ": it may want TLS (tls=true) or refuse this address (an access list)"
}

func tlsHint(partial []byte) string {
	if wire.Guess(partial) == "a TLS record" {
		return ": it wants TLS (tls=true)"
	}
	return ""
}

// dialError says why no socket could be opened.
func dialError(ctx context.Context, addr string, err error) error {
	var dns *net.DNSError
	if e := proxyError(ctx, addr, err); e != nil {
		return e
	}
	ended, cause := ioEnded(ctx, err)
	switch {
	case ended:
		return overloaded(ctx, failure(mongoerr.StageDial, addr, cause, "%s while connecting", endWords(ctx)))
	case errors.As(err, &dns) && dns.IsNotFound:
		return failure(mongoerr.StageDial, addr, err, "no such host %q", dns.Name)
	case errors.As(err, &dns):
		return failure(mongoerr.StageDial, addr, err, "the host name cannot be resolved")
	case errors.Is(err, syscall.ECONNREFUSED):
		return overloaded(ctx, failure(mongoerr.StageDial, addr, err, "nothing accepts connections there"))
	}
	return overloaded(ctx, failure(mongoerr.StageDial, addr, err, "cannot connect"))
}
