package command

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// newPrimary is the only member of a set, once it is the writable primary.
func newPrimary(t testing.TB) *Member {
	t.Helper()
	return loggedMember(t, slog.New(slog.NewTextHandler(io.Discard, nil)))
}

// loggedMember is newPrimary with a logger.
func loggedMember(t testing.TB, log *slog.Logger) *Member {
	t.Helper()
	return memberOfVersion(t, log, "")
}

// memberOfVersion is newPrimary that claims to be of a series such as "4.0".
func memberOfVersion(t testing.TB, log *slog.Logger, series string) *Member {
	t.Helper()
	return memberOn(t, log, series, NewDisk())
}

// memberOn is memberOfVersion with the data of a disk.
func memberOn(t testing.TB, log *slog.Logger, series string, disk *Disk) *Member {
	t.Helper()
	persona, err := PersonaOf(series)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := &Config{SetName: "rs0", Version: 1, Members: []MemberConfig{{Host: l.Addr().String(), Priority: 1, Votes: 1}},
		HeartbeatInterval: 100 * time.Millisecond, ElectionTimeout: 200 * time.Millisecond}
	m := Open(Options{Config: cfg, Host: l.Addr().String(), Disk: disk, Listener: l, Faults: &Faults{}, Counters: &Counters{},
		Logger: log, Persona: persona,
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}})
	t.Cleanup(m.Close)
	if err := m.StandForElection(context.Background(), true); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, ok := m.WritablePrimary(); ok {
			return m
		}
		if time.Now().After(end) {
			t.Fatal("the only member did not become primary")
		}
	}
}

// command runs one command, given as Extended JSON, and returns the whole reply.
func command(t testing.TB, m *Member, db, text string) bson.Raw {
	t.Helper()
	v, err := bson.ParseExtJSON([]byte(text), false)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	d, _ := v.DocumentOK()
	return runCommand(t, m, db, d)
}

func runCommand(t testing.TB, m *Member, db string, body bson.Raw) bson.Raw {
	t.Helper()
	dst, start := bson.BeginDocument(nil)
	name, first := "", true
	for key, v := range body.All() {
		if first {
			name, first = key, false
		}
		dst = bson.AppendValue(dst, key, v)
	}
	dst = bson.AppendString(dst, "$db", db)
	r := &Request{Name: name, DB: db, Body: bson.EndDocument(dst, start), Conn: &Conn{m: m, peer: -1}, ctx: context.Background()}
	rep := m.run(r)
	if rep.drop {
		return document(bson.D{{Key: "$$connectionClosed", Value: true}})
	}
	out, err := m.appendReplyDocument(nil, r, &rep)
	if err != nil {
		t.Fatalf("reply of %s: %v", name, err)
	}
	return out
}

// without is doc without one field.
func without(doc bson.Raw, key string) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	for k, v := range doc.All() {
		if k != key {
			dst = bson.AppendValue(dst, k, v)
		}
	}
	return bson.EndDocument(dst, start)
}
