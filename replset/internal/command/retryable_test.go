package command

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

const session = `"lsid":{"id":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"04"}}}`

// retryable is the text of a command in the session, as the transaction number n.
func retryable(text string, n int) string {
	return fmt.Sprintf(`%s,%s,"txnNumber":{"$numberLong":"%d"}}`, strings.TrimSuffix(text, "}"), session, n)
}

// refusals runs commands, and checks code and text of each answer; a code of 0 is no refusal.
func refusals(t *testing.T, m *Member, db string, cases []struct {
	command string
	code    int64
	text    string
}) {
	t.Helper()
	for _, c := range cases {
		reply := command(t, m, db, c.command)
		text, _ := reply.Lookup("errmsg").StringValueOK()
		if got := codeOf(reply); got != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%s\n   answers %d %q\n   want    %d %q", c.command, got, text, c.code, c.text)
		}
	}
}

func TestStatementNumbersAreChecked(t *testing.T) {
	m := newPrimary(t)
	cases := []struct {
		command string
		code    int64
		text    string
	}{
		{`{"insert":"c","documents":[{}],"stmtIds":["x"]}`, 14, "BSON field 'insert.stmtIds.0' is the wrong type 'string', expected type 'int'"},
		{`{"insert":"c","documents":[{}],"stmtIds":[{"$numberLong":"1099511627776"}]}`, 14, "'insert.stmtIds.0' is the wrong type 'long'"},
		{`{"insert":"c","documents":[{}],"stmtIds":1}`, 14, "BSON field 'insert.stmtIds' is the wrong type 'int', expected type 'array'"},
		{`{"insert":"c","documents":[{}],"stmtIds":[0,1]}`, 16, "Got 2 statement ids but 1 operations"},
		{`{"insert":"c","documents":[{}],"stmtIds":[null]}`, 16, "Got 0 statement ids but 1 operations"},
		{`{"insert":"c","documents":[{}],"stmtIds":null,"stmtId":null}`, 0, ""},
		{`{"insert":"c","documents":[{}],"stmtId":1.5}`, 14, "BSON field 'insert.stmtId' is the wrong type 'double', expected type 'int'"},
		{`{"insert":"c","documents":[{},{}],"stmtId":2147483647}`, 72, "stmtId 2147483647 is too large for a command of 2 statements"},
		{`{"insert":"c","documents":[{},{}],"stmtId":2147483646}`, 0, ""},
		{`{"insert":"c","documents":[{}],"stmtId":0,"stmtIds":[0]}`, 72, "May not specify both stmtId and stmtIds in write command"},
		{`{"update":"c","updates":[{"q":{},"u":{"$set":{"a":1}}}],"stmtIds":[true]}`, 14, "'update.stmtIds.0'"},
		{`{"delete":"c","deletes":[{"q":{"a":7},"limit":1}],"stmtId":"x"}`, 14, "'delete.stmtId'"},
		{`{"findAndModify":"c","remove":true,"stmtId":"x"}`, 14, "BSON field 'findAndModify.stmtId' is the wrong type 'string', expected type 'int'"},
		{`{"findAndModify":"c","remove":true,"stmtIds":[0]}`, 40415, "BSON field 'findAndModify.stmtIds' is an unknown field."},
	}
	for i := range cases {
		cases[i].command = retryable(cases[i].command, i+1)
	}
	refusals(t, m, "t", cases)
	refusals(t, m, "admin", []struct {
		command string
		code    int64
		text    string
	}{
		{`{"bulkWrite":1,"nsInfo":[{"ns":"t.c"}],"ops":[{"insert":0,"document":{}}],"stmtId":0,"stmtIds":[0]}`, 72, "May not specify both stmtId and stmtIds in bulkWrite command"},
		{`{"bulkWrite":1,"nsInfo":[{"ns":"t.c"}],"ops":[{"insert":0,"document":{}}],"stmtIds":["x"]}`, 14, "'bulkWrite.stmtIds.0'"},
	})
	one := `{"insert":"d","documents":[{"_id":1},{"_id":2}],"stmtIds":[7,5]}`
	command(t, m, "t", retryable(one, 90))
	if err := failure(command(t, m, "t", retryable(`{"insert":"d","documents":[{"_id":2}],"stmtIds":[5]}`, 90))); err != nil {
		t.Errorf("the retry of one statement of two: %v", err)
	}
}

