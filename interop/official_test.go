// Package interop lets strangers judge the embedded set: clients that nobody here wrote.
package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sextantdb/sextant/replset"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// official connects the official driver to a fresh three-member set.
func official(t *testing.T, set *replset.Set, more ...*options.ClientOptions) *mongo.Client {
	t.Helper()
	o := append([]*options.ClientOptions{options.Client().ApplyURI(set.URI()).SetServerSelectionTimeout(10 * time.Second)}, more...)
	client, err := mongo.Connect(o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := client.Disconnect(ctx); err != nil {
			t.Errorf("disconnect: %v", err)
		}
	})
	return client
}

func TestOfficialDriverDiscoversEveryMember(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 3})
	var mu sync.Mutex
	kinds := map[string]string{}
	monitor := &event.ServerMonitor{TopologyDescriptionChanged: func(e *event.TopologyDescriptionChangedEvent) {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range e.NewDescription.Servers {
			kinds[s.Addr.String()] = s.Kind
		}
	}}
	client := official(t, set, options.Client().SetServerMonitor(monitor))
	if err := client.Ping(t.Context(), readpref.Primary()); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		mu.Lock()
		var got []string
		for _, m := range set.Members() {
			got = append(got, kinds[m.Addr()])
		}
		mu.Unlock()
		slices.Sort(got)
		if slices.Equal(got, []string{"RSPrimary", "RSSecondary", "RSSecondary"}) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the official driver sees %v", got)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

type person struct {
	ID     bson.ObjectID `bson:"_id,omitempty"`
	Name   string
	Age    int
	Awards []string `bson:"awards,omitempty"`
}

func TestOfficialDriverDoesCRUD(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 3})
	ctx := t.Context()
	people := official(t, set).Database("interop").Collection("people", options.Collection().SetWriteConcern(writeconcern.Majority()))

	if _, err := people.InsertMany(ctx, []person{{Name: "joe", Age: 30, Awards: []string{"gold"}}, {Name: "ann", Age: 41}}); err != nil {
		t.Fatal(err)
	}
	var joe person
	if err := people.FindOne(ctx, bson.M{"awards": "gold"}).Decode(&joe); err != nil || joe.Name != "joe" || joe.ID.IsZero() {
		t.Fatalf("find by an array's element: %+v, %v", joe, err)
	}
	if err := people.FindOne(ctx, bson.M{"_id": joe.ID.Hex()}).Decode(&joe); !errors.Is(err, mongo.ErrNoDocuments) {
		t.Fatalf("a string matched an ObjectID: %v", err)
	}
	up, err := people.UpdateMany(ctx, bson.M{"age": bson.M{"$gt": 20}}, bson.M{"$inc": bson.M{"age": 1}, "$push": bson.M{"awards": "silver"}})
	if err == nil && up.ModifiedCount != 2 || err != nil {
		t.Fatalf("update many: %+v, %v", up, err)
	}
	var after person
	err = people.FindOneAndUpdate(ctx, bson.M{"name": "ann"}, bson.M{"$set": bson.M{"age": 50}},
		options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&after)
	if err != nil || after.Age != 50 || !slices.Equal(after.Awards, []string{"silver"}) {
		t.Fatalf("find one and update: %+v, %v", after, err)
	}
	if n, err := people.CountDocuments(ctx, bson.M{}); err != nil || n != 2 {
		t.Fatalf("count: %d, %v", n, err)
	}
	cur, err := people.Aggregate(ctx, mongo.Pipeline{{{Key: "$group", Value: bson.D{{Key: "_id", Value: nil}, {Key: "sum", Value: bson.D{{Key: "$sum", Value: "$age"}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	var sums []struct{ Sum int }
	if err := cur.All(ctx, &sums); err != nil || len(sums) != 1 || sums[0].Sum != 81 {
		t.Fatalf("aggregate: %+v, %v", sums, err)
	}
	if _, err := people.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "name", Value: 1}}, Options: options.Index().SetUnique(true)}); err != nil {
		t.Fatal(err)
	}
	if _, err := people.InsertOne(ctx, person{Name: "joe"}); !mongo.IsDuplicateKeyError(err) {
		t.Fatalf("a second joe: %v", err)
	}
	if res, err := people.DeleteMany(ctx, bson.M{}); err != nil || res.DeletedCount != 2 {
		t.Fatalf("delete many: %+v, %v", res, err)
	}
}

func TestOfficialDriverReadsACursorOverSeveralBatchesFromASecondary(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 3})
	ctx := t.Context()
	client := official(t, set)
	numbers := client.Database("interop").Collection("numbers", options.Collection().SetWriteConcern(&writeconcern.WriteConcern{W: 3}))
	docs := make([]any, 500)
	for i := range docs {
		docs[i] = bson.D{{Key: "n", Value: i}}
	}
	if _, err := numbers.InsertMany(ctx, docs); err != nil {
		t.Fatal(err)
	}
	reader := client.Database("interop").Collection("numbers", options.Collection().SetReadPreference(readpref.Secondary()))
	cur, err := reader.Find(ctx, bson.M{}, options.Find().SetBatchSize(37).SetSort(bson.M{"n": 1}))
	if err != nil {
		t.Fatal(err)
	}
	var got []struct{ N int }
	if err := cur.All(ctx, &got); err != nil || len(got) != len(docs) {
		t.Fatalf("read %d of %d: %v", len(got), len(docs), err)
	}
	for i, g := range got {
		if g.N != i {
			t.Fatalf("document %d holds %d", i, g.N)
		}
	}
}

