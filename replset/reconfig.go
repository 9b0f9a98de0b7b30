package replset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/command"
)

// AddMember starts another member and has the primary add it to the configuration. It returns when a majority has the new
// configuration. The member is in STARTUP until it has heard of it, then copies all data (STARTUP2) and becomes a secondary:
// AwaitReplication waits for that too. It counts at once, so that where there was one member, a majority write waits for
// the copy. A set has at most seven members at a time.
//
// An address is the identity of a member. With the Port (and Name) of a member that was removed, AddMember takes that member
// back, under its old index and with the data that it has, and starts it if it was killed: Wipe it before for a new one.
//
// When AddMember fails, the member is not there, and its index, address and folder are free again; one that was taken
// back is as before. There is one exception: the primary had the new configuration already, and ctx ended or the primary was
// lost before a majority had it, so that it may come into force or not. Then the member lives on, as it is configured, and
// is returned beside the error; adding its address again, or removing it, makes it certain.
func (s *Set) AddMember(ctx context.Context, o MemberOptions) (*Member, error) {
	if err := s.lockConfig(ctx); err != nil {
		return nil, err
	}
	defer s.unlockConfig()
	m, err := s.takeBack(o)
	isNew := m == nil
	if err == nil && isNew {
		m, err = s.prepare(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	afoot, err := s.change(ctx, func(cfg *command.Config) error {
		if cfg.At(m.addr) == nil {
			cfg.Members = append(cfg.Members, o.joining(cfg, m.index, m.addr))
		}
		return nil
	})
	switch {
	case err == nil:
		return m, nil
	case afoot:
		return m, fmt.Errorf("replset: add member %s: it may or may not be in the set in the end, and goes on as member %d: %w", m.addr, m.index, err)
	}
	err = fmt.Errorf("replset: add member %s: %w", m.addr, err)
	if isNew {
		err = errors.Join(err, s.discard(m))
	}
	return nil, err
}

// joining is a member as it comes into a configuration. Its number there is its index, if nobody has it.
func (o MemberOptions) joining(cfg *command.Config, index int, addr string) command.MemberConfig {
	mc := o.config(addr)
	const most = 255
	if mc.ID = index; index <= most && cfg.Member(index) == nil {
		return mc
	}
	for mc.ID = 0; cfg.Member(mc.ID) != nil; mc.ID++ {
	}
	return mc
}

// acceptable refuses options that the configuration would refuse, before anything is made for their sake.
func (s *Set) acceptable(o MemberOptions, index int, addr string) error {
	next := *s.config()
	next.Members = append(slices.Clip(next.Members), o.joining(&next, index, addr))
	if err := next.Validate(); err != nil {
		return fmt.Errorf("replset: add member %s: %w", addr, err)
	}
	return nil
}

// takeBack is the member that was removed and is to be added again, running; nil if the address is nobody's.
func (s *Set) takeBack(o MemberOptions) (*Member, error) {
	if o.Port == 0 {
		return nil, nil
	}
	want := net.JoinHostPort(cmp.Or(strings.ToLower(o.Name), s.opt.Host), strconv.Itoa(o.Port))
	_, real := s.opt.Network.(tcp)
	for _, m := range s.Members() {
		switch {
		case m.addr != want && !(real && sharePort(m.addr, []string{want})):
			continue
		case m.addr != want:
			return nil, fmt.Errorf("replset: add member %s: the port is that of member %d, which goes by %s", want, m.index, m.addr)
		case s.config().At(want) != nil:
			return nil, fmt.Errorf("replset: add member %s: that is member %d, which is in the set", want, m.index)
		}
		if err := s.acceptable(o, m.index, want); err != nil {
			return nil, err
		}
		if m.current() == nil {
			return m, s.Restart(m.index)
		}
		return m, nil
	}
	return nil, nil
}

// prepare makes and starts a member that nobody knows yet.
func (s *Set) prepare(ctx context.Context, o MemberOptions) (*Member, error) {
	var others []string
	for _, m := range s.Members() {
		others = append(others, m.addr)
	}
	i := len(others)
	p := command.Place{Name: strings.ToLower(o.Name), Port: o.Port, Members: s.started()}
	l, host, err := s.listenFor(ctx, p, i, others)
	if err != nil {
		return nil, err
	}
	p.Host = host
	err = s.acceptable(o, i, host)
	if err == nil {
		err = s.tls.certify(i, hostOf(host), Certificate{})
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	d, err := s.opt.newDisk(i)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	undo := func(err error) (*Member, error) { return nil, errors.Join(err, l.Close(), s.opt.dropDisk(i, d)) }
	if err := d.SavePlace(p); err != nil {
		return undo(fmt.Errorf("replset: member %d: %w", i, err))
	}
	m := &Member{set: s, index: i, addr: host, place: p, disk: d, faults: new(command.Faults), counters: new(command.Counters)}
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.members = append(s.members, m)
	}
	s.mu.Unlock()
	if closed {
		return undo(errors.New("replset: the set is closed"))
	}
	m.put(s.open(m, l))
	if s.isClosed() { // Close may have come in between and not have seen it
		return nil, errors.Join(errors.New("replset: the set is closed"), s.Close())
	}
	return m, nil
}

// started is how many members the set had at first.
func (s *Set) started() int { return s.Member(0).place.Members }

// discard ends a member that no configuration has ever had, and forgets it.
func (s *Set) discard(m *Member) error {
	for !m.leave() { // somebody kills it, or starts it again
		time.Sleep(time.Millisecond)
	}
	if r := m.current(); r != nil {
		r.Close()
		m.put(nil)
	}
	err := s.opt.dropDisk(m.index, m.data())
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.members) - 1; s.members[last] == m {
		s.members = s.members[:last:last]
	}
	return err
}

// RemoveMember has the primary take member i out of the configuration, and returns when a majority has the new one. The
// member goes on as a real one does: it says that it is no member of a set (REMOVED), refuses reads and writes, and keeps
// its data and its index, until Close. A primary steps down first.
func (s *Set) RemoveMember(ctx context.Context, i int) error {
	m, err := s.at(i)
	if err != nil {
		return err
	}
	if err := s.lockConfig(ctx); err != nil {
		return err
	}
	defer s.unlockConfig()
	if s.config().At(m.addr) == nil {
		return fmt.Errorf("replset: member %d is not in the configuration, or not any more", i)
	}
	if p := s.Primary(); p == m && s.electable() > 1 {
		if err := s.StepDown(ctx); err != nil {
			return err
		}
	}
	_, err = s.change(ctx, func(cfg *command.Config) error {
		cfg.Members = slices.DeleteFunc(cfg.Members, func(mc command.MemberConfig) bool { return mc.Host == m.addr })
		return nil
	})
	if err != nil {
		return fmt.Errorf("replset: remove member %d: %w", i, err)
	}
	return nil
}

// Reconfigure changes priority, votes, tags, delay of member i, and whether it is hidden, and returns when a majority has
// the new configuration. change gets the member's present options; Name, Port and Arbiter cannot be changed. What a server
// would not accept is refused in its words, such as a primary that could not be primary any more.
func (s *Set) Reconfigure(ctx context.Context, i int, change func(*MemberOptions)) error {
	m, err := s.at(i)
	if err != nil {
		return err
	}
	if err := s.lockConfig(ctx); err != nil {
		return err
	}
	defer s.unlockConfig()
	mine := s.config().At(m.addr)
	if mine == nil {
		return fmt.Errorf("replset: member %d is not in the configuration", i)
	}
	was := optionsOf(mine, m.place)
	o := optionsOf(mine, m.place)
	change(&o)
	if o.Name != was.Name || o.Port != was.Port || o.Arbiter != was.Arbiter {
		return fmt.Errorf("replset: reconfigure member %d: Name, Port and Arbiter cannot be changed: remove it and add another", i)
	}
	_, err = s.change(ctx, func(cfg *command.Config) error {
		mine := cfg.At(m.addr)
		if mine == nil {
			return fmt.Errorf("it is not in the configuration any more")
		}
		id := mine.ID
		*mine = o.config(m.addr)
		mine.ID = id
		return nil
	})
	if err != nil {
		return fmt.Errorf("replset: reconfigure member %d: %w", i, err)
	}
	return nil
}

// optionsOf are the options that make mc. A priority that they imply is not among them, so that it follows them.
func optionsOf(mc *command.MemberConfig, p command.Place) MemberOptions {
	o := MemberOptions{Name: p.Name, Port: p.Port, NoVote: mc.Votes == 0, Hidden: mc.Hidden, SecondaryDelay: mc.Delay, Arbiter: mc.Arbiter}
	for _, t := range mc.Tags {
		if o.Tags == nil {
			o.Tags = map[string]string{}
		}
		o.Tags[t.Name] = t.Value
	}
	if o.config(mc.Host).Priority != mc.Priority {
		o.Priority = new(mc.Priority)
	}
	return o
}

func (s *Set) lockConfig(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("replset: a change of the configuration was not begun: %w", context.Cause(ctx))
	}
	select {
	case s.changing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("replset: waiting for another change of the configuration: %w", context.Cause(ctx))
	}
}

