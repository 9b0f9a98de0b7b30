package query

import (
	"math/rand"
	"testing"

	"github.com/sextantdb/sextant/bson"
)

// The fuzz targets take any bytes: what parses is run on a document that has a bit of everything. Nothing may panic or
// run for ever; what is refused is refused with an error of the server's kind.

var everything = `{"_id":1,"a":[1,{"b":[2,3],"c":"x"},[4]],"b":{"c":{"d":null}},"s":"text","d":{"$date":{"$numberLong":"1582979696789"}},"n":{"$numberDecimal":"1.5"},"":0}`

func seed(f *testing.F, literals ...string) bson.Raw {
	f.Helper()
	for _, l := range literals {
		f.Add([]byte(js(f, l)))
	}
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Add([]byte{9, 0, 0, 0, 2, 'a', 0, 255, 255})
	return js(f, everything)
}

func FuzzFilter(f *testing.F) {
	doc := seed(f, `{"a":{"$elemMatch":{"b":{"$gt":1}}},"$or":[{"s":{"$regex":"^t","$options":"i"}},{"n":{"$mod":[2,0]}}]}`,
		`{"$expr":{"$gt":["$n",{"$size":"$a"}]},"d":{"$type":["date",2]},"b.c.d":{"$not":{"$exists":false}}}`, `{"a":{"$all":[[4]],"$bitsAllSet":5}}`, `{"":1}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseFilter(bson.Raw(data), Options{})
		if err != nil {
			return
		}
		ok, pos, err := p.Eval(doc)
		if ok && err != nil || !ok && pos != -1 {
			t.Fatalf("matched %v at %d with error %v", ok, pos, err)
		}
		for _, e := range p.Equalities() {
			if e.Value.IsZero() { // the path may be empty: it is a name like others
				t.Fatalf("equality %+v", e)
			}
		}
	})
}

func FuzzUpdate(f *testing.F) {
	doc := seed(f, `{"$set":{"a.1.b.0":{"x":1},"q.r":2},"$inc":{"n":1},"$unset":{"b.c":1}}`, `{"$push":{"a":{"$each":[1,2],"$sort":{"b":1},"$slice":-2}}}`,
		`{"$rename":{"s":"t.u"},"$pull":{"a":{"$gt":0}}}`, `{"a":1,"_id":1}`, `{"$bit":{"x":{"and":7}},"$currentDate":{"y":{"$type":"timestamp"}}}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		u, err := ParseUpdate(bson.DocumentValue(data), nil, testOptions)
		if err != nil {
			return
		}
		out, changed, err := u.Apply(doc, 1, false)
		if err != nil {
			return
		}
		if bson.Raw(data).Validate() == nil && out.Validate() != nil {
			t.Fatalf("a valid update made an invalid document: %x", []byte(out))
		}
		if !changed && string(out) != string(doc) {
			t.Fatal("the document changed and the update denies it")
		}
	})
}

