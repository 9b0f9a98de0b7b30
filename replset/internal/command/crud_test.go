package command

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// wantReply runs a command and compares the fields of want (Extended JSON) with the reply's.
func wantReply(t *testing.T, m *Member, cmd, want string) bson.Raw {
	t.Helper()
	got := command(t, m, "t", cmd)
	v, err := bson.ParseExtJSON([]byte(want), false)
	if err != nil {
		t.Fatalf("%s: %v", want, err)
	}
	d, _ := v.DocumentOK()
	if err := sameReply(d, got); err != nil {
		t.Errorf("%s: %v\nwant %s\ngot  %s", cmd, err, value.PrintDoc(d), value.PrintDoc(got))
	}
	return got
}

func TestWriteErrorsStopAnOrderedBatchOnly(t *testing.T) {
	m := newPrimary(t)
	dup := `{"index":1,"code":11000,"errmsg":"E11000 duplicate key error collection: t.c index: _id_ dup key: { _id: 1 }","keyPattern":{"_id":1},"keyValue":{"_id":1}}`
	wantReply(t, m, `{"insert":"c","documents":[{"_id":1},{"_id":1},{"_id":2}]}`, `{"n":1,"writeErrors":[`+dup+`],"ok":1.0}`)
	wantReply(t, m, `{"insert":"c","documents":[{"_id":3},{"_id":1},{"_id":4}],"ordered":false}`, `{"n":2,"writeErrors":[`+dup+`],"ok":1.0}`)
	wantReply(t, m, `{"count":"c"}`, `{"n":3,"ok":1.0}`)
}

// A stage that no server knows refuses the whole command, before any statement; what is wrong within a stage, its statement.
func TestUnknownStageOfAnUpdateRefusesTheCommand(t *testing.T) {
	m := newPrimary(t)
	command(t, m, "t", `{"insert":"c","documents":[{"_id":1}]}`)
	wantReply(t, m, `{"update":"c","updates":[{"q":{"_id":1},"u":{"$set":{"a":1}}},{"q":{},"u":[{"$bogus":true}]}]}`,
		`{"ok":0.0,"code":40324,"codeName":"Location40324","errmsg":"Unrecognized pipeline stage name: '$bogus'"}`)
	if reply := command(t, m, "t", `{"update":"c","updates":[{"q":{"_id":1},"u":[{"$out":"d"}]}]}`); reply.Lookup("writeErrors", "0", "code").AsInt64() != 72 {
		t.Errorf("a stage that is out of place is answered %s", value.PrintDoc(reply))
	}
	wantReply(t, m, `{"find":"c","sort":{"_id":1},"returnKey":true,"showRecordId":true}`,
		`{"cursor":{"firstBatch":[{"_id":1}],"id":{"$numberLong":"0"},"ns":"t.c"},"ok":1.0}`)
}

func TestUpsertTellsTheNewID(t *testing.T) {
	m := newPrimary(t)
	wantReply(t, m, `{"update":"c","updates":[{"q":{"_id":7,"a":1},"u":{"$set":{"b":2}},"upsert":true},{"q":{"_id":7},"u":{"$inc":{"a":1}}},{"q":{"_id":7},"u":{"$set":{"b":2}}}]}`,
		`{"n":3,"nModified":1,"upserted":[{"index":0,"_id":7}],"ok":1.0}`)
	wantReply(t, m, `{"find":"c"}`, `{"cursor":{"firstBatch":[{"_id":7,"a":2,"b":2}],"id":{"$numberLong":"0"},"ns":"t.c"},"ok":1.0}`)
}

