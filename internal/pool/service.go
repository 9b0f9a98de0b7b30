package pool

import (
	"maps"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
)

// Behind a load balancer the connections of one pool lead to several services. What happens to one of them does not concern
// the others: each has a generation of its own, which a connection gets when the service has said in hello who it is (CMAP
// specification, "load balancer mode"). The pool is never paused, and nobody who waits fails.

// stale says whether the connection is of a generation that is over.
func (b *book) stale(c *Conn) bool {
	if c.service != nil {
		return c.gen != b.services[*c.service]
	}
	return c.gen != b.gen
}

// greeted gives a connection that is being opened the generation of its service.
func (b *book) greeted(c *Conn, id bson.ObjectID) {
	c.service = &id
	b.forgetServices()
	if b.services == nil {
		b.services = map[bson.ObjectID]uint64{}
	}
	b.services[id] += 0
	c.gen = b.services[id]
}

// clearService starts a new generation of a service. Its connections in use, and those being opened, are closed when they
// come.
func (b *book) clearService(id bson.ObjectID) (drops []dropped) {
	b.forgetServices()
	if _, known := b.services[id]; b.status == closed || !known {
		return nil
	}
	b.services[id]++
	kept := b.idle[:0]
	for _, c := range b.idle {
		if !b.stale(c) {
			kept = append(kept, c)
			continue
		}
		c.where = gone
		drops = append(drops, dropped{conn: c, reason: event.ReasonStale})
	}
	clear(b.idle[len(kept):])
	b.idle = kept
	for _, c := range b.overdue.all(b.draining.all(nil)) {
		if b.stale(c) {
			b.notDrained(c)
			drops = append(drops, dropped{conn: c, reason: event.ReasonStale, late: true})
		}
	}
	return drops
}

// reached counts the connections of each service.
func (b *book) reached() map[bson.ObjectID]int {
	if len(b.services) == 0 {
		return nil
	}
	out := map[bson.ObjectID]int{}
	all := b.overdue.all(b.draining.all(b.pending.all(b.busy.all(append([]*Conn(nil), b.idle...)))))
	for _, c := range all {
		if c.service != nil {
			out[*c.service]++
		}
	}
	return out
}

// forgetServices drops the generations of services that no connection leads to any more.
func (b *book) forgetServices() {
	reached := b.reached()
	maps.DeleteFunc(b.services, func(id bson.ObjectID, _ uint64) bool { return reached[id] == 0 })
}

// ServiceGeneration is the number of times that a service's connections were given up, as far as some are left; with nil it
// is Generation.
func (p *Pool) ServiceGeneration(id *bson.ObjectID) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id == nil {
		return p.book.gen
	}
	return p.book.services[*id]
}

// ClearService starts a new generation of a service behind a load balancer: its connections are not used again. A service that
// no connection leads to is passed over.
func (p *Pool) ClearService(id bson.ObjectID, cause error) {
	p.mu.Lock()
	if p.book.reached()[id] == 0 || p.book.status == closed {
		p.mu.Unlock()
		return
	}
	drops := p.book.clearService(id)
	p.publish(event.PoolEvent{Type: event.PoolCleared, Err: cause, ServiceID: &id})
	p.publishDrops(drops)
	if len(drops) > 0 {
		p.dialMore(false)
		p.poke()
	}
	p.unlock()
	closeAll(drops)
}
