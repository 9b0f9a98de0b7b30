package replset

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// wires are the versions and their maxWireVersion, the newest first.
var wires = map[string]int32{"8.0": 25, "7.0": 21, "6.0": 17, "5.0": 13, "4.4": 9, "4.2": 8, "4.0": 7}

// inEachVersion runs a test in a bubble of each claimed version, with a set of three.
func inEachVersion(t *testing.T, test func(t *testing.T, s *Set, wire int32)) {
	t.Helper()
	if len(Versions()) != len(wires) {
		t.Errorf("there are %v", Versions())
	}
	for version, wire := range wires {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := bubbleSet(t, Options{Version: version})
				defer s.Close()
				test(t, s, wire)
			})
		})
	}
}

func TestHelloAndBuildInfoTellTheClaimedVersion(t *testing.T) {
	inEachVersion(t, func(t *testing.T, s *Set, wire int32) {
		c := dialRaw(t, s, 0, "app")
		h := c.must(t, "admin", bson.D{{Key: "hello", Value: 1}})
		if v, _ := h.Lookup("maxWireVersion").Int32OK(); v != wire {
			t.Errorf("maxWireVersion %d, want %d", v, wire)
		}
		if has := !h.Lookup("topologyVersion").IsZero(); has != (wire >= 9) {
			t.Errorf("topologyVersion: %v", has)
		}
		info := c.must(t, "admin", bson.D{{Key: "buildInfo", Value: 1}})
		version, _ := info.Lookup("version").StringValueOK()
		if !strings.HasPrefix(version, s.opt.Version+".") {
			t.Errorf("buildInfo tells version %s", version)
		}
		if major, _ := info.Lookup("versionArray", "0").Int32OK(); major != int32(version[0]-'0') {
			t.Errorf("versionArray begins with %d, the version is %s", major, version)
		}
	})
}

