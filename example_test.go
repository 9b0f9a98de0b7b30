package sextant_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/readpref"
)

type Person struct {
	ID     bson.ObjectID `bson:"_id"`
	Name   string        `bson:"name"`
	City   string        `bson:"city"`
	Awards []string      `bson:"awards,omitempty"`
}

// exampleCollection is an empty collection for an example, with a function that ends it.
func exampleCollection(name string, docs ...any) (*sextant.Client, *sextant.Collection[Person], func()) {
	ctx := context.Background()
	client, err := sextant.Connect(ctx, uri())
	if err != nil {
		log.Fatal(err)
	}
	people := sextant.CollectionOf[Person](client.Database("sextant_example"), name)
	if err := people.Drop(ctx); err != nil {
		log.Fatal(err)
	}
	if len(docs) > 0 {
		if _, err := people.InsertMany(ctx, docs); err != nil {
			log.Fatal(err)
		}
	}
	return client, people, func() {
		people.Drop(ctx)
		client.Close(ctx)
	}
}

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := sextant.Connect(ctx, uri()) // "mongodb://localhost:27017,localhost:27018/?replicaSet=rs0"
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	people := sextant.CollectionOf[Person](client.Database("sextant_example"), "whole")
	defer people.Drop(ctx)
	res, err := people.InsertOne(ctx, Person{Name: "joe", Awards: []string{"gold"}})
	if err != nil {
		log.Fatal(err)
	}
	joe, err := people.FindOne(ctx, bson.M{"_id": res.InsertedID})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(joe.Name, joe.Awards)
	// Output: joe [gold]
}

func ExampleCollection_InsertOne() {
	ctx := context.Background()
	_, people, end := exampleCollection("insert")
	defer end()

	joe := &Person{Name: "joe"} // a pointer, with a zero _id
	res, err := people.InsertOne(ctx, joe)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(!joe.ID.IsZero(), res.InsertedID == joe.ID)

	_, err = people.FindOne(ctx, bson.M{"_id": joe.ID.Hex()}) // a string is not an ObjectID
	fmt.Println(err == sextant.ErrNoDocuments)
	// Output:
	// true true
	// true
}

func ExampleCollection_BulkWrite() {
	ctx := context.Background()
	_, people, end := exampleCollection("bulk", Person{Name: "joe", City: "Rome"}, Person{Name: "ann", City: "Oslo"})
	defer end()

	res, err := people.BulkWrite(ctx, []sextant.WriteModel{
		sextant.InsertOneModel{Document: Person{Name: "bob", City: "Oslo"}},
		sextant.UpdateOneModel{Filter: bson.M{"name": "eve"}, Update: bson.M{"$set": bson.M{"city": "Rome"}}, Upsert: true},
		sextant.UpdateManyModel{Filter: bson.M{"city": "Oslo"}, Update: bson.M{"$set": bson.M{"city": "Bergen"}}},
		sextant.DeleteOneModel{Filter: bson.M{"name": "joe"}},
	})
	if err != nil { // its WriteErrors name the models that failed; res says what was done
		log.Fatal(err)
	}
	fmt.Println(res.InsertedCount, res.ModifiedCount, res.UpsertedCount, res.DeletedCount)
	fmt.Println(res.UpsertedIDs[1] != nil)
	// Output:
	// 1 2 1 1
	// true
}

func ExampleCollection_Find() {
	ctx := context.Background()
	_, people, end := exampleCollection("find", Person{Name: "joe", Awards: []string{"gold"}}, Person{Name: "ann", Awards: []string{"gold", "tin"}})
	defer end()

	cur, err := people.Find(ctx, bson.M{"awards": "gold"}, sextant.FindOptions{
		ReadPreference: readpref.PrimaryPreferred(), // this call alone
		Sort:           bson.D{{Key: "name", Value: 1}},
		Limit:          20,
	})
	if err != nil {
		log.Fatal(err)
	}
	for p, err := range cur.Each(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(p.Name)
	}
	// Output:
	// ann
	// joe
}

func ExampleAs() {
	ctx := context.Background()
	_, people, end := exampleCollection("as", Person{Name: "joe", City: "Ulm"})
	defer end()

	type name struct {
		Name string `bson:"name"`
	}
	got, err := sextant.As[name](people).FindOne(ctx, bson.D{}, sextant.FindOneOptions{Projection: bson.M{"name": 1}})
	fmt.Println(got.Name, err)
	// Output: joe <nil>
}