func TestTransactionNumberIsForRetryableWrites(t *testing.T) {
	m := newPrimary(t)
	old := memberOfVersion(t, slog.New(slog.DiscardHandler), "4.0")
	middle := memberOfVersion(t, slog.New(slog.DiscardHandler), "4.2")
	for _, text := range []string{`{"find":"c"}`, `{"aggregate":"c","pipeline":[],"cursor":{}}`, `{"count":"c"}`, `{"distinct":"c","key":"a"}`, `{"listCollections":1}`,
		`{"getMore":{"$numberLong":"1"},"collection":"c"}`, `{"drop":"c"}`, `{"create":"c"}`} {
		reply := command(t, m, "t", retryable(text, 1))
		name := firstKey(bson.Raw(mustJSON(t, text)))
		want := "txnNumber may only be provided for multi-document transactions and retryable write commands. " +
			"autocommit:false was not provided, and " + name + " is not a retryable write command."
		if got, _ := reply.Lookup("errmsg").StringValueOK(); codeOf(reply) != 50768 || got != want {
			t.Errorf("%s answers %s", text, value.PrintDoc(reply))
		}
		if got, _ := reply.Lookup("codeName").StringValueOK(); got != "NotARetryableWriteCommand" {
			t.Errorf("the code's name is %s", got)
		}
		reply = command(t, middle, "t", retryable(text, 1))
		if got, _ := reply.Lookup("codeName").StringValueOK(); got != "Location50768" {
			t.Errorf("version 4.2 calls the code %s", got)
		}
	}
	if err := failure(command(t, old, "t", retryable(`{"find":"c"}`, 1))); err != nil {
		t.Errorf("version 4.0 took a number on reads: %v", err)
	}
	reply := command(t, old, "t", retryable(`{"drop":"c"}`, 1))
	if text, _ := reply.Lookup("errmsg").StringValueOK(); text != "It is illegal to provide a txnNumber for command drop" {
		t.Errorf("version 4.0 says %q", text)
	}
}

func mustJSON(t *testing.T, text string) bson.Raw {
	t.Helper()
	v, err := bson.ParseExtJSON([]byte(text), false)
	if err != nil {
		t.Fatal(err)
	}
	d, _ := v.DocumentOK()
	return d
}

func TestRetryOfAnotherWriteIsRefused(t *testing.T) {
	m := newPrimary(t)
	const (
		upsert = `{"findAndModify":"c","query":{"_id":1},"update":{"$set":{"a":1}},"upsert":true}`
		change = `{"findAndModify":"c","query":{"_id":1},"update":{"$inc":{"n":1}}}`
		after  = `{"findAndModify":"c","query":{"_id":1},"update":{"$inc":{"n":1}},"new":true}`
		remove = `{"findAndModify":"c","query":{"_id":1},"remove":true}`
		update = `{"update":"c","updates":[{"q":{"_id":1},"u":{"$inc":{"n":1}}}]}`
		erase  = `{"delete":"c","deletes":[{"q":{"_id":1},"limit":1}]}`
		put    = `{"insert":"c","documents":[{"_id":1}]}`
	)
	other := "is not compatible with previous write in the transaction of type: "
	for i, c := range []struct {
		first, retry string
		code         int64
		text         string
	}{
		{upsert, upsert, 0, ""},
		{upsert, change, 40608, "findAndModify retry request " + other + "i"},
		{upsert, remove, 40608, other + "i"},
		{change, change, 0, ""},
		{change, after, 40611, "wants the document after update returned, but only before update document is stored"},
		{after, change, 40612, "wants the document before update returned, but only after update document is stored"},
		{change, remove, 0, ""}, // a server looks at the images alone
		{update, change, 40612, "wants the document before"},
		{update, after, 40611, "wants the document after"},
		{remove, remove, 0, ""},
		{remove, change, 40606, "findAndModify retry request " + other + "d"},
		{remove, upsert, 40606, other + "d"},
		{erase, remove, 40607, "No pre-image available for findAndModify retry request"},
		{erase, update, 40638, "update retry request " + other + "d"},
		{put, update, 0, ""},
	} {
		command(t, m, "t", `{"delete":"c","deletes":[{"q":{},"limit":0}]}`)
		if c.first != put && c.first != upsert {
			command(t, m, "t", `{"insert":"c","documents":[{"_id":1,"n":1}]}`)
		}
		if err := failure(command(t, m, "t", retryable(c.first, i+1))); err != nil {
			t.Fatalf("%s: %v", c.first, err)
		}
		reply := command(t, m, "t", retryable(c.retry, i+1))
		text, _ := reply.Lookup("errmsg").StringValueOK()
		if codeOf(reply) != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%s\n   after   %s\n   answers %s\n   want    %d %q", c.retry, c.first, value.PrintDoc(reply), c.code, c.text)
		}
	}
}

