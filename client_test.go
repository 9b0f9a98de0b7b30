package sextant_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset"
)

// driverGoroutines are the stacks of the goroutines that run the driver's code and not the embedded set's, whose own come and
// go with connections.
func driverGoroutines() (running []string) {
	const module = "github.com/sextantdb/sextant/" // whole: the folder of a clone may have any name
	buf := make([]byte, 4<<20)
	for _, s := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")[1:] {
		if strings.Contains(s, module+"internal/") && !strings.Contains(s, module+"replset/") {
			running = append(running, s)
		}
	}
	return running
}

func TestCloseLeavesNoGoroutineBehind(t *testing.T) {
	uri := sharedURI(t)
	before := driverGoroutines()
	var wg sync.WaitGroup
	for range 3 {
		cl := must[*sextant.Client](t)(sextant.Connect(context.Background(), uri))
		c := cl.Database("shop").Collection("people")
		for range 4 {
			wg.Go(func() {
				cur, err := c.Find(context.Background(), bson.D{}, sextant.FindOptions{ReadPreference: readpref.Nearest()})
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = cur.All(context.Background())
			})
		}
		wg.Wait()
		if err := cl.Close(testContext(t)); err != nil {
			t.Error(err)
		}
	}
	// One that has told its owner that it is done may still be seen on its way out.
	for deadline := time.Now().Add(2 * time.Second); len(driverGoroutines()) > len(before); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines of clients before, and now\n%s", len(before), strings.Join(driverGoroutines(), "\n\n"))
		}
	}
}

func TestPanicsOfCallbacksDoNotReachOperations(t *testing.T) {
	boom := func() { panic("a callback's own trouble") }
	cl := connect(t, sharedURI(t), func(c *sextant.Config) {
		c.Monitor = &event.Monitor{
			CommandStarted:   func(context.Context, *event.CommandStartedEvent) { boom() },
			CommandSucceeded: func(context.Context, *event.CommandSucceededEvent) { boom() },
			CommandFailed:    func(context.Context, *event.CommandFailedEvent) { boom() },
			Pool:             func(*event.PoolEvent) { boom() },
			Heartbeat:        func(*event.HeartbeatEvent) { boom() },
			TopologyChanged:  func(*event.TopologyEvent) { boom() },
			Selection:        func(*event.SelectionEvent) { boom() },
		}
	})
	c := fresh[bson.D](t, cl)
	if _, err := c.InsertOne(testContext(t), bson.M{"_id": 1}); err != nil {
		t.Error(err)
	}
	if _, err := c.InsertOne(testContext(t), bson.M{"_id": 1}); !mongoerr.IsDuplicateKey(err) {
		t.Error(err)
	}
}

func TestUnmetWriteConcernComesWithTheResult(t *testing.T) {
	set := embedded(t, 1)
	cl := whole(t, set)
	ctx, c := testContext(t), cl.Database("shop").Collection("people")
	must[*sextant.InsertOneResult](t)(c.InsertOne(ctx, bson.M{"_id": 1, "n": 0}))
	fail := func(command string) {
		t.Helper()
		err := set.FailCommand(0, &replset.FailCommand{Commands: []string{command}, Times: 1,
			WriteConcernError: &replset.WriteConcernError{Code: 64, Message: "waited in vain"}})
		if err != nil {
			t.Fatal(err)
		}
	}
	unmet := func(err error) {
		t.Helper()
		e, ok := errors.AsType[*mongoerr.Error](err)
		if !ok || e.WriteConcernError == nil || e.WriteConcernError.Code != 64 || !strings.Contains(first(err), "waited in vain") {
			t.Errorf("%v", err)
		}
	}
	fail("update")
	r, err := c.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$inc": bson.M{"n": 1}})
	if unmet(err); r == nil || r.ModifiedCount != 1 {
		t.Errorf("update: %+v", r)
	}
	fail("findAndModify")
	d, err := c.FindOneAndUpdate(ctx, bson.M{"_id": 1}, bson.M{"$inc": bson.M{"n": 1}}, sextant.FindOneAndUpdateOptions{ReturnDocument: sextant.After})
	unmet(err)
	same(t, d, bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 2}})
	fail("insert")
	many, err := c.InsertMany(ctx, []bson.M{{"_id": 2}, {"_id": 3}})
	if unmet(err); many == nil || many.InsertedCount != 2 {
		t.Errorf("insert: %+v", many)
	}
	fail("delete")
	gone, err := c.DeleteMany(ctx, bson.D{})
	if unmet(err); gone == nil || gone.DeletedCount != 3 {
		t.Errorf("delete: %+v", gone)
	}
}

