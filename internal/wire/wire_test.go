package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
)

// doc is {"<key>": <int32>}.
func doc(key string, v int32) bson.Raw {
	d := appendInt32(nil, int32(4+1+len(key)+1+4+1))
	d = append(d, 0x10)
	d = append(d, key...)
	d = append(d, 0)
	d = appendInt32(d, v)
	return append(d, 0)
}

func message(flags uint32, body bson.Raw, seqs ...Sequence) []byte {
	b, start := AppendMsgStart(nil, 7, 3, flags)
	b = append(b, body...)
	for _, s := range seqs {
		var at int
		b, at = AppendSequenceStart(b, s.ID)
		for _, d := range s.Docs {
			b = append(b, d...)
		}
		b = EndSequence(b, at)
	}
	return EndMsg(b, start)
}

func relength(b []byte) []byte {
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	return b
}

func TestMsgSurvivesTheRoundTrip(t *testing.T) {
	seqs := []Sequence{{ID: "documents", Docs: []bson.Raw{doc("a", 1), doc("bb", 2)}}, {ID: "none"}}
	for _, flags := range []uint32{0, ChecksumPresent, MoreToCome | ExhaustAllowed, 1 << 31} {
		b := message(flags, doc("insert", 1), seqs...)
		m, err := ParseMsg(b)
		if err != nil {
			t.Fatalf("flags %#x: %v", flags, err)
		}
		if want := (Header{Length: int32(len(b)), RequestID: 7, ResponseTo: 3, OpCode: OpMsg}); m.Header != want {
			t.Errorf("flags %#x: header %+v, want %+v", flags, m.Header, want)
		}
		if m.Flags != flags || !bytes.Equal(m.Body, doc("insert", 1)) {
			t.Errorf("flags %#x: got flags %#x, body % x", flags, m.Flags, m.Body)
		}
		if len(m.Sequences) != 2 || m.Sequences[0].ID != "documents" || len(m.Sequences[0].Docs) != 2 ||
			!bytes.Equal(m.Sequences[0].Docs[1], doc("bb", 2)) || len(m.Sequences[1].Docs) != 0 {
			t.Errorf("flags %#x: sequences %+v", flags, m.Sequences)
		}
	}
}

func TestMsgIsBuiltBehindWhatTheBufferHolds(t *testing.T) {
	b, start := AppendMsgStart([]byte("before"), 1, 0, ChecksumPresent)
	b = EndMsg(append(b, doc("ping", 1)...), start)
	if start != 6 || string(b[:6]) != "before" {
		t.Fatalf("start %d, prefix %q", start, b[:6])
	}
	if _, err := ParseMsg(b[start:]); err != nil {
		t.Fatal(err)
	}
}

func TestBodyMayFollowItsSequences(t *testing.T) {
	b := AppendHeader(nil, Header{OpCode: OpMsg})
	b = appendInt32(b, 0)
	b, at := AppendSequenceStart(b, "documents")
	b = EndSequence(append(b, doc("a", 1)...), at)
	b = append(append(b, kindBody), doc("insert", 1)...)
	m, err := ParseMsg(relength(b))
	if err != nil || len(m.Sequences) != 1 || !bytes.Equal(m.Body, doc("insert", 1)) {
		t.Fatalf("%+v, %v", m, err)
	}
}

