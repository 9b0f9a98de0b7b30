package session

import (
	"time"

	"github.com/sextantdb/sextant/bson"
)

// Pool holds server sessions that nobody uses: last in, first out, so that few stay alive and the rest age.
// The zero value is ready.
type Pool struct {
	free []*Server
}

// Acquire takes the youngest session that the server still remembers, or makes one of 16 random bytes.
// The timeout is the deployment's logicalSessionTimeoutMinutes; 0 means that it is not known and nothing expires.
func (p *Pool) Acquire(now time.Time, timeout time.Duration, random func() [16]byte) *Server {
	for n := len(p.free); n > 0; n = len(p.free) {
		s := p.free[n-1]
		p.free[n-1] = nil
		p.free = p.free[:n-1]
		if timeout == 0 || !s.expired(now, timeout) {
			return s
		}
	}
	return newServer(random())
}

// Implicit is Acquire for an operation without a session of its own. The Session lives inside the server session, so
// that nothing is allocated; it is valid until Release.
func (p *Pool) Implicit(now time.Time, timeout time.Duration, random func() [16]byte) *Session {
	s := p.Acquire(now, timeout, random)
	s.own = Session{server: s, Implicit: true}
	return &s.own
}

// Release gives a server session back. A dirty session and one about to expire are forgotten, and so are the old ones
// at the bottom of the stack.
func (p *Pool) Release(s *Server, now time.Time, timeout time.Duration) {
	if s == nil {
		return
	}
	if timeout > 0 {
		p.dropExpired(now, timeout)
		if s.expired(now, timeout) {
			return
		}
	}
	if !s.dirty {
		p.free = append(p.free, s)
	}
}

func (p *Pool) dropExpired(now time.Time, timeout time.Duration) {
	n := 0
	for n < len(p.free) && p.free[n].expired(now, timeout) {
		n++
	}
	if n > 0 {
		kept := copy(p.free, p.free[n:])
		clear(p.free[kept:])
		p.free = p.free[:kept]
	}
}

// Len is the number of sessions that wait.
func (p *Pool) Len() int { return len(p.free) }

// MaxEndSessions is the greatest number of sessions that one endSessions command may name.
const MaxEndSessions = 10_000

// Drain takes out the ids of at most MaxEndSessions sessions that a server has seen, for one endSessions command.
// It is empty when none is left.
func (p *Pool) Drain() []bson.Raw {
	var ids []bson.Raw
	for len(p.free) > 0 && len(ids) < MaxEndSessions {
		last := len(p.free) - 1
		if s := p.free[last]; !s.lastUse.IsZero() {
			ids = append(ids, s.id)
		}
		p.free = p.free[:last]
	}
	return ids
}