// TestRetriedWritesAnswerAsTheFirstTime: each statement is executed once, whatever kind
// it is, and a findAndModify answers with the document that it answered with before.
func TestRetriedWritesAnswerAsTheFirstTime(t *testing.T) {
	m := newPrimary(t)
	command(t, m, "t", `{"insert":"c","documents":[{"_id":1,"n":0},{"_id":2,"n":0}]}`)
	session := `"lsid":{"id":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"04"}}},"txnNumber":{"$numberLong":"%d"}}`
	for i, cmd := range []string{
		`{"insert":"c","documents":[{"_id":10},{"_id":11}],`,
		`{"update":"c","updates":[{"q":{"_id":1},"u":{"$inc":{"n":1}}},{"q":{"_id":99},"u":{"$inc":{"n":1}},"upsert":true}],`,
		`{"findAndModify":"c","query":{"_id":1},"update":{"$inc":{"n":1}},`,
		`{"findAndModify":"c","query":{"_id":1},"update":{"$inc":{"n":1}},"new":true,`,
		`{"findAndModify":"c","query":{"_id":2},"remove":true,`,
		`{"findAndModify":"c","query":{"_id":50},"update":{"$inc":{"n":1}},"upsert":true,"new":true,`,
		`{"delete":"c","deletes":[{"q":{"_id":10},"limit":1}],`,
	} {
		full := cmd + fmt.Sprintf(session, i+1)
		first := command(t, m, "t", full)
		after := value.PrintDoc(command(t, m, "t", `{"find":"c","sort":{"_id":1}}`))
		second := command(t, m, "t", full)
		if err := sameReply(first, second); err != nil {
			t.Errorf("%s: %v\nfirst  %s\nsecond %s", full, err, value.PrintDoc(first), value.PrintDoc(second))
		}
		if now := value.PrintDoc(command(t, m, "t", `{"find":"c","sort":{"_id":1}}`)); cutTimes(now) != cutTimes(after) {
			t.Errorf("%s was executed again:\n%s\n%s", full, after, now)
		}
	}
	old := `{"insert":"c","documents":[{"_id":12}],` + fmt.Sprintf(session, 1)
	if code, _ := command(t, m, "t", old).Lookup("code").AsInt64OK(); code != 225 {
		t.Errorf("an old transaction number gives code %d, want 225", code)
	}
}

func TestRetriedWritesWhoseEntryIsGoneAreNotExecutedAgain(t *testing.T) {
	session := `"lsid":{"id":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"04"}}},"txnNumber":{"$numberLong":"1"}}`
	for cmd, want := range map[string]int64{ // the code, or else n is 1
		`{"insert":"c","documents":[{"_id":10}],`:                                                                                     0,
		`{"update":"c","updates":[{"q":{"_id":1},"u":{"$inc":{"n":1}}}],`:                                                             0,
		`{"delete":"c","deletes":[{"q":{"_id":1},"limit":1}],`:                                                                        0,
		`{"update":"c","updates":[{"q":{"_id":99},"u":{"$inc":{"n":1}},"upsert":true}],`:                                              217,
		`{"findAndModify":"c","query":{"_id":1},"update":{"$inc":{"n":1}},`:                                                           217,
		`{"findAndModify":"c","query":{"_id":50},"update":{"$inc":{"n":1}},"upsert":true,"new":true,`:                                 217,
		`{"bulkWrite":1,"ops":[{"insert":0,"document":{"_id":10}}],"nsInfo":[{"ns":"t.c"}],`:                                          0,
		`{"bulkWrite":1,"ops":[{"update":0,"filter":{"_id":9},"updateMods":{"$set":{"n":1}},"upsert":true}],"nsInfo":[{"ns":"t.c"}],`: 217,
	} {
		m := memberOn(t, slog.New(slog.DiscardHandler), "", NewDiskSized(3))
		command(t, m, "t", `{"insert":"c","documents":[{"_id":1,"n":0},{"_id":2,"n":0}]}`)
		db := "t"
		if strings.Contains(cmd, "bulkWrite") {
			db = "admin"
		}
		command(t, m, db, cmd+session)
		for i := range 5 {
			command(t, m, "t", fmt.Sprintf(`{"insert":"other","documents":[{"_id":%d}]}`, i))
		}
		before := value.PrintDoc(command(t, m, "t", `{"find":"c","sort":{"_id":1}}`))
		reply := command(t, m, db, cmd+session)
		code, _ := reply.Lookup("code").AsInt64OK()
		n, _ := reply.Lookup("n").AsInt64OK()
		if inserted, ok := reply.Lookup("nInserted").AsInt64OK(); ok {
			n = inserted
		}
		if code != want || code == 0 && n != 1 {
			t.Errorf("%s: want code %d\n%s", cmd, want, value.PrintDoc(reply))
		}
		if now := value.PrintDoc(command(t, m, "t", `{"find":"c","sort":{"_id":1}}`)); cutTimes(now) != cutTimes(before) {
			t.Errorf("%s was executed again:\n%s\n%s", cmd, before, now)
		}
	}
}

