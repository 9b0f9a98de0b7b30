package operation_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset"
)

// embedded runs a test over an embedded set of three members on fake time and an in-memory network.
func embedded(t *testing.T, change func(*replset.Options, *cluster.Config), f func(t *testing.T, s *replset.Set, d *deployment)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := replset.NewMemoryNetwork()
		o := replset.Options{Members: 3, Network: network, Config: []replset.MemberOptions{{Priority: new(2.0)}}}
		cfg := cluster.Config{Conn: conn.Options{Dial: network.Dial, Metadata: conn.ClientMetadata("app")}}
		if change != nil {
			change(&o, &cfg)
		}
		s := replset.Run(t, o)
		cfg.Topology = topology.Config{Seeds: []string{s.Member(1).Addr()}, SetName: "rs0"}
		c := cluster.New(cfg)
		// Not a Cleanup: the set closes in one, and clients go first.
		defer c.Close(context.Background())
		f(t, s, &deployment{cluster: c, x: operation.New(operation.Config{Cluster: c, RetryReads: true, RetryWrites: true})})
	})
}

// insertID inserts {_id: id} into test.c with w: majority.
func insertID(ctx context.Context, d *deployment, id int) error {
	return d.x.Run(ctx, &operation.Op{
		Name: "insert", DB: "test", Coll: "c", Kind: operation.Write, Retryable: true, WriteConcern: concern.Majority(),
		Append: func(dst []byte, _ operation.Target) ([]byte, error) {
			dst = bson.AppendString(dst, "insert", "c")
			return bson.AppendAny(dst, "documents", bson.A{bson.D{{Key: "_id", Value: id}}})
		},
	})
}

// countDocs counts test.c.
func countDocs(ctx context.Context, d *deployment, pref *readpref.ReadPref) (n int64, server string, err error) {
	err = d.x.Run(ctx, &operation.Op{
		Name: "count", DB: "test", Coll: "c", Kind: operation.Read, Retryable: true, ReadPref: pref,
		Append: func(dst []byte, _ operation.Target) ([]byte, error) { return bson.AppendString(dst, "count", "c"), nil },
		Decode: func(reply bson.Raw, r operation.Result) error {
			n, _ = reply.Lookup("n").AsInt64OK()
			server = r.Server
			return nil
		},
	})
	return n, server, err
}

// writers insert until stopped; stop returns how many inserts were acknowledged. Any error fails the test.
func writers(t *testing.T, d *deployment, n int) (stop func() int64) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	acknowledged := int64(0)
	quit := make(chan struct{})
	for w := range n {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-quit:
					return
				case <-time.After(50 * time.Millisecond):
				}
				if err := insertID(t.Context(), d, w*1_000_000+i); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				mu.Lock()
				acknowledged++
				mu.Unlock()
			}
		})
	}
	return func() int64 {
		close(quit)
		wg.Wait()
		return acknowledged
	}
}

// TestFailoverLosesNoAcknowledgedWrite, whatever becomes of the primary: no writer sees an error, and every write that
// was acknowledged is there exactly once.
func TestFailoverLosesNoAcknowledgedWrite(t *testing.T) {
	for name, strike := range map[string]func(t *testing.T, s *replset.Set) error{
		"killed":       func(t *testing.T, s *replset.Set) error { return s.Kill(s.Primary().Index()) },
		"stepped down": func(t *testing.T, s *replset.Set) error { return s.StepDown(t.Context()) },
		"cut off":      func(t *testing.T, s *replset.Set) error { return s.Partition([]int{1, 2}, []int{0}) },
	} {
		t.Run(name, func(t *testing.T) {
			embedded(t, nil, func(t *testing.T, s *replset.Set, d *deployment) {
				stop := writers(t, d, 8)
				time.Sleep(time.Second)
				if err := strike(t, s); err != nil {
					t.Fatal(err)
				}
				time.Sleep(4 * time.Second)
				acknowledged := stop()
				got, _, err := countDocs(t.Context(), d, nil)
				if err != nil || got < acknowledged || acknowledged < 200 {
					t.Errorf("%d acknowledged, %d there, %v", acknowledged, got, err)
				}
			})
		})
	}
}

func TestWritesAreOnceOnlyWhenTheAnswerIsLost(t *testing.T) {
	embedded(t, nil, func(t *testing.T, s *replset.Set, d *deployment) {
		fail := &replset.FailCommand{Commands: []string{"insert"}, Times: 1,
			WriteConcernError: &replset.WriteConcernError{Code: mongoerr.CodeShutdownInProgress, Message: "shutting down"}}
		if err := s.FailCommand(replset.All, fail); err != nil {
			t.Fatal(err)
		}
		if err := insertID(t.Context(), d, 1); err != nil { // done, told as failed, sent again
			t.Fatal(err)
		}
		if n, _, err := countDocs(t.Context(), d, nil); n != 1 || err != nil {
			t.Errorf("%d documents, %v", n, err)
		}
	})
}

