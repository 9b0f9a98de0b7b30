package replset

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/command"
)

// LoadBalancerOptions describe a load balancer before a set.
type LoadBalancerOptions struct {
	Services int    // behind it, 1 to 16; 2 if 0
	Name     string // the host it is to be reached by, which must resolve to Options.Host (or be a name of Network); Options.Host if empty
	Port     int    // 0: any free one
}

// LoadBalancer stands before a set: it gives each connection to one of several services in turn, which clients take for
// mongos and which have the primary do the work. A service names itself in hello (serviceId) to clients that say
// loadBalanced: true, and refuses others. Its cursors are unknown to the other services, and end with the connection that
// opened them. Reads go to the primary whatever the read preference. There is no health check: a service that was
// disconnected goes on.
type LoadBalancer struct {
	set      *Set
	addr     string
	door     net.Listener
	services []*command.Member
	entries  []*entry
	counters []*command.Counters
	ended    sync.WaitGroup // of the goroutine that accepts

	mu    sync.Mutex // guards what follows
	route []int      // the services that new connections go to
	next  int
}

// complete fills in what was left open and refuses what cannot be.
func (o LoadBalancerOptions) complete(persona *command.Persona) (*LoadBalancerOptions, error) {
	if o.Services == 0 {
		o.Services = 2
	}
	if o.Services < 1 || o.Services > 16 {
		return nil, fmt.Errorf("replset: 1 to 16 services behind a load balancer, not %d", o.Services)
	}
	if !persona.Balances() {
		return nil, fmt.Errorf("replset: version %s does not know load balancers: 5.0 is the first that does", persona.Version)
	}
	return &o, nil
}

// routerWait is how long a service waits for a primary, as a mongos does.
const routerWait = 15 * time.Second

// noMember is the number that a service has in logs, from which the first counts up: none of a member's.
const noMember = 1000

// balance starts the load balancer.
func (s *Set) balance(ctx context.Context) error {
	o := *s.opt.LoadBalancer
	name, at := strings.ToLower(o.Name), s.opt.Host
	if name == "" {
		name = at
	} else if _, real := s.opt.Network.(tcp); !real {
		at = name
	}
	door, err := s.opt.Network.Listen(ctx, net.JoinHostPort(at, strconv.Itoa(o.Port)))
	if err != nil {
		return fmt.Errorf("replset: the load balancer cannot listen: %w", err)
	}
	_, port, _ := net.SplitHostPort(door.Addr().String())
	l := &LoadBalancer{set: s, addr: net.JoinHostPort(name, port), door: door}
	if err := s.tls.certify(noMember, name, Certificate{}); err != nil {
		_ = door.Close()
		return fmt.Errorf("replset: certificate of the load balancer: %w", err)
	}
	for i := range o.Services {
		l.addService(i)
	}
	s.balancer = l
	l.ended.Go(l.accept)
	return nil
}

func (l *LoadBalancer) addService(i int) {
	s := l.set
	e := &entry{addr: l.door.Addr(), conns: make(chan net.Conn), closed: make(chan struct{})}
	counters := new(command.Counters)
	o := command.Options{Config: s.opt.unconfigured(), Self: noMember + i, Host: fmt.Sprintf("service %d of %s", i, l.addr), Disk: command.NewDisk(),
		Listener: e, Logger: s.opt.Logger, Secret: s.secret, Users: s.users, OIDC: s.opt.OIDC.internally(), Faults: new(command.Faults), Counters: counters,
		Compressors: s.opt.Compressors, Router: &command.Router{ID: bson.NewObjectID(), Primary: s.primaryFor},
		Dial: func(context.Context, string) (net.Conn, error) { return nil, errors.New("a service dials nobody") },
	}
	o.Persona, _ = command.PersonaOf(s.opt.Version)
	if s.tls != nil {
		o.TLS = func() *tls.Config { return s.tls.server(noMember) }
	}
	l.services = append(l.services, command.Open(o))
	l.entries, l.counters, l.route = append(l.entries, e), append(l.counters, counters), append(l.route, i)
}

// primaryFor is the member that runs what a service is asked; nil if none comes in time.
func (s *Set) primaryFor(ctx context.Context) *command.Member {
	ctx, cancel := context.WithTimeout(ctx, routerWait)
	defer cancel()
	p, err := s.WaitPrimary(ctx)
	if err != nil {
		return nil
	}
	return p.current()
}

