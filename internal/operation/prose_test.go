package operation_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// TestProseSDAM9StateChangesAreParsedInEveryShape is prose test 9 of "server discovery and monitoring": errors without a
// code are told by their text, wherever their fields stand. The shapes of the old write and query messages, {err: ...}
// and {$err: ...}, are not among them: no server that is spoken to sends them. Broken by a text that is not known, by
// looking for fields at fixed places, or by not keeping the error.
func TestProseSDAM9StateChangesAreParsedInEveryShape(t *testing.T) {
	count := func(pref *readpref.ReadPref) *operation.Op {
		return &operation.Op{Name: "count", DB: "shop", Coll: "people", Kind: operation.Read, ReadPref: pref, Append: named("count")}
	}
	write := func() *operation.Op { o := insert(); o.Retryable = false; return o }
	for name, k := range map[string]struct {
		op   *operation.Op
		text string
	}{
		"a write command":                      {write(), "not writable primary"},
		"a write command, in older words":      {write(), "not master"},
		"a write command, in the middle":       {write(), "replicatedToNum called but not master anymore"},
		"a query with secondaryOk":             {count(readpref.Secondary()), "not primary or secondary; cannot currently read from this replSet member"},
		"a query with secondaryOk, older":      {count(readpref.Secondary()), "not master or secondary; cannot currently read from this replSet member"},
		"a query without secondaryOk":          {count(nil), "not writable primary and secondaryOk=false"},
		"a count with secondaryOk":             {count(readpref.Secondary()), "node is recovering"},
		"a count without secondaryOk":          {count(nil), "not writable primary"},
		"a count without secondaryOk, capital": {count(nil), "Not Master and slaveOk=false"},
	} {
		for _, reply := range []bson.D{
			{{Key: "ok", Value: 0}, {Key: "errmsg", Value: k.text}},
			{{Key: "errmsg", Value: k.text}, {Key: "more", Value: 1}, {Key: "ok", Value: 0.0}},
		} {
			t.Run(name, func(t *testing.T) {
				var unknown []event.Member // told by one goroutine, the publisher's
				s := settings{cluster: func(c *cluster.Config) {
					c.Monitor = &event.Monitor{TopologyChanged: func(e *event.TopologyEvent) {
						if e.Type == event.MemberUpdated && e.MemberAfter.Kind == event.Unknown {
							unknown = append(unknown, e.MemberAfter)
						}
					}}
				}}
				deploy(t, s, func(t *testing.T, d *deployment) {
					run(t, d, find())
					time.Sleep(time.Second)
					for _, m := range d.members {
						m.script(answer{reply: reply})
					}
					err := d.x.Run(t.Context(), k.op)
					e, ok := err.(*mongoerr.Error)
					if !ok || !mongoerr.IsStateChange(err) {
						t.Fatalf("error %v", err)
					}
					synctest.Wait() // for the publisher; the member was checked at once and may be known again
					if len(unknown) != 1 || unknown[0].Address != e.Server || !mongoerr.IsStateChange(unknown[0].LastError) ||
						!strings.Contains(unknown[0].LastError.Error(), k.text) {
						t.Errorf("after an error of %s these became Unknown: %v", e.Server, unknown)
					}
				})
			})
		}
	}
}

func mongoses(addrs ...string) settings {
	s := settings{roles: map[string]string{}}
	for _, a := range addrs {
		s.roles[a] = "mongos"
	}
	return s
}

// TestProseShardedRetries are the prose tests 2.1 and 2.2 of retryable reads, 4 and 5 of retryable writes: the retry goes to
// another mongos if there is one. They run against scripted ones, since no embedded set is a sharded cluster. Broken by a
// retry that selects without regard to the failure, or that will have none but another mongos.
func TestProseShardedRetries(t *testing.T) {
	fail := failure(mongoerr.CodeHostUnreachable, "HostUnreachable", mongoerr.LabelRetryableWrite)
	for name, op := range map[string]func() *operation.Op{"reads 2": find, "writes 4 and 5": insert} {
		t.Run(name+", another", func(t *testing.T) {
			deploy(t, mongoses("a:1", "b:1"), func(t *testing.T, d *deployment) {
				run(t, d, op())
				synctest.Wait() // both are known
				d.a.commands()
				d.b.commands()
				for range 20 { // chance alone would go to both every second time
					d.a.script(fail)
					d.b.script(fail)
					if err := d.x.Run(t.Context(), op()); mongoerr.Code(err) != mongoerr.CodeHostUnreachable {
						t.Fatal(err)
					}
					if na, nb := len(d.a.commands()), len(d.b.commands()); na != 1 || nb != 1 {
						t.Fatalf("%d attempts at one, %d at the other", na, nb)
					}
				}
			})
		})
		t.Run(name+", the same", func(t *testing.T) {
			deploy(t, mongoses("a:1"), func(t *testing.T, d *deployment) {
				d.a.script(fail)
				run(t, d, op())
				if n := len(d.a.commands()); n != 2 {
					t.Errorf("%d attempts", n)
				}
			})
		})
	}
}

