package repl

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

// teller writes down what members do, as a story. A nil teller writes nothing.
type teller struct {
	s     *sim
	lines []string
	last  map[int]Topology
}

func (t *teller) say(format string, args ...any) {
	if t != nil {
		t.lines = append(t.lines, fmt.Sprintf("%6.2fs  ", t.s.now.Sub(time.Unix(1000, 0)).Seconds())+fmt.Sprintf(format, args...))
	}
}

func name(id int) string {
	if id == None {
		return "nobody"
	}
	return string(rune('a' + id))
}

// tell tells one step: what was asked and answered first, then what has become of the member.
func (t *teller) tell(i int, n *Node, ev Event, effects []Effect) {
	if t == nil {
		return
	}
	asked := []string{}
	var request VoteRequest
	for _, e := range effects {
		switch e := e.(type) {
		case SendVote:
			asked, request = append(asked, name(e.To)), e.Request
		case VoteAnswer:
			t.answer(i, ev.(VoteRequest), e)
		case SendStepUp:
			t.say("%s asks %s to stand for election at once", name(i), name(e.To))
		}
	}
	if len(asked) > 0 {
		t.asks(i, n, request, asked)
	}
	t.became(i, n)
}

func (t *teller) asks(i int, n *Node, q VoteRequest, asked []string) {
	who := strings.Join(asked, ", ")
	why := map[string]string{
		ElectionTimedOut: "hears of no primary", PriorityTakeover: "has a higher priority than " + name(n.Election().Primary) + " and has caught up",
		StepUpRequest: "was told to stand", StepUpHandOver: "was told to stand",
	}[n.Election().Why]
	if q.DryRun {
		t.say("%s %s: it asks %s whether they would vote for it in term %d", name(i), why, who, q.Term)
	} else if n.Election().Why == StepUpHandOver {
		t.say("%s %s: it votes for itself in term %d and asks %s", name(i), why, q.Term, who)
	} else {
		t.say("%s votes for itself in term %d and asks %s", name(i), q.Term, who)
	}
}

func (t *teller) answer(i int, q VoteRequest, a VoteAnswer) {
	switch {
	case !a.Reply.Granted:
		t.say("%s refuses %s: %s", name(i), name(q.From), a.Reason)
	case q.DryRun:
		t.say("%s would vote for %s", name(i), name(q.From))
	default:
		t.say("%s votes for %s in term %d", name(i), name(q.From), q.Term)
	}
}

// became tells how a member differs from what it was.
func (t *teller) became(i int, n *Node) {
	was, known := t.last[i]
	is := n.Topology()
	t.last[i] = is
	if !known {
		was = Topology{Role: is.Role, Primary: None, SyncFrom: None, Config: is.Config, Term: is.Term}
	}
	if was.Config.Version != is.Config.Version {
		t.say("%s has configuration %d", name(i), is.Config.Version)
	}
	switch {
	case was.Role == RolePrimary && is.Role != RolePrimary && is.Term > was.Term:
		t.say("%s hears of term %d and is primary no more", name(i), is.Term)
	case was.Role == RolePrimary && is.Role != RolePrimary:
		t.say("%s is primary no more", name(i))
	case was.Role != RolePrimary && is.Role == RolePrimary:
		t.say("%s has won term %d", name(i), is.Term)
	case was.Role != is.Role:
		t.say("%s is %v", name(i), is.Role)
	}
	if is.Role == RolePrimary && is.SyncFrom != None && is.SyncFrom != was.SyncFrom {
		t.say("%s catches up with %s first", name(i), name(is.SyncFrom))
	}
	if is.Writable && !was.Writable {
		t.say("%s takes writes", name(i))
	}
	if is.Primary != was.Primary && is.Primary != None && is.Primary != i {
		t.say("%s follows %s", name(i), name(is.Primary))
	}
	if is.Role == RoleSecondary && is.SyncFrom != was.SyncFrom && is.SyncFrom != None && is.SyncFrom != is.Primary {
		t.say("%s pulls from %s", name(i), name(is.SyncFrom))
	}
}

// transcript compares what was told with the file.
func (t *teller) transcript(tb testing.TB, file string) {
	tb.Helper()
	got := strings.Join(t.lines, "\n") + "\n"
	path := filepath.Join("testdata", file+".txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if got != string(want) {
		tb.Errorf("%s tells another story (-update writes it anew). Told now:\n%s\nIn the file:\n%s", path, got, want)
	}
}
