package replset

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sextantdb/sextant/replset/internal/command"
)

// Set is a running replica set.
type Set struct {
	opt      Options
	users    *command.Users
	secret   string
	tls      *identities   // nil: no TLS
	changing chan struct{} // holds one word; who has it may change the configuration
	balancer *LoadBalancer // nil: none

	mu      sync.Mutex // guards all below
	closed  bool
	members []*Member       // the last may go again: see AddMember
	cfg     *command.Config // the newest that was seen in force
}

// Start starts a set and waits until it has a primary that takes writes and every member knows it. ctx bounds the
// start alone; end the set with Close.
func Start(ctx context.Context, o Options) (*Set, error) {
	open := o.Members == 0 && len(o.Config) == 0
	if err := o.defaults(); err != nil {
		return nil, err
	}
	s := &Set{opt: o, secret: rand.Text(), changing: make(chan struct{}, 1)}
	if len(o.Users) > 0 || o.OIDC != nil {
		var err error
		if s.users, err = newUsers(o.Users); err != nil {
			return nil, err
		}
	}
	if o.TLS != nil {
		var err error
		if s.tls, err = newIdentities(*o.TLS); err != nil {
			return nil, fmt.Errorf("replset: TLS: %w", err)
		}
	}
	if err := s.found(ctx, open); err != nil {
		return nil, err
	}
	err := s.firstElection(ctx)
	if err == nil && o.LoadBalancer != nil {
		err = s.balance(ctx)
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// found makes the members, each on its disk and at its address, and starts those that are in the configuration.
func (s *Set) found(ctx context.Context, anyNumber bool) error {
	f, err := s.opt.openFolders(anyNumber)
	if err != nil {
		return err
	}
	listeners, err := s.listen(ctx, f)
	if err != nil {
		f.close()
		return err
	}
	cfg, err := s.opt.resume(f)
	if err != nil {
		closeAll(listeners)
		f.close()
		return err
	}
	for i, p := range f.places {
		if p.Host == "" {
			continue
		}
		if err := s.tls.certify(i, hostOf(p.Host), Certificate{}); err != nil {
			closeAll(listeners)
			f.close()
			return fmt.Errorf("replset: certificate of member %d: %w", i, err)
		}
	}
	s.cfg = cfg
	for i, p := range f.places {
		m := &Member{set: s, index: i, addr: p.Host, place: p, disk: f.disks[i], faults: new(command.Faults), counters: new(command.Counters)}
		s.members = append(s.members, m)
	}
	for i, l := range listeners {
		if l != nil {
			s.members[i].put(s.open(s.members[i], l))
			continue
		}
		_ = f.disks[i].Close(true) // it was removed: Restart opens it again
	}
	return nil
}

func newUsers(list []User) (*command.Users, error) {
	users := make([]command.User, len(list))
	seen := map[string]bool{}
	for i, u := range list {
		if u.Password == "" && u.DB != external {
			return nil, fmt.Errorf("replset: the user %q needs a password", u.Name)
		}
		db := cmp.Or(u.DB, "admin")
		if id := db + "." + u.Name; seen[id] {
			return nil, fmt.Errorf("replset: the user %q of %s is given twice", u.Name, db)
		}
		seen[db+"."+u.Name] = true
		users[i] = command.User(u)
	}
	out, err := command.NewUsers(users...)
	if err != nil {
		return nil, fmt.Errorf("replset: %w", err)
	}
	return out, nil
}

// listen opens the ports of all members that are in the configuration before any starts: a new configuration needs the
// addresses. It puts them into the places.
func (s *Set) listen(ctx context.Context, f *folders) ([]net.Listener, error) {
	listeners := make([]net.Listener, len(f.places))
	var had []string
	for _, p := range f.places {
		had = append(had, p.Host)
	}
	for i := range f.places {
		if f.before != nil && f.before.At(f.places[i].Host) == nil {
			continue // it has been removed
		}
		l, host, err := s.listenFor(ctx, f.places[i], i, had)
		if err != nil {
			closeAll(listeners)
			return nil, err
		}
		listeners[i], f.now[i] = l, host
	}
	return listeners, nil
}

// listenFor listens where member i is to be, and returns the address to advertise. others are the addresses of the others.
func (s *Set) listenFor(ctx context.Context, p command.Place, i int, others []string) (net.Listener, string, error) {
	name, at := p.Name, s.opt.Host
	if _, real := s.opt.Network.(tcp); !real && name != "" {
		at = name // a network of names
	}
	l, err := s.listenAt(ctx, at, p, i, others)
	if err != nil {
		return nil, "", fmt.Errorf("replset: member %d cannot listen: %w", i, err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		_ = l.Close()
		return nil, "", fmt.Errorf("replset: member %d listens at %s, which is no host:port: %w", i, l.Addr(), err)
	}
	return l, net.JoinHostPort(cmp.Or(name, s.opt.Host), port), nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		if l != nil {
			_ = l.Close()
		}
	}
}

// open starts a member on its listener, with the configuration on its disk or, if there is none, with none.
func (s *Set) open(m *Member, l net.Listener) *command.Member {
	o := command.Options{Config: s.opt.unconfigured(), Self: m.index, Host: m.addr, IndexOf: s.indexOf, Disk: m.data(), Listener: l, Logger: s.opt.Logger,
		Secret: s.secret, Users: s.users, OIDC: s.opt.OIDC.internally(), Faults: m.faults, Counters: m.counters, Compressors: s.opt.Compressors,
		Dial: func(ctx context.Context, addr string) (net.Conn, error) { return s.opt.Network.Dial(ctx, "tcp", addr) },
	}
	o.Persona, _ = command.PersonaOf(s.opt.Version)
	o.KeepAside = m.keepAside
	if s.tls != nil {
		o.TLS, o.DialTLS = func() *tls.Config { return s.tls.server(m.index) }, s.tls.dial
	}
	s.misbehave(m.index, &o)
	return command.Open(o)
}

func (s *Set) indexOf(host string) int {
	return slices.IndexFunc(s.Members(), func(m *Member) bool { return m.addr == host })
}

// config is the newest configuration that a running member has.
func (s *Set) config() *command.Config {
	all := s.Members()
	s.mu.Lock()
	newest := s.cfg
	s.mu.Unlock()
	for _, m := range all {
		if r := m.current(); r != nil {
			if c := r.Config(); newest.ID().Less(c.ID()) {
				newest = c
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.ID().Less(newest.ID()) {
		s.cfg = newest
	}
	return s.cfg
}

// misbehave applies the set's fault. Its victim is member 1: the first that is a secondary when priorities are equal.
func (s *Set) misbehave(i int, o *command.Options) {
	const victim = 1
	switch s.opt.Fault {
	case LostWrite:
		o.Misbehave = command.LostWrite
	case TwoVotes:
		o.Misbehave = command.TwoVotes
	case ForgottenRetries:
		o.Misbehave = command.ForgottenRetries
	case StaleTag:
		if other, mc := s.lastBut(victim, true); i == victim && other != nil {
			o.Misbehave, o.StaleTags = command.StaleTag, mc.Tags
		}
	case WrongMember:
		if other, _ := s.lastBut(victim, false); i == victim && other != nil {
			o.Detour = other.current
		}
	}
}

// lastBut is the last member of the configuration in force that is not number victim and, unless arbiters will do, has
// data; nil if there is none.
func (s *Set) lastBut(victim int, arbiters bool) (*Member, *command.MemberConfig) {
	cfg := s.config()
	for _, m := range slices.Backward(s.Members()) {
		if mc := cfg.At(m.addr); m.index != victim && mc != nil && (arbiters || !mc.Arbiter) {
			return m, mc
		}
	}
	return nil, nil
}

// firstElection has the electable member with the newest data stand at once, of several the one of the highest
// priority, and waits until all members agree.
func (s *Set) firstElection(ctx context.Context) error {
	best := s.candidate()
	if best == nil {
		return errors.New("replset: the configuration in the data folder has no member here that may be primary")
	}
	var tried time.Time
	err := s.until(ctx, "the set has no primary", func() bool {
		if p := s.Primary(); p != nil {
			return s.settled(p)
		}
		if tried.IsZero() || time.Since(tried) > s.opt.ElectionTimeout {
			tried = time.Now()
			if r := best.current(); r != nil {
				_ = r.StandForElection(ctx, true)
			}
		}
		return false
	})
	if err == nil {
		return nil
	}
	if r := best.current(); r != nil {
		if why := r.Unreachable(); why != "" {
			return fmt.Errorf("%w; member %d cannot reach %s", err, best.index, why)
		}
	}
	return err
}

// candidate is the electable member with the newest data, of several the one of the highest priority.
func (s *Set) candidate() (best *Member) {
	cfg := s.config()
	for _, m := range s.Members() {
		mine := cfg.At(m.addr)
		if mine == nil || !mine.Electable() || mine.Votes == 0 {
			continue
		}
		if best == nil {
			best = m
			continue
		}
		a, b := m.data().Applied(), best.data().Applied()
		if b.Less(a) || a == b && mine.Priority > cfg.At(best.addr).Priority {
			best = m
		}
	}
	return best
}

// settled reports whether every running member follows p and has data.
func (s *Set) settled(p *Member) bool {
	lead := p.current()
	if lead == nil {
		return false
	}
	for _, m := range s.Members() {
		r := m.current()
		if r != nil && m != p && !r.Follows(lead) {
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
	if s.balancer != nil {
		s.balancer.close()
	}
	var wg sync.WaitGroup
	for _, m := range s.Members() {
		m.faults.Hang(false)
		m.letGo()
		if r := m.current(); r != nil {
			wg.Go(r.Close)
		}
	}
	wg.Wait()
	return nil
}

// URI is the connection string of the set: its visible members, its name and how to speak TLS to it if it does, without
// credentials. With TLS and no TLS.Dir, the client needs TLSConfig besides.
func (s *Set) URI() string {
	var hosts []string
	for _, m := range s.config().Members {
		if !m.Hidden && !m.Arbiter {
			hosts = append(hosts, m.Host)
		}
	}
	return "mongodb://" + strings.Join(hosts, ",") + "/?replicaSet=" + strings.ReplaceAll(url.QueryEscape(s.opt.SetName), "+", "%20") + s.tls.options()
}

// Members are all members that the set has had, in the order in which they came: removed ones stay in the list. One that
// AddMember could not add after all leaves it again.
func (s *Set) Members() []*Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.members)
}

// Member is member i, from 0. It panics if there is none, as an index out of range does.
func (s *Set) Member(i int) *Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members[i]
}

// Primary is the member that takes writes, nil if there is none at the moment. Of two that think so, which a
// partition can bring about for a while, it is the one of the later term.
func (s *Set) Primary() *Member {
	var best *Member
	var bestTerm int64
	for _, m := range s.Members() {
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

// AwaitReplication waits until every running member that holds data and is not delayed has all that the primary has. A
// member that is too stale for that, so that it would wait for ever, is an error that says so.
func (s *Set) AwaitReplication(ctx context.Context) error {
	var stale error
	err := s.until(ctx, "waiting for replication", func() bool {
		p := s.Primary()
		if p == nil {
			return false
		}
		lead := p.current()
		if lead == nil {
			return false
		}
		cfg, all := s.config(), true
		for _, m := range s.Members() {
			r, mine := m.current(), cfg.At(m.addr)
			if r == nil || r.Ended() || m == p || mine == nil || mine.Arbiter || mine.Delay != 0 {
				continue
			}
			if r.TooStaleFor(lead) {
				stale = fmt.Errorf("replset: waiting for replication: member %d (%s) is %s and stays so: it is too stale, since the primary's oplog, "+
					"of %d entries, begins after its newest entry; Kill, Wipe and Restart have it copy all data", m.index, m.addr, r.Role(), lead.OplogLength())
				return true
			}
			all = all && r.HasAllOf(lead)
		}
		return all
	})
	return cmp.Or(err, stale)
}