// TestProseRetryableWrites1StorageEngineWithoutRetryableWrites has a scripted server, for the engine is no more. Broken by
// leaving the server's words, which do not tell what to do.
func TestProseRetryableWrites1StorageEngineWithoutRetryableWrites(t *testing.T) {
	refusal := answer{reply: bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 20}, {Key: "codeName", Value: "IllegalOperation"},
		{Key: "errmsg", Value: "Transaction numbers are only allowed on a replica set member or mongos"}}}
	deploy(t, settings{}, func(t *testing.T, d *deployment) {
		d.a.script(refusal)
		err := d.x.Run(t.Context(), insert())
		if mongoerr.Code(err) != 20 || !strings.Contains(err.Error(),
			"This MongoDB deployment does not support retryable writes. Please add retryWrites=false to your connection string.") {
			t.Errorf("error %v", err)
		}
		if n := len(d.a.commands()); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

// overloadedServer says that it was too busy to look at a command.
func overloadedServer(more ...bson.E) answer {
	a := failure(462, "IngressRequestRateLimitExceeded", mongoerr.LabelSystemOverloaded, mongoerr.LabelRetryable)
	a.reply = append(a.reply, more...)
	return a
}

// TestProseBackpressure are the prose tests of client backpressure: how often an overloaded server is asked again, and
// after which pauses. Broken by another number, or by pauses that do not grow, do not scatter, or ignore the server's.
func TestProseBackpressure(t *testing.T) {
	for name, k := range map[string]struct {
		chance float64
		most   *int
		more   []bson.E
		sent   int
		took   time.Duration
	}{
		"1 without chance":               {0, nil, nil, 3, 0},
		"1 with the longest pauses":      {1, nil, nil, 3, 600 * time.Millisecond},
		"1 with half of them":            {0.5, nil, nil, 3, 300 * time.Millisecond},
		"3 three attempts":               {0, nil, nil, 3, 0},
		"4 maxAdaptiveRetries 1":         {1, new(1), nil, 2, 200 * time.Millisecond},
		"4 maxAdaptiveRetries 0":         {1, new(0), nil, 1, 0},
		"many":                           {1, new(9), nil, 10, (200+400+800+1600+3200+6400)*time.Millisecond + 3*10*time.Second},
		"5 a base that the server tells": {1, nil, []bson.E{{Key: "baseBackoffMS", Value: int32(10)}}, 3, 60 * time.Millisecond},
		"a base that makes no sense":     {1, nil, []bson.E{{Key: "baseBackoffMS", Value: int32(-1)}}, 3, 600 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings{exec: func(c *operation.Config) {
				c.Chance, c.MaxAdaptiveRetries = func() float64 { return k.chance }, k.most
			}}
			deploy(t, s, func(t *testing.T, d *deployment) {
				run(t, d, find())
				d.a.commands()
				for range 20 {
					d.a.script(overloadedServer(k.more...))
				}
				start := time.Now()
				err := d.x.Run(t.Context(), insert())
				if !mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded) || !mongoerr.HasLabel(err, mongoerr.LabelRetryable) {
					t.Errorf("error %v", err)
				}
				if n, took := len(d.a.commands()), time.Since(start); n != k.sent || took != k.took {
					t.Errorf("%d attempts in %v, want %d in %v", n, took, k.sent, k.took)
				}
			})
		})
	}
}

