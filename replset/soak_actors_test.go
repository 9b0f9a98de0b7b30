package replset

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// What does not change during a soak: so many documents of so many kinds, each at the price of 1.
const (
	soakStock = 500
	soakKinds = 10
)

// soakKept is how many documents of a worker there are, about: so few that a tenth of a soak inserts them.
const soakKept = 5

// soakBooks are what the workers of a soak were promised, and what went on.
type soakBooks struct {
	mu             sync.Mutex // guards all below
	done, failed   int
	kinds, errors  map[string]int // operations by name, failures by what they say
	faults         map[string]int
	longest        time.Duration
	broken         []string
	inserts        int              // acknowledged
	there          map[int][]string // by worker, of collection kept: acknowledged, and nobody has tried to delete it
	gone           map[int][]string // the last of those whose insertion and deletion were acknowledged
	own            map[int]raised
	counted, tried int64
}

// raised is how far a worker has raised the number of its own document: the newest that was acknowledged, and the newest
// that was tried. A raise never lowers the number, however late it is executed.
type raised struct{ sure, tried int32 }

func (b *soakBooks) struck(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.faults == nil {
		b.faults = map[string]int{}
	}
	b.faults[what]++
}

// accuse notes a broken promise. The caller holds mu.
func (b *soakBooks) accuse(format string, args ...any) {
	if len(b.broken) < 20 {
		b.broken = append(b.broken, fmt.Sprintf(format, args...))
	}
}

// soakLimit is what most operations may take. They may be longer by soakGrace, and by so many times what a timer is late at
// the moment, for the processors are shared, perhaps with others than us.
const (
	soakLimit = 5 * time.Second
	soakGrace = time.Second
	soakTurns = 20
)

// pulse measures until the context ends how late timers are: the worst of late, less and less of what is long ago.
func (w *soak) pulse(ctx context.Context) {
	const beat = 20 * time.Millisecond
	for ctx.Err() == nil {
		begun := time.Now()
		rest(ctx, beat)
		late := time.Since(begun) - beat
		w.late.Store(int64(max(late, time.Duration(w.late.Load()*499/500))))
	}
}

// errSoakLies is what an operation says that was answered wrongly.
var errSoakLies = errors.New("a wrong answer")

// timed has one operation made within a limit, often an ample one, and books how it went.
func (w *soak) timed(rnd *rand.Rand, kind string, op func(ctx context.Context) error) error {
	limit := soakLimit
	if rnd.IntN(10) == 0 {
		limit = time.Duration(1+rnd.IntN(20_000)) * time.Microsecond // it gives up, early or late
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	begun := time.Now()
	err := op(ctx)
	took := time.Since(begun)
	b := &w.books
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kinds == nil {
		b.kinds, b.errors = map[string]int{}, map[string]int{}
	}
	b.done++
	b.kinds[kind]++
	b.longest = max(b.longest, took)
	if late := time.Duration(w.late.Load()); took > limit+soakGrace+soakTurns*late {
		b.accuse("%s took %v, with a limit of %v while timers were %v late: %v", kind, took, limit, late, err)
	}
	if err != nil {
		b.failed++
		b.errors[soakError(err)]++
	}
	if errors.Is(err, errSoakLies) || mongoerr.Code(err) == mongoerr.CodeInternalError || err != nil && strings.Contains(err.Error(), "panic") {
		b.accuse("%s: %v", kind, err)
	}
	return err
}

// soakError is what sort of failure it is.
func soakError(err error) string {
	e, ok := errors.AsType[*mongoerr.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "out of time"
	case ok && e.Code != 0:
		return fmt.Sprintf("code %d, %s", e.Code, mongoerr.CodeName(e.Code))
	case ok && (e.Stage != mongoerr.StageServer || mongoerr.Code(err) != 0):
		return fmt.Sprintf("stage %v, network %v, code %d", e.Stage, mongoerr.IsNetwork(err), mongoerr.Code(err))
	}
	return firstLine(err)
}

// work is one worker's life.
func (w *soak) work(ctx context.Context, g int) {
	rnd := rand.New(rand.NewPCG(w.seed, uint64(w.loads*1000+g)))
	db := w.client.Database("soak", sextant.DatabaseOptions{WriteConcern: concern.Majority()})
	took := time.Duration(0)
	for k := 0; ctx.Err() == nil; k++ {
		rest(ctx, w.pause/2+time.Duration(rnd.Int64N(int64(w.pause)+1))+2*min(took, time.Second)) // on a busy machine all would only wait
		begun := time.Now()
		switch rnd.IntN(12) {
		case 0:
			w.raise(rnd, db, g)
		case 1:
			w.count(rnd, db)
		case 2, 3:
			w.insert(rnd, db, g, k)
		case 4:
			w.loose(rnd, db, g)
		case 5, 6:
			_ = w.timed(rnd, "find", func(ctx context.Context) error { return w.readStock(ctx, rnd, db) })
		case 7:
			_ = w.timed(rnd, "aggregate", func(ctx context.Context) error { return w.sumStock(ctx, rnd, db) })
		case 8:
			_ = w.timed(rnd, "count", func(ctx context.Context) error {
				n, err := db.Collection("stock").CountDocuments(ctx, bson.D{{Key: "price", Value: 1}}, sextant.CountOptions{ReadPreference: soakPreference(rnd)})
				return soakWant(n, soakStock, err)
			})
		case 9:
			_ = w.timed(rnd, "distinct", func(ctx context.Context) error {
				kinds, err := sextant.Distinct[int32](ctx, db.Collection("stock"), "kind", bson.D{}, sextant.DistinctOptions{ReadPreference: soakPreference(rnd)})
				return soakWant(int64(len(kinds)), soakKinds, err)
			})
		case 10:
			_ = w.timed(rnd, "find one", func(ctx context.Context) error {
				id := int32(rnd.IntN(soakStock))
				d, err := db.Collection("stock").FindOne(ctx, bson.D{{Key: "_id", Value: id}}, sextant.FindOneOptions{ReadPreference: soakPreference(rnd)})
				if err == nil && d[0].Value != id {
					err = fmt.Errorf("%w: %v for %d", errSoakLies, d, id)
				}
				return err
			})
		case 11:
			_ = w.timed(rnd, "command", func(ctx context.Context) error {
				_, err := db.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}, sextant.RunCommandOptions{ReadPreference: soakPreference(rnd)})
				return err
			})
		}
		took = time.Since(begun)
	}
}

