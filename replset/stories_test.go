package replset

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset/internal/command"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// A story is a set that lives through random faults on fake time while the driver writes to it and reads from it.
// Afterwards it must have kept every promise: what was acknowledged is there, once, and the same on every member.
type story struct {
	t    *testing.T
	seed uint64
	rnd  *rand.Rand
	set  *Set
	log  []string

	mu      sync.Mutex // guards all below
	acked   map[string]bool
	seen    map[string]bool // by a majority read
	low     [storyWriters]int32
	high    [storyWriters]int32
	unknown int
	leaders map[int64]int
	strange []string
}

const (
	storyWriters = 3
	storyLength  = 12 * time.Second
)

// TestStoriesOfFaultsLoseAndRepeatNothing tells a few stories; SEXTANT_STORIES says how many more.
func TestStoriesOfFaultsLoseAndRepeatNothing(t *testing.T) {
	first, n := uint64(1), uint64(6)
	if more, err := strconv.ParseUint(os.Getenv("SEXTANT_STORIES"), 10, 32); err == nil {
		n = more
	}
	if from, err := strconv.ParseUint(os.Getenv("SEXTANT_STORY"), 10, 32); err == nil {
		first = from
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { tellStory(t, seed) }) })
	}
}

func tellStory(t *testing.T, seed uint64) {
	o := cast(seed)
	set, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	st := &story{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 7)), set: set, acked: map[string]bool{}, seen: map[string]bool{}, leaders: map[int64]int{}}
	defer set.Close()
	cfg, err := sextant.ParseURI(set.URI())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Dial, cfg.AppName, cfg.ServerSelectionTimeout = o.Network.Dial, "story", 5*time.Second
	client, err := sextant.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.WithoutCancel(t.Context()))
	st.prepare(client)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for g := range storyWriters {
		wg.Go(func() { st.write(ctx, client, g) })
	}
	wg.Go(func() { st.read(ctx, client) })
	wg.Go(func() { st.watchLeaders(ctx) })
	for i := range set.Members() {
		wg.Go(func() { st.watchHello(ctx, i) })
	}
	st.trouble()
	st.heal()
	time.Sleep(5 * time.Second)
	cancel()
	wg.Wait()
	st.audit()
	if t.Failed() {
		for _, line := range st.log {
			t.Log(line)
		}
	}
}

// cast is one of five sets: of three and of five equals; with priorities, a delayed member and one that does not vote;
// with an arbiter; with an oplog so short that who is away must copy everything.
func cast(seed uint64) Options {
	o := Options{Network: NewMemoryNetwork()}
	member := func(m MemberOptions) {
		m.Name, m.Port = fmt.Sprintf("m%d", len(o.Config)), 27017
		o.Config = append(o.Config, m)
	}
	for range 3 {
		member(MemberOptions{})
	}
	switch seed % 5 {
	case 1:
		member(MemberOptions{})
		member(MemberOptions{})
	case 2:
		o.Config[1].Priority, o.Config[2].Priority = new(2.0), new(0.5)
		member(MemberOptions{SecondaryDelay: 700 * time.Millisecond, NoVote: true, Hidden: true})
		member(MemberOptions{NoVote: true})
	case 3:
		member(MemberOptions{Arbiter: true})
		member(MemberOptions{})
	case 4:
		o.OplogEntries = 60
		member(MemberOptions{NoVote: true})
		member(MemberOptions{NoVote: true, Hidden: true})
	}
	return o
}

// wipeable says whether losing the member's data breaks no promise: it does not count for a majority.
func (st *story) wipeable(i int) bool { return st.set.config().Members[i].Votes == 0 }

func (st *story) note(format string, args ...any) {
	st.log = append(st.log, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
}

func (st *story) prepare(client *sextant.Client) {
	db := client.Database("story")
	majority := sextant.CollectionOptions{WriteConcern: concern.Majority()}
	for g := range storyWriters {
		if _, err := db.Collection("counters", majority).InsertOne(st.t.Context(), bson.D{{Key: "_id", Value: g}, {Key: "n", Value: int32(0)}}); err != nil {
			st.t.Fatal(err)
		}
	}
	for _, cmd := range []bson.D{
		{{Key: "createIndexes", Value: "docs"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "u", Value: 1}}}, {Key: "name", Value: "u_1"}, {Key: "unique", Value: true}}}}},
		{{Key: "create", Value: "ring"}, {Key: "capped", Value: true}, {Key: "size", Value: 100000}, {Key: "max", Value: 20}},
	} {
		if _, err := db.RunCommand(st.t.Context(), cmd); err != nil {
			st.t.Fatal(err)
		}
	}
}

