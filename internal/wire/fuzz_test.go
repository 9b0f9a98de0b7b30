package wire

import (
	"bytes"
	"testing"

	"github.com/sextantdb/sextant/bson"
)

// FuzzParseMsg: no input panics, and what is accepted can be built again and parses to the same message.
func FuzzParseMsg(f *testing.F) {
	f.Add(message(0, doc("ping", 1)))
	f.Add(message(ChecksumPresent, doc("insert", 1), Sequence{ID: "documents", Docs: []bson.Raw{doc("a", 1)}}))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		m, err := ParseMsg(b)
		if !bytes.Equal(b, before) {
			t.Fatal("parsing changed the input")
		}
		if err != nil {
			return
		}
		if int(m.Length) != len(b) {
			t.Fatalf("accepted %d bytes with length %d", len(b), m.Length)
		}
		size := len(m.Body)
		again, start := AppendMsgStart(nil, m.RequestID, m.ResponseTo, m.Flags)
		again = append(again, m.Body...)
		for _, s := range m.Sequences {
			var at int
			again, at = AppendSequenceStart(again, s.ID)
			for _, d := range s.Docs {
				size += len(d)
				again = append(again, d...)
			}
			again = EndSequence(again, at)
		}
		if size > len(b) {
			t.Fatalf("%d bytes of documents out of a message of %d", size, len(b))
		}
		n, err := ParseMsg(EndMsg(again, start))
		if err != nil {
			t.Fatalf("what was parsed cannot be sent: %v", err)
		}
		if !bytes.Equal(n.Body, m.Body) || len(n.Sequences) != len(m.Sequences) || n.Flags != m.Flags || n.Length != m.Length {
			t.Fatalf("%+v became %+v", m, n)
		}
	})
}

// FuzzParseQuery: no input panics, and every byte of what is accepted is accounted for.
func FuzzParseQuery(f *testing.F) {
	f.Add(query("admin.$cmd", doc("isMaster", 1)))
	f.Add(query("a.b", doc("x", 1), doc("y", 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := ParseQuery(b)
		if err != nil {
			return
		}
		if n := HeaderLen + 4 + len(q.Collection) + 1 + 8 + len(q.Query) + len(q.Fields); n != len(b) {
			t.Fatalf("%d of %d bytes accounted for in %+v", n, len(b), q)
		}
	})
}
