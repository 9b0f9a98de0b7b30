package sextant

import (
	"maps"
	"slices"
	"strings"
)

// Quarantine leaves a member out from now on: no read and no write goes there, save the later batches of cursors that it
// holds. It goes on being watched, its connections stay, and Hosts and Explain show it with the reason. It is for one that
// answers and yet must not be used: a disk that fails, a version under suspicion. If it is the primary, or becomes it, writes
// wait in vain until it is released. The member stays out, also if it leaves the set and comes back, until Release.
//
// The address is that of Hosts; one that is not there is an error, and so is a load balancer.
func (cl *Client) Quarantine(address, reason string) error {
	if err := cl.ready("Quarantine", ""); err != nil {
		return err
	}
	if err := cl.checkAddress("Quarantine", address); err != nil {
		return err
	}
	if given(cl.cfg.LoadBalanced) {
		return argument("Quarantine", "", "behind a load balancer there is no other member to go to")
	}
	if reason == "" {
		reason = "no reason given"
	}
	if !cl.cluster.Quarantine(withPort(address), reason) {
		return cl.noMember("Quarantine", address)
	}
	return nil
}

// checkAddress refuses what cannot be a member's.
func (cl *Client) checkAddress(op, address string) error {
	if err := checkHost(address); err != nil {
		return argument(op, "", "the address: %s; the client knows %s", words(err), cl.memberNames())
	}
	return nil
}

func (cl *Client) noMember(op, address string) error {
	return argument(op, "", "there is no member %s: the client knows %s", address, cl.memberNames())
}

// Release ends the quarantine of a member. That of one in no quarantine is an error.
func (cl *Client) Release(address string) error {
	if err := cl.ready("Release", ""); err != nil {
		return err
	}
	if err := cl.checkAddress("Release", address); err != nil {
		return err
	}
	switch d := cl.cluster.Description(); {
	case cl.cluster.Release(withPort(address)):
		return nil
	case d.Server(withPort(address)) == nil:
		return cl.noMember("Release", address)
	case len(d.Quarantined) == 0:
		return argument("Release", "", "%s is not in quarantine, and no other member is", address)
	default:
		return argument("Release", "", "%s is not in quarantine: %s", address, strings.Join(slices.Sorted(maps.Keys(d.Quarantined)), ", "))
	}
}

func (cl *Client) memberNames() string {
	var names []string
	for _, m := range cl.cluster.Description().Servers {
		names = append(names, m.Addr)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
