// Package topology is what a client believes about a deployment, and what follows from it: which members there are and
// in which state (specification "server discovery and monitoring"), and which of them may serve an operation
// ("server selection", "max staleness").
//
// The package is pure. A Description never changes; Apply makes the next one out of an event and tells in effects what
// its owner must do: start and stop monitors, clear and ready pools, ask for checks, publish. Time comes in as an
// argument. Descriptions and everything reachable from them may be read by any number of goroutines.
//
// Invariant: Candidates and Explain run the same rules (select.go); Explain only keeps the reasons.
package topology

import (
	"slices"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
)

// Limits and defaults that the specifications fix.
const (
	DefaultHeartbeatInterval = 10 * time.Second
	DefaultLocalThreshold    = 15 * time.Millisecond
	MinHeartbeatInterval     = 500 * time.Millisecond
	IdleWritePeriod          = 10 * time.Second // an idle primary writes a no-op this often (max staleness)
	SmallestMaxStaleness     = 90 * time.Second

	MinWire      = 7 // MongoDB 4.0, the oldest server that is spoken to
	minWireNamed = "MongoDB 4.0"
	MaxWire      = 29 // what is known of; servers keep answering older clients
)

// Config is what a topology starts from.
type Config struct {
	Seeds             []string // "host:port"; made lower case
	SetName           string   // the replica set that is asked for; "" for any
	Direct            bool     // one server, whatever it is (directConnection)
	LoadBalanced      bool
	SRV               bool           // seeds came from DNS and may change (SRVHosts)
	HeartbeatInterval time.Duration  // 0 is the default, 10 s
	LocalThreshold    *time.Duration // width of the latency window; nil is the default, 15 ms
}

// Description is the client's view at one moment.
type Description struct {
	Kind                  event.TopologyKind
	SetName               string // asked for, or learned
	Servers               []*Server
	MaxElectionID         bson.ObjectID // highest that a primary told; zero if none
	MaxSetVersion         Version
	CompatErr             error             // a member speaks no wire version that this client speaks: no operation is possible
	SessionTimeoutMinutes int64             // the least of all data-bearing members; -1 if one of them has no sessions
	Quarantined           map[string]string // addresses that are left out, and why; never changed
	Removed               []Removal         // members that were refused, and why; the last few

	cfg   *Config
	plain [plainWants][]*Server // candidates of the common wants, computed once
}

// Removal says why a server that was a seed or a member is none any more.
type Removal struct {
	Addr   string
	Reason string // "belongs to set rs1, not rs0"
}

// New is the view before anything is known.
func New(cfg Config, now time.Time) *Description {
	cfg.Seeds = normalized(cfg.Seeds)
	if cfg.HeartbeatInterval == 0 {
		cfg.HeartbeatInterval = DefaultHeartbeatInterval
	}
	if cfg.LocalThreshold == nil {
		cfg.LocalThreshold = new(DefaultLocalThreshold)
	}
	d := &Description{SetName: cfg.SetName, SessionTimeoutMinutes: -1, cfg: &cfg}
	kind := event.Unknown
	switch {
	case cfg.LoadBalanced:
		d.Kind, kind = event.LoadBalanced, event.LoadBalancer
	case cfg.Direct:
		d.Kind = event.Single
	case cfg.SetName != "":
		d.Kind = event.ReplicaSetNoPrimary
	}
	for _, addr := range cfg.Seeds {
		s := unknown(addr, now)
		s.Kind = kind
		d.Servers = append(d.Servers, s)
	}
	d.finish()
	return d
}

// NormalAddress is an address as members are known by it: in lower case, unless it is the path of a Unix socket.
func NormalAddress(addr string) string {
	if IsPath(addr) {
		return addr
	}
	return strings.ToLower(addr)
}

// IsPath says whether an address is the path of a Unix socket: no host holds a slash.
func IsPath(addr string) bool { return strings.HasSuffix(addr, ".sock") || strings.Contains(addr, "/") }

