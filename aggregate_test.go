package sextant_test

import (
	"testing"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/readpref"
)

func TestPipelineUpdatesSeeTheDocument(t *testing.T) {
	ctx, c := testContext(t), fresh[bson.D](t, connect(t, sharedURI(t)))
	must[*sextant.InsertOneResult](t)(c.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: 2}}))
	must[*sextant.UpdateResult](t)(c.UpdateOne(ctx, bson.M{"_id": 1}, []bson.D{{{Key: "$set", Value: bson.M{"b": "$a"}}}}))
	same(t, must[bson.D](t)(c.FindOne(ctx, bson.D{})), bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: 2}, {Key: "b", Value: 2}})
}

func TestCountsAgree(t *testing.T) {
	ctx, c := testContext(t), fresh[bson.D](t, connect(t, sharedURI(t)))
	if n := must[int64](t)(c.CountDocuments(ctx, bson.D{})); n != 0 {
		t.Errorf("of nothing: %d", n)
	}
	if n := must[int64](t)(c.EstimatedDocumentCount(ctx)); n != 0 {
		t.Errorf("of nothing, estimated: %d", n)
	}
	docs := make([]bson.M, 25)
	for i := range docs {
		docs[i] = bson.M{"i": i}
	}
	must[*sextant.InsertManyResult](t)(c.InsertMany(ctx, docs))
	for _, k := range []struct {
		o    sextant.CountOptions
		want int64
	}{{sextant.CountOptions{}, 20}, {sextant.CountOptions{Skip: 5}, 15}, {sextant.CountOptions{Limit: 7}, 7}, {sextant.CountOptions{Skip: 18, Limit: 7}, 2}} {
		if n := must[int64](t)(c.CountDocuments(ctx, bson.M{"i": bson.M{"$gte": 5}}, k.o)); n != k.want {
			t.Errorf("%+v: %d, want %d", k.o, n, k.want)
		}
	}
	if n := must[int64](t)(c.EstimatedDocumentCount(ctx)); n != 25 {
		t.Errorf("estimated: %d", n)
	}
}

func TestAggregateDecodesIntoAnotherType(t *testing.T) {
	ctx, people := testContext(t), fresh[person](t, connect(t, sharedURI(t)))
	must[*sextant.InsertManyResult](t)(people.InsertMany(ctx, []person{{Name: "ann", Age: 20}, {Name: "bob", Age: 20}, {Name: "cid", Age: 40}}))
	type group struct {
		Age   int32 `bson:"_id"`
		Count int32 `bson:"count"`
	}
	cur := must[*sextant.Cursor[group]](t)(sextant.Aggregate[group](ctx, people, []bson.D{
		{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$age"}, {Key: "count", Value: bson.D{{Key: "$sum", Value: 1}}}}}},
		{{Key: "$sort", Value: bson.D{{Key: "_id", Value: 1}}}},
	}))
	got := must[[]group](t)(cur.All(ctx))
	same(t, bson.M{"groups": got}, bson.M{"groups": []group{{20, 2}, {40, 1}}})
}

func TestAggregateTakesAReadPreferenceOfItsOwn(t *testing.T) {
	set := embedded(t, 3)
	cl := whole(t, set)
	ctx, c := testContext(t), cl.Database("shop").Collection("people")
	must[*sextant.InsertOneResult](t)(c.InsertOne(ctx, bson.M{"x": 1}))
	o := sextant.AggregateOptions{ReadPreference: readpref.Secondary()}
	cur := must[*sextant.Cursor[bson.D]](t)(sextant.Aggregate[bson.D](ctx, c, []bson.D{}, o))
	if kindOf(cl, cur.Server()) != event.RSSecondary {
		t.Errorf("served by %s", cur.Server())
	}
}
