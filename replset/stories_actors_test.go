package replset

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/readpref"
)

const (
	writers  = 3
	readers  = 2
	causalID = int32(100)
)

// act sends the actors on their way.
func (w *world) act(ctx context.Context, actors *sync.WaitGroup) {
	for g := range writers {
		actors.Go(func() { w.write(ctx, g) })
	}
	for g := range readers {
		actors.Go(func() { w.read(ctx, g) })
	}
	actors.Go(func() { w.goForward(ctx) })
	if w.plan.hello {
		for i := range w.set.Members() {
			actors.Go(func() { w.watchHello(ctx, i) })
		}
	}
}

func (w *world) dice(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(w.plan.seed, actor)) }

// idle waits up to so many milliseconds, and three times as long with the race detector, which makes work ten times
// dearer; in a night for much longer.
func (w *world) idle(rnd *rand.Rand, most int) {
	d := time.Duration(20+rnd.IntN(most)) * time.Millisecond
	if raceEnabled {
		d *= 3
	}
	if w.plan.night {
		d = time.Duration(20+rnd.IntN(12*most)) * time.Millisecond
	}
	time.Sleep(d)
}

// slowest is what the specified limits add up to, for an operation whose context has no deadline: two attempts, each
// of which may wait for a member, for a connection and for a member that hangs; no plan has one hang for longer than that.
const slowest = 2 * (selectionTimeout + connectTimeout + 4*time.Second)

// limits of an operation; 0: no deadline.
var limits = []time.Duration{0, 300 * time.Millisecond, time.Second, 4 * time.Second, 4 * time.Second}

// timed runs an operation with one of the limits, and holds it to that.
func (w *world) timed(rnd *rand.Rand, what string, op func(ctx context.Context) error) error {
	limit := limits[rnd.IntN(len(limits))]
	if w.plan.night { // who lags keeps who waits for it, and that has no other limit
		limit = limits[len(limits)-1]
	}
	ctx, cancel := context.WithCancel(context.Background())
	if limit > 0 {
		ctx, cancel = context.WithTimeout(context.Background(), limit)
	}
	enough := time.AfterFunc(slowest+time.Millisecond, cancel) // so that even a story of an operation without an end has one
	begun := time.Now()
	err := op(ctx)
	took := time.Since(begun)
	enough.Stop()
	cancel()
	if limit == 0 {
		limit = slowest
	}
	if err != nil {
		w.note("    %s failed after %v: %s", what, took, firstLine(err))
	}
	if took > limit {
		w.accuse(punctual, "%s took %v, with a limit of %v: %v", what, took, limit, err)
	}
	return err
}

// write makes writes of every kind until the story is over and books what was acknowledged.
func (w *world) write(ctx context.Context, g int) {
	rnd := w.dice(uint64(100 + g))
	db := w.client.Database("story")
	docs := db.Collection("docs", sextant.CollectionOptions{WriteConcern: w.firm(rnd)})
	one := sextant.CollectionOptions{WriteConcern: concern.W(1)}
	for k := 0; ctx.Err() == nil; k++ {
		w.idle(rnd, 300)
		id := fmt.Sprintf("%d-%d", g, k)
		switch rnd.IntN(9) {
		case 0, 1:
			w.books.inserted(w.timed(rnd, "insert "+id, func(ctx context.Context) error {
				_, err := docs.InsertOne(ctx, doc(id, k))
				return err
			}), id)
		case 2:
			ids := []string{id + "a", id + "b", id + "c"}
			w.books.inserted(w.timed(rnd, "insert of three, "+id, func(ctx context.Context) error {
				_, err := docs.InsertMany(ctx, []bson.D{doc(ids[0], k), doc(ids[1], k), doc(ids[2], k)})
				return err
			}), ids...)
		case 3, 4, 5:
			w.count(rnd, db, g)
		case 6:
			w.remove(rnd, docs, fmt.Sprintf("%d-%d", g, rnd.IntN(k+1)))
		case 7: // this and the next may be rolled back
			w.books.dared("w1-"+id, w.timed(rnd, "w:1 insert "+id, func(ctx context.Context) error {
				_, err := docs.With(one).InsertOne(ctx, doc("w1-"+id, k))
				return err
			}))
		case 8:
			_ = w.timed(rnd, "w:1 insert into the ring", func(ctx context.Context) error {
				_, err := db.Collection("ring", one).InsertOne(ctx, doc(id, k))
				return err
			})
		}
	}
}

