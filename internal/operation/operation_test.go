package operation_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/internal/session"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

func named(name string) func([]byte, operation.Target) ([]byte, error) {
	return func(dst []byte, _ operation.Target) ([]byte, error) {
		return bson.AppendString(dst, name, "people"), nil
	}
}

func find() *operation.Op {
	return &operation.Op{Name: "find", DB: "shop", Coll: "people", Kind: operation.Read, Append: named("find"), Retryable: true}
}

func insert() *operation.Op {
	return &operation.Op{Name: "insert", DB: "shop", Coll: "people", Kind: operation.Write, Append: named("insert"), Retryable: true}
}

func run(t *testing.T, d *deployment, op *operation.Op) {
	t.Helper()
	if err := d.x.Run(t.Context(), op); err != nil {
		t.Fatalf("%s: %v", op.Name, err)
	}
}

// only is the one command that a member received.
func only(t *testing.T, m *member) command {
	t.Helper()
	got := m.commands()
	if len(got) != 1 {
		t.Fatalf("%s received %d commands, want 1", m.addr, len(got))
	}
	return got[0]
}

func keys(body bson.Raw) (out []string) {
	for key := range body.All() {
		out = append(out, key)
	}
	return out
}

func TestCommandCarriesItsEnvelope(t *testing.T) {
	deploy(t, settings{}, func(t *testing.T, d *deployment) {
		op := find()
		op.ReadConcern = concern.ReadMajority()
		var r operation.Result
		op.Decode = func(_ bson.Raw, res operation.Result) error { r = res; return nil }
		run(t, d, op)
		got := only(t, d.a)
		if want := []string{"find", "$db", "lsid", "readConcern"}; !slices.Equal(keys(got.body), want) {
			t.Errorf("the read has %v, want %v", keys(got.body), want)
		}
		if r.Server != "a:1" || r.Kind != event.RSPrimary || r.Attempts != 1 || r.Session == nil || r.Target.MaxWire != 21 {
			t.Errorf("result %+v", r)
		}
		w := insert()
		w.WriteConcern = concern.Majority()
		w.Sequence = func(dst []byte, _ operation.Target) ([]byte, error) {
			dst, start := wire.AppendSequenceStart(dst, "documents")
			dst, err := bson.Append(dst, bson.D{{Key: "x", Value: 1}})
			return wire.EndSequence(dst, start), err
		}
		run(t, d, w)
		got = only(t, d.a)
		if want := []string{"insert", "$db", "lsid", "txnNumber", "writeConcern"}; !slices.Equal(keys(got.body), want) {
			t.Errorf("the write has %v, want %v", keys(got.body), want)
		}
		if len(got.seqs) != 1 || got.seqs[0].ID != "documents" || len(got.seqs[0].Docs) != 1 {
			t.Errorf("sequences %v", got.seqs)
		}
	})
}

func TestReadPreferenceIsSentWhereTheMemberMustSeeIt(t *testing.T) {
	set := map[string]string{"a:1": "primary", "b:1": "secondary", "c:1": "secondary"}
	for name, tc := range map[string]struct {
		roles  map[string]string
		direct bool
		kind   operation.Kind
		pref   *readpref.ReadPref
		want   string // mode; "" for none
	}{
		"primary of a set":            {set, false, operation.Read, nil, ""},
		"secondary of a set":          {set, false, operation.Read, readpref.SecondaryPreferred(), "secondaryPreferred"},
		"command on a secondary":      {set, false, operation.Command, readpref.Secondary(), "secondary"},
		"write":                       {set, false, operation.Write, readpref.Nearest(), ""},
		"mongos, primary":             {map[string]string{"a:1": "mongos"}, false, operation.Read, readpref.Primary(), ""},
		"mongos, nearest":             {map[string]string{"a:1": "mongos"}, false, operation.Read, readpref.Nearest(), "nearest"},
		"standalone":                  {map[string]string{"a:1": "standalone"}, false, operation.Read, readpref.Secondary(), ""},
		"direct to a secondary":       {map[string]string{"a:1": "secondary"}, true, operation.Read, nil, "primaryPreferred"},
		"direct to a secondary, mode": {map[string]string{"a:1": "secondary"}, true, operation.Read, readpref.Secondary(), "secondary"},
		"direct to a mongos":          {map[string]string{"a:1": "mongos"}, true, operation.Read, nil, ""},
		"direct write":                {map[string]string{"a:1": "primary"}, true, operation.Write, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings{roles: tc.roles, cluster: func(c *cluster.Config) { c.Topology.Direct = tc.direct }}
			deploy(t, s, func(t *testing.T, d *deployment) {
				op := find()
				op.Kind, op.ReadPref = tc.kind, tc.pref
				run(t, d, op)
				var got []command
				for _, m := range d.members {
					got = append(got, m.commands()...)
				}
				mode, _ := got[0].body.Lookup("$readPreference", "mode").StringValueOK()
				if len(got) != 1 || mode != tc.want {
					t.Errorf("%d commands, mode %q, want %q", len(got), mode, tc.want)
				}
			})
		})
	}
}

