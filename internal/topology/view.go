package topology

import (
	"errors"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
)

// View is the description as users see it. Pool numbers are the owner's to fill in.
func (d *Description) View() event.Topology {
	t := event.Topology{
		Kind: d.Kind, SetName: d.SetName, Seeds: d.cfg.Seeds, CompatError: errorText(d.CompatErr),
		SessionTimeoutMinutes: d.SessionTimeoutMinutes,
		Members:               make([]event.Member, len(d.Servers)),
	}
	for i, s := range d.Servers {
		t.Members[i] = d.member(s)
	}
	return t
}

// member is a server as users see it.
func (d *Description) member(s *Server) event.Member {
	m := event.Member{
		Address: s.Addr, Dialled: s.Addr, Me: s.Me, Kind: s.Kind, SetName: s.SetName, Tags: s.Tags, Primary: s.Primary,
		RTT: s.RTT, MinRTT: s.MinRTT, LastWrite: s.LastWrite,
		Hosts: s.Hosts, Passives: s.Passives, Arbiters: s.Arbiters, Hidden: s.Hidden,
		ElectionID: s.ElectionID, SetVersion: s.SetVersion.N, MinWire: s.MinWire, MaxWire: s.MaxWire,
		SessionTimeoutMinutes: s.SessionTimeoutMinutes,
		LastUpdate:            s.LastUpdate, Since: s.Since, LastError: s.Err, Hello: s.Hello,
	}
	m.Lag, m.LagKnown = d.knownLag(s)
	m.Quarantine = d.Quarantined[s.Addr]
	if m.LastError == nil {
		m.LastError = s.PoolErr
	}
	if e, ok := errors.AsType[*mongoerr.Error](m.LastError); ok {
		m.LastErrorStage = string(e.Stage)
	}
	return m
}
