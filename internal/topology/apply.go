package topology

import (
	"maps"
	"time"

	"github.com/sextantdb/sextant/event"
)

// Apply is the view after an event, and what its owner must do about it. Without any change it is d itself. Events
// about servers that are not, or no longer, in the topology are ignored.
func (d *Description) Apply(ev Event, now time.Time) (*Description, []Effect) {
	c := &change{old: d, next: d.clone(), now: now}
	switch ev := ev.(type) {
	case HelloReply:
		c.hello(ev)
	case CheckFailed:
		c.checkFailed(ev)
	case AppError:
		c.appError(ev)
	case SRVHosts:
		c.srvHosts(ev)
	case RTTSample:
		c.rtt(ev)
	case Quarantine:
		c.quarantine(ev)
	}
	if !c.changed {
		return d, append(c.effects, c.late...)
	}
	c.next.finish()
	c.publish()
	return c.next, append(c.effects, c.late...)
}

// change is one step from a Description to the next.
type change struct {
	old, next *Description
	now       time.Time
	changed   bool
	effects   []Effect // in order
	late      []Effect // after all others: what needs monitors, pools and the new view in place
}

func (c *change) do(e ...Effect) { c.effects = append(c.effects, e...) }

// put replaces a server's description. The server must be there.
func (c *change) put(s *Server) {
	c.next.Servers[c.next.index(s.Addr)] = s
	c.changed = true
}

// add takes in a server of which nothing is known yet.
func (c *change) add(addr string) {
	if addr == "" || c.next.index(addr) >= 0 {
		return
	}
	c.next.Servers = append(c.next.Servers, unknown(addr, c.now))
	c.changed = true
	c.do(StartMonitor{addr})
}

// remove drops a server. A reason that the user should hear of is remembered.
func (c *change) remove(addr, reason string) {
	i := c.next.index(addr)
	if i < 0 {
		return
	}
	c.next.Servers = append(c.next.Servers[:i:i], c.next.Servers[i+1:]...)
	c.changed = true
	c.do(StopMonitor{addr})
	if reason != "" {
		c.next.remember(Removal{addr, reason})
	}
}

// remember keeps the last few removals, one an address.
func (d *Description) remember(r Removal) {
	const kept = 8
	out := make([]Removal, 0, kept)
	for _, old := range d.Removed {
		if old.Addr != r.Addr {
			out = append(out, old)
		}
	}
	out = append(out, r)
	d.Removed = out[max(0, len(out)-kept):]
}

// hello takes a good answer, unless it is older than what is known.
func (c *change) hello(ev HelloReply) {
	old := c.old.Server(ev.Server.Addr)
	if old != nil && old.Kind == event.LoadBalancer {
		c.healed(old, ev)
		return
	}
	if old == nil || old.TopologyVersion.compare(ev.Server.TopologyVersion) > 0 {
		return
	}
	s := old.renewed(ev, c.now)
	c.put(s)
	c.dispatch(s)
	if s = c.next.Server(s.Addr); s != nil && (s.Kind.DataBearing() || c.next.Kind == event.Single && s.Kind.Known()) {
		c.late = append(c.late, ReadyPool{s.Addr})
	}
}

// healed takes back that connections through a load balancer fail. What a service behind it says in hello is nothing that is
// known of the balancer.
func (c *change) healed(old *Server, ev HelloReply) {
	if ev.FromPool && old.PoolErr != nil {
		s := *old
		s.PoolErr = nil
		c.put(&s)
	}
}

// renewed is the server of the reply with what lives longer than one reply: round trips, and since when.
func (s *Server) renewed(ev HelloReply, now time.Time) *Server {
	n := *ev.Server
	if n.LastUpdate.IsZero() {
		n.LastUpdate = now
	}
	switch {
	case n.samples.count == 0: // a streamed reply, not timed
		n.samples = s.samples
	case s.Kind.Known():
		n.samples = s.samples.with(n.samples.average)
	}
	n.RTT, n.MinRTT = n.samples.average, n.samples.least()
	n.Since = now
	if n.Kind == s.Kind {
		n.Since = s.Since
	}
	if !ev.FromPool {
		n.PoolErr = s.PoolErr
	}
	return &n
}

// checkFailed marks a server Unknown and clears its pool: if the monitor can not talk to it, nobody can.
func (c *change) checkFailed(ev CheckFailed) {
	s := c.old.Server(ev.Addr)
	if s == nil || s.Kind == event.LoadBalancer {
		return
	}
	c.markUnknown(s, ev.Err, TopologyVersion{})
	c.late = append(c.late, ClearPool{Addr: ev.Addr, Interrupt: ev.Timeout, Err: ev.Err})
}

