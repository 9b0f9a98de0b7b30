package sextant_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/mongoerr"
)

type person struct {
	ID     bson.ObjectID `bson:"_id,omitempty"`
	Name   string        `bson:"name"`
	Age    int32         `bson:"age"`
	Awards []string      `bson:"awards,omitempty"`
}

func TestInsertedDocumentIsFoundByItsID(t *testing.T) {
	ctx, people := testContext(t), fresh[person](t, connect(t, sharedURI(t)))
	joe := &person{Name: "joe", Age: 30, Awards: []string{"gold", "silver"}}
	res := must[*sextant.InsertOneResult](t)(people.InsertOne(ctx, joe))
	if !res.Acknowledged || res.InsertedID != joe.ID || joe.ID.IsZero() {
		t.Fatalf("result %+v, id written back %v", res, joe.ID)
	}
	got := must[person](t)(people.FindOne(ctx, bson.M{"_id": res.InsertedID}))
	same(t, got, joe)
	raw := must[bson.Raw](t)(sextant.As[bson.Raw](people).FindOne(ctx, bson.M{"name": "joe"}))
	for k := range raw.All() {
		if k != "_id" {
			t.Errorf("the first key is %s", k)
		}
		break
	}
}

func TestStringNeverMatchesAnObjectID(t *testing.T) {
	ctx, people := testContext(t), fresh[bson.D](t, connect(t, sharedURI(t)))
	res := must[*sextant.InsertOneResult](t)(people.InsertOne(ctx, bson.M{"name": "joe"}))
	hex := res.InsertedID.(bson.ObjectID).Hex()
	if _, err := people.FindOne(ctx, bson.M{"_id": hex}); err != sextant.ErrNoDocuments {
		t.Errorf("by the string %s: %v", hex, err)
	}
	if _, err := people.InsertOne(ctx, bson.M{"_id": hex, "name": "string"}); err != nil {
		t.Errorf("the string is a key of its own: %v", err)
	}
	id := must[bson.ObjectID](t)(bson.ObjectIDFromHex(hex))
	if _, err := people.FindOne(ctx, bson.M{"_id": id, "name": "joe"}); err != nil {
		t.Errorf("by the ObjectID: %v", err)
	}
}

func TestCollectionOfPointersGetsAndGivesPointers(t *testing.T) {
	ctx, people := testContext(t), fresh[*person](t, connect(t, sharedURI(t)))
	joe := &person{Name: "joe"}
	must[*sextant.InsertOneResult](t)(people.InsertOne(ctx, joe))
	got := must[*person](t)(people.FindOne(ctx, bson.M{"_id": joe.ID}))
	if got == joe || got.Name != "joe" {
		t.Errorf("got %+v", got)
	}
	if none, err := people.FindOne(ctx, bson.M{"name": "nobody"}); none != nil || err != sextant.ErrNoDocuments {
		t.Errorf("nobody: %v, %v", none, err)
	}
}

func TestQueriesReachIntoArraysAndSpacedNames(t *testing.T) {
	ctx, people := testContext(t), fresh[bson.D](t, connect(t, sharedURI(t)))
	must[*sextant.InsertManyResult](t)(people.InsertMany(ctx, []bson.D{
		{{Key: "_id", Value: 1}, {Key: "awards", Value: bson.A{"gold", "silver"}}},
		{{Key: "_id", Value: 2}, {Key: "awards", Value: bson.D{{Key: "first place", Value: "joe"}}}},
		{{Key: "_id", Value: 3}, {Key: "awards", Value: bson.A{bson.D{{Key: "first place", Value: "ann"}}}}},
	}))
	for _, c := range []struct {
		filter any
		want   []int32
	}{
		{bson.M{"awards": "gold"}, []int32{1}},
		{bson.M{"awards.first place": "joe"}, []int32{2}},
		{bson.M{"awards.first place": "ann"}, []int32{3}},
		{bson.M{"_id": bson.M{"$in": bson.A{1, 3, 9}}}, []int32{1, 3}},
		{bson.M{"awards": "tin"}, []int32{}},
	} {
		got := must[[]int32](t)(sextant.Distinct[int32](ctx, people, "_id", c.filter))
		same(t, bson.M{"ids": got}, bson.M{"ids": c.want})
	}
}

