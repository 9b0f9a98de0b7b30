package sextant_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
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

// More experiments: faults of the official driver (2.10) that were measured once, and the figures of this one beside them.

// reads lets n readers read, each again and again, until there were so many reads, and counts who served them.
func (b *bubble) reads(t *testing.T, n, total int, rp *readpref.ReadPref) []int {
	t.Helper()
	var mu sync.Mutex // guards the next two
	served, left := map[string]int{}, total
	next := func(last string) (more bool) {
		mu.Lock()
		defer mu.Unlock()
		served[last]++
		left--
		return left >= 0
	}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for last := ""; next(last); {
				cur, err := b.orders().Find(t.Context(), bson.D{}, sextant.FindOptions{ReadPreference: rp})
				if err != nil {
					t.Error(err)
					return
				}
				last = cur.Server()
				_ = cur.Close(t.Context())
			}
		})
	}
	wg.Wait()
	out := make([]int, len(b.set.Members()))
	for i, m := range b.set.Members() {
		out[i] = served[m.Addr()]
	}
	return out
}

// away puts the members of a set so many milliseconds away from the client, and lets it find out.
func (b *bubble) away(t *testing.T, ms ...time.Duration) {
	t.Helper()
	for i, d := range ms {
		if err := b.set.Delay(i, d*time.Millisecond, "app"); err != nil {
			t.Fatal(err)
		}
	}
	b.settle(t)
}

// settle waits until the client knows the whole set.
func (b *bubble) settle(t *testing.T) {
	t.Helper()
	if err := b.cl.WaitReady(t.Context(), sextant.Want{Write: true}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	b.start = time.Now()
}

// TestExperimentDNearest: members 2, 5 and 150 ms away, one reader. Recorded: 303, 297 and 0 of 600 reads.
func TestExperimentDNearest(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		b.away(t, 2, 5, 150)
		got := b.reads(t, 1, 600, readpref.Nearest())
		t.Logf("%v of 600 reads (recorded: 303, 297, 0)", got)
		if got[0] < 239 || got[1] < 239 || got[2] != 0 { // five standard deviations
			t.Errorf("reads went to %v", got)
		}
	})
}

// TestReadersOfABurstAreSpreadEvenly: readers that come at one moment. The official driver counts an operation when it
// has its connection and not when its member is chosen, so that all of a burst go by the old counts: chance alone would
// leave a standard deviation of 8 in 100.
func TestReadersOfABurstAreSpreadEvenly(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		b.away(t, 2, 2, 2)
		for range 5 {
			got := b.reads(t, 300, 300, readpref.Nearest())
			t.Logf("%v of a burst of 300", got)
			for _, n := range got {
				if n < 95 || n > 105 {
					t.Errorf("a burst went to %v", got)
				}
			}
		}
	})
}

// TestExperimentD2SickMember: one of two members takes 100 ms longer for a find, though it answers hello quickly. Recorded:
// with 8 readers 43,435 reads of the well one and 150 of the sick one; with one reader (D3) 35 and 37, half of them sick.
// What was counted was operations under way, as the specification has it, and so it is here: with 8 readers four are at
// each, and the shares are those of the times (here 2 and 102 ms). To send one reader elsewhere takes more than counts.
func TestExperimentD2SickMember(t *testing.T) {
	for readers, most := range map[int]float64{1: 0.6, 8: 0.03} {
		inBubble(t, nil, func(t *testing.T, b *bubble) {
			b.away(t, 2, 2, 150)
			b.fail(t, 1, replset.FailCommand{Commands: []string{"find"}, Block: 100 * time.Millisecond})
			got := b.reads(t, readers, 1000, readpref.Nearest())
			share := float64(got[1]) / 1000
			t.Logf("%d readers: %v of 1000 reads, %.1f %% of them at the sick member (recorded: 0.3 %% of 8 readers, whose other reads took no time; 51 %% of one)", readers, got, 100*share)
			if share > most || got[2] != 0 {
				t.Errorf("%d readers: %v", readers, got)
			}
		})
	}
}

// TestExperimentECloseUnderLoad: a client is closed with 4 s to spare while operations are under way. Recorded: 2.1 s of CPU
// in those 4 s, for a loop that asked again and again whether they were over. On fake time such a loop would be seen: time
// stands still while anybody runs, and the test would not end.
func TestExperimentECloseUnderLoad(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		b.settle(t)
		b.fail(t, b.set.Primary().Index(), replset.FailCommand{Commands: []string{"find"}, Block: 10 * time.Second})
		over := make(chan error)
		for range 3 {
			go func() {
				_, err := b.orders().FindOne(context.Background(), bson.D{})
				over <- err
			}()
		}
		time.Sleep(time.Second)
		b.start = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		err := b.cl.Close(ctx)
		took := b.at()
		for range 3 {
			if err := <-over; !mongoerr.IsNetwork(err) {
				t.Errorf("an operation under way: %v", err)
			}
		}
		t.Logf("closed after %v, the operations over after %v, and time went by: nobody was busy (recorded: 2.1 s of CPU in 4 s)", took, b.at())
		if err != nil || took != 4*time.Second || b.at() != 4*time.Second {
			t.Errorf("closed after %v, operations over after %v: %v", took, b.at(), err)
		}
	})
}

