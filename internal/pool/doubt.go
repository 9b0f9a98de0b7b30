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

// answers asks over a doubtful connection, without the lock.
func (p *Pool) answers(ctx context.Context, c *Conn) bool {
	return p.o.Probe == nil || p.o.Probe(ctx, c.Conn) == nil
}

// forsake drops what is idle since before a time.
func (b *book) forsake(before time.Time) (drops []dropped) {
	kept := b.idle[:0]
	for _, c := range b.idle {
		if !c.since.Before(before) {
			kept = append(kept, c)
			continue
		}
		c.where = gone
		drops = append(drops, dropped{conn: c, reason: event.ReasonError})
	}
	clear(b.idle[len(kept):])
	b.idle = kept
	return drops
}