func soakWant(got, want int64, err error) error {
	if err == nil && got != want {
		return fmt.Errorf("%w: %d, want %d", errSoakLies, got, want)
	}
	return err
}

func soakPreference(rnd *rand.Rand) *readpref.ReadPref {
	return []*readpref.ReadPref{readpref.Primary(), readpref.PrimaryPreferred(), readpref.SecondaryPreferred(), readpref.Secondary(),
		readpref.Nearest(), readpref.Nearest(readpref.Tags("dc", "west"))}[rnd.IntN(6)]
}

// raise raises the worker's own number, if it is lower.
func (w *soak) raise(rnd *rand.Rand, db *sextant.Database, g int) {
	b := &w.books
	b.mu.Lock()
	if b.own == nil {
		b.own = map[int]raised{}
	}
	mine := b.own[g]
	mine.tried++
	b.own[g] = mine
	b.mu.Unlock()
	err := w.timed(rnd, "update", func(ctx context.Context) error {
		lower := bson.D{{Key: "_id", Value: int32(g)}, {Key: "v", Value: bson.D{{Key: "$lt", Value: mine.tried}}}}
		_, err := db.Collection("own").UpdateOne(ctx, lower, bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: mine.tried}}}})
		return err
	})
	if err == nil {
		b.mu.Lock()
		b.own[g] = raised{mine.tried, mine.tried}
		b.mu.Unlock()
	}
}

// count adds 1 to the number of all.
func (w *soak) count(rnd *rand.Rand, db *sextant.Database) {
	b := &w.books
	b.mu.Lock()
	b.tried++
	b.mu.Unlock()
	err := w.timed(rnd, "find and update", func(ctx context.Context) error {
		_, err := db.Collection("counter").FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: "n"}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int64(1)}}}})
		return err
	})
	if err == nil {
		b.mu.Lock()
		b.counted++
		b.mu.Unlock()
	}
}

// insert inserts a document, and deletes the oldest when there are more than soakKept of the worker's.
func (w *soak) insert(rnd *rand.Rand, db *sextant.Database, g, k int) {
	b, kept := &w.books, db.Collection("kept")
	id := fmt.Sprintf("%d-%d-%d", g, k, rnd.Uint32()) // k begins anew in each load
	err := w.timed(rnd, "insert", func(ctx context.Context) error {
		_, err := kept.InsertOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: "g", Value: int32(g)}, {Key: "k", Value: int32(k)}, {Key: "text", Value: strings.Repeat("x", 200)}})
		return err
	})
	old := b.inserted(g, id, err)
	if old == "" {
		return
	}
	err = w.timed(rnd, "delete", func(ctx context.Context) error {
		_, err := kept.DeleteOne(ctx, bson.D{{Key: "_id", Value: old}})
		return err
	})
	if err == nil {
		b.deleted(g, old)
	}
}

// inserted books an insertion, and says what is to be deleted, of which no more is known from now on.
func (b *soakBooks) inserted(g int, id string, err error) (old string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.there == nil {
		b.there, b.gone = map[int][]string{}, map[int][]string{}
	}
	if err == nil {
		b.inserts++
		b.there[g] = append(b.there[g], id)
	}
	if len(b.there[g]) > soakKept {
		old, b.there[g] = b.there[g][0], b.there[g][1:]
	}
	return old
}

