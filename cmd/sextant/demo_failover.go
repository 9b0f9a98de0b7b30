package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/readpref"
)

const writers = 8

// entry is one line of the log that the writers fill.
type entry struct {
	ID     string `bson:"_id"`
	Writer int    `bson:"writer"`
	N      int    `bson:"n"`
}

// ledger is what the writers know: which writes were acknowledged, and when the first one after the kill was.
type ledger struct {
	mu        sync.Mutex // guards acked and failures
	acked     []string
	failures  []error
	killed    atomic.Int64 // unix nanoseconds; 0 before the kill
	recovered atomic.Int64 // nanoseconds from the kill to the first write that was both begun and acknowledged after it
}

func (l *ledger) write(ctx context.Context, coll *sextant.Collection[entry], writer int, stop *atomic.Bool) {
	for n := 0; !stop.Load(); n++ {
		begun := time.Now()
		id := fmt.Sprintf("%d-%d", writer, n)
		_, err := coll.InsertOne(ctx, entry{id, writer, n})
		l.mu.Lock()
		if err != nil {
			l.failures = append(l.failures, fmt.Errorf("write %s: %w", id, err))
		} else {
			l.acked = append(l.acked, id)
		}
		l.mu.Unlock()
		if err != nil {
			time.Sleep(20 * time.Millisecond) // a set that refuses everything must not be asked in a tight loop
		}
		if killed := l.killed.Load(); err == nil && killed != 0 && begun.UnixNano() > killed {
			l.recovered.CompareAndSwap(0, time.Now().UnixNano()-killed)
		}
	}
}

func first(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// failover kills the primary under eight writers and looks for each acknowledged write afterwards.
func (d *demo) failover(ctx context.Context) error {
	d.section(fmt.Sprintf("%d writers at w:majority while the primary is killed", writers))
	coll := sextant.CollectionOf[entry](d.east.Database("demo"), "log", sextant.CollectionOptions{WriteConcern: concern.Majority()})
	var l ledger
	var stop atomic.Bool
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() { l.write(ctx, coll, w, &stop) })
	}
	defer wg.Wait()
	defer stop.Store(true)

	time.Sleep(500 * time.Millisecond)
	before := l.count()
	l.killed.Store(time.Now().UnixNano())
	if err := d.set.Kill(east1); err != nil {
		return err
	}
	d.say("east-1 is killed after %d acknowledged writes", before)
	for deadline := time.Now().Add(15 * time.Second); l.recovered.Load() == 0 && time.Now().Before(deadline) && ctx.Err() == nil; {
		d.progress("%d acknowledged, waiting for a new primary for %s", l.count(), milliseconds(time.Since(time.Unix(0, l.killed.Load()))))
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond)
	stop.Store(true)
	wg.Wait()

	took := time.Duration(l.recovered.Load())
	primary := "nobody"
	if p := d.set.Primary(); p != nil {
		primary = d.name(p.Addr())
	}
	d.check("writes go on after the failover", took > 0, "%s is primary, first write after %s", primary, milliseconds(took))
	d.check("no writer saw an error", len(l.failures) == 0, "%d acknowledged, %d failed%s", len(l.acked), len(l.failures), suffix(first(l.failures)))
	return d.readBack(ctx, coll, &l)
}

// readBack looks for every acknowledged write, once and only once.
func (d *demo) readBack(ctx context.Context, coll *sextant.Collection[entry], l *ledger) error {
	cur, err := coll.Find(ctx, bson.D{}, sextant.FindOptions{BatchSize: 500})
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for e, err := range cur.Each(ctx) {
		if err != nil {
			return err
		}
		there[e.ID] = true
	}
	lost := 0
	for _, id := range l.acked {
		if !there[id] {
			lost++
		}
	}
	d.check("every acknowledged write is there afterwards", lost == 0 && len(l.acked) > 0, "%d acknowledged, %d found, %d lost", len(l.acked), len(there), lost)
	return nil
}

// comeback restarts the killed member and waits until it has what it missed.
func (d *demo) comeback(ctx context.Context) error {
	d.section("The killed member returns")
	start := time.Now()
	if err := d.set.Restart(east1); err != nil {
		return err
	}
	want, err := people(d.east).CountDocuments(ctx, bson.D{})
	if err != nil {
		return err
	}
	logged, err := d.east.Database("demo").Collection("log").CountDocuments(ctx, bson.D{})
	if err != nil {
		return err
	}
	onEast1 := readpref.Nearest(readpref.Tags("name", memberNames[east1]))
	var got, gotLog int64
	for ctx.Err() == nil && time.Since(start) < 10*time.Second {
		got, err = people(d.east).CountDocuments(ctx, bson.D{}, sextant.CountOptions{ReadPreference: onEast1})
		if err == nil {
			gotLog, err = d.east.Database("demo").Collection("log").CountDocuments(ctx, bson.D{}, sextant.CountOptions{ReadPreference: onEast1})
		}
		if err == nil && got == want && gotLog == logged {
			break
		}
		d.progress("east-1 has %d of %d", gotLog, logged)
		time.Sleep(20 * time.Millisecond)
	}
	d.check("east-1 is found again and catches up", err == nil && got == want && gotLog == logged,
		"%d of %d log entries, read from east-1 itself %s after its start%s", gotLog, logged, milliseconds(time.Since(start)), suffix(err))
	d.say("the whole run took %.1f s", time.Since(d.started).Seconds())
	return nil
}
