package sextant_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// numbered is a fresh collection of {_id: 0} to {_id: n-1} on every member.
func numbered(t *testing.T, cl *sextant.Client, n int) *sextant.Collection[bson.D] {
	t.Helper()
	c := fresh[bson.D](t, cl)
	docs := make([]bson.D, n)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}}
	}
	safe := c.With(sextant.CollectionOptions{WriteConcern: concern.W(3)})
	if len(cl.Hosts().Members) < 3 {
		safe = c.With(sextant.CollectionOptions{WriteConcern: concern.Majority()})
	}
	must[*sextant.InsertManyResult](t)(safe.InsertMany(testContext(t), docs))
	return c
}

func ids(docs []bson.D) []int32 {
	out := make([]int32, len(docs))
	for i, d := range docs {
		out[i], _ = d[0].Value.(int32)
	}
	return out
}

func TestCursorYieldsEveryDocumentOverManyBatches(t *testing.T) {
	var s seen
	cl := connect(t, sharedURI(t), func(c *sextant.Config) { c.Monitor = s.monitor() })
	ctx, c := testContext(t), numbered(t, cl, 250)
	s.take("")
	cur := must[*sextant.Cursor[bson.D]](t)(c.Find(ctx, bson.D{}, sextant.FindOptions{Sort: bson.M{"_id": 1}, BatchSize: 40}))
	i := int32(0)
	for doc, err := range cur.Each(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if doc[0].Value != i {
			t.Fatalf("document %d is %v", i, doc)
		}
		i++
	}
	if i != 250 || cur.ID() != 0 || cur.Err() != nil {
		t.Errorf("%d documents, cursor %d, %v", i, cur.ID(), cur.Err())
	}
	if n := len(s.take("getMore")); n != 6 {
		t.Errorf("%d getMores for 250 documents by 40", n)
	}
}

func TestCursorStaysWithTheMemberThatMadeIt(t *testing.T) {
	var s seen
	cl := connect(t, sharedURI(t), func(c *sextant.Config) { c.Monitor = s.monitor(); c.LocalThreshold = wide() })
	ctx, c := testContext(t), numbered(t, cl, 60)
	servers := map[string]bool{}
	for range 20 {
		s.take("")
		cur := must[*sextant.Cursor[bson.D]](t)(c.Find(ctx, bson.D{}, sextant.FindOptions{ReadPreference: readpref.Nearest(), BatchSize: 20}))
		docs := must[[]bson.D](t)(cur.All(ctx))
		if len(docs) != 60 {
			t.Fatalf("%d documents from %s", len(docs), cur.Server())
		}
		servers[cur.Server()] = true
		var lsid bson.RawValue
		for _, m := range s.take("getMore") {
			if m.server != cur.Server() {
				t.Errorf("a cursor of %s was asked for at %s", cur.Server(), m.server)
			}
			id := m.body.Lookup("lsid", "id")
			if !lsid.IsZero() && !id.Equal(lsid) {
				t.Errorf("a getMore with another session")
			}
			lsid = id
		}
	}
	if len(cl.Hosts().Members) > 1 && len(servers) < 2 {
		t.Errorf("20 nearest reads all went to %v", servers)
	}
}

func TestCursorHonoursItsLimit(t *testing.T) {
	var s seen
	cl := connect(t, sharedURI(t), func(c *sextant.Config) { c.Monitor = s.monitor() })
	ctx, c := testContext(t), numbered(t, cl, 30)
	for _, k := range []struct {
		limit, skip int64
		size        int32
		want        int
	}{{4, 0, 3, 4}, {20, 0, 10, 20}, {-7, 0, 3, 7}, {20, 25, 2, 5}, {0, 0, 7, 30}, {1, 0, 1, 1}} {
		cur := must[*sextant.Cursor[bson.D]](t)(c.Find(ctx, bson.D{}, sextant.FindOptions{Sort: bson.M{"_id": 1}, Limit: k.limit, Skip: k.skip, BatchSize: k.size}))
		docs := must[[]bson.D](t)(cur.All(ctx))
		if len(docs) != k.want || len(docs) > 0 && ids(docs)[0] != int32(k.skip) {
			t.Errorf("%+v: %v", k, ids(docs))
		}
		if cur.ID() != 0 {
			t.Errorf("%+v: the cursor is still open", k)
		}
	}
}