func TestInsertManyReportsWhatWasInserted(t *testing.T) {
	ctx, people := testContext(t), fresh[bson.D](t, connect(t, sharedURI(t)))
	docs := func() []bson.D {
		return []bson.D{{{Key: "_id", Value: 1}}, {{Key: "_id", Value: 1}}, {{Key: "_id", Value: 2}}, {{Key: "_id", Value: 2}}, {{Key: "x", Value: 1}}}
	}
	check := func(res *sextant.InsertManyResult, err error, failed []int, count int64) {
		t.Helper()
		e, ok := errors.AsType[*mongoerr.Error](err)
		if !ok || !mongoerr.IsDuplicateKey(err) || res == nil {
			t.Fatalf("result %v, error %v", res, err)
		}
		var at []int
		for _, w := range e.WriteErrors {
			at = append(at, w.Index)
		}
		same(t, bson.M{"failed": at}, bson.M{"failed": failed})
		if res.InsertedCount != count {
			t.Errorf("inserted %d, want %d", res.InsertedCount, count)
		}
		if got := must[int64](t)(people.EstimatedDocumentCount(ctx)); got != count {
			t.Errorf("%d documents are there, the result says %d", got, count)
		}
	}
	res, err := people.InsertMany(ctx, docs())
	check(res, err, []int{1}, 1)
	if res.InsertedIDs[0] != int32(1) || res.InsertedIDs[1] != nil || res.InsertedIDs[4] != nil {
		t.Errorf("ordered: ids %v", res.InsertedIDs)
	}
	must[*sextant.DeleteResult](t)(people.DeleteMany(ctx, bson.D{}))
	res, err = people.InsertMany(ctx, docs(), sextant.InsertManyOptions{Ordered: new(false)})
	check(res, err, []int{1, 3}, 3)
	if res.InsertedIDs[1] != nil || res.InsertedIDs[2] != int32(2) || res.InsertedIDs[4] == nil {
		t.Errorf("unordered: ids %v", res.InsertedIDs)
	}
}

// narrow is a connection whose server says that it takes three writes a command.
type narrow struct{ net.Conn }

func (n narrow) Read(b []byte) (int, error) {
	k, err := n.Conn.Read(b)
	const key = "maxWriteBatchSize\x00"
	if i := bytes.Index(b[:k], []byte(key)); i >= 0 && i+len(key)+4 <= k {
		binary.LittleEndian.PutUint32(b[i+len(key):], 3)
	}
	return k, err
}

func TestInsertManySplitsWhatOneCommandCannotHold(t *testing.T) {
	var s seen
	cl := connect(t, sharedURI(t), func(c *sextant.Config) {
		c.Monitor = s.monitor()
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, address)
			return narrow{nc}, err
		}
	})
	ctx, c := testContext(t), fresh[bson.D](t, cl)
	docs := make([]bson.D, 8)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}}
	}
	docs[4] = docs[1]
	for ordered, want := range map[bool]struct {
		batches  []int
		inserted int64
		last     any
	}{true: {[]int{3, 3}, 4, nil}, false: {[]int{3, 3, 2}, 7, int32(7)}} {
		s.take("")
		must[*sextant.DeleteResult](t)(c.DeleteMany(ctx, bson.D{}))
		res, err := c.InsertMany(ctx, docs, sextant.InsertManyOptions{Ordered: new(ordered)})
		if !mongoerr.IsDuplicateKey(err) || res.InsertedCount != want.inserted || res.InsertedIDs[4] != nil || res.InsertedIDs[7] != want.last {
			t.Errorf("ordered %v: %+v, %v", ordered, res, err)
		}
		if e, _ := errors.AsType[*mongoerr.Error](err); len(e.WriteErrors) != 1 || e.WriteErrors[0].Index != 4 {
			t.Errorf("ordered %v: write errors %v", ordered, e.WriteErrors)
		}
		var batches []int
		for _, sent := range s.take("insert") {
			list, _ := sent.body.Lookup("documents").ArrayOK()
			batches = append(batches, list.Len())
		}
		same(t, bson.M{"batches": batches}, bson.M{"batches": want.batches})
		if n := must[int64](t)(c.EstimatedDocumentCount(ctx)); n != want.inserted {
			t.Errorf("ordered %v: %d documents are there", ordered, n)
		}
	}
}

