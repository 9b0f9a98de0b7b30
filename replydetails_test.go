package sextant_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
)

// Of a command that may hold secrets, listeners are not told what an odd reply says.
func TestOddReplyToASecretCommandIsNotShownToListeners(t *testing.T) {
	liar := &liar{}
	var failed []error
	cl := connect(t, "mongodb://"+liarAddr+"/?directConnection=true", func(c *sextant.Config) {
		c.Dial = liar.dial
		c.Monitor = &event.Monitor{CommandFailed: func(_ context.Context, e *event.CommandFailedEvent) { failed = append(failed, e.Err) }}
	})
	liar.say(func(string) bson.Raw { return raw(bson.D{{Key: "ok", Value: "hunter2"}}) })
	for _, name := range []string{"ping", "createUser"} {
		if _, err := cl.Database("d").RunCommand(testContext(t), bson.D{{Key: name, Value: 1}}); !mongoerr.IsMalformedReply(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(failed) != 2 || !strings.Contains(failed[0].Error(), "hunter2") || strings.Contains(failed[1].Error(), "hunter2") {
		t.Errorf("listeners were told %v", failed)
	} else if e, ok := errors.AsType[*mongoerr.Error](failed[1]); !ok || e.Response != nil || e.Cause != nil {
		t.Errorf("listeners were shown %#v", failed[1])
	}
}

// A refusal is a refusal, however odd its details; the error says which of them is odd.
func TestRefusalWithOddDetailsStaysARefusal(t *testing.T) {
	liar, db := lieTo(t)
	ctx := testContext(t)
	refusal := bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: "no such thing"}, {Key: "code", Value: 26}, {Key: "codeName", Value: "NamespaceNotFoundX"},
		{Key: "errorLabels", Value: bson.A{"Some"}}}
	for _, o := range operations() {
		for _, c := range []struct {
			field string
			value any
			says  string // the field that the error names; empty: none is odd
			code  int32
		}{
			{"code", 11000.0, "", 11000}, {"code", int64(11000), "", 11000}, {"code", "x", "code", 0}, {"code", 1.5, "code", 0}, {"code", int64(1) << 40, "code", 0},
			{"code", nil, "code", 0}, {"code", missing{}, "", 0}, {"errmsg", 5, "errmsg", 26000}, {"codeName", bson.D{}, "codeName", 26000},
			{"errorLabels", 5, "errorLabels", 26000}, {"errorLabels", bson.A{"Some", 5}, "errorLabels.1", 26000}, {"errorLabels", missing{}, "", 26000},
			{"ok", missing{}, "ok", 26000}, {"ok", "0", "ok", 26000}, {"ok", -1, "ok", 26000}, {"ok", false, "", 26000},
			{"writeErrors", 5, "writeErrors", 26000}, {"writeConcernError", 5, "writeConcernError", 26000},
		} {
			reply := with(with(refusal, "code", 26000), c.field, c.value)
			liar.say(func(string) bson.Raw { return raw(reply) })
			_, err := o.run(ctx, db)
			e, ok := errors.AsType[*mongoerr.Error](err)
			if !ok || e.Stage != mongoerr.StageServer || e.Code != c.code || e.Op != o.command || e.Server != liarAddr || len(e.Response) == 0 {
				t.Errorf("%s, %s: %v: %#v", o.name, c.field, c.value, err)
				continue
			}
			if c.field != "errmsg" && !strings.Contains(err.Error(), "no such thing") {
				t.Errorf("%s, %s: %v: the server's words are lost: %v", o.name, c.field, c.value, err)
			}
			fault, odd := errors.AsType[*mongoerr.MalformedReply](err)
			if odd != (c.says != "") || odd && (fault.Field != c.says || !strings.Contains(err.Error(), fault.Error())) {
				t.Errorf("%s, %s: %v: it names the fault %v: %v", o.name, c.field, c.value, fault, err)
			}
		}
	}
}

