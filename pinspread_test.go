package sextant_test

import (
	"context"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset"
)

// TestPinsOfFreshClientsSpread: each client of many pins once, at its start, when the nearer secondary is heard of first. Both
// are within the latency window, and a pin lasts.
func TestPinsOfFreshClientsSpread(t *testing.T) {
	inBubble(t, func(o *replset.Options, _ *sextant.Config) { primaryFirst(o) }, func(t *testing.T, b *bubble) {
		must[*sextant.InsertOneResult](t)(b.orders().InsertOne(t.Context(), bson.M{"x": 1}))
		if err := b.set.Delay(2, 6*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		at := map[string]int{}
		for range 200 {
			cfg, err := sextant.ParseURI(b.set.URI())
			if err != nil {
				t.Fatal(err)
			}
			cfg.Dial = b.dial
			cl, err := sextant.ConnectConfig(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			pin, err := cl.Pin(t.Context(), readpref.Secondary())
			if err != nil || time.Since(start) > 100*time.Millisecond {
				t.Fatalf("after %v: %v", time.Since(start), err)
			}
			at[pin.Server()]++
			cl.Close(context.Background())
		}
		for _, i := range []int{1, 2} {
			if n := at[b.set.Member(i).Addr()]; n < 70 || n > 130 {
				t.Errorf("pins are at %v", at)
			}
		}
	})
}
