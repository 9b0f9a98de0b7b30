package command

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/repl"
)

// The owner ends a run of pulling when the primary changes. What the run has done to the data by then it can no longer
// tell, since the owner waits for it: the owner must learn it all the same, or the member is in ROLLBACK for ever.
func TestWhatAnEndedPullHasDoneIsNotForgotten(t *testing.T) {
	m := newSecondary(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	f := &following{m: m, ctx: ended, cancel: cancel}
	f.insist(repl.RollingBack{})
	f.insist(repl.Rolled{To: repl.OpTime{TS: bson.Timestamp{T: 1}, Term: 1}})
	f.insist(repl.Stale{On: true})
	if err := m.look(t.Context(), func(*repl.Node) { m.following = f; m.stopFollowing() }); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(5 * time.Second); m.Role() != repl.RoleRecover; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the member is %v", m.Role())
		}
	}
}

// newSecondary is a member whose only companion is never there.
func newSecondary(t testing.TB) *Member {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := &Config{SetName: "rs0", Version: 1, HeartbeatInterval: 50 * time.Millisecond, ElectionTimeout: 100 * time.Millisecond,
		Members: []MemberConfig{{Host: l.Addr().String(), Priority: 1, Votes: 1}, {ID: 1, Host: "nobody:1", Priority: 1, Votes: 1}}}
	m := Open(Options{Config: cfg, Host: l.Addr().String(), Disk: NewDisk(), Listener: l, Faults: &Faults{}, Counters: &Counters{}, Logger: slog.New(slog.DiscardHandler),
		Dial: func(context.Context, string) (net.Conn, error) { return nil, errors.New("nobody is there") }})
	t.Cleanup(m.Close)
	return m
}
