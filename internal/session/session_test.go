package session_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/session"
)

const timeout = 30 * time.Minute

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// counter makes distinguishable session ids.
func counter() func() [16]byte {
	n := byte(0)
	return func() [16]byte {
		n++
		return [16]byte{n}
	}
}

func TestSessionIDIsAVersion4UUID(t *testing.T) {
	var p session.Pool
	s := p.Implicit(start, timeout, func() (b [16]byte) {
		copy(b[:], bytes.Repeat([]byte{0xff}, 16))
		return b
	})
	subtype, data, ok := s.ID().Lookup("id").BinaryOK()
	if !ok || subtype != 4 || len(data) != 16 {
		t.Fatalf("lsid is %v", s.ID())
	}
	if data[6] != 0x4f || data[8] != 0xbf {
		t.Errorf("version byte %#x, variant byte %#x", data[6], data[8])
	}
	if s.ID().Len() != 1 {
		t.Errorf("lsid has more than its id: %v", s.ID())
	}
}

func TestPoolGivesOutTheSessionReleasedLast(t *testing.T) {
	var p session.Pool
	random := counter()
	a, b := p.Acquire(start, timeout, random), p.Acquire(start, timeout, random)
	p.Release(a, start, timeout)
	p.Release(b, start, timeout)
	if got := p.Acquire(start, timeout, random); got != b {
		t.Error("the session released last was not given out first")
	}
	if got := p.Acquire(start, timeout, random); got != a {
		t.Error("the other session was not used again")
	}
}

func TestTransactionNumberGoesOnAfterReuse(t *testing.T) {
	var p session.Pool
	random := counter()
	s := p.Implicit(start, timeout, random)
	if n := s.NextTxn(); n != 1 {
		t.Errorf("the first number is %d", n)
	}
	s.NextTxn()
	p.Release(s.Server(), start, timeout)
	if n := p.Implicit(start, timeout, random).NextTxn(); n != 3 {
		t.Errorf("the number after reuse is %d, want 3", n)
	}
}

func TestDirtySessionIsForgotten(t *testing.T) {
	var p session.Pool
	s := p.Implicit(start, timeout, counter())
	s.Used(start)
	s.MarkDirty()
	p.Release(s.Server(), start, timeout)
	if p.Len() != 0 {
		t.Error("a dirty session came back to the pool")
	}
	if ids := p.Drain(); len(ids) != 0 {
		t.Errorf("a dirty session would be ended: %v", ids)
	}
}

func TestSessionWithLessThanAMinuteLeftIsForgotten(t *testing.T) {
	random := counter()
	for _, c := range []struct {
		idle time.Duration
		kept bool
	}{{29 * time.Minute, true}, {29*time.Minute + time.Second, false}} {
		var p session.Pool
		s := p.Implicit(start, timeout, random)
		s.Used(start)
		p.Release(s.Server(), start.Add(c.idle), timeout)
		if got := p.Len() == 1; got != c.kept {
			t.Errorf("idle for %v: kept %v, want %v", c.idle, got, c.kept)
		}
		old := s.Server()
		p = session.Pool{}
		p.Release(old, start, timeout)
		if got := p.Acquire(start.Add(c.idle), timeout, random) == old; got != c.kept {
			t.Errorf("acquired after %v: reused %v, want %v", c.idle, got, c.kept)
		}
	}
}

func TestReleaseDropsExpiredSessionsAtTheBottom(t *testing.T) {
	var p session.Pool
	random := counter()
	a, b := p.Implicit(start, timeout, random), p.Implicit(start, timeout, random)
	a.Used(start)
	p.Release(a.Server(), start, timeout)
	later := start.Add(time.Hour)
	b.Used(later)
	p.Release(b.Server(), later, timeout)
	if p.Len() != 1 {
		t.Errorf("%d sessions are kept, want 1", p.Len())
	}
}

func TestDrainNamesUsedSessionsInBatches(t *testing.T) {
	var p session.Pool
	random := counter()
	var all []*session.Session
	for range session.MaxEndSessions + 1 {
		s := p.Implicit(start, timeout, random)
		s.Used(start)
		all = append(all, s)
	}
	unused := p.Acquire(start, timeout, random)
	for _, s := range all {
		p.Release(s.Server(), start, timeout)
	}
	p.Release(unused, start, timeout)
	if n := len(p.Drain()); n != session.MaxEndSessions {
		t.Errorf("the first batch has %d sessions", n)
	}
	if n := len(p.Drain()); n != 1 {
		t.Errorf("the second batch has %d sessions", n)
	}
	if n := len(p.Drain()); n != 0 {
		t.Errorf("a third batch has %d sessions", n)
	}
}

func clusterTime(t, i uint32) bson.Raw {
	doc, start := bson.BeginDocument(nil)
	doc = bson.AppendTimestamp(doc, "clusterTime", t, i)
	doc, signature := bson.BeginDocumentElement(doc, "signature")
	doc = bson.EndDocument(bson.AppendInt32(doc, "keyId", int32(i)), signature)
	return bson.EndDocument(doc, start)
}

func TestClockKeepsTheHighestTime(t *testing.T) {
	var c session.Clock
	if got := c.Append(nil); len(got) != 0 {
		t.Errorf("a clock that has seen nothing appends %x", got)
	}
	steps := []struct {
		t, i     uint32
		advances bool
	}{{5, 1, true}, {5, 0, false}, {4, 9, false}, {5, 2, true}, {5, 2, false}, {6, 0, true}}
	for _, s := range steps {
		if got := c.Advance(clusterTime(s.t, s.i)); got != s.advances {
			t.Errorf("Advance to (%d, %d): %v, want %v", s.t, s.i, got, s.advances)
		}
	}
	if sec, inc := c.Time(); sec != 6 || inc != 0 {
		t.Errorf("time is (%d, %d)", sec, inc)
	}
	want := bson.AppendDocument(nil, "$clusterTime", clusterTime(6, 0))
	if got := c.Append(nil); !bytes.Equal(got, want) {
		t.Errorf("appended %x, want %x", got, want)
	}
}

func TestClockCopiesWhatItKeeps(t *testing.T) {
	var c session.Clock
	doc := clusterTime(7, 1)
	want := bson.AppendDocument(nil, "$clusterTime", bytes.Clone(doc))
	c.Advance(doc)
	clear(doc)
	if got := c.Append(nil); !bytes.Equal(got, want) {
		t.Error("the clock shares memory with the reply it learnt from")
	}
}

func TestClockPassesOverNonsense(t *testing.T) {
	var c session.Clock
	doc, at := bson.BeginDocument(nil)
	doc = bson.AppendString(doc, "clusterTime", "noon")
	if c.Advance(bson.EndDocument(doc, at)) {
		t.Error("a text was taken for a time")
	}
}

func TestClockPassesOverAMalformedTime(t *testing.T) {
	bad, start := bson.BeginDocument(nil)
	bad = bson.AppendTimestamp(bad, "clusterTime", 9, 9)
	bad = bson.EndDocument(bson.AppendString(bad, "signature\xff", "s"), start)
	var c session.Clock
	if c.Advance(bad) || len(c.Append(nil)) != 0 {
		t.Error("every later command would be malformed")
	}
}