func ExampleDistinct() {
	ctx := context.Background()
	_, people, end := exampleCollection("distinct", Person{City: "Ulm"}, Person{City: "Ulm"}, Person{City: "Bonn"})
	defer end()

	cities, err := sextant.Distinct[string](ctx, people, "city", bson.D{})
	slices.Sort(cities)
	fmt.Println(cities, err)
	// Output: [Bonn Ulm] <nil>
}

func ExampleCollection_With() {
	_, people, end := exampleCollection("with")
	defer end()

	near := people.With(sextant.CollectionOptions{ReadPreference: readpref.Nearest(), WriteConcern: concern.Majority()})
	fmt.Println(near.ReadPreference().Mode(), people.ReadPreference().Mode())
	// Output: nearest primary
}

func ExampleRunCommandAs() {
	ctx := context.Background()
	client, _, end := exampleCollection("command")
	defer end()

	type hello struct {
		Primary bool   `bson:"isWritablePrimary"`
		SetName string `bson:"setName"`
	}
	h, err := sextant.RunCommandAs[hello](ctx, client.Database("admin"), bson.D{{Key: "hello", Value: 1}})
	fmt.Println(h.Primary, h.SetName != "", err)
	// Output: true true <nil>
}

func ExampleClient_Hosts() {
	ctx := context.Background()
	client, _, end := exampleCollection("hosts")
	defer end()

	if err := client.Refresh(ctx); err != nil {
		log.Fatal(err)
	}
	for _, m := range client.Hosts().Members {
		_ = fmt.Sprintf("%s is %v, %v away, with %d connections", m.Address, m.Kind, m.RTT, m.Pool.Total)
	}
	fmt.Println(client.Hosts().Kind)
	// Output: ReplicaSetWithPrimary
}

func ExampleClient_Explain() {
	client, _, end := exampleCollection("explain")
	defer end()

	v, err := client.Explain(context.Background(), sextant.Want{ReadPreference: readpref.Secondary(readpref.Tags("dc", "moon"))})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range v.Members {
		_ = fmt.Sprintln(m.Address, m.Eligible, m.Rule, m.Chance) // the whole verdict prints as v.String()
	}
	fmt.Println(len(v.Eligible()), "members may serve it")
	// Output: 0 members may serve it
}

func ExampleClient_Pin() {
	ctx := context.Background()
	client, people, end := exampleCollection("pin", Person{Name: "joe"})
	defer end()

	pin, err := client.Pin(ctx, readpref.SecondaryPreferred()) // one member, taken at random
	if err != nil {
		log.Fatal(err)
	}
	pinned := people.With(sextant.CollectionOptions{Pin: pin}) // all reads of this handle; or FindOptions.Pin for one
	cur, err := pinned.Find(ctx, bson.D{})
	if err != nil {
		log.Fatal(err)
	}
	defer cur.Close(ctx)
	fmt.Println(cur.Server() == pin.Server())
	if _, err := pin.Switch(ctx); err != nil { // another one, if there is one
		log.Fatal(err)
	}
	// Output: true
}

func ExampleWithReport() {
	_, people, end := exampleCollection("report", Person{Name: "joe"})
	defer end()

	ctx, report := sextant.WithReport(context.Background())
	cur, err := people.Find(ctx, bson.D{})
	if err != nil {
		log.Fatal(err)
	}
	defer cur.Close(ctx)
	o := report.Last()
	_ = fmt.Sprintln(o.Selection(), o.CheckOut(), o.Wire()) // where the time went; report.String() says all in words
	for _, a := range report.Attempts() {
		fmt.Println(a.Server == cur.Server(), a.Err)
	}
	// Output: true <nil>
}

func ExampleParseURI() {
	cfg, err := sextant.ParseURI("mongodb://db1,db2/?replicaSet=rs0&readPreferance=nearest")
	if err != nil {
		log.Fatal(err)
	}
	for _, w := range cfg.Warnings {
		fmt.Println(w.Option)
	}
	cfg.Strict = true
	_, err = sextant.ConnectConfig(context.Background(), cfg)
	fmt.Println(err != nil)
	// Output:
	// readPreferance
	// true
}
