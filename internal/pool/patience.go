package pool

import "time"

// patience learns how long late replies take, so as to wait for one as long as it is worth it. It is pure. The estimate is
// the one of TCP's retransmission timer: an average and the deviation from it.
type patience struct {
	known    bool
	avg, dev time.Duration
}

// Limits of the time that a late reply is waited for.
const (
	drainFirst = time.Second            // while nothing is known
	drainLeast = 100 * time.Millisecond // and four round trips
	drainMost  = 3 * time.Second
	drainGrain = 10 * time.Millisecond // less says nothing: timers and schedulers are not finer on a busy machine
)

// limit is how long to wait for a late reply of a member whose round trip is rtt.
func (p *patience) limit(rtt time.Duration) time.Duration {
	worth := drainFirst
	if p.known {
		worth = p.avg + 4*p.dev
	}
	return min(max(worth, drainLeast+4*rtt), drainMost)
}

// grace is how long a place is kept for a connection that drains: who waits for it would get another one by a dial, which
// costs the member a handshake and a login, and the drained one is then too many. It is about what late replies take, at
// most 100 ms and four round trips, and nothing where they take longer, for then the dial will have to be made.
func (p *patience) grace(rtt time.Duration) time.Duration {
	most := drainLeast + 4*rtt
	switch {
	case !p.known:
		return min(most, drainMost)
	case p.avg > most:
		return 0
	}
	return min(p.avg+max(4*p.dev, p.avg, 2*rtt, drainGrain), most, drainMost)
}

// learn takes note of a reply that took so long to drain.
func (p *patience) learn(took time.Duration) {
	if !p.known {
		p.known, p.avg, p.dev = true, took, took/2
		return
	}
	diff := took - p.avg
	p.avg += diff / 8
	p.dev += (diff.Abs() - p.dev) / 4
}

// missed takes note of a reply that did not come within the limit: the next is given more time, up to the most.
func (p *patience) missed(limit time.Duration) { p.learn(min(2*limit, 2*drainMost)) }