// firm is a write concern after which nothing gets lost: a majority, or of a set of one also its journal.
func (w *world) firm(rnd *rand.Rand) *concern.Write {
	if len(w.plan.cast.o.Config) == 1 && rnd.IntN(2) == 0 {
		return &concern.Write{W: 1, Journal: new(true)}
	}
	return concern.Majority()
}

func doc(id string, k int) bson.D {
	return bson.D{{Key: "_id", Value: id}, {Key: "u", Value: id}, {Key: "list", Value: bson.A{1, 2, k}}}
}

// count adds one to the writer's counter and its own number to a list: who is applied twice shows twice.
func (w *world) count(rnd *rand.Rand, db *sextant.Database, g int) {
	counters := db.Collection("counters", sextant.CollectionOptions{WriteConcern: w.firm(rnd)})
	op, after := w.books.counting(g), int32(-1)
	which := bson.D{{Key: "_id", Value: int32(g)}}
	inc := bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int32(1)}}}, {Key: "$push", Value: bson.D{{Key: "ops", Value: op}}}}
	what, modify := fmt.Sprintf("increment %d of counter %d", op, g), rnd.IntN(2) == 0
	err := w.timed(rnd, what, func(ctx context.Context) error {
		if !modify {
			_, err := counters.UpdateOne(ctx, which, inc)
			return err
		}
		got, err := counters.FindOneAndUpdate(ctx, which, inc, sextant.FindOneAndUpdateOptions{ReturnDocument: sextant.After})
		if err == nil {
			after = numberOf(got)
		}
		return err
	})
	w.books.counted(g, op, after, err)
}

func numberOf(d bson.D) int32 {
	for _, e := range d {
		if n, ok := e.Value.(int32); ok && e.Key == "n" {
			return n
		}
	}
	return 0
}

// remove deletes a document of which it is sure that it is there.
func (w *world) remove(rnd *rand.Rand, docs *sextant.Collection[bson.D], id string) {
	w.books.mu.Lock()
	sure := w.books.docs[id] == kept
	w.books.mu.Unlock()
	if !sure {
		return
	}
	w.books.deleting(id)
	var n int64
	err := w.timed(rnd, "delete "+id, func(ctx context.Context) error {
		res, err := docs.DeleteOne(ctx, bson.D{{Key: "_id", Value: id}})
		if err == nil {
			n = res.DeletedCount
		}
		return err
	})
	w.books.deleted(id, n, err)
}

// want is what a read asks for. It travels in the context, so that the watch knows it when the command is sent.
type want struct {
	mode  readpref.Mode
	tags  []readpref.TagSet
	stale time.Duration // at most; 0: any
}

type wantKey struct{}

var modes = []readpref.Mode{readpref.PrimaryMode, readpref.PrimaryPreferredMode, readpref.SecondaryMode, readpref.SecondaryPreferredMode, readpref.NearestMode}

// preference is one of the five modes, in some reads with tags or a bound on staleness, at night often with that.
func (w *world) preference(rnd *rand.Rand) *readpref.ReadPref {
	mode := modes[rnd.IntN(len(modes))]
	var opts []readpref.Option
	if mode != readpref.PrimaryMode {
		which := rnd.IntN(6)
		if w.plan.night {
			which = 1 + rnd.IntN(4)
		}
		switch which {
		case 0:
			opts = append(opts, readpref.Tags("dc", "east"))
		case 1:
			opts = append(opts, readpref.TagSets(readpref.TagSetOf(map[string]string{"n": "1"}), readpref.TagSetOf(map[string]string{"dc": "west"}), nil))
		case 2, 3, 4:
			if which == 2 || w.plan.night {
				opts = append(opts, readpref.MaxStaleness(100*time.Second))
			}
		}
	}
	p, err := readpref.New(mode, opts...)
	if err != nil {
		panic(err)
	}
	return p
}

