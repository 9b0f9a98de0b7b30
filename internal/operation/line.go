package operation

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/pool"
)

// Line is a connection through a load balancer that outlives one operation: what begins at a service must go on there, and
// only this connection is sure to lead to it (load balancers specification, "connection pinning"). A Line belongs to one
// goroutine at a time. Who held it gives it back with Release.
type Line struct {
	server *cluster.Server
	conn   *pool.Conn
	held   bool
}

// lineOf is the line of an attempt, nil where any connection to the member will do.
func lineOf(s *cluster.Server, pc *pool.Conn) *Line {
	if pc.Service() == nil {
		return nil
	}
	return &Line{server: s, conn: pc}
}

// Hold keeps the connection after the operation, for a cursor. It is for Op.Decode.
func (l *Line) Hold() {
	if l != nil && !l.held {
		l.held = true
		l.conn.Hold(pool.ByCursor)
	}
}

// leave ends an attempt: a connection that nobody keeps goes back.
func (l *Line) leave(pc *pool.Conn) {
	if l != nil && l.held {
		pc.Rest()
		return
	}
	pc.CheckIn()
}

// Usable says whether the connection can carry a further command. The reply to a call that was given up is waited for first,
// for a second at most and half of the time that ctx leaves. One that does not come breaks the connection.
func (l *Line) Usable(ctx context.Context) bool {
	if l.conn.Owes() && !l.conn.Broken() {
		wait := lineDrain
		if end, limited := ctx.Deadline(); limited {
			wait = min(wait, time.Until(end)/2)
		}
		_ = l.conn.Drain(time.Now().Add(wait)) // or it is broken
	}
	return !l.conn.Broken()
}

// lineDrain is how long a late reply is waited for at most.
const lineDrain = time.Second

// Release gives the connection back. A broken one is closed. Nil, and a second call, do nothing.
func (l *Line) Release() {
	if l != nil && l.held {
		l.held = false
		l.conn.CheckIn()
	}
}
