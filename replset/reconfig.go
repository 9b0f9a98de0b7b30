package replset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/command"
)

// AddMember starts another member and has the primary add it to the configuration. It returns when a majority has the new
// configuration; the member then copies all data (STARTUP2) and becomes a secondary: AwaitReplication waits for that too. A
// set has at most seven members at a time. When AddMember fails, the member is not there, but its index may stay taken.
func (s *Set) AddMember(ctx context.Context, o MemberOptions) (*Member, error) {
	if err := s.lockConfig(ctx); err != nil {
		return nil, err
	}
	defer s.unlockConfig()
	m, err := s.prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	err = s.change(ctx, func(cfg *command.Config) error {
		if cfg.At(m.addr) != nil {
			return nil
		}
		mc := o.config(m.addr)
		mc.ID = m.index
		for cfg.Member(mc.ID) != nil {
			mc.ID++
		}
		cfg.Members = append(cfg.Members, mc)
		return nil
	})
	if err != nil {
		s.discard(m)
		return nil, fmt.Errorf("replset: add member %s: %w", m.addr, err)
	}
	return m, nil
}

// prepare makes and starts a member that nobody knows yet.
func (s *Set) prepare(ctx context.Context, o MemberOptions) (*Member, error) {
	i := len(s.Members())
	p := command.Place{Name: strings.ToLower(o.Name), Port: o.Port, Members: s.started()}
	d, err := s.opt.disk(i)
	if err != nil {
		return nil, err
	}
	l, host, err := s.listenFor(ctx, p, i)
	if err != nil {
		return nil, errors.Join(err, d.Close(true))
	}
	p.Host = host
	if err := cmp.Or(s.tls.certify(i, hostOf(host), Certificate{}), d.SavePlace(p)); err != nil {
		return nil, errors.Join(fmt.Errorf("replset: member %d: %w", i, err), l.Close(), d.Close(true))
	}
	m := &Member{set: s, index: i, addr: host, place: p, disk: d, faults: new(command.Faults), counters: new(command.Counters)}
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.members = append(s.members, m)
	}
	s.mu.Unlock()
	if closed {
		return nil, errors.Join(errors.New("replset: the set is closed"), l.Close(), d.Close(true))
	}
	m.put(s.open(m, l))
	if s.isClosed() { // Close may have come in between and not have seen it
		return nil, errors.Join(errors.New("replset: the set is closed"), s.Close())
	}
	return m, nil
}

// started is how many members the set had at first.
func (s *Set) started() int { return s.Member(0).place.Members }

// discard ends a member that could not be added.
func (s *Set) discard(m *Member) {
	if r, err := m.take(true); err == nil {
		r.Close()
		m.put(nil)
	}
}

// RemoveMember has the primary take member i out of the configuration, and returns when a majority has the new one. The
// member goes on as a real one does: it says that it is no member of a set (REMOVED), refuses reads and writes, and keeps
// its data and its index, until Close. A primary steps down first.
func (s *Set) RemoveMember(ctx context.Context, i int) error {
	if err := s.check(i); err != nil {
		return err
	}
	if err := s.lockConfig(ctx); err != nil {
		return err
	}
	defer s.unlockConfig()
	m := s.Member(i)
	if s.config().At(m.addr) == nil {
		return fmt.Errorf("replset: member %d has been removed already", i)
	}
	if p := s.Primary(); p == m && s.electable() > 1 {
		if err := s.StepDown(ctx); err != nil {
			return err
		}
	}
	err := s.change(ctx, func(cfg *command.Config) error {
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
	if err := s.check(i); err != nil {
		return err
	}
	if err := s.lockConfig(ctx); err != nil {
		return err
	}
	defer s.unlockConfig()
	m := s.Member(i)
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
	err := s.change(ctx, func(cfg *command.Config) error {
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
	select {
	case s.changing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("replset: waiting for another change of the configuration: %w", context.Cause(ctx))
	}
}

func (s *Set) unlockConfig() { <-s.changing }

// change has the primary put an edited copy of its configuration into force. Where it loses its place meanwhile, the next
// one is asked: edit must see when nothing is left to be done.
func (s *Set) change(ctx context.Context, edit func(*command.Config) error) error {
	for {
		err := s.changeOnce(ctx, edit)
		if err == nil || !passing(err) {
			return err
		}
		timer := time.NewTimer(s.opt.HeartbeatInterval / 4)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
	}
}

func (s *Set) changeOnce(ctx context.Context, edit func(*command.Config) error) error {
	p, err := s.WaitPrimary(ctx)
	if err != nil {
		return err
	}
	r := p.current()
	if r == nil {
		return mongoerr.Server(mongoerr.CodeNotWritablePrimary, "the primary was killed")
	}
	next := *r.Config()
	next.Members = slices.Clone(next.Members)
	if err := edit(&next); err != nil {
		return err
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
