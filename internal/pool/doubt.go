package pool

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/event"
)

// Doubt has the connections that are idle now asked, by Options.Probe, before they are used again: the process has stood
// still for a while, and they may lead nowhere. When one of them does not answer, none of the others is asked.
func (p *Pool) Doubt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doubted = time.Now()
}

// dead is what is wrong with a connection that was idle, nil if nothing is. It looks without the lock.
func (p *Pool) dead(ctx context.Context, c *Conn, doubtful bool) error {
	switch {
	case !c.Alive():
		return p.failed("the server closed the connection while it was idle")
	case doubtful && p.o.Probe != nil:
		return p.o.Probe(ctx, c.Conn)
	}
	return nil
}

// forsake drops what is idle since before a time, because one of these was dead.
func (b *book) forsake(before time.Time, dead error) (drops []dropped) {
	kept := b.idle[:0]
	for _, c := range b.idle {
		if !c.since.Before(before) {
			kept = append(kept, c)
			continue
		}
		c.where = gone
		drops = append(drops, dropped{conn: c, reason: event.ReasonError, err: dead})
	}
	clear(b.idle[len(kept):])
	b.idle = kept
	return drops
}
