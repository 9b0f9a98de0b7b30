package sextant

import (
	"bytes"
	"testing"

	"github.com/sextantdb/sextant/bson"
)

var fixedID = bson.ObjectID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}

// insertForm encodes a document as an insert does, under fixedID where an id is generated.
func insertForm(t *testing.T, doc any) (bson.Raw, bson.RawValue) {
	t.Helper()
	prefix := []byte("bytes before")
	b, id, err := appendInsert(bson.Options{}, prefix, doc, func() bson.ObjectID { return fixedID })
	if err != nil {
		t.Fatalf("%T: %v", doc, err)
	}
	if !bytes.HasPrefix(b, prefix) {
		t.Fatalf("%T: the bytes before the document changed: %q", doc, b)
	}
	raw := bson.Raw(b[len(prefix):])
	if err := raw.Validate(); err != nil {
		t.Fatalf("%T: invalid document % x: %v", doc, raw, err)
	}
	return raw, id
}

type person struct {
	ID   bson.ObjectID `bson:"_id"`
	Name string        `bson:"name"`
}

type omitted struct {
	Name string        `bson:"name"`
	ID   bson.ObjectID `bson:"_id,omitempty"`
}

type pointed struct {
	Name string         `bson:"name"`
	ID   *bson.ObjectID `bson:"_id"`
}

type anything struct {
	Name string `bson:"name"`
	ID   any    `bson:"_id"`
}

type inlined struct {
	Base person `bson:",inline"`
	Age  int32  `bson:"age"`
}

type named struct {
	ID   string `bson:"_id"`
	Name string `bson:"name"`
}

func TestInsertPutsGeneratedIDFirst(t *testing.T) {
	for _, doc := range []any{
		bson.D{{Key: "name", Value: "joe"}}, bson.M{"name": "joe"}, map[string]any{"name": "joe"},
		person{Name: "joe"}, &person{Name: "joe"}, omitted{Name: "joe"}, &omitted{Name: "joe"}, pointed{Name: "joe"}, &pointed{Name: "joe"},
		anything{Name: "joe"}, &anything{Name: "joe"}, &bson.D{{Key: "name", Value: "joe"}}, &bson.M{"name": "joe"},
	} {
		raw, id := insertForm(t, doc)
		want, err := bson.Marshal(bson.D{{Key: "_id", Value: fixedID}, {Key: "name", Value: "joe"}})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(raw, want) {
			t.Errorf("%T: got %v, want %v", doc, raw, bson.Raw(want))
		}
		if oid, ok := id.ObjectIDOK(); !ok || oid != fixedID {
			t.Errorf("%T: the result's id is %v", doc, id)
		}
	}
}

func TestInsertKeepsAnIDThatIsThere(t *testing.T) {
	other := bson.NewObjectID()
	for _, c := range []struct{ doc, want any }{
		{bson.D{{Key: "name", Value: "joe"}, {Key: "_id", Value: "joe"}}, "joe"},
		{bson.M{"_id": int32(0)}, int32(0)},
		{bson.D{{Key: "_id", Value: nil}}, nil},
		{bson.D{{Key: "_id", Value: bson.NilObjectID}}, bson.NilObjectID},
		{bson.M{"_id": "52ad2b0b4a4ae90b1c1d1e1f"}, "52ad2b0b4a4ae90b1c1d1e1f"},
		{&person{ID: other}, other},
		{named{Name: "joe"}, ""},
		{anything{ID: int64(7)}, int64(7)},
	} {
		before, err := bson.Marshal(c.doc)
		if err != nil {
			t.Fatal(err)
		}
		raw, id := insertForm(t, c.doc)
		if !bytes.Equal(raw, before) {
			t.Errorf("%T: got %v, want it unchanged: %v", c.doc, raw, bson.Raw(before))
		}
		if got := id.Any(); got != c.want {
			t.Errorf("%T: the result's id is %v (%T), want %v (%T)", c.doc, got, got, c.want, c.want)
		}
	}
}

type (
	namedMap map[string]any
	namedD   bson.D
)

func TestGeneratedIDIsWrittenBack(t *testing.T) {
	p, o, q, a, in := &person{}, &omitted{}, &pointed{}, &anything{}, &inlined{}
	m, d := bson.M{"x": 1}, &bson.D{{Key: "x", Value: 1}}
	nm, pm, nd := namedMap{"x": 1}, &namedMap{"x": 1}, &namedD{{Key: "x", Value: 1}}
	for _, doc := range []any{p, o, q, a, in, m, d, nm, pm, nd} {
		insertForm(t, doc)
	}
	if nm["_id"] != fixedID || (*pm)["_id"] != fixedID || len(*nd) != 2 || (*nd)[0].Key != "_id" || (*nd)[0].Value != fixedID {
		t.Errorf("types of the caller's: %v %v %v", nm, *pm, *nd)
	}
	if p.ID != fixedID || o.ID != fixedID || in.Base.ID != fixedID {
		t.Errorf("struct fields: %v %v %v", p.ID, o.ID, in.Base.ID)
	}
	if q.ID == nil || *q.ID != fixedID || a.ID != fixedID {
		t.Errorf("pointer and interface fields: %v %v", q.ID, a.ID)
	}
	if m["_id"] != fixedID {
		t.Errorf("map: %v", m)
	}
	if len(*d) != 2 || (*d)[0].Key != "_id" || (*d)[0].Value != fixedID {
		t.Errorf("D behind a pointer: %v", *d)
	}
}

func TestGeneratedIDIsNotWrittenBackIntoAValue(t *testing.T) {
	p := person{Name: "joe"}
	raw, _ := insertForm(t, p)
	if p.ID != bson.NilObjectID {
		t.Errorf("the caller's value changed: %v", p.ID)
	}
	if oid, _ := raw.Lookup("_id").ObjectIDOK(); oid != fixedID {
		t.Errorf("the document sent has _id %v", oid)
	}
}

func TestSecondInsertOfTheSamePointerKeepsItsID(t *testing.T) {
	p := &person{Name: "joe"}
	first, _ := insertForm(t, p)
	again, _, err := appendInsert(bson.Options{}, nil, p, bson.NewObjectID)
	if err != nil || !bytes.Equal(first, again) {
		t.Errorf("got %v (%v), want %v", bson.Raw(again), err, first)
	}
}

func TestInsertRefusesBrokenRawDocument(t *testing.T) {
	if b, _, err := appendInsert(bson.Options{}, nil, bson.Raw{9, 0, 0, 0, 2, 'a', 0, 0, 0}, bson.NewObjectID); err == nil {
		t.Errorf("accepted, as % x", b)
	}
}
