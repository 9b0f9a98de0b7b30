package replset

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/sextantdb/sextant/replset/internal/command"
)

// at is member i, if there is one and the set is open.
func (s *Set) at(i int) (*Member, error) {
	all := s.Members()
	if i < 0 || i >= len(all) {
		return nil, fmt.Errorf("replset: there is no member %d in a set of %d", i, len(all))
	}
	if s.isClosed() {
		return nil, errors.New("replset: the set is closed")
	}
	return all[i], nil
}

// StepDown makes the primary hand over to the electable member that is furthest, and waits until there is a new
// primary. The old one stands for no election for two election timeouts. Connections stay open. In a set with a single
// electable member the old primary becomes primary again, in a new term.
func (s *Set) StepDown(ctx context.Context) error {
	p, err := s.WaitPrimary(ctx)
	if err != nil {
		return err
	}
	r := p.current()
	if r == nil {
		return fmt.Errorf("replset: member %d was killed while it was to step down", p.index)
	}
	freeze, catchUp, force := 2*s.opt.ElectionTimeout, 10*time.Second, false
	alone := s.electable() < 2
	if alone {
		freeze, catchUp, force = 0, 0, true
	}
	before, _ := r.WritablePrimary()
	if err := r.StepDown(ctx, freeze, catchUp, force); err != nil {
		return fmt.Errorf("replset: step down: %w", err)
	}
	if alone {
		if err := r.StandForElection(ctx, true); err != nil {
			return fmt.Errorf("replset: step down: %w", err)
		}
	}
	return s.until(ctx, "waiting for a new primary", func() bool {
		p := s.Primary()
		if p == nil {
			return false
		}
		r := p.current()
		if r == nil {
			return false
		}
		term, ok := r.WritablePrimary()
		return ok && term > before
	})
}

// electable counts the running members that may become primary.
func (s *Set) electable() int {
	n := 0
	cfg := s.config()
	for _, m := range s.Members() {
		if mine := cfg.At(m.addr); m.current() != nil && mine != nil && mine.Electable() {
			n++
		}
	}
	return n
}

// Kill ends member i as a crash would: its connections are reset in the middle of whatever they carry, and nothing is
// handed over. Its data stays for Restart: all of it when it is in memory, with Options.Dir what had been synced. Who dials
// it is refused, and on Linux its port is lent to nobody else. When Kill returns, no goroutine of the member is left.
func (s *Set) Kill(i int) error {
	m, err := s.at(i)
	if err != nil {
		return err
	}
	r, err := m.take(true)
	if err != nil {
		return err
	}
	r.Kill()
	m.hold()
	m.put(nil)
	return nil
}

// Restart starts member i again after Kill, at the same address and with the data it had.
func (s *Set) Restart(i int) error {
	m, err := s.at(i)
	if err != nil {
		return err
	}
	if m.addr == "" {
		return fmt.Errorf("replset: member %d was removed, and another member has its address now", i)
	}
	if _, err := m.take(false); err != nil {
		return err
	}
	if s.opt.Dir != "" {
		d, err := s.opt.disk(i)
		if err != nil {
			m.put(nil)
			return err
		}
		m.insert(d)
	}
	l, err := s.listenAgain(m.listensAt())
	if err != nil {
		_ = m.data().Close(true)
		m.put(nil)
		return fmt.Errorf("replset: member %d cannot listen again: %w", i, err)
	}
	m.letGo()
	m.put(s.open(m, l))
	if s.isClosed() { // Close may have come in between and not have seen it
		return s.Close()
	}
	return nil
}

