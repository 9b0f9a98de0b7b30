package replset

import (
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// On fake time a delay is exact: eight far clients at once wait as long as one, and a near client not at all.
func TestDelayIsPerClientAndParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleSet(t, Options{})
		defer s.Close()
		const d = 60 * time.Millisecond
		if err := s.Delay(0, d, "far"); err != nil {
			t.Fatal(err)
		}
		near := dialRaw(t, s, 0, "near")
		defer near.nc.Close()
		far := make([]*raw, 8)
		for i := range far {
			far[i] = dialRaw(t, s, 0, "far")
			defer far[i].nc.Close()
		}
		ping := func(who string, c *raw, want time.Duration) {
			begun := time.Now()
			c.must(t, "admin", bson.D{{Key: "ping", Value: 1}})
			if took := time.Since(begun); took != want {
				t.Errorf("the %s client waited %v, not %v", who, took, want)
			}
		}
		ping("near", near, 0)
		var wg sync.WaitGroup
		for _, c := range far {
			wg.Go(func() { ping("far", c, d) })
		}
		wg.Wait()
		if err := s.Delay(0, 0, "far"); err != nil {
			t.Fatal(err)
		}
		ping("far", far[0], 0)
	})
}

func TestHungMemberAcceptsAndNeverAnswersAndIsReplaced(t *testing.T) {
	onFakeTime(t, Options{Members: 3}, func(t *testing.T, s *Set) {
		p := primaryIndex(t, s)
		old := dialRaw(t, s, p, "app")
		if err := s.Hang(p, true); err != nil {
			t.Fatal(err)
		}
		if err := old.send(0, "admin", bson.D{{Key: "ping", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		_ = old.nc.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := old.nc.Read(make([]byte, 1)); !isTimeout(err) {
			t.Errorf("a hung member answered, or hung up: %v", err)
		}
		within(t, 3*time.Second, "another primary", func() bool { q := s.Primary(); return q != nil && q.Index() != p })
		q := primaryIndex(t, s)
		dialRaw(t, s, q, "app").must(t, "t", insert(1, majority()))
		if err := s.Hang(p, false); err != nil {
			t.Fatal(err)
		}
		if _, err := old.receive(); err != nil {
			t.Errorf("after the hang the old question is not answered: %v", err)
		}
		if err := s.AwaitReplication(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func isTimeout(err error) bool {
	var te interface{ Timeout() bool }
	return errors.As(err, &te) && te.Timeout()
}

func TestKillCutsConnectionsAndRefusesNewOnes(t *testing.T) {
	onFakeTime(t, Options{Members: 3}, func(t *testing.T, s *Set) {
		p := primaryIndex(t, s)
		c := dialRaw(t, s, p, "app")
		if err := c.send(0, "admin", await(version(c.must(t, "admin", bson.D{{Key: "hello", Value: 1}})), 10000)); err != nil {
			t.Fatal(err)
		}
		if err := s.Kill(p); err != nil {
			t.Fatal(err)
		}
		if _, err := c.receive(); err == nil || isTimeout(err) {
			t.Errorf("a killed member answered: %v", err)
		}
		if _, err := tryDial(t.Context(), s, p, "app"); err == nil {
			t.Error("a killed member accepts connections")
		}
		if err := s.Kill(p); err == nil {
			t.Error("killing a dead member is no error")
		}
		if err := s.Restart(p); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(p); err == nil {
			t.Error("restarting a running member is no error")
		}
		dialRaw(t, s, p, "app").must(t, "admin", bson.D{{Key: "ping", Value: 1}})
	})
}

func TestCloseAnswersWhatIsInProgress(t *testing.T) {
	s := Run(t)
	c := dialRaw(t, s, 0, "app")
	if err := c.send(0, "admin", await(version(c.must(t, "admin", bson.D{{Key: "hello", Value: 1}})), 10000)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.receive(); mongoerr.Code(err) != mongoerr.CodeInterruptedAtShutdown {
		t.Errorf("got %v", err)
	}
	if _, err := c.receive(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection stays open: %v", err)
	}
}

func TestFailCommandModes(t *testing.T) {
	s := Run(t)
	c := dialRaw(t, s, 0, "app")
	ping := bson.D{{Key: "ping", Value: 1}}
	point := func(mode any, data bson.D) bson.D {
		return bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: mode}, {Key: "data", Value: data}}
	}
	data := func(more ...bson.E) bson.D {
		return append(bson.D{{Key: "failCommands", Value: bson.A{"ping", "insert"}}}, more...)
	}
	code := bson.E{Key: "errorCode", Value: 6}
	outcome := func(n int) (out []bool) {
		for range n {
			_, err := c.run("admin", ping)
			out = append(out, err != nil)
		}
		return out
	}
	for _, step := range []struct {
		mode any
		want []bool
	}{
		{bson.D{{Key: "times", Value: 2}}, []bool{true, true, false}},
		{bson.D{{Key: "skip", Value: 1}}, []bool{false, true, true}},
		{"alwaysOn", []bool{true, true, true}},
		{"off", []bool{false, false}},
		{bson.D{{Key: "times", Value: 0}}, []bool{true, true}},
		{"off", []bool{false}},
	} {
		c.must(t, "admin", point(step.mode, data(code)))
		if got := outcome(len(step.want)); !slices.Equal(got, step.want) {
			t.Errorf("mode %v: failed %v, want %v", step.mode, got, step.want)
		}
	}
	once := bson.D{{Key: "times", Value: 1}}

	c.must(t, "admin", point(once, data(code, bson.E{Key: "errorLabels", Value: bson.A{"A", "B"}})))
	if e := c.fails(t, 6, "admin", ping); !slices.Equal(e.Labels, []string{"A", "B"}) || e.CodeName != "HostUnreachable" {
		t.Errorf("labels %v, name %s", e.Labels, e.CodeName)
	}

	c.must(t, "admin", point(once, data(bson.E{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 91}, {Key: "errmsg", Value: "x"}}})))
	if e := c.fails(t, 91, "t", insert(1, nil)); e.WriteConcernError == nil || e.WriteConcernError.Message != "x" {
		t.Errorf("writeConcernError: %v", e.Response)
	}
	if got := c.ids(t); len(got) != 1 {
		t.Errorf("with writeConcernError the command must run: %v", got)
	}

	c.must(t, "admin", point(once, data(bson.E{Key: "blockConnection", Value: true}, bson.E{Key: "blockTimeMS", Value: 40})))
	begun := time.Now()
	c.must(t, "admin", ping)
	if took := time.Since(begun); took < 40*time.Millisecond {
		t.Errorf("blocked for %v", took)
	}

	c.must(t, "admin", point("alwaysOn", data(code, bson.E{Key: "appName", Value: "other"})))
	c.must(t, "admin", ping)
	dialRaw(t, s, 0, "other").fails(t, 6, "admin", ping)
	c.must(t, "admin", point("alwaysOn", data(code, bson.E{Key: "namespace", Value: "t.d"})))
	c.must(t, "t", insert(2, nil))
	c.fails(t, 6, "t", bson.D{{Key: "insert", Value: "d"}, {Key: "documents", Value: bson.A{bson.D{}}}})

	c.must(t, "admin", point(once, data(bson.E{Key: "closeConnection", Value: true})))
	if _, err := c.run("admin", ping); err == nil || mongoerr.Code(err) != 0 {
		t.Errorf("closeConnection: %v", err)
	}
	c = dialRaw(t, s, 0, "app")
	c.must(t, "admin", ping)

	c.fails(t, mongoerr.CodeFailPointSetFailed, "admin", bson.D{{Key: "configureFailPoint", Value: "nope"}, {Key: "mode", Value: "off"}})
	c.fails(t, mongoerr.CodeIllegalOperation, "admin", bson.D{{Key: "configureFailPoint", Value: "failCommand"}})
	c.fails(t, mongoerr.CodeBadValue, "admin", point("alwaysOn", data(bson.E{Key: "bogus", Value: 1})))
}

func TestRetryableWriteErrorsCarryTheLabel(t *testing.T) {
	s := Run(t)
	c := dialRaw(t, s, 0, "app")
	if err := s.FailCommand(All, &FailCommand{Commands: []string{"insert"}, Times: 2, ErrorCode: 91}); err != nil {
		t.Fatal(err)
	}
	lsid := bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}
	retryable := append(insert(1, nil), bson.E{Key: "lsid", Value: lsid}, bson.E{Key: "txnNumber", Value: int64(1)})
	if e := c.fails(t, 91, "t", retryable); !e.HasLabel(mongoerr.LabelRetryableWrite) {
		t.Errorf("labels %v", e.Labels)
	}
	if e := c.fails(t, 91, "t", insert(1, nil)); e.HasLabel(mongoerr.LabelRetryableWrite) {
		t.Errorf("a write without txnNumber has the labels %v", e.Labels)
	}
	c.must(t, "t", retryable)
	if r := c.must(t, "t", retryable); !slices.Equal(c.ids(t), []string{"1"}) {
		t.Errorf("the retry was executed again: %v", r)
	}
	if n := s.Member(0).OpCounters("app")["insert"]; n != 4 {
		t.Errorf("%d inserts counted", n)
	}
	c.fails(t, 72, "t", append(insert(1, nil), bson.E{Key: "txnNumber", Value: int64(1)}))
}

func TestRetryHistorySurvivesAFailover(t *testing.T) {
	onFakeTime(t, Options{Members: 3}, func(t *testing.T, s *Set) {
		lsid := bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}}}
		inc := bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: 1}}},
			{Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}}}},
			{Key: "lsid", Value: lsid}, {Key: "txnNumber", Value: int64(7)}, {Key: "writeConcern", Value: majority()}}
		p := primaryIndex(t, s)
		c := dialRaw(t, s, p, "app")
		c.must(t, "t", insert(1, majority()))
		c.must(t, "t", inc)
		if err := s.Kill(p); err != nil {
			t.Fatal(err)
		}
		c = dialRaw(t, s, primaryIndex(t, s), "app")
		r := c.must(t, "t", inc)
		if n, _ := r.Lookup("nModified").AsInt64OK(); n != 1 {
			t.Errorf("the retry's reply is not the recorded one: %v", r)
		}
		r = c.must(t, "t", bson.D{{Key: "find", Value: "c"}})
		if n, _ := r.Lookup("cursor", "firstBatch", "0", "n").AsInt64OK(); n != 1 {
			t.Errorf("incremented %d times", n)
		}
		older := slices.Clone(inc)
		older[3].Value = int64(6)
		c.fails(t, mongoerr.CodeTransactionTooOld, "t", older)
	})
}