// accept hands out connections until the door is closed.
func (l *LoadBalancer) accept() {
	for {
		nc, err := l.door.Accept()
		switch {
		case err == nil:
			l.pick().give(nc)
		case errors.Is(err, net.ErrClosed) || l.set.isClosed():
			return
		default:
			l.set.opt.Logger.Warn("accept failed", "loadBalancer", l.addr, "error", err)
			time.Sleep(10 * time.Millisecond) // such as too many open files: do not spin
		}
	}
}

// pick is whose turn it is.
func (l *LoadBalancer) pick() *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[l.route[l.next%len(l.route)]]
	l.next++
	return e
}

// close ends the balancer and its services, and waits for all they started.
func (l *LoadBalancer) close() {
	_ = l.door.Close()
	for _, m := range l.services {
		m.Close()
	}
	l.ended.Wait()
}

// LoadBalancer is the load balancer of Options.LoadBalancer, nil if there is none.
func (s *Set) LoadBalancer() *LoadBalancer { return s.balancer }

// Addr is where the balancer listens, "127.0.0.1:41234".
func (l *LoadBalancer) Addr() string { return l.addr }

// URI is the connection string for clients that go through the balancer, without credentials. With TLS and no TLS.Dir, the
// client needs TLSConfig besides.
func (l *LoadBalancer) URI() string {
	return "mongodb://" + l.addr + "/?loadBalanced=true" + l.set.tls.options()
}

// ServiceIDs are the ids by which the services name themselves in hello.
func (l *LoadBalancer) ServiceIDs() []bson.ObjectID {
	out := make([]bson.ObjectID, len(l.services))
	for i, m := range l.services {
		out[i] = m.ServiceID()
	}
	return out
}

// Route has new connections go to these services alone, in turn from the first; none: to all.
func (l *LoadBalancer) Route(services ...int) error {
	for _, i := range services {
		if err := l.check(i); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.route, l.next = append([]int(nil), services...), 0
	for i := range l.services {
		if len(services) == 0 {
			l.route = append(l.route, i)
		}
	}
	return nil
}

// FailCommand makes commands fail at a service, or at every service if that is All, before the primary hears of them. nil
// ends it. Set.FailCommand concerns what services ask the primary for, too.
func (l *LoadBalancer) FailCommand(service int, f *FailCommand) error {
	if service != All {
		if err := l.check(service); err != nil {
			return err
		}
	}
	if f != nil && len(f.Commands) == 0 {
		return errors.New("replset: FailCommand names no command")
	}
	for i, m := range l.services {
		if service == All || service == i {
			m.SetFailCommand(f.point())
		}
	}
	return nil
}

// Disconnect cuts all connections that lead to a service, as if it were restarted.
func (l *LoadBalancer) Disconnect(service int) error {
	if err := l.check(service); err != nil {
		return err
	}
	l.services[service].Disconnect()
	return nil
}

// OpenCursors is how many cursors are open at a service.
func (l *LoadBalancer) OpenCursors(service int) int { return l.services[service].OpenCursors() }

// OpCounters counts the commands that a client application has sent to a service, by name, but for those of handshakes.
func (l *LoadBalancer) OpCounters(service int, appName string) map[string]int64 {
	return l.counters[service].Of(appName)
}

func (l *LoadBalancer) check(i int) error {
	if i < 0 || i >= len(l.services) {
		return fmt.Errorf("replset: there is no service %d behind the load balancer, which has %d", i, len(l.services))
	}
	return nil
}

// entry is the listener of a service: what the balancer gives it.
type entry struct {
	addr   net.Addr
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

// give hands a connection over, or closes it if the service has ended.
func (e *entry) give(nc net.Conn) {
	select {
	case e.conns <- nc:
	case <-e.closed:
		_ = nc.Close()
	}
}

func (e *entry) Accept() (net.Conn, error) {
	select {
	case nc := <-e.conns:
		return nc, nil
	case <-e.closed:
		return nil, net.ErrClosed
	}
}

func (e *entry) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}

func (e *entry) Addr() net.Addr { return e.addr }
