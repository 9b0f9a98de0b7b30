package replset

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sextantdb/sextant/replset/internal/command"
)

// Set is a running replica set.
type Set struct {
	opt     Options
	cfg     *command.Config
	users   *command.Users
	secret  string
	members []*Member

	mu     sync.Mutex // guards closed
	closed bool
}

// Start starts a set and waits until it has a primary that takes writes and every member knows it. ctx bounds the
// start alone; end the set with Close.
func Start(ctx context.Context, o Options) (*Set, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	s := &Set{opt: o, secret: rand.Text()}
	if len(o.Users) > 0 {
		var err error
		if s.users, err = newUsers(o.Users); err != nil {
			return nil, err
		}
	}
	disks, err := o.disks()
	if err != nil {
		return nil, err
	}
	before, err := o.before(disks)
	if err != nil {
		closeDisks(disks)
		return nil, err
	}
	listeners, hosts, err := s.listen(ctx, before)
	if err != nil {
		closeDisks(disks)
		return nil, err
	}
	if s.cfg, err = o.resume(before, hosts, disks); err != nil {
		closeAll(listeners)
		closeDisks(disks)
		return nil, err
	}
	for i, host := range hosts {
		s.members = append(s.members, &Member{set: s, index: i, addr: host, disk: disks[i],
			faults: new(command.Faults), counters: new(command.Counters)})
	}
	for i, m := range s.members {
		m.put(s.open(i, listeners[i]))
	}
	if err := s.firstElection(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func newUsers(list []User) (*command.Users, error) {
	users := make([]command.User, len(list))
	seen := map[User]bool{}
	for i, u := range list {
		if u.Password == "" {
			return nil, fmt.Errorf("replset: the user %q needs a password", u.Name)
		}
		who := User{Name: u.Name, DB: cmp.Or(u.DB, "admin")}
		if seen[who] {
			return nil, fmt.Errorf("replset: the user %q of %s is given twice", who.Name, who.DB)
		}
		seen[who] = true
		users[i] = command.User(u)
	}
	out, err := command.NewUsers(users...)
	if err != nil {
		return nil, fmt.Errorf("replset: %w", err)
	}
	return out, nil
}

// listen opens all ports before any member starts: the configuration needs the addresses.
func (s *Set) listen(ctx context.Context, before *command.Config) (listeners []net.Listener, hosts []string, err error) {
	for i := range s.opt.Members {
		m := s.opt.member(i)
		name := strings.ToLower(m.Name)
		at := s.opt.Host
		if _, real := s.opt.Network.(tcp); !real && name != "" {
			at = name // a network of names
		}
		l, err := s.listenAt(ctx, at, m.Port, before, i)
		if err != nil {
			closeAll(listeners)
			return nil, nil, fmt.Errorf("replset: member %d cannot listen: %w", i, err)
		}
		listeners = append(listeners, l)
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			closeAll(listeners)
			return nil, nil, fmt.Errorf("replset: member %d listens at %s, which is no host:port: %w", i, l.Addr(), err)
		}
		if name == "" {
			name = s.opt.Host
		}
		hosts = append(hosts, net.JoinHostPort(name, port))
	}
	return listeners, hosts, nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}

// open starts member i on its listener.
func (s *Set) open(i int, l net.Listener) *command.Member {
	m := s.members[i]
	o := command.Options{Config: s.cfg, Self: i, Disk: m.data(), Listener: l, Logger: s.opt.Logger, Secret: s.secret,
		Users: s.users, Faults: m.faults, Counters: m.counters,
		Dial:   func(ctx context.Context, addr string) (net.Conn, error) { return s.opt.Network.Dial(ctx, "tcp", addr) },
		DiskOf: func(j int) *command.Disk { return s.members[j].data() },
	}
	s.misbehave(i, &o)
	return command.Open(o)
}

// misbehave applies the set's fault. Its victim is member 1: the first that is a secondary when priorities are equal.
func (s *Set) misbehave(i int, o *command.Options) {
	const victim = 1
	last := len(s.members) - 1
	switch s.opt.Fault {
	case LostWrite:
		o.Misbehave = command.LostWrite
	case StaleTag:
		if i == victim {
			other := last
			if other == victim {
				other = 0
			}
			o.Misbehave, o.StaleTags = command.StaleTag, s.cfg.Members[other].Tags
		}
	case WrongMember:
		if i == victim {
			other := last
			for other == victim || s.cfg.Members[other].Arbiter {
				other--
			}
			o.Detour = s.members[other].current
		}
	}
}

// firstElection has the electable member with the newest data stand at once, of several the one of the highest
// priority, and waits until all members agree.
func (s *Set) firstElection(ctx context.Context) error {
	best := -1
	for i, m := range s.cfg.Members {
		if !m.Electable() {
			continue
		}
		if best < 0 {
			best = i
		}
		mine, other := s.members[i].data().Applied(), s.members[best].data().Applied()
		if other.Less(mine) || mine == other && m.Priority > s.cfg.Members[best].Priority {
			best = i
		}
	}
	var tried time.Time
	err := s.until(ctx, "the set has no primary", func() bool {
		if p := s.Primary(); p != nil {
			return s.settled(p)
		}
		if time.Since(tried) > s.opt.ElectionTimeout {
			tried = time.Now()
			if r := s.members[best].current(); r != nil {
				_ = r.StandForElection(ctx, true)
			}
		}
		return false
	})
	if err == nil {
		return nil
	}
	if r := s.members[best].current(); r != nil {
		if why := r.Unreachable(); why != "" {
			return fmt.Errorf("%w; member %d cannot reach %s", err, best, why)
		}
	}
	return err
}

// settled reports whether every running member follows p and has data.
func (s *Set) settled(p *Member) bool {
	for _, m := range s.members {
		r := m.current()
		if r != nil && m != p && !r.Follows(p.index) {
			return false
		}
	}
	return true
}

// until waits for cond.
func (s *Set) until(ctx context.Context, what string, cond func() bool) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if s.isClosed() {
			return fmt.Errorf("replset: %s: the set is closed", what)
		}
		if cond() {
			return nil
		}
		timer.Reset(time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("replset: %s: %w", what, context.Cause(ctx))
		}
	}
}

