package sextant

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

func TestUnsetInheritsAndTheNearerLevelWins(t *testing.T) {
	cl := &Client{set: settings{readPref: readpref.Nearest()}}
	db := cl.Database("shop")
	inherits := db.Collection("people")
	own := db.Collection("people", CollectionOptions{ReadPreference: readpref.Secondary(), WriteConcern: concern.Majority()})
	if got := inherits.ReadPreference().Mode(); got != readpref.NearestMode {
		t.Errorf("a collection without a setting has %v", got)
	}
	if got := own.ReadPreference().Mode(); got != readpref.SecondaryMode {
		t.Errorf("a collection with secondary has %v", got)
	}
	if own.WriteConcern() == nil || inherits.WriteConcern() != nil {
		t.Errorf("write concerns: %v, %v", own.WriteConcern(), inherits.WriteConcern())
	}
	if got := (&Client{}).Database("shop").ReadPreference().Mode(); got != readpref.PrimaryMode {
		t.Errorf("where nobody set anything it is %v", got)
	}
}

func TestHandlesAreImmutable(t *testing.T) {
	db := (&Client{}).Database("shop")
	before := db.Collection("people")
	near := db.With(DatabaseOptions{ReadPreference: readpref.Nearest(), ReadConcern: concern.ReadMajority()})
	if db.ReadPreference().Mode() != readpref.PrimaryMode || before.ReadPreference().Mode() != readpref.PrimaryMode {
		t.Error("With changed the handle that it copies, or one made before")
	}
	if near.ReadPreference().Mode() != readpref.NearestMode || near.ReadConcern().Level != "majority" {
		t.Errorf("the copy has %v, %v", near.ReadPreference(), near.ReadConcern())
	}
	if c := As[bson.M](near.Collection("people")); c.ReadPreference().Mode() != readpref.NearestMode || c.Namespace() != "shop.people" {
		t.Errorf("As lost the settings or the name: %v, %s", c.ReadPreference(), c.Namespace())
	}
	if back := near.Collection("people").Database(); back.ReadPreference().Mode() != readpref.NearestMode || back.Name() != "shop" {
		t.Errorf("the collection's database is %q with %v", back.Name(), back.ReadPreference())
	}
}

func TestWrongNamesAreToldByTheFirstCall(t *testing.T) {
	cl := &Client{}
	for _, name := range []string{"", "a.b", "a b", "a/b", "a\\b", "a\"b", "a$b", "a\x00b", strings.Repeat("x", 64)} {
		_, err := cl.Database(name).Collection("people").FindOne(context.Background(), bson.D{})
		if !mongoerr.IsConfig(err) {
			t.Errorf("database %q: %v", name, err)
		}
	}
	for _, name := range []string{"", "a\x00b"} {
		if _, err := cl.Database("shop").Collection(name).CountDocuments(context.Background(), bson.D{}); !mongoerr.IsConfig(err) {
			t.Errorf("collection %q: %v", name, err)
		}
	}
	if err := checkDatabase("$external"); err != nil {
		t.Error(err)
	}
}

func TestTwoOptionsValuesAreAnError(t *testing.T) {
	people := (&Client{}).Database("shop").Collection("people")
	_, err := people.Find(context.Background(), bson.D{}, FindOptions{}, FindOptions{})
	if !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), "2 options") {
		t.Errorf("Find: %v", err)
	}
	twice := (&Client{}).Database("shop", DatabaseOptions{}, DatabaseOptions{})
	if _, err := twice.RunCommand(context.Background(), bson.D{{Key: "ping", Value: 1}}); !mongoerr.IsConfig(err) {
		t.Errorf("Database: %v", err)
	}
}

func TestNilIsRefusedWhereADocumentBelongs(t *testing.T) {
	ctx := context.Background()
	people := (&Client{}).Database("shop").Collection("people")
	var none *person
	for name, call := range map[string]func() error{
		"filter":      func() error { _, err := people.Find(ctx, nil); return err },
		"nil D":       func() error { _, err := people.DeleteMany(ctx, bson.D(nil)); return err },
		"nil map":     func() error { _, err := people.FindOne(ctx, bson.M(nil)); return err },
		"document":    func() error { _, err := people.InsertOne(ctx, nil); return err },
		"pointer":     func() error { _, err := people.InsertOne(ctx, none); return err },
		"element":     func() error { _, err := people.InsertMany(ctx, []any{bson.D{}, nil}); return err },
		"slice":       func() error { _, err := people.InsertMany(ctx, nil); return err },
		"update":      func() error { _, err := people.UpdateOne(ctx, bson.D{}, nil); return err },
		"replacement": func() error { _, err := people.ReplaceOne(ctx, bson.D{}, nil); return err },
		"pipeline":    func() error { _, err := Aggregate[bson.D](ctx, people, nil); return err },
		"command":     func() error { _, err := people.Database().RunCommand(ctx, nil); return err },
		"index keys":  func() error { _, err := people.CreateIndex(ctx, IndexModel{}); return err },
	} {
		if err := call(); !errors.Is(err, ErrNilDocument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	//lint:ignore SA1012 a nil context is what this is about
	if _, err := people.FindOne(nil, bson.D{}); !mongoerr.IsConfig(err) { //nolint:staticcheck
		t.Errorf("context: %v", err)
	}
}

func TestUpdatesAndReplacementsAreNotTakenForEachOther(t *testing.T) {
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}
	for _, c := range []struct {
		what    string
		v       any
		replace bool
		ok      bool
	}{
		{"operators", set, false, true},
		{"operators in a map", bson.M{"$inc": bson.M{"x": 1}}, false, true},
		{"pipeline", []bson.D{set}, false, true},
		{"pipeline in an A", bson.A{set}, false, true},
		{"document as update", bson.D{{Key: "x", Value: 1}}, false, false},
		{"empty update", bson.D{}, false, false},
		{"empty pipeline", []bson.D{}, false, false},
		{"number as update", 5, false, false},
		{"operators as replacement", set, true, false},
		{"pipeline as replacement", []bson.D{set}, true, false},
		{"document as replacement", person{Name: "joe"}, true, true},
		{"empty replacement", bson.D{}, true, true},
		{"string as replacement", "x", true, false},
	} {
		cm := newCmd("update", "shop.people", "people")
		cm.change("u", c.v, c.replace)
		if (cm.err == nil) != c.ok {
			t.Errorf("%s: %v", c.what, cm.err)
		}
		if cm.err != nil && !mongoerr.IsConfig(cm.err) {
			t.Errorf("%s: the error is of another kind: %v", c.what, cm.err)
		}
	}
}
