package operation

import (
	"context"
	"errors"
	"math/rand/v2"
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
	Monitor     *event.Monitor                   // command callbacks; nil: none
	Log         *Log                             // nil: commands are not logged
	Panicked    func(callback string, value any) // is told of callbacks that panic; may be nil
	Anonymous   bool                             // connections log nobody in

	SocketTimeout      time.Duration  // for an attempt on its connection, until its reply is there; 0: no limit
	MaxAdaptiveRetries *int           // retries once a server was overloaded; nil: 2
	OverloadRetarget   bool           // such a retry goes to another member of a set, if there is one that serves
	Chance             func() float64 // in [0, 1): spreads retries in time; nil: random
}

// DefaultAdaptiveRetries is how often an operation is retried once a server was overloaded (client backpressure).
const DefaultAdaptiveRetries = 2

// Executor runs the operations of one client.
type Executor struct {
	o        Config
	monitor  commandMonitor
	sessions sessions
	lastOp   atomic.Int64
}

// New makes an Executor. It does no I/O.
func New(o Config) *Executor {
	if o.MaxAdaptiveRetries == nil {
		o.MaxAdaptiveRetries = new(DefaultAdaptiveRetries)
	}
	if o.Chance == nil {
		o.Chance = rand.Float64
	}
	return &Executor{o: o, monitor: newCommandMonitor(&o)}
}

// Run runs the operation. It waits for a member as long as the client's serverSelectionTimeout and the context allow,
// so that an election passes unnoticed, and tries once more where op.Retryable and the client's settings say so. What an
// overloaded server has not looked at is tried again, whatever it is, after a pause.
// The error is a *mongoerr.Error with operation, namespace, server, attempts and stage; an error of op.Decode that is
// a *mongoerr.Error is returned as it is.
func (x *Executor) Run(ctx context.Context, op *Op) error {
	c := call{x: x, op: op, session: op.Session, id: x.lastOp.Add(1)}
	if err := c.check(); err != nil {
		return c.decorate(err, "")
	}
	c.trial = trial{kind: op.Kind, allowed: c.mayRetry(), adaptive: c.mayRetryOverload(), most: *x.o.MaxAdaptiveRetries}
	defer c.release() // also when the caller's code panics
	if c.report = reportOn(ctx, op, c.id); c.report == nil {
		return c.run(ctx)
	}
	err := c.run(ctx)
	c.report.end(err)
	return err
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
	avoid     []string      // members not to be asked again if others serve
	report    *report       // nil: nobody asked for one
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

// mayRetryOverload says whether the call may be repeated when a server was too busy to look at it. Nothing was done
// then, so that it may be any call, as long as the client's options allow it to retry calls of its kind.
func (c *call) mayRetryOverload() bool {
	reads, writes := c.x.o.RetryReads, c.x.o.RetryWrites
	switch {
	case c.op.Kind == Command:
		return reads && writes // nobody looks what it is
	case c.op.Kind == Write || c.op.OutMerge:
		return writes
	}
	return reads
}

func (c *call) run(ctx context.Context) error {
	for {
		c.trial.tries++
		server, err := c.selectServer(ctx)
		if err != nil {
			c.report.selected("", c.selecting, err)
			return c.notSelected(ctx, err)
		}
		c.report.selected(server.Address(), c.selecting, nil)
		done, sent, err := c.attempt(ctx, server)
		c.report.ended(sent, err)
		if done {
			return err
		}
		if ctx.Err() == nil && c.turnedAway(err, sent) {
			continue
		}
		c.failed = server.Address()
		again, longest := c.trial.failed(err, sent)
		if !again || ctx.Err() != nil || longest > 0 && !c.rest(ctx, longest) {
			return c.raised()
		}
		c.deprioritize(longest > 0)
	}
}

// raised is the error to return after the last attempt. It may be that of an earlier one, and says how many there were.
func (c *call) raised() error {
	e, ok := c.trial.raised.(*mongoerr.Error)
	if !ok || e.Attempts == c.trial.tries {
		return c.trial.raised
	}
	all := *e
	all.Attempts = c.trial.tries
	return &all
}

// rest pauses, for a random part of the longest time, before an overloaded server is asked again. It is false where the
// context will not last for that long, and at once when the client is closed.
func (c *call) rest(ctx context.Context, longest time.Duration) bool {
	d := time.Duration(float64(longest) * c.x.o.Chance())
	if end, limited := ctx.Deadline(); limited && time.Until(end) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	case <-c.x.o.Cluster.Closing():
		e := c.decorate(c.trial.raised, c.failed)
		e.Cause, e.Message = errors.Join(c.trial.raised, mongoerr.ErrClientClosed), "the client was closed before a further attempt; the last failed"
		c.trial.raised = e
		return false
	}
}

// deprioritize notes where not to go again: any mongos that failed, but a member of a set only if it was overloaded and
// the client wants it.
func (c *call) deprioritize(overload bool) {
	if c.x.o.Cluster.Description().Kind == event.Sharded || overload && c.x.o.OverloadRetarget {
		c.avoid = append(c.avoid, c.failed)
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
		OutMerge: c.op.OutMerge, Selector: c.op.Selector, Deprioritized: c.avoid,
	}
}

func (c *call) selectServer(ctx context.Context) (*cluster.Server, error) {
	if l := c.op.Line; l != nil {
		return l.server, nil
	}
	start := time.Now()
	c.x.o.Cluster.Awake(start)
	var server *cluster.Server
	var err error
	if c.op.Pin != nil {
		server, err = c.op.Pin.SelectFor(ctx, c.want(), c.op.Name, c.id)
	} else {
		server, err = c.x.o.Cluster.SelectFor(ctx, c.want(), c.op.Name, c.id)
	}
	c.selecting = time.Since(start)
	return server, err
}

// notSelected is the error when no member was found: that of the selection at first, later that of the attempt before,
// by which the caller can tell that an attempt was made.
func (c *call) notSelected(ctx context.Context, err error) error {
	if c.trial.raised == nil {
		return c.decorate(err, "")
	}
	if fault, ok := errors.AsType[topology.SelectorPanic](err); ok {
		e := c.decorate(c.trial.raised, c.failed)
		e.Cause, e.Message = errors.Join(c.trial.raised, err), "no member for a second attempt: "+fault.Error()+"; the first failed"
		return e
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
	if e.Code == mongoerr.CodeUnauthorized && e.Stage == mongoerr.StageServer && c.x.o.Anonymous {
		e.Message += "; this client logs nobody in: put user:password@ before the host"
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
