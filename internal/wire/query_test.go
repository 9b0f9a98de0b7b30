package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
)

func query(collection string, docs ...bson.Raw) []byte {
	b := AppendHeader(nil, Header{RequestID: 5, OpCode: OpQuery})
	b = appendInt32(b, QuerySecondaryOK)
	b = append(append(b, collection...), 0)
	b = appendInt32(b, 2)
	b = appendInt32(b, -1)
	for _, d := range docs {
		b = append(b, d...)
	}
	return relength(b)
}

func TestQueryIsTakenApart(t *testing.T) {
	q, err := ParseQuery(query("admin.$cmd", doc("isMaster", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if q.RequestID != 5 || q.Flags != QuerySecondaryOK || q.Collection != "admin.$cmd" || q.Skip != 2 || q.Limit != -1 ||
		!bytes.Equal(q.Query, doc("isMaster", 1)) || q.Fields != nil {
		t.Errorf("%+v", q)
	}
	q, err = ParseQuery(query("a.b", doc("x", 1), doc("y", 1)))
	if err != nil || !bytes.Equal(q.Fields, doc("y", 1)) {
		t.Errorf("with a projection: %+v, %v", q, err)
	}
}

func TestMalformedQueriesAreRefused(t *testing.T) {
	good := query("admin.$cmd", doc("isMaster", 1))
	cases := []struct {
		name string
		b    []byte
		want string
	}{
		{"OP_MSG", message(0, doc("ping", 1)), "expected OP_QUERY, got OP_MSG"},
		{"no flags", relength(bytes.Clone(good[:17])), "no flags"},
		{"unterminated name", relength(bytes.Clone(good[:24])), "unterminated collection name"},
		{"no limit", relength(bytes.Clone(good[:36])), "before its skip and limit"},
		{"no query", relength(bytes.Clone(good[:39])), "OP_QUERY query"},
		{"bad projection", relength(append(bytes.Clone(good), 9, 0, 0, 0, 0)), "OP_QUERY projection"},
		{"bytes left over", query("a.b", doc("x", 1), doc("y", 1), bson.Raw{1}), "1 bytes after"},
	}
	for _, c := range cases {
		_, err := ParseQuery(c.b)
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

func TestReplyHasTheFieldsInOrder(t *testing.T) {
	d := doc("ok", 1)
	b := AppendReply([]byte("x"), 9, 5, ReplyAwaitCapable, 1<<40, 3, d, d)[1:]
	h, err := CheckHeader(b, MaxMessage)
	if want := (Header{Length: int32(len(b)), RequestID: 9, ResponseTo: 5, OpCode: OpReply}); err != nil || h != want {
		t.Fatalf("header %+v, %v", h, err)
	}
	if readInt32(b[16:]) != ReplyAwaitCapable || binary.LittleEndian.Uint64(b[20:]) != 1<<40 ||
		readInt32(b[28:]) != 3 || readInt32(b[32:]) != 2 || !bytes.Equal(b[36:], append(bytes.Clone(d), d...)) {
		t.Errorf("% x", b)
	}
}