// FuzzFilteredUpdate: {u: a document or a pipeline, f: array filters, upsert: the filter of one}.
func FuzzFilteredUpdate(f *testing.F) {
	doc := seed(f, `{"u":{"$set":{"a.$[x].b":1},"$max":{"a.$[].c":2}},"f":[{"x.b":{"$gt":1}}]}`, `{"u":[{"$set":{"z":"$a"}},{"$unset":"b"}]}`,
		`{"u":[{"$replaceWith":{"$mergeObjects":["$$ROOT",{"q":1}]}}],"upsert":{"a":1,"b.c":{"$eq":2}}}`, `{"u":{"$setOnInsert":{"k":1}},"upsert":{"_id":{"x":1},"$and":[{"a":3}]}}`,
		`{"u":{"$pull":{"a":{"b":{"$in":[2]}}},"$push":{"a":{"$each":[],"$sort":-1,"$position":-2}}}}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bson.Raw(data)
		if in.Validate() != nil {
			return
		}
		var filters []bson.Raw
		list, _ := in.Lookup("f").ArrayOK()
		for _, v := range list.All() {
			d, _ := v.DocumentOK()
			filters = append(filters, d)
		}
		u, err := ParseUpdate(in.Lookup("u"), filters, testOptions)
		if err != nil {
			return
		}
		if out, _, err := u.Apply(doc, 1, false); err == nil && out.Validate() != nil {
			t.Fatalf("a valid update made an invalid document: %x", []byte(out))
		}
		q, _ := in.Lookup("upsert").DocumentOK()
		p, err := ParseFilter(q, testOptions)
		if q == nil || err != nil {
			return
		}
		if out, err := u.Upsert(p); err == nil && out.Validate() != nil {
			t.Fatalf("a valid upsert made an invalid document: %x", []byte(out))
		}
	})
}

// FuzzSort: an order is an order, whatever it says.
func FuzzSort(f *testing.F) {
	doc := seed(f, `{"a":1,"b.c":-1}`, `{"a.b":-1,"s":{"$meta":"textScore"}}`, `{"$natural":1}`)
	other := js(f, `{"_id":2,"a":[],"b":{"c":[1,{"d":2}]}}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSort(bson.Raw(data))
		if err != nil {
			return
		}
		if s.Compare(doc, doc) != 0 || s.Compare(doc, other) != -s.Compare(other, doc) {
			t.Fatalf("%x: %d, %d, %d", data, s.Compare(doc, doc), s.Compare(doc, other), s.Compare(other, doc))
		}
		_ = s.Apply([]bson.Raw{doc, other})
	})
}

func FuzzPipeline(f *testing.F) {
	doc := seed(f, `[{"$match":{"s":"text"}},{"$unwind":"$a"},{"$group":{"_id":"$a.c","n":{"$sum":1},"l":{"$push":"$$ROOT"}}},{"$sort":{"n":-1}}]`,
		`[{"$project":{"x":{"$dateToString":{"date":"$d","format":"%Y-%m"}},"y":{"$map":{"input":"$a","in":{"$type":"$$this"}}}}}]`,
		`[{"$facet":{"p":[{"$bucket":{"groupBy":"$n","boundaries":[0,2]}}],"q":[{"$sortByCount":"$s"}]}},{"$addFields":{"z":{"$let":{"vars":{"v":1},"in":{"$add":["$$v",2]}}}}}]`,
		`[{"$lookup":{"from":"c","localField":"s","foreignField":"s","as":"o"}},{"$replaceRoot":{"newRoot":{"$mergeObjects":["$$ROOT",{"k":1}]}}}]`)
	f.Fuzz(func(t *testing.T, data []byte) {
		env := Env{Options: testOptions, Lookup: func(string) Docs { return docsOf([]bson.Raw{doc}) }}
		env.Random = rand.New(rand.NewSource(1)).Float64
		p, err := ParsePipeline(bson.RawArray(data), env)
		if err != nil {
			return
		}
		n := 0
		for d, err := range p.Run(docsOf([]bson.Raw{doc, doc})) {
			if n++; err != nil || n > 1000 {
				return
			}
			if bson.Raw(data).Validate() == nil && d.Validate() != nil {
				t.Fatalf("a valid pipeline made an invalid document: %x", []byte(d))
			}
		}
	})
}

func FuzzProjection(f *testing.F) {
	doc := seed(f, `{"a.b":1,"s":1}`, `{"a":{"$slice":[1,1]},"b":0}`, `{"a":{"$elemMatch":{"b":2}}}`, `{"x":{"$concat":["$s","!"]}}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseProjection(bson.Raw(data), nil)
		if err != nil {
			return
		}
		if out, err := p.Apply(doc, 1); err == nil && bson.Raw(data).Validate() == nil && out.Validate() != nil {
			t.Fatalf("a valid projection made an invalid document: %x", []byte(out))
		}
	})
}