func TestGetMoreOfAnotherNamespaceIsRefused(t *testing.T) {
	m := newPrimary(t)
	command(t, m, "t", `{"insert":"c","documents":[{"_id":1},{"_id":2},{"_id":3}]}`)
	id, _ := command(t, m, "t", `{"find":"c","batchSize":1}`).Lookup("cursor", "id").Int64OK()
	more := fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"%%s"}`, id)
	reply := command(t, m, "t", fmt.Sprintf(more, "d"))
	text, _ := reply.Lookup("errmsg").StringValueOK()
	if codeOf(reply) != 13 || text != "Requested getMore on namespace 't.d', but cursor belongs to a different namespace t.c" {
		t.Errorf("it answers %s", value.PrintDoc(reply))
	}
	if err := failure(command(t, m, "t", fmt.Sprintf(more, "c"))); err != nil {
		t.Errorf("the cursor is gone: %v", err)
	}
}

func TestFieldsOfABulkWriteAreChecked(t *testing.T) {
	m := newPrimary(t)
	var cases []struct {
		command string
		code    int64
		text    string
	}
	for _, c := range []struct {
		nsInfo, op string
		code       int64
		text       string
	}{
		{`{"ns":1}`, `{"insert":0,"document":{}}`, 14, "BSON field 'bulkWrite.nsInfo.ns' is the wrong type 'int', expected type 'string'"},
		{`{}`, `{"insert":0,"document":{}}`, 40414, "BSON field 'bulkWrite.nsInfo.ns' is missing"},
		{`{"ns":"t.c","x":1}`, `{"insert":0,"document":{}}`, 40415, "BSON field 'bulkWrite.nsInfo.x' is an unknown field."},
		{`{"ns":"t.c"}`, `{"insert":0,"document":{},"x":1}`, 40415, "BSON field 'bulkWrite.ops.x' is an unknown field."},
		{`{"ns":"t.c"}`, `{"insert":0,"document":1}`, 14, "BSON field 'bulkWrite.ops.document' is the wrong type 'int', expected type 'object'"},
		{`{"ns":"t.c"}`, `{"insert":0}`, 40414, "BSON field 'bulkWrite.ops.document' is missing"},
		{`{"ns":"t.c"}`, `{"insert":"x","document":{}}`, 14, "BSON field 'bulkWrite.ops.insert' is the wrong type 'string', expected types '[long, int, decimal, double]'"},
		{`{"ns":"t.c"}`, `{"insert":-1,"document":{}}`, 51024, "BSON field 'insert' value must be >= 0, actual value '-1'"},
		{`{"ns":"t.c"}`, `{"insert":1,"document":{}}`, 2, "invalid nsInfo index"},
		{`{"ns":"t.c"}`, `{"update":0,"filter":{},"updateMods":{},"x":1}`, 40415, "'bulkWrite.ops.x'"},
		{`{"ns":"t.c"}`, `{"update":0,"q":{},"updateMods":{}}`, 40415, "'bulkWrite.ops.q'"},
		{`{"ns":"t.c"}`, `{"update":0,"updateMods":{}}`, 40414, "'bulkWrite.ops.filter'"},
		{`{"ns":"t.c"}`, `{"update":0,"filter":1,"updateMods":{}}`, 14, "'bulkWrite.ops.filter'"},
		{`{"ns":"t.c"}`, `{"update":0,"filter":{}}`, 40414, "'bulkWrite.ops.updateMods'"},
		{`{"ns":"t.c"}`, `{"delete":0,"filter":{},"x":1}`, 40415, "'bulkWrite.ops.x'"},
		{`{"ns":"t.c"}`, `{"delete":0,"filter":{},"limit":1}`, 40415, "'bulkWrite.ops.limit'"},
		{`{"ns":"t.c"}`, `{"delete":0}`, 40414, "'bulkWrite.ops.filter'"},
		{`{"ns":"t.c"}`, `{"delete":0,"filter":{},"multi":1}`, 14, "'bulkWrite.ops.multi'"},
		{`{"ns":"t.c"}`, `{"update":0,"filter":{},"updateMods":[{"$set":{"a":"$$x"}}],"constants":{"x":1},"multi":true,"upsert":false,"hint":"_id_","collation":{"locale":"simple"}}`, 0, ""},
		{`{"ns":"t.c"}`, `{"delete":0,"filter":{},"multi":false,"hint":"_id_","collation":{"locale":"simple"}}`, 0, ""},
	} {
		cases = append(cases, struct {
			command string
			code    int64
			text    string
		}{fmt.Sprintf(`{"bulkWrite":1,"nsInfo":[%s],"ops":[%s]}`, c.nsInfo, c.op), c.code, c.text})
	}
	refusals(t, m, "admin", cases)
}

func TestDatabaseOfTheWrongTypeIsNamed(t *testing.T) {
	m := newPrimary(t)
	r := &Request{Name: "ping", Body: document(bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: 1}}), Conn: &Conn{m: m, peer: -1}, ctx: t.Context()}
	if rep := m.run(r); rep.err == nil || rep.err.Code != 13111 || rep.err.Message != "wrong type for field ($db) int != string" {
		t.Errorf("it answers %v", rep.err)
	}
}
