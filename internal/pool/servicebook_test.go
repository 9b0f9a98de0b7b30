package pool

import (
	"slices"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"pgregory.net/rapid"
)

// Generations by the service come to the same as marking, at each clear, every connection of the service as stale. Entries of
// services that nothing leads to go, and what comes back after that is not confused with what was before.
func TestGenerationsOfServicesMarkWhatWasThereAtAClear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &book{maxConnecting: 100, status: ready}
		now := time.Unix(1, 0)
		var pending, busy, draining []*Conn
		stale := map[*Conn]bool{}
		service := rapid.SampledFrom([]bson.ObjectID{{1}, {2}, {3}})
		drop := func(list *[]*Conn) *Conn {
			if len(*list) == 0 {
				return nil
			}
			i := rapid.IntRange(0, len(*list)-1).Draw(t, "i")
			c := (*list)[i]
			*list = slices.Delete(*list, i, i+1)
			return c
		}
		kept := func(c *Conn, reason string) {
			if (reason != "") != stale[c] {
				t.Fatalf("connection %d, stale: %v, was closed for %q", c.id, stale[c], reason)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"dial": func(*rapid.T) {
				b.wait(&waiter{got: make(chan delivery, 1)})
				if c := b.dial(false); c != nil {
					b.greeted(c, service.Draw(t, "service"))
					pending = append(pending, c)
				}
			},
			"dialed": func(*rapid.T) {
				c := drop(&pending)
				if c == nil {
					return
				}
				w, reason, _ := b.dialed(c, now)
				if kept(c, reason); w != nil {
					busy = append(busy, c)
				}
			},
			"dialFailed": func(*rapid.T) {
				c := drop(&pending)
				if c == nil {
					return
				}
				if w := b.blame(c); w != nil && stale[c] {
					t.Fatal("somebody was told of a failure from before the clear")
				}
				b.dialFailed(c)
			},
			"take": func(*rapid.T) {
				c, drops := b.take(now)
				if len(drops) > 0 {
					t.Fatal("something stale was idle")
				}
				if c != nil {
					busy = append(busy, c)
				}
			},
			"checkIn": func(*rapid.T) {
				c := drop(&busy)
				if c == nil {
					return
				}
				w, reason := b.checkIn(c, false, now)
				if kept(c, reason); w != nil {
					busy = append(busy, c)
				}
			},
			"late": func(*rapid.T) {
				c := drop(&busy)
				if c == nil {
					return
				}
				reason := b.checkInLate(c)
				if kept(c, reason); reason == "" {
					draining = append(draining, c)
				}
			},
			"graceOver": func(*rapid.T) {
				for _, c := range draining {
					if c.where == overdue {
						continue
					}
					b.graceOver(c)
					return
				}
			},
			"drained": func(*rapid.T) {
				c := drop(&draining)
				if c == nil {
					return
				}
				if w, _ := b.drained(c, now); w != nil {
					busy = append(busy, c)
				}
			},
			"clear": func(*rapid.T) {
				id := service.Draw(t, "service")
				waiting := b.waiting.n
				var want []*Conn
				for _, c := range slices.Concat(pending, busy, draining, b.idle) {
					if *c.service == id && !stale[c] {
						if stale[c] = true; c.where == idle || slices.Contains(draining, c) {
							want = append(want, c)
						}
					}
				}
				drops := b.clearService(id)
				for _, d := range drops {
					if !slices.Contains(want, d.conn) {
						t.Fatalf("connection %d was closed", d.conn.id)
					}
					draining = slices.DeleteFunc(draining, func(c *Conn) bool { return c == d.conn })
				}
				if len(drops) != len(want) || b.waiting.n != waiting || b.status != ready {
					t.Fatalf("%d closed, want %d; %d wait of %d", len(drops), len(want), b.waiting.n, waiting)
				}
			},
			"": func(*rapid.T) {
				known := map[bson.ObjectID]bool{}
				for _, c := range slices.Concat(pending, busy, draining, b.idle) {
					if known[*c.service] = true; b.stale(c) != stale[c] {
						t.Fatalf("connection %d: stale is %v, want %v", c.id, b.stale(c), stale[c])
					}
				}
				if b.forgetServices(); len(b.services) != len(known) || len(b.reached()) != len(known) {
					t.Fatalf("%d services are remembered, want %d", len(b.services), len(known))
				}
			},
		})
	})
}
