package cluster

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/connstring"
	"github.com/sextantdb/sextant/internal/topology"
)

// SRVInterval is the time from the end of one look into DNS to the next. The specification (polling SRV records) wants
// the least time to live of the records, but not less than this; Go's resolver does not tell the time to live.
const SRVInterval = 60 * time.Second

// ErrNoSRV says that DNS answered without any SRV record.
var ErrNoSRV = errors.New("the answer holds no SRV record")

// SRVResolver asks for SRV records. It must return when its context ends: whoever passes on one of the
// program's own sees to that.
type SRVResolver interface {
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, addrs []*net.SRV, err error)
}

// SRV says how the hosts that DNS lists are looked up again while the deployment is, or may be, a sharded cluster.
type SRV struct {
	Lookup   *connstring.Lookup
	Resolver SRVResolver
	MaxHosts int // so many hosts at most; 0: no limit
	// Failed is told, on the goroutine that looks, why an answer was not followed, or a host of it not taken; nil: nobody.
	Failed func(error)
}

// AskSRV asks for the SRV records, a second time if the resolver fails for the time being. No record is an error.
func AskSRV(ctx context.Context, r SRVResolver, q *connstring.Lookup) ([]connstring.Record, error) {
	var answer []*net.SRV
	var err error
	for range 2 {
		_, answer, err = r.LookupSRV(ctx, q.ServiceName(), "tcp", q.Host)
		if d, _ := errors.AsType[*net.DNSError](err); d == nil || d.IsNotFound || !d.Temporary() || ctx.Err() != nil {
			break
		}
	}
	if err == nil && len(answer) == 0 {
		err = ErrNoSRV
	}
	if err != nil {
		return nil, err
	}
	records := make([]connstring.Record, len(answer))
	for i, a := range answer {
		records[i] = connstring.Record{Target: a.Target, Port: a.Port}
	}
	return records, nil
}

// followSRV is the body of the goroutine that follows DNS. It ends when the deployment has turned out to be no sharded
// cluster: then its members say who belongs to it.
func (c *Cluster) followSRV() {
	wait := SRVInterval
	for c.sleep(wait) && c.srvCounts() {
		wait = SRVInterval
		if !c.rescan() {
			wait = c.cfg.Topology.HeartbeatInterval
		}
	}
}

// sleep is false when the cluster is closed before the time has passed.
func (c *Cluster) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}

func (c *Cluster) srvCounts() bool {
	kind := c.Description().Kind
	return kind == event.TopologyUnknown || kind == event.Sharded
}

// rescan looks once. It is false if there was no host to be had: then nothing changes.
func (c *Cluster) rescan() bool {
	ctx := c.ctx
	if limit := *c.cfg.ConnectTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	s := c.cfg.SRV
	records, err := AskSRV(ctx, s.Resolver, s.Lookup)
	if err != nil {
		s.tell(err)
		return false
	}
	hosts, refused := s.Lookup.Judge(records)
	for _, err := range refused {
		s.tell(err)
	}
	if len(hosts) == 0 {
		return false
	}
	if s.MaxHosts > 0 { // whom there is room for is a matter of chance
		hosts = connstring.Shuffle(hosts, chance)
	}
	c.report(topology.SRVHosts{Hosts: hosts, Max: s.MaxHosts})
	return true
}

func (s *SRV) tell(err error) {
	if s.Failed != nil {
		s.Failed(err)
	}
}
