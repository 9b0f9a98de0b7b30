package interop

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sextantdb/sextant/replset"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// The official driver counts through kills, a partition and a hung primary: what it was told is done was done, once.
func TestOfficialDriverCountsExactlyThroughFaults(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 3, ElectionTimeout: 400 * time.Millisecond})
	ctx := t.Context()
	counters := official(t, set).Database("interop").Collection("counters", options.Collection().SetWriteConcern(writeconcern.Majority()))
	var stop atomic.Bool
	var wg sync.WaitGroup
	var low, high [4]atomic.Int64
	for g := range low {
		if _, err := counters.InsertOne(ctx, bson.D{{Key: "_id", Value: g}, {Key: "n", Value: 0}}); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for !stop.Load() {
				high[g].Add(1)
				if _, err := counters.UpdateByID(ctx, g, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}); err == nil {
					low[g].Add(1)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	check := func(what string, err error) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	lead := func() int {
		p, err := set.WaitPrimary(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return p.Index()
	}
	time.Sleep(100 * time.Millisecond)
	dead := lead()
	check("kill", set.Kill(dead))
	time.Sleep(800 * time.Millisecond)
	check("restart", set.Restart(dead))
	time.Sleep(300 * time.Millisecond)
	alone := lead()
	check("partition", set.Partition([]int{alone}, []int{(alone + 1) % 3, (alone + 2) % 3}))
	time.Sleep(time.Second)
	set.Heal()
	check("step down", set.StepDown(ctx))
	for g := range low { // of the new primary, and enough in all to be worth counting
		reaches(t, &low[g], max(low[g].Load()+1, 20))
	}
	stop.Store(true)
	wg.Wait()
	check("replication", set.AwaitReplication(ctx))
	for g := range low {
		var doc struct{ N int }
		if err := counters.FindOne(ctx, bson.D{{Key: "_id", Value: g}}).Decode(&doc); err != nil {
			t.Fatal(err)
		}
		if n := int64(doc.N); n < low[g].Load() || n > high[g].Load() {
			t.Errorf("counter %d is %d after %d acknowledged and %d attempted increments", g, n, low[g].Load(), high[g].Load())
		}
	}
}

// reaches waits until what is counted has come to n.
func reaches(t *testing.T, counted *atomic.Int64, n int64) {
	t.Helper()
	for end := time.Now().Add(time.Minute); counted.Load() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d after a minute, want %d", counted.Load(), n)
		}
	}
}

// In a causally consistent session a secondary that is late shows what the session has written.
func TestOfficialDriverReadsItsOwnWritesFromASecondary(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 3})
	client := official(t, set)
	sess, err := client.StartSession(options.Session().SetCausalConsistency(true))
	if err != nil {
		t.Fatal(err)
	}
	defer sess.EndSession(t.Context())
	ctx := mongo.NewSessionContext(t.Context(), sess)
	for _, level := range []*readconcern.ReadConcern{readconcern.Local(), readconcern.Majority()} {
		c := client.Database("interop").Collection("causal_"+level.Level,
			options.Collection().SetReadConcern(level).SetReadPreference(readpref.Secondary()).SetWriteConcern(writeconcern.Majority()))
		for i := range 50 {
			if _, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: fmt.Sprint(i)}}); err != nil {
				t.Fatal(err)
			}
			if n, err := c.CountDocuments(ctx, bson.D{}); err != nil || int(n) != i+1 {
				t.Fatalf("%s: after %d inserts a secondary shows %d: %v", level.Level, i+1, n, err)
			}
		}
	}
}

func TestOfficialDriverMeetsWriteConcernErrors(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 3, ElectionTimeout: 5 * time.Second, WriteModes: map[string]map[string]int{"sites": {"dc": 2}},
		Config: []replset.MemberOptions{{Tags: map[string]string{"dc": "east"}}, {Tags: map[string]string{"dc": "east"}}, {Tags: map[string]string{"dc": "west"}}}})
	db := official(t, set).Database("interop")
	insert := func(w any) error {
		_, err := db.RunCommand(t.Context(), bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: w}, {Key: "wtimeout", Value: 200}}}}).Raw()
		return err
	}
	if err := insert("sites"); err != nil {
		t.Errorf("w: sites with both sites there: %v", err)
	}
	p := set.Primary().Index()
	away := 2
	if p == 2 {
		t.Fatal("the primary is in the west")
	}
	if err := set.Partition([]int{0, 1}, []int{away}); err != nil {
		t.Fatal(err)
	}
	for w, code := range map[any]int{"sites": 64, "none": 79, 3: 64, 4: 100} {
		err := insert(w)
		if e, ok := err.(mongo.CommandError); ok {
			t.Errorf("w: %v: a command error %v in place of a write concern error", w, e)
			continue
		}
		we, _ := errors.AsType[mongo.WriteException](err)
		if we.WriteConcernError == nil || we.WriteConcernError.Code != code {
			t.Errorf("w: %v: %v, want the code %d", w, err, code)
		}
	}
	if err := insert("majority"); err != nil {
		t.Errorf("w: majority: %v", err)
	}
}