func TestServerErrorsThatShowAChangeAreRetried(t *testing.T) {
	for _, code := range []int32{mongoerr.CodeNotWritablePrimary, mongoerr.CodeInterruptedAtShutdown, mongoerr.CodeShutdownInProgress,
		mongoerr.CodePrimarySteppedDown, mongoerr.CodeInterruptedDueToReplStateChange} {
		t.Run(mongoerr.CodeName(code), func(t *testing.T) {
			embedded(t, nil, func(t *testing.T, s *replset.Set, d *deployment) {
				if err := insertID(t.Context(), d, 1); err != nil {
					t.Fatal(err)
				}
				for _, command := range []string{"insert", "count"} {
					fail := &replset.FailCommand{Commands: []string{command}, Times: 1, ErrorCode: code}
					if err := s.FailCommand(replset.All, fail); err != nil {
						t.Fatal(err)
					}
					start := time.Now()
					var err error
					if command == "insert" {
						err = insertID(t.Context(), d, 2)
					} else {
						_, _, err = countDocs(t.Context(), d, nil)
					}
					if took := time.Since(start); err != nil || took > 2*time.Second {
						t.Errorf("%s: %v after %v", command, err, took)
					}
				}
			})
		})
	}
}

func TestReadsGoOnWhileThereIsNoPrimary(t *testing.T) {
	embedded(t, nil, func(t *testing.T, s *replset.Set, d *deployment) {
		if err := insertID(t.Context(), d, 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		for _, i := range []int{0, 1} {
			if err := s.Kill(i); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // the client hears of it: otherwise the write may find the dead one's connections, and be a second attempt
		n, server, err := countDocs(t.Context(), d, readpref.SecondaryPreferred())
		if err != nil || n != 1 || server != s.Member(2).Addr() {
			t.Errorf("%d documents from %s, %v", n, server, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err = insertID(ctx, d, 2)
		if !mongoerr.IsSelection(err) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if err := s.Restart(1); err != nil {
			t.Fatal(err)
		}
		if err := insertID(t.Context(), d, 3); err != nil {
			t.Errorf("after a member came back: %v", err)
		}
	})
}

func TestHungMemberCostsNoMoreThanTheContextAllows(t *testing.T) {
	embedded(t, nil, func(t *testing.T, s *replset.Set, d *deployment) {
		if err := insertID(t.Context(), d, 1); err != nil {
			t.Fatal(err)
		}
		if err := s.Hang(0, true); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := insertID(ctx, d, 2)
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != 200*time.Millisecond {
			t.Errorf("after %v: %v", took, err)
		}
		// The others elect a new primary, which the monitors hear of although the old one still seems to be well.
		time.Sleep(5 * time.Second)
		start = time.Now()
		if err := insertID(t.Context(), d, 3); err != nil || time.Since(start) > time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if err := s.Hang(0, false); err != nil {
			t.Fatal(err)
		}
	})
}

func TestNearestFollowsTheRoundTrips(t *testing.T) {
	embedded(t, nil, func(t *testing.T, s *replset.Set, d *deployment) {
		for i, delay := range []time.Duration{2, 5, 150} {
			if err := s.Delay(i, delay*time.Millisecond, "app"); err != nil {
				t.Fatal(err)
			}
		}
		if err := insertID(t.Context(), d, 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		seen := map[string]int{}
		for range 100 {
			_, server, err := countDocs(t.Context(), d, readpref.Nearest())
			if err != nil {
				t.Fatal(err)
			}
			seen[server]++
		}
		if a, b := seen[s.Member(0).Addr()], seen[s.Member(1).Addr()]; a < 25 || b < 25 || a+b != 100 {
			t.Errorf("reads went to %v", seen)
		}
	})
}

func TestWrongPasswordIsToldAtOnce(t *testing.T) {
	for _, password := range []string{"right", "wrong"} {
		t.Run(password, func(t *testing.T) {
			embedded(t, func(o *replset.Options, c *cluster.Config) {
				o.Users = []replset.User{{Name: "joe", Password: "right"}}
				c.Conn.Credential = &conn.Credential{Username: "joe", Password: password}
			}, func(t *testing.T, s *replset.Set, d *deployment) {
				for i := range 3 {
					start := time.Now()
					err := insertID(t.Context(), d, i)
					if took := time.Since(start); took > time.Second {
						t.Errorf("call %d took %v", i, took)
					}
					if password == "right" && err != nil || password == "wrong" && !mongoerr.IsAuth(err) {
						t.Errorf("call %d: %v", i, err)
					}
				}
			})
		})
	}
}

func TestMemberThatReturnsIsUsedAgain(t *testing.T) {
	embedded(t, nil, func(t *testing.T, s *replset.Set, d *deployment) {
		if err := insertID(t.Context(), d, 1); err != nil {
			t.Fatal(err)
		}
		if err := s.Kill(2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if m, _ := d.cluster.Topology().Member(s.Member(2).Addr()); m.Kind != event.Unknown || m.LastError == nil {
			t.Errorf("the killed member is %v (%v)", m.Kind, m.LastError)
		}
		if err := s.Restart(2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		seen := map[string]bool{}
		for range 50 {
			_, server, err := countDocs(t.Context(), d, readpref.Secondary())
			if err != nil {
				t.Fatal(err)
			}
			seen[server] = true
		}
		if !seen[s.Member(2).Addr()] {
			t.Errorf("it is not read from: %v", fmt.Sprint(seen))
		}
	})
}
