package replset

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// transcript is what happened, in order. It is written out only for who asks: a line costs little before that.
type transcript struct {
	begun time.Time

	mu    sync.Mutex // guards lines
	lines []line
}

type line struct {
	at   time.Duration
	text string
	args []any
}

func (tr *transcript) note(format string, args ...any) {
	at := time.Since(tr.begun)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lines = append(tr.lines, line{at, format, args})
}

// String is one line for everything that happened, with the time since the story began.
func (tr *transcript) String() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var b strings.Builder
	for _, l := range tr.lines {
		fmt.Fprintf(&b, "%8.3f  %s\n", l.at.Seconds(), fmt.Sprintf(l.text, l.args...))
	}
	return b.String()
}

// setLog writes down what the members say, and counts the elections: two winners of one term are a broken promise.
type setLog struct{ w *world }

func (setLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (s setLog) WithAttrs([]slog.Attr) slog.Handler         { return s }
func (s setLog) WithGroup(string) slog.Handler              { return s }

func (s setLog) Handle(_ context.Context, r slog.Record) error {
	var member, term int64
	said := r.Message
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "member":
			member = a.Value.Int64()
			return true
		case "term":
			term = a.Value.Int64()
		}
		said += fmt.Sprintf(", %s %v", a.Key, a.Value)
		return true
	})
	s.w.note("    member %d: %s", member, said)
	if r.Message == "became primary" {
		s.w.elected(term, int(member))
	}
	return nil
}
