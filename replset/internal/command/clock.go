package command

import (
	"sync"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// clock is the member's logical clock: the highest cluster time it has seen. Every optime it gives is later than all
// of them and follows the wall clock where it can.
type clock struct {
	mu  sync.Mutex // guards top
	top bson.Timestamp
}

// maxDrift is how far ahead of the wall clock a gossiped cluster time may be, as the server's maxAcceptableLogicalClockDriftSecs.
const maxDrift = 365 * 24 * time.Hour

// next gives the next optime's timestamp.
func (c *clock) next(now time.Time) bson.Timestamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wall := uint32(now.Unix()); wall > c.top.T {
		c.top = bson.Timestamp{T: wall, I: 1}
	} else {
		c.top.I++
	}
	return c.top
}

// advance takes over a later time from a trusted source: an oplog entry.
func (c *clock) advance(t bson.Timestamp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.top) {
		c.top = t
	}
}

// gossip takes over a client's $clusterTime, unless it is absurdly far ahead.
func (c *clock) gossip(v bson.RawValue) {
	t, i, ok := v.TimestampOK()
	if !ok || int64(t) > time.Now().Add(maxDrift).Unix() {
		return
	}
	c.advance(bson.Timestamp{T: t, I: i})
}

// highest is the cluster time.
func (c *clock) highest() bson.Timestamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.top
}

// inTerm is the store's clock for writes of one term.
func (c *clock) inTerm(term int64) store.Clock {
	return func() (store.OpTime, time.Time) {
		now := time.Now()
		return store.OpTime{TS: c.next(now), Term: term}, now
	}
}
