package topology

import (
	"slices"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
)

// Texts that the specification demands in the error of a primary that is none any more.
const (
	staleByElection = "primary marked stale due to electionId/setVersion mismatch"
	staleByNewer    = "primary marked stale due to discovery of newer primary"
)

// inReplicaSet is the row of a replica set in the specification's table.
func (c *change) inReplicaSet(s *Server) {
	switch s.Kind {
	case event.Standalone:
		c.remove(s.Addr, "is a standalone server, not a member of "+c.setWanted()+s.way())
	case event.Mongos:
		c.remove(s.Addr, "is a mongos, not a member of "+c.setWanted()+s.way())
	case event.RSPrimary:
		c.fromPrimary(s)
	case event.RSSecondary, event.RSArbiter, event.RSOther:
		c.fromMember(s)
	}
	c.countPrimary()
}

func (c *change) setWanted() string {
	if c.next.SetName == "" {
		return "a replica set"
	}
	return "set " + c.next.SetName
}

// countPrimary is the specification's checkIfHasPrimary.
func (c *change) countPrimary() {
	c.next.Kind = event.ReplicaSetNoPrimary
	if c.next.Primary() != nil {
		c.next.Kind = event.ReplicaSetWithPrimary
	}
}

// ofOtherSet removes a server whose set is not the one asked for or learned; the first name heard is learned.
func (c *change) ofOtherSet(s *Server) bool {
	if c.next.SetName == "" {
		c.next.SetName = s.SetName
	}
	if c.next.SetName == s.SetName {
		return false
	}
	c.remove(s.Addr, "belongs to set "+s.SetName+", not "+c.next.SetName+s.way())
	return true
}

// fromMember hears a member that is not the primary (updateRSWithoutPrimary, updateRSWithPrimaryFromMember). Its list of
// members counts only while no primary is known, and then only to add.
func (c *change) fromMember(s *Server) {
	hadPrimary := c.next.Kind == event.ReplicaSetWithPrimary
	if c.ofOtherSet(s) {
		return
	}
	if !hadPrimary {
		c.addAll(s)
	}
	if !hadPrimary || s.Me == s.Addr || s.Me == "" {
		c.hint(s)
	}
	if s.Me != "" && s.Me != s.Addr {
		c.remove(s.Addr, "calls itself "+s.Me+s.way())
	}
}

// hint marks the server that a member takes for the primary, while there is none and nothing is known of that server.
func (c *change) hint(s *Server) {
	if s.Primary == "" || c.next.Primary() != nil {
		return
	}
	if p := c.next.Server(s.Primary); p != nil && p.Kind == event.Unknown {
		possible := *p
		possible.Kind = event.PossiblePrimary
		c.put(&possible)
	}
}

func (c *change) addAll(s *Server) {
	for _, list := range [][]string{s.Hosts, s.Passives, s.Arbiters} {
		for _, addr := range list {
			c.add(addr)
		}
	}
}

// fromPrimary hears a primary (updateRSFromPrimary): unless it is stale it decides who is a member.
func (c *change) fromPrimary(s *Server) {
	if c.ofOtherSet(s) {
		return
	}
	if c.staleElection(s) {
		c.put(s.failed(mongoerr.New(mongoerr.StageServer, staleByElection+": its election %s, version %d; newest seen %s, version %d",
			s.ElectionID.Hex(), s.SetVersion.N, c.next.MaxElectionID.Hex(), c.next.MaxSetVersion.N), TopologyVersion{}, c.now))
		return
	}
	for _, other := range slices.Clone(c.next.Servers) {
		if other.Kind == event.RSPrimary && other.Addr != s.Addr {
			c.depose(other, s)
		}
	}
	c.addAll(s)
	for _, other := range slices.Clone(c.next.Servers) {
		if s.Lists(other.Addr) {
			continue
		}
		reason := ""
		if other.Addr == s.Addr {
			reason = "is not in its own list of members"
			if s.Me != "" {
				reason += ": it calls itself " + s.Me
			}
			reason += s.way()
		}
		c.remove(other.Addr, reason)
	}
}

// depose marks the primary of before Unknown. Connections to a server before 4.2 are dead: it closed them.
func (c *change) depose(old, newer *Server) {
	err := mongoerr.New(mongoerr.StageServer, staleByNewer+" %s", newer.Addr)
	c.put(old.failed(err, TopologyVersion{}, c.now))
	if old.MaxWire < 8 {
		c.late = append(c.late, ClearPool{Addr: old.Addr, Err: err})
	}
	c.late = append(c.late, RequestCheck{old.Addr})
}

// staleElection compares a primary's word with the newest seen and, unless it is older, takes it for the newest.
func (c *change) staleElection(s *Server) bool {
	d := c.next
	if s.MaxWire >= 17 { // MongoDB 6.0: the election decides, then the version; none is less than any
		if older(s.ElectionID, d.MaxElectionID) || s.ElectionID == d.MaxElectionID && s.SetVersion.less(d.MaxSetVersion) {
			return true
		}
		d.MaxElectionID, d.MaxSetVersion = s.ElectionID, s.SetVersion
		return false
	}
	if s.SetVersion.Set && !s.ElectionID.IsZero() { // before: the version decides, then the election
		if d.MaxSetVersion.Set && !d.MaxElectionID.IsZero() &&
			(s.SetVersion.less(d.MaxSetVersion) || s.SetVersion == d.MaxSetVersion && older(s.ElectionID, d.MaxElectionID)) {
			return true
		}
		d.MaxElectionID = s.ElectionID
	}
	if s.SetVersion.Set && d.MaxSetVersion.less(s.SetVersion) {
		d.MaxSetVersion = s.SetVersion
	}
	return false
}

func setNameError(s *Server, wanted string) error {
	if s.SetName == "" {
		return mongoerr.New(mongoerr.StageConfig, "%s is %s without a set name, set %s was asked for%s", s.Addr, s.Kind, wanted, s.way())
	}
	return mongoerr.New(mongoerr.StageConfig, "%s belongs to set %s, set %s was asked for%s", s.Addr, s.SetName, wanted, s.way())
}
