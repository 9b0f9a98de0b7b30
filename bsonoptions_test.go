package sextant_test

import (
	"context"
	"fmt"
	"log"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// withBSON is a collection of its own for the test, of a client with these options.
func withBSON[T any](t *testing.T, o bson.Options) *sextant.Collection[T] {
	t.Helper()
	return fresh[T](t, connect(t, sharedURI(t), func(c *sextant.Config) { c.BSON = o }))
}

type shy struct {
	ID   int32          `bson:"_id"`
	Name string         `json:"called,omitempty"`
	List []int          `json:"list"`
	Map  map[string]int `json:"map"`
	Blob []byte         `json:"blob"`
	In   struct{ X int }
	Wide int64
	Omit struct{ X int } `bson:"omit,omitempty"`
}

// TestEncodingOptionsReachTheServer inserts a document under one option and looks at what is stored.
func TestEncodingOptionsReachTheServer(t *testing.T) {
	plain := `{"_id":1,"name":"","list":null,"map":null,"blob":null,"in":{"x":0},"wide":7,"omit":{"x":0}}`
	for name, c := range map[string]struct {
		o    bson.Options
		want string
		wide bson.Type
	}{
		"none":                {bson.Options{}, plain, bson.TypeInt64},
		"UseJSONStructTags":   {bson.Options{UseJSONStructTags: true}, strings.Replace(plain, `"name":"",`, "", 1), bson.TypeInt64},
		"NilSliceAsEmpty":     {bson.Options{NilSliceAsEmpty: true}, strings.Replace(plain, `"list":null`, `"list":[]`, 1), bson.TypeInt64},
		"NilMapAsEmpty":       {bson.Options{NilMapAsEmpty: true}, strings.Replace(plain, `"map":null`, `"map":{}`, 1), bson.TypeInt64},
		"NilByteSliceAsEmpty": {bson.Options{NilByteSliceAsEmpty: true}, strings.Replace(plain, `"blob":null`, `"blob":{"$binary":{"base64":"","subType":"00"}}`, 1), bson.TypeInt64},
		"OmitEmpty":           {bson.Options{OmitEmpty: true}, `{"_id":1,"in":{},"wide":7,"omit":{}}`, bson.TypeInt64},
		"OmitZeroStruct":      {bson.Options{OmitZeroStruct: true}, strings.Replace(plain, `,"omit":{"x":0}`, "", 1), bson.TypeInt64},
		"IntMinSize":          {bson.Options{IntMinSize: true}, plain, bson.TypeInt32},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, people := testContext(t), withBSON[bson.Raw](t, c.o)
			must[*sextant.InsertOneResult](t)(people.InsertOne(ctx, shy{ID: 1, Wide: 7}))
			got := must[bson.Raw](t)(people.FindOne(ctx, bson.D{}))
			if got.String() != c.want || got.Lookup("wide").Type != c.wide {
				t.Errorf("\n got %v, wide is %v\nwant %s, %v", got, got.Lookup("wide").Type, c.want, c.wide)
			}
		})
	}
}

func TestMapKeysAreStringifiedThroughTheClient(t *testing.T) {
	ctx, people := testContext(t), withBSON[bson.Raw](t, bson.Options{StringifyMapKeysWithFmt: true})
	must[*sextant.InsertOneResult](t)(people.InsertOne(ctx, map[any]any{"_id": 1, false: true}))
	same(t, must[bson.Raw](t)(people.FindOne(ctx, map[any]any{false: true})), bson.D{{Key: "_id", Value: 1}, {Key: "false", Value: true}})
	if _, err := fresh[bson.D](t, connect(t, sharedURI(t))).InsertOne(ctx, map[any]any{false: true}); err == nil || !strings.Contains(err.Error(), "a bool is not text") {
		t.Errorf("without the option: %v", err)
	}
}

