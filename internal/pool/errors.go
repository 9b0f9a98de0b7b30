package pool

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
)

// waitError says how long somebody waited, and for what. It is called under mu, after the waiter left.
func (p *Pool) waitError(cause error, waited time.Duration) error {
	e := mongoerr.Wrap(mongoerr.StageCheckout, cause, "no connection to %s within %s: %s",
		p.addr, event.FormatDuration(waited), strings.Join(p.reasons(), ", "))
	e.Server = p.addr
	e.TimedOut = e.TimedOut || cause == nil
	return e
}

// reasons say what keeps waiters: connections that are in use, and by whom; that are being opened, and how that goes; that
// drain; and who else waits.
func (p *Pool) reasons() []string {
	b := &p.book
	var why []string
	if b.max > 0 && b.busy.n >= b.max {
		// The words in brackets are the specification's (load balancers, "pool exhaustion").
		why = append(why, fmt.Sprintf("all %d connections are in use (maxPoolSize: %d, connections in use by cursors: %d, "+
			"connections in use by transactions: %d, connections in use by other operations: %d)",
			b.busy.n, b.max, b.held[ByCursor], b.held[ByTransaction], b.busy.n-b.held[ByCursor]-b.held[ByTransaction]))
	} else {
		why = append(why, counted(b.busy.n, "connection is", "connections are")+" in use")
	}
	if b.pending.n > 0 {
		why = append(why, fmt.Sprintf("%d being opened (maxConnecting %d)", b.pending.n, b.maxConnecting))
	}
	if b.late() > 0 {
		why = append(why, counted(b.late(), "waits", "wait")+" for the late reply to a call that was given up")
	}
	if b.waiting.n > 0 {
		why = append(why, counted(b.waiting.n, "other caller waits", "other callers wait"))
	}
	if p.dialErr != nil {
		why = append(why, fmt.Sprintf("the last attempt to open one failed %s ago (%s)",
			event.FormatDuration(time.Since(p.dialErrAt).Round(time.Millisecond)), firstLine(p.dialErr)))
	}
	return why
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (p *Pool) closedError() error {
	e := mongoerr.Wrap(mongoerr.StageCheckout, mongoerr.ErrPoolClosed, "no connection to %s", p.addr)
	e.Server = p.addr
	return e
}

// pausedError says that the pool waits for its member to be seen again. No cause: it was never seen.
func (p *Pool) pausedError(cause error) error {
	e := mongoerr.Wrap(mongoerr.StageCheckout, mongoerr.ErrPoolCleared, "no connection to %s", p.addr)
	e.Server = p.addr
	e.Cause = unseen{}
	if cause != nil {
		e.Cause = clearedCause{cause}
	}
	return e
}

// unseen counts as mongoerr.ErrPoolCleared: the pool has not begun to work.
type unseen struct{}

func (unseen) Error() string { return "the member has not answered its monitor yet" }
func (unseen) Unwrap() error { return mongoerr.ErrPoolCleared }

// movedError says that somebody waited at a member when another became the right one.
func (p *Pool) movedError() error {
	e := mongoerr.Wrap(mongoerr.StageCheckout, moved{}, "no connection to %s", p.addr)
	e.Server = p.addr
	return e
}

// moved counts as mongoerr.ErrPoolCleared: nothing was sent, and the operation may go elsewhere.
type moved struct{}

func (moved) Error() string { return "it does not serve this operation any more, another member does" }
func (moved) Unwrap() error { return mongoerr.ErrPoolCleared }

func reasonOf(err error) string {
	switch e, _ := err.(*mongoerr.Error); {
	case e == nil, e.Stage != mongoerr.StageCheckout:
		return event.ReasonConnectionError
	case e.Cause == mongoerr.ErrPoolClosed:
		return event.ReasonPoolClosed
	case !errors.Is(err, mongoerr.ErrPoolCleared):
		return event.ReasonTimeout
	}
	return event.ReasonConnectionError
}

// clearedCause is the failure for which a pool was cleared. It is mongoerr.ErrPoolCleared too.
type clearedCause struct{ cause error }

func (c clearedCause) Error() string {
	return mongoerr.ErrPoolCleared.Error() + ": " + c.cause.Error()
}

func (c clearedCause) Unwrap() []error { return []error{mongoerr.ErrPoolCleared, c.cause} }
