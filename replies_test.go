package sextant_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// liar is a server on pipes. Hellos, and what closes cursors and sessions, it answers well; all else as it is told to.
type liar struct {
	mu    sync.Mutex // guards what follows
	reply func(name string) bson.Raw
	asked []bson.Raw // commands since the last lie
	dials int

	service bson.ObjectID // behind a load balancer; zero: it is not
}

const liarAddr = "liar:27017"

func (l *liar) dial(_ context.Context, _, _ string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dials++
	client, server := net.Pipe()
	go l.serve(server)
	return client, nil
}

// say sets what the commands from now on are answered with.
func (l *liar) say(reply func(name string) bson.Raw) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reply, l.asked = reply, nil
}

// heard are the commands of a name since say.
func (l *liar) heard(name string) (found []bson.Raw) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.asked {
		if m.Lookup(name).Type != 0 {
			found = append(found, m)
		}
	}
	return found
}

func (l *liar) dialled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dials
}

func (l *liar) serve(sock net.Conn) {
	defer sock.Close()
	for {
		msg, err := nextCommand(sock)
		if err != nil {
			return
		}
		dst, start := wire.AppendMsgStart(nil, 1, msg.RequestID, 0)
		if _, err := sock.Write(wire.EndMsg(append(dst, l.answer(msg.Body)...), start)); err != nil {
			return
		}
	}
}

func (l *liar) answer(m bson.Raw) bson.Raw {
	name := ""
	for name = range m.All() {
		break
	}
	switch name {
	case "hello", "isMaster":
		hello := bson.D{{Key: "isWritablePrimary", Value: true}, {Key: "helloOk", Value: true}, {Key: "maxWireVersion", Value: 21},
			{Key: "logicalSessionTimeoutMinutes", Value: 30}, {Key: "ok", Value: 1}}
		if !l.service.IsZero() {
			hello = append(hello, bson.E{Key: "msg", Value: "isdbgrid"}, bson.E{Key: "serviceId", Value: l.service})
		}
		return raw(hello)
	case "killCursors", "endSessions":
		l.mu.Lock()
		defer l.mu.Unlock()
		l.asked = append(l.asked, m.Clone())
		return raw(bson.D{{Key: "ok", Value: 1}})
	}
	l.mu.Lock()
	l.asked = append(l.asked, m.Clone())
	reply := l.reply
	l.mu.Unlock()
	return reply(name)
}

func raw(d bson.D) bson.Raw {
	b, err := bson.Marshal(d)
	if err != nil {
		panic(err)
	}
	return b
}

func lieTo(t testing.TB) (*liar, *sextant.Database) {
	l := &liar{reply: func(string) bson.Raw { return raw(bson.D{{Key: "ok", Value: 1}}) }}
	cl := connect(t, "mongodb://"+liarAddr+"/?directConnection=true&maxPoolSize=1&serverMonitoringMode=poll&heartbeatFrequencyMS=3600000",
		func(c *sextant.Config) { c.Dial = l.dial })
	return l, cl.Database("d")
}

func cursorDoc(id any, ns any, batch string, docs any) bson.D {
	return bson.D{{Key: "id", Value: id}, {Key: "ns", Value: ns}, {Key: batch, Value: docs}}
}

