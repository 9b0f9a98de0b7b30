package command

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// What strangers do wrong is told once: the first time at once, and what follows of the same kind from the same host as a
// number, complaintPause after that, for as long as it goes on.
const (
	complaintPause = 10 * time.Second
	maxComplaints  = 200 // kinds that are told apart; all others are one
)

// complaints keeps strangers from filling the log. The zero value is ready.
type complaints struct {
	mu     sync.Mutex // guards all below
	known  map[string]*complaint
	closed bool
}

// complaint is one kind of fault from one host that was told not long ago.
type complaint struct {
	level slog.Level
	what  string
	args  []any // of the newest
	more  int   // since it was told last
	timer *time.Timer
}

// complain logs a fault of who is at the other end of a connection. why tells kinds apart: numbers in it do not count. The
// caller is a goroutine that the member waits for.
func (m *Member) complain(level slog.Level, what, why string, remote net.Addr, args ...any) {
	host := remote.String()
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	args = append([]any{"member", m.self, "remote", remote.String()}, args...)
	if m.complaints.first(m, &complaint{level: level, what: what, args: args}, host+" "+what+" "+withoutNumbers(why)) {
		m.log.Log(context.Background(), level, what, args...)
	}
}

// first notes a complaint, and says whether it is to be told now.
func (c *complaints) first(m *Member, n *complaint, key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxComplaints && c.known[key] == nil {
		key = "" // too many kinds: by chance, or by design
	}
	if old := c.known[key]; old != nil {
		old.more++
		old.args = n.args
		return false
	}
	if c.known == nil {
		c.known = map[string]*complaint{}
	}
	c.known[key] = n
	if !c.closed {
		m.wg.Add(1) // given back by whoever ends the timer
		n.timer = time.AfterFunc(complaintPause, func() {
			defer m.wg.Done()
			defer m.survive("the log")
			m.sumUp(c.take(m, key))
		})
	}
	return true
}

// take is what has to be said of a kind when its time has come. A kind of which nothing more came is forgotten.
func (c *complaints) take(m *Member, key string) *complaint {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.known[key]
	if n.more == 0 || c.closed {
		delete(c.known, key)
		return n
	}
	told := *n
	n.more = 0
	m.wg.Add(1)
	n.timer.Reset(complaintPause)
	return &told
}

// sumUp tells how often something was not told.
func (m *Member) sumUp(n *complaint) {
	if n.more > 0 {
		m.log.Log(context.Background(), n.level, n.what+", again", append(n.args, "times", n.more)...)
	}
}

// rest ends the timers.
func (c *complaints) rest(m *Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, n := range c.known {
		if n.timer != nil && n.timer.Stop() {
			m.wg.Done()
		}
	}
}

// last is all that was not told yet.
func (c *complaints) last() []*complaint {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Collect(maps.Values(c.known))
	c.known = nil
	return all
}

// withoutNumbers is a text with a # for each number.
func withoutNumbers(s string) string {
	var b strings.Builder
	in := false
	for _, r := range s[:min(len(s), 300)] {
		digit := '0' <= r && r <= '9'
		if digit && !in {
			b.WriteByte('#')
		} else if !digit {
			b.WriteRune(r)
		}
		in = digit
	}
	return b.String()
}