// TestExperimentFPanickingCallback: a callback panics whenever a heartbeat succeeds. Recorded: the member's updates end
// without a word; after an election no write in 40 s.
func TestExperimentFPanickingCallback(t *testing.T) {
	var panics atomic.Int64
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		c.Monitor = &event.Monitor{Heartbeat: func(e *event.HeartbeatEvent) {
			if e.Type == event.HeartbeatSucceeded {
				panics.Add(1)
				panic("a callback's own trouble")
			}
		}}
	}, func(t *testing.T, b *bubble) {
		b.settle(t)
		time.Sleep(time.Minute)
		old := b.set.Primary().Index()
		down := make(chan error, 1)
		go func() { down <- b.set.StepDown(t.Context()) }()
		b.await(t, 5*time.Second, "an election", b.primaryOtherThan(old))
		b.start = time.Now()
		err := b.insert(t)
		t.Logf("after %d panics and an election the first write was good after %v (recorded: none in 40 s)", panics.Load(), b.at())
		if err != nil || b.at() > 2*time.Millisecond || panics.Load() < 20 {
			t.Errorf("after %v and %d panics: %v", b.at(), panics.Load(), err)
		}
		if err := <-down; err != nil {
			t.Error(err)
		}
	})
}

// TestExperimentGUnmatchedTags: no member has the tags that a read wants. Recorded: after 2 s "server selection error: context
// deadline exceeded", and a list of members; the tags that were wanted are not in it.
func TestExperimentGUnmatchedTags(t *testing.T) {
	var mu sync.Mutex // guards waiting
	var waiting []told[event.SelectionEvent]
	tags := func(dc string) replset.MemberOptions { return replset.MemberOptions{Tags: map[string]string{"dc": dc}} }
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		o.Config = []replset.MemberOptions{tags("east"), tags("east"), tags("west")}
		c.Monitor.Selection = func(e *event.SelectionEvent) {
			if e.Type == event.SelectionWaiting {
				mu.Lock()
				waiting = append(waiting, told[event.SelectionEvent]{*e, time.Now()})
				mu.Unlock()
			}
		}
	}, func(t *testing.T, b *bubble) {
		b.settle(t)
		mu.Lock()
		waiting = nil
		mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := b.orders().FindOne(ctx, bson.D{}, sextant.FindOneOptions{ReadPreference: readpref.Nearest(readpref.Tags("dc", "north"))})
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(waiting) != 1 {
			t.Fatalf("told %d times that it waits", len(waiting))
		}
		at, verdict := waiting[0].At.Sub(b.start), waiting[0].E.Verdict
		t.Logf("told after %v (recorded: never): %s", at, verdict.Sentence)
		if at != 0 || !strings.Contains(verdict.Sentence, `nearest, tags [{dc: "north"}]`) || !strings.Contains(verdict.Sentence, "3 members have other tags") {
			t.Errorf("told after %v: %v", at, verdict)
		}
		if !mongoerr.IsSelection(err) || !mongoerr.IsTimeout(err) || b.at() != 2*time.Second || !strings.Contains(first(err), verdict.Sentence) {
			t.Errorf("after %v: %v", b.at(), err)
		}
		if strings.Count(err.Error(), `{dc: "east"}`) != 2 || strings.Count(err.Error(), `{dc: "west"}`) != 1 {
			t.Errorf("not each member's own tags: %v", err)
		}
	})
}

// TestExperimentHUnresolvableNames: a seed answers and advertises names that mean nothing where the client is. Recorded: the
// whole time limit goes by, and the error has "no such host" but not that the seed answered.
func TestExperimentHUnresolvableNames(t *testing.T) {
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		o.Config = []replset.MemberOptions{{Name: "inside-1", Port: 27017}, {Name: "inside-2", Port: 27017}, {Name: "inside-3", Port: 27017}}
		c.Hosts = []string{"seed"}
		inside := c.Dial
		c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if host, _, _ := net.SplitHostPort(addr); host != "seed" {
				return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
			}
			return inside(ctx, network, "inside-1:27017")
		}
	}, func(t *testing.T, b *bubble) {
		err := b.insert(t)
		if !mongoerr.IsSelection(err) {
			t.Fatal(err)
		}
		t.Logf("after %v (recorded: 30 s): %v", b.at(), first(err))
		if b.at() > time.Second {
			t.Errorf("told only after %v, though waiting could not help", b.at())
		}
		for _, words := range []string{"seed:27017 is not in its own list of members: it calls itself inside-1:27017", "3 members unreachable", "lookup inside-1: no such host"} {
			if !strings.Contains(first(err), words) {
				t.Errorf("%q is not in %v", words, err)
			}
		}
	})
}

