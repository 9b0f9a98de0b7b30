package sextant

import (
	"context"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/mongoerr"
)

// stranger is the id type of another package.
type stranger [12]byte

// rubbish writes BSON that is none.
type rubbish struct{}

func (rubbish) MarshalBSON() ([]byte, error) {
	return []byte{12, 0, 0, 0, 2, 'a', 0, 99, 0, 0, 0, 0}, nil
}

// No server is there: whatever is refused is refused before anything is sent.
func TestModelThatCannotBeSentIsNamed(t *testing.T) {
	ctx := context.Background()
	people := (&Client{}).Database("shop").Collection("people")
	all, set := bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}
	var none *InsertOneModel
	for name, c := range map[string]struct {
		model WriteModel
		says  string
	}{
		"nil":                        {nil, "model 2 is nil"},
		"nil pointer":                {none, "model 2 is nil"},
		"another's model":            {struct{ WriteModel }{}, "model 2 is a struct { sextant.WriteModel }, want a model of this package"},
		"no document":                {InsertOneModel{}, "model 2: the document is nil"},
		"id of another package":      {InsertOneModel{Document: bson.M{"_id": stranger{1}}}, "model 2: the document cannot be encoded"},
		"text as document":           {InsertOneModel{Document: "x"}, "model 2: the document cannot be encoded"},
		"rubbish":                    {InsertOneModel{Document: bson.M{"x": rubbish{}}}, "model 2: "},
		"no filter":                  {UpdateOneModel{Update: set}, "model 2: the filter is nil"},
		"no update":                  {UpdateOneModel{Filter: all}, "model 2: the update is nil"},
		"empty update":               {UpdateManyModel{Filter: all, Update: bson.D{}}, "model 2: the update is empty"},
		"empty pipeline":             {UpdateManyModel{Filter: all, Update: []bson.D{}}, "model 2: the update is a pipeline without stages"},
		"update without operators":   {&UpdateOneModel{Filter: all, Update: bson.D{{Key: "x", Value: 1}}}, `model 2: the update begins with the field "x"`},
		"replacement with operators": {ReplaceOneModel{Filter: all, Replacement: set}, "model 2: the replacement begins with the operator $set"},
		"no replacement":             {ReplaceOneModel{Filter: all}, "model 2: the replacement is nil"},
		"filter of another type":     {DeleteOneModel{Filter: 5}, "model 2: the filter must be a document"},
		"rubbish in a filter":        {DeleteOneModel{Filter: bson.M{"x": rubbish{}}}, "model 2: "},
		"rubbish in an update":       {UpdateOneModel{Filter: all, Update: bson.D{{Key: "$set", Value: rubbish{}}}}, "model 2: "},
		"nil filter of a delete":     {DeleteManyModel{Filter: bson.D(nil)}, "model 2: the filter is nil"},
		"hint without order":         {DeleteManyModel{Filter: all, Hint: bson.M{"a": 1, "b": 1}}, "model 2: the hint is a map of 2 keys"},
		"sort without order":         {UpdateOneModel{Filter: all, Update: set, Sort: bson.M{"a": 1, "b": 1}}, "model 2: the sort is a map of 2 keys"},
		"array filter":               {UpdateOneModel{Filter: all, Update: set, ArrayFilters: []any{nil}}, "model 2: the element 0 of arrayFilters is nil"},
	} {
		res, err := people.BulkWrite(ctx, []WriteModel{InsertOneModel{Document: all}, DeleteOneModel{Filter: all}, c.model})
		e, ok := err.(*mongoerr.Error)
		if !ok || res != nil || !strings.Contains(err.Error(), c.says) || e.Stage != mongoerr.StageConfig && e.Stage != mongoerr.StageEncode || e.NS != "shop.people" {
			t.Errorf("%s: %v, %v; want %q", name, res, err, c.says)
		}
	}
}

func TestBulkWriteThatIsWrongAsAWholeIsRefused(t *testing.T) {
	ctx := context.Background()
	people := (&Client{}).Database("shop").Collection("people")
	one := []WriteModel{InsertOneModel{Document: bson.D{}}}
	for name, call := range map[string]func() error{
		"nil slice":   func() error { _, err := people.BulkWrite(ctx, nil); return err },
		"empty slice": func() error { _, err := people.BulkWrite(ctx, []WriteModel{}); return err },
		"two options": func() error { _, err := people.BulkWrite(ctx, one, BulkWriteOptions{}, BulkWriteOptions{}); return err },
		"let":         func() error { _, err := people.BulkWrite(ctx, one, BulkWriteOptions{Let: 5}); return err },
		"context": func() error {
			//lint:ignore SA1012 a nil context is what this is about
			_, err := people.BulkWrite(nil, one) //nolint:staticcheck
			return err
		},
		"name": func() error {
			_, err := (&Client{}).Database("shop").Collection("").BulkWrite(ctx, one)
			return err
		},
	} {
		if err := call(); !mongoerr.IsConfig(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := people.BulkWrite(ctx, one, BulkWriteOptions{Comment: func() {}})
	if e, ok := err.(*mongoerr.Error); !ok || e.Stage != mongoerr.StageEncode {
		t.Errorf("comment: %v", err)
	}
}

// A hint that an old server would pass over is demanded of the server when nobody hears its answer.
func TestHintsOfAnUnacknowledgedBulkWriteDemandAServer(t *testing.T) {
	h := (&Client{}).Database("shop").Collection("people", CollectionOptions{WriteConcern: &concern.Write{W: 0}}).at()
	update := UpdateOneModel{Filter: bson.D{}, Update: bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}}
	hinted := update
	hinted.Hint = "x_1"
	for _, c := range []struct {
		models []WriteModel
		want   int32
	}{
		{[]WriteModel{update, DeleteOneModel{Filter: bson.D{}}}, 0},
		{[]WriteModel{hinted, DeleteOneModel{Filter: bson.D{}}}, wire42},
		{[]WriteModel{hinted, DeleteOneModel{Filter: bson.D{}, Hint: "x_1"}}, wire44},
	} {
		b, err := h.bulk(context.Background(), c.models, &BulkWriteOptions{})
		if err != nil || b.w.hints != c.want {
			t.Errorf("%+v: %+v, %v", c.models, b, err)
		}
	}
}