func TestInlineDuplicatesAreRefusedThroughTheClient(t *testing.T) {
	type doc struct {
		X     int
		Inner struct{ X, Y int } `bson:",inline"`
	}
	ctx := testContext(t)
	if _, err := withBSON[bson.D](t, bson.Options{ErrorOnInlineDuplicates: true}).InsertOne(ctx, doc{}); err == nil || !strings.Contains(err.Error(), "x") {
		t.Errorf("with the option: %v", err)
	}
	must[*sextant.InsertOneResult](t)(withBSON[bson.D](t, bson.Options{}).InsertOne(ctx, doc{}))
}

// argued has a field whose key is other under UseJSONStructTags, so that each command tells which options encoded it.
type argued struct {
	N int `json:"_n,omitempty"`
}

type pipelineStage struct {
	Match argued `json:"$match"`
}

// TestEveryArgumentIsEncodedByTheOptions looks for the key that an argument has only under the option.
func TestEveryArgumentIsEncodedByTheOptions(t *testing.T) {
	var s seen
	ctx := testContext(t)
	people := fresh[bson.D](t, connect(t, sharedURI(t), func(c *sextant.Config) {
		c.BSON.UseJSONStructTags, c.Monitor = true, s.monitor()
	}))
	db, x := people.Database(), argued{7}
	set := struct {
		Set argued `json:"$set"`
	}{x}
	for name, c := range map[string]struct {
		command string
		call    func() error
	}{
		"find":      {"find", func() error { _, err := people.Find(ctx, x); return err }},
		"sort":      {"find", func() error { _, err := people.Find(ctx, bson.D{}, sextant.FindOptions{Sort: x}); return err }},
		"findOne":   {"find", func() error { _, err := people.FindOne(ctx, x); return err }},
		"count":     {"aggregate", func() error { _, err := people.CountDocuments(ctx, x); return err }},
		"aggregate": {"aggregate", func() error { _, err := sextant.Aggregate[bson.D](ctx, people, []pipelineStage{{x}}); return err }},
		"database":  {"aggregate", func() error { _, err := sextant.AggregateDatabase[bson.D](ctx, db, []pipelineStage{{x}}); return err }},
		"distinct":  {"distinct", func() error { _, err := sextant.Distinct[any](ctx, people, "n", x); return err }},
		"updateOne": {"update", func() error { _, err := people.UpdateOne(ctx, bson.D{}, set); return err }},
		"updateFilter": {"update", func() error {
			_, err := people.UpdateMany(ctx, x, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}})
			return err
		}},
		"arrayFilters": {"update", func() error {
			_, err := people.UpdateOne(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}, sextant.UpdateOneOptions{ArrayFilters: []any{x}})
			return err
		}},
		"replace":       {"update", func() error { _, err := people.ReplaceOne(ctx, bson.D{}, x); return err }},
		"delete":        {"delete", func() error { _, err := people.DeleteOne(ctx, x); return err }},
		"insert":        {"insert", func() error { _, err := people.InsertOne(ctx, x); return err }},
		"insertMany":    {"insert", func() error { _, err := people.InsertMany(ctx, []argued{x}); return err }},
		"findAndUpdate": {"findAndModify", func() error { _, err := people.FindOneAndUpdate(ctx, bson.D{}, set); return err }},
		"findAndDelete": {"findAndModify", func() error { _, err := people.FindOneAndDelete(ctx, x); return err }},
		"runCommand": {"find", func() error {
			_, err := db.RunCommand(ctx, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: x}})
			return err
		}},
		"commandCursor": {"find", func() error {
			_, err := sextant.RunCommandCursor[bson.D](ctx, db, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: x}})
			return err
		}},
		"createIndex":     {"createIndexes", func() error { _, err := people.CreateIndex(ctx, sextant.IndexModel{Keys: x}); return err }},
		"listCollections": {"listCollections", func() error { _, err := db.ListCollections(ctx, x); return err }},
		"listDatabases":   {"listDatabases", func() error { _, err := people.Database().Client().ListDatabases(ctx, x); return err }},
		"validator": {"create", func() error {
			return db.CreateCollection(ctx, "validated", sextant.CreateCollectionOptions{Validator: x})
		}},
		"comment": {"drop", func() error { return people.Drop(ctx, sextant.DropOptions{Comment: x}) }},
	} {
		s.take("")
		_ = c.call() // some the server refuses
		sent := s.take(c.command)
		if len(sent) == 0 || !strings.Contains(sent[0].body.String(), `"_n":7`) {
			t.Errorf("%s: sent %v", name, sent)
		}
	}
}

