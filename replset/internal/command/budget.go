package command

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sextantdb/sextant/internal/wire"
)

// What a member spends on the messages of its clients. Those of up to smallMessage bytes are free: maxConns bounds them.
const (
	smallMessage  = 64 << 10
	messageBudget = 2 * wire.MaxMessage
	// A client that sends slower than this while others wait for room is dropped; and one that sends nothing for so long.
	firstPatience = 10 * time.Second
	slowestRate   = 1 << 20 // bytes a second
	stillPatience = 2 * time.Second
)

var errTooSlow = errors.New("the message came too slowly while others were waiting for room")

// budget bounds the memory of large messages that are being read or answered: who finds no room waits, and small messages
// pass by. Room is taken as bytes arrive, so that announcing much costs nobody anything. The zero value is ready.
//
// Invariant: what is being answered fits into messageBudget, and so does what was taken for messages being read when it was
// taken. The message that began first may go on beyond that as soon as it fits beside those being answered, or else all
// could wait for each other; together it is at most twice the budget.
type budget struct {
	mu       sync.Mutex // guards all below
	reading  []*share   // in the order in which they began
	read     int64      // bytes of those
	answered int64      // bytes of messages that were read and are being answered
	waiting  int
	changed  chan struct{} // closed and replaced when room was given back; nil: nobody waits
}

// share is one message's part of the budget.
type share struct {
	b      *budget
	length int64 // of the whole message
	held   int64
	whole  bool // it was read
}

// begin announces a message. It takes no room yet.
func (b *budget) begin(length int) *share {
	s := &share{b: b, length: int64(length)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = append(b.reading, s)
	return s
}

// take waits until there is room for n more bytes of the message.
func (s *share) take(ctx context.Context, n int) error {
	b := s.b
	for {
		b.mu.Lock()
		fits := b.read+b.answered+int64(n) <= messageBudget
		first := b.reading[0] == s && b.answered+s.length <= messageBudget
		if fits || first {
			s.held += int64(n)
			b.read += int64(n)
			b.mu.Unlock()
			return nil
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.waiting++
		b.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		b.mu.Lock()
		b.waiting--
		b.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// crowded says whether somebody waits for room.
func (b *budget) crowded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting > 0
}

// extend takes room for n more bytes than were announced: those that a packed message unpacks to.
func (s *share) extend(ctx context.Context, n int) error {
	s.b.mu.Lock()
	s.length += int64(n)
	s.b.mu.Unlock()
	return s.take(ctx, n)
}

// done says that the message was read: it is being answered now.
func (s *share) done() {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.leave()
	s.b.answered += s.held
	s.whole = true
	s.b.wake() // another is the first now
}

// end gives the room back. A nil share has none.
func (s *share) end() {
	if s == nil {
		return
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if s.whole {
		s.b.answered -= s.held
	} else {
		s.leave()
	}
	s.held = 0
	s.b.wake()
}

// leave takes the message out of those being read. The caller holds mu.
func (s *share) leave() {
	s.b.reading = slices.DeleteFunc(s.b.reading, func(o *share) bool { return o == s })
	s.b.read -= s.held
}

// wake has those who wait look again. The caller holds mu.
func (b *budget) wake() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// readLarge reads the rest of a message that is too large to be free. The share is the connection's until the message was
// answered.
func (c *Conn) readLarge(msg []byte, length int) ([]byte, error) {
	c.share = c.m.messages.begin(length)
	begun := time.Now()
	last := begun // when bytes came
	limit := firstPatience + time.Duration(length/slowestRate)*time.Second
	defer c.nc.SetReadDeadline(time.Time{})
	for len(msg) < length {
		if len(msg) == cap(msg) {
			more := min(len(msg), length-len(msg))
			if len(msg) < smallMessage {
				more = min(len(msg), smallMessage-len(msg)) // that much is free
			} else if err := c.share.take(c.ctx, more); err != nil {
				return nil, err
			}
			last = time.Now() // it may have had to wait
			msg = append(msg, make([]byte, more)...)[:len(msg)]
		}
		// In turns, to see whether others wait. Whoever ends the connection does so after it has cancelled the context.
		_ = c.nc.SetReadDeadline(time.Now().Add(time.Second))
		if c.ctx.Err() != nil {
			return nil, context.Cause(c.ctx)
		}
		n, err := c.br.Read(msg[len(msg):min(cap(msg), length)])
		msg = msg[:len(msg)+n]
		if n > 0 {
			last = time.Now()
		}
		switch {
		case err != nil && !isTimeout(err):
			return nil, cutShort(err)
		case (time.Since(begun) > limit || time.Since(last) > stillPatience) && c.m.messages.crowded():
			return nil, errTooSlow
		}
	}
	return msg, nil
}
