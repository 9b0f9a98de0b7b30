package interop

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A step is what a client is told to do, and what must come of it. All of it is Extended JSON; the order of fields counts,
// and so do types, save that an integer may come back in either width.
type step struct {
	do   string
	want string   // the answer; empty: it does not matter
	fail *failure // or the failure: its code and what it tells of a bulk write
}

// check has the puppet carry out the step.
func (s step) check(p *puppet) {
	p.t.Helper()
	got := p.do(s.do)
	switch {
	case s.fail != nil:
		if got.Error == nil {
			p.t.Errorf("%s succeeded: %v", s.do, got.OK)
		} else if e := got.Error; e.Code != s.fail.Code || s.fail.Failed != nil && (!slices.Equal(e.Failed, s.fail.Failed) || e.Inserted != s.fail.Inserted) {
			p.t.Errorf("%s:\n got %+v\nwant %+v", s.do, *e, *s.fail)
		}
	case got.Error != nil:
		p.t.Errorf("%s: %+v", s.do, *got.Error)
	case s.want != "":
		if got, want := canonical(p, got.OK), wanted(p, s.want); !bytes.Equal(got, want) {
			p.t.Errorf("%s:\n got %s\nwant %s", s.do, got, want)
		}
	}
}

// wanted is an expected value as canonical Extended JSON.
func wanted(p *puppet, text string) []byte {
	var doc struct{ V bson.RawValue }
	if err := bson.UnmarshalExtJSON([]byte(`{"v":`+text+`}`), false, &doc); err != nil {
		p.t.Fatalf("%s: %v", text, err)
	}
	return canonical(p, doc.V)
}

func canonical(p *puppet, v bson.RawValue) []byte {
	out, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, true, false)
	if err != nil {
		p.t.Fatalf("%v: %v", v, err)
	}
	out = bytes.ReplaceAll(out, []byte("$numberInt"), []byte("$number"))
	return bytes.ReplaceAll(out, []byte("$numberLong"), []byte("$number"))
}

var scenario = slices.Concat(documents, updates, bulks, indexes, aggregations, odds)

// Documents with arrays and nested documents are found by what is deep in them.
var documents = []step{
	{do: `{"op":"insertOne","collection":"people","document":{"_id":1,"name":"joe","age":30,"address":{"city":"Oslo","zip":"0150"},
		"awards":[{"kind":"gold","year":2001},{"kind":"iron","year":2005}],"scores":[1,5,9]}}`, want: `1`},
	{do: `{"op":"insertMany","collection":"people","documents":[
		{"_id":2,"name":"ann","age":41,"address":{"city":"Rome"},"awards":[{"kind":"gold","year":2010}],"scores":[]},
		{"_id":3,"name":"bob","age":25,"address":{"city":"Oslo"},"awards":[],"scores":[7,[8,9]]},
		{"_id":4,"name":"eve","age":null,"scores":5}]}`, want: `3`},
	{do: `{"op":"find","collection":"people","filter":{"_id":1}}`,
		want: `[{"_id":1,"name":"joe","age":30,"address":{"city":"Oslo","zip":"0150"},"awards":[{"kind":"gold","year":2001},{"kind":"iron","year":2005}],"scores":[1,5,9]}]`},
	{do: `{"op":"find","collection":"people","filter":{"address.city":"Oslo"},"sort":{"_id":-1},"projection":{"name":1}}`,
		want: `[{"_id":3,"name":"bob"},{"_id":1,"name":"joe"}]`},
	{do: `{"op":"find","collection":"people","filter":{"awards.kind":"gold"},"sort":{"name":1},"projection":{"_id":0,"awards.year":1}}`,
		want: `[{"awards":[{"year":2010}]},{"awards":[{"year":2001},{"year":2005}]}]`},
	{do: `{"op":"find","collection":"people","filter":{"awards.1.kind":"iron"},"projection":{"_id":1}}`, want: `[{"_id":1}]`},
	{do: `{"op":"find","collection":"people","filter":{"awards":{"$elemMatch":{"kind":"gold","year":{"$lt":2005}}}},"projection":{"awards.$":1}}`,
		want: `[{"_id":1,"awards":[{"kind":"gold","year":2001}]}]`},
	{do: `{"op":"find","collection":"people","filter":{"scores":5},"sort":{"_id":1},"projection":{"scores":1}}`,
		want: `[{"_id":1,"scores":[1,5,9]},{"_id":4,"scores":5}]`},
	{do: `{"op":"find","collection":"people","filter":{"scores":[8,9]},"projection":{"scores":{"$slice":1}}}`,
		want: `[{"_id":3,"name":"bob","age":25,"address":{"city":"Oslo"},"awards":[],"scores":[7]}]`},
	{do: `{"op":"find","collection":"people","filter":{"age":null},"projection":{"_id":1}}`, want: `[{"_id":4}]`},
	{do: `{"op":"find","collection":"people","filter":{"scores":{"$size":0}},"projection":{"name":1,"_id":0}}`, want: `[{"name":"ann"}]`},
	{do: `{"op":"find","collection":"people","filter":{"name":{"$regularExpression":{"pattern":"^[AB]","options":"i"}}},"sort":{"_id":1},"skip":1,"limit":1,"projection":{"_id":1}}`,
		want: `[{"_id":3}]`},
	{do: `{"op":"count","collection":"people","filter":{"$or":[{"age":{"$gte":30}},{"awards":{"$exists":false}}]}}`, want: `3`},
	{do: `{"op":"count","collection":"nobody"}`, want: `0`},
	{do: `{"op":"distinct","collection":"people","field":"address.city","filter":{}}`, want: `["Oslo","Rome"]`},
	{do: `{"op":"distinct","collection":"people","field":"awards.kind"}`, want: `["gold","iron"]`},
	{do: `{"op":"insertOne","collection":"people","document":{"_id":1}}`, fail: &failure{Code: 11000}},
	{do: `{"op":"find","collection":"people","filter":{"age":{"$nonsense":1}}}`, fail: &failure{Code: 2}},
}