func (s *Set) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Close ends all members and waits for everything they started. Closing twice is harmless.
func (s *Set) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, m := range s.members {
		m.faults.Hang(false)
		if r := m.current(); r != nil {
			wg.Go(r.Close)
		}
	}
	wg.Wait()
	return nil
}

// URI is the connection string of the set: its visible members and its name, without credentials.
func (s *Set) URI() string {
	var hosts []string
	for _, m := range s.cfg.Members {
		if !m.Hidden && !m.Arbiter {
			hosts = append(hosts, m.Host)
		}
	}
	return "mongodb://" + strings.Join(hosts, ",") + "/?replicaSet=" + strings.ReplaceAll(url.QueryEscape(s.opt.SetName), "+", "%20")
}

// Members are all members, in the order of the configuration.
func (s *Set) Members() []*Member { return append([]*Member(nil), s.members...) }

// Member is member i, from 0. It panics if there is none, as an index out of range does.
func (s *Set) Member(i int) *Member { return s.members[i] }

// Primary is the member that takes writes, nil if there is none at the moment. Of two that think so, which a
// partition can bring about for a while, it is the one of the later term.
func (s *Set) Primary() *Member {
	var best *Member
	var bestTerm int64
	for _, m := range s.members {
		r := m.current()
		if r == nil {
			continue
		}
		if term, ok := r.WritablePrimary(); ok && (best == nil || term > bestTerm) {
			best, bestTerm = m, term
		}
	}
	return best
}

// WaitPrimary waits until there is a primary.
func (s *Set) WaitPrimary(ctx context.Context) (*Member, error) {
	var p *Member
	err := s.until(ctx, "waiting for a primary", func() bool { p = s.Primary(); return p != nil })
	return p, err
}

// AwaitReplication waits until every running member that holds data and is not delayed has all that the primary has.
func (s *Set) AwaitReplication(ctx context.Context) error {
	return s.until(ctx, "waiting for replication", func() bool {
		p := s.Primary()
		if p == nil {
			return false
		}
		lead := p.current()
		if lead == nil {
			return false
		}
		for i, m := range s.members {
			if r := m.current(); r != nil && m != p && !s.cfg.Members[i].Arbiter && s.cfg.Members[i].Delay == 0 && !r.HasAllOf(lead) {
				return false
			}
		}
		return true
	})
}
