package sextant_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset"
)

func TestQuarantinedMemberIsLeftOutUntilItIsReleased(t *testing.T) {
	inPinned(t, func(t *testing.T, b *bubble, _ *pinLog) {
		out, other := b.set.Member(1).Addr(), b.set.Member(2).Addr()
		pin := must[*sextant.Pin](t)(b.cl.Pin(t.Context(), readpref.Secondary()))
		for pin.Server() != out {
			must[string](t)(pin.Switch(t.Context()))
		}
		cur := must[*sextant.Cursor[bson.D]](t)(b.orders().Find(t.Context(), bson.D{}, sextant.FindOptions{Pin: pin}))
		defer cur.Close(t.Context())
		if err := b.cl.Quarantine(out, "its disk fails"); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if got := b.reader(t, sextant.FindOptions{ReadPreference: readpref.Secondary()}); got != other {
				t.Fatalf("served by %s", got)
			}
		}
		if pin.Server() != other {
			t.Errorf("the pin is still at %s", pin.Server())
		}
		v := must[event.Verdict](t)(b.cl.Explain(t.Context(), sextant.Want{ReadPreference: readpref.Nearest()}))
		if len(v.Eligible()) != 2 || !strings.Contains(v.String(), "- "+out+" RSSecondary: in quarantine: its disk fails") {
			t.Errorf("%v", v)
		}
		if m := b.member(1); m.Quarantine != "its disk fails" || m.Kind != event.RSSecondary {
			t.Errorf("%+v", m)
		}
		if err := b.cl.Release(out); err != nil {
			t.Fatal(err)
		}
		b.await(t, time.Second, "it serves again", func() bool {
			return b.reader(t, sextant.FindOptions{ReadPreference: readpref.Secondary()}) == out
		})
		for name, err := range map[string]error{"released twice": b.cl.Release(out), "not a member": b.cl.Quarantine("nobody:1", "")} {
			if !mongoerr.IsConfig(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestQuarantineOfAWrongAddressSaysWhatIsWrongAndWhoIsThere(t *testing.T) {
	inPinned(t, func(t *testing.T, b *bubble, _ *pinLog) {
		known := "the client knows "
		for _, m := range b.set.Members() {
			known += m.Addr() + ", "
		}
		known = strings.TrimSuffix(known, ", ")
		for address, words := range map[string]string{
			"": "empty", ":27017": "is not a host", "mongodb://db1": "the port of", "db1:27017:1": "is not a host",
			"db1:port": "the port of", "db1:70000": "the port of", "nobody:1": "there is no member nobody:1",
		} {
			for _, err := range []error{b.cl.Quarantine(address, "x"), b.cl.Release(address)} {
				if !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), known) {
					t.Errorf("%q: %v, want %q and %q", address, err, words, known)
				}
			}
		}
		if err := b.cl.Quarantine(b.set.Member(1).Addr(), "x"); err != nil {
			t.Fatal(err)
		}
		if err := b.cl.Release(b.set.Member(2).Addr()); err == nil || !strings.Contains(err.Error(), "not in quarantine: "+b.set.Member(1).Addr()) {
			t.Errorf("the release of one that is not: %v", err)
		}
	})
}

// reader is who answers a read.
func (b *bubble) reader(t *testing.T, o sextant.FindOptions) string {
	t.Helper()
	cur := must[*sextant.Cursor[bson.D]](t)(b.orders().Find(t.Context(), bson.D{}, o))
	defer cur.Close(t.Context())
	return cur.Server()
}

func TestWriteSaysThatThePrimaryIsInQuarantine(t *testing.T) {
	inPinned(t, func(t *testing.T, b *bubble, _ *pinLog) {
		if err := b.cl.Quarantine(b.set.Member(0).Addr(), ""); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- b.insert(t) }()
		synctest.Wait()
		if err := b.cl.Release(b.set.Member(0).Addr()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("the write that waited for the release: %v", err)
		}
		if err := b.cl.Quarantine(b.set.Member(0).Addr(), "hands off"); err != nil {
			t.Fatal(err)
		}
		if err := b.insert(t); !mongoerr.IsSelection(err) || !strings.Contains(err.Error(), "1 member in quarantine (hands off), 2 are secondaries") {
			t.Errorf("%v", err)
		}
	})
}

// TestFailFastEndsAWaitThatCannotHelp stages what lasts, on all members and on one of three.
func TestFailFastEndsAWaitThatCannotHelp(t *testing.T) {
	for name, tc := range map[string]struct {
		fast   bool
		others bool // one of the members is merely down
		took   time.Duration
	}{
		"certificates":                          {true, false, 0},
		"certificates, without the option":      {false, false, 30 * time.Second},
		"certificates, and one that may return": {true, true, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(o *replset.Options, c *sextant.Config) {
				o.TLS = &replset.TLS{Dir: t.TempDir()}
				c.TLSConfig = &tls.Config{} // trusts nobody who signed these
				c.FailFast = tc.fast
			}, func(t *testing.T, b *bubble) {
				if tc.others {
					if err := b.set.Kill(0); err != nil {
						t.Fatal(err)
					}
				}
				err := b.insert(t)
				if b.at() != tc.took || !mongoerr.IsSelection(err) || !strings.Contains(err.Error(), "certificate") {
					t.Errorf("after %v: %v", b.at(), err)
				}
				if fast := strings.Contains(err.Error(), "(FailFast: waiting does not cure this)"); fast != (tc.took == 0) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// TestDirectConnectionToAHiddenMemberHasAPool: over one, as for reports, it serves, and is measured and filled as any other. An
// arbiter gets neither (experiment J).
func TestDirectConnectionToAHiddenMemberHasAPool(t *testing.T) {
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		o.Config = []replset.MemberOptions{{Name: "m0", Port: 1}, {Name: "m1", Port: 1, Hidden: true}}
		c.Hosts, c.DirectConnection, c.MinPoolSize = []string{"m1:1"}, true, 5
	}, func(t *testing.T, b *bubble) {
		if err := b.cl.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if m := b.member(1); m.Kind != event.RSOther || b.dialled.open("m1:1") != 5+2 {
			t.Errorf("%d sockets to %v", b.dialled.open("m1:1"), m)
		}
	})
}
