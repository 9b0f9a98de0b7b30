package query

import (
	"slices"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

var testOptions = Options{
	Now:      time.Date(2032, 2, 29, 12, 30, 15, 123e6, time.UTC),
	ObjectID: func() bson.ObjectID { return bson.ObjectID{1, 2, 3} },
}

func testZone(name string) (*time.Location, bool) {
	loc, err := time.LoadLocation(name)
	return loc, err == nil
}

func show(docs []bson.Raw) string {
	var parts []string
	for _, d := range docs {
		parts = append(parts, jsonText(bson.DocumentValue(d)))
	}
	return strings.Join(parts, " ")
}

// sameDoc compares exactly, types too.
func sameDoc(got, want bson.Raw) bool { return same(bson.DocumentValue(got), bson.DocumentValue(want)) }

func same(got, want bson.RawValue) bool {
	if got.Type != want.Type {
		return false
	}
	if got.Type != bson.TypeEmbeddedDocument && got.Type != bson.TypeArray {
		return string(got.Value) == string(want.Value) || got.Type == bson.TypeDouble && value.IsNaN(got) && value.IsNaN(want)
	}
	g, _ := bson.Raw(got.Value).Elements()
	w, _ := bson.Raw(want.Value).Elements()
	return slices.EqualFunc(g, w, func(a, b bson.RawElement) bool { return a.Key() == b.Key() && same(a.Value(), b.Value()) })
}
