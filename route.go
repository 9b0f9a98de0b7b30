package sextant

import (
	"context"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/readpref"
)

// Selector is a rule of the caller's own for one call: it gets the members that the read preference lets serve, and
// returns those of them that may. It runs where the specification has it, after mode, staleness and tags and before the
// latency window, on the goroutine of the caller and perhaps more than once; it is not asked when nobody is left. It must
// not change what the members hold. When it returns nobody, the call waits for the members to change, and the error of a
// wait in vain says who was dropped; when it panics, that is the error of the call.
type Selector func(suitable []event.Member) []event.Member

// Pin is a reader that stays at one member, which is taken at random among those that a read preference lets serve: what
// getSlave and switchSlave of old did for a whole client. Each process with pins of its own so reads from one member's
// memory, and does not see time go backwards for as long as the pin stays.
//
// The pin stays for as long as its member may serve: a member that is down, in RECOVERING, too stale for the read
// preference or without its tags is left for another one, by the next read or by Server, with a PinMoved event. A member
// that others outrun is not. A pin that nobody uses does not move, and tells nothing. With secondaryPreferred the primary is such another one, until a secondary is back. While
// nobody may serve, reads wait as all others do.
//
// Use it for a single call, or with CollectionOptions.Pin and DatabaseOptions.Pin for a handle; the nearest level that gives
// a pin or a read preference wins. Writes know no pin. A Pin is cheap, needs no closing and may be used by many goroutines,
// and many pins may be at different members.
type Pin struct {
	p *cluster.Pin
}

// Pin waits until a member may serve reads with the read preference, and pins it; nil is the client's read preference. A
// member that was never heard of is waited for, for a second at most, so that the pins of clients that have just begun spread
// over all that may serve. The error is that of a selection.
func (cl *Client) Pin(ctx context.Context, pref *readpref.ReadPref) (*Pin, error) {
	if ctx == nil {
		return nil, argument("Pin", "", "the context is nil")
	}
	if err := cl.ready("Pin", ""); err != nil {
		return nil, err
	}
	if pref == nil {
		pref = cl.ReadPreference()
	}
	p, err := cl.cluster.Pin(ctx, pref)
	if err != nil {
		return nil, err
	}
	return &Pin{p}, nil
}

// Server is the address of the member at which the pin is. While nobody may serve it is the last one.
func (p *Pin) Server() string {
	if p.empty() {
		return ""
	}
	return p.p.Address()
}

// Switch moves the pin to another member, taken at random among the others that may serve, and returns its address. It
// stays where it is if there is no other, or if ctx has ended. While nobody may serve it waits, as a read does; the error is
// that of a selection.
func (p *Pin) Switch(ctx context.Context) (string, error) {
	if ctx == nil {
		return "", argument("Switch", "", "the context is nil")
	}
	if p.empty() {
		return "", argument("Switch", "", emptyPin)
	}
	return p.p.Switch(ctx)
}

// ReadPreference is what the members that the pin may be at must satisfy.
func (p *Pin) ReadPreference() *readpref.ReadPref {
	if p.empty() {
		return readpref.Primary()
	}
	return p.p.ReadPref()
}

// String says what the pin is for and where it is.
func (p *Pin) String() string {
	if p.empty() {
		return "pin that was not made by Client.Pin"
	}
	return "pin with " + p.ReadPreference().String() + " at " + p.Server()
}

func (p *Pin) empty() bool { return p == nil || p.p == nil }

// check says what is wrong with a pin that is given to an operation of a client.
func (p *Pin) check(cl *Client) string {
	switch {
	case p.empty():
		return emptyPin
	case cl == nil || !p.p.Of(cl.cluster):
		return "the Pin is of another client"
	}
	return ""
}

// usePin puts the options' pin in force, if there is one.
func (h *handle) usePin(o CollectionOptions) {
	if o.Pin == nil {
		return
	}
	bad := o.Pin.check(h.client)
	if o.ReadPreference != nil {
		bad = bothGiven
	}
	if bad != "" {
		if h.err == nil {
			h.err = argument("", h.ns(), "%s", bad)
		}
		return
	}
	h.set.pin, h.set.readPref = o.Pin, o.Pin.ReadPreference()
}

// What can be wrong with a pin.
const (
	emptyPin  = "the Pin is empty: Client.Pin makes one"
	bothGiven = "both a Pin and a ReadPreference are given, and a Pin has a read preference of its own"
)

// route is where a call wants its read to go.
type route struct {
	pref     *readpref.ReadPref // nil: the primary
	pin      *Pin               // nil: none
	selector Selector
}

// direct puts a route in an operation. An inherited pin comes with the read preference that it has.
func (h *handle) direct(c *cmd, op *operation.Op, r route) {
	op.ReadPref, op.Selector = r.pref, r.selector
	if r.pin == nil {
		return
	}
	if bad := r.pin.check(h.client); bad != "" {
		c.fail(argument(c.name, c.ns, "%s", bad))
		return
	}
	if own := r.pin.ReadPreference(); r.pref != nil && r.pref != own {
		c.fail(argument(c.name, c.ns, "%s", bothGiven))
	} else {
		op.ReadPref = own
	}
	op.Pin = r.pin.p
}