func cutTimes(s string) string {
	s, _, _ = strings.Cut(s, "$clusterTime")
	return s
}

func TestCursorReadsOneSnapshot(t *testing.T) {
	m := newPrimary(t)
	command(t, m, "t", `{"insert":"c","documents":[{"_id":1},{"_id":2},{"_id":3}]}`)
	id, _ := command(t, m, "t", `{"find":"c","batchSize":1}`).Lookup("cursor", "id").Int64OK()
	command(t, m, "t", `{"update":"c","updates":[{"q":{},"u":{"$set":{"z":1}},"multi":true}]}`)
	command(t, m, "t", `{"delete":"c","deletes":[{"q":{"_id":3},"limit":1}]}`)
	wantReply(t, m, fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"c"}`, id),
		`{"cursor":{"nextBatch":[{"_id":2},{"_id":3}],"id":{"$numberLong":"0"},"ns":"t.c"},"ok":1.0}`)
	if n := m.cursors.count(); n != 0 {
		t.Errorf("%d cursors are open after the last batch", n)
	}
}

func TestCursorBelongsToItsSession(t *testing.T) {
	m := newPrimary(t)
	command(t, m, "t", `{"insert":"c","documents":[{"_id":1},{"_id":2}]}`)
	session := `"lsid":{"id":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAA%s==","subType":"04"}}}}`
	id, _ := command(t, m, "t", `{"find":"c","batchSize":1,`+fmt.Sprintf(session, "A")).Lookup("cursor", "id").Int64OK()
	more := fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"c",`, id)
	if code, _ := command(t, m, "t", more+fmt.Sprintf(session, "Q")).Lookup("code").AsInt64OK(); code != 50738 {
		t.Errorf("another session gives code %d, want 50738", code)
	}
	if code, _ := command(t, m, "t", more[:len(more)-1]+"}").Lookup("code").AsInt64OK(); code != 50737 {
		t.Errorf("no session gives code %d, want 50737", code)
	}
	command(t, m, "admin", `{"endSessions":[{"id":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"04"}}}]}`)
	if n := m.cursors.count(); n != 0 {
		t.Errorf("%d cursors outlive their session", n)
	}
}

func TestIdleCursorIsClosedAfterTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table cursorTable
		defer table.closeAll()
		idle, eternal := &cursor{src: &listSource{}}, &cursor{src: &listSource{}, noTimeout: true}
		table.add(idle)
		table.add(eternal)
		time.Sleep(cursorLifetime)
		if c, err := table.checkout(idle.id); err != nil {
			t.Errorf("closed at the limit already: %v", err)
		} else {
			table.checkin(c, false)
		}
		time.Sleep(cursorLifetime + time.Second)
		if _, err := table.checkout(idle.id); err == nil {
			t.Error("an idle cursor is still there")
		}
		if _, err := table.checkout(eternal.id); err != nil {
			t.Errorf("a cursor without a timeout is gone: %v", err)
		}
	})
}

func TestCursorInUseIsRefusedAndClosedWhenDone(t *testing.T) {
	var table cursorTable
	c := &cursor{ns: "t.c", src: &listSource{}}
	table.add(c)
	if _, err := table.checkout(c.id); err != nil {
		t.Fatal(err)
	}
	if _, err := table.checkout(c.id); err == nil || !strings.Contains(err.Error(), "already in use") {
		t.Errorf("a cursor in use is given out again: %v", err)
	}
	if !table.kill(c.id, "t.c") {
		t.Error("a cursor in use cannot be killed")
	}
	table.checkin(c, false)
	if n := table.count(); n != 0 {
		t.Errorf("%d cursors are open", n)
	}
}

func TestAwaitDataWaitsForAnInsert(t *testing.T) {
	m := newPrimary(t)
	command(t, m, "t", `{"create":"k","capped":true,"size":4096}`)
	command(t, m, "t", `{"insert":"k","documents":[{"_id":1}]}`)
	id, _ := command(t, m, "t", `{"find":"k","tailable":true,"awaitData":true}`).Lookup("cursor", "id").Int64OK()
	more := fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"k","maxTimeMS":%%d}`, id)
	wantReply(t, m, fmt.Sprintf(more, 20), fmt.Sprintf(`{"cursor":{"nextBatch":[],"id":{"$numberLong":"%d"},"ns":"t.k"},"ok":1.0}`, id))
	var wg sync.WaitGroup
	wg.Go(func() {
		time.Sleep(20 * time.Millisecond)
		command(t, m, "t", `{"insert":"k","documents":[{"_id":2}]}`)
	})
	start := time.Now()
	wantReply(t, m, fmt.Sprintf(more, 20000), fmt.Sprintf(`{"cursor":{"nextBatch":[{"_id":2}],"id":{"$numberLong":"%d"},"ns":"t.k"},"ok":1.0}`, id))
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("the insert woke the cursor after %v", d)
	}
	wg.Wait()
}

