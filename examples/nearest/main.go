// Command nearest shows where reads go: by the mode of the client, the collection and the single call, and what the
// client says about it. Give it the URI of a replica set, or nothing, and it starts an embedded one.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset"
)

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
	cfg, err := sextant.ParseURI(uri)
	if err != nil {
		return err
	}
	cfg.LocalThreshold = new(10 * time.Second) // so that chance alone decides among these neighbours
	client, err := sextant.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	numbers := client.Database("example").Collection("numbers", sextant.CollectionOptions{WriteConcern: concern.Majority()})
	if _, err := numbers.InsertOne(ctx, bson.M{"n": 1}); err != nil {
		return err
	}
	if err := client.Refresh(ctx); err != nil {
		return err
	}
	near := numbers.With(sextant.CollectionOptions{ReadPreference: readpref.Nearest()})
	for _, read := range []struct {
		name string
		c    *sextant.Collection[bson.D]
		o    sextant.FindOptions
	}{
		{"inherited", numbers, sextant.FindOptions{}},
		{"collection: nearest", near, sextant.FindOptions{}},
		{"call: secondary", near, sextant.FindOptions{ReadPreference: readpref.Secondary()}},
	} {
		served, err := serve(ctx, read.c, read.o)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-20s", read.name)
		for _, m := range client.Hosts().Members {
			fmt.Fprintf(out, "  %v %d", m.Kind, served[m.Address])
		}
		fmt.Fprintln(out)
	}
	verdict, err := client.Explain(ctx, sextant.Want{ReadPreference: readpref.Secondary(readpref.Tags("dc", "moon"))})
	fmt.Fprintln(out, verdict)
	return err
}

// serve reads 30 times and counts who answered.
func serve(ctx context.Context, c *sextant.Collection[bson.D], o sextant.FindOptions) (map[string]int, error) {
	served := map[string]int{}
	for range 30 {
		cur, err := c.Find(ctx, bson.D{}, o)
		if err != nil {
			return nil, err
		}
		served[cur.Server()]++
		if err := cur.Close(ctx); err != nil {
			return nil, err
		}
	}
	return served, nil
}