var updates = []step{
	{do: `{"op":"updateOne","collection":"people","filter":{"_id":1},"update":{"$set":{"address.city":"Bergen"},"$inc":{"awards.0.year":1},"$push":{"scores":{"$each":[2,3],"$sort":-1}}}}`,
		want: `{"matched":1,"modified":1,"upserted":null}`},
	{do: `{"op":"updateOne","collection":"people","filter":{"_id":1,"awards.kind":"iron"},"update":{"$set":{"awards.$.kind":"silver"}}}`,
		want: `{"matched":1,"modified":1,"upserted":null}`},
	{do: `{"op":"updateMany","collection":"people","filter":{"awards":{"$exists":true}},"update":{"$set":{"awards.$[old].old":true}},"arrayFilters":[{"old.year":{"$lt":2006}}]}`,
		want: `{"matched":3,"modified":1,"upserted":null}`},
	{do: `{"op":"find","collection":"people","filter":{"_id":1}}`,
		want: `[{"_id":1,"name":"joe","age":30,"address":{"city":"Bergen","zip":"0150"},
			"awards":[{"kind":"gold","year":2002,"old":true},{"kind":"silver","year":2005,"old":true}],"scores":[9,5,3,2,1]}]`},
	{do: `{"op":"updateMany","collection":"people","filter":{},"update":{"$pull":{"awards":{"kind":"gold"}},"$unset":{"age":""}}}`, fail: nil,
		want: `{"matched":4,"modified":4,"upserted":null}`},
	{do: `{"op":"updateOne","collection":"people","filter":{"_id":9},"update":{"$setOnInsert":{"name":"zoe"},"$addToSet":{"tags":{"$each":["a","b","a"]}}},"upsert":true}`,
		want: `{"matched":0,"modified":0,"upserted":9}`},
	{do: `{"op":"findOneAndUpdate","collection":"people","filter":{"name":"zoe"},"update":{"$pop":{"tags":1},"$rename":{"name":"nick"}}}`,
		want: `{"_id":9,"tags":["a"],"nick":"zoe"}`},
	{do: `{"op":"findOneAndUpdate","collection":"people","filter":{"name":"nobody"},"update":{"$set":{"x":1}}}`, want: `null`},
	{do: `{"op":"replaceOne","collection":"people","filter":{"_id":9},"replacement":{"name":"zed"}}`, want: `{"matched":1,"modified":1,"upserted":null}`},
	{do: `{"op":"updateOne","collection":"people","filter":{"_id":9},"update":{"$set":{"name":"zed"}}}`, want: `{"matched":1,"modified":0,"upserted":null}`},
	{do: `{"op":"deleteOne","collection":"people","filter":{"address.city":"Oslo"}}`, want: `1`},
	{do: `{"op":"deleteMany","collection":"people","filter":{"_id":{"$gte":4}}}`, want: `2`},
	{do: `{"op":"find","collection":"people","sort":{"_id":1},"projection":{"scores":0,"address":0}}`,
		want: `[{"_id":1,"name":"joe","awards":[{"kind":"silver","year":2005,"old":true}]},{"_id":2,"name":"ann","awards":[]}]`},
}

