package command

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/store"
)

var writeCommands = []Spec{
	{Name: "insert", Flags: Writes | TakesTxnNumber, Handler: runInsert},
	{Name: "update", Flags: Writes | TakesTxnNumber, Handler: runUpdate},
	{Name: "delete", Flags: Writes | TakesTxnNumber, Handler: runDelete},
	{Name: "findAndModify", Aliases: []string{"findandmodify"}, Flags: Writes | TakesTxnNumber, Handler: runFindAndModify},
	{Name: "bulkWrite", Flags: AdminOnly | Writes | TakesTxnNumber, Handler: runBulkWrite},
}

// batch is what insert, update and delete have in common.
type batch struct {
	m         *Member
	r         *Request
	ns        string
	unordered bool
	bypass    bool
	let       bson.Raw
	stmtIDs   []int32
	now       time.Time

	// What the reply tells.
	n, modified int32
	upserted    []bson.D
	failed      failedWrites
}

// parseBatch reads the fields that the write commands share and gives the others to
// own. statements is the number of writes asked for.
func (m *Member) parseBatch(r *Request, field string, own func(key string, v bson.RawValue) error) (*batch, []bson.Raw, error) {
	coll, err := r.Collection()
	if err != nil {
		return nil, nil, err
	}
	b := &batch{m: m, r: r, ns: r.DB + "." + coll, now: time.Now()}
	err = r.eachField(func(key string, v bson.RawValue) error {
		var err error
		switch key {
		case field, "stmtIds", "$tenant", "isTimeseriesNamespace", "collectionUUID", "encryptionInformation", "maxTimeMSOpOnly":
		case "ordered":
			ordered, ok := v.BooleanOK()
			if !ok {
				return wrongField(r.Name, key, v, "bool")
			}
			b.unordered = !ordered
		case "bypassDocumentValidation":
			b.bypass, err = boolField(r.Name, key, v)
		case "let":
			if b.let, err = docField(r.Name, key, v); err == nil {
				b.let, err = evaluateLet(r.ctx, m, b.now, b.let)
			}
		default:
			return own(key, v)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	docs, err := r.statements(field)
	if err != nil {
		return nil, nil, err
	}
	if err := checkWritable(b.ns); err != nil {
		return nil, nil, err
	}
	return b, docs, b.parseStmtIDs(len(docs))
}

// statements are the documents of the command's list.
func (r *Request) statements(field string) ([]bson.Raw, error) {
	if _, isSequence := r.Docs[field]; !isSequence {
		v := r.Field(field)
		_, isDoc := v.DocumentOK()
		_, isArray := v.ArrayOK()
		if !v.IsZero() && !isDoc && !isArray {
			return nil, mongoerr.Server(10065, "invalid parameter: expected an object (%s)", field)
		}
		if isDoc { // an old client's array: the keys do not matter
			r.Docs = map[string][]bson.Raw{field: nil}
		}
	}
	docs, ok, err := r.Documents(field)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, missingField(r.Name, field)
	case len(docs) == 0 || len(docs) > maxBatch:
		return nil, mongoerr.Server(mongoerr.CodeInvalidLength, "Write batch sizes must be between 1 and %d. Got %d operations.", maxBatch, len(docs))
	}
	return docs, nil
}

// checkWritable refuses namespaces that no client may write to.
func checkWritable(ns string) error {
	if err := store.CheckNamespace(ns); err != nil {
		return err
	}
	coll := store.CollectionOf(ns)
	if ns == store.OplogNS || isSystem(coll) && !writableSystem[coll] {
		return mongoerr.Server(mongoerr.CodeInvalidNamespace, "cannot write to '%s'", ns)
	}
	return nil
}

func isSystem(coll string) bool { return len(coll) > 7 && coll[:7] == "system." }

var writableSystem = map[string]bool{
	"system.js": true, "system.users": true, "system.roles": true, "system.version": true, "system.views": true,
	"system.sessions": true, "system.buckets": true, "system.profile": true,
}

// execute runs the statements in one transaction. do makes the i-th write; retried
// counts one that was made before.
func (b *batch) execute(ctx context.Context, n int, do func(tx *store.Tx, i int) error, retried func(i int, out *store.Outcome) error) error {
	_, err := b.m.Write(ctx, b.r, func(tx *store.Tx) error {
		if b.bypass {
			tx.BypassValidation()
		}
		for i := range n {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			out, err := b.m.retried(tx, b.statement(i))
			switch {
			case err != nil:
				return err // the whole command is too old
			case out != nil:
				if err := retried(i, out); err != nil {
					return err
				}
				continue
			}
			tx.Statement(b.statement(i))
			if err := do(tx, i); err != nil {
				b.fail(i, err)
				if !b.unordered {
					break
				}
			}
		}
		return nil
	})
	return err
}

// fail records the error of one statement.
func (b *batch) fail(i int, err error) {
	e := serverError(b.r.ctx, err)
	message, _ := b.m.opt.Persona.words(e)
	b.failed.add(failedWrite{int32(i), e.Code, message, b.m.opt.Persona.details(e)})
}

// options are what the query language needs from outside.
func (b *batch) options() query.Options { return b.m.queryOptions(b.r.ctx, b.now, b.let) }

// queryOptions are what a statement or a read needs. Its meter ends what ctx ends.
func (m *Member) queryOptions(ctx context.Context, now time.Time, let bson.Raw) query.Options {
	return query.Options{Now: now, ClusterTime: m.Store.Latest().OpTime().TS, Let: let, ObjectID: bson.NewObjectID, Random: rand.Float64, Zone: zone,
		Dollars: m.opt.Persona.wire >= wire50, Strict: m.opt.Persona.wire >= wire44, Meter: &query.Meter{Alive: alive(ctx)}}
}

// alive says why nobody waits for an answer any longer.
func alive(ctx context.Context) func() (time.Duration, error) {
	deadline, limited := ctx.Deadline()
	return func() (time.Duration, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if !limited {
			return math.MaxInt64, nil
		}
		left := time.Until(deadline)
		if left <= 0 { // the context's own timer is late
			return 0, errMaxTime
		}
		return left, nil
	}
}

// zone finds an Olson time zone.
func zone(name string) (*time.Location, bool) {
	loc, err := time.LoadLocation(name)
	return loc, err == nil
}

// reply puts the counters, as far as the command has them, and the errors together.
func (b *batch) reply(update bool) bson.D {
	if w := b.r.WriteConcern; w.Given && w.W == 0 && w.Mode == "" {
		return nil // nobody wants to know
	}
	d := bson.D{{Key: "n", Value: b.n}}
	if update {
		d = append(d, bson.E{Key: "nModified", Value: b.modified})
	}
	room := store.MaxDocumentSize
	for _, u := range b.upserted {
		room -= bareUpsert + len(u[1].Value.(bson.RawValue).Value)
	}
	if len(b.upserted) > 0 {
		d = append(d, bson.E{Key: "upserted", Value: b.upserted})
	}
	if len(b.failed.list) > 0 {
		d = append(d, bson.E{Key: "writeErrors", Value: b.failed.documents(room)})
	}
	return append(d, b.m.writeTimes(b.r)...)
}

// writeTimes is the opTime of the write and the election of this primary, for the reply.
func (m *Member) writeTimes(r *Request) bson.D {
	op := r.wrote
	if op.IsZero() {
		op = m.Store.Latest().OpTime()
	}
	return bson.D{{Key: "opTime", Value: op.Document()}, {Key: "electionId", Value: electionID(m.state.Load().Term)}}
}

// runInsert inserts documents. It does not check document validation of level
// "moderate" apart from "strict": an insert is held to both alike.
func runInsert(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	b, docs, err := m.parseBatch(r, "documents", func(key string, _ bson.RawValue) error { return unknownField(r.Name, key) })
	if err != nil {
		return nil, err
	}
	err = b.execute(ctx, len(docs), func(tx *store.Tx, i int) error { return b.insert(tx, docs[i]) },
		b.retried)
	if err != nil {
		return nil, err
	}
	return b.reply(false), nil
}

func (b *batch) insert(tx *store.Tx, doc bson.Raw) error {
	doc, err := store.PrepareInsert(doc, bson.NewObjectID, bson.Timestamp{T: uint32(b.now.Unix()), I: 1})
	if err != nil {
		return err
	}
	if _, err := tx.Insert(b.ns, doc); err != nil {
		return err
	}
	b.n++
	return nil
}