// normalized has all addresses in their normal form and drops repeated ones.
func normalized(addrs []string) []string {
	out := make([]string, 0, len(addrs))
	for _, a := range addrs {
		if a = NormalAddress(a); !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// Open tells what the owner of a new Description must do first: publish its birth and start a monitor a seed. Behind a
// load balancer nothing is monitored; its pool is ready at once.
func (d *Description) Open() []Effect {
	before := event.Topology{SessionTimeoutMinutes: -1}
	first := d
	if d.Kind == event.LoadBalanced { // the balancer shows up as Unknown first (load balancers, SDAM events)
		first = d.clone()
		for i, s := range first.Servers {
			first.Servers[i] = unknown(s.Addr, s.LastUpdate)
		}
	}
	out := []Effect{
		Publish{event.TopologyEvent{Type: event.TopologyOpened}},
		Publish{event.TopologyEvent{Type: event.TopologyUpdated, Before: before, After: first.View()}},
	}
	for _, s := range d.Servers {
		out = append(out, Publish{event.TopologyEvent{Type: event.MemberOpened, Address: s.Addr}}, StartMonitor{s.Addr})
	}
	if first == d {
		return out
	}
	for i, s := range d.Servers {
		out = append(out, publishMember(first, first.Servers[i], d, s), ReadyPool{s.Addr})
	}
	return append(out, Publish{event.TopologyEvent{Type: event.TopologyUpdated, Before: first.View(), After: d.View()}})
}

// Shutdown tells what the owner must do at the end: stop every monitor, then publish that all is gone. The
// description that it returns is the last one: of kind Unknown, without servers.
func (d *Description) Shutdown() (*Description, []Effect) {
	var out []Effect
	for _, s := range d.Servers {
		out = append(out, StopMonitor{s.Addr}, Publish{event.TopologyEvent{Type: event.MemberClosed, Address: s.Addr}})
	}
	last := &Description{SessionTimeoutMinutes: -1, cfg: d.cfg}
	out = append(out,
		Publish{event.TopologyEvent{Type: event.TopologyUpdated, Before: d.View(), After: last.View()}},
		Publish{event.TopologyEvent{Type: event.TopologyClosed}})
	return last, out
}

// Server finds a server by its address, which must be lower case; nil if there is none.
func (d *Description) Server(addr string) *Server {
	if i := d.index(addr); i >= 0 {
		return d.Servers[i]
	}
	return nil
}

func (d *Description) index(addr string) int {
	return slices.IndexFunc(d.Servers, func(s *Server) bool { return s.Addr == addr })
}

// Primary is the primary of the set, or nil.
func (d *Description) Primary() *Server {
	for _, s := range d.Servers {
		if s.Kind == event.RSPrimary {
			return s
		}
	}
	return nil
}

// Seeds are the addresses that the topology started from.
func (d *Description) Seeds() []string { return d.cfg.Seeds }

// HeartbeatInterval is the interval between checks that staleness reckons with.
func (d *Description) HeartbeatInterval() time.Duration { return d.cfg.HeartbeatInterval }

// clone copies what Apply may change; servers are replaced, never written to.
func (d *Description) clone() *Description {
	next := *d
	next.Servers = slices.Clone(d.Servers)
	return &next
}

// finish computes what follows from the servers.
func (d *Description) finish() {
	d.CompatErr = compatError(d.Servers)
	d.SessionTimeoutMinutes = sessionTimeout(d.Servers)
	d.fillPlain()
}

// sessionTimeout is the least of all data-bearing servers, and -1 as soon as one of them tells none.
func sessionTimeout(servers []*Server) int64 {
	least := int64(-1)
	for _, s := range servers {
		if !s.Kind.DataBearing() || s.Kind == event.LoadBalancer {
			continue
		}
		if s.SessionTimeoutMinutes < 0 {
			return -1
		}
		if least < 0 || s.SessionTimeoutMinutes < least {
			least = s.SessionTimeoutMinutes
		}
	}
	return least
}
