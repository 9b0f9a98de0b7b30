// Command failover writes without a pause while the primary of an embedded set steps down and is then killed, and
// counts afterwards: every acknowledged write is there, and none was refused.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/replset"
)

func main() {
	ctx := context.Background()
	set, err := replset.Start(ctx, replset.Options{Members: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer set.Close()
	if err := run(ctx, os.Stdout, set); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, set *replset.Set) error {
	client, err := sextant.Connect(ctx, set.URI())
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	orders := client.Database("example").Collection("orders", sextant.CollectionOptions{WriteConcern: concern.Majority()})
	var w writer
	stop, stopped := make(chan struct{}), sync.WaitGroup{}
	stopped.Go(func() { w.write(ctx, orders, stop) })
	trouble := cause(ctx, set)
	close(stop)
	stopped.Wait()
	if trouble != nil {
		return trouble
	}
	if w.err != nil {
		return fmt.Errorf("after %d writes: %w", w.acked, w.err)
	}
	found, err := orders.CountDocuments(ctx, bson.D{})
	if err != nil {
		return err
	}
	if found != w.acked {
		return fmt.Errorf("%d writes were acknowledged, and %d documents are there", w.acked, found)
	}
	fmt.Fprintf(out, "%d writes acknowledged over a step-down and a crash, all of them there, none refused\n", w.acked)
	return nil
}

// writer writes until it is stopped.
type writer struct {
	acked int64
	err   error
}

func (w *writer) write(ctx context.Context, orders *sextant.Collection[bson.D], stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		if _, w.err = orders.InsertOne(ctx, bson.D{{Key: "at", Value: time.Now()}}); w.err != nil {
			return
		}
		w.acked++
	}
}

// cause makes the set go through a step-down and the crash of its primary.
func cause(ctx context.Context, set *replset.Set) error {
	const pause = 300 * time.Millisecond
	time.Sleep(pause)
	if err := set.StepDown(ctx); err != nil {
		return err
	}
	time.Sleep(pause)
	primary, err := set.WaitPrimary(ctx)
	if err != nil {
		return err
	}
	if err := set.Kill(primary.Index()); err != nil {
		return err
	}
	if _, err := set.WaitPrimary(ctx); err != nil {
		return err
	}
	time.Sleep(pause)
	return nil
}
