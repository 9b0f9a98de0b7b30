package command

import (
	"fmt"
	"testing"

	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func filled(t *testing.T) *Member {
	t.Helper()
	m := newPrimary(t)
	command(t, m, "t", `{"insert":"c","documents":[{"_id":1,"a":1},{"_id":2,"a":2},{"_id":3,"a":2}]}`)
	return m
}

func TestAggregateCountsAndPages(t *testing.T) {
	m := filled(t)
	wantReply(t, m, `{"aggregate":"c","pipeline":[{"$match":{"a":2}},{"$group":{"_id":1,"n":{"$sum":1}}}],"cursor":{}}`,
		`{"cursor":{"firstBatch":[{"_id":1,"n":2}],"id":{"$numberLong":"0"},"ns":"t.c"},"ok":1.0}`)
	id, _ := command(t, m, "t", `{"aggregate":"c","pipeline":[{"$sort":{"_id":-1}}],"cursor":{"batchSize":1}}`).Lookup("cursor", "id").Int64OK()
	wantReply(t, m, fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"c"}`, id),
		`{"cursor":{"nextBatch":[{"_id":2,"a":2},{"_id":1,"a":1}],"id":{"$numberLong":"0"},"ns":"t.c"},"ok":1.0}`)
}

func TestAggregateUsesAnIndexForItsFirstMatch(t *testing.T) {
	m := filled(t)
	command(t, m, "t", `{"createIndexes":"c","indexes":[{"key":{"a":1},"name":"a_1"}]}`)
	plan := command(t, m, "t", `{"explain":{"aggregate":"c","pipeline":[{"$match":{"a":2}}],"cursor":{}},"verbosity":"queryPlanner"}`)
	if name, _ := plan.Lookup("queryPlanner", "winningPlan", "inputStage", "indexName").StringValueOK(); name != "a_1" {
		t.Errorf("the plan is %s", value.Print(plan.Lookup("queryPlanner", "winningPlan")))
	}
}

func TestOutReplacesAndMergeMerges(t *testing.T) {
	m := filled(t)
	command(t, m, "t", `{"insert":"d","documents":[{"_id":2,"x":9},{"_id":7}]}`)
	command(t, m, "t", `{"createIndexes":"o","indexes":[{"key":{"a":1},"name":"a_1"}]}`)
	command(t, m, "t", `{"insert":"o","documents":[{"_id":"old"}]}`)
	empty := `{"cursor":{"firstBatch":[],"id":{"$numberLong":"0"},"ns":"t.c"},"ok":1.0}`
	wantReply(t, m, `{"aggregate":"c","pipeline":[{"$match":{"a":2}},{"$out":"o"}],"cursor":{}}`, empty)
	wantReply(t, m, `{"find":"o"}`, `{"cursor":{"firstBatch":[{"_id":2,"a":2},{"_id":3,"a":2}],"id":{"$numberLong":"0"},"ns":"t.o"},"ok":1.0}`)
	if n := len(m.Store.Latest().Collection("t.o").Indexes()); n != 2 {
		t.Errorf("$out leaves %d indexes, want 2", n)
	}
	wantReply(t, m, `{"aggregate":"c","pipeline":[{"$merge":{"into":"d"}}],"cursor":{}}`, empty)
	wantReply(t, m, `{"find":"d","sort":{"_id":1}}`,
		`{"cursor":{"firstBatch":[{"_id":1,"a":1},{"_id":2,"x":9,"a":2},{"_id":3,"a":2},{"_id":7}],"id":{"$numberLong":"0"},"ns":"t.d"},"ok":1.0}`)
}

func TestLookupAndViewsReadOneSnapshot(t *testing.T) {
	m := filled(t)
	command(t, m, "t", `{"create":"v","viewOn":"c","pipeline":[{"$match":{"a":2}}]}`)
	command(t, m, "t", `{"create":"w","viewOn":"v","pipeline":[{"$project":{"_id":1}}]}`)
	wantReply(t, m, `{"find":"w","filter":{"_id":{"$gt":2}}}`, `{"cursor":{"firstBatch":[{"_id":3}],"id":{"$numberLong":"0"},"ns":"t.w"},"ok":1.0}`)
	wantReply(t, m, `{"count":"v"}`, `{"n":2,"ok":1.0}`)
	wantReply(t, m, `{"aggregate":"c","pipeline":[{"$match":{"_id":1}},{"$lookup":{"from":"w","localField":"none","foreignField":"none","as":"l"}}],"cursor":{}}`,
		`{"cursor":{"firstBatch":[{"_id":1,"a":1,"l":[{"_id":2},{"_id":3}]}],"id":{"$numberLong":"0"},"ns":"t.c"},"ok":1.0}`)
	wantReply(t, m, `{"update":"v","updates":[{"q":{},"u":{"$set":{"x":1}},"upsert":true}]}`,
		`{"n":0,"nModified":0,"writeErrors":[{"index":0,"code":166,"errmsg":"Namespace t.v is a view, not a collection"}],"ok":1.0}`)
}

func TestLetGivesVariablesToFilters(t *testing.T) {
	m := filled(t)
	wantReply(t, m, `{"find":"c","filter":{"$expr":{"$eq":["$a","$$n"]}},"let":{"n":{"$add":[0,1]}}}`,
		`{"cursor":{"firstBatch":[{"_id":1,"a":1}],"id":{"$numberLong":"0"},"ns":"t.c"},"ok":1.0}`)
	wantReply(t, m, `{"update":"c","updates":[{"q":{"_id":1},"u":[{"$set":{"a":"$$n"}}]}],"let":{"n":5}}`, `{"n":1,"nModified":1,"ok":1.0}`)
}

func TestLetTakesOnlyNamesOfVariables(t *testing.T) {
	m := filled(t)
	for _, name := range []string{"X", "1a", "a b", ""} {
		r := command(t, m, "t", `{"find": "c", "filter": {"$expr": {"$eq": [1, 1]}}, "let": {"`+name+`": 1}}`)
		if code, _ := r.Lookup("code").Int32OK(); code != mongoerr.CodeFailedToParse {
			t.Errorf("%q: %v", name, r)
		}
	}
}

func TestMergeThatMayNotMatchTellsTheKey(t *testing.T) {
	m := filled(t)
	command(t, m, "t", `{"insert":"d","documents":[{"_id":2,"x":9}]}`)
	wantReply(t, m, `{"aggregate":"c","pipeline":[{"$merge":{"into":"d","whenMatched":"fail"}}],"cursor":{}}`,
		`{"ok":0.0,"code":11000,"codeName":"DuplicateKey","keyPattern":{"_id":1},"keyValue":{"_id":2},
		"errmsg":"PlanExecutor error during aggregation :: caused by :: E11000 duplicate key error collection: t.d index: _id_ dup key: { _id: 2 }"}`)
}