func asking(ctx context.Context, p *readpref.ReadPref) context.Context {
	limit, _ := p.MaxStaleness()
	return context.WithValue(ctx, wantKey{}, want{p.Mode(), p.TagSets(), limit})
}

// read reads the counters in every mode. What a majority read shows must not go away.
func (w *world) read(ctx context.Context, g int) {
	rnd := w.dice(uint64(200 + g))
	counters := w.client.Database("story").Collection("counters")
	for ctx.Err() == nil {
		w.idle(rnd, 400)
		p, level := w.preference(rnd), []*concern.Read{nil, concern.Local(), concern.ReadMajority()}[rnd.IntN(3)]
		from := counters.With(sextant.CollectionOptions{ReadConcern: level, ReadPreference: p})
		_ = w.timed(rnd, "read, "+p.String(), func(ctx context.Context) error {
			cur, err := from.Find(asking(ctx, p), bson.D{{Key: "_id", Value: bson.D{{Key: "$lt", Value: causalID}}}}, sextant.FindOptions{
				Projection: bson.D{{Key: "n", Value: 1}}})
			if err != nil {
				return err
			}
			docs, err := cur.All(ctx)
			if err != nil {
				return err
			}
			w.books.read(p.Mode().String())
			for _, d := range docs {
				if id, ok := d[0].Value.(int32); ok && level != nil && level.Level == concern.LevelMajority {
					w.books.shown(int(id), numberOf(d))
				}
			}
			return nil
		})
	}
}

// goForward reads and increments a counter of its own, each time after the operationTime of the last answer: whatever
// member answers, the counter never goes back.
func (w *world) goForward(ctx context.Context) {
	rnd := w.dice(300)
	db := w.client.Database("story")
	var after bson.Timestamp
	for ctx.Err() == nil {
		w.idle(rnd, 400)
		cmd, p := tickCommand(), readpref.Primary()
		if rnd.IntN(3) > 0 {
			cmd, p = lookCommand(after), w.preference(rnd)
		}
		_ = w.timed(rnd, "causal "+cmd[0].Key, func(ctx context.Context) error {
			reply, err := db.RunCommand(asking(ctx, p), cmd, sextant.RunCommandOptions{ReadPreference: p})
			if err != nil {
				return err
			}
			w.books.read("causal")
			n, at := tickOf(reply)
			w.hears(n, reply)
			if at.After(after) {
				after = at
			}
			return nil
		})
	}
}

// hears books what the causal reader was told.
func (w *world) hears(n int32, reply bson.Raw) {
	if before := w.books.told(n); n < before {
		w.accuse(forward, "after %d it was told %d by %v", before, n, reply)
	}
}

func tickCommand() bson.D {
	return bson.D{{Key: "findAndModify", Value: "counters"}, {Key: "query", Value: bson.D{{Key: "_id", Value: causalID}}},
		{Key: "update", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int32(1)}}}}}, {Key: "new", Value: true},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}}}
}

func lookCommand(after bson.Timestamp) bson.D {
	level := bson.D{{Key: "level", Value: "majority"}}
	if !after.IsZero() {
		level = append(level, bson.E{Key: "afterClusterTime", Value: after})
	}
	return bson.D{{Key: "find", Value: "counters"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: causalID}}},
		{Key: "singleBatch", Value: true}, {Key: "readConcern", Value: level}}
}

// tickOf is the counter in a reply of either command, and the reply's time.
func tickOf(reply bson.Raw) (n int32, at bson.Timestamp) {
	v := reply.Lookup("value", "n")
	if v.IsZero() {
		v = reply.Lookup("cursor", "firstBatch", "0", "n")
	}
	n, _ = v.Int32OK()
	at.T, at.I, _ = reply.Lookup("operationTime").TimestampOK()
	return n, at
}