func TestRetryableReadIsTriedOnceMoreOnAnotherMember(t *testing.T) {
	deploy(t, settings{}, func(t *testing.T, d *deployment) {
		d.a.script(answer{hangUp: true})
		d.b.script(answer{hangUp: true}, answer{reply: okReply()})
		d.c.script(answer{hangUp: true}, answer{reply: okReply()})
		op := find()
		op.ReadPref = readpref.Secondary()
		var r operation.Result
		op.Decode = func(_ bson.Raw, res operation.Result) error { r = res; return nil }
		err := d.x.Run(t.Context(), op)
		if !mongoerr.IsNetwork(err) {
			t.Fatalf("both secondaries hung up, yet: %v", err)
		}
		if e := err.(*mongoerr.Error); e.Attempts != 2 || e.Op != "find" || e.NS != "shop.people" || e.Server == "" || e.Stage != mongoerr.StageRead {
			t.Errorf("error %#v", e)
		}
		time.Sleep(time.Second)
		run(t, d, op)
		if r.Attempts != 1 {
			t.Errorf("%d attempts", r.Attempts)
		}
	})
}

func TestRetryableWriteKeepsItsNumberAndWaitsForTheElection(t *testing.T) {
	deploy(t, settings{}, func(t *testing.T, d *deployment) {
		run(t, d, insert())
		first, _ := only(t, d.a).body.Lookup("txnNumber").Int64OK()
		d.a.script(answer{before: func() {
			d.a.crash()
			time.AfterFunc(3*time.Second, func() { d.b.become("primary") })
		}, hangUp: true})
		start := time.Now()
		op := insert()
		var r operation.Result
		op.Decode = func(_ bson.Raw, res operation.Result) error { r = res; return nil }
		run(t, d, op)
		if took := time.Since(start); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("the election took 3 s, the write %v", took)
		}
		if r.Attempts != 2 || r.Server != "b:1" {
			t.Errorf("result %+v", r)
		}
		before, after := only(t, d.a), only(t, d.b)
		n1, _ := before.body.Lookup("txnNumber").Int64OK()
		n2, _ := after.body.Lookup("txnNumber").Int64OK()
		if n1 != first+1 || n2 != n1 {
			t.Errorf("transaction numbers %d, then %d, then %d", first, n1, n2)
		}
		if !bytes.Equal(before.body.Lookup("lsid").Value, after.body.Lookup("lsid").Value) {
			t.Error("the retry came in another session")
		}
	})
}

func TestWriteToAFormerPrimaryFindsTheNewOne(t *testing.T) {
	deploy(t, settings{}, func(t *testing.T, d *deployment) {
		run(t, d, insert())
		d.a.commands()
		a := failure(mongoerr.CodeNotWritablePrimary, "NotWritablePrimary", mongoerr.LabelRetryableWrite)
		a.before = func() { d.a.become("secondary"); d.c.become("primary") }
		d.a.script(a)
		run(t, d, insert())
		if only(t, d.a).name != "insert" || only(t, d.c).name != "insert" {
			t.Error("the write did not go to both")
		}
	})
}

