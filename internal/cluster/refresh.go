package cluster

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/mongoerr"
)

// Refresh has every member checked anew and waits for the answers, or for the end of ctx. Members that are heard of
// meanwhile are waited for too.
func (c *Cluster) Refresh(ctx context.Context) error {
	if c.closed.Load() {
		return closedError()
	}
	c.Start()
	if c.cfg.Topology.LoadBalanced {
		return nil // nothing is monitored
	}
	asked, start := map[*monitor]bool{}, time.Now()
	for {
		waits, v := map[*monitor]<-chan struct{}{}, c.view.Load()
		for addr, s := range v.servers {
			d := v.desc.Server(addr)
			if !asked[s.monitor] && d != nil && !d.LastUpdate.After(start) {
				asked[s.monitor] = true
				waits[s.monitor] = s.monitor.refresh()
			}
		}
		if len(waits) == 0 {
			return nil
		}
		for m, checked := range waits {
			select {
			case <-checked:
			case <-m.ctx.Done():
			case <-ctx.Done():
				return mongoerr.Wrap(mongoerr.StageSelection, ctx.Err(), "not all members answered in time")
			case <-c.closing:
				return closedError()
			}
		}
	}
}

// firstAnswer is how long FirstAnswers waits for a member.
const firstAnswer = time.Second

// FirstAnswers waits until every member has answered or failed once, but no longer than a second since it is known.
func (c *Cluster) FirstAnswers(ctx context.Context) error {
	c.Start()
	if c.cfg.Topology.LoadBalanced {
		return nil
	}
	for {
		v := c.view.Load()
		longest := v.unheard(time.Now())
		if longest <= 0 {
			return nil
		}
		limit := time.NewTimer(longest)
		select {
		case <-v.changed:
		case <-limit.C:
		case <-c.closing:
		case <-ctx.Done():
			limit.Stop()
			return mongoerr.Wrap(mongoerr.StageSelection, ctx.Err(), "not all members answered in time")
		}
		limit.Stop()
		if c.closed.Load() {
			return closedError()
		}
	}
}

// unheard is how long the member that was last heard of may yet take for its first answer; not positive if none may.
func (v *view) unheard(now time.Time) (longest time.Duration) {
	for _, s := range v.desc.Servers {
		if s.LastUpdate.IsZero() {
			longest = max(longest, firstAnswer-now.Sub(s.Since))
		}
	}
	return longest
}

// Ready waits until a member that serves the want, the pinned one if there is a pin, gives a connection. What may pass, a
// failure of the network for one, is tried again until the selection timeout is over.
func (c *Cluster) Ready(ctx context.Context, w topology.Want, p *Pin) error {
	start := time.Now()
	for {
		s, err := c.choose(ctx, w, p, "ready", 0)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return tooLate(ctx, "no connection is asked for")
		}
		pc, err := s.CheckOut(ctx, w)
		if err == nil {
			pc.CheckIn()
			return nil
		}
		if mongoerr.IsAuth(err) || !mongoerr.IsPoolCleared(err) && !mongoerr.IsNetwork(err) || time.Since(start) > c.cfg.ServerSelectionTimeout {
			return err
		}
		again := time.NewTimer(topology.MinHeartbeatInterval)
		select {
		case <-again.C:
		case <-c.closing:
		case <-ctx.Done():
			again.Stop()
			return err
		}
		again.Stop()
	}
}