// write makes writes of every kind until the story is over and books what was acknowledged.
func (st *story) write(ctx context.Context, client *sextant.Client, g int) {
	rnd := rand.New(rand.NewPCG(st.seed, uint64(100+g)))
	db := client.Database("story")
	majority := sextant.CollectionOptions{WriteConcern: concern.Majority()}
	one := sextant.CollectionOptions{WriteConcern: concern.W(1)}
	docs, counters := db.Collection("docs", majority), db.Collection("counters", majority)
	inc := bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int32(1)}}}}
	for k := 0; ctx.Err() == nil; k++ {
		time.Sleep(time.Duration(5+rnd.IntN(60)) * time.Millisecond)
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), 4*time.Second)
		id := fmt.Sprintf("%d-%d", g, k)
		doc := bson.D{{Key: "_id", Value: id}, {Key: "u", Value: id}, {Key: "list", Value: bson.A{1, 2, k}}}
		switch rnd.IntN(6) {
		case 0, 1:
			_, err := docs.InsertOne(call, doc)
			st.booked(id, err)
		case 2:
			_, _ = docs.With(one).InsertOne(call, doc) // may be rolled back
		case 3:
			_, err := counters.UpdateOne(call, bson.D{{Key: "_id", Value: g}}, inc)
			st.counted(g, err)
		case 4:
			_, err := counters.FindOneAndUpdate(call, bson.D{{Key: "_id", Value: g}}, inc)
			st.counted(g, err)
		case 5:
			_, _ = db.Collection("ring", one).InsertOne(call, doc)
			_, _ = docs.With(one).DeleteOne(call, bson.D{{Key: "_id", Value: fmt.Sprintf("none-%d", k)}})
		}
		cancel()
	}
}

func (st *story) booked(id string, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if err == nil {
		st.acked[id] = true
	} else if st.unknown++; mongoerr.IsDuplicateKey(err) {
		st.strange = append(st.strange, fmt.Sprintf("the insert of %s was repeated: %v", id, err))
	}
}

func (st *story) counted(g int, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.high[g]++
	if err == nil {
		st.low[g]++
	} else {
		st.unknown++
	}
}

// read reads what a majority has from any member: it must still be there at the end.
func (st *story) read(ctx context.Context, client *sextant.Client) {
	level := sextant.CollectionOptions{ReadConcern: concern.ReadMajority(), ReadPreference: readpref.Nearest()}
	docs := client.Database("story").Collection("docs", level)
	for ctx.Err() == nil {
		time.Sleep(150 * time.Millisecond)
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		ids, err := sextant.Distinct[string](call, docs, "_id", bson.D{})
		cancel()
		if err != nil {
			continue
		}
		st.mu.Lock()
		for _, id := range ids {
			st.seen[id] = true
		}
		st.mu.Unlock()
	}
}

// watchLeaders looks for two primaries in one term.
func (st *story) watchLeaders(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(3 * time.Millisecond)
		for i, m := range st.set.Members() {
			r := m.current()
			if r == nil {
				continue
			}
			term, ok := r.WritablePrimary()
			if !ok {
				continue
			}
			st.mu.Lock()
			if other, known := st.leaders[term]; known && other != i {
				st.strange = append(st.strange, fmt.Sprintf("members %d and %d were both primary in term %d", i, other, term))
			}
			st.leaders[term] = i
			st.mu.Unlock()
		}
	}
}

// trouble does to the set whatever a test may do to one.
func (st *story) trouble() {
	n := len(st.set.Members())
	for end := time.Now().Add(storyLength); time.Now().Before(end); {
		time.Sleep(time.Duration(50+st.rnd.IntN(900)) * time.Millisecond)
		i := st.rnd.IntN(n)
		switch st.rnd.IntN(9) {
		case 0:
			if p := st.set.Primary(); p != nil && st.rnd.IntN(2) == 0 {
				i = p.Index()
			}
			st.note("kill %d: %v", i, st.set.Kill(i))
		case 1, 2:
			for j := range n {
				if st.set.Member(j).State() != "DOWN" {
					continue
				}
				if st.wipeable(j) && st.rnd.IntN(2) == 0 {
					st.note("wipe %d: %v", j, st.set.Wipe(j))
				}
				st.note("restart %d: %v", j, st.set.Restart(j))
			}
		case 3:
			perm := st.rnd.Perm(n)
			cut := 1 + st.rnd.IntN(n-1)
			st.note("partition %v %v: %v", perm[:cut], perm[cut:], st.set.Partition(perm[:cut], perm[cut:]))
		case 4:
			st.note("heal")
			st.set.Heal()
		case 5:
			st.note("hang %d: %v", i, st.set.Hang(i, true))
		case 6:
			for j := range n {
				_ = st.set.Hang(j, false)
			}
			st.note("nobody hangs")
		case 7:
			ctx, cancel := context.WithTimeout(st.t.Context(), 400*time.Millisecond)
			st.note("step down: %v", st.set.StepDown(ctx))
			cancel()
		case 8:
			d := time.Duration(st.rnd.IntN(60)) * time.Millisecond
			st.note("delay %d by %v: %v %v", i, d, st.set.Delay(i, d), st.set.Delay(i, d, MemberApp((i+1)%n)))
		}
	}
}

