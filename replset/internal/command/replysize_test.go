package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
)

// many is a command whose list has n elements.
func many(head bson.D, list string, n int, element func(i int) bson.D) bson.Raw {
	docs := make([]bson.Raw, n)
	for i := range docs {
		docs[i] = document(element(i))
	}
	return document(append(head, bson.E{Key: list, Value: docs}))
}

// readable checks that a client can read the reply.
func readable(t *testing.T, reply bson.Raw) {
	t.Helper()
	if len(reply) > 16<<20+16<<10 {
		t.Fatalf("a reply of %d bytes", len(reply))
	}
	if err := reply.Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestRepliesAboutManyFailedWritesCanBeRead(t *testing.T) {
	const n = 20_000
	m := newPrimary(t)
	long := strings.Repeat("p", 850)
	insert := func(n int) bson.Raw {
		return runCommand(t, m, "t", many(bson.D{{Key: "insert", Value: "c"}, {Key: "ordered", Value: false}}, "documents", n,
			func(int) bson.D { return bson.D{{Key: "_id", Value: long}} }))
	}
	if err := failure(insert(1)); err != nil {
		t.Fatal(err)
	}
	reply := insert(n)
	readable(t, reply)
	errs := docsIn(reply.Lookup("writeErrors"))
	if len(errs) != n {
		t.Fatalf("%d errors, want %d", len(errs), n)
	}
	texts, keys := 0, 0
	for i, e := range errs {
		index, _ := e.Lookup("index").AsInt64OK()
		code, _ := e.Lookup("code").AsInt64OK()
		text, told := e.Lookup("errmsg").StringValueOK()
		if index != int64(i) || code != 11000 || !told {
			t.Fatalf("error %d is %v", i, e)
		}
		if texts += len(text); text == "" && texts < 1<<20 {
			t.Fatalf("error %d has no text, after %d bytes of them", i, texts)
		}
		if !e.Lookup("keyValue").IsZero() {
			keys++
		}
	}
	if texts > 1<<20+1000 {
		t.Errorf("%d bytes of texts", texts)
	}
	if keys < 14_000 || keys == n {
		t.Errorf("%d errors tell the key: there is room for more than 14,000, not for all", keys)
	}
}

func TestEveryErrorOfTheLargestBatchIsTold(t *testing.T) {
	var f failedWrites
	key := document(bson.D{{Key: "_id", Value: strings.Repeat("k", 1<<10)}})
	text := strings.Repeat("m", 9<<20)
	for i := range maxBatch {
		f.add(failedWrite{int32(i), 11000, text, bson.D{{Key: "keyValue", Value: key}}})
	}
	docs := f.documents(16 << 20)
	if size := len(document(bson.D{{Key: "writeErrors", Value: docs}})); len(docs) != maxBatch || size > 16<<20+100 {
		t.Errorf("%d errors in %d bytes", len(docs), size)
	}
	if text, _ := docs[0].Get("errmsg"); len(text.(string)) != 9<<20 {
		t.Errorf("the first error has a text of %d bytes", len(text.(string)))
	}
	if text, _ := docs[1].Get("errmsg"); text != "" {
		t.Error("the second error has a text, for which there is no room")
	}
}

func TestFailureWithALargeKeyCanBeRead(t *testing.T) {
	m := newPrimary(t)
	doc := bson.D{{Key: "_id", Value: strings.Repeat("k", 12<<20)}}
	insert := many(bson.D{{Key: "insert", Value: "c"}}, "documents", 1, func(int) bson.D { return doc })
	if err := failure(runCommand(t, m, "t", insert)); err != nil {
		t.Fatal(err)
	}
	reply := runCommand(t, m, "t", insert)
	readable(t, reply)
	if code, _ := reply.Lookup("writeErrors", "0", "code").AsInt64OK(); code != 11000 {
		t.Errorf("the insert answers %v", without(reply, "writeErrors"))
	}
	reply = runCommand(t, m, "admin", many(bson.D{{Key: "bulkWrite", Value: 1}, {Key: "nsInfo", Value: bson.A{bson.D{{Key: "ns", Value: "t.c"}}}}}, "ops", 1,
		func(int) bson.D { return bson.D{{Key: "insert", Value: 0}, {Key: "document", Value: doc}} }))
	readable(t, reply)
	if code, _ := reply.Lookup("cursor", "firstBatch", "0", "code").AsInt64OK(); code != 11000 {
		t.Errorf("bulkWrite answers %v", without(reply, "cursor"))
	}
}

func TestBatchOfManySmallDocumentsCanBeRead(t *testing.T) {
	m := newPrimary(t)
	c := &cursor{src: &listSource{}}
	one := document(bson.D{{Key: "n", Value: 1}})
	list := make([]bson.Raw, 1_300_000)
	for i := range list {
		list[i] = one
	}
	c.src = &listSource{list}
	batch, done, err := c.fill(t.Context(), 1<<40)
	if err != nil || done {
		t.Fatalf("done %v, error %v", done, err)
	}
	rep := reply{doc: cursorReply("firstBatch", batch, 1, "t.c")}
	out, err := m.appendReplyDocument(nil, &Request{Name: "find", Conn: &Conn{m: m}, Spec: m.table["find"]}, &rep)
	if err != nil {
		t.Fatal(err)
	}
	readable(t, out)
	if err := failure(out); err != nil || len(out) < 16<<20-100 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

func TestReplyThatNobodyCouldReadIsAnError(t *testing.T) {
	m := newPrimary(t)
	const n = 17
	reply := runCommand(t, m, "t", many(bson.D{{Key: "update", Value: "c"}}, "updates", n, func(i int) bson.D {
		return bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: fmt.Sprint(strings.Repeat("k", 1<<20), i)}}},
			{Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}}, {Key: "upsert", Value: true}}
	}))
	readable(t, reply)
	if code := codeOf(reply); code != 10334 {
		t.Errorf("code %d, want 10334", code)
	}
	if text, _ := reply.Lookup("errmsg").StringValueOK(); !strings.Contains(text, "the reply of update is too large") || !strings.Contains(text, "BSONObj size: 178") {
		t.Errorf("it says %q: neither command nor size", text)
	}
	if got := command(t, m, "t", `{"count":"c"}`); func() int64 { n, _ := got.Lookup("n").AsInt64OK(); return n }() != n {
		t.Errorf("the writes were not made: %v", got)
	}
	reply = runCommand(t, m, "t", document(bson.D{{Key: strings.Repeat("x", 20<<20), Value: 1}}))
	readable(t, reply)
	if code := codeOf(reply); code != 10334 {
		t.Errorf("a command with a long name: code %d, want 10334", code)
	}
}

func TestCursorOfAReplyThatIsTooLargeIsClosed(t *testing.T) {
	m := newPrimary(t)
	c := &cursor{ns: "t.c", src: &listSource{}}
	m.cursors.add(c)
	big := document(bson.D{{Key: "s", Value: strings.Repeat("x", 17<<20)}})
	r := &Request{Name: "getMore", Conn: &Conn{m: m}, Spec: m.table["getMore"]}
	rep := reply{doc: cursorReply("nextBatch", []bson.Raw{big}, c.id, c.ns)}
	out, err := m.appendReplyDocument([]byte("before"), r, &rep)
	if err != nil || string(out[:6]) != "before" {
		t.Fatal(err)
	}
	if code := codeOf(bson.Raw(out[6:])); code != 10334 || m.cursors.count() != 0 {
		t.Errorf("code %d, %d cursors", code, m.cursors.count())
	}
	r.Conn.internal = true
	rep = reply{doc: cursorReply("nextBatch", []bson.Raw{big}, c.id, c.ns)}
	if out, err = m.appendReplyDocument(nil, r, &rep); err != nil || failure(out) != nil {
		t.Errorf("a member of the set is answered %v, %v", failure(out), err)
	}
}
