package operation

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/pool"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// commandMonitor tells the user's callbacks and the log of commands. With neither it costs two comparisons.
type commandMonitor struct {
	m        *event.Monitor
	active   bool
	log      *Log
	panicked func(callback string, value any)
}

// Log takes the records of the component command.
type Log struct {
	// Wants says whether commands are logged now. It must be quick.
	Wants func(context.Context) bool
	// Started, Succeeded and Failed log one event, on the caller's goroutine.
	Started   func(context.Context, *event.CommandStartedEvent)
	Succeeded func(context.Context, *event.CommandSucceededEvent)
	Failed    func(context.Context, *event.CommandFailedEvent)
}

func newCommandMonitor(o *Config) commandMonitor {
	m := o.Monitor
	active := m != nil && (m.CommandStarted != nil || m.CommandSucceeded != nil || m.CommandFailed != nil)
	return commandMonitor{m: m, active: active, log: o.Log, panicked: o.Panicked}
}

// watch is one command under observation. The zero value is none.
type watch struct {
	m         *event.Monitor // nil: no callbacks
	log       *Log           // nil: not logged
	panicked  func(callback string, value any)
	name, db  string
	request   int64
	operation int64
	server    string
	conn      int64
	theirs    int64
	service   *bson.ObjectID
	sensitive bool
	began     time.Time
}

// start tells of a command about to be sent.
func (cm *commandMonitor) start(ctx context.Context, c *call, pc *pool.Conn, msg []byte) watch {
	logged := cm.log != nil && cm.log.Wants(ctx)
	if !cm.active && !logged {
		return watch{}
	}
	parsed, err := wire.ParseMsg(msg)
	if err != nil {
		return watch{}
	}
	w := watch{
		panicked: cm.panicked, name: c.op.Name, db: c.op.DB, request: int64(parsed.RequestID), operation: c.id,
		server: pc.Address(), conn: pc.ID(), theirs: pc.ServerConnectionID(), service: pc.Service(),
		sensitive: sensitive(c.op.Name, parsed.Body), began: time.Now(),
	}
	if cm.active {
		w.m = cm.m
	}
	if logged {
		w.log = cm.log
	}
	w.started(ctx, parsed)
	return w
}

func (w *watch) started(ctx context.Context, msg wire.Msg) {
	told := w.m != nil && w.m.CommandStarted != nil
	if !told && w.log == nil {
		return
	}
	e := &event.CommandStartedEvent{
		Name: w.name, DB: w.db, Command: w.veil(wholeCommand(msg)), RequestID: w.request, OperationID: w.operation,
		Server: w.server, ConnectionID: w.conn, ServerConnectionID: w.theirs, ServiceID: w.service,
	}
	if w.log != nil {
		w.log.Started(ctx, e)
	}
	if told {
		w.guard("CommandStarted", func() { w.m.CommandStarted(ctx, e) })
	}
}

// end tells how it went.
func (w *watch) end(ctx context.Context, reply bson.Raw, err error) {
	switch {
	case w.m == nil && w.log == nil:
	case err == nil:
		w.succeeded(ctx, reply)
	default:
		w.failed(ctx, err)
	}
}

func (w *watch) succeeded(ctx context.Context, reply bson.Raw) {
	e := &event.CommandSucceededEvent{
		Name: w.name, DB: w.db, Reply: w.veil(reply), Duration: time.Since(w.began), RequestID: w.request, OperationID: w.operation,
		Server: w.server, ConnectionID: w.conn, ServerConnectionID: w.theirs, ServiceID: w.service,
	}
	if w.log != nil {
		w.log.Succeeded(ctx, e)
	}
	if w.m != nil && w.m.CommandSucceeded != nil {
		w.guard("CommandSucceeded", func() { w.m.CommandSucceeded(ctx, e) })
	}
}

func (w *watch) failed(ctx context.Context, err error) {
	e := &event.CommandFailedEvent{
		Name: w.name, DB: w.db, Err: w.veilError(err), Duration: time.Since(w.began), RequestID: w.request, OperationID: w.operation,
		Server: w.server, ConnectionID: w.conn, ServerConnectionID: w.theirs, ServiceID: w.service,
	}
	if w.log != nil {
		w.log.Failed(ctx, e)
	}
	if w.m != nil && w.m.CommandFailed != nil {
		w.guard("CommandFailed", func() { w.m.CommandFailed(ctx, e) })
	}
}

// guard keeps a callback's panic from the operation.
func (w *watch) guard(name string, callback func()) {
	defer func() {
		if v := recover(); v != nil && w.panicked != nil {
			w.panicked(name, v)
		}
	}()
	callback()
}

var emptyDocument = func() bson.Raw {
	doc, start := bson.BeginDocument(nil)
	return bson.EndDocument(doc, start)
}()

// veil hides the body of a command that may hold a secret, and of its reply.
func (w *watch) veil(doc bson.Raw) bson.Raw {
	if w.sensitive {
		return emptyDocument
	}
	return doc
}

// veilError keeps of a sensitive command's error what cannot repeat its arguments: codes and labels.
func (w *watch) veilError(err error) error {
	e, ok := err.(*mongoerr.Error)
	if !w.sensitive || !ok || e.Stage != mongoerr.StageServer && !mongoerr.IsMalformedReply(e) {
		return err
	}
	return &mongoerr.Error{Op: e.Op, NS: e.NS, Server: e.Server, Attempts: e.Attempts, Stage: e.Stage, Code: e.Code,
		CodeName: e.CodeName, Labels: e.Labels, Message: "the command failed"}
}

// sensitive says whether the specification "command logging and monitoring" forbids to show the command.
func sensitive(name string, body bson.Raw) bool {
	switch strings.ToLower(name) {
	case "authenticate", "saslstart", "saslcontinue", "getnonce", "createuser", "updateuser",
		"copydbgetnonce", "copydbsaslstart", "copydb":
		return true
	case "hello", "ismaster":
		return !body.Lookup("speculativeAuthenticate").IsZero()
	}
	return false
}

// wholeCommand puts document sequences back into the command as arrays.
func wholeCommand(m wire.Msg) bson.Raw {
	if len(m.Sequences) == 0 {
		return m.Body
	}
	doc := append(bson.Raw(nil), m.Body[:len(m.Body)-1]...)
	for _, s := range m.Sequences {
		var start int
		doc, start = bson.BeginArrayElement(doc, s.ID)
		for i, d := range s.Docs {
			doc = bson.AppendDocument(doc, indexKey(i), d)
		}
		doc = bson.EndDocument(doc, start)
	}
	return bson.EndDocument(doc, 0)
}

func indexKey(i int) string { return strconv.Itoa(i) }
