package cluster

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/internal/conn"
)

// A process may be suspended: a laptop sleeps, a container is paused, a platform freezes a function between two calls. When
// it goes on, all that it knows is of before: members may have changed, sockets may lead nowhere, and every limit of a
// check that was under way has run out at once though nothing is wrong with the member.
//
// Monitors and the measuring of round trips leave a pulse, by the wall clock, which goes on while the monotonic one stands
// still with the machine. A pulse that comes, or is looked for by an operation, later than all limits together allow means
// a freeze: then every monitor looks at once, and the idle connections of the pools are asked before they are used. A check
// that the freeze ran into is thrown away, with its round trip, and made anew; otherwise all pools would be cleared.

// freezeSlack is how much later than due something may happen because the machine is busy.
const freezeSlack = 5 * time.Second

// longestGap is the time between two pulses in the worst of ordinary cases: a heartbeat and a check that takes all the time
// it has, of the slowest of members if they are all alike.
func (c *Config) longestGap() time.Duration {
	check := *c.ConnectTimeout
	if check <= 0 {
		check = DefaultConnectTimeout
	}
	return 2*c.Topology.HeartbeatInterval + check + freezeSlack
}

// beat leaves a pulse, and notices a freeze.
func (c *Cluster) beat() {
	now := time.Now().UnixNano()
	if last := c.pulse.Swap(now); last != 0 && time.Duration(now-last) > c.gap {
		c.thaw()
	}
}

// Awake is beat for an operation that begins now, which may be the first thing to happen after a freeze.
func (c *Cluster) Awake(now time.Time) {
	last, t := c.pulse.Load(), now.UnixNano()
	if last != 0 && time.Duration(t-last) > c.gap && c.pulse.CompareAndSwap(last, t) {
		c.thaw()
	}
}

// thaw doubts all that is known. It waits for nobody.
func (c *Cluster) thaw() {
	for _, s := range c.view.Load().servers {
		s.pool.Doubt()
		s.monitor.refresh()
	}
}

// overslept says whether something that was limited took so long that the process must have stood still. Without a limit
// nobody can tell.
func overslept(took, limit time.Duration) bool { return limit > 0 && took > limit+freezeSlack }

// probeLimit is how long an idle connection from before a freeze may take to answer.
const probeLimit = 2 * time.Second

// probe asks over an idle connection whether it still leads somewhere.
func probe(ctx context.Context, sock *conn.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	_, err := sock.Check(ctx, nil, 0)
	return err
}
