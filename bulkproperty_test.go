package sextant_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// randomModels are some writes of a few documents, so that many fail, match nothing or meet each other.
func randomModels(r *rand.Rand) (all models) {
	for range 1 + r.IntN(12) {
		one, set := id(r.IntN(6)), bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: r.IntN(3)}}}}
		below, upsert := bson.M{"_id": bson.M{"$lt": r.IntN(4)}}, r.IntN(2) == 0
		all = append(all, models{
			sextant.InsertOneModel{Document: one},
			sextant.UpdateOneModel{Filter: one, Update: inc, Upsert: upsert},
			sextant.UpdateOneModel{Filter: one, Update: set},
			sextant.UpdateManyModel{Filter: below, Update: set},
			sextant.UpdateOneModel{Filter: below, Update: bson.M{"$set": bson.M{"_id": 3}}}, // fails unless it is that document
			sextant.ReplaceOneModel{Filter: one, Replacement: bson.D{{Key: "r", Value: r.IntN(2)}}, Upsert: upsert},
			sextant.DeleteOneModel{Filter: one},
			sextant.DeleteManyModel{Filter: below},
		}[r.IntN(8)])
	}
	return all
}

// oneByOne does what a bulk write should, a call a model, and returns the indexes of those that failed.
func oneByOne(t *testing.T, c *sextant.Collection[bson.D], all models, ordered bool) (*sextant.BulkWriteResult, []int) {
	ctx, res := testContext(t), &sextant.BulkWriteResult{InsertedIDs: map[int]any{}, UpsertedIDs: map[int]any{}}
	var failed []int
	for _, i := range inTurn(all, ordered) {
		var up *sextant.UpdateResult
		var del *sextant.DeleteResult
		var ins *sextant.InsertOneResult
		var err error
		switch m := all[i].(type) {
		case sextant.InsertOneModel:
			ins, err = c.InsertOne(ctx, m.Document)
		case sextant.UpdateOneModel:
			up, err = c.UpdateOne(ctx, m.Filter, m.Update, sextant.UpdateOneOptions{Upsert: m.Upsert})
		case sextant.UpdateManyModel:
			up, err = c.UpdateMany(ctx, m.Filter, m.Update)
		case sextant.ReplaceOneModel:
			up, err = c.ReplaceOne(ctx, m.Filter, m.Replacement, sextant.ReplaceOptions{Upsert: m.Upsert})
		case sextant.DeleteOneModel:
			del, err = c.DeleteOne(ctx, m.Filter)
		case sextant.DeleteManyModel:
			del, err = c.DeleteMany(ctx, m.Filter)
		}
		switch {
		case err != nil:
			if failed = append(failed, i); ordered {
				return res, failed
			}
		case ins != nil:
			res.InsertedCount++
			res.InsertedIDs[i] = ins.InsertedID
		case del != nil:
			res.DeletedCount += del.DeletedCount
		case up != nil:
			res.MatchedCount += up.MatchedCount
			res.ModifiedCount += up.ModifiedCount
			if res.UpsertedCount += up.UpsertedCount; up.UpsertedCount > 0 {
				res.UpsertedIDs[i] = up.UpsertedID
			}
		}
	}
	slices.Sort(failed)
	return res, failed
}

// inTurn are the indexes of models in the order in which they are carried out: unordered, the kinds one after the other.
func inTurn(all models, ordered bool) (turn []int) {
	kind := func(m sextant.WriteModel) string {
		switch m.(type) {
		case sextant.InsertOneModel:
			return "insert"
		case sextant.DeleteOneModel, sextant.DeleteManyModel:
			return "delete"
		}
		return "update"
	}
	var kinds []string
	for i, m := range all {
		if turn = append(turn, i); !slices.Contains(kinds, kind(m)) {
			kinds = append(kinds, kind(m))
		}
	}
	if !ordered {
		slices.SortStableFunc(turn, func(a, b int) int { return slices.Index(kinds, kind(all[a])) - slices.Index(kinds, kind(all[b])) })
	}
	return turn
}

// A bulk write is what its models are one by one: the documents, the counts, the ids and the failures, in whatever commands it
// goes.
func TestBulkWriteIsItsModelsOneByOne(t *testing.T) {
	set := embedded(t, 1)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for name, cl := range map[string]*sextant.Client{"three writes a command": whole(t, set, narrowly), "all in one": whole(t, set)} {
		for n := range 60 {
			ordered, all := r.IntN(2) == 0, randomModels(r)
			db := cl.Database("shop")
			bulk, single := db.Collection(fmt.Sprint("bulk ", name, n)), db.Collection(fmt.Sprint("single ", name, n))
			want, wantFailed := oneByOne(t, single, all, ordered)
			got, err := bulk.BulkWrite(testContext(t), all, sextant.BulkWriteOptions{Ordered: new(ordered)})
			if tally(got) != tally(want) || !slices.Equal(failures(err), wantFailed) || (err == nil) != (wantFailed == nil) {
				t.Errorf("seed %d, %s, ordered %v, %+v: %v\n got %s, failed %v\nwant %s, failed %v", seed, name, ordered, all, err, tally(got), failures(err), tally(want), wantFailed)
			}
			same(t, bson.M{"all": contents(t, bulk)}, bson.M{"all": contents(t, single)})
		}
	}
}

// A refusal of the whole command that tells of single writes which were not sent is an error, and nothing is believed of it.
func TestRefusalThatNamesWritesThatWereNotSent(t *testing.T) {
	liar, db := lieTo(t)
	ctx, c := testContext(t), db.Collection("c")
	for _, index := range []any{99, -1, int64(1) << 31} {
		reply := raw(bson.D{{Key: "n", Value: 7}, {Key: "nModified", Value: -7}, {Key: "errmsg", Value: "no"},
			{Key: "upserted", Value: bson.A{bson.D{{Key: "index", Value: index}, {Key: "_id", Value: 1}}}},
			{Key: "writeErrors", Value: bson.A{bson.D{{Key: "index", Value: index}, {Key: "code", Value: 1}}}}, {Key: "ok", Value: 0}})
		liar.say(func(string) bson.Raw { return reply })
		for _, ordered := range []bool{true, false} {
			many, err := c.InsertMany(ctx, []bson.D{{}, {}}, sextant.InsertManyOptions{Ordered: new(ordered)})
			if e, ok := errors.AsType[*mongoerr.Error](err); !ok || len(e.WriteErrors) != 0 || many.InsertedCount != 0 {
				t.Errorf("InsertMany, %v: %v, %+v", index, err, many)
			}
			for _, m := range (models{insertOf(bson.D{}), sextant.UpdateOneModel{Filter: id(1), Update: inc, Upsert: true}, sextant.DeleteOneModel{Filter: id(1)}}) {
				res, err := c.BulkWrite(ctx, models{m, m}, sextant.BulkWriteOptions{Ordered: new(ordered)})
				if e, ok := errors.AsType[*mongoerr.Error](err); !ok || len(e.WriteErrors) != 0 || tally(res) != tally(&sextant.BulkWriteResult{}) {
					t.Errorf("%T, %v: %v, %+v", m, index, err, res)
				}
			}
		}
	}
}
