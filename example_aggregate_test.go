package sextant_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
)

func ExampleAggregate() {
	ctx := context.Background()
	_, people, end := exampleCollection("aggregate", Person{Name: "joe", City: "Ulm"}, Person{Name: "ann", City: "Ulm"}, Person{Name: "bob", City: "Bonn"})
	defer end()

	type city struct {
		Name  string `bson:"_id"`
		Count int    `bson:"count"`
	}
	cur, err := sextant.Aggregate[city](ctx, people, []bson.D{
		{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$city"}, {Key: "count", Value: bson.D{{Key: "$sum", Value: 1}}}}}},
		{{Key: "$sort", Value: bson.D{{Key: "count", Value: -1}}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	cities, err := cur.All(ctx)
	fmt.Println(cities, err)
	// Output: [{Ulm 2} {Bonn 1}] <nil>
}
