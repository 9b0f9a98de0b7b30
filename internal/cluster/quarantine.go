package cluster

import (
	"github.com/sextantdb/sextant/internal/topology"
)

// Quarantine leaves a member out of every selection from now on. It is false if there is no such member.
func (c *Cluster) Quarantine(addr, reason string) bool {
	if c.Description().Server(addr) == nil {
		return false
	}
	c.report(topology.Quarantine{Addr: addr, Reason: reason})
	return true
}

// Release takes a quarantine back. It is false if there is none.
func (c *Cluster) Release(addr string) bool {
	if _, in := c.Description().Quarantined[addr]; !in {
		return false
	}
	c.report(topology.Quarantine{Addr: addr, Lifted: true})
	return true
}
