package command

import (
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func codeOf(reply bson.Raw) int64 {
	if w, ok := reply.Lookup("writeErrors", "0").DocumentOK(); ok {
		reply = w
	}
	n, _ := reply.Lookup("code").AsInt64OK()
	return n
}

func firstBatchOf(t *testing.T, reply bson.Raw) string {
	t.Helper()
	if err := failure(reply); err != nil {
		t.Fatal(err)
	}
	return value.Print(reply.Lookup("cursor", "firstBatch"))
}

func TestCollectionComparesAsItsCollationSays(t *testing.T) {
	m := newPrimary(t)
	command(t, m, "d", `{"create":"c","collation":{"locale":"en","strength":2}}`)
	command(t, m, "d", `{"insert":"c","documents":[{"_id":"a","n":1},{"_id":"b","n":2},{"_id":3}]}`)
	if code := codeOf(command(t, m, "d", `{"insert":"c","documents":[{"_id":"A"}]}`)); code != 11000 {
		t.Errorf("code %d for an _id that differs in case alone, want 11000", code)
	}
	if got := firstBatchOf(t, command(t, m, "d", `{"find":"c","filter":{"_id":"B"}}`)); got != `[ { _id: "b", n: 2 } ]` {
		t.Errorf("by the collection's collation: %s", got)
	}
	if got := firstBatchOf(t, command(t, m, "d", `{"find":"c","filter":{"_id":"B"},"collation":{"locale":"simple"}}`)); got != `[]` {
		t.Errorf("by bytes: %s", got)
	}
	if got := firstBatchOf(t, command(t, m, "d", `{"find":"c","filter":{"_id":3},"collation":{"locale":"fr"}}`)); got != `[ { _id: 3 } ]` {
		t.Errorf("a number, by another collation: %s", got)
	}
	got := command(t, m, "d", `{"update":"c","updates":[{"q":{"_id":"A"},"u":{"$set":{"n":9}}}]}`)
	if n, _ := got.Lookup("nModified").AsInt64OK(); n != 1 {
		t.Errorf("update: %s", value.PrintDoc(got))
	}
	got = command(t, m, "d", `{"delete":"c","deletes":[{"q":{"_id":"B"},"limit":0}]}`)
	if n, _ := got.Lookup("n").AsInt64OK(); n != 1 {
		t.Errorf("delete: %s", value.PrintDoc(got))
	}
}

func TestIndexOfACollationServesQueriesOfTheSame(t *testing.T) {
	m := newPrimary(t)
	command(t, m, "d", `{"insert":"c","documents":[{"_id":1,"s":"b"},{"_id":2,"s":"A"},{"_id":3,"s":"a"},{"_id":4,"s":5}]}`)
	command(t, m, "d", `{"createIndexes":"c","indexes":[{"key":{"s":1},"name":"s","collation":{"locale":"en","strength":2}}]}`)
	for _, c := range []struct{ find, stage, want string }{
		{`{"find":"c","filter":{"s":{"$in":["a","A"]}},"collation":{"locale":"en","strength":2}}`, "IXSCAN", `[ { _id: 2, s: "A" }, { _id: 3, s: "a" } ]`},
		{`{"find":"c","filter":{"s":"a"}}`, "COLLSCAN", `[ { _id: 3, s: "a" } ]`},
		{`{"find":"c","filter":{"s":5}}`, "IXSCAN", `[ { _id: 4, s: 5 } ]`},
		{`{"find":"c","filter":{"s":{"$gt":"A"}},"sort":{"s":1},"collation":{"locale":"en","strength":2}}`, "IXSCAN", `[ { _id: 1, s: "b" } ]`},
	} {
		if got := firstBatchOf(t, command(t, m, "d", c.find)); got != c.want {
			t.Errorf("%s: %s, want %s", c.find, got, c.want)
		}
		plan := command(t, m, "d", `{"explain":`+c.find+`}`).Lookup("queryPlanner", "winningPlan")
		if got := value.Print(plan); !strings.Contains(got, c.stage) {
			t.Errorf("%s: plan %s, want %s", c.find, got, c.stage)
		}
	}
}

func TestDuplicateKeysOfACollationAreToldInHexadecimal(t *testing.T) {
	m := newPrimary(t)
	command(t, m, "d", `{"createIndexes":"c","indexes":[{"key":{"a":1,"b":1},"name":"ab","unique":true,"collation":{"locale":"en","strength":2}}]}`)
	command(t, m, "d", `{"insert":"c","documents":[{"_id":1,"a":"Joe","b":5}]}`)
	got := command(t, m, "d", `{"insert":"c","documents":[{"_id":2,"a":"jOE","b":5}]}`).Lookup("writeErrors", "0").Document()
	digits := got.Lookup("keyValue", "a").StringValue()
	if digits == "" || strings.Trim(digits, "0123456789abcdef") != "" {
		t.Errorf("the key is %q", digits)
	}
	collation := value.Print(got.Lookup("collation"))
	want := "E11000 duplicate key error collection: d.c index: ab collation: " + collation + ` dup key: { a: "0x` + digits + `", b: 5 }`
	if text := got.Lookup("errmsg").StringValue(); text != want || !strings.HasPrefix(collation, `{ locale: "en", caseLevel: false,`) {
		t.Errorf("told %s\nwant %s", text, want)
	}
	if hex := value.Print(got.Lookup("hexEncoded")); hex != "[ true, false ]" {
		t.Errorf("hexEncoded is %s", hex)
	}
	got = command(t, m, "d", `{"insert":"c","documents":[{"_id":1}]}`).Lookup("writeErrors", "0").Document()
	if !got.Lookup("collation").IsZero() || !got.Lookup("hexEncoded").IsZero() {
		t.Errorf("an index without a collation tells of one: %s", got)
	}
}