// TestExperimentJArbiterHasNoPool: minPoolSize is 5, one member is an arbiter. Recorded: 7 connections to the arbiter, five of
// them of a pool that can serve nothing.
func TestExperimentJArbiterHasNoPool(t *testing.T) {
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		o.Config = []replset.MemberOptions{{}, {}, {Arbiter: true}}
		c.MinPoolSize = 5
	}, func(t *testing.T, b *bubble) {
		b.settle(t)
		time.Sleep(time.Minute)
		arbiter, member := b.set.Member(2).Addr(), b.set.Member(1).Addr()
		t.Logf("%d connections to the arbiter (recorded: 7), %d to a member with data", b.dialled.open(arbiter), b.dialled.open(member))
		if b.dialled.open(arbiter) != 1 || b.dialled.open(member) != 7 {
			t.Errorf("%d connections to the arbiter, %d to another", b.dialled.open(arbiter), b.dialled.open(member))
		}
		if made := b.log.pools(event.PoolCreated, arbiter, time.Time{}); len(made) != 0 {
			t.Errorf("a pool was made for it: %+v", made)
		}
	})
}

// TestExperimentKTenClients: ten clients of a set of three, each of which has written once. Recorded: 70 connections, 60 of them
// for monitoring, and some 21 goroutines a client. Who counts connections may poll: that is one a member in place of two.
func TestExperimentKTenClients(t *testing.T) {
	for mode, want := range map[string]struct{ connections, goroutines int }{"stream": {70, 7}, "poll": {40, 4}} {
		inBubble(t, func(o *replset.Options, c *sextant.Config) { c.ServerMonitoringMode = mode }, func(t *testing.T, b *bubble) {
			sum := func() (n int) {
				for _, m := range b.set.Members() {
					n += b.dialled.open(m.Addr())
				}
				return n
			}
			uri := must[*sextant.Config](t)(sextant.ParseURI(b.set.URI()))
			before, running := sum(), len(driverGoroutines())
			for range 10 {
				cl := must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), &sextant.Config{
					Hosts: uri.Hosts, ReplicaSet: uri.ReplicaSet, ServerMonitoringMode: mode, Dial: b.dialled.count(b.dial)}))
				defer cl.Close(context.Background())
				must[*sextant.InsertOneResult](t)(cl.Database("shop").Collection("orders").InsertOne(t.Context(), bson.D{}))
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			connections, goroutines := sum()-before, len(driverGoroutines())-running
			t.Logf("%s: %d connections (recorded: 70), %.1f goroutines a client (21)", mode, connections, float64(goroutines)/10)
			if connections != want.connections || goroutines != 10*want.goroutines {
				t.Errorf("%s: %d connections, %d goroutines of ten clients", mode, connections, goroutines)
			}
		})
	}
}

// TestExperimentOSilentTLSPeer: TLS is spoken to a server that has none and waits for more; 5 s to spare, less than a
// connection may take. Recorded: the error has only "Type: Unknown".
func TestExperimentOSilentTLSPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := replset.NewMemoryNetwork()
		l := must[net.Listener](t)(network.Listen(t.Context(), "plain:27017"))
		defer l.Close()
		for name, k := range map[string]struct {
			edit  func(*sextant.Config)
			words string
		}{
			"TLS":    {func(c *sextant.Config) { c.TLS = true }, "1 member silent for 5 s (in the TLS handshake: is it a port without TLS?)"},
			"no TLS": {func(c *sextant.Config) {}, "1 member silent for 5 s (connected, but hello is not answered)"},
			"blackhole": {func(c *sextant.Config) {
				c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
			}, "1 member silent for 5 s (the connection is not there yet)"},
		} {
			c := &sextant.Config{Hosts: []string{"plain"}, Dial: network.Dial}
			k.edit(c)
			cl := must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), c))
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err := cl.Database("shop").Collection("orders").FindOne(ctx, bson.D{})
			cancel()
			t.Logf("%s, after %v: %v (recorded: only \"Type: Unknown\")", name, time.Since(start), first(err))
			if !mongoerr.IsSelection(err) || time.Since(start) != 5*time.Second || !strings.Contains(first(err), k.words) {
				t.Errorf("%s: %v", name, err)
			}
			if err := cl.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
}