func TestLargeResultIsCutAtSixteenMebibytes(t *testing.T) {
	m := newPrimary(t)
	for i := range 4 {
		insertText(t, m, i, 6<<20)
	}
	reply := command(t, m, "t", `{"find":"c"}`)
	batch, _ := reply.Lookup("cursor", "firstBatch").ArrayOK()
	id, _ := reply.Lookup("cursor", "id").Int64OK()
	if batch.Len() != 2 || id == 0 {
		t.Fatalf("the first batch has %d documents, cursor %d", batch.Len(), id)
	}
	next, _ := command(t, m, "t", fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"c"}`, id)).Lookup("cursor", "nextBatch").ArrayOK()
	if first, _ := next.Values(); len(first) != 2 {
		t.Errorf("the second batch has %d documents, want 2", len(first))
	}
}

// insertText inserts a document with a text of n bytes.
func insertText(t *testing.T, m *Member, id, n int) bson.Raw {
	t.Helper()
	doc := bson.D{{Key: "_id", Value: id}, {Key: "s", Value: strings.Repeat("x", n)}}
	return runCommand(t, m, "t", document(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{doc}}}))
}

func TestReadersSeeWholeTransactionsWhileOthersWrite(t *testing.T) {
	m := newPrimary(t)
	command(t, m, "t", `{"insert":"c","documents":[{"_id":1,"n":0},{"_id":2,"n":0}]}`)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				command(t, m, "t", `{"update":"c","updates":[{"q":{},"u":{"$inc":{"n":1}},"multi":true}],"writeConcern":{"w":1}}`)
			}
		})
	}
	for ctx.Err() == nil {
		var seen []string
		for _, d := range m.Store.Latest().Collection("t.c").Records(0) {
			seen = append(seen, value.Print(d.Lookup("n")))
		}
		if len(seen) != 2 || seen[0] != seen[1] {
			t.Fatalf("a reader sees a half of a transaction: %v", seen)
		}
	}
	wg.Wait()
}

func TestDocumentsThatCannotBeStoredAreRefused(t *testing.T) {
	m := newPrimary(t)
	wantReply(t, m, `{"insert":"c","documents":[{"_id":1,"a":{"b":1}}]}`, `{"n":1,"ok":1.0}`)
	big := insertText(t, m, 2, store.MaxDocumentSize)
	if code, _ := big.Lookup("writeErrors", "0", "code").AsInt64OK(); code != 2 {
		t.Errorf("a document over 16 MiB gives %s", value.Print(big.Lookup("writeErrors", "0", "code")))
	}
	insertText(t, m, 3, 9<<20)
	grow := document(bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: 3}}},
		{Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "y", Value: strings.Repeat("y", 9<<20)}}}}}}}}})
	if code, _ := runCommand(t, m, "t", grow).Lookup("writeErrors", "0", "code").AsInt64OK(); code != 17419 {
		t.Errorf("an update beyond 16 MiB gives code %d, want 17419", code)
	}
	wantReply(t, m, `{"insert":"c","documents":[{"_id":[1]}]}`, `{"n":0,"writeErrors":[{"index":0,"code":2,"errmsg":"can't use an array for _id"}],"ok":1.0}`)
	wantReply(t, m, `{"insert":"c","documents":[{"_id":9}],"bogus":1}`, `{"ok":0.0,"errmsg":"BSON field 'insert.bogus' is an unknown field.","code":40415}`)
}
