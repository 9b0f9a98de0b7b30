package sextant_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset"
)

// The prose tests of "retryable reads" and "retryable writes", on fake time. Those of a sharded cluster and of a storage
// engine that is no more, which no embedded set is, stand in internal/operation with a scripted server.

// find reads a document that is not there.
func (b *bubble) find(t *testing.T, opts ...sextant.FindOneOptions) error {
	_, err := b.orders().FindOne(t.Context(), bson.D{{Key: "_id", Value: "none"}}, opts...)
	if errors.Is(err, sextant.ErrNoDocuments) {
		return nil
	}
	return err
}

var overload = []string{mongoerr.LabelRetryable, mongoerr.LabelSystemOverloaded}

// poolCleared runs two operations at the same time, of which the first fails as one of a server that shuts down and takes
// the pool with it, and wants both to succeed.
func poolCleared(t *testing.T, command string, labels []string, op func(b *bubble, t *testing.T) error) {
	inSet(t, func(c *sextant.Config) { c.MaxPoolSize = new(1) }, func(t *testing.T, b *bubble) {
		if err := b.cl.WaitReady(t.Context(), sextant.Want{Write: true}); err != nil {
			t.Fatal(err)
		}
		b.fail(t, 0, replset.FailCommand{Commands: []string{command}, Times: 1, ErrorCode: mongoerr.CodeShutdownInProgress,
			Block: time.Second, ErrorLabels: labels})
		from := time.Now()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if err := op(b, t); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		addr := b.set.Member(0).Addr()
		out, cleared, failed := b.log.pools(event.ConnectionCheckOut, addr, from), b.log.pools(event.PoolCleared, addr, from), b.log.pools(event.CheckOutFailed, addr, from)
		if len(out) == 0 || len(cleared) != 1 || len(failed) != 1 || failed[0].E.Reason != event.ReasonConnectionError {
			t.Fatalf("%d check-outs, cleared %v, failed %v", len(out), cleared, failed)
		}
		if out[0].At.After(cleared[0].At) || cleared[0].At.After(failed[0].At) {
			t.Error("the events came in another order")
		}
		if sent := b.log.sent(command, from); len(sent) != 3 {
			t.Errorf("%d commands were sent: %v", len(sent), sent)
		}
	})
}

// Broken by leaving those who wait for a connection to a cleared pool, or by counting their turning away as an attempt.
func TestProseRetryableReads1PoolCleared(t *testing.T) {
	poolCleared(t, "find", nil, func(b *bubble, t *testing.T) error { return b.find(t) })
}

// Broken as the one of reads is.
func TestProseRetryableWrites2PoolCleared(t *testing.T) {
	poolCleared(t, "insert", []string{mongoerr.LabelRetryableWrite}, func(b *bubble, t *testing.T) error { return b.insert(t) })
}

// Broken by a retry that goes back to the overloaded member (3.1), or that leaves it unasked (3.2, 3.3).
func TestProseRetryableReads3OverloadedMembersAreLeftWhenThatIsWanted(t *testing.T) {
	for name, k := range map[string]struct {
		retarget  bool
		labels    []string
		elsewhere bool
	}{
		"3.1 overload, with enableOverloadRetargeting":    {true, overload, true},
		"3.2 another error":                               {true, []string{mongoerr.LabelRetryable}, false},
		"3.3 overload, without enableOverloadRetargeting": {false, overload, false},
	} {
		t.Run(name, func(t *testing.T) {
			inSet(t, func(c *sextant.Config) {
				c.EnableOverloadRetargeting, c.ReadPreference = k.retarget, readpref.PrimaryPreferred()
			}, func(t *testing.T, b *bubble) {
				if err := b.find(t); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				b.fail(t, 0, replset.FailCommand{Commands: []string{"find"}, Times: 1, ErrorCode: mongoerr.CodeHostUnreachable, ErrorLabels: k.labels})
				from := time.Now()
				if err := b.find(t); err != nil {
					t.Error(err)
				}
				sent := b.log.sent("find", from)
				if len(sent) != 2 || !sent[0].failed || sent[1].failed || (sent[0].server != sent[1].server) != k.elsewhere {
					t.Errorf("commands %+v", sent)
				}
			})
		})
	}
}

// strained fails an operation once as overloaded and from then on otherwise, and returns its error and the commands.
func strained(t *testing.T, command string, labels []string, edit func(*sextant.Config), op func(b *bubble, t *testing.T) error) (sent []ranCommand) {
	inSet(t, edit, func(t *testing.T, b *bubble) {
		if err := b.cl.WaitReady(t.Context(), sextant.Want{Write: true}); err != nil {
			t.Fatal(err)
		}
		f := replset.FailCommand{Commands: []string{command}, Times: 1, ErrorCode: mongoerr.CodeHostUnreachable, ErrorLabels: append(labels, overload...)}
		b.fail(t, 0, f)
		b.log.after = func(name string, err error) {
			if name == command && mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded) {
				b.fail(t, 0, replset.FailCommand{Commands: []string{command}, ErrorCode: mongoerr.CodeHostUnreachable, ErrorLabels: append(labels, mongoerr.LabelRetryable)})
			}
		}
		from := time.Now()
		if err := op(b, t); mongoerr.Code(err) != mongoerr.CodeHostUnreachable {
			t.Errorf("error %v", err)
		}
		sent = b.log.sent(command, from)
	})
	return sent
}

