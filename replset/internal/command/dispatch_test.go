package command

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

func TestPanicInAHandlerCostsTheCommandAlone(t *testing.T) {
	m := newPrimary(t)
	m.table["boom"] = &Spec{Name: "boom", Handler: func(context.Context, *Member, *Request) (bson.D, error) { panic("boom") }}
	r := command(t, m, "t", `{"boom": 1}`)
	if code, _ := r.Lookup("code").Int32OK(); code != mongoerr.CodeInternalError {
		t.Errorf("a panic was answered with %v", r)
	}
	if ok, _ := command(t, m, "t", `{"ping": 1}`).Lookup("ok").DoubleOK(); ok != 1 {
		t.Error("after the panic the member does not answer")
	}
}

func TestPanicOutsideAHandlerCostsTheConnectionAlone(t *testing.T) {
	m := newPrimary(t)
	detour := m.opt.Detour
	m.opt.Detour = func() *Member { panic("boom") } // called where no handler runs
	defer func() { m.opt.Detour = detour }()
	nc, err := net.Dial("tcp", m.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	body, start := bson.BeginDocument(nil)
	body = bson.AppendString(bson.AppendString(body, "find", "c"), "$db", "t")
	msg, at := wire.AppendMsgStart(nil, 1, 0, 0)
	if _, err := nc.Write(wire.EndMsg(append(msg, bson.EndDocument(body, start)...), at)); err != nil {
		t.Fatal(err)
	}
	_ = nc.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection gave %v, want its end", err)
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if open, _ := m.connections(); open == 0 {
			break
		} else if time.Now().After(end) {
			t.Fatal("the connection is still booked")
		}
	}
}

func TestNoCommandNameIsClaimedTwice(t *testing.T) {
	seen := map[string]string{}
	for _, family := range [][]Spec{helloCommands, replCommands, sessionCommands, authCommands, userCommands, failPointCommands,
		diagnosticCommands, writeCommands, readCommands, cursorCommands, catalogCommands} {
		for _, s := range family {
			for _, name := range append([]string{s.Name}, s.Aliases...) {
				if other, ok := seen[name]; ok {
					t.Errorf("%s is claimed by %s and %s", name, other, s.Name)
				}
				seen[name] = s.Name
			}
		}
	}
}

func TestClusterTimeOnlyRisesAndAbsurdGossipIsIgnored(t *testing.T) {
	var c clock
	now := time.Unix(5000, 0)
	a, b := c.next(now), c.next(now)
	if a != (bson.Timestamp{T: 5000, I: 1}) || !b.After(a) {
		t.Errorf("%v then %v", a, b)
	}
	if d := c.next(now.Add(-time.Hour)); !d.After(b) {
		t.Errorf("with the wall clock set back: %v after %v", d, b)
	}
	c.advance(bson.Timestamp{T: 1})
	if c.highest().T != 5000 {
		t.Error("an older time turned the clock back")
	}
	soon := uint32(time.Now().Add(time.Hour).Unix())
	c.gossip(bson.TimestampValue(soon, 1))
	if c.highest().T != soon {
		t.Error("a client's cluster time was not taken over")
	}
	c.gossip(bson.TimestampValue(math.MaxUint32, 1))
	if c.highest().T != soon {
		t.Error("a cluster time a century ahead was taken over")
	}
}

func TestGossipedClusterTimeIsInTheReply(t *testing.T) {
	m := newPrimary(t)
	ahead := uint32(time.Now().Add(time.Minute).Unix())
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendInt32(dst, "ping", 1)
	dst, inner := bson.BeginDocumentElement(dst, "$clusterTime")
	dst = bson.AppendTimestamp(dst, "clusterTime", ahead, 7)
	r := runCommand(t, m, "t", bson.EndDocument(bson.EndDocument(dst, inner), start))
	if s, i, _ := r.Lookup("$clusterTime", "clusterTime").TimestampOK(); s != ahead || i != 7 {
		t.Errorf("sent %d,7 and got %d,%d", ahead, s, i)
	}
	r = command(t, m, "t", `{"insert": "c", "documents": [{}]}`)
	if s, _, _ := r.Lookup("operationTime").TimestampOK(); s < ahead {
		t.Errorf("a write after it has the operationTime %d", s)
	}
}

// FuzzServerSurvivesAnyMessage feeds whatever bytes to the way from a message to a reply. Nothing may panic: a panic
// inside a handler shows as InternalError.
func FuzzServerSurvivesAnyMessage(f *testing.F) {
	for _, text := range []string{
		`{"hello": 1, "saslSupportedMechs": "admin.joe", "client": {"driver": {"name": "x"}}, "$db": "admin"}`,
		`{"find": "c", "filter": {"a": {"$gt": 1}}, "sort": {"a": -1}, "$db": "t"}`,
		`{"insert": "c", "documents": [{"_id": 1}, {"a": [1, {"b": 2}]}], "ordered": false, "$db": "t"}`,
		`{"update": "c", "updates": [{"q": {"a": 1}, "u": {"$set": {"a.b": 1}}, "upsert": true}], "$db": "t"}`,
		`{"findAndModify": "c", "query": {}, "update": {"$inc": {"n": 1}}, "$db": "t"}`,
		`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}], "$db": "t"}`,
		`{"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": {"failCommands": ["x"]}, "$db": "admin"}`,
		`{"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": {"$binary": {"base64": "biwsbj1hLHI9Yg==", "subType": "00"}}, "$db": "admin"}`,
		`{"replSetReconfig": {"version": 2, "members": [{}]}, "$db": "admin"}`,
		`{"endSessions": [{"id": 1}], "$db": "admin"}`,
		`{"distinct": "c", "key": "a", "lsid": {"id": 1}, "$db": "t"}`,
		`{"listCollections": 1, "filter": {"name": "c"}, "$db": "t"}`,
	} {
		v, err := bson.ParseExtJSON([]byte(text), false)
		if err != nil {
			f.Fatal(err)
		}
		d, _ := v.DocumentOK()
		msg, start := wire.AppendMsgStart(nil, 1, 0, 0)
		f.Add(wire.EndMsg(append(msg, d...), start))
	}
	f.Add([]byte("a\x00\x00\x0000000000\xdd\a\x00\x00\x00\x0000\x00L\x00\x00\x00" + strings.Repeat("0", 71) + "\x00")) // unreadable
	m := newPrimary(f)
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	f.Fuzz(func(t *testing.T, msg []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		c := &Conn{m: m, nc: near, peer: -1, ctx: ctx}
		r, _, err := c.parse(msg)
		if err != nil || strings.HasPrefix(r.Name, "whatsmyuri") || strings.HasPrefix(r.Name, "replSet") {
			return // the one wants a socket, the others change what later inputs meet
		}
		c.noteMetadata(r)
		r.ctx = ctx
		rep := m.run(r)
		if _, err := m.appendReplyDocument(nil, r, &rep); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
		if rep.err != nil && rep.err.Code == mongoerr.CodeInternalError && strings.Contains(rep.err.Message, "inside the server") {
			t.Errorf("%s panicked: %s", r.Name, rep.err.Message)
		}
	})
}