func TestUpdatesSayWhatTheyDid(t *testing.T) {
	ctx, people := testContext(t), fresh[person](t, connect(t, sharedURI(t)))
	must[*sextant.InsertManyResult](t)(people.InsertMany(ctx, []person{{Name: "ann", Age: 20}, {Name: "bob", Age: 30}, {Name: "cid", Age: 40}}))
	check := func(name string, matched, modified, upserted int64) func(*sextant.UpdateResult, error) *sextant.UpdateResult {
		return func(r *sextant.UpdateResult, err error) *sextant.UpdateResult {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if r.MatchedCount != matched || r.ModifiedCount != modified || r.UpsertedCount != upserted || !r.Acknowledged {
				t.Errorf("%s: %+v", name, r)
			}
			return r
		}
	}
	older := bson.M{"$inc": bson.M{"age": 1}}
	check("one", 1, 1, 0)(people.UpdateOne(ctx, bson.M{"name": "ann"}, older))
	check("many", 2, 2, 0)(people.UpdateMany(ctx, bson.M{"age": bson.M{"$gte": 30}}, older))
	check("none", 0, 0, 0)(people.UpdateOne(ctx, bson.M{"name": "dan"}, older))
	check("same", 1, 0, 0)(people.UpdateOne(ctx, bson.M{"name": "ann"}, bson.M{"$set": bson.M{"age": 21}}))
	up := check("upsert", 0, 0, 1)(people.UpdateOne(ctx, bson.M{"name": "dan"}, older, sextant.UpdateOneOptions{Upsert: true}))
	if id, ok := up.UpsertedID.(bson.ObjectID); !ok || id.IsZero() {
		t.Errorf("the upserted id is %v", up.UpsertedID)
	}
	check("by id", 1, 1, 0)(people.UpdateByID(ctx, up.UpsertedID, bson.M{"$set": bson.M{"age": 50}}))
	check("replace", 1, 1, 0)(people.ReplaceOne(ctx, bson.M{"name": "dan"}, person{Name: "eve", Age: 1}))
	check("replace upsert", 0, 0, 1)(people.ReplaceOne(ctx, bson.M{"name": "fay"}, person{Name: "fay", Age: 2}, sextant.ReplaceOptions{Upsert: true}))
	got := must[[]string](t)(sextant.Distinct[string](ctx, people, "name", bson.D{}))
	same(t, bson.M{"n": got}, bson.M{"n": []string{"ann", "bob", "cid", "eve", "fay"}})
}

func TestDeletesCountWhatIsGone(t *testing.T) {
	ctx, c := testContext(t), fresh[bson.D](t, connect(t, sharedURI(t)))
	must[*sextant.InsertManyResult](t)(c.InsertMany(ctx, []any{bson.M{"x": 1}, bson.M{"x": 1}, bson.M{"x": 2}}))
	if r := must[*sextant.DeleteResult](t)(c.DeleteOne(ctx, bson.M{"x": 1})); r.DeletedCount != 1 {
		t.Errorf("one: %+v", r)
	}
	if r := must[*sextant.DeleteResult](t)(c.DeleteMany(ctx, bson.D{})); r.DeletedCount != 2 {
		t.Errorf("many: %+v", r)
	}
}

func TestFindOneAndReturnsBeforeOrAfter(t *testing.T) {
	ctx, people := testContext(t), fresh[person](t, connect(t, sharedURI(t)))
	must[*sextant.InsertOneResult](t)(people.InsertOne(ctx, person{Name: "ann", Age: 20}))
	older := bson.M{"$inc": bson.M{"age": 1}}
	if p := must[person](t)(people.FindOneAndUpdate(ctx, bson.M{"name": "ann"}, older)); p.Age != 20 {
		t.Errorf("before: %+v", p)
	}
	if p := must[person](t)(people.FindOneAndUpdate(ctx, bson.M{"name": "ann"}, older, sextant.FindOneAndUpdateOptions{ReturnDocument: sextant.After})); p.Age != 22 {
		t.Errorf("after: %+v", p)
	}
	if _, err := people.FindOneAndUpdate(ctx, bson.M{"name": "bob"}, older, sextant.FindOneAndUpdateOptions{Upsert: true}); err != sextant.ErrNoDocuments {
		t.Errorf("an upsert seen before: %v", err)
	}
	if p := must[person](t)(people.FindOneAndReplace(ctx, bson.M{"name": "bob"}, person{Name: "bob", Age: 7})); p.Age != 1 {
		t.Errorf("replace: %+v", p)
	}
	if p := must[person](t)(people.FindOneAndDelete(ctx, bson.D{}, sextant.FindOneAndDeleteOptions{Sort: bson.M{"age": 1}})); p.Name != "bob" {
		t.Errorf("delete: %+v", p)
	}
	if _, err := people.FindOneAndDelete(ctx, bson.M{"name": "bob"}); err != sextant.ErrNoDocuments {
		t.Errorf("delete again: %v", err)
	}
}