func TestNothingIsRetriedThatMustNotBe(t *testing.T) {
	off := func(c *operation.Config) { c.RetryReads, c.RetryWrites = false, false }
	label := mongoerr.LabelRetryableWrite
	for name, tc := range map[string]struct {
		op     func() *operation.Op
		exec   func(*operation.Config)
		answer answer
		label  bool
	}{
		"read, option off":            {find, off, answer{hangUp: true}, false},
		"write, option off":           {insert, off, answer{hangUp: true}, false},
		"write not retryable":         {func() *operation.Op { o := insert(); o.Retryable = false; return o }, nil, answer{hangUp: true}, false},
		"getMore":                     {func() *operation.Op { o := find(); o.Retryable = false; return o }, nil, answer{hangUp: true}, false},
		"runCommand":                  {func() *operation.Op { o := find(); o.Kind = operation.Command; return o }, nil, answer{hangUp: true}, false},
		"duplicate key":               {insert, nil, failure(11000, "DuplicateKey"), false},
		"write, server gave no label": {insert, nil, failure(mongoerr.CodeNotWritablePrimary, "NotWritablePrimary"), false},
		"read, wrong command":         {find, nil, failure(59, "CommandNotFound"), false},
		"labelled, but option off":    {insert, off, failure(91, "ShutdownInProgress", label), true},
	} {
		t.Run(name, func(t *testing.T) {
			deploy(t, settings{exec: tc.exec}, func(t *testing.T, d *deployment) {
				d.a.script(tc.answer)
				err := d.x.Run(t.Context(), tc.op())
				if err == nil {
					t.Fatal("no error")
				}
				if n := len(d.a.commands()); n != 1 {
					t.Errorf("sent %d times", n)
				}
				if mongoerr.HasLabel(err, label) != tc.label {
					t.Errorf("label: %v", !tc.label)
				}
			})
		})
	}
}

// TestErrorAfterTwoFailedAttempts: the last one that may have written, else the first.
func TestErrorAfterTwoFailedAttempts(t *testing.T) {
	label, none := mongoerr.LabelRetryableWrite, mongoerr.LabelNoWritesPerformed
	lost := answer{reply: okReply(bson.E{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 91}, {Key: "errmsg", Value: "shutting down"}}},
		bson.E{Key: "errorLabels", Value: []string{label}})}
	for name, tc := range map[string]struct {
		first, second answer
		code          int32
	}{
		"second may have written":    {failure(91, "First", label, none), failure(189, "Second", label), 189},
		"second wrote nothing":       {lost, failure(10107, "Second", label, none), 91},
		"neither wrote":              {failure(91, "First", label, none), failure(189, "Second", label, none), 91},
		"second is of another sort":  {failure(91, "First", label), failure(11000, "Second"), 11000},
		"first wrote, second is old": {failure(91, "First", label), failure(20, "Second", none), 91},
	} {
		t.Run(name, func(t *testing.T) {
			deploy(t, settings{}, func(t *testing.T, d *deployment) {
				d.a.script(tc.first, tc.second)
				err := d.x.Run(t.Context(), insert())
				if got := mongoerr.Code(err); got != tc.code {
					t.Errorf("raised %d, want %d: %v", got, tc.code, err)
				}
				if n := len(d.a.commands()); n != 2 {
					t.Errorf("sent %d times", n)
				}
			})
		})
	}
}

func TestErrorOfTheFirstAttemptIsRaisedWhenNobodyServesTheSecond(t *testing.T) {
	s := settings{cluster: func(c *cluster.Config) { c.ServerSelectionTimeout = 2 * time.Second }}
	deploy(t, s, func(t *testing.T, d *deployment) {
		run(t, d, insert())
		d.a.script(answer{before: d.a.crash, hangUp: true})
		start := time.Now()
		err := d.x.Run(t.Context(), insert())
		if !mongoerr.IsNetwork(err) || mongoerr.IsSelection(err) || !mongoerr.HasLabel(err, mongoerr.LabelRetryableWrite) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("waited %v for a second attempt", took)
		}
		d.a.mu.Lock()
		d.a.refuse = nil
		d.a.mu.Unlock()
		time.Sleep(time.Second)
		d.a.script(answer{before: d.a.crash, hangUp: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = d.x.Run(ctx, insert())
		if !errors.Is(err, context.DeadlineExceeded) || !mongoerr.IsTimeout(err) {
			t.Errorf("the context ended while waiting for a second attempt: %v", err)
		}
		for _, part := range []string{"no member for a second attempt", "a:1", "closed"} { // what is lacking, and what went before
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v does not say %q", err, part)
			}
		}
	})
}