func (s *Set) unlockConfig() { <-s.changing }

// change has the primary put an edited copy of its configuration into force. Where it loses its place meanwhile, the next
// one is asked: edit must see when nothing is left to be done. With an error, afoot says that a primary had the new
// configuration, so that it may come into force all the same.
func (s *Set) change(ctx context.Context, edit func(*command.Config) error) (afoot bool, err error) {
	for {
		had, err := s.changeOnce(ctx, edit)
		if err == nil {
			return false, nil
		}
		if afoot = afoot || had; !passing(err) {
			return afoot, err
		}
		timer := time.NewTimer(s.opt.HeartbeatInterval / 4)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return afoot, fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
	}
}

func (s *Set) changeOnce(ctx context.Context, edit func(*command.Config) error) (afoot bool, err error) {
	p, err := s.WaitPrimary(ctx)
	if err != nil {
		return false, err
	}
	r := p.current()
	if r == nil {
		return false, mongoerr.Server(mongoerr.CodeNotWritablePrimary, "the primary was killed")
	}
	next := *r.Config()
	next.Members = slices.Clone(next.Members)
	if err := edit(&next); err != nil {
		return false, err
	}
	next.Version++
	return r.Reconfigure(ctx, &next, false)
}

// passing reports whether a change of the configuration was refused for what will soon be over.
func passing(err error) bool {
	e, ok := errors.AsType[*mongoerr.Error](err)
	if !ok {
		return false
	}
	switch e.Code {
	case mongoerr.CodeNotWritablePrimary, mongoerr.CodePrimarySteppedDown, mongoerr.CodeInterruptedAtShutdown, command.CodeConfigInProgress,
		command.CodeConfigNotCommitted:
		return true
	}
	return false
}
