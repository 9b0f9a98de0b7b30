// Command people keeps a few people in a collection: insert, find, update, aggregate, delete. Give it the URI of a
// deployment, or nothing, and it starts an embedded set of its own.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset"
)

// Person is a document. Its _id is filled in by the insert.
type Person struct {
	ID     bson.ObjectID `bson:"_id,omitempty"`
	Name   string        `bson:"name"`
	City   string        `bson:"city"`
	Awards []string      `bson:"awards,omitempty"`
}

func main() {
	ctx := context.Background()
	uri := ""
	if len(os.Args) > 1 {
		uri = os.Args[1]
	} else {
		set, err := replset.Start(ctx, replset.Options{Members: 3})
		if err != nil {
			log.Fatal(err)
		}
		defer set.Close()
		uri = set.URI()
	}
	if err := run(ctx, os.Stdout, uri); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, uri string) error {
	client, err := sextant.Connect(ctx, uri)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	people := sextant.CollectionOf[Person](client.Database("example"), "people")
	if err := people.Drop(ctx); err != nil {
		return err
	}
	joe := &Person{Name: "joe", City: "Ulm", Awards: []string{"gold", "silver"}}
	if _, err := people.InsertOne(ctx, joe); err != nil {
		return err
	}
	if _, err := people.InsertMany(ctx, []Person{{Name: "ann", City: "Ulm"}, {Name: "bob", City: "Bonn"}}); err != nil {
		return err
	}
	found, err := people.FindOne(ctx, bson.M{"_id": joe.ID})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "found %s of %s by the id that the insert wrote into joe\n", found.Name, found.City)
	if _, err := people.FindOne(ctx, bson.M{"_id": joe.ID.Hex()}); err == sextant.ErrNoDocuments {
		fmt.Fprintln(out, "the id as a string matches nobody: a string is not an ObjectID")
	}
	cur, err := people.Find(ctx, bson.M{"awards": "gold"})
	if err != nil {
		return err
	}
	for p, err := range cur.Each(ctx) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s has a gold award\n", p.Name)
	}
	return cities(ctx, out, people)
}

// cities counts people by city, moves one, and deletes the rest.
func cities(ctx context.Context, out io.Writer, people *sextant.Collection[Person]) error {
	if _, err := people.UpdateOne(ctx, bson.M{"name": "bob"}, bson.M{"$set": bson.M{"city": "Ulm"}}); err != nil {
		return err
	}
	type city struct {
		Name  string `bson:"_id"`
		Count int    `bson:"count"`
	}
	cur, err := sextant.Aggregate[city](ctx, people, []bson.D{
		{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$city"}, {Key: "count", Value: bson.D{{Key: "$sum", Value: 1}}}}}},
	})
	if err != nil {
		return err
	}
	all, err := cur.All(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		fmt.Fprintf(out, "%d people live in %s\n", c.Count, c.Name)
	}
	res, err := people.DeleteMany(ctx, bson.D{})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "deleted %d\n", res.DeletedCount)
	return nil
}
