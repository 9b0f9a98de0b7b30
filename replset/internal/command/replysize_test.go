package command

import (
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// readable checks that a client can read the reply.
func readable(t *testing.T, reply bson.Raw) {
	t.Helper()
	if len(reply) > 16<<20+16<<10 {
		t.Fatalf("a reply of %d bytes", len(reply))
	}
}

func TestRepliesAboutManyFailedWritesCanBeRead(t *testing.T) {
	const n = 20_000
	m := newPrimary(t)
	key := document(bson.D{{Key: "_id", Value: strings.Repeat("p", 880)}})
	r := &Request{Name: "insert", Conn: &Conn{m: m}, Spec: m.table["insert"], ctx: t.Context()}
	b := &batch{m: m, r: r}
	dup := mongoerr.Server(11000, "E11000 duplicate key error")
	dup.Cause = &store.DuplicateKey{Pattern: key, Value: key, Encoded: key}
	for i := range n {
		b.fail(i, dup)
	}
	rep := reply{doc: b.reply(false)}
	reply, err := m.appendReplyDocument(nil, r, &rep)
	if err != nil {
		t.Fatal(err)
	}
	readable(t, reply)
	errs := docsIn(bson.Raw(reply).Lookup("writeErrors"))
	if len(errs) != n {
		t.Fatalf("%d errors, want %d", len(errs), n)
	}
	keys := 0
	for i, e := range errs {
		index, _ := e.Lookup("index").AsInt64OK()
		if _, told := e.Lookup("errmsg").StringValueOK(); index != int64(i) || codeOf(e) != 11000 || !told {
			t.Fatalf("error %d is %v", i, e)
		}
		if !e.Lookup("keyValue").IsZero() {
			keys++
		}
	}
	if keys < 7_000 || keys == n {
		t.Errorf("%d errors tell the key: there is room for more than 7,000, not for all", keys)
	}
}

func TestTextsOfErrorsEndAfterOneMebibyteOfThem(t *testing.T) {
	for _, c := range []struct {
		size int
		want string // y: the text is there
	}{{300 << 10, "yyyynn"}, {600 << 10, "yynnnn"}, {2 << 20, "yynnnn"}, {10, "yyyyyy"}} {
		var f failedWrites
		got := ""
		for i := range 6 {
			f.add(failedWrite{index: int32(i), code: 11000, message: strings.Repeat("m", c.size)})
		}
		for _, d := range f.documents(16 << 20) {
			if text, _ := d.Get("errmsg"); text == "" {
				got += "n"
			} else {
				got += "y"
			}
		}
		if got != c.want {
			t.Errorf("of texts of %d bytes %s are told, want %s", c.size, got, c.want)
		}
	}
}

func TestEveryErrorOfTheLargestBatchIsTold(t *testing.T) {
	var f failedWrites
	key := document(bson.D{{Key: "_id", Value: strings.Repeat("k", 200)}})
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

func TestBatchOfManySmallDocumentsCanBeRead(t *testing.T) {
	m := newPrimary(t)
	one := document(bson.D{{Key: "s", Value: strings.Repeat("x", 50)}})
	list := make([]bson.Raw, 300_000)
	for i := range list {
		list[i] = one
	}
	c := &cursor{src: &listSource{list}}
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
	r := &Request{Name: "update", Conn: &Conn{m: m}, Spec: m.table["update"]}
	rep := reply{doc: bson.D{{Key: "n", Value: 1}, {Key: "upserted", Value: []bson.D{{{Key: "_id", Value: strings.Repeat("k", 17<<20)}}}}}}
	reply, err := m.appendReplyDocument(nil, r, &rep)
	if err != nil {
		t.Fatal(err)
	}
	readable(t, reply)
	if code := codeOf(reply); code != 10334 || rep.err == nil {
		t.Errorf("code %d, want 10334", code)
	}
	if text, _ := bson.Raw(reply).Lookup("errmsg").StringValueOK(); !strings.Contains(text, "the reply of update is too large: BSONObj size: 178") {
		t.Errorf("it says %q: not both command and size", text)
	}
	reply = runCommand(t, m, "t", document(bson.D{{Key: strings.Repeat("x", 17<<20), Value: 1}}))
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
