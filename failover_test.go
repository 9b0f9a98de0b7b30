package sextant_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// failOnce makes the primary fail the next command of the name, with what more says about how.
func failOnce(t *testing.T, cl *sextant.Client, command string, more ...bson.E) {
	t.Helper()
	_, err := cl.Database("admin").RunCommand(testContext(t), bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
		{Key: "data", Value: append(bson.D{{Key: "failCommands", Value: bson.A{command}}}, more...)},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWriteThatLosesItsConnectionIsRetriedOnce(t *testing.T) {
	set := embedded(t, 3)
	cl := whole(t, set)
	ctx, c := testContext(t), cl.Database("shop").Collection("people")
	older := bson.M{"$inc": bson.M{"x": 1}}
	for _, k := range []struct {
		name string
		call func() error
	}{
		{"insert", func() error { _, err := c.InsertOne(ctx, bson.M{"x": 1}); return err }},
		{"update", func() error { _, err := c.UpdateOne(ctx, bson.D{}, older); return err }},
		{"findAndModify", func() error { _, err := c.FindOneAndUpdate(ctx, bson.D{}, older); return err }},
		{"find", func() error { _, err := c.FindOne(ctx, bson.M{"x": 3}); return err }},
		{"delete", func() error { _, err := c.DeleteOne(ctx, bson.M{"x": 3}); return err }},
	} {
		failOnce(t, cl, k.name, bson.E{Key: "closeConnection", Value: true})
		if err := k.call(); err != nil {
			t.Errorf("%s: %v", k.name, err)
		}
	}
	if n := must[int64](t)(c.EstimatedDocumentCount(ctx)); n != 0 {
		t.Errorf("%d documents are left: something was done twice, or not at all", n)
	}
}

func TestManyWritesAreNotRetried(t *testing.T) {
	set := embedded(t, 1)
	cl := whole(t, set)
	ctx, c := testContext(t), cl.Database("shop").Collection("people")
	must[*sextant.InsertOneResult](t)(c.InsertOne(ctx, bson.M{"x": 1}))
	failOnce(t, cl, "update", bson.E{Key: "closeConnection", Value: true})
	if _, err := c.UpdateMany(ctx, bson.D{}, bson.M{"$inc": bson.M{"x": 1}}); !mongoerr.IsNetwork(err) {
		t.Errorf("updateMany: %v", err)
	}
}

func TestRetriedWriteIsDoneOnce(t *testing.T) {
	set := embedded(t, 3)
	cl := whole(t, set)
	ctx, c := testContext(t), cl.Database("shop").Collection("counters")
	must[*sextant.InsertOneResult](t)(c.InsertOne(ctx, bson.M{"_id": 1, "n": 0}))
	// The server does the write and then answers as one that is shutting down: the driver sends it again.
	wce := bson.E{Key: "writeConcernError", Value: bson.D{
		{Key: "code", Value: 91}, {Key: "errmsg", Value: "shutting down"}, {Key: "errorLabels", Value: bson.A{mongoerr.LabelRetryableWrite}},
	}}
	for i := range 3 {
		failOnce(t, cl, "update", wce, bson.E{Key: "errorLabels", Value: bson.A{mongoerr.LabelRetryableWrite}})
		r := must[*sextant.UpdateResult](t)(c.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$inc": bson.M{"n": 1}}))
		if r.ModifiedCount != 1 {
			t.Errorf("%+v", r)
		}
		same(t, must[bson.D](t)(c.FindOne(ctx, bson.D{})), bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: i + 1}})
	}
}

// writers writes documents from several goroutines until stop is called, and keeps the ids of those acknowledged.
type writers struct {
	mu    sync.Mutex
	acked []string
	errs  []error
	stop  func()
}

func startWriters(ctx context.Context, c *sextant.Collection[bson.D], n int) *writers {
	ctx, cancel := context.WithCancel(ctx)
	w := &writers{}
	var wg sync.WaitGroup
	for g := range n {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("%d-%d", g, i)
				_, err := c.InsertOne(context.WithoutCancel(ctx), bson.D{{Key: "_id", Value: id}})
				w.mu.Lock()
				if err != nil {
					w.errs = append(w.errs, err)
				} else {
					w.acked = append(w.acked, id)
				}
				w.mu.Unlock()
			}
		})
	}
	w.stop = func() { cancel(); wg.Wait() }
	return w
}

func (w *writers) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

// more waits until the writers have had n more writes acknowledged.
func (w *writers) more(t *testing.T, n int) {
	t.Helper()
	until, deadline := w.count()+n, time.Now().Add(20*time.Second)
	for w.count() < until {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d writes after 20 s; errors: %v", w.count(), until, w.errs)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// complete checks that every acknowledged write is there.
func (w *writers) complete(t *testing.T, c *sextant.Collection[bson.D]) {
	t.Helper()
	found := map[string]bool{}
	for _, id := range must[[]string](t)(sextant.Distinct[string](testContext(t), c, "_id", bson.D{})) {
		found[id] = true
	}
	for _, id := range w.acked {
		if !found[id] {
			t.Errorf("the acknowledged write %s is lost", id)
		}
	}
	for _, err := range w.errs {
		t.Errorf("a writer met: %v", err)
	}
	t.Logf("%d acknowledged writes, all found", len(w.acked))
}

func TestStepDownUnderWritersLosesNothing(t *testing.T) {
	set := embedded(t, 3)
	cl := whole(t, set)
	c := cl.Database("shop").Collection("people", sextant.CollectionOptions{WriteConcern: concern.Majority()})
	w := startWriters(testContext(t), c, 4)
	defer w.stop()
	w.more(t, 40)
	before := set.Primary().Addr()
	if err := set.StepDown(testContext(t)); err != nil {
		t.Fatal(err)
	}
	w.more(t, 40)
	w.stop()
	w.complete(t, c)
	if after := set.Primary().Addr(); after == before {
		t.Errorf("%s is still the primary", before)
	}
}

func TestKilledPrimaryUnderWritersLosesNothing(t *testing.T) {
	set := embedded(t, 3)
	cl := whole(t, set)
	c := cl.Database("shop").Collection("people", sextant.CollectionOptions{WriteConcern: concern.Majority()})
	w := startWriters(testContext(t), c, 8)
	defer w.stop()
	w.more(t, 40)
	dead := set.Primary().Index()
	if err := set.Kill(dead); err != nil {
		t.Fatal(err)
	}
	w.more(t, 40)
	if err := set.Restart(dead); err != nil {
		t.Fatal(err)
	}
	w.more(t, 40)
	w.stop()
	w.complete(t, c)
}

func TestReadsGoOnWhileThereIsNoPrimary(t *testing.T) {
	set := embedded(t, 3)
	cl := whole(t, set)
	ctx, c := testContext(t), cl.Database("shop").Collection("people")
	must[*sextant.InsertOneResult](t)(c.InsertOne(ctx, bson.M{"x": 1}))
	if err := set.AwaitReplication(ctx); err != nil {
		t.Fatal(err)
	}
	dead := set.Primary().Index()
	if err := set.Kill(dead); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if _, err := c.FindOne(ctx, bson.D{}, sextant.FindOneOptions{ReadPreference: readpref.SecondaryPreferred()}); err != nil {
			t.Fatalf("read %d: %v", i, err)
		}
	}
}
