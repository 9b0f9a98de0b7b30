package sextant_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset"
)

// TestAddressMapToTheWrongMemberIsTold by Hosts, Explain, the error of a selection and the log, whether it leads to the primary
// or to a secondary, and the member is not dropped.
func TestAddressMapToTheWrongMemberIsTold(t *testing.T) {
	for _, to := range []int{0, 2} {
		var log lockedBuffer
		inBubble(t, func(o *replset.Options, c *sextant.Config) {
			o.Config = []replset.MemberOptions{{Name: "m0", Port: 27017, Priority: new(9.0)}, {Name: "m1", Port: 27017, Tags: map[string]string{"dc": "x"}}, {Name: "m2", Port: 27017}}
			c.ServerSelectionTimeout = 5 * time.Second
			c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			c.AddressMap = func(advertised string) (string, string) {
				if advertised == "m1:27017" {
					return fmt.Sprintf("m%d:27017", to), ""
				}
				return "", ""
			}
		}, func(t *testing.T, b *bubble) {
			b.await(t, time.Minute, "m0 is the primary", func() bool { return b.set.Primary() != nil && b.set.Primary().Index() == 0 })
			words := fmt.Sprintf("AddressMap has m1:27017 dialled at m%d:27017, where another member of the set answers, which calls itself m%d:27017", to, to)
			dc := sextant.Want{ReadPreference: readpref.Nearest(readpref.Tags("dc", "x"))}
			for range 3 { // it stays so
				if err := b.cl.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
				m, known := b.cl.Hosts().Member("m1:27017")
				if !known || m.Kind.Known() || m.LastError == nil || !strings.Contains(m.LastError.Error(), words) {
					t.Errorf("Hosts says %v, %v", m, m.LastError)
				}
				v := must[event.Verdict](t)(b.cl.Explain(t.Context(), dc))
				if !strings.Contains(v.Sentence, words) || strings.Count(v.String(), words) != 2 {
					t.Errorf("the verdict is %v", v)
				}
				time.Sleep(20 * time.Second)
			}
			refuse(t, func() error { return b.cl.WaitReady(t.Context(), dc) }, mongoerr.IsSelection, words)
			if err := b.cl.WaitReady(t.Context(), sextant.Want{Write: true}); err != nil || len(b.cl.Hosts().Members) != 3 {
				t.Errorf("the others: %v, %v", err, b.cl.Hosts())
			}
		})
		if !strings.Contains(log.String(), "AddressMap has m1:27017 dialled at m") {
			t.Error("the log says nothing")
		}
	}
}

// TestSeedsMayHaveNamesThatTheSetDoesNotKnow, and the reason why they go tells where they led.
func TestSeedsMayHaveNamesThatTheSetDoesNotKnow(t *testing.T) {
	seed := func(set string) func(*replset.Options, *sextant.Config) {
		return func(o *replset.Options, c *sextant.Config) {
			o.Config = []replset.MemberOptions{{Name: "m0", Port: 27017}, {Name: "m1", Port: 27017}, {Name: "m2", Port: 27017}}
			c.Hosts, c.ReplicaSet, c.ServerSelectionTimeout = []string{"tunnel:1"}, set, time.Second
			c.AddressMap = func(advertised string) (string, string) {
				return strings.Replace(advertised, "tunnel:1", "m1:27017", 1), ""
			}
		}
	}
	inBubble(t, seed("rs0"), func(t *testing.T, b *bubble) {
		if err := b.cl.WaitReady(t.Context(), sextant.Want{Write: true}); err != nil || len(b.cl.Hosts().Members) != 3 {
			t.Errorf("%v, %v", err, b.cl.Hosts())
		}
	})
	inBubble(t, seed("other"), func(t *testing.T, b *bubble) {
		refuse(t, ping(b.cl), mongoerr.IsSelection, "tunnel:1 belongs to set rs0, not other (dialled at m1:27017, as AddressMap has it)")
	})
}