// markUnknown sends a failure through the same mill as a reply.
func (c *change) markUnknown(s *Server, err error, tv TopologyVersion) {
	u := s.failed(err, tv, c.now)
	c.put(u)
	c.dispatch(u)
}

// rtt takes a sample. An Unknown server has no average, but keeps the samples for the streamed reply that revives it.
func (c *change) rtt(ev RTTSample) {
	old := c.old.Server(ev.Addr)
	if old == nil || ev.RTT < 0 {
		return
	}
	s := *old
	s.samples = s.samples.with(ev.RTT)
	if s.Kind.Known() {
		s.RTT, s.MinRTT = s.samples.average, s.samples.least()
	}
	c.put(&s)
}

// srvHosts follows DNS: only while the deployment may be a sharded cluster (specification "polling SRV records").
// Who is still listed stays as it is; who is new comes in while there is room.
func (c *change) srvHosts(ev SRVHosts) {
	if c.old.Kind != event.TopologyUnknown && c.old.Kind != event.Sharded || len(ev.Hosts) == 0 {
		return
	}
	hosts, wanted := normalized(ev.Hosts), map[string]bool{}
	for _, h := range hosts {
		wanted[h] = true
	}
	for _, s := range c.old.Servers {
		if !wanted[s.Addr] {
			c.remove(s.Addr, "")
		}
	}
	for _, h := range hosts {
		if ev.Max <= 0 || len(c.next.Servers) < ev.Max {
			c.add(h)
		}
	}
}

// dispatch is the specification's "TopologyType table": what a server's new state means for the whole.
func (c *change) dispatch(s *Server) {
	switch c.next.Kind {
	case event.Single:
		c.single(s)
	case event.TopologyUnknown:
		c.whileUnknown(s)
	case event.Sharded:
		if s.Kind.Known() && s.Kind != event.Mongos {
			c.remove(s.Addr, "is "+s.Kind.String()+" in a sharded cluster"+s.way())
		}
	case event.ReplicaSetNoPrimary, event.ReplicaSetWithPrimary:
		c.inReplicaSet(s)
	}
}

// single holds a direct connection to the set's name that was asked for.
func (c *change) single(s *Server) {
	if c.next.SetName == "" || !s.Kind.Known() || s.SetName == c.next.SetName {
		return
	}
	c.put(s.failed(setNameError(s, c.next.SetName), TopologyVersion{}, c.now))
}

// whileUnknown lets the first telling server decide what the deployment is.
func (c *change) whileUnknown(s *Server) {
	switch s.Kind {
	case event.Standalone:
		if len(c.next.cfg.Seeds) == 1 {
			c.next.Kind = event.Single
			return
		}
		c.remove(s.Addr, "is a standalone server, and there are several seeds"+s.way())
	case event.Mongos:
		c.next.Kind = event.Sharded
	case event.RSPrimary, event.RSSecondary, event.RSArbiter, event.RSOther:
		c.next.Kind = event.ReplicaSetNoPrimary
		c.inReplicaSet(s)
	}
}

// publish puts the events of the change before its other effects that are late: first the server that changed, then
// those that came and went, then the topology.
func (c *change) publish() {
	var told []Effect
	topologyChanged := c.old.Kind != c.next.Kind || c.old.SetName != c.next.SetName || len(c.old.Servers) != len(c.next.Servers) ||
		!maps.Equal(c.old.Quarantined, c.next.Quarantined)
	for _, s := range c.next.Servers {
		if old := c.old.Server(s.Addr); old != nil && old != s && !old.same(s) {
			told = append(told, publishMember(c.old, old, c.next, s))
			topologyChanged = true
		}
	}
	for _, e := range c.effects {
		switch e := e.(type) {
		case StartMonitor:
			told = append(told, Publish{event.TopologyEvent{Type: event.MemberOpened, Address: e.Addr}})
			topologyChanged = true
		case StopMonitor:
			told = append(told, Publish{event.TopologyEvent{Type: event.MemberClosed, Address: e.Addr}})
			topologyChanged = true
		}
	}
	if topologyChanged {
		told = append(told, Publish{event.TopologyEvent{Type: event.TopologyUpdated, Before: c.old.View(), After: c.next.View()}})
	}
	c.effects = append(told, c.effects...)
}

func publishMember(before *Description, old *Server, after *Description, s *Server) Publish {
	return Publish{event.TopologyEvent{
		Type: event.MemberUpdated, Address: s.Addr,
		MemberBefore: before.member(old), MemberAfter: after.member(s),
	}}
}