func (st *story) heal() {
	st.set.Heal()
	for j := range st.set.Members() {
		_ = st.set.Hang(j, false)
		_ = st.set.Delay(j, 0)
		for k := range st.set.Members() {
			_ = st.set.Delay(j, 0, MemberApp(k))
		}
		if st.set.Member(j).State() == "DOWN" {
			st.note("restart %d: %v", j, st.set.Restart(j))
		}
	}
	st.note("all is well again")
}

// resync has members copy all data that were away for longer than the oplog reaches back: they stay in RECOVERING else.
func (st *story) resync(ctx context.Context) {
	if _, err := st.set.WaitPrimary(ctx); err != nil {
		return
	}
	time.Sleep(time.Second)
	for j, m := range st.set.Members() {
		if m.State() == "RECOVERING" {
			st.note("resync %d: %v %v %v", j, st.set.Kill(j), st.set.Wipe(j), st.set.Restart(j))
		}
	}
}

// audit holds the set to its promises.
func (st *story) audit() {
	t := st.t
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	st.resync(ctx)
	if err := st.set.AwaitReplication(ctx); err != nil {
		t.Error(err)
		for i, m := range st.set.Members() {
			t.Logf("member %d: %s", i, m.State())
		}
		return
	}
	time.Sleep(time.Second) // the commit point travels by heartbeat
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, s := range st.strange {
		t.Error(s)
	}
	for i, m := range st.set.Members() {
		r := m.current()
		if st.set.config().Members[i].Arbiter {
			continue
		}
		if role := m.State(); role != "PRIMARY" && role != "SECONDARY" {
			t.Errorf("member %d is %s", i, role)
		}
		st.auditMember(i, r)
		if i > 0 {
			sameData(t, i, st.set.Members()[0].current().Store.Latest(), r.Store.Latest())
		}
		if got, want := r.Store.CommittedSnapshot().OpTime(), r.Store.Latest().OpTime(); got != want {
			t.Errorf("member %d has %v as committed and %v in all, %v after the last write", i, got, want, time.Second)
		}
	}
	t.Logf("%d acknowledged inserts, %d outcomes unknown, %d terms", len(st.acked), st.unknown, len(st.leaders))
	if len(st.acked) < 20 {
		t.Errorf("only %d inserts were acknowledged", len(st.acked))
	}
}

func (st *story) auditMember(i int, r *command.Member) {
	docs := r.Store.Latest().Collection("story.docs")
	have := map[string]bool{}
	for _, doc := range docs.Records(0) {
		id, _ := doc.Lookup("_id").StringValueOK()
		have[id] = true
	}
	for id := range st.acked {
		if !have[id] {
			st.t.Errorf("member %d lost the acknowledged %s", i, id)
		}
	}
	for id := range st.seen {
		if !have[id] {
			st.t.Errorf("member %d lost %s, which a majority read had shown", i, id)
		}
	}
	for _, doc := range r.Store.Latest().Collection("story.counters").Records(0) {
		g, _ := doc.Lookup("_id").AsInt64OK()
		n, _ := doc.Lookup("n").AsInt64OK()
		if n < int64(st.low[g]) || n > int64(st.high[g]) {
			st.t.Errorf("member %d: counter %d is %d after %d acknowledged and %d attempted increments", i, g, n, st.low[g], st.high[g])
		}
	}
	if ring := r.Store.Latest().Collection("story.ring"); ring.Count() > 20 {
		st.t.Errorf("member %d: %d documents in a ring of 20", i, ring.Count())
	}
}

// sameData compares two members, document by document, in natural order, the oplog included; and every index with the
// documents.
func sameData(t *testing.T, member int, a, b *store.Snapshot) {
	t.Helper()
	if !slices.Equal(a.Databases(), b.Databases()) {
		t.Errorf("member %d has the databases %v, member 0 %v", member, b.Databases(), a.Databases())
	}
	for _, db := range a.Databases() {
		for _, c := range a.Collections(db) {
			d := b.Collection(c.NS())
			if d == nil {
				t.Errorf("member %d lacks %s", member, c.NS())
				continue
			}
			if c.UUID() != d.UUID() || c.Count() != d.Count() || c.Size() != d.Size() || len(c.Indexes()) != len(d.Indexes()) {
				t.Errorf("%s: member %d has %d documents, %d bytes, %d indexes, member 0 %d, %d, %d", c.NS(), member,
					d.Count(), d.Size(), len(d.Indexes()), c.Count(), c.Size(), len(c.Indexes()))
			}
			theirs := map[store.RecordID][]byte{}
			for rid, doc := range d.Records(0) {
				theirs[rid] = doc
			}
			for rid, doc := range c.Records(0) {
				if !bytes.Equal(theirs[rid], doc) {
					t.Errorf("%s, record %d: member %d has %v, member 0 %v", c.NS(), rid, member, bson.Raw(theirs[rid]), doc)
					break
				}
			}
			indexesHold(t, member, d)
		}
	}
}

func indexesHold(t *testing.T, member int, c *store.Coll) {
	t.Helper()
	for _, fault := range c.Validate() {
		t.Errorf("member %d, %s: %s", member, c.NS(), fault)
	}
}
