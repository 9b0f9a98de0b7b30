package command

import (
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// badValues are put in the place of every value of a good command.
func badValues() []bson.RawValue {
	return []bson.RawValue{
		bson.NullValue(), bson.Int32Value(-1), bson.Int32Value(0), bson.Int64Value(1 << 62), bson.DoubleValue(1.5), bson.StringValue(""),
		bson.StringValue("$x"), bson.StringValue("a.$b.0"), bson.BooleanValue(true), bson.DocumentValue(bson.Raw{5, 0, 0, 0, 0}),
		bson.ArrayValue(bson.RawArray{5, 0, 0, 0, 0}), bson.DocumentValue(document(bson.D{{Key: "$x", Value: 1}})),
		bson.ArrayValue(arrayOf([]bson.Raw{document(bson.D{{Key: "a", Value: nil}})})), {Type: bson.TypeMinKey}, {Type: bson.TypeUndefined},
	}
}

var goodCommands = []string{
	`{"insert":"c","documents":[{"_id":1,"a":[1,{"b":2}]}],"ordered":true}`,
	`{"update":"c","updates":[{"q":{"_id":1},"u":{"$set":{"a.$[e]":1}},"multi":false,"upsert":true,"arrayFilters":[{"e":1}],"hint":{"_id":1}}],"let":{"x":1}}`,
	`{"update":"c","updates":[{"q":{"a":1},"u":[{"$set":{"z":"$a"}}],"multi":true}]}`,
	`{"delete":"c","deletes":[{"q":{"a":{"$gt":1}},"limit":1,"hint":"_id_"}]}`,
	`{"findAndModify":"c","query":{"_id":1},"sort":{"a":1},"update":{"$inc":{"n":1}},"new":true,"upsert":true,"fields":{"a":1}}`,
	`{"findAndModify":"c","query":{"_id":1},"remove":true}`,
	`{"find":"c","filter":{"a":{"$in":[1,2]}},"sort":{"a":1},"projection":{"a":1},"skip":1,"limit":1,"batchSize":1,"hint":{"a":1},"min":{"a":1},"max":{"a":3},"let":{"x":1}}`,
	`{"find":"k","tailable":true,"awaitData":true}`,
	`{"getMore":{"$numberLong":"5"},"collection":"c","batchSize":1}`,
	`{"killCursors":"c","cursors":[{"$numberLong":"5"}]}`,
	`{"count":"c","query":{"a":1},"skip":1,"limit":1,"hint":"a_1"}`,
	`{"distinct":"c","key":"a.b","query":{"a":1}}`,
	`{"aggregate":"c","pipeline":[{"$match":{"a":1}},{"$out":"o"}],"cursor":{"batchSize":1},"let":{"x":1}}`,
	`{"aggregate":"c","pipeline":[{"$collStats":{"count":{}}},{"$merge":{"into":"o","on":"_id","whenMatched":"merge"}}],"cursor":{}}`,
	`{"explain":{"find":"c","filter":{"a":1}},"verbosity":"executionStats"}`,
	`{"explain":{"update":"c","updates":[{"q":{"a":1},"u":{"$set":{"a":1}}}]}}`,
	`{"create":"n","capped":true,"size":4096,"max":3,"validator":{"a":1},"validationLevel":"off"}`,
	`{"create":"v","viewOn":"c","pipeline":[{"$match":{"a":1}}]}`,
	`{"collMod":"c","index":{"name":"a_1","expireAfterSeconds":5},"validator":{"a":1},"validationAction":"warn"}`,
	`{"createIndexes":"c","indexes":[{"key":{"b":1},"name":"b_1","unique":true,"sparse":true,"partialFilterExpression":{"b":{"$gt":1}},"collation":{"locale":"simple"}}]}`,
	`{"dropIndexes":"c","index":["x"]}`,
	`{"listIndexes":"c","cursor":{"batchSize":1}}`,
	`{"listCollections":1,"filter":{"name":"c"},"nameOnly":true,"cursor":{"batchSize":1}}`,
	`{"listDatabases":1,"filter":{"name":"t"},"nameOnly":true}`,
	`{"renameCollection":"t.r","to":"t.s","dropTarget":true}`,
	`{"collStats":"c"}`, `{"dbStats":1}`, `{"validate":"c"}`, `{"drop":"r"}`,
}

// TestBadArgumentsAreRefusedInTheServersWords: whatever stands in the place of a value,
// a command is answered, never by an internal error, and leaves sound indexes.
func TestBadArgumentsAreRefusedInTheServersWords(t *testing.T) {
	m := newPrimary(t)
	command(t, m, "t", `{"insert":"c","documents":[{"_id":1,"a":[1,2]},{"_id":2,"a":{"b":3}}]}`)
	command(t, m, "t", `{"createIndexes":"c","indexes":[{"key":{"a":1},"name":"a_1"}]}`)
	command(t, m, "t", `{"create":"k","capped":true,"size":4096}`)
	for _, text := range goodCommands {
		v, err := bson.ParseExtJSON([]byte(text), false)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		good, _ := v.DocumentOK()
		for i := range leaves(good) {
			for _, bad := range badValues() {
				n := 0
				cmd := replaceNth(good, i, &n, bad)
				for _, db := range []string{"t", "admin"} {
					reply := runCommand(t, m, db, cmd)
					if code, _ := reply.Lookup("code").AsInt64OK(); code == 1 {
						t.Errorf("%s answers %s", value.PrintDoc(cmd), value.PrintDoc(reply))
					}
				}
			}
		}
	}
	for _, c := range m.Store.Latest().Collections("t") {
		if faults := c.Validate(); len(faults) > 0 {
			t.Errorf("%s: %v", c.NS(), faults)
		}
	}
}

// leaves is the number of values in a document, nested ones included.
func leaves(doc bson.Raw) int {
	n := 0
	for _, v := range doc.All() {
		n++
		if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray {
			n += leaves(bson.Raw(v.Value))
		}
	}
	return n
}

// replaceNth is doc with its i-th value, counted as leaves does, replaced.
func replaceNth(doc bson.Raw, i int, n *int, bad bson.RawValue) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	for key, v := range doc.All() {
		at := *n
		*n++
		if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray {
			v.Value = replaceNth(bson.Raw(v.Value), i, n, bad)
		}
		if at == i {
			v = bad
		}
		dst = bson.AppendValue(dst, key, v)
	}
	return bson.EndDocument(dst, start)
}