// Four writers go on through a step-down; what was acknowledged by a majority is there once, and once only.
func TestOfficialDriverSurvivesAStepDown(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 3})
	ctx := t.Context()
	log := official(t, set).Database("interop").Collection("log", options.Collection().SetWriteConcern(writeconcern.Majority()))
	if _, err := log.InsertOne(ctx, bson.D{{Key: "_id", Value: "first"}}); err != nil {
		t.Fatal(err)
	}
	before := set.Primary().Addr()

	var stop atomic.Bool
	var wg sync.WaitGroup
	var done atomic.Int64
	acked := make([][]string, 4)
	for w := range acked {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				id := fmt.Sprintf("%d-%d", w, i)
				if _, err := log.InsertOne(ctx, bson.D{{Key: "_id", Value: id}}); err != nil {
					t.Errorf("insert %s: %v", id, err)
					return
				}
				acked[w] = append(acked[w], id)
				done.Add(1)
			}
		})
	}
	reaches(t, &done, 25)
	if err := set.StepDown(ctx); err != nil {
		t.Error(err)
	}
	reaches(t, &done, done.Load()+25)
	stop.Store(true)
	wg.Wait()
	if after, err := set.WaitPrimary(ctx); err != nil || after.Addr() == before {
		t.Errorf("the primary did not move from %s: %v", before, err)
	}
	total := 1
	for _, ids := range acked {
		total += len(ids)
	}
	if n, err := log.CountDocuments(context.Background(), bson.M{}); err != nil || int(n) != total {
		t.Errorf("%d documents, %d were acknowledged: %v", n, total, err)
	}
}

func TestOfficialDriverSpeaksTLSAndShowsItsCertificate(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 3, TLS: &replset.TLS{ClientCertificates: true}})
	client := official(t, set)
	people := client.Database("shop").Collection("people", options.Collection().SetWriteConcern(writeconcern.Majority()))
	for i := range 3 {
		if _, err := people.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}}); err != nil {
			t.Fatal(err)
		}
		if err := set.StepDown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := people.CountDocuments(t.Context(), bson.D{}); err != nil || n != 3 {
		t.Errorf("%d documents, %v", n, err)
	}
}
