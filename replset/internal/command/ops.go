package command

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

var opCommands = []Spec{
	{Name: "currentOp", Flags: AdminOnly, Handler: runCurrentOp},
	{Name: "killOp", Flags: AdminOnly, Handler: runKillOp},
}

// operation is what a connection is busy with.
type operation struct {
	id    int32
	name  string
	db    string
	body  bson.Raw // of the request's buffer: valid until the operation ends
	lsid  bson.Raw
	begun time.Time
	kill  context.CancelCauseFunc
}

// desk is where a connection's operation lies for others to see.
type desk struct {
	mu   sync.Mutex // guards all below
	op   *operation
	user string // who has logged in, as database.name
	app  string // the client application
}

func (d *desk) seat(user, app string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.user, d.app = user, app
}

func (d *desk) put(op *operation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.op = op
}

// errKilled is what a command is answered that killOp has ended.
var errKilled = mongoerr.Server(mongoerr.CodeInterrupted, "operation was interrupted")

// begin makes the request one that can be seen and killed, until end.
func (m *Member) begin(r *Request) (end func()) {
	ctx, kill := context.WithCancelCause(r.ctx)
	r.ctx = ctx
	r.Conn.desk.put(&operation{id: m.lastOp.Add(1), name: r.Name, db: r.DB, body: r.Body, lsid: r.LSID, begun: time.Now(), kill: kill})
	return func() {
		r.Conn.desk.put(nil)
		kill(nil)
	}
}

// eachOp calls f with each connection and its operation, nil if it has none, which lasts as long as the call.
func (m *Member) eachOp(f func(*Conn, *operation)) {
	m.mu.Lock()
	conns := make([]*Conn, 0, len(m.conns))
	for c := range m.conns {
		conns = append(conns, c)
	}
	m.mu.Unlock()
	slices.SortFunc(conns, func(a, b *Conn) int { return int(a.ID - b.ID) })
	for _, c := range conns {
		c.desk.mu.Lock()
		f(c, c.desk.op)
		c.desk.mu.Unlock()
	}
}

// opNames are the server's names for what a command is; all others are "command".
var opNames = map[string]string{"find": "query", "getMore": "getmore", "insert": "insert", "update": "update", "delete": "remove"}

// opDocument shows one operation.
func (m *Member) opDocument(c *Conn, op *operation, now time.Time) bson.D {
	d := bson.D{{Key: "type", Value: "op"}, {Key: "host", Value: m.Addr()}, {Key: "desc", Value: "conn" + indexKey(int(c.ID))},
		{Key: "connectionId", Value: c.ID}, {Key: "client", Value: c.nc.RemoteAddr().String()}, {Key: "appName", Value: c.desk.app}}
	if op == nil {
		return append(d, bson.E{Key: "active", Value: false}, bson.E{Key: "currentOpTime", Value: opTime(now)})
	}
	kind, ns := opNames[op.name], op.db+".$cmd"
	if kind == "" {
		kind = "command"
	}
	first := op.body.Index(0).Value()
	if op.name == "getMore" {
		first = op.body.Lookup("collection")
	}
	if coll, ok := first.StringValueOK(); ok {
		ns = op.db + "." + coll
	}
	took := now.Sub(op.begun)
	d = append(d, bson.E{Key: "active", Value: true}, bson.E{Key: "currentOpTime", Value: opTime(now)}, bson.E{Key: "opid", Value: op.id},
		bson.E{Key: "secs_running", Value: int64(took.Seconds())}, bson.E{Key: "microsecs_running", Value: took.Microseconds()},
		bson.E{Key: "op", Value: kind}, bson.E{Key: "ns", Value: ns}, bson.E{Key: "command", Value: redacted(op)})
	if op.lsid != nil {
		d = append(d, bson.E{Key: "lsid", Value: slices.Clone(op.lsid)})
	}
	return d
}

// redacted is the command as others may see it: those that carry a password or a proof show their name only.
func redacted(op *operation) bson.Raw {
	switch op.name {
	case "saslStart", "saslContinue", "authenticate", "createUser", "updateUser", "hello", "isMaster", "ismaster":
		return document(bson.D{{Key: op.name, Value: "xxx"}})
	}
	return slices.Clone(op.body)
}

func opTime(t time.Time) string { return t.Format("2006-01-02T15:04:05.000-07:00") }

// ops are what $currentOp shows: of idle connections only if they are asked for, and of other users' with all.
func (m *Member) ops(r *Request, idle, all bool) (docs []bson.Raw) {
	now := time.Now()
	m.eachOp(func(c *Conn, op *operation) {
		if op == nil && !idle {
			return
		}
		if !all && !c.sameUser(r.Conn) {
			return
		}
		docs = append(docs, document(m.opDocument(c, op, now)))
	})
	return docs
}

// sameUser says whether two connections are of the same user; without users, all are.
func (c *Conn) sameUser(other *Conn) bool { return c.desk.user == other.desk.user }

// runCurrentOp is the command that $currentOp has taken the place of. Its other fields are a filter, which is not served.
func runCurrentOp(_ context.Context, m *Member, r *Request) (bson.D, error) {
	var idle, own bool
	err := r.eachField(func(key string, v bson.RawValue) error {
		switch key {
		case "$all":
			idle = value.Truthy(v)
		case "$ownOps":
			own = value.Truthy(v)
		default:
			return mongoerr.Server(mongoerr.CodeNotImplemented, "currentOp with a filter is not served: use the aggregation stage $currentOp and $match (field '%s')", key)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return bson.D{{Key: "inprog", Value: arrayOf(m.ops(r, idle, !own))}}, nil
}

// runKillOp ends an operation as maxTimeMS would, with code 11601. That there is no such one is no error.
func runKillOp(_ context.Context, m *Member, r *Request) (bson.D, error) {
	v := r.Field("op")
	if v.IsZero() {
		return nil, mongoerr.Server(mongoerr.CodeNoSuchKey, `Missing expected field "op"`)
	}
	id, ok := truncated(v)
	if !ok {
		return nil, mongoerr.Server(mongoerr.CodeTypeMismatch, `Expected field "op" to have numeric type, but found %s`, bsonName(v.Type))
	}
	m.eachOp(func(_ *Conn, op *operation) {
		if op != nil && int64(op.id) == id {
			op.kill(errKilled)
		}
	})
	return bson.D{{Key: "info", Value: "attempting to kill op"}}, nil
}