// Broken by counting retries of another error apart from those of an overloaded server.
func TestProseRetryableReads4OverloadSetsTheNumberOfRetries(t *testing.T) {
	if sent := strained(t, "find", nil, nil, func(b *bubble, t *testing.T) error { return b.find(t) }); len(sent) != 3 {
		t.Errorf("%d commands", len(sent))
	}
	one := func(c *sextant.Config) { c.MaxAdaptiveRetries = new(1) }
	if sent := strained(t, "find", nil, one, func(b *bubble, t *testing.T) error { return b.find(t) }); len(sent) != 2 {
		t.Errorf("%d commands with maxAdaptiveRetries=1", len(sent))
	}
}

// Broken by a pause before every retry of an operation that has met an overloaded server.
func TestProseRetryableReads5NoPauseAfterOtherErrors(t *testing.T) {
	pauses(t, strained(t, "find", nil, nil, func(b *bubble, t *testing.T) error { return b.find(t) }))
}

// pauses wants a pause of at most 200 ms before the first retry, and none before the second.
func pauses(t *testing.T, sent []ranCommand) {
	t.Helper()
	if len(sent) != 3 {
		t.Fatalf("%d commands", len(sent))
	}
	if d := sent[1].begun.Sub(sent[0].ended); d == 0 || d > 200*time.Millisecond {
		t.Errorf("the first retry came after %v", d)
	}
	if d := sent[2].begun.Sub(sent[1].ended); d != 0 {
		t.Errorf("the second retry came after %v", d)
	}
}

// Broken by raising the last error, which hides that the write may have been done.
func TestProseRetryableWrites3WriteConcernErrorIsKept(t *testing.T) {
	inSet(t, nil, func(t *testing.T, b *bubble) {
		if err := b.cl.WaitReady(t.Context(), sextant.Want{Write: true}); err != nil {
			t.Fatal(err)
		}
		b.fail(t, 0, replset.FailCommand{Commands: []string{"insert"}, Times: 1, ErrorLabels: []string{mongoerr.LabelRetryableWrite},
			WriteConcernError: &replset.WriteConcernError{Code: mongoerr.CodeShutdownInProgress}})
		first := true
		b.log.after = func(name string, err error) {
			if name == "insert" && first {
				first = false
				b.fail(t, 0, replset.FailCommand{Commands: []string{"insert"}, Times: 1, ErrorCode: mongoerr.CodeNotWritablePrimary,
					ErrorLabels: []string{mongoerr.LabelRetryableWrite, mongoerr.LabelNoWritesPerformed}})
			}
		}
		from := time.Now()
		err := b.insert(t)
		if mongoerr.Code(err) != mongoerr.CodeShutdownInProgress || len(b.log.sent("insert", from)) != 2 {
			t.Errorf("%d commands, error %v", len(b.log.sent("insert", from)), err)
		}
	})
}

// Broken by raising always the first error, or always the last.
func TestProseRetryableWrites6TheErrorThatMayHaveWrittenIsRaised(t *testing.T) {
	none := append([]string{mongoerr.LabelNoWritesPerformed}, overload...)
	for name, k := range map[string]struct {
		first, then       []string // labels
		firstly, thereon  int32
		code              int32
		withoutNoneLabels bool
	}{
		"case 1: none says that it wrote nothing":  {overload, overload, 91, 10107, 10107, true},
		"case 2: all say that they wrote nothing":  {none, none, 91, 10107, 91, false},
		"case 3: the first may have written":       {overload, none, 91, 91, 91, true},
		"case 3, with another code for the others": {overload, none, 91, 10107, 91, true},
	} {
		t.Run(name, func(t *testing.T) {
			inSet(t, nil, func(t *testing.T, b *bubble) {
				if err := b.cl.WaitReady(t.Context(), sextant.Want{Write: true}); err != nil {
					t.Fatal(err)
				}
				b.fail(t, 0, replset.FailCommand{Commands: []string{"insert"}, Times: 1, ErrorCode: k.firstly, ErrorLabels: k.first})
				first := true
				b.log.after = func(name string, err error) {
					if name == "insert" && first {
						first = false
						b.fail(t, 0, replset.FailCommand{Commands: []string{"insert"}, ErrorCode: k.thereon, ErrorLabels: k.then})
					}
				}
				from := time.Now()
				err := b.insert(t)
				if mongoerr.Code(err) != k.code || k.withoutNoneLabels == mongoerr.HasLabel(err, mongoerr.LabelNoWritesPerformed) {
					t.Errorf("error %v, labels %v", err, err.(*mongoerr.Error).Labels)
				}
				if n := len(b.log.sent("insert", from)); n != 3 {
					t.Errorf("%d commands", n)
				}
			})
		})
	}
}

// Broken as number 4 of the reads.
func TestProseRetryableWrites6Case4OverloadSetsTheNumberOfRetries(t *testing.T) {
	labels := []string{mongoerr.LabelRetryableWrite}
	if sent := strained(t, "insert", labels, nil, func(b *bubble, t *testing.T) error { return b.insert(t) }); len(sent) != 3 {
		t.Errorf("%d commands", len(sent))
	}
}

// Broken as number 5 of the reads.
func TestProseRetryableWrites6Case5NoPauseAfterOtherErrors(t *testing.T) {
	pauses(t, strained(t, "insert", []string{mongoerr.LabelRetryableWrite}, nil, func(b *bubble, t *testing.T) error { return b.insert(t) }))
}