func TestCancelFreesTheCallerAtOnceAndSaysNothingAboutTheMember(t *testing.T) {
	deploy(t, settings{}, func(t *testing.T, d *deployment) {
		d.a.script(answer{pause: time.Minute, reply: okReply()})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		err := d.x.Run(ctx, insert())
		if !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if e := err.(*mongoerr.Error); e.Attempts != 1 {
			t.Errorf("%d attempts", e.Attempts)
		}
		if s := d.cluster.Description().Server("a:1"); !s.Kind.Known() {
			t.Errorf("the member is %v: %v", s.Kind, s.Err)
		}
		run(t, d, insert())
		time.Sleep(2 * time.Minute)
	})
}

func TestFailedLoginIsNotRetried(t *testing.T) {
	s := settings{cluster: func(c *cluster.Config) { c.Conn.Credential = credential }}
	deploy(t, s, func(t *testing.T, d *deployment) {
		var wg sync.WaitGroup
		start := time.Now()
		for range 5 { // those who wait for the same pool learn of it too
			wg.Go(func() {
				err := d.x.Run(t.Context(), insert())
				if !mongoerr.IsAuth(err) {
					t.Errorf("error %v", err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); took > time.Second {
			t.Errorf("told after %v", took)
		}
	})
}

func TestUnacknowledgedWriteHasNoSessionAndDoesNotWait(t *testing.T) {
	deploy(t, settings{}, func(t *testing.T, d *deployment) {
		op := insert()
		op.WriteConcern = concern.Unacknowledged()
		op.Decode = func(bson.Raw, operation.Result) error { t.Error("there is a reply"); return nil }
		run(t, d, op)
		time.Sleep(time.Millisecond)
		got := only(t, d.a)
		if got.flags&wire.MoreToCome == 0 || got.has("lsid") || got.has("txnNumber") || !got.has("writeConcern") {
			t.Errorf("flags %x, keys %v", got.flags, keys(got.body))
		}
		run(t, d, insert()) // on the same connection
	})
}

func TestSessionsAreUsedAgainUntilAConnectionBreaks(t *testing.T) {
	deploy(t, settings{}, func(t *testing.T, d *deployment) {
		lsid := func() string { return string(only(t, d.a).body.Lookup("lsid").Value) }
		run(t, d, find())
		first := lsid()
		run(t, d, find())
		if lsid() != first {
			t.Error("the second operation took a new session")
		}
		d.a.script(answer{hangUp: true})
		op := find()
		op.Retryable = false
		if err := d.x.Run(t.Context(), op); err == nil {
			t.Fatal("no error")
		}
		d.a.commands()
		run(t, d, find())
		if lsid() == first {
			t.Error("a session is used again after its connection broke")
		}
	})
}

func TestCursorKeepsItsSessionAndItsMember(t *testing.T) {
	deploy(t, settings{}, func(t *testing.T, d *deployment) {
		op := find()
		var kept *session.Session
		op.Decode = func(_ bson.Raw, r operation.Result) error {
			r.Session.Keep()
			kept = r.Session
			return nil
		}
		run(t, d, op)
		id := bytes.Clone(kept.ID())
		run(t, d, insert())
		if got := d.a.commands(); bytes.Equal(got[1].body.Lookup("lsid").Value, id) {
			t.Error("a session that a cursor keeps was used by another operation")
		}
		d.a.become("secondary") // no longer suitable, but the cursor is there
		time.Sleep(11 * time.Second)
		more := &operation.Op{Name: "getMore", DB: "shop", Kind: operation.Read, Append: named("getMore"), Address: "a:1", Session: kept}
		run(t, d, more)
		if got := only(t, d.a); !bytes.Equal(got.body.Lookup("lsid").Value, id) {
			t.Error("getMore came in another session")
		}
		d.x.Release(kept)
	})
}

func TestClusterTimeIsGossipedAndOperationTimeTold(t *testing.T) {
	deploy(t, settings{}, func(t *testing.T, d *deployment) {
		at := func(n uint32) bson.E {
			return bson.E{Key: "$clusterTime", Value: bson.D{{Key: "clusterTime", Value: bson.Timestamp{T: n, I: 1}}}}
		}
		d.a.script(answer{reply: okReply(at(5), bson.E{Key: "operationTime", Value: bson.Timestamp{T: 5, I: 1}})},
			answer{reply: append(failure(59, "CommandNotFound").reply, at(7))}, answer{reply: okReply(at(6))})
		op := find()
		var r operation.Result
		op.Decode = func(_ bson.Raw, res operation.Result) error { r = res; return nil }
		run(t, d, op)
		if r.OperationTime != (bson.Timestamp{T: 5, I: 1}) {
			t.Errorf("operation time %v", r.OperationTime)
		}
		_ = d.x.Run(t.Context(), find())
		run(t, d, find())
		run(t, d, find())
		var sent []uint32
		for _, c := range d.a.commands() {
			n, _, _ := c.body.Lookup("$clusterTime", "clusterTime").TimestampOK()
			sent = append(sent, n)
		}
		if !slices.Equal(sent, []uint32{0, 5, 7, 7}) {
			t.Errorf("cluster times sent: %v", sent)
		}
	})
}

func TestEndSessionsNamesTheSessionsThatWereUsed(t *testing.T) {
	deploy(t, settings{}, func(t *testing.T, d *deployment) {
		run(t, d, find())
		lsid := only(t, d.a).body.Lookup("lsid").Value
		d.x.EndSessions(t.Context())
		got := only(t, d.a)
		first := got.body.Lookup("endSessions", "0").Value
		if got.name != "endSessions" || !bytes.Equal(first, lsid) {
			t.Errorf("sent %v", got.body)
		}
		d.x.EndSessions(t.Context())
		if n := len(d.a.commands()); n != 0 {
			t.Errorf("%d more commands though no session is left", n)
		}
	})
}

func TestEndSessionsDoesNotWaitForAMember(t *testing.T) {
	deploy(t, settings{}, func(t *testing.T, d *deployment) {
		run(t, d, find())
		d.a.script(answer{pause: time.Minute, hangUp: true})
		start := time.Now()
		d.x.EndSessions(t.Context())
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("waited %v for a member that hangs", took)
		}
		time.Sleep(2 * time.Minute) // the script must come to its end
	})
}

func TestTooLargeIsRefusedBeforeItIsSent(t *testing.T) {
	s := settings{}
	deploy(t, s, func(t *testing.T, d *deployment) {
		for _, m := range d.members {
			m.hello = append(m.hello, bson.E{Key: "maxBsonObjectSize", Value: 1000}, bson.E{Key: "maxMessageSizeBytes", Value: 30_000})
		}
		sized := func(n int) *operation.Op {
			op := insert()
			op.Append = func(dst []byte, _ operation.Target) ([]byte, error) {
				dst = bson.AppendString(dst, "insert", "people")
				return bson.AppendBinary(dst, "b", 0, make([]byte, n)), nil
			}
			return op
		}
		run(t, d, sized(1000+operation.Envelope-200))
		d.a.commands()
		err := d.x.Run(t.Context(), sized(1000+operation.Envelope))
		if mongoerr.Code(err) != mongoerr.CodeBSONObjectTooLarge || !strings.Contains(err.Error(), "at most 1000") {
			t.Errorf("error %v", err)
		}
		op := insert()
		op.Sequence = func(dst []byte, _ operation.Target) ([]byte, error) {
			dst, start := wire.AppendSequenceStart(dst, "documents")
			for range 40 {
				doc, at := bson.BeginDocument(dst)
				doc = bson.AppendBinary(doc, "b", 0, make([]byte, 900))
				dst = bson.EndDocument(doc, at)
			}
			return wire.EndSequence(dst, start), nil
		}
		err = d.x.Run(t.Context(), op)
		if mongoerr.Code(err) != mongoerr.CodeBSONObjectTooLarge || !strings.Contains(err.Error(), "at most 30000") {
			t.Errorf("error %v", err)
		}
		if n := len(d.a.commands()); n != 0 {
			t.Errorf("%d commands were sent", n)
		}
		run(t, d, insert()) // the connection is fit for use
	})
}

func TestErrorsSayWhatTheCallWas(t *testing.T) {
	deploy(t, settings{}, func(t *testing.T, d *deployment) {
		bad := errors.New("a field of type chan")
		op := insert()
		op.Append = func([]byte, operation.Target) ([]byte, error) { return nil, bad }
		err := d.x.Run(t.Context(), op)
		var e *mongoerr.Error
		if !errors.As(err, &e) || !errors.Is(err, bad) || e.Stage != mongoerr.StageEncode || e.Op != "insert" || e.NS != "shop.people" {
			t.Errorf("error %#v", err)
		}
		op = find()
		op.Decode = func(bson.Raw, operation.Result) error { return bad }
		err = d.x.Run(t.Context(), op)
		if !errors.As(err, &e) || !errors.Is(err, bad) || e.Stage != mongoerr.StageDecode || e.Server != "a:1" {
			t.Errorf("error %#v", err)
		}
		mine := &mongoerr.Error{Stage: mongoerr.StageDecode, Message: "mine"}
		op.Decode = func(bson.Raw, operation.Result) error { return mine }
		if err = d.x.Run(t.Context(), op); err != mine {
			t.Errorf("error %#v", err)
		}
		d.a.script(failure(59, "CommandNotFound"))
		err = d.x.Run(t.Context(), op)
		if !errors.As(err, &e) || e.Code != 59 || e.Server != "a:1" || len(e.Response) == 0 || e.Attempts != 1 {
			t.Errorf("error %#v", err)
		}
		op.ReadPref, err = readpref.New(readpref.PrimaryMode, readpref.Tags("dc", "east"))
		if err == nil {
			t.Fatal("a primary with tags was accepted")
		}
		if err := d.x.Run(t.Context(), &operation.Op{}); !mongoerr.IsConfig(err) {
			t.Errorf("error %v", err)
		}
	})
}

func TestRunAfterCloseFails(t *testing.T) {
	deploy(t, settings{}, func(t *testing.T, d *deployment) {
		run(t, d, find())
		d.cluster.Close(t.Context())
		if err := d.x.Run(t.Context(), find()); !errors.Is(err, mongoerr.ErrClientClosed) {
			t.Errorf("error %v", err)
		}
	})
}

// TestShardedRetryGoesToAnotherMongos: the one that failed is asked again only if there is no other.
func TestShardedRetryGoesToAnotherMongos(t *testing.T) {
	roles := map[string]string{"a:1": "mongos", "b:1": "mongos"}
	deploy(t, settings{roles: roles}, func(t *testing.T, d *deployment) {
		run(t, d, find())
		synctest.Wait() // both are known
		d.a.commands()
		d.b.commands()
		for range 10 {
			fail := failure(mongoerr.CodeHostUnreachable, "HostUnreachable")
			d.a.script(fail, answer{reply: okReply()})
			d.b.script(fail, answer{reply: okReply()})
			_ = d.x.Run(t.Context(), find())
			if na, nb := len(d.a.commands()), len(d.b.commands()); na != 1 || nb != 1 {
				t.Fatalf("the attempts went %d times to one and %d times to the other", na, nb)
			}
			d.a.mu.Lock()
			d.b.mu.Lock()
			d.a.answers, d.b.answers = nil, nil
			d.a.mu.Unlock()
			d.b.mu.Unlock()
		}
	})
}

// TestWaiterOfAClearedPoolGoesElsewhere: nothing was sent, so that even a write that must not be repeated may go on.
func TestWaiterOfAClearedPoolGoesElsewhere(t *testing.T) {
	s := settings{cluster: func(c *cluster.Config) { c.MaxPoolSize = new(1) }}
	deploy(t, s, func(t *testing.T, d *deployment) {
		run(t, d, insert())
		d.a.commands()
		d.a.script(answer{pause: time.Second, hangUp: true, before: func() {
			time.AfterFunc(900*time.Millisecond, func() { d.a.become("secondary"); d.b.become("primary") })
		}})
		var wg sync.WaitGroup
		wg.Go(func() {
			op := insert()
			op.Retryable = false
			if err := d.x.Run(t.Context(), op); !mongoerr.IsNetwork(err) {
				t.Errorf("the one whose connection broke: %v", err)
			}
		})
		time.Sleep(time.Millisecond)
		for range 5 {
			wg.Go(func() {
				op := insert()
				op.Retryable = false
				attempts := 0
				op.Decode = func(_ bson.Raw, r operation.Result) error { attempts = r.Attempts; return nil }
				if err := d.x.Run(t.Context(), op); err != nil || attempts != 1 {
					t.Errorf("one who waited: %d attempts, %v", attempts, err)
				}
			})
		}
		wg.Wait()
		if na, nb := len(d.a.commands()), len(d.b.commands()); na != 1 || nb != 5 {
			t.Errorf("%d commands at the old primary, %d at the new one", na, nb)
		}
	})
}
