package conn

import (
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
)

func TestCheckStreamsWithATopologyVersion(t *testing.T) {
	version := doc("counter", 1)
	var asked bson.Raw
	var flags uint32
	c := open(t, played(t, func(p *peer) {
		p.greet()
		m := p.read()
		asked, flags = m.Body.Clone(), m.Flags
		p.write(message(1, m.RequestID, wire.MoreToCome, doc("n", 1, "ok", 1.0)))
		p.write(message(2, 1, 0, doc("n", 2, "ok", 1.0)))
		m = p.read()
		p.answer(m, doc("n", 3, "flags", int(m.Flags), "ok", 1.0))
		p.hold()
	}))
	for want := int32(1); want <= 2; want++ {
		reply, err := c.Check(t.Context(), version, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := reply.Lookup("n").Int32OK(); n != want || c.Streaming() != (want == 1) {
			t.Errorf("%s, streaming %v; want %d", reply, c.Streaming(), want)
		}
	}
	if ms, _ := asked.Lookup("maxAwaitTimeMS").AsInt64OK(); ms != 10000 || asked.Lookup("hello").IsZero() || !asked.Lookup("client").IsZero() || flags != wire.ExhaustAllowed {
		t.Errorf("asked %s with flags %#x", asked, flags)
	}
	reply, err := c.Check(t.Context(), nil, 0)
	if n, _ := reply.Lookup("flags").Int32OK(); err != nil || n != 0 {
		t.Errorf("polled: %s, %v", reply, err)
	}
}

func TestCheckAsksOldServersByTheirOldName(t *testing.T) {
	var asked bson.Raw
	c := open(t, played(t, func(p *peer) {
		p.answer(p.read(), doc("ismaster", true, "ok", 1.0))
		m := p.read()
		asked = m.Body.Clone()
		p.answer(m, doc("ok", 1.0))
		p.hold()
	}))
	if _, err := c.Check(t.Context(), nil, 0); err != nil || asked.Lookup("isMaster").IsZero() {
		t.Errorf("%s, %v", asked, err)
	}
}

func TestMalformedStreamedCheckIsRefused(t *testing.T) {
	c := open(t, played(t, func(p *peer) {
		p.greet()
		m := p.read()
		p.write(message(1, m.RequestID, wire.MoreToCome, doc("ok", 1.0)))
		p.write(message(2, 1, wire.MoreToCome, bson.Raw{7, 0, 0, 0, 0x10, 'x', 0}))
		p.hold()
	}))
	if _, err := c.Check(t.Context(), doc("counter", 1), time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Check(t.Context(), doc("counter", 1), time.Second); err == nil || !strings.Contains(err.Error(), "malformed") || !c.Broken() {
		t.Errorf("%v, broken %v", err, c.Broken())
	}
}