// wellSaid are replies as servers give them.
func wellSaid(name string) bson.D {
	ok := bson.E{Key: "ok", Value: 1.0}
	switch name {
	case "insert3":
		return bson.D{{Key: "n", Value: 3}, ok}
	case "insert":
		return bson.D{{Key: "n", Value: 1}, ok}
	case "update":
		return bson.D{{Key: "n", Value: 1}, {Key: "nModified", Value: 1}, ok}
	case "delete", "count":
		return bson.D{{Key: "n", Value: 1}, ok}
	case "findAndModify":
		return bson.D{{Key: "lastErrorObject", Value: bson.D{{Key: "n", Value: 1}, {Key: "updatedExisting", Value: true}}}, {Key: "value", Value: bson.D{{Key: "a", Value: 1}}}, ok}
	case "distinct":
		return bson.D{{Key: "values", Value: bson.A{1, 2}}, ok}
	case "listDatabases":
		return bson.D{{Key: "databases", Value: bson.A{bson.D{{Key: "name", Value: "d"}, {Key: "sizeOnDisk", Value: 5.0}, {Key: "empty", Value: false}}}}, {Key: "totalSize", Value: 5}, ok}
	case "find", "aggregate":
		return bson.D{{Key: "cursor", Value: cursorDoc(int64(0), "d.c", "firstBatch", bson.A{bson.D{{Key: "n", Value: 4}}})}, ok}
	case "listCollections":
		return bson.D{{Key: "cursor", Value: cursorDoc(int64(0), "d.$cmd.listCollections", "firstBatch", bson.A{bson.D{{Key: "name", Value: "c"}, {Key: "type", Value: "collection"}}})}, ok}
	case "listIndexes":
		return bson.D{{Key: "cursor", Value: cursorDoc(int64(0), "d.c", "firstBatch", bson.A{bson.D{{Key: "v", Value: 2}, {Key: "key", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "name", Value: "_id_"}}})}, ok}
	}
	return bson.D{ok}
}

// operation is one call of the API; counts are the numbers that it returned.
type operation struct {
	name    string // of the call
	command string // that it sends
	good    string // whose reply of wellSaid it is
	writes  bool
	run     func(ctx context.Context, db *sextant.Database) (counts []int64, err error)
}

func updated(r *sextant.UpdateResult, err error) ([]int64, error) {
	if r == nil {
		return nil, err
	}
	return []int64{r.MatchedCount, r.ModifiedCount, r.UpsertedCount}, err
}

func deleted(r *sextant.DeleteResult, err error) ([]int64, error) {
	if r == nil {
		return nil, err
	}
	return []int64{r.DeletedCount}, err
}

func inserted(r *sextant.InsertManyResult, err error) ([]int64, error) {
	if r == nil {
		return nil, err
	}
	return []int64{r.InsertedCount}, err
}

func bulked(r *sextant.BulkWriteResult, err error) ([]int64, error) {
	if r == nil {
		return nil, err
	}
	return []int64{r.InsertedCount, r.MatchedCount, r.ModifiedCount, r.UpsertedCount, r.DeletedCount, int64(len(r.UpsertedIDs))}, err
}

func walked[T any](ctx context.Context, cur *sextant.Cursor[T], err error) ([]int64, error) {
	if err != nil {
		return nil, err
	}
	all, err := cur.All(ctx)
	return []int64{int64(len(all)), int64(cur.RemainingBatch())}, err
}

func none[T any](_ T, err error) ([]int64, error)   { return nil, err }
func number(n int64, err error) ([]int64, error)    { return []int64{n}, err }
func many[T any](l []T, err error) ([]int64, error) { return []int64{int64(len(l))}, err }

