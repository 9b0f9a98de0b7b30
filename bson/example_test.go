package bson_test

import (
	"fmt"

	"github.com/sextantdb/sextant/bson"
)

func ExampleMarshal() {
	type Person struct {
		Name   string   `bson:"name"`
		Awards []string `bson:"awards,omitempty"`
	}
	b, err := bson.Marshal(Person{Name: "joe", Awards: []string{"gold"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(bson.Raw(b))
	var back bson.D
	fmt.Println(bson.Unmarshal(b, &back), back)
	// Output:
	// {"name":"joe","awards":["gold"]}
	// <nil> {"name":"joe","awards":["gold"]}
}

func ExampleRaw_All() {
	doc, start := bson.BeginDocument(nil)
	doc = bson.AppendString(doc, "set", "rs0")
	doc = bson.AppendInt32(doc, "members", 3)
	doc = bson.EndDocument(doc, start)
	for key, value := range bson.Raw(doc).All() {
		fmt.Println(key, value.Type, value)
	}
	// Output:
	// set string "rs0"
	// members 32-bit integer 3
}

func ExampleMarshalExtJSON() {
	v := bson.D{{"at", bson.DateTime(1356351330501)}, {"n", int64(7)}}
	for _, canonical := range []bool{true, false} {
		text, err := bson.MarshalExtJSON(v, canonical, false)
		fmt.Println(string(text), err)
	}
	// Output:
	// {"at":{"$date":{"$numberLong":"1356351330501"}},"n":{"$numberLong":"7"}} <nil>
	// {"at":{"$date":"2012-12-24T12:15:30.501Z"},"n":7} <nil>
}