var bulks = []step{
	{do: `{"op":"bulk","collection":"stock","models":[
		{"insertOne":{"document":{"_id":"bolt","n":1}}},
		{"insertOne":{"document":{"_id":"nut","n":2}}},
		{"updateOne":{"filter":{"_id":"bolt"},"update":{"$inc":{"n":10}}}},
		{"updateMany":{"filter":{},"update":{"$set":{"checked":true}}}},
		{"updateOne":{"filter":{"_id":"gear"},"update":{"$set":{"n":3}},"upsert":true}},
		{"replaceOne":{"filter":{"_id":"nut"},"replacement":{"n":20}}},
		{"deleteOne":{"filter":{"_id":"gear"}}},
		{"deleteMany":{"filter":{"n":{"$gt":100}}}}]}`,
		want: `{"inserted":2,"matched":4,"modified":4,"deleted":1,"upserted":1}`},
	{do: `{"op":"find","collection":"stock","sort":{"_id":1}}`, want: `[{"_id":"bolt","n":11,"checked":true},{"_id":"nut","n":20}]`},
	{do: `{"op":"bulk","collection":"stock","ordered":false,"models":[
		{"insertOne":{"document":{"_id":"cog"}}},{"insertOne":{"document":{"_id":"nut"}}},{"insertOne":{"document":{"_id":"cam"}}},{"insertOne":{"document":{"_id":"bolt"}}}]}`,
		fail: &failure{Code: 11000, Failed: []int{1, 3}, Inserted: 2}},
	{do: `{"op":"bulk","collection":"stock","models":[
		{"insertOne":{"document":{"_id":"pin"}}},{"insertOne":{"document":{"_id":"nut"}}},{"insertOne":{"document":{"_id":"rod"}}}]}`,
		fail: &failure{Code: 11000, Failed: []int{1}, Inserted: 1}},
	{do: `{"op":"find","collection":"stock","sort":{"_id":1},"projection":{"_id":1}}`, want: `[{"_id":"bolt"},{"_id":"cam"},{"_id":"cog"},{"_id":"nut"},{"_id":"pin"}]`},
}

var indexes = []step{
	{do: `{"op":"createIndex","collection":"accounts","keys":{"email":1},"options":{"unique":true}}`, want: `"email_1"`},
	{do: `{"op":"createIndex","collection":"accounts","keys":{"address.city":1,"age":-1},"options":{"name":"place"}}`, want: `"place"`},
	{do: `{"op":"createIndex","collection":"accounts","keys":{"email":1},"options":{"unique":true}}`, want: `"email_1"`},
	{do: `{"op":"listIndexes","collection":"accounts"}`, want: `["_id_","email_1","place"]`},
	{do: `{"op":"insertMany","collection":"accounts","documents":[{"_id":1,"email":"a@x"},{"_id":2,"email":"b@x"}]}`, want: `2`},
	{do: `{"op":"insertOne","collection":"accounts","document":{"_id":3,"email":"a@x"}}`, fail: &failure{Code: 11000}},
	{do: `{"op":"findOneAndUpdate","collection":"accounts","filter":{"_id":2},"update":{"$set":{"email":"a@x"}}}`, fail: &failure{Code: 11000}},
	{do: `{"op":"dropIndex","collection":"accounts","name":"email_1"}`},
	{do: `{"op":"insertOne","collection":"accounts","document":{"_id":3,"email":"a@x"}}`, want: `3`},
	{do: `{"op":"createIndex","collection":"accounts","keys":{"email":1},"options":{"unique":true}}`, fail: &failure{Code: 11000}},
	{do: `{"op":"dropIndex","collection":"accounts","name":"nothing"}`, fail: &failure{Code: 27}},
	{do: `{"op":"listIndexes","collection":"accounts"}`, want: `["_id_","place"]`},
}

