package command

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/repl"
)

// commandTable joins the families. A name that two families claim is a programmer's error and found by the tests.
func commandTable() map[string]*Spec {
	table := map[string]*Spec{}
	for _, family := range [][]Spec{
		helloCommands, replCommands, sessionCommands, authCommands, userCommands, failPointCommands, diagnosticCommands,
		writeCommands, readCommands, cursorCommands, catalogCommands, opCommands, upkeepCommands,
	} {
		for i := range family {
			table[family[i].Name] = &family[i]
			for _, alias := range family[i].Aliases {
				table[alias] = &family[i]
			}
		}
	}
	return table
}

// reply is what a command came to.
type reply struct {
	doc    bson.D
	err    *mongoerr.Error
	wce    *mongoerr.WriteConcernError
	labels []string
	forced bson.Raw // a fail point's writeConcernError
	own    bool     // labels are a fail point's, in place of the dispatcher's own
	staged bool     // err is a fail point's: nothing has changed, so it tells no topologyVersion
	drop   bool     // close the connection without a reply
}

func refuse(err *mongoerr.Error) reply { return reply{err: err} }

// run runs one command from the lookup of its name to the write concern.
func (m *Member) run(r *Request) reply {
	spec, ok := m.table[r.Name]
	if !ok {
		return refuse(mongoerr.Server(mongoerr.CodeCommandNotFound, "no such command: '%s'", r.Name))
	}
	r.Spec = spec
	if err := r.parseGeneric(); err != nil {
		return refuse(serverError(r.ctx, err))
	}
	m.clock.gossip(r.Body.Lookup("$clusterTime", "clusterTime"))
	if err := m.admit(r); err != nil {
		return refuse(serverError(r.ctx, err))
	}
	if !r.Field("help").IsZero() && value.Truthy(r.Field("help")) {
		return reply{doc: bson.D{{Key: "help", Value: spec.help()}}}
	}
	if err := m.checkFields(r); err != nil {
		return refuse(serverError(r.ctx, err))
	}
	defer m.begin(r)()
	if r.MaxTimeMS > 0 && spec.Flags&Awaits == 0 {
		ctx, cancel := context.WithTimeoutCause(r.ctx, time.Duration(r.MaxTimeMS)*time.Millisecond, errMaxTime)
		defer cancel()
		r.ctx = ctx
	}
	m.opt.Counters.add(r.Conn.App, r.Name)
	m.sessions.touch(r.LSID)
	hit := m.failPoints.match(r)
	if hit != nil {
		if stop, rep := hit.before(r); stop {
			return rep
		}
	}
	doc, err := m.call(spec, r)
	rep := reply{doc: r.tellMoment(doc), drop: r.cut}
	if err != nil {
		rep.err = serverError(r.ctx, err)
	}
	if spec.Flags&Writes != 0 && (err == nil || !r.wrote.IsZero()) {
		rep.wce = m.afterWrite(r)
	}
	if hit != nil {
		hit.after(&rep)
	}
	if m.opt.Misbehave == LostWrite && r.Conn.internal && r.Name == "getMore" {
		pause(r.ctx, time.Now().Add(lateBy))
	}
	return rep
}

// lateBy is how much later the others get what a member that loses writes has acknowledged.
const lateBy = 50 * time.Millisecond

