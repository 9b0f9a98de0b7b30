package pool_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/pool"
)

var one, two = bson.ObjectID{1}, bson.ObjectID{2}

// A clear that knew no services would close all, or pause the pool.
func TestClearOfAServiceSparesTheOthersAndWhoeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, j := newPool(t, &member{services: []bson.ObjectID{one, two}}, pool.Options{Max: 4})
		a, b, c, d := checkOut(t, p), checkOut(t, p), checkOut(t, p), checkOut(t, p)
		if *a.Service() != one || *b.Service() != two || *c.Service() != one || p.Stats().Services != 2 {
			t.Fatalf("%v %v %v, %+v", a.Service(), b.Service(), c.Service(), p.Stats())
		}
		a.CheckIn()
		b.CheckIn()
		waited := make(chan *pool.Conn)
		e, f := checkOut(t, p), checkOut(t, p) // b and a: nothing is idle
		go func() {
			w, err := p.CheckOut(t.Context())
			if err != nil {
				t.Error("who waits failed:", err)
			}
			waited <- w
		}()
		synctest.Wait()
		f.CheckIn() // to the waiter
		w := <-waited
		w.CheckIn()
		j.take()
		p.ClearService(one, errors.New("down"))
		c.CheckIn()
		d.CheckIn()
		e.CheckIn()
		sameEvents(t, j.take(), "PoolCleared", "Closed(stale)", "CheckedIn", "Closed(stale)", "CheckedIn", "CheckedIn")
		s := p.Stats()
		if s.Idle != 2 || s.Services != 1 || s.Generation != 0 || p.ServiceGeneration(&one) != 1 || p.ServiceGeneration(&two) != 0 {
			t.Errorf("%+v, generations %d and %d", s, p.ServiceGeneration(&one), p.ServiceGeneration(&two))
		}
		p.ClearService(one, errors.New("down")) // nothing leads there any more
		sameEvents(t, j.take())
		g := checkOut(t, p)
		if *g.Service() != two || g.Generation() != 0 {
			t.Errorf("%v of generation %d", g.Service(), g.Generation())
		}
		g.CheckIn()
		closePool(t, p)
	})
}

func TestClearOfAServiceNamesItAndItsGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{services: []bson.ObjectID{one}}
		var cleared []*event.PoolEvent
		p := pool.New("lb:27017", pool.Options{
			Open: func(ctx context.Context, greeted func(bson.ObjectID)) (*conn.Conn, error) {
				return conn.Open(ctx, "lb:27017", &conn.Options{Dial: m.dial, LoadBalanced: true, Greeted: greeted})
			},
			Publish: func(e *event.PoolEvent) {
				if e.Type == event.PoolCleared {
					cleared = append(cleared, e)
				}
			},
		})
		p.Ready()
		a := checkOut(t, p)
		p.ClearService(one, errors.New("down"))
		b := checkOut(t, p)
		p.ClearService(one, errors.New("down again"))
		if a.Generation() != 0 || b.Generation() != 1 || len(cleared) != 2 || *cleared[1].ServiceID != one || cleared[1].Generation != 2 {
			t.Errorf("generations %d and %d, %v", a.Generation(), b.Generation(), cleared)
		}
		a.CheckIn()
		b.CheckIn()
		closePool(t, p)
	})
}

// The generation is that of the moment when the service said who it is: what happens to the service during the login counts.
func TestServiceThatFailsDuringALoginTakesTheConnectionWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{services: []bson.ObjectID{one}}
		said, login := make(chan struct{}, 1), make(chan struct{}, 2)
		p := pool.New("lb:27017", pool.Options{Max: 1, Open: func(ctx context.Context, greeted func(bson.ObjectID)) (*conn.Conn, error) {
			c, err := conn.Open(ctx, "lb:27017", &conn.Options{Dial: m.dial, LoadBalanced: true, Greeted: greeted})
			said <- struct{}{}
			<-login
			return c, err
		}})
		p.Ready()
		got := make(chan *pool.Conn)
		go func() {
			c, err := p.CheckOut(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- c
		}()
		<-said
		p.ClearService(one, errors.New("down"))
		login <- struct{}{}
		login <- struct{}{}
		c := <-got
		if c.ID() != 2 {
			t.Errorf("got connection %d, of before the failure", c.ID())
		}
		c.CheckIn()
		closePool(t, p)
	})
}

func TestCloseDoesNotWaitForAConnectionAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPool(t, &member{services: []bson.ObjectID{one}}, pool.Options{})
		kept, used := checkOut(t, p), checkOut(t, p)
		for _, c := range []*pool.Conn{kept, used} {
			c.Hold(pool.ByCursor)
			c.Rest()
		}
		used.Resume()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		time.AfterFunc(time.Minute, used.Rest)
		p.Close(ctx)
		if took := time.Since(start); took != time.Minute || !kept.Broken() || !used.Broken() {
			t.Errorf("closed after %v; broken: %v, %v", took, kept.Broken(), used.Broken())
		}
		kept.CheckIn()
		used.CheckIn()
		if s := p.Stats(); s.Total != 0 || s.HeldByCursors != 0 {
			t.Errorf("%+v", s)
		}
	})
}