// What is not read is not judged, and cluster times of a wrong shape are not passed on.
func TestFieldsThatNobodyReadsMayBeOdd(t *testing.T) {
	liar, db := lieTo(t)
	ctx := testContext(t)
	stamp := bson.Timestamp{T: 9, I: 9}
	for _, o := range operations() {
		for _, extra := range []bson.E{
			{Key: "operationTime", Value: "x"}, {Key: "$clusterTime", Value: 5}, {Key: "$clusterTime", Value: bson.D{{Key: "clusterTime", Value: 5}}},
			{Key: "$clusterTime", Value: bson.D{}}, {Key: "$clusterTime", Value: bson.D{{Key: "clusterTime", Value: stamp}, {Key: "signature", Value: 5}}},
			{Key: "recoveryToken", Value: 5}, {Key: "atClusterTime", Value: "x"}, {Key: "errorLabels", Value: 5}, {Key: "code", Value: "x"}, {Key: "errmsg", Value: 5},
			{Key: "writeErrors", Value: bson.A{}}, {Key: "$gleStats", Value: 5}, {Key: "ok", Value: true}, {Key: "ok", Value: int64(1)},
		} {
			reply := with(wellSaid(o.good), extra.Key, extra.Value)
			liar.say(func(string) bson.Raw { return raw(reply) })
			for range 2 {
				if _, err := o.run(ctx, db); err != nil {
					t.Errorf("%s, %v: %v", o.name, extra, err)
				}
			}
			for _, m := range liar.heard(o.command) {
				if v := m.Lookup("$clusterTime"); v.Type != 0 {
					t.Fatalf("%s, %v: the next command carries %v", o.name, extra, v)
				}
			}
		}
	}
}

// What servers and services leave out, or send in another type of number, is no fault.
func TestRepliesThatServersAreKnownToGiveAreTaken(t *testing.T) {
	liar, db := lieTo(t)
	ctx := testContext(t)
	upserted := bson.A{bson.D{{Key: "index", Value: int64(0)}, {Key: "_id", Value: nil}}}
	for _, c := range []struct {
		of, field string
		value     any
		none      bool // sextant.ErrNoDocuments is expected
	}{
		{"update", "nModified", missing{}, false}, {"update", "n", 1.0, false}, {"update", "n", int64(1), false}, {"update", "upserted", bson.A{}, false},
		{"update", "upserted", upserted, false}, {"delete", "n", int64(1) << 40, false}, {"count", "n", 7.0, false}, {"insert", "electionId", "x", false},
		{"find", "cursor.id", int32(0), false}, {"find", "cursor.id", 0.0, false}, {"aggregate", "cursor.ns", missing{}, false}, {"find", "cursor.ns", "", false},
		{"find", "cursor.ns", "other.view", false}, {"listDatabases", "totalSize", missing{}, false}, {"listDatabases", "databases.0.sizeOnDisk", missing{}, false},
		{"listDatabases", "databases", bson.A{}, false}, {"listCollections", "cursor.firstBatch.0.type", missing{}, false}, {"distinct", "values", bson.A{}, false},
		{"findAndModify", "value", nil, true}, {"FindOne", "cursor.firstBatch", bson.A{}, true}, {"CountDocuments", "cursor.firstBatch", bson.A{}, false},
		{"createIndexes", "raw", bson.D{{Key: "rs0/a:1", Value: bson.D{{Key: "ok", Value: 1}}}}, false}, {"createIndexes", "numIndexesAfter", "x", false},
	} {
		for _, o := range operations() {
			if o.command != c.of && o.name != c.of {
				continue
			}
			reply := with(wellSaid(o.good), c.field, c.value)
			liar.say(func(string) bson.Raw { return raw(reply) })
			_, err := o.run(ctx, db)
			if none := errors.Is(err, sextant.ErrNoDocuments); none != c.none || err != nil && !none {
				t.Errorf("%s, %s: %v: %v", o.name, c.field, c.value, err)
			}
		}
	}
	for _, last := range []bson.D{{{Key: "n", Value: 0}}, {{Key: "n", Value: 1}, {Key: "upserted", Value: 4}}} {
		reply := raw(bson.D{{Key: "lastErrorObject", Value: last}, {Key: "ok", Value: 1}})
		liar.say(func(string) bson.Raw { return reply })
		if _, err := db.Collection("c").FindOneAndDelete(ctx, bson.D{}); !errors.Is(err, sextant.ErrNoDocuments) {
			t.Errorf("findAndModify without a value, %v: %v", last, err)
		}
	}
}

