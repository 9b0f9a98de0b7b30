package sextant

import (
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/readpref"
)

// Selector is a rule of the caller's own for one call: it gets the members that the read preference lets serve, and
// returns those of them that may. It runs where the specification has it, after mode, staleness and tags and before the
// latency window, on the goroutine of the caller and perhaps more than once; it is not asked when nobody is left. It must
// not change what the members hold. When it returns nobody, the call waits for the members to change, and the error of a
// wait in vain says who was dropped; when it panics, that is the error of the call.
type Selector func(suitable []event.Member) []event.Member

// route is where a call wants its read to go.
type route struct {
	pref     *readpref.ReadPref // nil: the primary
	selector Selector
}

// direct puts a route in an operation.
func (h *handle) direct(c *cmd, op *operation.Op, r route) {
	op.ReadPref, op.Selector = r.pref, r.selector
}
