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

// opDocument shows one operation, of a large command only so much as whole says.
func (m *Member) opDocument(c *Conn, op *operation, now time.Time, whole bool) bson.D {
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
	if coll, ok := first.StringValueOK(); ok && len(coll) < maxShown { // a longer one is no collection's
		ns = op.db + "." + coll
	}
	took := now.Sub(op.begun)
	d = append(d, bson.E{Key: "active", Value: true}, bson.E{Key: "currentOpTime", Value: opTime(now)}, bson.E{Key: "opid", Value: op.id},
		bson.E{Key: "secs_running", Value: int64(took.Seconds())}, bson.E{Key: "microsecs_running", Value: took.Microseconds()},
		bson.E{Key: "op", Value: kind}, bson.E{Key: "ns", Value: ns}, bson.E{Key: "command", Value: redacted(op, whole)})
	if op.lsid != nil {
		d = append(d, bson.E{Key: "lsid", Value: slices.Clone(op.lsid)})
	}
	return d
}

// maxShown is how many bytes of a command are shown where it is not shown whole, as in a server.
const maxShown = 1000

// redacted is the command as others may see it: those that carry a password or a proof show their name only. Of a large one
// its text is shown in the place of the whole, and its comment; of a large comment, which a server shows whole, its text too:
// what somebody else runs must not make the answer too large.
func redacted(op *operation, whole bool) bson.Raw {
	switch op.name {
	case "saslStart", "saslContinue", "authenticate", "createUser", "updateUser", "hello", "isMaster", "ismaster":
		return document(bson.D{{Key: op.name, Value: "xxx"}})
	}
	if whole || len(op.body) <= maxShown {
		return slices.Clone(op.body)
	}
	d := bson.D{{Key: "$truncated", Value: value.PrintCut(bson.DocumentValue(op.body), maxShown)}}
	comment := op.body.Lookup("comment")
	switch {
	case comment.IsZero():
	case len(comment.Value) > maxShown:
		d = append(d, bson.E{Key: "comment", Value: value.PrintCut(comment, maxShown)})
	default:
		d = append(d, bson.E{Key: "comment", Value: comment})
	}
	return document(d)
}

func opTime(t time.Time) string { return t.Format("2006-01-02T15:04:05.000-07:00") }

// shown is what of the operations is to be seen: also of idle connections, also of other users, also large commands whole.
type shown struct{ idle, all, whole bool }

// ops are what $currentOp shows.
func (m *Member) ops(r *Request, want shown) (docs []bson.Raw) {
	now := time.Now()
	m.eachOp(func(c *Conn, op *operation) {
		if op == nil && !want.idle {
			return
		}
		if !want.all && !c.sameUser(r.Conn) {
			return
		}
		docs = append(docs, document(m.opDocument(c, op, now, want.whole)))
	})
	return docs
}

// sameUser says whether two connections are of the same user; without users, all are.
func (c *Conn) sameUser(other *Conn) bool { return c.desk.user == other.desk.user }

// runCurrentOp is the command that $currentOp has taken the place of. Its other fields are a filter, which is not served. It
// does not show large commands whole, save if test commands are enabled, which here they are, and that is asked for.
func runCurrentOp(_ context.Context, m *Member, r *Request) (bson.D, error) {
	want := shown{all: true}
	err := r.eachField(func(key string, v bson.RawValue) error {
		switch key {
		case "$all":
			want.idle = value.Truthy(v)
		case "$ownOps":
			want.all = !value.Truthy(v)
		case "$truncateOps":
			want.whole = !value.Truthy(v)
		default:
			return mongoerr.Server(mongoerr.CodeNotImplemented, "currentOp with a filter is not served: use the aggregation stage $currentOp and $match (field '%s')", key)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	reply := bson.D{{Key: "inprog", Value: arrayOf(m.ops(r, want))}}
	return reply, checkFits(document(reply))
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
