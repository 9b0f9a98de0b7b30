package command

import (
	"testing"

	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func TestExplainedPlansShowBoundsAndWhatTheyLeave(t *testing.T) {
	m := newPrimary(t)
	command(t, m, "t", `{"insert":"c","documents":[{"_id":1,"a":1,"b":2,"d":3,"m":[1,2]}]}`)
	command(t, m, "t", `{"createIndexes":"c","indexes":[{"key":{"a":1,"b":-1},"name":"ab"},{"key":{"d":-1},"name":"d"},{"key":{"m":1},"name":"m"}]}`)
	for _, c := range []struct{ filter, more, parsed, bounds, left string }{
		{`{"a":3}`, ``, `{ a: { $eq: 3 } }`, `{ a: [ "[3, 3]" ], b: [ "[MaxKey, MinKey]" ] }`, ``},
		{`{"a":{"$gt":5}}`, ``, `{ a: { $gt: 5 } }`, `{ a: [ "(5, inf.0]" ], b: [ "[MaxKey, MinKey]" ] }`, ``},
		{`{"a":{"$lte":5.5}}`, ``, `{ a: { $lte: 5.5 } }`, `{ a: [ "[-inf.0, 5.5]" ], b: [ "[MaxKey, MinKey]" ] }`, ``},
		{`{"a":{"$gte":"a","$lt":"b"}}`, ``, `{ $and: [ { a: { $lt: "b" } }, { a: { $gte: "a" } } ] }`, `{ a: [ "["a", "b")" ], b: [ "[MaxKey, MinKey]" ] }`, ``},
		{`{"a":{"$gt":"a"}}`, ``, `{ a: { $gt: "a" } }`, `{ a: [ "("a", {})" ], b: [ "[MaxKey, MinKey]" ] }`, ``},
		{`{"a":{"$in":[3,1]}}`, ``, `{ a: { $in: [ 3, 1 ] } }`, `{ a: [ "[1, 1]", "[3, 3]" ], b: [ "[MaxKey, MinKey]" ] }`, ``},
		{`{"a":null}`, ``, `{ a: { $eq: null } }`, `{ a: [ "[null, null]" ], b: [ "[MaxKey, MinKey]" ] }`, `{ a: { $eq: null } }`},
		{`{"a":true,"b":{"$gt":2}}`, ``, `{ $and: [ { a: { $eq: true } }, { b: { $gt: 2 } } ] }`, `{ a: [ "[true, true]" ], b: [ "[inf.0, 2)" ] }`, ``},
		{`{"a":1,"b":{"$gt":2}}`, `,"sort":{"b":1}`, `{ $and: [ { a: { $eq: 1 } }, { b: { $gt: 2 } } ] }`, `{ a: [ "[1, 1]" ], b: [ "(2, inf.0]" ] }`, ``},
		{`{"a":1,"x":{"$ne":2}}`, ``, `{ $and: [ { a: { $eq: 1 } }, { x: { $not: { $eq: 2 } } } ] }`, `{ a: [ "[1, 1]" ], b: [ "[MaxKey, MinKey]" ] }`, `{ x: { $not: { $eq: 2 } } }`},
		{`{"a":1,"b":{"$exists":false}}`, ``, `{ $and: [ { a: { $eq: 1 } }, { b: { $not: { $exists: true } } } ] }`, `{ a: [ "[1, 1]" ], b: [ "[MaxKey, MinKey]" ] }`, `{ b: { $not: { $exists: true } } }`},
		{`{"d":{"$in":[1,2]}}`, ``, `{ d: { $in: [ 1, 2 ] } }`, `{ d: [ "[2, 2]", "[1, 1]" ] }`, ``},
		{`{"d":{"$gt":{"$date":{"$numberLong":"5"}}}}`, ``, `{ d: { $gt: new Date(5) } }`, `{ d: [ "[new Date(9223372036854775807), new Date(5))" ] }`, ``},
		{`{"m":3}`, ``, `{ m: { $eq: 3 } }`, `{ m: [ "[3, 3]" ] }`, ``},
		{`{"m":{"$gt":1,"$lt":5}}`, ``, `{ $and: [ { m: { $lt: 5 } }, { m: { $gt: 1 } } ] }`, `{ m: [ "[-inf.0, 5)" ] }`, `{ m: { $gt: 1 } }`},
		{`{"m":1,"s":{"$regex":"^x","$options":"i"}}`, ``, `{ $and: [ { m: { $eq: 1 } }, { s: { $regex: "^x", $options: "i" } } ] }`, `{ m: [ "[1, 1]" ] }`, `{ s: { $regex: "^x", $options: "i" } }`},
	} {
		planner := command(t, m, "t", `{"explain":{"find":"c","filter":`+c.filter+c.more+`},"verbosity":"queryPlanner"}`).Lookup("queryPlanner").Document()
		fetch := planner.Lookup("winningPlan").Document()
		if got := value.Print(planner.Lookup("parsedQuery")); got != c.parsed {
			t.Errorf("%s is parsed to %s, want %s", c.filter, got, c.parsed)
		}
		if got := value.Print(fetch.Lookup("inputStage", "indexBounds")); got != c.bounds {
			t.Errorf("%s: bounds %s, want %s", c.filter, got, c.bounds)
		}
		left := ""
		if v := fetch.Lookup("filter"); !v.IsZero() {
			left = value.Print(v)
		}
		if left != c.left {
			t.Errorf("%s leaves %q, want %q", c.filter, left, c.left)
		}
	}
}