func TestWTimeoutIsAnErrorThatKeepsTheWrite(t *testing.T) {
	set := embedded(t, 3)
	cl := whole(t, set)
	for i := range set.Members() {
		if i != set.Primary().Index() {
			if err := set.Kill(i); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	all := &concern.Write{W: 3, WTimeout: 100 * time.Millisecond}
	c := cl.Database("shop").Collection("people", sextant.CollectionOptions{WriteConcern: all})
	res, err := c.InsertMany(testContext(t), []bson.M{{"_id": 1}})
	if e, ok := errors.AsType[*mongoerr.Error](err); !ok || e.WriteConcernError == nil || res.InsertedCount != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := c.FindOne(testContext(t), bson.M{"_id": 1}); err != nil {
		t.Errorf("the write is gone: %v", err)
	}
}

func TestReadPreferenceOfTheURIIsTheClients(t *testing.T) {
	set := embedded(t, 3)
	cl := whole(t, set, func(c *sextant.Config) {
		u := must[*sextant.Config](t)(sextant.ParseURI("mongodb://x/?readPreference=secondary"))
		c.ReadPreference = u.ReadPreference
	})
	if cl.ReadPreference().Mode() != readpref.SecondaryMode {
		t.Errorf("%v", cl.ReadPreference())
	}
	cur := must[*sextant.Cursor[bson.D]](t)(cl.Database("shop").Collection("people").Find(testContext(t), bson.D{}))
	if kindOf(cl, cur.Server()) != event.RSSecondary {
		t.Errorf("served by %s", cur.Server())
	}
}

func TestPoolOfOneServesCursorsAndWritesTogether(t *testing.T) {
	cl := connect(t, sharedURI(t), func(c *sextant.Config) { c.MaxPoolSize = new(1) })
	ctx, c := testContext(t), numbered(t, cl, 30)
	cur := must[*sextant.Cursor[bson.D]](t)(c.Find(ctx, bson.D{}, sextant.FindOptions{BatchSize: 3}))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := c.InsertOne(ctx, bson.D{}); err != nil {
				t.Error(err)
			}
		})
	}
	n := 0
	for _, err := range cur.Each(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if wg.Wait(); n < 30 {
		t.Errorf("%d documents", n)
	}
}

func TestTimeoutOfTheConfigurationBoundsAHungMember(t *testing.T) {
	set := embedded(t, 1)
	cl := whole(t, set, func(c *sextant.Config) { c.Timeout = 300 * time.Millisecond })
	c := cl.Database("shop").Collection("people")
	must[*sextant.InsertOneResult](t)(c.InsertOne(context.Background(), bson.D{}))
	if err := set.Hang(0, true); err != nil {
		t.Fatal(err)
	}
	refuse(t, func() error { _, err := c.FindOne(context.Background(), bson.D{}); return err }, mongoerr.IsTimeout)
	if err := set.Hang(0, false); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); ; {
		if _, err := c.FindOne(testContext(t), bson.D{}); err == nil {
			return
		} else if time.Since(start) > 10*time.Second {
			t.Fatalf("it never came back: %v", err)
		}
	}
}

func TestManyCallersShareAClient(t *testing.T) {
	cl := connect(t, sharedURI(t))
	ctx, c := testContext(t), fresh[bson.D](t, cl)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 20 {
				id := g*100 + i
				if _, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: id}}); err != nil {
					t.Error(err)
					return
				}
				if _, err := c.FindOne(ctx, bson.M{"_id": id}); err != nil {
					t.Errorf("%d: %v", id, err)
				}
			}
		})
	}
	wg.Wait()
	if n := must[int64](t)(c.EstimatedDocumentCount(ctx)); n != 320 {
		t.Errorf("%d documents", n)
	}
}
