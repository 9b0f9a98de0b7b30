package replset

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// watchHello asks a member for news of itself all the time, as drivers do, and holds the answers to what they promise.
func (w *world) watchHello(ctx context.Context, i int) {
	for ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
		c, err := tryDial(ctx, w.set, i, "watcher")
		if err != nil {
			continue
		}
		stop := context.AfterFunc(ctx, func() { _ = c.nc.Close() })
		w.askForNews(c, i)
		stop()
		_ = c.nc.Close()
	}
}

// askForNews asks until the connection breaks.
func (w *world) askForNews(c *raw, i int) {
	const wait = 700 * time.Millisecond
	known, err := c.run("admin", bson.D{{Key: "hello", Value: 1}})
	for err == nil {
		asked := time.Now()
		var next bson.Raw
		if next, err = c.run("admin", await(version(known), int(wait/time.Millisecond))); err != nil {
			return
		}
		was, is := counter(known), counter(next)
		switch {
		case is < was:
			w.accuse(truthful, "member %d: topologyVersion went from %d to %d", i, was, is)
		case is == was && time.Since(asked) < wait:
			w.accuse(truthful, "member %d: an answer without news after %v", i, time.Since(asked))
		case is == was && !sameStanding(known, next):
			w.accuse(truthful, "member %d: another standing in the same topologyVersion: %v, %v", i, known, next)
		}
		w.checkHello(i, next)
		known = next
	}
}

func counter(hello bson.Raw) int64 {
	n, _ := hello.Lookup("topologyVersion", "counter").AsInt64OK()
	return n
}

// sameStanding compares what a change of must change the topologyVersion.
func sameStanding(a, b bson.Raw) bool {
	for _, key := range []string{"isWritablePrimary", "secondary", "primary", "electionId", "setVersion", "me", "arbiterOnly", "hosts", "tags"} {
		if x, y := a.Lookup(key), b.Lookup(key); x.Type != y.Type || string(x.Value) != string(y.Value) {
			return false
		}
	}
	return true
}

// checkHello holds one answer to the rules of the discovery specification and to what a real member says.
func (w *world) checkHello(i int, h bson.Raw) {
	is := func(key string) bool { b, _ := h.Lookup(key).BooleanOK(); return b }
	me, _ := h.Lookup("me").StringValueOK()
	primary, known := h.Lookup("primary").StringValueOK()
	_, elected := h.Lookup("electionId").ObjectIDOK()
	switch {
	case is("isreplicaset"): // it was removed, and knows of nobody any more
		if is("isWritablePrimary") || is("secondary") || known {
			w.accuse(truthful, "member %d, which is in no set, claims a place in it: %v", i, h)
		}
	case me != w.set.Member(i).Addr():
		w.accuse(truthful, "member %d calls itself %q", i, me)
	case is("isWritablePrimary") && (is("secondary") || !elected || primary != me):
		w.accuse(truthful, "member %d is a primary and something else: %v", i, h)
	case elected && primary != me:
		w.accuse(truthful, "member %d tells an election that it did not win: %v", i, h)
	case known && primary == me && !elected:
		w.accuse(truthful, "member %d calls itself primary without an election: %v", i, h)
	case is("arbiterOnly") && (is("secondary") || !h.Lookup("operationTime").IsZero()):
		w.accuse(truthful, "member %d, an arbiter, claims data: %v", i, h)
	}
}
