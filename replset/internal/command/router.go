package command

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// Router makes a member a service behind a load balancer, which clients take for a mongos: it has no place in the set and no
// data, and has the primary run what it is asked. Its cursors are its own: no other service knows them, and they end with the
// connection that opened them. Unlike a mongos it sends reads to the primary, whatever the read preference, and retries nothing.
type Router struct {
	ID      bson.ObjectID                     // its serviceId
	Primary func(ctx context.Context) *Member // waits a while for one; nil: there is none

	mu      sync.Mutex               // guards cursors
	cursors map[int64]*routersCursor // the open ones
}

type routersCursor struct {
	at   *Member
	over *Conn
}

// run runs the request, at a router wherever that has it run.
func (c *Conn) run(r *Request) reply {
	if r.invalid != nil {
		return refuse(r.invalid)
	}
	if c.m.opt.Router == nil {
		return c.serving(r).run(r)
	}
	return c.m.route(r)
}

// route runs a command at the primary; what is about the connection, and the fail points, at the router itself.
func (m *Member) route(r *Request) reply {
	spec := m.table[r.Name]
	if spec != nil && spec.Flags&BeforeAuth != 0 || r.Name == "configureFailPoint" {
		return m.run(r)
	}
	m.opt.Counters.add(r.Conn.App, r.Name)
	hit := m.failPoints.match(r)
	if hit != nil {
		if stop, rep := hit.before(r); stop {
			return rep
		}
	}
	rep := m.opt.Router.forward(r)
	if hit != nil {
		hit.after(&rep)
	}
	return rep
}

// forward has a member run the request, and takes note of the cursors that come and go.
func (o *Router) forward(r *Request) reply {
	at, known := o.cursorOf(r)
	switch {
	case !known && r.Name == "getMore":
		id, _ := r.Field("getMore").Int64OK()
		return refuse(mongoerr.Server(mongoerr.CodeCursorNotFound, "cursor id %d not found", id))
	case !known && r.Name == "killCursors":
		return o.killNothing(r)
	case at == nil:
		at = o.Primary(r.ctx)
	}
	if at == nil {
		return refuse(mongoerr.Server(mongoerr.CodeFailedToSatisfyReadPreference, "Could not find host matching read preference { mode: \"primary\" }"))
	}
	rep := at.runFor(r)
	o.note(r, at, &rep)
	return rep
}

// runFor runs the request of a router's client. A member that dies meanwhile cannot be reached, whatever it has to say.
func (m *Member) runFor(r *Request) reply {
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	stop := context.AfterFunc(m.ctx, func() { cancel(errShutdown) })
	defer stop()
	r.ctx, r.served = ctx, m
	rep := m.run(r)
	if m.crashed.Load() {
		return refuse(mongoerr.Server(mongoerr.CodeHostUnreachable, "the primary %s cannot be reached", m.opt.Host))
	}
	return rep
}

// cursorOf is where the cursor is that the request is about: of several, the first. known is false if it is none of this
// router's, or the request is about no cursor.
func (o *Router) cursorOf(r *Request) (at *Member, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range cursorsIn(r) {
		if c := o.cursors[id]; c != nil {
			return c.at, true
		}
	}
	return nil, false
}

func cursorsIn(r *Request) (ids []int64) {
	if id, ok := r.Field("getMore").Int64OK(); ok && r.Name == "getMore" {
		return []int64{id}
	}
	if list, ok := r.Field("cursors").ArrayOK(); ok && r.Name == "killCursors" {
		for _, v := range list.All() {
			if id, ok := v.Int64OK(); ok {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// killNothing answers a killCursors of cursors that are not here.
func (o *Router) killNothing(r *Request) reply {
	missing, none := bson.A{}, bson.A{}
	for _, id := range cursorsIn(r) {
		missing = append(missing, id)
	}
	return reply{doc: bson.D{{Key: "cursorsKilled", Value: none}, {Key: "cursorsNotFound", Value: missing},
		{Key: "cursorsAlive", Value: none}, {Key: "cursorsUnknown", Value: none}}}
}

// note takes note of what a reply says of cursors.
func (o *Router) note(r *Request, at *Member, rep *reply) {
	about := cursorsIn(r)
	var open int64
	if v, ok := rep.doc.Get("cursor"); ok && rep.err == nil {
		if d, ok := v.(bson.D); ok {
			v, _ := d.Get("id")
			open, _ = v.(int64)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if rep.err == nil {
		for _, id := range about {
			if id != open {
				delete(o.cursors, id)
			}
		}
	}
	if open != 0 && len(about) == 0 {
		if o.cursors == nil {
			o.cursors = map[int64]*routersCursor{}
		}
		o.cursors[open] = &routersCursor{at: at, over: r.Conn}
	}
}

// reap closes the cursors of a connection that has ended (load balancers specification, "downstream visible behavioral
// changes").
func (o *Router) reap(c *Conn) {
	if o == nil {
		return
	}
	o.mu.Lock()
	left := map[int64]*Member{}
	for id, k := range o.cursors {
		if k.over == c {
			left[id] = k.at
			delete(o.cursors, id)
		}
	}
	o.mu.Unlock()
	for id, at := range left {
		at.cursors.kill(id, "")
	}
}

// ServiceID is the name of a router.
func (m *Member) ServiceID() bson.ObjectID { return m.opt.Router.ID }

// OpenCursors is how many cursors are open at a router.
func (m *Member) OpenCursors() int {
	o := m.opt.Router
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.cursors)
}

// Disconnect closes the connections of all clients.
func (m *Member) Disconnect() {
	m.mu.Lock()
	all := slices.Collect(maps.Keys(m.conns))
	m.mu.Unlock()
	for _, c := range all {
		c.end(true)
	}
}

// helloOfRouter answers as a mongos behind a load balancer does. A client that does not know of the balancer is refused, as
// servers do: it would take the services for one.
func (m *Member) helloOfRouter(r *Request) (bson.D, error) {
	if balanced, _ := r.Field("loadBalanced").BooleanOK(); balanced {
		r.Conn.balanced = true
	} else if !r.Conn.balanced {
		return nil, mongoerr.Server(354,
			"The server is being accessed through a load balancer, but this driver does not have load balancing enabled")
	}
	d := bson.D{
		{Key: writableField(r.Name != "hello"), Value: true}, {Key: "msg", Value: "isdbgrid"},
		{Key: "topologyVersion", Value: r.told.topologyVersion()},
		{Key: "maxBsonObjectSize", Value: int32(maxDocument)}, {Key: "maxMessageSizeBytes", Value: int32(wire.MaxMessage)},
		{Key: "maxWriteBatchSize", Value: int32(maxBatch)}, {Key: "localTime", Value: time.Now()},
		{Key: "logicalSessionTimeoutMinutes", Value: int32(sessionMinutes)}, {Key: "connectionId", Value: r.Conn.ID},
		{Key: "minWireVersion", Value: int32(minWireVersion)}, {Key: "maxWireVersion", Value: m.opt.Persona.wire},
	}
	if ok, _ := r.Field("helloOk").BooleanOK(); ok {
		d = append(d, bson.E{Key: "helloOk", Value: true})
	}
	if balanced, _ := r.Field("loadBalanced").BooleanOK(); balanced {
		d = append(d, bson.E{Key: "serviceId", Value: m.opt.Router.ID})
	}
	d = append(d, m.compressionFields(r)...)
	return append(d, m.authFields(r)...), nil
}
