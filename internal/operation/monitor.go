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

// commandMonitor calls the user's command callbacks. Without callbacks it costs a comparison.
type commandMonitor struct {
	m      *event.Monitor
	active bool
}

func newCommandMonitor(m *event.Monitor) commandMonitor {
	active := m != nil && (m.CommandStarted != nil || m.CommandSucceeded != nil || m.CommandFailed != nil)
	return commandMonitor{m: m, active: active}
}

// watch is one command under observation. The zero value is none.
type watch struct {
	m         *event.Monitor
	name, db  string
	request   int64
	operation int64
	server    string
	conn      int64
	theirs    int64
	sensitive bool
	began     time.Time
}

// start tells of a command about to be sent.
func (cm commandMonitor) start(ctx context.Context, c *call, pc *pool.Conn, msg []byte) watch {
	if !cm.active {
		return watch{}
	}
	parsed, err := wire.ParseMsg(msg)
	if err != nil {
		return watch{}
	}
	w := watch{
		m: cm.m, name: c.op.Name, db: c.op.DB, request: int64(parsed.RequestID), operation: c.id,
		server: pc.Address(), conn: pc.ID(), theirs: pc.ServerConnectionID(),
		sensitive: sensitive(c.op.Name, parsed.Body), began: time.Now(),
	}
	if cm.m.CommandStarted != nil {
		guard(func() {
			cm.m.CommandStarted(ctx, &event.CommandStartedEvent{
				Name: w.name, DB: w.db, Command: w.veil(wholeCommand(parsed)), RequestID: w.request, OperationID: w.operation,
				Server: w.server, ConnectionID: w.conn, ServerConnectionID: w.theirs,
			})
		})
	}
	return w
}

// end tells how it went.
func (w watch) end(ctx context.Context, reply bson.Raw, err error) {
	if w.m == nil {
		return
	}
	took := time.Since(w.began)
	if err == nil && w.m.CommandSucceeded != nil {
		guard(func() {
			w.m.CommandSucceeded(ctx, &event.CommandSucceededEvent{
				Name: w.name, DB: w.db, Reply: w.veil(reply), Duration: took, RequestID: w.request, OperationID: w.operation,
				Server: w.server, ConnectionID: w.conn, ServerConnectionID: w.theirs,
			})
		})
	}
	if err != nil && w.m.CommandFailed != nil {
		guard(func() {
			w.m.CommandFailed(ctx, &event.CommandFailedEvent{
				Name: w.name, DB: w.db, Err: w.veilError(err), Duration: took, RequestID: w.request, OperationID: w.operation,
				Server: w.server, ConnectionID: w.conn, ServerConnectionID: w.theirs,
			})
		})
	}
}

// guard keeps a callback's panic from the operation.
func guard(callback func()) {
	defer func() { _ = recover() }()
	callback()
}

var emptyDocument = func() bson.Raw {
	doc, start := bson.BeginDocument(nil)
	return bson.EndDocument(doc, start)
}()

// veil hides the body of a command that may hold a secret, and of its reply.
func (w watch) veil(doc bson.Raw) bson.Raw {
	if w.sensitive {
		return emptyDocument
	}
	return doc
}

// veilError keeps of a sensitive command's error what cannot repeat its arguments: codes and labels.
func (w watch) veilError(err error) error {
	e, ok := err.(*mongoerr.Error)
	if !w.sensitive || !ok || e.Stage != mongoerr.StageServer {
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
