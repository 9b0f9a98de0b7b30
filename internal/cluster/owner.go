package cluster

import (
	"maps"
	"sync"
	"time"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/topology"
)

// report is an event for the owner, who closes done when the event's view and effects are in place.
type report struct {
	event topology.Event
	done  chan struct{}
}

// report hands an event to the owner and waits until it is dealt with.
func (c *Cluster) report(ev topology.Event) {
	r := report{ev, make(chan struct{})}
	select {
	case c.inbox <- r:
		<-r.done
	case <-c.ended:
	}
}

// open makes the servers of the seeds and starts their monitors, before the owner runs, so that who has started the
// cluster can ask them at once.
func (c *Cluster) open() {
	first := topology.New(c.cfg.Topology, time.Now()) // from now on somebody asks the seeds
	c.install(first, first.Open())
}

// run is the body of the owner's goroutine. From its start on it alone replaces the view.
func (c *Cluster) run() {
	defer close(c.ended)
	for {
		select {
		case r := <-c.inbox:
			c.apply(r.event)
			close(r.done)
		case <-c.closing:
			c.drain()
			c.shutdown()
			return
		}
	}
}

// drain waits until monitors and pools have ended. Meanwhile it goes on to answer, so that none of them waits for it
// in vain, but nothing is news any more.
func (c *Cluster) drain() {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		c.monitors.Wait()
		var pools sync.WaitGroup
		for _, s := range c.view.Load().servers {
			pools.Go(func() { s.pool.Close(c.closeCtx) })
		}
		pools.Wait()
		c.closers.Wait()
		c.dials.Wait()
	}()
	for {
		select {
		case r := <-c.inbox:
			close(r.done)
		case <-drained:
			return
		}
	}
}

func (c *Cluster) apply(ev topology.Event) {
	v := c.view.Load()
	if e, ok := ev.(topology.AppError); ok {
		// Of several failures of one generation only the first may clear the pool: what counts is the generation now.
		if s := v.servers[e.Addr]; s != nil {
			e.CurrentGeneration = s.pool.ServiceGeneration(e.ServiceID)
			ev = e
		}
	}
	next, effects := v.desc.Apply(ev, time.Now())
	if next == v.desc && len(effects) == 0 {
		return
	}
	c.install(next, effects)
}

// install makes a description the present one. Pools are readied before it can be seen, so that nobody selects a member
// whose pool still refuses, and cleared after, so that whoever a paused pool turns away does not find the member again.
// (A cleared member is Unknown in the new view.)
func (c *Cluster) install(next *topology.Description, effects []topology.Effect) {
	old := c.view.Load()
	v := &view{desc: next, servers: c.serversAfter(old.servers, effects), changed: make(chan struct{})}
	for _, e := range effects {
		if e, ok := e.(topology.ReadyPool); ok {
			v.servers[e.Addr].pool.Ready()
		}
	}
	c.view.Store(v)
	close(old.changed)
	for _, e := range effects {
		c.perform(e, old, v)
	}
}

// serversAfter is the table of servers after members came and went; the old one if none did.
func (c *Cluster) serversAfter(old map[string]*Server, effects []topology.Effect) map[string]*Server {
	servers, copied := old, false
	for _, e := range effects {
		start, isStart := e.(topology.StartMonitor)
		stop, isStop := e.(topology.StopMonitor)
		if (isStart || isStop) && !copied {
			if servers = maps.Clone(old); servers == nil {
				servers = map[string]*Server{}
			}
			copied = true
		}
		switch {
		case isStart:
			servers[start.Addr] = c.newServer(start.Addr)
		case isStop:
			delete(servers, stop.Addr)
		}
	}
	return servers
}

func (c *Cluster) perform(e topology.Effect, old, v *view) {
	switch e := e.(type) {
	case topology.StartMonitor:
		if s := v.servers[e.Addr]; s != nil && !c.cfg.Topology.LoadBalanced {
			s.monitor.start()
		}
	case topology.StopMonitor:
		if s := old.servers[e.Addr]; s != nil {
			s.retire()
		}
	case topology.ClearPool:
		if s := v.servers[e.Addr]; s != nil {
			s.clear(e)
		}
	case topology.RequestCheck:
		if s := v.servers[e.Addr]; s != nil {
			s.monitor.request()
		}
	case topology.CancelCheck:
		if s := v.servers[e.Addr]; s != nil {
			s.monitor.cancelCheck(false)
		}
	case topology.Publish:
		c.publish(e.Event)
	}
}

// shutdown publishes the end. Monitors and pools have ended before.
func (c *Cluster) shutdown() {
	old := c.view.Load()
	last, effects := old.desc.Shutdown()
	c.view.Store(&view{desc: last, changed: make(chan struct{})})
	close(old.changed)
	for _, e := range effects {
		if p, ok := e.(topology.Publish); ok {
			c.publish(p.Event)
		}
	}
}

func (c *Cluster) publish(e event.TopologyEvent) {
	e.TopologyID = c.cfg.ID
	c.publisher.topology(&e)
}
