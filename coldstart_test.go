package sextant_test

import (
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset"
)

// The first operation of a client, from cold, on a set of three all of which are seeds: two message round trips, hello and
// find; three with SCRAM. (The official driver takes three and four: it dials the connection for the find when a monitor
// has heard from the member.)
func TestFirstReadFromColdTakesTwoRoundTrips(t *testing.T) {
	const way = 20 * time.Millisecond // of a message and its reply
	user := []replset.User{{Name: "joe", Password: "s3cret"}}
	for name, c := range map[string]struct {
		users []replset.User
		pref  *readpref.ReadPref
		trips time.Duration
	}{
		"primary":               {nil, readpref.Primary(), 2},
		"nearest":               {nil, readpref.Nearest(), 2},
		"secondary":             {nil, readpref.Secondary(), 2},
		"primary with a login":  {user, readpref.Primary(), 3},
		"nearest, with a login": {user, readpref.Nearest(), 3},
	} {
		inBubble(t, func(o *replset.Options, cfg *sextant.Config) {
			primaryFirst(o)
			o.Users = c.users
			if c.users != nil {
				cfg.Username, cfg.Password = "joe", "s3cret"
			}
		}, func(t *testing.T, b *bubble) {
			for i := range 3 {
				if err := b.set.Delay(i, way); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			if _, err := b.orders().Find(t.Context(), bson.M{}, sextant.FindOptions{ReadPreference: c.pref}); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took != c.trips*way {
				t.Errorf("%s: the first find took %v, %.2f round trips", name, took, float64(took)/float64(way))
			}
			created := 0
			for i := range 3 {
				created += len(b.log.pools(event.ConnectionCreated, b.set.Member(i).Addr(), start))
			}
			time.Sleep(2 * time.Second)
			total := 0
			for _, m := range b.cl.Hosts().Members {
				total += m.Pool.Total
				if open := b.dialled.open(m.Address); open > 2+m.Pool.Total {
					t.Errorf("%s: %d connections to %s are left open", name, open, m.Address)
				}
			}
			if created != 1 || total != 1 {
				t.Errorf("%s: %d connections were made for one find, %d are in the pools", name, created, total)
			}
		})
	}
}
