package operation

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/session"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/mongoerr"
)

// Config is what an Executor works with. Cluster is required.
type Config struct {
	Cluster     *cluster.Cluster
	RetryReads  bool
	RetryWrites bool
	Monitor     *event.Monitor // command callbacks; nil: none
}

// Executor runs the operations of one client.
type Executor struct {
	o        Config
	monitor  commandMonitor
	sessions sessions
	lastOp   atomic.Int64
}

// New makes an Executor. It does no I/O.
func New(o Config) *Executor {
	return &Executor{o: o, monitor: newCommandMonitor(o.Monitor)}
}

// Run runs the operation. It waits for a member as long as the client's serverSelectionTimeout and the context allow,
// so that an election passes unnoticed, and tries once more where op.Retryable and the client's settings say so.
// The error is a *mongoerr.Error with operation, namespace, server, attempts and stage; an error of op.Decode that is
// a *mongoerr.Error is returned as it is.
func (x *Executor) Run(ctx context.Context, op *Op) error {
	c := call{x: x, op: op, session: op.Session, id: x.lastOp.Add(1)}
	if err := c.check(); err != nil {
		return c.decorate(err, "")
	}
	c.trial = trial{kind: op.Kind, allowed: c.mayRetry()}
	defer c.release() // also when the caller's code panics
	return c.run(ctx)
}

// call is one Run.
type call struct {
	x       *Executor
	op      *Op
	id      int64 // operationId of events
	session *session.Session
	txn     int64 // of a retryable write, 0 before its first attempt
	trial   trial

	detours   int           // how often a paused pool turned it away
	selecting time.Duration // how long the last selection took
	failed    string        // the member at which the last attempt failed
}

// check refuses what no member could do anything with.
func (c *call) check() error {
	switch {
	case c.op.Name == "" || c.op.DB == "":
		return mongoerr.New(mongoerr.StageConfig, "an operation needs a command name and a database name")
	case c.op.Append == nil:
		return mongoerr.New(mongoerr.StageConfig, "an operation needs a body")
	}
	if err := c.op.ReadPref.Validate(); err != nil {
		return err
	}
	return c.op.WriteConcern.Validate()
}

func (c *call) mayRetry() bool {
	switch c.op.Kind {
	case Read:
		return c.op.Retryable && c.x.o.RetryReads
	case Write:
		return c.op.Retryable && c.x.o.RetryWrites && c.op.acknowledged()
	}
	return false
}

func (c *call) run(ctx context.Context) error {
	for {
		c.trial.tries++
		server, err := c.selectServer(ctx)
		if err != nil {
			return c.notSelected(ctx, err)
		}
		done, sent, err := c.attempt(ctx, server)
		if done {
			return err
		}
		if ctx.Err() == nil && c.turnedAway(err, sent) {
			continue
		}
		c.failed = server.Address()
		if again := c.trial.failed(err, sent); !again || ctx.Err() != nil {
			return c.trial.raised
		}
	}
}

// turnedAway says whether the call found its member's pool paused, or closed with the member gone, and may look again as if nothing had happened: nothing
// was sent, so that this is no attempt, and even what must never be sent twice may go on. A member that comes and goes
// all the time does not keep the call for ever.
func (c *call) turnedAway(err error, sent bool) bool {
	const most = 10
	gone := mongoerr.IsPoolCleared(err) || errors.Is(err, mongoerr.ErrPoolClosed)
	if sent || !gone || c.detours == most {
		return false
	}
	c.detours++
	c.trial.tries--
	return true
}

func (c *call) want() topology.Want {
	return topology.Want{
		Write: c.op.Kind == Write, ReadPref: c.op.ReadPref, Address: c.op.Address,
		OutMerge: c.op.OutMerge, Selector: c.op.Selector,
	}
}

func (c *call) selectServer(ctx context.Context) (*cluster.Server, error) {
	want := c.want()
	if c.failed != "" && c.x.o.Cluster.Description().Kind == event.Sharded {
		want.Deprioritized = []string{c.failed}
	}
	start := time.Now()
	server, err := c.x.o.Cluster.SelectFor(ctx, want, c.op.Name, c.id)
	c.selecting = time.Since(start)
	return server, err
}

// notSelected is the error when no member was found: that of the selection at first, later that of the attempt before,
// by which the caller can tell that an attempt was made.
func (c *call) notSelected(ctx context.Context, err error) error {
	if c.trial.raised == nil {
		return c.decorate(err, "")
	}
	if ctx.Err() == nil || errors.Is(c.trial.raised, ctx.Err()) {
		return c.trial.raised
	}
	e := c.decorate(c.trial.raised, c.failed)
	e.Cause, e.TimedOut = errors.Join(c.trial.raised, ctx.Err()), errors.Is(ctx.Err(), context.DeadlineExceeded)
	e.Message = "no member for a second attempt before the context ended; the first failed"
	return e
}

// decorate says in a copy of the error, which others may hold too, what the call was.
func (c *call) decorate(err error, server string) *mongoerr.Error {
	var e mongoerr.Error
	if m, ok := err.(*mongoerr.Error); ok {
		e = *m
	} else {
		e = *mongoerr.Wrap(mongoerr.StageConfig, err, "")
	}
	e.Op, e.NS, e.Attempts = c.op.Name, c.op.NS(), c.trial.tries
	if e.Server == "" {
		e.Server = server
	}
	if e.Stage == mongoerr.StageCheckout && c.selecting >= time.Millisecond {
		e.Message += " (after a selection of " + event.FormatDuration(c.selecting) + ")"
	}
	return &e
}

// release gives back a session that was taken for this call and that nobody keeps.
func (c *call) release() {
	if c.op.Session == nil && c.session != nil && !c.session.Kept() {
		c.x.Release(c.session)
	}
}