// admit holds a command to the database, the authentication and the role that it needs.
func (m *Member) admit(r *Request) error {
	switch {
	case r.DB == "" && r.Field("$db").IsZero():
		return mongoerr.Server(40571, "OP_MSG requests require a $db argument")
	case r.DB == "" && r.Field("$db").Type != bson.TypeString:
		return mongoerr.Server(13111, "wrong type for field ($db) %s != string", value.TypeName(r.Field("$db").Type))
	case !validDatabase(r.DB) && !(r.DB == external && r.Spec.Flags&OnExternal != 0):
		return mongoerr.Server(mongoerr.CodeInvalidNamespace, "Invalid database name: '%s'", r.DB)
	case r.Spec.Flags&AdminOnly != 0 && r.DB != "admin":
		return mongoerr.Server(mongoerr.CodeUnauthorized, "%s may only be run against the admin database.", r.Name)
	case r.Spec.Flags&BeforeAuth == 0 && !m.authenticated(r.Conn):
		return mongoerr.Server(mongoerr.CodeUnauthorized, "Command %s requires authentication", r.Name)
	case m.checkTxnNumber(r) != nil:
		return m.checkTxnNumber(r)
	case r.ReadConcern.Level != "local" && r.ReadConcern.Level != "available" && r.Spec.Flags&TakesReadConcern == 0:
		return mongoerr.Server(mongoerr.CodeInvalidOptions, "Command %s does not support { readConcern: { level: \"%s\" } }", r.Name, r.ReadConcern.Level)
	case r.WriteConcern.Given && r.Spec.Flags&Writes == 0 && r.Name != "aggregate":
		return mongoerr.Server(mongoerr.CodeInvalidOptions, "Command does not support writeConcern")
	case m.closing():
		return mongoerr.Server(mongoerr.CodeShutdownInProgress, "The server is in quiesce mode and will shut down")
	}
	if err := checkAPI(r); err != nil {
		return err
	}
	return m.checkRole(r)
}

// checkRole refuses writes on what is no primary, and reads where they may not be answered.
func (m *Member) checkRole(r *Request) error {
	st := m.state.Load()
	switch {
	case r.Spec.Flags&Writes != 0 && !st.Writable && r.DB != "local":
		return notPrimary()
	case r.Spec.Flags&Reads == 0 || st.Writable || r.Conn.internal || r.DB == "local":
		return nil
	case !r.SecondaryOK() && !(st.Role == repl.RolePrimary):
		return mongoerr.Server(mongoerr.CodeNotPrimaryNoSecondaryOk, "not primary and secondaryOk=false")
	case st.Role == repl.RoleSecondary || st.Role == repl.RolePrimary:
		return nil
	case st.Role == repl.RoleRecover && strings.HasPrefix(r.Spec.Name, "list"):
		return nil // what there is may be listed, only not read
	case st.Role == repl.RoleRecover:
		return mongoerr.Server(mongoerr.CodeNotPrimaryOrSecondary, "node is recovering")
	}
	return mongoerr.Server(mongoerr.CodeNotPrimaryOrSecondary, "node is not in primary or recovering state")
}

func notPrimary() *mongoerr.Error {
	return mongoerr.Server(mongoerr.CodeNotWritablePrimary, "not primary")
}

// checkAPI knows version 1 of the Stable API only.
func checkAPI(r *Request) error {
	v := r.Field("apiVersion")
	if v.IsZero() {
		for _, key := range []string{"apiStrict", "apiDeprecationErrors"} {
			if !r.Field(key).IsZero() {
				return mongoerr.Server(4886600, "Provided %s without passing apiVersion", key)
			}
		}
		return nil
	}
	if s, _ := v.StringValueOK(); s != "1" {
		return mongoerr.Server(322, "API version must be \"1\"")
	}
	return checkStrict(r)
}

// call runs the handler. A panic in it costs the command, not the process.
func (m *Member) call(spec *Spec, r *Request) (doc bson.D, err error) {
	defer func() {
		if p := recover(); p != nil {
			m.log.Error("a command panicked", "command", spec.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			doc, err = nil, mongoerr.Server(mongoerr.CodeInternalError, "the command %s failed inside the server: %v", spec.Name, p)
		}
	}()
	return spec.Handler(r.ctx, m, r)
}

// The reasons for which a command's context ends.
var (
	errMaxTime  = mongoerr.Server(mongoerr.CodeMaxTimeMSExpired, "operation exceeded time limit")
	errShutdown = mongoerr.Server(mongoerr.CodeInterruptedAtShutdown, "interrupted at shutdown")
	errHungUp   = mongoerr.Server(279, "the client closed the connection")
)

// serverError is err as a server's error; a context's end is told by its cause.
func serverError(ctx context.Context, err error) *mongoerr.Error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
	}
	if e, ok := errors.AsType[*mongoerr.Error](err); ok {
		return e
	}
	return mongoerr.Server(mongoerr.CodeInternalError, "%v", err)
}

// validDatabase refuses what no database may be called.
func validDatabase(db string) bool {
	return db != "" && len(db) < 64 && !strings.ContainsAny(db, "/\\. \"$\x00")
}