// TestEveryResultIsDecodedByTheOptions asks each call that decodes for a document inside a document.
func TestEveryResultIsDecodedByTheOptions(t *testing.T) {
	ctx, people := testContext(t), withBSON[bson.D](t, bson.Options{Documents: bson.DocumentsAsM})
	inner := bson.M{"x": int32(1)}
	doc := bson.D{{Key: "_id", Value: int32(1)}, {Key: "in", Value: bson.D{{Key: "x", Value: int32(1)}}}}
	must[*sextant.InsertOneResult](t)(people.InsertOne(ctx, doc))
	update := bson.D{{Key: "$set", Value: bson.D{{Key: "in", Value: inner}}}}
	one := func(d bson.D, err error) (any, error) { v, _ := d.Get("in"); return v, err }
	all := func(c *sextant.Cursor[bson.D], err error) (any, error) {
		if err != nil {
			return nil, err
		}
		docs, err := c.All(ctx)
		if err != nil || len(docs) != 1 {
			return docs, err
		}
		return one(docs[0], nil)
	}
	for name, call := range map[string]func() (any, error){
		"Find":      func() (any, error) { return all(people.Find(ctx, bson.D{})) },
		"FindOne":   func() (any, error) { return one(people.FindOne(ctx, bson.D{})) },
		"Aggregate": func() (any, error) { return all(sextant.Aggregate[bson.D](ctx, people, bson.A{})) },
		"AggregateDatabase": func() (any, error) {
			return all(sextant.AggregateDatabase[bson.D](ctx, people.Database(), bson.A{bson.D{{Key: "$documents", Value: bson.A{doc}}}}))
		},
		"FindOneAndUpdate":  func() (any, error) { return one(people.FindOneAndUpdate(ctx, bson.D{}, update)) },
		"FindOneAndReplace": func() (any, error) { return one(people.FindOneAndReplace(ctx, bson.D{}, doc)) },
		"Distinct": func() (any, error) {
			v, err := sextant.Distinct[any](ctx, people, "in", bson.D{})
			return append(v, nil)[0], err
		},
		"RunCommandCursor": func() (any, error) {
			return all(sextant.RunCommandCursor[bson.D](ctx, people.Database(), bson.D{{Key: "find", Value: people.Name()}}))
		},
		"RunCommandAs": func() (any, error) {
			d, err := sextant.RunCommandAs[bson.D](ctx, people.Database(), bson.D{{Key: "find", Value: people.Name()}})
			cur, _ := d.Get("cursor")
			m, _ := cur.(bson.M)
			batch, _ := append(m["firstBatch"].(bson.A), nil)[0].(bson.M)
			return batch["in"], err
		},
	} {
		if got, err := call(); err != nil || !reflect.DeepEqual(got, inner) {
			t.Errorf("%s: %#v, %v", name, got, err)
		}
	}
	if got, err := one(people.FindOneAndDelete(ctx, bson.D{})); err != nil || !reflect.DeepEqual(got, inner) {
		t.Errorf("FindOneAndDelete: %#v, %v", got, err)
	}
	res := must[*sextant.InsertOneResult](t)(people.InsertOne(ctx, bson.D{{Key: "_id", Value: inner}}))
	many := must[*sextant.InsertManyResult](t)(people.InsertMany(ctx, []bson.D{{{Key: "_id", Value: bson.M{"x": int32(2)}}}}))
	up := must[*sextant.UpdateResult](t)(people.UpdateOne(ctx, bson.D{{Key: "_id", Value: bson.M{"x": int32(3)}}}, update, sextant.UpdateOneOptions{Upsert: true}))
	if !reflect.DeepEqual([]any{res.InsertedID, many.InsertedIDs[0], up.UpsertedID}, []any{inner, bson.M{"x": int32(2)}, bson.M{"x": int32(3)}}) {
		t.Errorf("ids: %#v, %#v, %#v", res.InsertedID, many.InsertedIDs, up.UpsertedID)
	}
}

