package command

import (
	"errors"
	"sync"
	"time"
)

// What a member keeps for clients that do not read their answers. Answers of up to smallMessage bytes are free. While larger
// ones take more than outboxBudget together, who takes nothing of its own for stuckAfter is dropped: others may have to be
// answered meanwhile.
const (
	outboxBudget = messageBudget
	stuckAfter   = time.Second
)

var errNotTaken = errors.New("the client did not read its answer, and too many others did not either")

// outbox is what large answers that are being sent take. The zero value is ready.
type outbox struct {
	mu   sync.Mutex // guards held and all of sending but conn
	held int64
}

// sending is one large answer on its way.
type sending struct {
	conn   *Conn
	size   int64
	moved  time.Time // when the client took something of it last
	over   bool      // nothing is written any more
	timer  *time.Timer
	gaveUp bool
}

// sendLarge writes an answer piece by piece, so that progress shows.
func (c *Conn) sendLarge(msg []byte) error {
	o, s := &c.m.outbox, &sending{conn: c, size: int64(len(msg))}
	o.mu.Lock()
	o.held += s.size
	s.moved = time.Now()
	s.timer = time.AfterFunc(stuckAfter, func() {
		defer c.m.survive("a connection's answer")
		o.look(s)
	})
	o.mu.Unlock()
	var err error
	for err == nil && len(msg) > 0 {
		var n int
		n, err = c.nc.Write(msg[:min(len(msg), smallMessage)])
		msg = msg[n:]
		o.mu.Lock()
		s.moved = time.Now()
		o.mu.Unlock()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s.over = true
	s.timer.Stop()
	if s.gaveUp {
		return errNotTaken
	}
	o.held -= s.size
	return err
}

// look gives an answer up if it is stuck and others need the room; else it looks again later. Its room is free from then on,
// or all that are stuck would be given up who look before the writers have ended. It frees the writer by a deadline, which
// nobody takes away again.
func (o *outbox) look(s *sending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.over {
		return
	}
	if o.held > outboxBudget && time.Since(s.moved) >= stuckAfter {
		s.gaveUp = true
		o.held -= s.size
		_ = s.conn.nc.SetWriteDeadline(time.Unix(1, 0))
		return
	}
	s.timer.Reset(stuckAfter)
}