var aggregations = []step{
	{do: `{"op":"insertMany","collection":"orders","documents":[
		{"_id":1,"who":1,"items":[{"sku":"bolt","n":2,"price":1.5},{"sku":"nut","n":1,"price":0.25}]},
		{"_id":2,"who":2,"items":[{"sku":"bolt","n":10,"price":1.25}]},
		{"_id":3,"who":1,"items":[]}]}`, want: `3`},
	{do: `{"op":"aggregate","collection":"orders","pipeline":[{"$unwind":"$items"},
		{"$group":{"_id":"$items.sku","n":{"$sum":"$items.n"},"sum":{"$sum":{"$multiply":["$items.n","$items.price"]}},"orders":{"$push":"$_id"}}},{"$sort":{"_id":1}}]}`,
		want: `[{"_id":"bolt","n":12,"sum":15.5,"orders":[1,2]},{"_id":"nut","n":1,"sum":0.25,"orders":[1]}]`},
	{do: `{"op":"aggregate","collection":"orders","pipeline":[{"$match":{"who":1}},{"$sort":{"_id":-1}},{"$lookup":{"from":"people","localField":"who","foreignField":"_id","as":"p"}},
		{"$project":{"name":{"$first":"$p.name"},"items":{"$size":"$items"}}}]}`,
		want: `[{"_id":3,"name":"joe","items":0},{"_id":1,"name":"joe","items":2}]`},
	{do: `{"op":"aggregate","collection":"orders","pipeline":[{"$facet":{"n":[{"$count":"n"}],"last":[{"$sort":{"_id":-1}},{"$limit":1},{"$project":{"_id":1}}]}}]}`,
		want: `[{"n":[{"n":3}],"last":[{"_id":3}]}]`},
	{do: `{"op":"aggregate","collection":"orders","pipeline":[{"$nonsense":{}}]}`, fail: &failure{Code: 40324}},
}

// Values of every kind come back as they were sent; a command unknown to the server is refused by its code.
var odds = []step{
	{do: `{"op":"insertOne","collection":"odds","document":{"_id":{"$oid":"65a1b2c3d4e5f60718293a4b"},"long":{"$numberLong":"9007199254740993"},"double":1.5,
		"decimal":{"$numberDecimal":"1.10"},"date":{"$date":{"$numberLong":"-1000"}},"bytes":{"$binary":{"base64":"AQI=","subType":"00"}},
		"uuid":{"$binary":{"base64":"AAECAwQFBgcICQoLDA0ODw==","subType":"04"}},"regex":{"$regularExpression":{"pattern":"a.b","options":"i"}},
		"ts":{"$timestamp":{"t":7,"i":1}},"min":{"$minKey":1},"max":{"$maxKey":1},"text":"grüße, 東京 🚲","nothing":null,"no":false,"deep":{"a":[[{"b":[]}]]}}}`,
		want: `{"$oid":"65a1b2c3d4e5f60718293a4b"}`},
	{do: `{"op":"find","collection":"odds"}`,
		want: `[{"_id":{"$oid":"65a1b2c3d4e5f60718293a4b"},"long":{"$numberLong":"9007199254740993"},"double":1.5,
		"decimal":{"$numberDecimal":"1.10"},"date":{"$date":{"$numberLong":"-1000"}},"bytes":{"$binary":{"base64":"AQI=","subType":"00"}},
		"uuid":{"$binary":{"base64":"AAECAwQFBgcICQoLDA0ODw==","subType":"04"}},"regex":{"$regularExpression":{"pattern":"a.b","options":"i"}},
		"ts":{"$timestamp":{"t":7,"i":1}},"min":{"$minKey":1},"max":{"$maxKey":1},"text":"grüße, 東京 🚲","nothing":null,"no":false,"deep":{"a":[[{"b":[]}]]}}]`},
	{do: `{"op":"find","collection":"odds","filter":{"decimal":{"$gt":1},"long":{"$numberLong":"9007199254740993"}},"projection":{"_id":0,"no":1}}`, want: `[{"no":false}]`},
	{do: `{"op":"command","db":"admin","command":{"noSuchCommand":1}}`, fail: &failure{Code: 59}},
	{do: `{"op":"drop","collection":"odds"}`},
	{do: `{"op":"count","collection":"odds"}`, want: `0`},
}