// deleted books a deletion. The last few of a worker are remembered.
func (b *soakBooks) deleted(g int, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone[g] = append(b.gone[g], id)
	if len(b.gone[g]) > soakKept {
		b.gone[g] = b.gone[g][1:]
	}
}

// loose inserts and deletes what may get lost, since only the primary need have it.
func (w *soak) loose(rnd *rand.Rand, db *sextant.Database, g int) {
	loose := db.Collection("loose", sextant.CollectionOptions{WriteConcern: concern.W(1)})
	_ = w.timed(rnd, "insert many", func(ctx context.Context) error {
		var docs []bson.D
		for range 5 {
			docs = append(docs, bson.D{{Key: "g", Value: int32(g)}, {Key: "list", Value: bson.A{1, "two", 3.5}}})
		}
		_, err := loose.InsertMany(ctx, docs)
		return err
	})
	_ = w.timed(rnd, "delete many", func(ctx context.Context) error {
		_, err := loose.DeleteMany(ctx, bson.D{{Key: "g", Value: int32(g)}})
		return err
	})
}

// readStock reads all of the stock in several batches, or leaves off in the middle.
func (w *soak) readStock(ctx context.Context, rnd *rand.Rand, db *sextant.Database) error {
	cur, err := db.Collection("stock").Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: 0}}}},
		sextant.FindOptions{BatchSize: int32(50 + rnd.IntN(200)), ReadPreference: soakPreference(rnd)})
	if err != nil {
		return err
	}
	defer cur.Close(context.Background())
	enough := soakStock + 1
	if rnd.IntN(4) == 0 {
		enough = rnd.IntN(soakStock)
	}
	n := 0
	for _, err := range cur.Each(ctx) {
		if err != nil {
			return err
		}
		if n++; n == enough {
			return nil
		}
	}
	return soakWant(int64(n), soakStock, nil)
}

// sumStock adds up the prices by kind.
func (w *soak) sumStock(ctx context.Context, rnd *rand.Rand, db *sextant.Database) error {
	cur, err := sextant.Aggregate[bson.D](ctx, db.Collection("stock"), bson.A{
		bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$kind"}, {Key: "sum", Value: bson.D{{Key: "$sum", Value: "$price"}}}}}},
		bson.D{{Key: "$match", Value: bson.D{{Key: "sum", Value: soakStock / soakKinds}}}}}, sextant.AggregateOptions{ReadPreference: soakPreference(rnd)})
	if err != nil {
		return err
	}
	all, err := cur.All(ctx)
	return soakWant(int64(len(all)), soakKinds, err)
}

// tidy deletes what the workers do not know to be there: documents whose insertion or deletion has failed, in part, and what
// may get lost. A set holds more memory for them, rightly, and the longer the soak the more of them there are.
func (w *soak) tidy(t *testing.T) {
	b := &w.books
	b.mu.Lock()
	defer b.mu.Unlock()
	known := bson.A{}
	for _, ids := range b.there {
		for _, id := range ids {
			known = append(known, id)
		}
	}
	db := w.client.Database("soak", sextant.DatabaseOptions{WriteConcern: concern.Majority()})
	for name, filter := range map[string]bson.D{"kept": {{Key: "_id", Value: bson.D{{Key: "$nin", Value: known}}}}, "loose": {}} {
		if _, err := db.Collection(name).DeleteMany(t.Context(), filter); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.set.AwaitReplication(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// audit holds the set to what the workers were promised.
func (b *soakBooks) audit(t *testing.T, c *sextant.Client) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	db := c.Database("soak", sextant.DatabaseOptions{ReadConcern: concern.ReadMajority()})
	all := func(name string) map[any]bson.D {
		cur, err := db.Collection(name).Find(ctx, bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		docs, err := cur.All(ctx)
		if err != nil {
			t.Fatal(err)
		}
		byID := map[any]bson.D{}
		for _, d := range docs {
			byID[d[0].Value] = d
		}
		return byID
	}
	kept, own, counter := all("kept"), all("own"), all("counter")
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ids := range b.there {
		for _, id := range ids {
			if kept[id] == nil {
				b.accuse("%s was acknowledged by a majority, and is lost", id)
			}
		}
	}
	for _, ids := range b.gone {
		for _, id := range ids {
			if kept[id] != nil {
				b.accuse("the deletion of %s was acknowledged by a majority, and it is there", id)
			}
		}
	}
	for g, r := range b.own {
		if v, _ := own[int32(g)][1].Value.(int32); v < r.sure || v > r.tried {
			b.accuse("the number of worker %d is %d; %d was acknowledged, and %d tried last", g, v, r.sure, r.tried)
		}
	}
	if n, _ := counter["n"][1].Value.(int64); n < b.counted || n > b.tried {
		b.accuse("the number of all is %d after %d acknowledged increments and %d attempts", n, b.counted, b.tried)
	}
}
