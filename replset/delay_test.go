package replset

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// TestDelayedMemberIsBornWithTheDataOfItsDay: it is late from then on, and not without data for as long as its delay.
func TestDelayedMemberIsBornWithTheDataOfItsDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := named(t, 3, Options{Config: []MemberOptions{2: {SecondaryDelay: time.Minute, NoVote: true}}})
		defer s.Close()
		if state := s.Member(2).State(); state != "SECONDARY" {
			t.Errorf("a delayed member is %s when the set has started", state)
		}
		c := dialRaw(t, s, 0, "app")
		defer c.nc.Close()
		for i := range 5 {
			c.must(t, "t", insert(i, majority()))
		}
		if _, err := s.AddMember(t.Context(), MemberOptions{Name: "m3", Port: 27017, SecondaryDelay: time.Minute, NoVote: true}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		c.must(t, "t", insert("later", majority()))
		time.Sleep(time.Second)
		if state := s.Member(3).State(); state != "SECONDARY" {
			t.Fatalf("a delayed member is %s two seconds after it was added", state)
		}
		late := dialRaw(t, s, 3, "app")
		defer late.nc.Close()
		if got := late.ids(t); len(got) != 5 {
			t.Errorf("it has %v, and should have what there was when it came", got)
		}
		time.Sleep(time.Minute)
		if got := late.ids(t); len(got) != 6 {
			t.Errorf("after its delay it has %v", got)
		}
	})
}

// TestDelayThatIsTakenAwayIsGone: of an application it falls back to what everybody has, and what is under way arrives.
func TestDelayThatIsTakenAwayIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleSet(t, Options{})
		defer s.Close()
		took := func(c *raw) time.Duration {
			begun := time.Now()
			c.must(t, "admin", pingCommand())
			return time.Since(begun)
		}
		set := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		c := dialRaw(t, s, 0, "app")
		defer c.nc.Close()
		set(s.Delay(0, 40*time.Millisecond, "app"))
		set(s.Delay(0, 0, "app"))
		set(s.Delay(0, 100*time.Millisecond))
		if d := took(c); d != 100*time.Millisecond {
			t.Errorf("an application that has no delay of its own any more waits %v, everybody waits 100ms", d)
		}
		set(s.Throttle(0, 10, "app"))
		set(s.Throttle(0, 0, "app"))
		set(s.Throttle(0, 1000))
		if d := took(c); d <= 100*time.Millisecond {
			t.Errorf("an application that has no rate of its own any more waits %v: the link for all is slow", d)
		}
		for name, fault := range map[string]func(on bool) error{
			"delay":    func(on bool) error { return s.Delay(0, map[bool]time.Duration{true: math.MaxInt64}[on]) },
			"throttle": func(on bool) error { return s.Throttle(0, map[bool]int64{true: 1}[on]) },
		} {
			set(s.Delay(0, 0))
			set(s.Throttle(0, 0))
			set(fault(true))
			go func() {
				time.Sleep(time.Second)
				_ = fault(false)
			}()
			if d := took(c); d != time.Second {
				t.Errorf("%s: a ping that was under way when it was taken away, after a second, took %v", name, d)
			}
		}
	})
}

// TestDelayThatIsChangedCountsForWhatIsUnderWay: from when it set out.
func TestDelayThatIsChangedCountsForWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleSet(t, Options{})
		defer s.Close()
		c := dialRaw(t, s, 0, "app")
		defer c.nc.Close()
		if err := s.Delay(0, time.Hour); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(10 * time.Millisecond)
			_ = s.Delay(0, 100*time.Millisecond)
		}()
		begun := time.Now()
		c.must(t, "admin", bson.D{{Key: "ping", Value: 1}})
		if d := time.Since(begun); d != 100*time.Millisecond {
			t.Errorf("a ping whose delay became 100ms on the way took %v", d)
		}
	})
}
