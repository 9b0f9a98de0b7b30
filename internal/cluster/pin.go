package cluster

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// Pin keeps reads at one member, taken at random among the candidates of a read preference, for as long as the member is
// suitable: of the wanted kind, with the wanted tags, not too stale. That it gets slow does not count. It is looked at, and
// moves, when it is used. A Pin has no goroutine and nothing to close; it is safe for concurrent use.
type Pin struct {
	c    *Cluster
	pref *readpref.ReadPref
	at   atomic.Pointer[place] // never nil
}

// place is where a pin is, and the view in which that was found right. It keeps that view from being collected.
type place struct {
	addr   string
	server *Server
	seen   *view
}

// Pin waits for a member that serves the read preference and pins it. The error is that of a selection. Members that were
// never heard of are waited for as in Explain: a pin lasts, and those of many clients that have just begun would all be at
// the member that answers first.
func (c *Cluster) Pin(ctx context.Context, pref *readpref.ReadPref) (*Pin, error) {
	if err := c.FirstAnswers(ctx); err != nil {
		if ctx.Err() != nil {
			err = tooLate(ctx, "no member is pinned")
		}
		return nil, err
	}
	p := &Pin{c: c, pref: pref}
	p.at.Store(&place{})
	_, err := c.choose(ctx, topology.Want{ReadPref: pref}, p, "pin", 0)
	if err == nil && ctx.Err() != nil {
		err = tooLate(ctx, "no member is pinned")
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// tooLate is the error of a call whose context had ended when a member was found.
func tooLate(ctx context.Context, words string) error {
	return mongoerr.Wrap(mongoerr.StageSelection, ctx.Err(), "%s", words)
}

// ReadPref is the read preference of the pin.
func (p *Pin) ReadPref() *readpref.ReadPref { return p.pref }

// Of says whether the pin belongs to the cluster.
func (p *Pin) Of(c *Cluster) bool { return p.c == c }

// Address is the member at which the pin is now: the last one while none is suitable.
func (p *Pin) Address() string {
	p.follow()
	return p.at.Load().addr
}

// SelectFor is Cluster.SelectFor for an operation that goes where the pin is. An operation with rules of its own goes
// elsewhere if the pinned member does not satisfy them, and leaves the pin where it is.
func (p *Pin) SelectFor(ctx context.Context, w topology.Want, operation string, id int64) (*Server, error) {
	return counted(p.c.choose(ctx, w, p, operation, id))
}

// pick is the pinned member or, if it does not serve, another candidate; nil if there is none.
func (p *Pin) pick(v *view, w topology.Want) (*Server, error) {
	if w.Selector == nil && !w.OutMerge && len(w.Deprioritized) == 0 {
		return p.follow(), nil
	}
	w.Pinned = p.at.Load().addr
	return v.pick(w)
}

// follow is the pinned member if it is suitable in the present view. Else the pin moves to one that is; if there is none it
// stays, and follow is nil. Invariant: of several that find the pin at a wrong place one moves it, and all go there.
func (p *Pin) follow() *Server {
	for {
		at, v := p.at.Load(), p.c.view.Load()
		if at.seen == v {
			return at.server
		}
		w := topology.Want{ReadPref: p.pref, Pinned: at.addr}
		next := v.anyOf(w)
		if next == nil {
			return nil
		}
		if !p.at.CompareAndSwap(at, next) {
			continue
		}
		if at.addr != "" && at.addr != next.addr {
			p.moved(at.addr, next.addr, why(v.desc.Explain(w, time.Now()), at.addr))
		}
		return next.server
	}
}

// anyOf is a place at any of the candidates, each as likely as the others; nil if there are none.
func (v *view) anyOf(w topology.Want) *place {
	found := v.desc.Candidates(w, time.Time{})
	i := topology.PickIndex(len(found), func(int) int { return 0 }, chance)
	if i < 0 {
		return nil
	}
	return &place{found[i].Addr, v.servers[found[i].Addr], v}
}

// Switch moves the pin to another member than the present one, taken at random, if there is one that serves, and returns
// where it then is. While nobody serves it waits, as a selection does.
func (p *Pin) Switch(ctx context.Context) (string, error) {
	for {
		at := p.at.Load()
		next := p.c.view.Load().anyOf(topology.Want{ReadPref: p.pref, Deprioritized: []string{at.addr}})
		if next == nil || p.c.closed.Load() {
			if _, err := p.c.Select(ctx, topology.Want{ReadPref: p.pref}); err != nil {
				return "", err
			}
			continue
		}
		if ctx.Err() != nil {
			return "", tooLate(ctx, "the pin stays at "+at.addr)
		}
		if !p.at.CompareAndSwap(at, next) {
			continue
		}
		if at.addr != next.addr {
			p.moved(at.addr, next.addr, "switched by the caller")
		}
		return next.addr, nil
	}
}

func (p *Pin) moved(from, to, reason string) {
	p.c.publisher.pin(event.PinEvent{Want: topology.Want{ReadPref: p.pref}.String(), From: from, To: to, Reason: reason})
}

// why is what a verdict says of a member.
func why(v event.Verdict, addr string) string {
	for _, m := range v.Members {
		if m.Address == addr {
			return m.Rule
		}
	}
	return "is not in the topology any more"
}
