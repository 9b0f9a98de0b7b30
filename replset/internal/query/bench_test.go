package query

import (
	"testing"

	"github.com/sextantdb/sextant/bson"
)

func BenchmarkMatchEquality(b *testing.B) {
	doc := js(b, `{"_id":{"$oid":"000000000000000000000001"},"name":"joe","awards":["gold","silver"],"n":5}`)
	f, err := ParseFilter(js(b, `{"awards":"silver","n":{"$gt":3}}`), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !f.Match(doc) {
			b.Fatal("no match")
		}
	}
}

func BenchmarkUpdateInc(b *testing.B) {
	doc := js(b, `{"_id":{"$oid":"000000000000000000000001"},"name":"joe","awards":["gold","silver"],"n":5}`)
	u, err := ParseUpdate(bson.DocumentValue(js(b, `{"$inc":{"n":1},"$set":{"x.y":2}}`)), nil, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, changed, err := u.Apply(doc, -1, false); !changed || err != nil {
			b.Fatal(changed, err)
		}
	}
}
