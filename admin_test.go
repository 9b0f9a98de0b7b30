package sextant_test

import (
	"slices"
	"testing"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

func TestDatabasesAndCollectionsAreListedAndDropped(t *testing.T) {
	cl := connect(t, sharedURI(t))
	ctx, db := testContext(t), cl.Database("sextant_admin_test")
	t.Cleanup(func() { db.Drop(testContext(t)) })
	if err := db.CreateCollection(ctx, "made"); err != nil {
		t.Fatal(err)
	}
	must[*sextant.InsertOneResult](t)(db.Collection("grown").InsertOne(ctx, bson.M{"x": 1}))
	names := must[[]string](t)(db.ListCollectionNames(ctx, bson.D{}))
	slices.Sort(names)
	same(t, bson.M{"n": names}, bson.M{"n": []string{"grown", "made"}})
	infos := must[[]sextant.CollectionInfo](t)(db.ListCollections(ctx, bson.M{"name": "made"}))
	if len(infos) != 1 || infos[0].Type != "collection" || len(infos[0].Info.UUID.Data) != 16 {
		t.Errorf("infos: %+v", infos)
	}
	if err := db.CreateCollection(ctx, "made", sextant.CreateCollectionOptions{Capped: true, SizeInBytes: 4096}); mongoerr.Code(err) != mongoerr.CodeNamespaceExists {
		t.Errorf("creating again, otherwise: %v", err)
	}
	dbs := must[[]string](t)(cl.ListDatabaseNames(ctx, bson.M{"name": "sextant_admin_test"}))
	same(t, bson.M{"n": dbs}, bson.M{"n": []string{"sextant_admin_test"}})
	if res := must[*sextant.ListDatabasesResult](t)(cl.ListDatabases(ctx, bson.D{})); len(res.Databases) == 0 {
		t.Errorf("no databases: %+v", res)
	}
	for range 2 { // dropping what is gone is no error
		if err := db.Collection("grown").Drop(ctx); err != nil {
			t.Error(err)
		}
		if err := db.Drop(ctx); err != nil {
			t.Error(err)
		}
	}
	if names := must[[]string](t)(db.ListCollectionNames(ctx, bson.D{})); len(names) != 0 {
		t.Errorf("after the drop: %v", names)
	}
}

func TestUniqueIndexIsMadeEnforcedAndDropped(t *testing.T) {
	cl := connect(t, sharedURI(t))
	ctx, c := testContext(t), fresh[bson.D](t, cl)
	if infos := must[[]sextant.IndexInfo](t)(c.ListIndexes(ctx)); len(infos) != 0 {
		t.Errorf("a collection that does not exist has %v", infos)
	}
	name := must[string](t)(c.CreateIndex(ctx, sextant.IndexModel{Keys: bson.D{{Key: "mail", Value: 1}, {Key: "at", Value: -1}}, Unique: new(true)}))
	if name != "mail_1_at_-1" {
		t.Errorf("name %q", name)
	}
	more := must[[]string](t)(c.CreateIndexes(ctx, []sextant.IndexModel{{Keys: bson.M{"a": 1}}, {Keys: bson.M{"b": 1}, Name: "bee", Sparse: new(true)}}))
	same(t, bson.M{"n": more}, bson.M{"n": []string{"a_1", "bee"}})
	must[*sextant.InsertOneResult](t)(c.InsertOne(ctx, bson.M{"mail": "x", "at": 1}))
	if _, err := c.InsertOne(ctx, bson.M{"mail": "x", "at": 1}); !mongoerr.IsDuplicateKey(err) {
		t.Errorf("the second: %v", err)
	}
	infos := must[[]sextant.IndexInfo](t)(c.ListIndexes(ctx))
	byName := map[string]sextant.IndexInfo{} // servers are free to list them in any order
	for _, info := range infos {
		byName[info.Name] = info
	}
	if _, ok := byName["_id_"]; len(infos) != 4 || !ok || !byName[name].Unique || !byName["bee"].Sparse {
		t.Errorf("indexes: %+v", infos)
	}
	same(t, byName[name].Keys, bson.D{{Key: "mail", Value: 1}, {Key: "at", Value: -1}})
	if err := c.DropIndex(ctx, "bee"); err != nil {
		t.Error(err)
	}
	if err := c.DropIndex(ctx, "bee"); mongoerr.Code(err) != mongoerr.CodeIndexNotFound {
		t.Errorf("dropping what is gone: %v", err)
	}
	if err := c.DropIndex(ctx, "*"); !mongoerr.IsConfig(err) {
		t.Errorf("dropping * as one: %v", err)
	}
	if err := c.DropIndexes(ctx); err != nil {
		t.Error(err)
	}
	if infos := must[[]sextant.IndexInfo](t)(c.ListIndexes(ctx)); len(infos) != 1 {
		t.Errorf("after DropIndexes: %+v", infos)
	}
}

func TestRunCommandGoesToThePrimaryUnlessToldOtherwise(t *testing.T) {
	var s seen
	cl := connect(t, sharedURI(t), func(c *sextant.Config) {
		c.Monitor, c.LocalThreshold, c.ReadPreference = s.monitor(), wide(), readpref.Secondary()
	})
	ctx, db := testContext(t), cl.Database("admin")
	hello := bson.D{{Key: "hello", Value: 1}}
	type role struct {
		Primary   bool `bson:"isWritablePrimary"`
		Secondary bool `bson:"secondary"`
	}
	for range 5 {
		if r := must[role](t)(sextant.RunCommandAs[role](ctx, db, hello)); !r.Primary {
			t.Error("a plain command went to a secondary")
		}
	}
	if len(cl.Hosts().Members) < 2 {
		return
	}
	o := sextant.RunCommandOptions{ReadPreference: readpref.Secondary()}
	if r := must[role](t)(sextant.RunCommandAs[role](ctx, db, hello, o)); !r.Secondary {
		t.Error("a command with mode secondary went to the primary")
	}
	if _, err := db.RunCommand(ctx, bson.D{{Key: "noSuchCommand", Value: 1}}); mongoerr.Code(err) != mongoerr.CodeCommandNotFound {
		t.Errorf("an unknown command: %v", err)
	}
}
