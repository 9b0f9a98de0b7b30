package cluster

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/pool"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/mongoerr"
)

// Server is a member with its pool and its monitor.
type Server struct {
	c       *Cluster
	addr    string
	pool    *pool.Pool
	monitor *monitor

	operations atomic.Int64 // that have selected the member and are not done
}

// newServer makes a member's server. Nothing runs yet.
func (c *Cluster) newServer(addr string) *Server {
	s := &Server{c: c, addr: addr}
	s.pool = pool.New(addr, pool.Options{
		Max: *c.cfg.MaxPoolSize, Min: c.cfg.MinPoolSize, MaxConnecting: c.cfg.MaxConnecting,
		MaxIdle: c.cfg.MaxIdleTime, WaitTimeout: c.cfg.WaitTimeout,
		Open: s.open, Inspect: s.inspect, Probe: probe, Failed: s.notOpened, RTT: s.rtt, Publish: c.publisher.poolFunc(), Listening: c.publisher.pools,
	})
	s.monitor = newMonitor(c, addr)
	return s
}

// Address is the member's address as the topology names it.
func (s *Server) Address() string { return s.addr }

// Load is the number of operations of this client at the member: from their selection on (server selection,
// "operationCount"), whether they have a connection yet or not.
func (s *Server) Load() int { return max(int(s.operations.Load()), s.pool.Load()) }

// Done ends what SelectFor began: the operation's attempt at this member is over.
func (s *Server) Done() { s.operations.Add(-1) }

// CheckOut hands out a connection to the member, for an operation that selected it with w. The error is a
// *mongoerr.Error; after Close of the client it wraps mongoerr.ErrClientClosed. Who waits for a connection while the
// member ceases to be what was wanted, and another member is, waits no longer: the error wraps mongoerr.ErrPoolCleared,
// and the operation may select again.
func (s *Server) CheckOut(ctx context.Context, w topology.Want) (*pool.Conn, error) {
	pc, err := s.pool.CheckOutWatching(ctx, func() (<-chan struct{}, bool) {
		v := s.c.view.Load()
		return v.changed, v.superseded(s, w)
	})
	if err != nil && s.c.closed.Load() && errors.Is(err, mongoerr.ErrPoolClosed) {
		return nil, closedError()
	}
	return pc, err
}

// superseded says whether a member that was selected for w has become unsuitable while others are not. What asked for
// this very member stays.
func (v *view) superseded(s *Server, w topology.Want) bool {
	return w.Address == "" && v.servers[s.addr] == s && !v.desc.Suits(w, s.addr) && len(v.desc.Candidates(w, time.Time{})) > 0
}

// ReportError tells the cluster that a command failed on a connection: that the connection broke, or that the member
// is not what it was taken for. When it returns, the view that follows from the error can be seen.
func (s *Server) ReportError(err error, pc *pool.Conn) {
	s.c.report(topology.AppError{Addr: s.addr, Err: err, Generation: pc.Generation(), MaxWire: pc.Info.MaxWire, ServiceID: pc.Service()})
}

func (s *Server) notOpened(err error, generation uint64, service *bson.ObjectID) {
	s.c.report(topology.AppError{Addr: s.addr, Err: err, Generation: generation, BeforeHandshake: true, ServiceID: service})
}

// rtt is the member's average round trip, 0 if it is not known.
func (s *Server) rtt() time.Duration {
	if d := s.c.Description().Server(s.addr); d != nil {
		return max(d.RTT, 0)
	}
	return 0
}

func (s *Server) open(ctx context.Context, greeted func(bson.ObjectID)) (*conn.Conn, error) {
	o := &s.c.cfg.Conn
	if o.LoadBalanced {
		mine := *o
		mine.Greeted = greeted
		o = &mine
	}
	sock, err := conn.Open(ctx, s.addr, o)
	if err != nil {
		return nil, err
	}
	s.heard(sock)
	return sock, nil
}

// heard tells what the hello of a new connection is news of (server monitoring, "clients update the topology from each
// handshake"): that connections to the member succeed again, or that its state has changed since its monitor last heard of it.
// A member that no monitor has heard of stays for its monitor, since its heartbeat must be told before its pool is ready (SDAM
// prose tests, "connection pool management"); so does one that may have begun anew, since of words of two processes none is
// known to be the newer one.
func (s *Server) heard(sock *conn.Conn) {
	d := s.c.Description().Server(s.addr)
	if d == nil || d.PoolErr == nil && (!d.Kind.Known() || !d.TopologyVersion.Set) {
		return
	}
	now, err := topology.ParseHello(s.addr, sock.Hello(), -1, time.Now())
	if err == nil && (d.PoolErr != nil || d.TopologyVersion.Before(now.TopologyVersion)) {
		s.c.report(topology.HelloReply{Server: now, FromPool: true})
	}
}

// inspect reads what operations need to know from the connection's own hello.
func (s *Server) inspect(sock *conn.Conn) pool.Info {
	maxBSON, maxMessage, maxBatch, maxWire := sock.Limits()
	info := pool.Info{MaxWire: maxWire, MaxBSON: maxBSON, MaxMessage: maxMessage, MaxBatch: maxBatch}
	if d, err := topology.ParseHello(s.addr, sock.Hello(), -1, time.Now()); err == nil {
		info.Kind = d.Kind
		info.SessionTimeout = time.Duration(max(d.SessionTimeoutMinutes, 0)) * time.Minute
	}
	if s.c.cfg.Topology.LoadBalanced {
		info.Kind, info.SessionTimeout = event.LoadBalancer, forEver
	}
	return info
}

// clear does what a failure asks for.
func (s *Server) clear(e topology.ClearPool) {
	if e.ServiceID != nil {
		s.pool.ClearService(*e.ServiceID, e.Err)
		return
	}
	s.pool.Clear(e.Err, e.Interrupt)
}

// forEver is the session timeout behind a load balancer: there are always sessions, and what hello says of their time counts
// for one service alone (load balancers specification, "session expiration").
const forEver = 100 * 365 * 24 * time.Hour

// retire ends the monitor and the pool of a member that left. Operations on it may end by themselves.
func (s *Server) retire() {
	s.monitor.cancel()
	s.c.closers.Go(func() {
		ctx, cancel := context.WithTimeout(s.c.ctx, closeGrace)
		defer cancel()
		s.pool.Close(ctx)
	})
}

func closedError() error {
	return mongoerr.Wrap(mongoerr.StageSelection, mongoerr.ErrClientClosed, "")
}
