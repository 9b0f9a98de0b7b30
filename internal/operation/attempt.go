package operation

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/pool"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// attempt sends the command once. done says that the call is over, with or without an error; else err is what the
// retry decides on, and sent says whether the member may have seen the command.
func (c *call) attempt(ctx context.Context, s *cluster.Server) (done, sent bool, err error) {
	if l := c.op.Line; l != nil {
		l.conn.Resume()
		c.report.checkedOut(c.report.now(), l.conn.ID())
		return c.carry(ctx, s, l.conn, l)
	}
	defer s.Done()
	start := c.report.now()
	pc, err := s.CheckOut(ctx, c.want())
	if err != nil {
		c.report.checkedOut(start, 0)
		if auth := authFailure(err); auth != nil {
			err = auth
		}
		e := c.decorate(err, s.Address())
		c.trial.label(e, 0, false)
		return false, false, e
	}
	c.report.checkedOut(start, pc.ID())
	return c.carry(ctx, s, pc, lineOf(s, pc))
}

// carry is the part of an attempt that has a connection, which it gives back unless the line is held.
func (c *call) carry(ctx context.Context, s *cluster.Server, pc *pool.Conn, l *Line) (done, sent bool, err error) {
	defer l.leave(pc)
	t := c.target(pc)
	if err := c.prepare(t); err != nil {
		return false, false, c.decorate(err, t.Addr)
	}
	msg, err := c.encode(pc, t)
	if err != nil {
		return false, false, c.decorate(encodeError(err), t.Addr)
	}
	c.session.Used(time.Now())
	start := c.report.now()
	reply, err := c.sendLoggedIn(ctx, s, pc, t, msg)
	c.report.carried(start)
	if err != nil {
		e := err.(*mongoerr.Error)
		c.trial.label(e, t.MaxWire, t.Kind == event.Mongos)
		c.trial.unsupported(e)
		return false, true, err
	}
	return true, true, c.decode(reply, pc, t, l)
}

func (c *call) target(pc *pool.Conn) Target {
	return Target{
		Addr: pc.Address(), Kind: pc.Info.Kind, TopologyKind: c.x.o.Cluster.Description().Kind, MaxWire: pc.Info.MaxWire,
		MaxBSON: pc.Info.MaxBSON, MaxMessage: pc.Info.MaxMessage, MaxBatch: pc.Info.MaxBatch,
		SessionTimeout: pc.Info.SessionTimeout,
	}
}

// prepare takes what the call needs once it is known who will serve it: the session, which depends on the connection
// and must not be held while waiting for one, and the number of a retryable write.
func (c *call) prepare(t Target) error {
	if c.trial.kind == Write && (t.SessionTimeout == 0 || t.Kind == event.Standalone) {
		if c.txn != 0 { // the attempt before may have written, and nothing here would notice
			return mongoerr.New(mongoerr.StageConfig, "%s does not support retryable writes", t.Addr)
		}
		c.trial.allowed = false
	}
	if c.trial.allowed && c.txn == 0 && c.op.Repeatable != nil {
		c.trial.allowed = c.op.Repeatable(t)
	}
	if t.SessionTimeout == 0 || !c.op.acknowledged() || c.op.outside {
		if c.op.Session != nil && !c.op.Session.Implicit {
			return mongoerr.New(mongoerr.StageConfig, "%s cannot take part in a session", t.Addr)
		}
		c.session = nil
		return nil
	}
	c.session = c.x.sessions.bind(c.session, t.SessionTimeout)
	if c.trial.kind == Write && c.trial.allowed && c.txn == 0 {
		c.txn = c.session.NextTxn()
	}
	return nil
}

// sendLoggedIn sends the message and, if the member wants the login repeated before it looks at the command, does that and sends the command once more
// on the same connection, whether or not it is one that may be retried (authentication specification,
// "Reauthentication"). What fails after that is the call's failure.
func (c *call) sendLoggedIn(ctx context.Context, s *cluster.Server, pc *pool.Conn, t Target, msg []byte) (wireReply, error) {
	reply, err := c.send(ctx, s, pc, msg)
	if e, refused := err.(*mongoerr.Error); !refused || e.Code != mongoerr.CodeReauthenticationRequired {
		return reply, err
	}
	if err := pc.Reauthenticate(ctx); err != nil {
		if mongoerr.IsNetwork(err) {
			return wireReply{}, c.lost(ctx, s, pc, err)
		}
		return wireReply{}, c.decorate(err, pc.Address())
	}
	msg, err = c.encode(pc, t)
	if err != nil {
		return wireReply{}, c.decorate(encodeError(err), t.Addr)
	}
	return c.send(ctx, s, pc, msg)
}

// wireReply is a reply and what was read from it on the way.
type wireReply struct {
	body          bson.Raw
	operationTime bson.Timestamp
}