func TestStepDownClosesClientsConnectionsOnlyOfOldVersions(t *testing.T) {
	inEachVersion(t, func(t *testing.T, s *Set, wire int32) {
		idle, stranger := dialRaw(t, s, 0, "app"), dialRaw(t, s, 0, "")
		stranger.must(t, "admin", pingCommand())
		waiting := dialRaw(t, s, 0, "app")
		if err := waiting.send(0, "t", insert("waits", w(4))); err != nil { // there are three
			t.Fatal(err)
		}
		if err := s.StepDown(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := idle.run("admin", pingCommand())
		if closed := errors.Is(err, io.EOF) || err != nil && strings.Contains(err.Error(), "pipe"); closed != (wire < 8) {
			t.Errorf("an idle connection after the step-down: %v", err)
		}
		stranger.must(t, "admin", pingCommand()) // said no hello: a server leaves it
		idle = dialRaw(t, s, 0, "app")
		e := idle.fails(t, mongoerr.CodeNotWritablePrimary, "t", insert("late", w(1)))
		if want := map[bool]string{true: "not master", false: "not primary"}[wire < 13]; e.Message != want {
			t.Errorf("%q, want %q", e.Message, want)
		}
		if want := map[bool]string{true: "NotMaster", false: "NotWritablePrimary"}[wire < 9]; e.CodeName != want {
			t.Errorf("%s, want %s", e.CodeName, want)
		}
		if has := !idle.lastR.Body.Lookup("topologyVersion").IsZero(); has != (wire >= 9) {
			t.Errorf("topologyVersion in the error: %v", has)
		}
	})
}

func TestStepDownInterruptsAWriteThatIsUnderWay(t *testing.T) {
	inEachVersion(t, func(t *testing.T, s *Set, wire int32) {
		if err := s.FailCommand(0, &FailCommand{Commands: []string{"insert"}, Block: time.Second, AppName: "slow"}); err != nil {
			t.Fatal(err)
		}
		c := dialRaw(t, s, 0, "slow")
		if err := c.send(0, "t", insert("slow", w(1))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		if err := s.StepDown(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := c.receive()
		if wire < 8 {
			if !errors.Is(err, io.EOF) {
				t.Errorf("%v", err)
			}
			return
		}
		e, ok := errors.AsType[*mongoerr.Error](err)
		if !ok || e.Code != mongoerr.CodeInterruptedDueToReplStateChange {
			t.Errorf("%v", err)
		}
		if got := dialRaw(t, s, s.Primary().Index(), "app").ids(t); len(got) != 0 {
			t.Errorf("the interrupted write was done: %v", got)
		}
	})
}

func TestGoingIntoRollbackClosesClientsConnectionsInEveryVersion(t *testing.T) {
	inEachVersion(t, func(t *testing.T, s *Set, wire int32) {
		c := dialRaw(t, s, 0, "app")
		c.must(t, "t", insert("kept", majority()))
		if err := s.Partition([]int{0}, []int{1, 2}); err != nil {
			t.Fatal(err)
		}
		c.must(t, "t", insert("lost", w(1)))
		time.Sleep(3 * time.Second) // it has stepped down
		c = dialRaw(t, s, 0, "app")
		if p := s.Primary(); p == nil || p.Index() == 0 {
			t.Fatal("the majority has no primary")
		}
		s.Heal()
		time.Sleep(3 * time.Second)
		if _, err := c.run("admin", pingCommand()); err == nil {
			t.Error("the connection outlived a rollback")
		}
	})
}

func TestHelloWaitsAndStreamsOnlySince44(t *testing.T) {
	inEachVersion(t, func(t *testing.T, s *Set, wire int32) {
		c := dialRaw(t, s, 0, "app")
		known := bson.D{{Key: "processId", Value: bson.NewObjectID()}, {Key: "counter", Value: int64(0)}}
		if tv, ok := c.must(t, "admin", bson.D{{Key: "hello", Value: 1}}).Lookup("topologyVersion").DocumentOK(); ok {
			id, _ := tv.Lookup("processId").ObjectIDOK()
			n, _ := tv.Lookup("counter").Int64OK()
			known = bson.D{{Key: "processId", Value: id}, {Key: "counter", Value: n}}
		}
		begun := time.Now()
		const exhaustAllowed = 1 << 16
		if err := c.send(exhaustAllowed, "admin", bson.D{{Key: "hello", Value: 1}, {Key: "topologyVersion", Value: known}, {Key: "maxAwaitTimeMS", Value: 1000}}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.receive(); err != nil {
			t.Fatal(err)
		}
		waited, more := time.Since(begun) >= time.Second, c.lastR.Flags&2 != 0
		if waited != (wire >= 9) || more != (wire >= 9) {
			t.Errorf("waited: %v, more to come: %v", waited, more)
		}
	})
}

func TestOnlyServersSince44LabelRetryableWrites(t *testing.T) {
	inEachVersion(t, func(t *testing.T, s *Set, wire int32) {
		if err := s.FailCommand(0, &FailCommand{Commands: []string{"insert"}, ErrorCode: mongoerr.CodePrimarySteppedDown, Times: 1}); err != nil {
			t.Fatal(err)
		}
		c := dialRaw(t, s, 0, "app")
		cmd := append(insert("x", nil), bson.E{Key: "txnNumber", Value: int64(1)}, bson.E{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}})
		e := c.fails(t, mongoerr.CodePrimarySteppedDown, "t", cmd)
		if has := e.HasLabel(mongoerr.LabelRetryableWrite); has != (wire >= 9) {
			t.Errorf("labels %v", e.Labels)
		}
	})
}

func TestWritesWaitForAMajorityByDefaultOnlySince50(t *testing.T) {
	inEachVersion(t, func(t *testing.T, s *Set, wire int32) {
		if err := s.Partition([]int{0}, []int{1, 2}); err != nil {
			t.Fatal(err)
		}
		c := dialRaw(t, s, 0, "app")
		begun := time.Now()
		_, err := c.run("t", insert("x", nil))
		if waited := time.Since(begun) > 0; waited != (wire >= 13) {
			t.Errorf("answered after %v: %v", time.Since(begun), err)
		}
	})
}

func TestVersionThatThereIsNotIsRefused(t *testing.T) {
	if s, err := Start(t.Context(), Options{Version: "3.6"}); err == nil || !strings.Contains(err.Error(), `"3.6"`) || !strings.Contains(err.Error(), "4.0") {
		if s != nil {
			s.Close()
		}
		t.Errorf("%v", err)
	}
}

// Programs read keyPattern and keyValue to tell which field was taken.
func TestDuplicateKeysNameTheirFieldsSince42(t *testing.T) {
	inEachVersion(t, func(t *testing.T, s *Set, wire int32) {
		c := dialRaw(t, s, 0, "app")
		c.must(t, "t", bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{
			{Key: "key", Value: bson.D{{Key: "a.b", Value: 1}, {Key: "n", Value: -1}}}, {Key: "name", Value: "u"}, {Key: "unique", Value: true}}}}})
		doc := func(id, n int) bson.D {
			return bson.D{{Key: "_id", Value: id}, {Key: "a", Value: bson.D{{Key: "b", Value: "x"}}}, {Key: "n", Value: n}}
		}
		insert := func(docs ...any) bson.D {
			return bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A(docs)}}
		}
		c.must(t, "t", insert(doc(1, 1), doc(2, 2)))
		const what = "E11000 duplicate key error collection: t.c index: u dup key: "
		text, pattern, key := what+`{ a.b: "x", n: 1 }`, `{"a.b":1,"n":-1}`, `{"a.b":"x","n":1}`
		if wire < 8 {
			text, pattern, key = what+`{ : "x", : 1 }`, "", ""
		}
		refused := func(cmd bson.D) bson.Raw {
			_, err := c.run("t", cmd)
			e, _ := errors.AsType[*mongoerr.Error](err)
			if e == nil {
				t.Fatal("a second document with that key")
			}
			return e.Response
		}
		w, _ := refused(insert(doc(3, 1))).Lookup("writeErrors", "0").DocumentOK()
		found := refused(bson.D{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: bson.D{{Key: "_id", Value: 2}}},
			{Key: "update", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 1}}}}}})
		for name, d := range map[string]bson.Raw{"insert": w, "findAndModify": found} {
			if s, _ := d.Lookup("errmsg").StringValueOK(); s != text {
				t.Errorf("%s: %s, want %s", name, s, text)
			}
			for field, want := range map[string]string{"keyPattern": pattern, "keyValue": key} {
				if got, _ := d.Lookup(field).DocumentOK(); got == nil && want != "" || got != nil && got.String() != want {
					t.Errorf("%s: %s is %s, want %s", name, field, got, want)
				}
			}
		}
	})
}
