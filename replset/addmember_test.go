package replset

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/replset/internal/command"
)

// startAgain starts a set in a folder, says who is who, and closes it.
func startAgain(t *testing.T, o Options) (states []string) {
	t.Helper()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, m := range s.Members() {
		states = append(states, m.State())
	}
	return states
}

func folderNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestWhatNeverWasAMemberLeavesNothingBehind: a start that was refused, and members that could not be added.
func TestWhatNeverWasAMemberLeavesNothingBehind(t *testing.T) {
	o := Options{Members: 3, Dir: t.TempDir()}
	startAgain(t, o)
	more := o
	more.Members = 5
	if _, err := Start(t.Context(), more); err == nil || !strings.Contains(err.Error(), "holds a set of 3 members, not 5") {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddMember(t.Context(), MemberOptions{Priority: new(-1.0)}); err == nil || !strings.Contains(err.Error(), "priority field value of -1") {
		t.Errorf("a negative priority: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for i := range 3 {
		_ = s.Hang(i, true)
	}
	if _, err := s.AddMember(short, MemberOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a set that hangs: %v", err)
	}
	if names := folderNames(t, o.Dir); len(names) != 3 || len(s.Members()) != 3 {
		t.Errorf("there are the folders %v of %d members", names, len(s.Members()))
	}
	_ = s.Close()
	for _, members := range []int{3, 0} {
		o.Members = members
		if got := startAgain(t, o); len(got) != 3 {
			t.Errorf("the members are %v", got)
		}
	}
}

// TestFolderOfAMemberThatNeverWasIsReused: the process was killed in the middle of AddMember, or of a first start.
func TestFolderOfAMemberThatNeverWasIsReused(t *testing.T) {
	o := Options{Members: 3, Dir: t.TempDir()}
	startAgain(t, o)
	for i, p := range []command.Place{{Host: "127.0.0.1:1", Members: 3}, {}} {
		d, err := o.disk(3 + i)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.SavePlace(p), d.Close(false)); err != nil {
			t.Fatal(err)
		}
	}
	startAgain(t, Options{Dir: o.Dir})
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, err := s.AddMember(t.Context(), MemberOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Index() != 3 {
		t.Errorf("it is member %d", m.Index())
	}
	if err := s.AwaitReplication(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := Options{Members: 1, Dir: t.TempDir(), SetName: "other"} // somebody else's data is nothing to be overwritten
	startAgain(t, other)
	if err := os.Remove(s.opt.file(4)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other.file(0), s.opt.file(4)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddMember(t.Context(), MemberOptions{}); err == nil || !strings.Contains(err.Error(), "holds the data of no member of this set") {
		t.Errorf("a folder with data: %v", err)
	}
	if d, err := o.disk(4); err != nil || d.Blank() {
		t.Errorf("the data is gone: %v", err)
	} else {
		_ = d.Close(true)
	}
}

// TestRemovedMemberComesBackAtItsAddress: an address is one member, whatever was done to it.
func TestRemovedMemberComesBackAtItsAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{})
		defer s.Close()
		c := dialRaw(t, s, 0, "app")
		defer c.nc.Close()
		c.must(t, "t", insert(1, w(3)))
		m2 := MemberOptions{Name: "M2", Port: 27017, Tags: map[string]string{"new": "one"}}
		if _, err := s.AddMember(t.Context(), m2); err == nil || !strings.Contains(err.Error(), "that is member 2, which is in the set") {
			t.Errorf("the address of a member: %v", err)
		}
		for round, steps := range [][]func(int) error{{}, {s.Kill}, {s.Kill, s.Wipe}} {
			if err := s.RemoveMember(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			for _, step := range steps {
				if err := step(2); err != nil {
					t.Fatal(err)
				}
			}
			m, err := s.AddMember(t.Context(), m2)
			if err != nil {
				t.Fatal(err)
			}
			if m != s.Member(2) || m.Tags()["new"] != "one" || len(s.Members()) != 3 {
				t.Errorf("round %d: member %d of %d with %v", round, m.Index(), len(s.Members()), m.Tags())
			}
			if err := s.AwaitReplication(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.Partition([]int{0, 2}, []int{1}); err != nil { // it is on the side where it was put
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			c.must(t, "t", insert(10+round, majority()))
			s.Heal()
			sameData(t, 2, s.Member(0).current().Store.Latest(), m.current().Store.Latest())
		}
	})
}

func TestPortOfARemovedMemberIsItsOwnInALaterStart(t *testing.T) {
	o := Options{Members: 3, Dir: t.TempDir(), ElectionTimeout: 300 * time.Millisecond}
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	gone := (s.Primary().Index() + 1) % 3
	addr := s.Member(gone).Addr()
	if err := s.RemoveMember(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	o.Members = 0
	if s, err = Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	_, text, _ := net.SplitHostPort(addr)
	port, _ := strconv.Atoi(text)
	if _, err := s.AddMember(t.Context(), MemberOptions{Name: "localhost", Port: port}); err == nil || !strings.Contains(err.Error(), "which goes by "+addr) {
		t.Errorf("the port under another name: %v", err)
	}
	m, err := s.AddMember(t.Context(), MemberOptions{Port: port})
	if err != nil {
		t.Fatal(err)
	}
	if m.Index() != gone || m.Addr() != addr {
		t.Errorf("it is member %d at %s, and was %d at %s", m.Index(), m.Addr(), gone, addr)
	}
	if err := s.AwaitReplication(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if got := startAgain(t, o); len(got) != 3 || strings.Contains(strings.Join(got, " "), "DOWN") {
		t.Errorf("the members are %v", got)
	}
}

// TestAdditionOfUnknownOutcomeLeavesALivingMember: the primary had the configuration, and no majority in time. Two such
// members count, and must not cost the majority.
func TestAdditionOfUnknownOutcomeLeavesALivingMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{ElectionTimeout: 10 * time.Second, HeartbeatInterval: 200 * time.Millisecond})
		defer s.Close()
		const slow = 400 * time.Millisecond
		time.Sleep(time.Second)
		for i := range 2 {
			pace := func(d time.Duration) { // of all that members say to each other, save what the new one is asked
				for k := range 3 + i {
					if err := s.Delay(k, d, MemberApp(0), MemberApp(1), MemberApp(2), MemberApp(3), MemberApp(4)); err != nil {
						t.Fatal(err)
					}
				}
			}
			pace(slow)
			time.Sleep(time.Second)
			o := MemberOptions{Name: "new" + strconv.Itoa(i), Port: 27017}
			ctx, cancel := context.WithTimeout(t.Context(), slow/2) // the others are still being asked
			m, err := s.AddMember(ctx, o)
			cancel()
			if m != nil || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "asking the members") || len(s.Members()) != 3+i {
				t.Fatalf("%v, %v, and %d members", m, err, len(s.Members()))
			}
			ctx, cancel = context.WithCancel(t.Context())
			lead := s.Primary().current()
			go func() {
				for lead.Config().At(o.Name+":27017") == nil && ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
				cancel()
			}()
			m, err = s.AddMember(ctx, o)
			cancel()
			if p := s.Primary(); p == nil || p.Index() != 0 {
				t.Fatalf("the primary is %v", p)
			}
			if m == nil || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "may or may not") {
				t.Fatalf("%v, %v", m, err)
			}
			pace(0)
			time.Sleep(3 * time.Second)
			if state := m.State(); state != "SECONDARY" || s.config().At(m.Addr()) == nil || m.Index() != 3+i {
				t.Errorf("member %d is %s", m.Index(), state)
			}
		}
		if err := s.Kill(1); err != nil {
			t.Fatal(err)
		}
		c := dialRaw(t, s, 0, "app")
		defer c.nc.Close()
		c.must(t, "t", insert(1, w(4)))
	})
}

func TestChangeWhoseContextEndsSaysThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{})
		defer s.Close()
		why := errors.New("the operator went home")
		check := func(begin time.Duration, text string) {
			t.Helper()
			for name, change := range map[string]func(context.Context) error{
				"add":    func(ctx context.Context) error { _, err := s.AddMember(ctx, MemberOptions{}); return err },
				"remove": func(ctx context.Context) error { return s.RemoveMember(ctx, 2) },
				"change": func(ctx context.Context) error {
					return s.Reconfigure(ctx, 2, func(o *MemberOptions) { o.Tags = map[string]string{"a": "b"} })
				},
			} {
				ctx, cancel := context.WithTimeoutCause(t.Context(), begin, why)
				err := change(ctx)
				cancel()
				if !errors.Is(err, why) || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "Quorum") {
					t.Errorf("%s: %v, want %q in it", name, err, text)
				}
			}
		}
		check(0, "was not begun")
		for _, i := range []int{1, 2} {
			if err := s.Hang(i, true); err != nil {
				t.Fatal(err)
			}
		}
		check(100*time.Millisecond, "asking the members")
		if len(s.Members()) != 3 {
			t.Errorf("there are %d members", len(s.Members()))
		}
	})
}

// TestSecondMemberKeepsThePrimary: it has its time to be heard from.
func TestSecondMemberKeepsThePrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 1, Options{})
		defer s.Close()
		time.Sleep(time.Minute)
		term, _ := s.Member(0).current().WritablePrimary()
		done := make(chan error, 1)
		go func() {
			_, err := s.AddMember(t.Context(), MemberOptions{Name: "m1", Port: 27017})
			done <- err
		}()
		for range 3000 {
			time.Sleep(time.Millisecond)
			if now, ok := s.Member(0).current().WritablePrimary(); !ok || now != term {
				t.Fatalf("primary: %v, in term %d after %d", ok, now, term)
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if state := s.Member(1).State(); state != "SECONDARY" {
			t.Errorf("the second member is %s", state)
		}
	})
}