// operations is every call that reads a reply.
func operations() []operation {
	type ctx = context.Context
	type db = *sextant.Database
	all, one, set := bson.D{}, bson.D{{Key: "a", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}
	three, unordered := []bson.D{{}, {}, {}}, sextant.InsertManyOptions{Ordered: new(bool)}
	return []operation{
		{"InsertOne", "insert", "insert", true, func(x ctx, d db) ([]int64, error) { return none(d.Collection("c").InsertOne(x, all)) }},
		{"InsertMany", "insert", "insert3", true, func(x ctx, d db) ([]int64, error) { return inserted(d.Collection("c").InsertMany(x, three)) }},
		{"InsertMany unordered", "insert", "insert3", true, func(x ctx, d db) ([]int64, error) {
			return inserted(d.Collection("c").InsertMany(x, three, unordered))
		}},
		{"UpdateOne", "update", "update", true, func(x ctx, d db) ([]int64, error) { return updated(d.Collection("c").UpdateOne(x, all, set)) }},
		{"UpdateMany", "update", "update", true, func(x ctx, d db) ([]int64, error) { return updated(d.Collection("c").UpdateMany(x, all, set)) }},
		{"ReplaceOne", "update", "update", true, func(x ctx, d db) ([]int64, error) { return updated(d.Collection("c").ReplaceOne(x, all, one)) }},
		{"DeleteOne", "delete", "delete", true, func(x ctx, d db) ([]int64, error) { return deleted(d.Collection("c").DeleteOne(x, all)) }},
		{"DeleteMany", "delete", "delete", true, func(x ctx, d db) ([]int64, error) { return deleted(d.Collection("c").DeleteMany(x, all)) }},
		{"BulkWrite of inserts", "insert", "insert3", true, func(x ctx, d db) ([]int64, error) {
			return bulked(d.Collection("c").BulkWrite(x, models{insertOf(all), insertOf(all), insertOf(all)}))
		}},
		{"BulkWrite of an update", "update", "update", true, func(x ctx, d db) ([]int64, error) {
			return bulked(d.Collection("c").BulkWrite(x, models{sextant.UpdateOneModel{Filter: all, Update: set}}))
		}},
		{"BulkWrite of a delete", "delete", "delete", true, func(x ctx, d db) ([]int64, error) {
			return bulked(d.Collection("c").BulkWrite(x, models{sextant.DeleteOneModel{Filter: all}}, sextant.BulkWriteOptions{Ordered: new(false)}))
		}},
		{"FindOneAndUpdate", "findAndModify", "findAndModify", true, func(x ctx, d db) ([]int64, error) {
			return none(d.Collection("c").FindOneAndUpdate(x, all, set))
		}},
		{"FindOneAndReplace", "findAndModify", "findAndModify", true, func(x ctx, d db) ([]int64, error) {
			return none(d.Collection("c").FindOneAndReplace(x, all, one))
		}},
		{"FindOneAndDelete", "findAndModify", "findAndModify", true, func(x ctx, d db) ([]int64, error) { return none(d.Collection("c").FindOneAndDelete(x, all)) }},
		{"Find", "find", "find", false, func(x ctx, d db) ([]int64, error) {
			cur, err := d.Collection("c").Find(x, all)
			return walked(x, cur, err)
		}},
		{"FindOne", "find", "find", false, func(x ctx, d db) ([]int64, error) { return none(d.Collection("c").FindOne(x, all)) }},
		{"Aggregate", "aggregate", "aggregate", false, func(x ctx, d db) ([]int64, error) {
			cur, err := sextant.Aggregate[bson.D](x, d.Collection("c"), []bson.D{})
			return walked(x, cur, err)
		}},
		{"Aggregate with $out", "aggregate", "aggregate", true, func(x ctx, d db) ([]int64, error) {
			cur, err := sextant.Aggregate[bson.D](x, d.Collection("c"), []bson.D{{{Key: "$out", Value: "o"}}})
			return walked(x, cur, err)
		}},
		{"AggregateDatabase", "aggregate", "aggregate", false, func(x ctx, d db) ([]int64, error) {
			cur, err := sextant.AggregateDatabase[bson.D](x, d, []bson.D{})
			return walked(x, cur, err)
		}},
		{"CountDocuments", "aggregate", "aggregate", false, func(x ctx, d db) ([]int64, error) { return number(d.Collection("c").CountDocuments(x, all)) }},
		{"EstimatedDocumentCount", "count", "count", false, func(x ctx, d db) ([]int64, error) { return number(d.Collection("c").EstimatedDocumentCount(x)) }},
		{"Distinct", "distinct", "distinct", false, func(x ctx, d db) ([]int64, error) { return many(sextant.Distinct[any](x, d.Collection("c"), "a", all)) }},
		{"ListDatabases", "listDatabases", "listDatabases", false, func(x ctx, d db) ([]int64, error) {
			r, err := d.Client().ListDatabases(x, all)
			if err != nil {
				return nil, err
			}
			counts := []int64{r.TotalSize}
			for _, i := range r.Databases {
				counts = append(counts, i.SizeOnDisk)
			}
			return counts, nil
		}},
		{"ListDatabaseNames", "listDatabases", "listDatabases", false, func(x ctx, d db) ([]int64, error) { return many(d.Client().ListDatabaseNames(x, all)) }},
		{"ListCollections", "listCollections", "listCollections", false, func(x ctx, d db) ([]int64, error) { return many(d.ListCollections(x, all)) }},
		{"ListCollectionNames", "listCollections", "listCollections", false, func(x ctx, d db) ([]int64, error) { return many(d.ListCollectionNames(x, all)) }},
		{"ListIndexes", "listIndexes", "listIndexes", false, func(x ctx, d db) ([]int64, error) { return many(d.Collection("c").ListIndexes(x)) }},
		{"CreateIndex", "createIndexes", "", true, func(x ctx, d db) ([]int64, error) {
			return none(d.Collection("c").CreateIndex(x, sextant.IndexModel{Keys: one}))
		}},
		{"DropIndex", "dropIndexes", "", true, func(x ctx, d db) ([]int64, error) { return nil, d.Collection("c").DropIndex(x, "a_1") }},
		{"CreateCollection", "create", "", true, func(x ctx, d db) ([]int64, error) { return nil, d.CreateCollection(x, "c") }},
		{"Drop", "drop", "", true, func(x ctx, d db) ([]int64, error) { return nil, d.Collection("c").Drop(x) }},
		{"DropDatabase", "dropDatabase", "", true, func(x ctx, d db) ([]int64, error) { return nil, d.Drop(x) }},
		{"RunCommand", "ping", "", false, func(x ctx, d db) ([]int64, error) { return none(d.RunCommand(x, bson.D{{Key: "ping", Value: 1}})) }},
		{"RunCommandCursor", "find", "find", false, func(x ctx, d db) ([]int64, error) {
			cur, err := sextant.RunCommandCursor[bson.D](x, d, bson.D{{Key: "find", Value: "c"}})
			return walked(x, cur, err)
		}},
	}
}

// missing as a value takes the field away.
type missing struct{}

// with is the document with the field at a path replaced, added in front, or taken away.
func with(d bson.D, path string, v any) bson.D {
	key, rest, deeper := strings.Cut(path, ".")
	out := slices.Clone(d)
	i := slices.IndexFunc(out, func(e bson.E) bool { return e.Key == key })
	if deeper {
		switch x := out[i].Value.(type) {
		case bson.A:
			out[i].Value = bson.A{with(x[0].(bson.D), strings.TrimPrefix(rest, "0."), v)}
		case bson.D:
			out[i].Value = with(x, rest, v)
		}
		return out
	}
	switch _, gone := v.(missing); {
	case gone && i < 0:
		return out
	case gone:
		return slices.Delete(out, i, i+1)
	case i >= 0:
		out[i].Value = v
		return out
	}
	return append(bson.D{{Key: key, Value: v}}, out...)
}

// lie is a field with a value that no server gives it, in the replies to some commands; names begin those of calls.
type lie struct {
	of    []string // the commands, or the calls; nil: all
	field string
	value any
	says  string // the path that the error names; empty: field
}

func (l *lie) about(o *operation) bool {
	return l.of == nil || slices.Contains(l.of, o.command) || slices.Contains(l.of, o.name)
}

func lies() (all []lie) {
	tell := func(of []string, field, says string, values ...any) {
		for _, v := range values {
			all = append(all, lie{of, field, v, says})
		}
	}
	failure := func(index any) bson.A {
		return bson.A{bson.D{{Key: "index", Value: index}, {Key: "code", Value: 11000}, {Key: "errmsg", Value: "x"}}}
	}
	big := int64(1) << 40
	tell(nil, "ok", "", missing{}, "1", math.NaN(), -1, 2, nil, bson.D{})
	tell(nil, "writeErrors", "", 5, nil, "x", bson.D{})
	tell(nil, "writeErrors", "writeErrors.0", bson.A{5}, bson.A{nil})
	tell(nil, "writeErrors", "writeErrors.0.index", bson.A{bson.D{}}, failure(-1), failure("0"), failure(0.5), failure(big), failure(nil))
	tell(nil, "writeErrors", "writeErrors.0.code", bson.A{bson.D{{Key: "index", Value: 0}}}, bson.A{bson.D{{Key: "index", Value: 0}, {Key: "code", Value: "x"}}},
		bson.A{bson.D{{Key: "index", Value: 0}, {Key: "code", Value: big}}})
	tell(nil, "writeErrors", "writeErrors.1.index", append(failure(0), failure(0)...))
	tell(nil, "writeConcernError", "", 7, nil, "x", bson.A{})
	tell(nil, "writeConcernError", "writeConcernError.code", bson.D{}, bson.D{{Key: "code", Value: "x"}}, bson.D{{Key: "code", Value: 64.5}}, bson.D{{Key: "errmsg", Value: 5}})
	statements := []string{"insert", "update", "delete"}
	tell(statements, "writeErrors", "writeErrors.0.index", failure(3), failure(99))
	tell(statements, "writeErrors", ".index", slices.Concat(failure(0), failure(1), failure(2), failure(3)))
	tell(append(statements, "count"), "n", "", missing{}, -5, "x", nil, 1.5, math.NaN(), 1e300)
	tell([]string{"insert"}, "n", "", 0, 4, int64(1)<<40)
	tell([]string{"update"}, "nModified", "", -1, 2, "x", nil, math.Inf(1))
	tell([]string{"update"}, "upserted", "", 7, nil, bson.D{})
	tell([]string{"update"}, "upserted", "upserted", bson.A{bson.D{{Key: "index", Value: 0}, {Key: "_id", Value: 1}}, bson.D{{Key: "index", Value: 0}, {Key: "_id", Value: 1}}})
	tell([]string{"update"}, "upserted", "upserted.0", bson.A{7})
	tell([]string{"update"}, "upserted", "upserted.0.index", bson.A{bson.D{}}, bson.A{bson.D{{Key: "index", Value: 50}, {Key: "_id", Value: 1}}}, bson.A{bson.D{{Key: "index", Value: -1}, {Key: "_id", Value: 1}}})
	tell([]string{"update"}, "upserted", "upserted.0._id", bson.A{bson.D{{Key: "index", Value: 0}}})
	tell([]string{"findAndModify"}, "value", "", missing{}, 5, "x", bson.A{}, false)
	tell([]string{"distinct"}, "values", "", missing{}, 5, nil, bson.D{})
	tell([]string{"CountDocuments"}, "cursor.firstBatch.0.n", "", missing{}, -1, "x", 0.5, nil)
	cursors := []string{"find", "aggregate", "listCollections", "listIndexes"}
	tell(cursors, "cursor", "", missing{}, 5, nil, bson.A{})
	tell(cursors, "cursor.id", "", missing{}, "x", nil, 0.5, math.NaN())
	tell(cursors, "cursor.ns", "", 7, bson.D{}, nil)
	tell(cursors, "cursor.firstBatch", "", missing{}, 5, nil, bson.D{})
	tell(cursors, "cursor.firstBatch", "cursor.firstBatch.1", bson.A{bson.D{}, 2}, bson.A{bson.D{}, nil})
	for _, ns := range []any{missing{}, "", "dc", "d.", ".c", "admin.system.users", "D.c", nil, 7} {
		all = append(all, lie{cursors, "cursor", with(cursorDoc(int64(5), "", "firstBatch", bson.A{}), "ns", ns), "cursor.ns"})
	}
	tell([]string{"listDatabases"}, "databases", "", missing{}, 5, nil, bson.D{})
	tell([]string{"listDatabases"}, "databases", "databases.0", bson.A{5}, bson.A{nil})
	tell([]string{"listDatabases"}, "databases.0.name", "", missing{}, 5, "", nil)
	tell([]string{"listDatabases"}, "databases.0.sizeOnDisk", "", -1, "x", nil)
	tell([]string{"listDatabases"}, "totalSize", "", -1, "x", nil)
	tell([]string{"listCollections"}, "cursor.firstBatch.0.name", "collection 0.name", missing{}, "", nil)
	tell([]string{"listIndexes"}, "cursor.firstBatch.0.name", "index 0.name", missing{}, 5, "", nil)
	tell([]string{"listIndexes"}, "cursor.firstBatch.0.key", "index 0.key", missing{}, 5, bson.A{}, nil)
	return all
}

// Whatever a server says in whole frames, an odd field of it is an error that names command, member and field, and says that
// nobody knows whether a write was done; it costs no connection, and the next command goes on.
func TestOddReplyIsAnErrorThatNamesTheField(t *testing.T) {
	liar, db := lieTo(t)
	ctx := testContext(t)
	checked := 0
	for _, o := range operations() {
		good := wellSaid(o.good)
		honest := func() {
			liar.say(func(string) bson.Raw { return raw(good) })
			if _, err := o.run(ctx, db); err != nil {
				t.Fatalf("%s with an honest reply: %v", o.name, err)
			}
		}
		honest()
		dials := liar.dialled()
		for _, l := range lies() {
			if !l.about(&o) {
				continue
			}
			checked++
			bad := with(good, l.field, l.value)
			liar.say(func(string) bson.Raw { return raw(bad) })
			counts, err := o.run(ctx, db)
			checkLie(t, fmt.Sprintf("%s, %s: %v", o.name, l.field, l.value), &o, &l, counts, err)
			if n := len(liar.heard(o.command)); n != 1 {
				t.Errorf("%s, %s: %v: sent %d times", o.name, l.field, l.value, n)
			}
		}
		honest()
		if n := liar.dialled(); n != dials {
			t.Errorf("%s: %d connections were opened anew", o.name, n-dials)
		}
	}
	if checked < 1000 {
		t.Errorf("only %d replies were tried", checked)
	}
}

// checkLie checks the error that a lie must lead to.
func checkLie(t *testing.T, what string, o *operation, l *lie, counts []int64, err error) {
	t.Helper()
	e, ok := errors.AsType[*mongoerr.Error](err)
	if !ok {
		t.Errorf("%s: no error, or another: %v (%v)", what, err, counts)
		return
	}
	says := l.says
	if says == "" {
		says = l.field
	}
	fault, _ := errors.AsType[*mongoerr.MalformedReply](err)
	switch {
	case fault == nil || !mongoerr.IsMalformedReply(err) || e.Stage != mongoerr.StageDecode || mongoerr.IsNetwork(err) || mongoerr.IsRetryableRead(err):
		t.Errorf("%s: the error is of another kind: %#v", what, err)
	case !strings.HasSuffix(fault.Field, says):
		t.Errorf("%s: it names %q, not %q", what, fault.Field, says)
	case e.Op != o.command || e.Server != liarAddr || e.NS == "":
		t.Errorf("%s: it does not say what and where: %v", what, err)
	case !strings.Contains(err.Error(), fault.Field) || !strings.Contains(err.Error(), fault.Want) || strings.ContainsAny(err.Error(), "\n"):
		t.Errorf("%s: it does not say what is wrong: %v", what, err)
	case o.writes && !strings.Contains(err.Error(), "whether the write was done is unknown"):
		t.Errorf("%s: it does not say that the outcome is unknown: %v", what, err)
	}
	for _, n := range counts {
		if n != 0 {
			t.Errorf("%s: beside the error it counts %v", what, counts)
		}
	}
}