// TestDecodingOptionsReachTheCaller reads one document under one option.
func TestDecodingOptionsReachTheCaller(t *testing.T) {
	type got struct {
		N    int
		Hex  string
		Any  any
		In   any
		When time.Time
		Map  map[string]int
		Sub  struct{ X, Y int }
	}
	id := bson.ObjectID{1}
	sub := func(key string) bson.D { return bson.D{{Key: key, Value: int32(1)}} }
	// The keys map and sub come twice: what the first left is there when the second is decoded.
	doc := bson.D{{Key: "n", Value: 1.5}, {Key: "hex", Value: id}, {Key: "any", Value: []byte{1}}, {Key: "in", Value: sub("x")},
		{Key: "when", Value: bson.DateTime(5)}, {Key: "map", Value: sub("a")}, {Key: "map", Value: sub("b")},
		{Key: "sub", Value: sub("x")}, {Key: "sub", Value: sub("y")}}
	base := bson.Options{AllowTruncatingDoubles: true, ObjectIDAsHexString: true}
	for name, c := range map[string]struct {
		set  func(*bson.Options)
		edit func(*got)
	}{
		"none":               {func(*bson.Options) {}, func(*got) {}},
		"BinaryAsSlice":      {func(o *bson.Options) { o.BinaryAsSlice = true }, func(g *got) { g.Any = []byte{1} }},
		"DocumentsAsM":       {func(o *bson.Options) { o.Documents = bson.DocumentsAsM }, func(g *got) { g.In = bson.M{"x": int32(1)} }},
		"DocumentsAsMap":     {func(o *bson.Options) { o.Documents = bson.DocumentsAsMap }, func(g *got) { g.In = map[string]any{"x": int32(1)} }},
		"UseLocalTimeZone":   {func(o *bson.Options) { o.UseLocalTimeZone = true }, func(g *got) { g.When = g.When.Local() }},
		"ZeroMaps":           {func(o *bson.Options) { o.ZeroMaps = true }, func(g *got) { g.Map = map[string]int{"b": 1} }},
		"ZeroStructs":        {func(o *bson.Options) { o.ZeroStructs = true }, func(g *got) { g.Sub.X = 0 }},
		"StringsCopied":      {func(o *bson.Options) { o.Strings = bson.StringsCopied }, func(*got) {}},
		"StringsAliased":     {func(o *bson.Options) { o.Strings = bson.StringsAliased }, func(*got) {}},
		"TruncatingByCursor": {func(*bson.Options) {}, func(*got) {}},
	} {
		t.Run(name, func(t *testing.T) {
			want := got{N: 1, Hex: id.Hex(), Any: bson.Binary{Data: []byte{1}}, In: sub("x"), When: time.UnixMilli(5).UTC(), Map: map[string]int{"a": 1, "b": 1}}
			want.Sub.X, want.Sub.Y = 1, 1
			c.edit(&want)
			o := base
			c.set(&o)
			ctx, people := testContext(t), withBSON[got](t, o)
			must[*sextant.InsertOneResult](t)(people.InsertOne(ctx, doc))
			if one, err := people.FindOne(ctx, bson.D{}); err != nil || !reflect.DeepEqual(one, want) {
				t.Errorf("FindOne\n got %+v, %v\nwant %+v", one, err, want)
			}
			if all, err := must[*sextant.Cursor[got]](t)(people.Find(ctx, bson.D{})).All(ctx); err != nil || len(all) != 1 || !reflect.DeepEqual(all[0], want) {
				t.Errorf("Find\n got %+v, %v\nwant %+v", all, err, want)
			}
			for what, without := range map[string]bson.Options{"double": {ObjectIDAsHexString: true}, "objectID": {AllowTruncatingDoubles: true}} {
				if _, err := people.With(sextant.CollectionOptions{BSON: &without}).FindOne(ctx, bson.D{}); err == nil || !strings.Contains(err.Error(), what) {
					t.Errorf("without the option for %s: %v", what, err)
				}
			}
		})
	}
}