// send sends the message, waits for the reply and tells cluster, sessions and monitor what came of it.
func (c *call) send(ctx context.Context, s *cluster.Server, pc *pool.Conn, msg []byte) (wireReply, error) {
	watch := c.x.monitor.start(ctx, c, pc, msg)
	if !c.op.acknowledged() {
		err := pc.Send(ctx, msg)
		if err != nil {
			err = c.lost(ctx, s, pc, err)
		}
		watch.end(ctx, unacknowledgedReply, err)
		return wireReply{}, err
	}
	m, err := c.exchange(ctx, pc, msg)
	if err != nil {
		err = c.lost(ctx, s, pc, err)
		watch.end(ctx, nil, err)
		return wireReply{}, err
	}
	r := wireReply{body: m.Body}
	good := r.scan(&c.x.sessions) && c.op.Statements == 0
	var failed *mongoerr.Error
	if !good {
		failed = verdict(m.Body, c.op)
	}
	if failed == nil && (c.op.Kind != Write || m.Body.Validate() == nil) { // behind what is no BSON a failure may be hidden
		watch.end(ctx, m.Body, nil)
		return r, nil
	}
	if bad := m.Body.Validate(); bad != nil { // no refusal, but a connection that cannot be trusted any more
		err = mongoerr.Wrap(mongoerr.StageRead, bad, "the server's reply is malformed")
		pc.Break(err)
		err = c.lost(ctx, s, pc, err)
		watch.end(ctx, nil, err)
		return wireReply{}, err
	}
	e := c.decorate(failed, pc.Address())
	if okay, _, _ := okIn(m.Body); okay == yes {
		watch.end(ctx, m.Body, nil) // for command monitoring, ok: 1 is a success, whatever the writes did
	} else {
		watch.end(ctx, nil, e)
	}
	if mongoerr.IsStateChange(e) {
		s.ReportError(e, pc)
	}
	return wireReply{}, e
}

// exchange sends the message and waits for its reply, no longer than the client's limit for one attempt. When that has
// passed it is the network that failed, not the caller who gave up.
func (c *call) exchange(ctx context.Context, pc *pool.Conn, msg []byte) (wire.Msg, error) {
	limit := c.x.o.SocketTimeout
	if limit <= 0 {
		return pc.RoundTrip(ctx, msg)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m, err := pc.RoundTrip(limited, msg)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		e := mongoerr.Wrap(mongoerr.StageRead, noReply(limit), "")
		if was, ok := err.(*mongoerr.Error); ok {
			e.Stage, e.Server = was.Stage, was.Server
		}
		return wire.Msg{}, e
	}
	return m, err
}

// noReply is the cause of an attempt that took longer than socketTimeoutMS. It is no context.DeadlineExceeded: the deadline
// was none of the caller's.
type noReply time.Duration

func (d noReply) Error() string {
	return "no reply within socketTimeoutMS (" + time.Duration(d).String() + ")"
}
func (d noReply) Timeout() bool { return true }

// lost is a failure of the connection. The session is not used again, for the server may still be at work in it. A
// context that ended is the caller's doing and says nothing about the server.
func (c *call) lost(ctx context.Context, s *cluster.Server, pc *pool.Conn, err error) error {
	c.session.MarkDirty()
	if ctx.Err() == nil {
		s.ReportError(err, pc)
	}
	if cause := pc.Interrupted(); cause != nil {
		err = interruptedError(err, cause)
	}
	return c.decorate(err, pc.Address())
}

// interruptedError is the error of a command whose connection the pool closed, since the member answered its monitor no
// more: a failure of the network, for which the member's own failure is the reason.
func interruptedError(err, cause error) error {
	e := mongoerr.Wrap(mongoerr.StageRead, memberFailure{cause}, "the command was given up with its member")
	if m, ok := err.(*mongoerr.Error); ok {
		e.Stage, e.Server = m.Stage, m.Server
	}
	return e
}

// memberFailure tells what a monitor met. It does not unwrap: a deadline of the monitor's is none of the caller's.
type memberFailure struct{ cause error }

func (f memberFailure) Error() string { return f.cause.Error() }
func (f memberFailure) Timeout() bool { return mongoerr.IsTimeout(f.cause) }

// scan reads a reply once: cluster time, operation time, and whether it says ok and tells of no failures.
func (r *wireReply) scan(s *sessions) (good bool) {
	ok, parts := false, false
	for key, v := range r.body.All() {
		switch key {
		case "ok":
			ok = answerOf(v) == yes
		case "writeErrors", "writeConcernError":
			parts = true
		case "$clusterTime":
			if doc, isDoc := v.DocumentOK(); isDoc {
				s.advance(doc)
			}
		case "operationTime":
			r.operationTime.T, r.operationTime.I, _ = v.TimestampOK()
		}
	}
	return ok && !parts
}

func (c *call) decode(r wireReply, pc *pool.Conn, t Target, l *Line) error {
	if c.op.Decode == nil || r.body == nil {
		return nil
	}
	err := c.op.Decode(r.body, Result{
		Server: t.Addr, Kind: t.Kind, ConnectionID: pc.ID(), ServerConnectionID: pc.ServerConnectionID(),
		Attempts: c.trial.tries, Target: t, Session: c.session, OperationTime: r.operationTime, Line: l,
	})
	if err == nil {
		return nil
	}
	switch e := err.(type) {
	case *mongoerr.Error:
		return err
	case *mongoerr.MalformedReply:
		return c.decorate(broken(e, r.body, c.op), t.Addr)
	}
	return c.decorate(mongoerr.Wrap(mongoerr.StageDecode, err, "the reply could not be decoded"), t.Addr)
}

func encodeError(err error) error {
	if _, ok := err.(*mongoerr.Error); ok {
		return err
	}
	return mongoerr.Wrap(mongoerr.StageEncode, err, "")
}

var unacknowledgedReply = func() bson.Raw {
	doc, start := bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendInt32(doc, "ok", 1), start)
}()
