package cluster

import (
	"slices"

	"github.com/sextantdb/sextant/internal/topology"
)

// Who waits for members that nobody has heard of yet needs a connection to one of them next. So each of them is dialled at
// once, beside its monitor's first check: the first operation of a client takes two round trips, three with a login, and not
// three and four. What is not taken is closed.
//
// The hello of such a connection is not reported to the topology, though that is allowed (see heard): the monitor's is under way
// at the same time and no later, and a prose test of SDAM wants a heartbeat to be told before the pool becomes ready.

// prepare dials the members that may turn out to be wanted.
func (v *view) prepare(w topology.Want) {
	for addr, s := range v.servers {
		if d := v.desc.Server(addr); d != nil && d.LastUpdate.IsZero() && v.promising(addr, w) {
			s.pool.Prepare()
		}
	}
}

// promising says whether a member that nobody has heard of may serve, as far as the others tell.
func (v *view) promising(addr string, w topology.Want) bool {
	if w.Address != "" && w.Address != addr {
		return false
	}
	for _, other := range v.desc.Servers {
		if slices.Contains(other.Arbiters, addr) || w.Write && other.Primary != "" && other.Primary != addr {
			return false
		}
	}
	return true
}

// withdraw ends the dials to members that do not serve.
func (v *view) withdraw(w topology.Want) {
	for addr, s := range v.servers {
		if !v.desc.Suits(w, addr) {
			s.pool.Withdraw()
		}
	}
}