func TestBSONOptionsAreInheritedAndTheNearerLevelWins(t *testing.T) {
	cl := connect(t, sharedURI(t), func(c *sextant.Config) { c.BSON.IntMinSize = true })
	own := &bson.Options{NilMapAsEmpty: true}
	db := cl.Database("d", sextant.DatabaseOptions{BSON: own})
	for name, c := range map[string]struct {
		got, want bson.Options
	}{
		"client":            {cl.BSONOptions(), bson.Options{IntMinSize: true}},
		"database":          {cl.Database("d").BSONOptions(), bson.Options{IntMinSize: true}},
		"database's own":    {db.BSONOptions(), *own},
		"collection":        {db.Collection("c").BSONOptions(), *own},
		"collection's own":  {db.Collection("c", sextant.CollectionOptions{BSON: new(bson.Options)}).BSONOptions(), bson.Options{}},
		"With":              {db.With(sextant.DatabaseOptions{BSON: new(bson.Options)}).BSONOptions(), bson.Options{}},
		"With nothing":      {db.With(sextant.DatabaseOptions{}).BSONOptions(), *own},
		"As and back again": {sextant.As[bson.M](db.Collection("c")).Database().BSONOptions(), *own},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v", name, c.got)
		}
	}
}

func TestOptionsThatStandForNothingAreRefused(t *testing.T) {
	ctx := context.Background()
	for _, o := range []bson.Options{{Documents: 9}, {Strings: 9}} {
		if _, err := sextant.ConnectConfig(ctx, &sextant.Config{Hosts: []string{"h"}, BSON: o}); !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), "9") {
			t.Errorf("client: %v", err)
		}
		db := connect(t, sharedURI(t)).Database("d", sextant.DatabaseOptions{BSON: &o})
		if _, err := db.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}); !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), "9") {
			t.Errorf("database: %v", err)
		}
		if _, err := db.Collection("c").Database().Collection("c").FindOne(ctx, bson.D{}); !mongoerr.IsConfig(err) {
			t.Errorf("collection: %v", err)
		}
	}
}

type jsonID struct {
	Key  bson.ObjectID `json:"_id"`
	Name string
}

type theirID [12]byte

type registeredID struct {
	ID theirID `bson:"_id"`
}

type registeredPointer struct {
	ID *theirID `bson:"_id"`
}

func TestGeneratedIDsGoWhereTheOptionsPutThem(t *testing.T) {
	bson.RegisterObjectIDType[theirID]()
	ctx, people := testContext(t), withBSON[bson.D](t, bson.Options{UseJSONStructTags: true})
	j, r, p := &jsonID{}, &registeredID{}, &registeredPointer{}
	for _, c := range []struct {
		doc any
		id  func() any
	}{
		{j, func() any { return j.Key }}, {r, func() any { return bson.ObjectID(r.ID) }}, {p, func() any { return bson.ObjectID(*p.ID) }},
	} {
		res := must[*sextant.InsertOneResult](t)(people.InsertOne(ctx, c.doc))
		if id := c.id(); id != res.InsertedID || id == (bson.ObjectID{}) {
			t.Errorf("%T: written back %v, inserted %v", c.doc, id, res.InsertedID)
		}
	}
	zero := &jsonID{}
	must[*sextant.InsertOneResult](t)(people.With(sextant.CollectionOptions{BSON: new(bson.Options)}).InsertOne(ctx, zero))
	if zero.Key != (bson.ObjectID{}) {
		t.Error("without the option the json tag counts")
	}
}

func ExampleCollectionOptions() {
	ctx := context.Background()
	_, people, end := exampleCollection("options")
	defer end()
	// Documents of other programs that know no null: nil slices are written as empty arrays.
	tidy := people.With(sextant.CollectionOptions{BSON: &bson.Options{NilSliceAsEmpty: true, IntMinSize: true}})
	if _, err := tidy.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "awards", Value: []string(nil)}}); err != nil {
		log.Fatal(err)
	}
	doc, err := sextant.As[bson.D](people).FindOne(ctx, bson.D{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(doc)
	// Output: {"_id":1,"awards":[]}
}
