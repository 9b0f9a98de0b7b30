package replset

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
)

func pingCommand() bson.D { return bson.D{{Key: "ping", Value: 1}} }

func TestCutEndsOneConnectionOfTheNamedApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleSet(t, Options{})
		defer s.Close()
		app, other, hello := dialRaw(t, s, 0, "app"), dialRaw(t, s, 0, "other"), dialRaw(t, s, 0, "app")
		if err := s.CutAfter(0, 20, "app"); err != nil {
			t.Fatal(err)
		}
		other.must(t, "admin", pingCommand())
		hello.must(t, "admin", bson.D{{Key: "hello", Value: 1}})
		if err := app.send(0, "admin", pingCommand()); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(app.nc); len(b) != 20 || err != nil {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		hello.must(t, "admin", pingCommand())
		time.Sleep(time.Second)
		if state := s.Member(0).State(); state != "PRIMARY" {
			t.Errorf("the members' connections were cut: %s", state)
		}
	})
}

func TestCutCountsTheBytesOfSeveralAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleSet(t, Options{})
		defer s.Close()
		c := dialRaw(t, s, 0, "app")
		c.must(t, "admin", pingCommand())
		reply := int64(len(c.lastR.Body)) + 21 // header, flags and the section's kind
		if err := s.CutAfter(0, 2*reply); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			c.must(t, "admin", pingCommand())
		}
		if _, err := c.run("admin", pingCommand()); !errors.Is(err, io.EOF) {
			t.Errorf("the third answer: %v", err)
		}
		if err := s.CutAfter(0, 0); err != nil {
			t.Fatal(err)
		}
		if err := s.CutAfter(0, -1); err != nil {
			t.Fatal(err)
		}
		dialRaw(t, s, 0, "app").must(t, "admin", pingCommand())
		if err := s.CutAfter(9, 0); err == nil {
			t.Error("member 9 was cut")
		}
	})
}

func TestCutUnderTLSCountsTheBytesOfMongoDB(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := tlsSet(t, TLS{})
		defer s.Close()
		c := dialTLS(t, s, 0, "app")
		if err := s.CutAfter(0, 20); err != nil {
			t.Fatal(err)
		}
		if err := c.send(0, "admin", pingCommand()); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(c.nc); len(b) != 20 || err != nil {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	})
}

func TestThrottledLinkTakesTheTimeOfItsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleSet(t, Options{})
		defer s.Close()
		c, other := dialRaw(t, s, 0, "app"), dialRaw(t, s, 0, "other")
		if err := s.Throttle(0, 10_000, "app"); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		c.must(t, "t", insert(strings.Repeat("x", 50_000), nil))
		if took := time.Since(begun); took < 5*time.Second || took > 5200*time.Millisecond {
			t.Errorf("50 kB at 10 kB/s took %v", took)
		}
		begun = time.Now()
		c.must(t, "t", bson.D{{Key: "find", Value: "c"}})
		if took := time.Since(begun); took < 5*time.Second || took > 5200*time.Millisecond {
			t.Errorf("50 kB back at 10 kB/s took %v", took)
		}
		begun = time.Now()
		other.must(t, "t", bson.D{{Key: "find", Value: "c"}})
		if took := time.Since(begun); took != 0 {
			t.Errorf("another application waited %v", took)
		}
		for _, apps := range [][]string{nil, {"app"}} {
			if err := s.Throttle(0, 0, apps...); err != nil {
				t.Fatal(err)
			}
		}
		begun = time.Now()
		c.must(t, "admin", pingCommand())
		if took := time.Since(begun); took != 0 {
			t.Errorf("after the end of it a ping took %v", took)
		}
		if err := s.Throttle(0, -1); err == nil {
			t.Error("a negative rate was taken")
		}
		if err := s.Throttle(0, 1<<40); err != nil {
			t.Error(err)
		}
	})
}

// lagging asserts that member 2 stays where it is, as a secondary, while on is called, and catches up after off.
func lagging(t *testing.T, s *Set, on, off func()) {
	t.Helper()
	c := dialRaw(t, s, 0, "app")
	c.must(t, "t", insert("first", w(3)))
	on()
	c.must(t, "t", insert("late", majority()))
	time.Sleep(30 * time.Second)
	d := dialRaw(t, s, 2, "app")
	if got := d.ids(t); len(got) != 1 || s.Member(2).State() != "SECONDARY" {
		t.Errorf("the lagging member has %v and is %s", got, s.Member(2).State())
	}
	if p := s.Primary(); p == nil || p.Index() != 0 {
		t.Errorf("the primary is %v", p)
	}
	off()
	if err := s.AwaitReplication(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := d.ids(t); len(got) != 2 {
		t.Errorf("after it the member has %v", got)
	}
}

func TestLaggingMemberStaysASecondaryWithOldData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleSet(t, Options{})
		defer s.Close()
		set := func(on bool) func() {
			return func() {
				if err := s.Lag(2, on); err != nil {
					t.Fatal(err)
				}
			}
		}
		lagging(t, s, set(true), set(false))
	})
}

func TestFailPointsOfReplicationMakeAMemberLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleSet(t, Options{})
		defer s.Close()
		c := dialRaw(t, s, 2, "app")
		set := func(mode string) func() {
			return func() {
				c.must(t, "admin", bson.D{{Key: "configureFailPoint", Value: "rsSyncApplyStop"}, {Key: "mode", Value: mode}})
			}
		}
		lagging(t, s, set("alwaysOn"), set("off"))
		c.fails(t, 2, "admin", bson.D{{Key: "configureFailPoint", Value: "rsSyncApplyStop"}, {Key: "mode", Value: "sometimes"}})
	})
}

func TestLaggingMemberCanBecomePrimaryAndBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleSet(t, Options{})
		defer s.Close()
		for i := range 3 {
			if err := s.Lag(i, true); err != nil {
				t.Fatal(err)
			}
		}
		c := dialRaw(t, s, 0, "app")
		c.must(t, "t", insert(1, w(1)))
		if err := s.Kill(0); err != nil {
			t.Fatal(err)
		}
		if _, err := s.WaitPrimary(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
