package topology

import (
	"maps"

	"github.com/sextantdb/sextant/event"
)

// Quarantine leaves a member out of every selection, or no more. It is kept by the address: a member that leaves the
// topology and comes back is still in it.
type Quarantine struct {
	Addr   string
	Reason string // for people
	Lifted bool
}

func (Quarantine) isEvent() {}

// quarantine changes who is left out. Commands for this very member, as those of its cursors, go on.
func (c *change) quarantine(ev Quarantine) {
	q := maps.Clone(c.old.Quarantined)
	if q == nil {
		q = map[string]string{}
	}
	if ev.Lifted {
		delete(q, ev.Addr)
	} else {
		q[ev.Addr] = ev.Reason
	}
	if maps.Equal(q, c.old.Quarantined) {
		return
	}
	c.next.Quarantined, c.changed = q, true
}

func (d *Description) quarantined(addr string) bool {
	_, in := d.Quarantined[addr]
	return in
}

// free drops the members in quarantine.
func (t *trial) free(set []int) []int {
	if len(t.d.Quarantined) == 0 || t.d.Kind == event.LoadBalanced {
		return set
	}
	return t.keep(set, func(i int, s *Server) bool {
		if t.d.quarantined(s.Addr) {
			t.mark(i, reason{rule: ruleQuarantined})
			return false
		}
		return true
	})
}