// TestOverloadedServerIsAskedAgainWhateverTheCommand, if the client's options allow retries of such commands.
func TestOverloadedServerIsAskedAgainWhateverTheCommand(t *testing.T) {
	kind := func(k operation.Kind) *operation.Op {
		return &operation.Op{Name: "x", DB: "shop", Kind: k, Append: named("x")}
	}
	outMerge := kind(operation.Read)
	outMerge.OutMerge = true
	for name, k := range map[string]struct {
		op            *operation.Op
		reads, writes bool
		again         bool
	}{
		"getMore":                              {kind(operation.Read), true, false, true},
		"getMore without retryReads":           {kind(operation.Read), false, true, false},
		"update of many":                       {kind(operation.Write), false, true, true},
		"update of many without retryWrites":   {kind(operation.Write), true, false, false},
		"aggregate into a collection":          {outMerge, false, true, true},
		"runCommand":                           {kind(operation.Command), true, true, true},
		"runCommand without one of the two":    {kind(operation.Command), true, false, false},
		"runCommand without the other":         {kind(operation.Command), false, true, false},
		"insert, which is retryable, with all": {insert(), true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings{exec: func(c *operation.Config) { c.RetryReads, c.RetryWrites = k.reads, k.writes }}
			deploy(t, s, func(t *testing.T, d *deployment) {
				d.a.script(overloadedServer())
				err := d.x.Run(t.Context(), k.op)
				got := d.a.commands()
				if (err == nil) != k.again || (len(got) == 2) != k.again {
					t.Errorf("sent %d times: %v", len(got), err)
				}
				if len(got) == 2 && string(got[0].body.Lookup("txnNumber").Value) != string(got[1].body.Lookup("txnNumber").Value) {
					t.Error("the second attempt has another transaction number")
				}
			})
		})
	}
}

// TestPauseThatOutlastsTheContextIsNotMade: the caller learns of the overload while there is time.
func TestPauseThatOutlastsTheContextIsNotMade(t *testing.T) {
	s := settings{exec: func(c *operation.Config) { c.Chance = func() float64 { return 1 } }}
	deploy(t, s, func(t *testing.T, d *deployment) {
		run(t, d, find())
		d.a.script(overloadedServer(), overloadedServer())
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := d.x.Run(ctx, insert()) // 200 ms are there, 400 ms more are not
		if took := time.Since(start); took != 200*time.Millisecond || !mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded) {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// TestServerThatShutsDownDuringALoginIsRetried: the code counts, though no server labels a failed handshake, and nobody
// takes it for a wrong password.
func TestServerThatShutsDownDuringALoginIsRetried(t *testing.T) {
	s := settings{cluster: func(c *cluster.Config) { c.Conn.Credential = credential }}
	for name, op := range map[string]func() *operation.Op{"read": find, "write": insert} {
		t.Run(name, func(t *testing.T) {
			deploy(t, s, func(t *testing.T, d *deployment) {
				for range 9 { // every attempt meets it, so that the last one's error is seen
					d.a.script(failure(mongoerr.CodeShutdownInProgress, "ShutdownInProgress"))
				}
				err := d.x.Run(t.Context(), op())
				if mongoerr.Code(err) != mongoerr.CodeShutdownInProgress || mongoerr.IsAuth(err) || !mongoerr.IsStateChange(err) {
					t.Errorf("error %v", err)
				}
				if e := err.(*mongoerr.Error); e.Attempts != 2 || e.Stage != mongoerr.StageAuth || e.HasLabel(mongoerr.LabelRetryableWrite) != (name == "write") {
					t.Errorf("%d attempts, stage %s, labels %v: %v", e.Attempts, e.Stage, e.Labels, err)
				}
			})
		})
	}
}

// TestWriteIsNotRepeatedAtAServerThatWouldNotNotice: without sessions, or without an oplog, a server cannot tell that it
// has done the write before.
func TestWriteIsNotRepeatedAtAServerThatWouldNotNotice(t *testing.T) {
	without := func(m *member) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.hello = slices.DeleteFunc(m.hello, func(e bson.E) bool { return e.Key == "logicalSessionTimeoutMinutes" })
	}
	t.Run("from the start", func(t *testing.T) {
		deploy(t, settings{}, func(t *testing.T, d *deployment) {
			without(d.a)
			d.a.script(answer{hangUp: true})
			err := d.x.Run(t.Context(), insert())
			got := d.a.commands()
			if !mongoerr.IsNetwork(err) || mongoerr.HasLabel(err, mongoerr.LabelRetryableWrite) || len(got) != 1 || got[0].has("txnNumber") {
				t.Errorf("sent %d times: %v", len(got), err)
			}
		})
	})
	t.Run("at the second attempt", func(t *testing.T) {
		deploy(t, settings{}, func(t *testing.T, d *deployment) {
			d.a.script(answer{before: func() { without(d.a) }, hangUp: true})
			err := d.x.Run(t.Context(), insert())
			if got := d.a.commands(); !mongoerr.IsNetwork(err) || len(got) != 1 {
				t.Errorf("sent %d times: %v", len(got), err)
			}
		})
	})
}