// listenAgain listens at an address that was free before. For as long as the member was dead, the system may have lent
// the port to some outgoing connection: give that a moment to end.
func (s *Set) listenAgain(at string) (net.Listener, error) {
	for tries := 0; ; tries++ {
		l, err := s.opt.Network.Listen(context.Background(), at)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || tries == 200 {
			return l, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Wipe destroys the data of member i, which must have been killed: after Restart it waits (STARTUP) until another member gives
// it the configuration, and copies everything (STARTUP2).
func (s *Set) Wipe(i int) error {
	m, err := s.at(i)
	if err != nil {
		return err
	}
	if _, err := m.take(false); err != nil {
		return err
	}
	defer m.put(nil)
	if s.opt.Dir != "" {
		if err := command.WipeDisk(s.opt.file(i)); err != nil {
			return fmt.Errorf("replset: wipe member %d: %w", i, err)
		}
		return nil
	}
	m.insert(m.data().Wiped(s.opt.OplogEntries))
	return nil
}

// Partition cuts the network between members of different groups; members in no group are alone. Clients still reach
// everybody. A new Partition replaces the old one.
func (s *Set) Partition(groups ...[]int) error {
	group := map[int]int{}
	for g, members := range groups {
		for _, i := range members {
			if _, err := s.at(i); err != nil {
				return err
			}
			if _, twice := group[i]; twice {
				return fmt.Errorf("replset: member %d is in two groups", i)
			}
			group[i] = g
		}
	}
	for i, m := range s.Members() {
		var blocked []int
		for j := range s.Members() {
			gi, inI := group[i]
			gj, inJ := group[j]
			if i != j && !(inI && inJ && gi == gj) {
				blocked = append(blocked, j)
			}
		}
		m.faults.Block(blocked...)
	}
	for _, m := range s.Members() {
		if r := m.current(); r != nil {
			r.CutLinks()
		}
	}
	return nil
}

// Heal ends the partition.
func (s *Set) Heal() {
	for _, m := range s.Members() {
		m.faults.Block()
	}
}

// Hang makes member i accept connections, read, and never answer, nor speak to other members, until it is called with
// false; then it goes on where it was.
func (s *Set) Hang(i int, on bool) error {
	m, err := s.at(i)
	if err != nil {
		return err
	}
	m.faults.Hang(on)
	return nil
}

// Delay adds d to each round trip of the named client applications to member i, half on the way in and half on the way
// out; without a name, to those of every client that has no delay of its own. Connections do not wait for each other.
// 0 takes the delay away; of named applications, theirs alone. A change counts for what is under way, too. Other members
// are near, unless their names (MemberApp) are given.
func (s *Set) Delay(i int, d time.Duration, appNames ...string) error {
	m, err := s.at(i)
	if err != nil {
		return err
	}
	if d < 0 {
		return fmt.Errorf("replset: the delay %v is negative", d)
	}
	m.faults.Delay(d, appNames...)
	return nil
}

// CutAfter has one connection of the named client applications to member i, or without a name of any client, end in the
// middle of an answer: the first over which, from now on, more than n bytes of answers are to be sent gets n of them. With
// n 0 the first answer does not begin. The answers to hello and authentication neither count nor are cut. Then the fault is
// over; a negative n takes it back before. Other members' connections end so if their names (MemberApp) are given.
func (s *Set) CutAfter(i int, n int64, appNames ...string) error {
	m, err := s.at(i)
	if err != nil {
		return err
	}
	m.faults.CutAfter(n, appNames...)
	return nil
}

// Throttle makes the link between member i and the named client applications, or without a name every client that has no
// rate of its own, a slow one: each message takes its length at so many bytes a second on the way, both ways. Connections
// do not wait for each other. 0 takes it away.
func (s *Set) Throttle(i int, bytesPerSecond int64, appNames ...string) error {
	m, err := s.at(i)
	if err != nil {
		return err
	}
	if bytesPerSecond < 0 {
		return fmt.Errorf("replset: the rate of %d bytes a second is negative", bytesPerSecond)
	}
	m.faults.Throttle(bytesPerSecond, appNames...)
	return nil
}

// Lag makes member i apply nothing of what it pulls from the primary, until it is called with false: it stays a secondary
// and answers reads with what it has. It does what the server's fail point rsSyncApplyStop does. A primary is not concerned
// until it is one no more.
func (s *Set) Lag(i int, on bool) error {
	m, err := s.at(i)
	if err != nil {
		return err
	}
	m.faults.Lag(on)
	return nil
}

// FailCommand makes commands fail on member i, or on every member if i is All. nil ends it. It stays through step-downs
// and ends with Kill.
func (s *Set) FailCommand(i int, f *FailCommand) error {
	if i != All {
		if _, err := s.at(i); err != nil {
			return err
		}
	}
	if f != nil && len(f.Commands) == 0 {
		return errors.New("replset: FailCommand names no command")
	}
	for j, m := range s.Members() {
		if r := m.current(); r != nil && (i == All || i == j) {
			r.SetFailCommand(f.point())
		}
	}
	return nil
}

// All stands for every member in FailCommand.
const All = -1