func TestParsingAReplyDoesNotAllocate(t *testing.T) {
	b := message(0, doc("ok", 1))
	if n := testing.AllocsPerRun(100, func() { _, _ = ParseMsg(b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMalformedMessagesAreRefused(t *testing.T) {
	good := message(0, doc("insert", 1), Sequence{ID: "d", Docs: []bson.Raw{doc("a", 1)}})
	bodyAt, seqAt := HeaderLen+5, HeaderLen+5+len(doc("insert", 1))
	change := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(good)) }
	put := func(at int, v uint32) []byte {
		return change(func(b []byte) []byte { binary.LittleEndian.PutUint32(b[at:], v); return b })
	}
	cases := []struct {
		name string
		b    []byte
		want string
	}{
		{"empty", nil, "too few for a header"},
		{"half a header", good[:9], "too few for a header"},
		{"length under the header", put(0, 15), "under the 16 bytes"},
		{"negative length", put(0, 1<<31), "under the 16 bytes"},
		{"length over the bytes", put(0, uint32(len(good)+1)), "the header says"},
		{"another operation", put(12, OpReply), "expected OP_MSG, got OP_REPLY"},
		{"unheard-of operation", put(12, 9), "operation code 9"},
		{"compressed", put(12, OpCompressed), "OP_COMPRESSED"},
		{"no flags", relength(bytes.Clone(good[:18])), "no room for its flags"},
		{"unknown required flag", put(16, 1<<2|1<<15|1<<16), "flag bits 0x8004"},
		{"no room for the checksum", relength(append(AppendHeader(nil, Header{OpCode: OpMsg}), 1, 0, 0, 0)), "checksum"},
		{"wrong checksum", put(16, ChecksumPresent), "checksum"},
		{"no section", relength(bytes.Clone(good[:20])), "no body"},
		{"sequence alone", relength(append(bytes.Clone(good[:20]), good[seqAt:]...)), "no body"},
		{"unknown kind", change(func(b []byte) []byte { b[20] = 2; return b }), "unknown kind 2"},
		{"body cut short", relength(bytes.Clone(good[:bodyAt+3])), "OP_MSG body"},
		{"body longer than the message", put(bodyAt, 1000), "document length 1000"},
		{"body of negative length", put(bodyAt, 0xFFFFFFFF), "document length -1"},
		{"body under five bytes", put(bodyAt, 4), "document length 4"},
		{"body without a closing zero", change(func(b []byte) []byte { b[seqAt-1] = 1; return b }), "zero byte"},
		{"two bodies", relength(append(append(bytes.Clone(good), kindBody), doc("x", 1)...)), "two bodies"},
		{"sequence without a length", relength(append(bytes.Clone(good[:seqAt]), kindSequence, 1)), "no length"},
		{"sequence longer than the message", put(seqAt+1, 1<<31-1), "sequence of length 2147483647"},
		{"sequence of negative length", put(seqAt+1, 1<<31), "sequence of length -2147483648"},
		{"sequence without an id", put(seqAt+1, 4), "sequence of length 4"},
		{"unterminated id", relength(append(bytes.Clone(good[:seqAt]), kindSequence, 6, 0, 0, 0, 'x', 'y')), "unterminated id"},
		{"bad document in a sequence", put(seqAt+7, 77), `sequence "d", document 0: document length 77`},
		{"two sequences of one id", relength(append(bytes.Clone(good), good[seqAt:]...)), `two document sequences "d"`},
	}
	for _, c := range cases {
		_, err := ParseMsg(c.b)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v does not wrap ErrMalformed", c.name, err)
		}
	}
	if _, err := ParseMsg(put(12, OpCompressed)); !errors.Is(err, ErrCompressed) {
		t.Errorf("%v does not wrap ErrCompressed", err)
	}
}

func TestEveryTruncationIsRefused(t *testing.T) {
	good := message(0, doc("insert", 1), Sequence{ID: "d", Docs: []bson.Raw{doc("a", 1)}})
	bodyEnd := HeaderLen + 5 + len(doc("insert", 1))
	for n := range good {
		b := bytes.Clone(good[:n])
		if n >= HeaderLen {
			relength(b)
		}
		if _, err := ParseMsg(b); (err == nil) != (n == bodyEnd) {
			t.Errorf("%d of %d bytes: error %v", n, len(good), err)
		}
	}
}

func TestHeaderNamesForeignProtocols(t *testing.T) {
	for in, want := range map[string]string{
		"HTTP/1.1 400 Bad Request":  "an HTTP answer",
		"GET / HTTP/1.1\r\nHost: x": "an HTTP request",
		"SSH-2.0-OpenSSH_9.6 hello": "an SSH greeting",
		"-ERR unknown command '`'":  "a Redis error",
	} {
		_, err := CheckHeader([]byte(in), MaxMessage)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: error %v, want one with %q", in, err, want)
		}
	}
	if g := Guess([]byte{0x15, 3, 3, 0, 2, 2, 40}); g != "a TLS record" {
		t.Errorf("a TLS alert is taken for %q", g)
	}
	if g := Guess(message(0, doc("ok", 1))); g != "" {
		t.Errorf("a message is taken for %q", g)
	}
}

func TestHeaderOverTheLimitIsTooLarge(t *testing.T) {
	b := AppendHeader(nil, Header{Length: MaxMessage + 1, OpCode: OpMsg})
	if _, err := CheckHeader(b, MaxMessage); !errors.Is(err, ErrTooLarge) || !errors.Is(err, ErrMalformed) {
		t.Errorf("one byte over: %v", err)
	}
	if _, err := CheckHeader(b, MaxMessage+1); err != nil {
		t.Errorf("at the limit: %v", err)
	}
}
