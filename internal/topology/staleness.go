package topology

import (
	"time"

	"github.com/sextantdb/sextant/event"
)

// newest is the member against which others are stale: the primary or, without one, the secondary with the latest
// write; nil if there is neither.
func (d *Description) newest() *Server {
	if p := d.Primary(); p != nil {
		return p
	}
	var best *Server
	for _, s := range d.Servers {
		if s.Kind == event.RSSecondary && (best == nil || s.LastWrite.After(best.LastWrite)) {
			best = s
		}
	}
	return best
}

// lag is how far a secondary is behind the newest member (specification "max staleness"). With a primary the client's
// own clock links the two replies, so that clocks of servers need not agree.
func (d *Description) lag(s, newest *Server) time.Duration {
	if newest.Kind == event.RSPrimary {
		return s.LastUpdate.Sub(s.LastWrite) - newest.LastUpdate.Sub(newest.LastWrite)
	}
	return newest.LastWrite.Sub(s.LastWrite)
}

// staleness is the lag and one heartbeat more, since the member may stop replicating right after its last word. The
// primary is never stale.
func (d *Description) staleness(s, newest *Server) time.Duration {
	if s.Kind != event.RSSecondary || newest == nil {
		return 0
	}
	return d.lag(s, newest) + d.cfg.HeartbeatInterval
}

// knownLag is the lag for printing: never negative, and only where both ends told their last write.
func (d *Description) knownLag(s *Server) (time.Duration, bool) {
	newest := d.newest()
	if newest == nil || s.LastWrite.IsZero() || newest.LastWrite.IsZero() {
		return 0, false
	}
	switch s.Kind {
	case event.RSPrimary:
		return 0, true
	case event.RSSecondary:
		return max(0, d.lag(s, newest)), true
	}
	return 0, false
}