// Failures that say little, but enough, are failures of writes as ever; and counts come out right beside them.
func TestFailuresOfWritesNeedACodeOrAText(t *testing.T) {
	liar, db := lieTo(t)
	ctx := testContext(t)
	for _, failure := range []bson.D{
		{{Key: "index", Value: 1}, {Key: "code", Value: 11000}}, {{Key: "index", Value: 1.0}, {Key: "errmsg", Value: "dup"}},
		{{Key: "index", Value: int64(1)}, {Key: "code", Value: 11000.0}, {Key: "errmsg", Value: 5}, {Key: "errInfo", Value: 5}},
	} {
		reply := raw(bson.D{{Key: "n", Value: 1}, {Key: "writeErrors", Value: bson.A{failure}}, {Key: "ok", Value: 1}})
		liar.say(func(string) bson.Raw { return reply })
		res, err := db.Collection("c").InsertMany(ctx, []bson.D{{}, {}, {}})
		e, ok := errors.AsType[*mongoerr.Error](err)
		if !ok || len(e.WriteErrors) != 1 || e.WriteErrors[0].Index != 1 || mongoerr.IsMalformedReply(err) || res.InsertedCount != 1 {
			t.Errorf("%v: %v, %+v", failure, err, res)
		}
	}
	for _, unmet := range []bson.D{{{Key: "code", Value: 64}}, {{Key: "errmsg", Value: "slow"}}} {
		reply := raw(bson.D{{Key: "n", Value: 1}, {Key: "nModified", Value: 1}, {Key: "writeConcernError", Value: unmet}, {Key: "ok", Value: 1}})
		liar.say(func(string) bson.Raw { return reply })
		res, err := db.Collection("c").UpdateOne(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}})
		e, ok := errors.AsType[*mongoerr.Error](err)
		if !ok || e.WriteConcernError == nil || mongoerr.IsMalformedReply(err) || res == nil || res.ModifiedCount != 1 {
			t.Errorf("%v: %v, %+v", unmet, err, res)
		}
	}
}