func TestLeavingTheLoopClosesTheCursorAtTheServer(t *testing.T) {
	var s seen
	cl := connect(t, sharedURI(t), func(c *sextant.Config) { c.Monitor = s.monitor() })
	ctx, c := testContext(t), numbered(t, cl, 30)
	s.take("")
	cur := must[*sextant.Cursor[bson.D]](t)(c.Find(ctx, bson.D{}, sextant.FindOptions{BatchSize: 5}))
	id := cur.ID()
	for range cur.Each(ctx) {
		break
	}
	kills := s.take("killCursors")
	if len(kills) != 1 || kills[0].server != cur.Server() {
		t.Fatalf("killCursors: %v, cursor of %s", kills, cur.Server())
	}
	if got, _ := kills[0].body.Lookup("cursors", "0").AsInt64OK(); got != id {
		t.Errorf("killed %d, the cursor is %d", got, id)
	}
	_, err := c.Database().RunCommand(ctx, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: c.Name()}})
	if mongoerr.Code(err) != mongoerr.CodeCursorNotFound {
		t.Errorf("the server still has it: %v", err)
	}
	if cur.Next(ctx) || cur.Close(ctx) != nil {
		t.Error("a closed cursor went on")
	}
}

func TestCancelledContextEndsTheCursorAndStillClosesIt(t *testing.T) {
	var s seen
	cl := connect(t, sharedURI(t), func(c *sextant.Config) { c.Monitor = s.monitor() })
	c := numbered(t, cl, 30)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	cur := must[*sextant.Cursor[bson.D]](t)(c.Find(ctx, bson.D{}, sextant.FindOptions{BatchSize: 5}))
	var last error
	n := 0
	for _, err := range cur.Each(ctx) {
		if last = err; err == nil {
			n++
		}
		cancel()
	}
	if n != 5 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d documents, then %v", n, last)
	}
	if kills := s.take("killCursors"); len(kills) != 1 {
		t.Errorf("%d killCursors", len(kills))
	}
}

func TestDecodeErrorEndsTheWalkAndNamesTheQuery(t *testing.T) {
	cl := connect(t, sharedURI(t))
	ctx, c := testContext(t), numbered(t, cl, 3)
	type wrong struct {
		ID string `bson:"_id"`
	}
	_, err := sextant.As[wrong](c).FindOne(ctx, bson.D{})
	cur := must[*sextant.Cursor[wrong]](t)(sextant.As[wrong](c).Find(ctx, bson.D{}))
	_, err2 := cur.All(ctx)
	for _, err := range []error{err, err2} {
		e, ok := errors.AsType[*mongoerr.Error](err)
		if !ok || e.Stage != mongoerr.StageDecode || e.Op != "find" || e.NS != c.Namespace() || e.Server == "" {
			t.Errorf("%v", err)
		}
	}
}

func TestRunCommandCursorWalksACommandsCursor(t *testing.T) {
	cl := connect(t, sharedURI(t))
	ctx, c := testContext(t), numbered(t, cl, 12)
	cur := must[*sextant.Cursor[bson.D]](t)(sextant.RunCommandCursor[bson.D](ctx, c.Database(),
		bson.D{{Key: "find", Value: c.Name()}, {Key: "batchSize", Value: 5}}, sextant.RunCommandCursorOptions{BatchSize: 5}))
	if docs := must[[]bson.D](t)(cur.All(ctx)); len(docs) != 12 {
		t.Errorf("%d documents", len(docs))
	}
}
