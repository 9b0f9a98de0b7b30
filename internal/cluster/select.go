package cluster

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/mongoerr"
)

// Select picks a member that may serve: of two candidates taken at random, the one with the lower load. It starts the
// cluster if nobody has. While nobody is suitable it waits, asking all monitors to check, until the context or the
// serverSelectionTimeout ends; it fails at once where waiting can not help. The error is a *mongoerr.Error of the stage
// selection whose message is the verdict: who was wanted, and for each member why it did not serve.
func (c *Cluster) Select(ctx context.Context, w topology.Want) (*Server, error) {
	return c.choose(ctx, w, nil, "", 0)
}

// SelectFor is Select for an operation, with its name and number for the events. The operation counts as the member's load
// from now on, so that others of the same moment look elsewhere, until it calls Done.
func (c *Cluster) SelectFor(ctx context.Context, w topology.Want, operation string, id int64) (*Server, error) {
	return counted(c.choose(ctx, w, nil, operation, id))
}

func counted(s *Server, err error) (*Server, error) {
	if s != nil {
		s.operations.Add(1)
	}
	return s, err
}

// choose selects, where the pin is if there is one.
func (c *Cluster) choose(ctx context.Context, w topology.Want, p *Pin, operation string, id int64) (*Server, error) {
	if c.closed.Load() {
		return nil, closedError()
	}
	if !c.started.Load() {
		c.Start()
	}
	c.publisher.look()
	if !c.publisher.selections() {
		s, fault := c.view.Load().pickBy(p, w)
		if fault != nil {
			return nil, faultError(c.Explain(w), fault)
		}
		if s != nil {
			return s, nil
		}
	}
	return c.await(ctx, w, p, event.SelectionEvent{Operation: operation, OperationID: id, Want: w.String()})
}

func (v *view) pickBy(p *Pin, w topology.Want) (*Server, error) {
	if p != nil {
		return p.pick(v, w)
	}
	return v.pick(w)
}

// pick is a candidate, nil if there is none. The error is that of the caller's selector.
func (v *view) pick(w topology.Want) (*Server, error) {
	if memorable(&w) {
		servers := v.recall(&w)
		i := topology.PickIndex(len(servers), func(i int) int { return servers[i].Load() }, chance)
		if i < 0 {
			return nil, nil
		}
		return servers[i], nil
	}
	var fault error
	found, plain := v.desc.Ready(&w)
	if !plain {
		found, fault = v.desc.Choose(w)
	}
	switch len(found) {
	case 0:
		return nil, fault
	case 1:
		return v.servers[found[0].Addr], nil
	}
	load := func(i int) int { return v.servers[found[i].Addr].Load() }
	return v.servers[topology.Pick(found, load, chance).Addr], nil
}

// explain is the verdict on a view, with the chance of each candidate.
func (v *view) explain(w topology.Want, now time.Time) event.Verdict {
	out := v.desc.ExplainWith(w, now, v.stage)
	topology.WithLoads(&out, func(address string) int {
		if s := v.servers[address]; s != nil {
			return s.Load()
		}
		return 0
	})
	return out
}

// stage is how far the opening of a monitor's connection has come, "" if none was ever opened.
func (v *view) stage(addr string) mongoerr.Stage {
	if s := v.servers[addr]; s != nil {
		stage, _ := s.monitor.stage.Load().(mongoerr.Stage)
		return stage
	}
	return ""
}

// Explain says for each member why an operation would, or would not, go there now.
func (c *Cluster) Explain(w topology.Want) event.Verdict { return c.view.Load().explain(w, time.Now()) }

// await is Select with events and patience.
func (c *Cluster) await(ctx context.Context, w topology.Want, p *Pin, e event.SelectionEvent) (*Server, error) {
	start := time.Now()
	tell := func(kind event.SelectionType) {
		e.Type = kind
		c.publisher.selection(e, c.view.Load)
	}
	tell(event.SelectionStarted)
	limit := time.NewTimer(c.cfg.ServerSelectionTimeout)
	defer limit.Stop()
	nag := time.NewTicker(topology.MinHeartbeatInterval)
	defer nag.Stop()
	for waiting := false; ; {
		v := c.view.Load()
		s, fault := v.pickBy(p, w)
		if s != nil {
			if waiting {
				v.withdraw(w)
			}
			e.Server = s.addr
			tell(event.SelectionSucceeded)
			return s, nil
		}
		err := c.hopeless(v, w)
		switch {
		case err != nil:
		case fault != nil:
			err = faultError(v.explain(w, time.Now()), fault)
		case w.Address != "" && failedSince(v.desc.Server(w.Address), start):
			err = selectionError(v.explain(w, time.Now()), waitedFor(start))
		}
		if err == nil {
			if !waiting {
				waiting = true
				e.Remaining = c.cfg.ServerSelectionTimeout
				e.Verdict = v.explain(w, start)
				tell(event.SelectionWaiting)
			}
			c.RequestCheckAll()
			if e.OperationID != 0 { // else nobody wants a connection
				v.prepare(w)
			}
			var over bool
			if over, err = c.pause(ctx, v, limit, nag); !over {
				continue
			}
			err = c.failure(w, start, err)
		}
		e.Err = err
		tell(event.SelectionFailed)
		return nil, err
	}
}

// pause waits for a newer view. It is over, with the cause, when there is no more time.
func (c *Cluster) pause(ctx context.Context, v *view, limit *time.Timer, nag *time.Ticker) (over bool, cause error) {
	select {
	case <-v.changed:
	case <-nag.C: // a monitor may have passed over the request, being busy with a check
	case <-limit.C:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	case <-c.closing:
		return true, mongoerr.ErrClientClosed
	}
	return false, nil
}

// RequestCheckAll asks every monitor to check as soon as the least interval between checks allows.
func (c *Cluster) RequestCheckAll() {
	for _, s := range c.view.Load().servers {
		s.monitor.request()
	}
}

// Reachable says whether any member is known to answer.
func (c *Cluster) Reachable() bool {
	for _, s := range c.Description().Servers {
		if s.Kind.DataBearing() {
			return true
		}
	}
	return false
}