// A cursor whose later batch makes no sense ends with the error, and is closed at the server.
func TestOddLaterBatchEndsTheCursor(t *testing.T) {
	liar, db := lieTo(t)
	ctx := testContext(t)
	one := bson.A{bson.D{{Key: "a", Value: 1}}}
	for _, c := range []struct {
		cursor any
		says   string
	}{
		{nil, "cursor"}, {5, "cursor"}, {cursorDoc(int64(5), "d.c", "firstBatch", one), "cursor.nextBatch"}, {cursorDoc(int64(6), "d.c", "nextBatch", one), "cursor.id"},
		{cursorDoc("5", "d.c", "nextBatch", one), "cursor.id"}, {cursorDoc(int64(5), "d.c", "nextBatch", bson.A{bson.D{}, 7}), "cursor.nextBatch.1"},
		{cursorDoc(int64(5), "d.c", "nextBatch", bson.D{}), "cursor.nextBatch"}, {cursorDoc(int64(0), "d.c", "x", one), "cursor.nextBatch"},
	} {
		liar.say(func(name string) bson.Raw {
			if name == "find" {
				return raw(bson.D{{Key: "cursor", Value: cursorDoc(int64(5), "d.c", "firstBatch", one)}, {Key: "ok", Value: 1}})
			}
			return raw(bson.D{{Key: "cursor", Value: c.cursor}, {Key: "ok", Value: 1}})
		})
		cur, err := db.Collection("c").Find(ctx, bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for cur.Next(ctx) {
			got++
		}
		fault, _ := errors.AsType[*mongoerr.MalformedReply](cur.Err())
		e, _ := errors.AsType[*mongoerr.Error](cur.Err())
		if got != 1 || fault == nil || fault.Field != c.says || e.Op != "getMore" || e.NS != "d.c" || e.Server != liarAddr || strings.Contains(e.Message, "unknown") {
			t.Errorf("%v: %d documents, %v", c.cursor, got, cur.Err())
		}
		if cur.Next(ctx) || cur.Close(ctx) != nil || len(liar.heard("getMore")) != 1 {
			t.Errorf("%v: the cursor goes on", c.cursor)
		}
		closed(t, liar, 5)
	}
}

// closed checks that the cursor was closed at the server, under its own name.
func closed(t *testing.T, l *liar, id int64) {
	t.Helper()
	kills := l.heard("killCursors")
	if len(kills) != 1 {
		t.Errorf("killCursors was sent %d times", len(kills))
		return
	}
	got, _ := kills[0].Lookup("cursors", "0").AsInt64OK()
	if coll, _ := kills[0].Lookup("killCursors").StringValueOK(); got != id || coll != "v" && coll != "c" {
		t.Errorf("closed was %v", kills[0])
	}
}

// A cursor that a malformed reply has opened is not left behind, where the reply says enough to close it.
func TestCursorOfAnOddReplyIsClosed(t *testing.T) {
	liar, db := lieTo(t)
	ctx := testContext(t)
	for _, batch := range []any{missing{}, 5, bson.A{5}} {
		reply := raw(bson.D{{Key: "cursor", Value: with(cursorDoc(int64(9), "d.v", "firstBatch", nil), "firstBatch", batch)}, {Key: "ok", Value: 1}})
		liar.say(func(string) bson.Raw { return reply })
		if _, err := db.Collection("c").Find(ctx, bson.D{}); !mongoerr.IsMalformedReply(err) {
			t.Errorf("firstBatch %v: %v", batch, err)
		}
		closed(t, liar, 9)
	}
	reply := raw(bson.D{{Key: "cursor", Value: cursorDoc(int64(9), "admin.users", "firstBatch", bson.A{})}, {Key: "ok", Value: 1}})
	liar.say(func(string) bson.Raw { return reply })
	if _, err := db.Collection("c").Find(ctx, bson.D{}); !mongoerr.IsMalformedReply(err) {
		t.Error(err)
	}
	if n := len(liar.heard("killCursors")); n != 0 {
		t.Error("a cursor of another database was closed")
	}
}

// Behind a load balancer a cursor has a connection to itself; that of a malformed reply, or of a later one, gives it back.
func TestCursorOfAnOddReplyKeepsNoConnectionBehindALoadBalancer(t *testing.T) {
	liar := &liar{service: bson.NewObjectID()}
	db := connect(t, "mongodb://"+liarAddr+"/?loadBalanced=true&maxPoolSize=1&waitQueueTimeoutMS=5000", func(c *sextant.Config) { c.Dial = liar.dial }).Database("d")
	ctx := testContext(t)
	for _, c := range []bson.D{
		cursorDoc(int64(9), "d.v", "x", bson.A{}), cursorDoc(int64(9), "d.v", "firstBatch", bson.A{5}), cursorDoc(int64(9), "other.v", "firstBatch", bson.A{}),
		cursorDoc("9", "d.v", "firstBatch", bson.A{}), cursorDoc(int64(9), "d.v", "firstBatch", bson.A{}), // the last one's getMore is odd
	} {
		reply := raw(bson.D{{Key: "cursor", Value: c}, {Key: "ok", Value: 1}})
		liar.say(func(string) bson.Raw { return reply })
		cur, err := db.Collection("c").Find(ctx, bson.D{})
		if err == nil {
			_, err = cur.All(ctx)
		}
		if !mongoerr.IsMalformedReply(err) {
			t.Errorf("%v: %v", c, err)
		}
		liar.say(func(string) bson.Raw { return raw(wellSaid("find")) })
		if _, err := db.Collection("c").FindOne(ctx, bson.D{}); err != nil {
			t.Fatalf("after %v: %v", c, err)
		}
	}
	if n := liar.dialled(); n != 1 {
		t.Errorf("%d connections were opened", n)
	}
}