func TestDistinctDecodesValuesOfSeveralTypes(t *testing.T) {
	ctx, c := testContext(t), fresh[bson.D](t, connect(t, sharedURI(t)))
	must[*sextant.InsertManyResult](t)(c.InsertMany(ctx, []bson.M{{"x": 1}, {"x": "a"}, {"x": bson.A{"a", "b"}}, {"x": 1}}))
	if got := must[[]any](t)(sextant.Distinct[any](ctx, c, "x", bson.D{})); len(got) != 3 {
		t.Errorf("any: %v", got)
	}
	if got, err := sextant.Distinct[string](ctx, c, "x", bson.D{}); err == nil {
		t.Errorf("a number was decoded into a string: %q", got)
	} else if e, _ := errors.AsType[*mongoerr.Error](err); e == nil || e.Stage != mongoerr.StageDecode {
		t.Errorf("the error is of another kind: %v", err)
	}
}

func TestUnacknowledgedWritesAreDoneWithoutAnAnswer(t *testing.T) {
	ctx, c := testContext(t), fresh[bson.D](t, connect(t, sharedURI(t)))
	quiet := c.With(sextant.CollectionOptions{WriteConcern: concern.Unacknowledged()})
	if r := must[*sextant.InsertOneResult](t)(quiet.InsertOne(ctx, bson.M{"_id": 1})); r.Acknowledged || r.InsertedID != int32(1) {
		t.Errorf("insert: %+v", r)
	}
	if r := must[*sextant.UpdateResult](t)(quiet.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"x": 1}})); r.Acknowledged {
		t.Errorf("update: %+v", r)
	}
	for ctx.Err() == nil { // other connections may be faster
		if _, err := c.FindOne(ctx, bson.M{"_id": 1, "x": 1}); err == nil {
			return
		}
	}
	t.Error("the writes never showed")
}

func TestProjectionsAreReadThroughAs(t *testing.T) {
	ctx, people := testContext(t), fresh[person](t, connect(t, sharedURI(t)))
	must[*sextant.InsertOneResult](t)(people.InsertOne(ctx, person{Name: "ann", Age: 20}))
	got := must[bson.D](t)(sextant.As[bson.D](people).FindOne(ctx, bson.D{}, sextant.FindOneOptions{Projection: bson.D{{Key: "_id", Value: 0}, {Key: "age", Value: 1}}}))
	same(t, got, bson.D{{Key: "age", Value: 20}})
}

func TestAnyDocumentTypeDecodes(t *testing.T) {
	ctx, c := testContext(t), fresh[bson.D](t, connect(t, sharedURI(t)))
	want := bson.D{{Key: "_id", Value: 1}, {Key: "in", Value: bson.D{{Key: "x", Value: "y"}}}}
	must[*sextant.InsertOneResult](t)(c.InsertOne(ctx, want))
	byMap := must[bson.M](t)(sextant.As[bson.M](c).FindOne(ctx, bson.D{}))
	byPlainMap := must[map[string]any](t)(sextant.As[map[string]any](c).FindOne(ctx, bson.D{}))
	if byMap["_id"] != int32(1) || byPlainMap["_id"] != int32(1) {
		t.Errorf("%v, %v", byMap, byPlainMap)
	}
	same(t, must[any](t)(sextant.As[any](c).FindOne(ctx, bson.D{})), want)
	same(t, must[bson.Raw](t)(sextant.As[bson.Raw](c).FindOne(ctx, bson.D{})), want)
	raws := must[[]bson.Raw](t)(must[*sextant.Cursor[bson.Raw]](t)(sextant.As[bson.Raw](c).Find(ctx, bson.D{})).All(ctx))
	if len(raws) != 1 {
		t.Fatalf("%d documents", len(raws))
	}
	same(t, raws[0], want)
}
