package interop

import (
	"bytes"
	"testing"

	"github.com/sextantdb/sextant/bson"
	theirs "go.mongodb.org/mongo-driver/v2/bson"
)

// tagged is used with json tags only: the official package remembers a struct's tags without the option.
type tagged struct {
	A string `json:"jay,omitempty"`
	B string `json:"jot" bson:"bee"`
	C int    `json:"-"`
}

type foreignID [12]byte

// TestIntendedDifferences holds both packages to the list in the documentation of package bson.
func TestIntendedDifferences(t *testing.T) {
	data, err := bson.Marshal(bson.D{{Key: "d", Value: bson.D{{Key: "x", Value: int32(1)}}}})
	if err != nil {
		t.Fatal(err)
	}
	var m bson.M
	var om theirs.M
	if bson.Unmarshal(data, &m) != nil || theirs.Unmarshal(data, &om) != nil {
		t.Fatal("not read")
	}
	if _, ok := m["d"].(bson.M); !ok {
		t.Errorf("a document in our M is %T", m["d"])
	}
	if _, ok := om["d"].(theirs.D); !ok {
		t.Errorf("a document in their M is %T: take the difference off the list", om["d"])
	}

	_, err = bson.Marshal(bson.D{{Key: "id", Value: foreignID{}}})
	_, theirErr := theirs.Marshal(theirs.D{{Key: "id", Value: foreignID{}}})
	if err == nil || theirErr != nil {
		t.Errorf("another package's ObjectID: ours %v, theirs %v", err, theirErr)
	}

	for name, doc := range map[string]string{
		"key that is not UTF-8":    "\x08\x00\x00\x00\x0a\xff\x00\x00",
		"string that is not UTF-8": "\x0e\x00\x00\x00\x02s\x00\x02\x00\x00\x00\xff\x00\x00",
	} {
		err, theirErr := bson.Unmarshal([]byte(doc), &bson.D{}), theirs.Unmarshal([]byte(doc), &theirs.D{})
		if err == nil || theirErr != nil {
			t.Errorf("%s: ours %v, theirs %v", name, err, theirErr)
		}
	}

	_, err = bson.NewPackedBitVector([]byte{0xff}, 3)
	_, theirErr = theirs.NewPackedBitVector([]byte{0xff}, 3)
	if err == nil || theirErr != nil {
		t.Errorf("padding bits that are not zero: ours %v, theirs %v", err, theirErr)
	}

	type outer struct{ In struct{ X int } }
	ours, err := bson.Options{OmitEmpty: true}.Marshal(outer{})
	var buf bytes.Buffer
	enc := theirs.NewEncoder(theirs.NewDocumentWriter(&buf))
	enc.OmitEmpty()
	theirErr = enc.Encode(outer{})
	if err != nil || theirErr != nil || bson.Raw(ours).String() != `{"in":{}}` || bson.Raw(buf.Bytes()).String() != `{"in":{"x":0}}` {
		t.Errorf("OmitEmpty below the top: ours %v, theirs %v", bson.Raw(ours), bson.Raw(buf.Bytes()))
	}
}

func TestBothPackagesTakeJSONTags(t *testing.T) {
	o := bson.Options{UseJSONStructTags: true}
	for _, v := range []tagged{{}, {"a", "b", 3}} {
		got, err := o.Marshal(v)
		var want bytes.Buffer
		enc := theirs.NewEncoder(theirs.NewDocumentWriter(&want))
		enc.UseJSONStructTags()
		theirErr := enc.Encode(v)
		if err != nil || theirErr != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("ours %v %v, theirs %v %v", bson.Raw(got), err, bson.Raw(want.Bytes()), theirErr)
		}
		var back tagged
		v.C = 0
		if err := o.Unmarshal(got, &back); err != nil || back != v {
			t.Errorf("%+v comes back as %+v, %v", v, back, err)
		}
	}
}
