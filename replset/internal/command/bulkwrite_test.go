package command

import (
	"fmt"
	"testing"

	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func TestBulkWriteTellsWhatBecameOfEachWrite(t *testing.T) {
	m := newPrimary(t)
	got := command(t, m, "admin", `{"bulkWrite":1,"ordered":false,"nsInfo":[{"ns":"d.a"},{"ns":"d.b"}],"ops":[
		{"insert":0,"document":{"_id":1,"n":1}},{"insert":1,"document":{"_id":1}},{"insert":0,"document":{"_id":1}},
		{"update":0,"filter":{"_id":1},"updateMods":{"$inc":{"n":1}}},{"update":1,"filter":{"_id":7},"updateMods":{"$set":{"x":1}},"upsert":true},
		{"delete":1,"filter":{},"multi":true}]}`)
	if err := failure(got); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]int64{"nErrors": 1, "nInserted": 2, "nMatched": 1, "nModified": 1, "nUpserted": 1, "nDeleted": 2} {
		if n, _ := got.Lookup(field).AsInt64OK(); n != want {
			t.Errorf("%s is %d, want %d: %s", field, n, want, value.PrintDoc(got))
		}
	}
	replies := docsIn(got.Lookup("cursor", "firstBatch"))
	if len(replies) != 6 {
		t.Fatalf("%d replies, want 6", len(replies))
	}
	if code, _ := replies[2].Lookup("code").AsInt64OK(); code != 11000 {
		t.Errorf("the third write: %s", value.PrintDoc(replies[2]))
	}
	if id, _ := replies[4].Lookup("upserted", "_id").AsInt64OK(); id != 7 {
		t.Errorf("the upsert: %s", value.PrintDoc(replies[4]))
	}
	got = command(t, m, "admin", `{"bulkWrite":1,"errorsOnly":true,"nsInfo":[{"ns":"d.a"}],"ops":[
		{"insert":0,"document":{"_id":2}},{"insert":0,"document":{"_id":2}},{"insert":0,"document":{"_id":3}}]}`)
	if n := len(docsIn(got.Lookup("cursor", "firstBatch"))); n != 1 {
		t.Errorf("%d replies with errorsOnly, want 1: %s", n, value.PrintDoc(got))
	}
	if n, _ := got.Lookup("nInserted").AsInt64OK(); n != 1 {
		t.Errorf("an ordered bulk goes on after an error: %s", value.PrintDoc(got))
	}
}

func TestSnapshotReadsSeeOneMoment(t *testing.T) {
	m := newPrimary(t)
	command(t, m, "d", `{"insert":"c","documents":[{"_id":1}],"writeConcern":{"w":"majority"}}`)
	first := command(t, m, "d", `{"find":"c","readConcern":{"level":"snapshot"}}`)
	ts, inc, ok := first.Lookup("cursor", "atClusterTime").TimestampOK()
	if !ok {
		t.Fatalf("no atClusterTime: %s", value.PrintDoc(first))
	}
	command(t, m, "d", `{"insert":"c","documents":[{"_id":2}],"writeConcern":{"w":"majority"}}`)
	at := `{"$timestamp":{"t":` + fmt.Sprint(ts) + `,"i":` + fmt.Sprint(inc) + `}}`
	again := command(t, m, "d", `{"aggregate":"c","pipeline":[],"cursor":{},"readConcern":{"level":"snapshot","atClusterTime":`+at+`}}`)
	if got := firstBatchOf(t, again); got != `[ { _id: 1 } ]` {
		t.Errorf("the moment has %s", got)
	}
	now := command(t, m, "d", `{"distinct":"c","key":"_id","readConcern":{"level":"snapshot"}}`)
	if got := value.Print(now.Lookup("values")); got != `[ 1, 2 ]` {
		t.Errorf("now there is %s", got)
	}
}

func TestRetryableWriteFailsBeforeItCommits(t *testing.T) {
	m := newPrimary(t)
	command(t, m, "admin", `{"configureFailPoint":"onPrimaryTransactionalWrite","mode":{"times":1},"data":{"failBeforeCommitExceptionCode":91,"closeConnection":false}}`)
	const write = `{"insert":"c","documents":[{"_id":1}],"lsid":{"id":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"04"}}},"txnNumber":{"$numberLong":"1"}}`
	if code := codeOf(command(t, m, "d", write)); code != 91 {
		t.Errorf("code %d, want 91", code)
	}
	if got := firstBatchOf(t, command(t, m, "d", `{"find":"c"}`)); got != `[]` {
		t.Errorf("the write is there: %s", got)
	}
	if err := failure(command(t, m, "d", write)); err != nil {
		t.Errorf("the retry: %v", err)
	}
}
