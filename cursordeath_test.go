package sextant_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// silent is the address of somebody who takes connections and never says a word.
func silent(t *testing.T) string {
	t.Helper()
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { l.Close() }) // the kernel accepts in its place
	return l.Addr().String()
}

// started opens a cursor with more to fetch, and counts the commands of one name.
func started(t *testing.T, set *replset.Set, name string) (*sextant.Cursor[bson.D], *atomic.Int64) {
	t.Helper()
	var sent atomic.Int64
	cl := connect(t, set.URI(), func(c *sextant.Config) {
		c.Monitor = &event.Monitor{CommandStarted: func(_ context.Context, e *event.CommandStartedEvent) {
			if e.Name == name {
				sent.Add(1)
			}
		}}
	})
	c := cl.Database("shop").Collection("people")
	docs := make([]bson.D, 100)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}}
	}
	if _, err := c.InsertMany(testContext(t), docs); err != nil {
		t.Fatal(err)
	}
	return must[*sextant.Cursor[bson.D]](t)(c.Find(testContext(t), bson.D{}, sextant.FindOptions{BatchSize: 10})), &sent
}

func TestCursorOfADeadMemberFailsSoonAndClosesAtOnce(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 3})
	cur, _ := started(t, set, "killCursors")
	if err := set.Kill(set.Primary().Index()); err != nil {
		t.Fatal(err)
	}
	n := 0
	walk := func() error {
		for cur.Next(testContext(t)) {
			n++
		}
		return cur.Err()
	}
	refuse(t, walk, func(err error) bool { return mongoerr.IsSelection(err) || mongoerr.IsNetwork(err) }, cur.Server())
	if n != 10 {
		t.Errorf("%d documents were there before", n)
	}
	start := time.Now()
	if err := cur.Close(testContext(t)); err != nil || time.Since(start) > 2*time.Second {
		t.Errorf("closing took %v: %v", time.Since(start), err)
	}
}

func TestCursorIsClosedAtItsServerAfterADeadlineAndALeftLoop(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 1})
	cur, killed := started(t, set, "killCursors")
	if err := set.FailCommand(0, &replset.FailCommand{Commands: []string{"getMore"}, Block: 600 * time.Millisecond, Times: 1}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
	defer cancel()
	_, err := cur.All(ctx)
	if !mongoerr.IsTimeout(err) {
		t.Errorf("%v", err)
	}
	if killed.Load() != 1 {
		t.Error("the server was not told after a deadline that nobody wants the cursor any more")
	}
	again := replset.Run(t, replset.Options{Members: 1})
	other, killed := started(t, again, "killCursors")
	for _, err := range other.Each(testContext(t)) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	if killed.Load() != 1 {
		t.Error("the server was not told after a loop that was left")
	}
}
