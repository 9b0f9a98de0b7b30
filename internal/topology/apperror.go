package topology

import (
	"errors"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
)

// appError weighs a failure of a pool's connection (SDAM, "Application errors"):
//   - one of an earlier generation, or older than the server's last word, is stale and says nothing;
//   - "not primary" and "recovering" mark the server Unknown and ask for a check; the pool is cleared only when the
//     server shuts down or is older than 4.2;
//   - a failed connection marks the server Unknown and clears the pool, but a timeout of a ready connection does not:
//     the operation may just be slow;
//   - a failure to connect or to greet that smells of overload changes nothing (it carries labels instead): clearing
//     the pool would only bring more connections;
//   - a load balancer is never Unknown: only connections to the service that failed are given up, and none while the
//     service is not known yet (load balancers specification, "error handling").
func (c *change) appError(ev AppError) {
	s := c.old.Server(ev.Addr)
	if s == nil || ev.Generation < ev.CurrentGeneration {
		return
	}
	tv := topologyVersionOfError(ev.Err)
	if s.TopologyVersion.compare(tv) >= 0 {
		return
	}
	switch {
	case mongoerr.IsStateChange(ev.Err):
		c.stateChange(s, ev, tv)
	case ev.BeforeHandshake:
		c.notConnected(s, ev)
	case mongoerr.IsNetwork(ev.Err) && !mongoerr.IsTimeout(ev.Err):
		c.lostConnection(s, ev)
	}
}

func (c *change) stateChange(s *Server, ev AppError, tv TopologyVersion) {
	wire := ev.MaxWire
	if wire == 0 {
		wire = s.MaxWire
	}
	clearPool := mongoerr.IsShutdown(ev.Err) || wire < 8
	if s.Kind != event.LoadBalancer {
		c.markUnknown(s, ev.Err, tv)
	} else if ev.BeforeHandshake {
		c.poolFailed(s, ev.Err)
	}
	if clearPool {
		c.clear(s, ev)
	}
	if s.Kind != event.LoadBalancer {
		c.late = append(c.late, RequestCheck{s.Addr})
	}
}

func (c *change) notConnected(s *Server, ev AppError) {
	if mongoerr.IsOverload(ev.Err) || mongoerr.HasLabel(ev.Err, mongoerr.LabelSystemOverloaded) || mongoerr.IsCanceled(ev.Err) {
		c.poolFailed(s, ev.Err)
		return
	}
	c.lostConnection(s, ev)
}

// poolFailed notes that connections fail, which changes nothing else.
func (c *change) poolFailed(s *Server, err error) {
	failed := *s
	failed.PoolErr = err
	c.put(&failed)
}

func (c *change) lostConnection(s *Server, ev AppError) {
	if s.Kind == event.LoadBalancer {
		c.poolFailed(s, ev.Err)
		c.clear(s, ev)
		return
	}
	failed := *s
	failed.PoolErr = ev.Err
	c.markUnknown(&failed, ev.Err, TopologyVersion{})
	c.clear(s, ev)
	c.late = append(c.late, CancelCheck{s.Addr})
}

// clear clears the pool; behind a load balancer only the connections to the service that failed, and none if the
// connection did not get far enough to know its service.
func (c *change) clear(s *Server, ev AppError) {
	if s.Kind == event.LoadBalancer {
		if ev.ServiceID != nil {
			c.late = append(c.late, ClearPool{Addr: s.Addr, Err: ev.Err, ServiceID: ev.ServiceID})
		}
		return
	}
	c.late = append(c.late, ClearPool{Addr: s.Addr, Err: ev.Err})
}

func topologyVersionOfError(err error) TopologyVersion {
	e, ok := errors.AsType[*mongoerr.Error](err)
	if !ok || len(e.Response) == 0 {
		return TopologyVersion{}
	}
	return topologyVersionOf(e.Response.Lookup("topologyVersion"))
}
