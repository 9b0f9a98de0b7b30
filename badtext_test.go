package sextant_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// deepRaw is a document nested so deep.
func deepRaw(n int) bson.Raw {
	doc := bson.Raw{5, 0, 0, 0, 0}
	for range n - 1 {
		out, start := bson.BeginDocument(nil)
		doc = bson.EndDocument(bson.AppendDocument(out, "a", doc), start)
	}
	return doc
}

// Servers close the connection on bytes that they cannot read, and a closed connection costs everybody the pool.
func TestMalformedCommandsNeverReachTheServer(t *testing.T) {
	ctx, cl := testContext(t), connect(t, sharedURI(t))
	c, db := fresh[bson.D](t, cl), cl.Database("sextant_test")
	const bad = "x\xff"
	inner := bson.Raw{13, 0, 0, 0, 0x02, 'a', 0, 9, 0, 0, 0, 'b', 0} // a string longer than its document
	find := func(filter any, o sextant.FindOptions) func() error {
		return func() error { _, err := c.Find(ctx, filter, o); return err }
	}
	insert := func(doc any, o sextant.CollectionOptions) func() error {
		return func() error { _, err := c.With(o).InsertOne(ctx, doc); return err }
	}
	var none sextant.CollectionOptions
	for name, call := range map[string]func() error{
		"database":   func() error { _, err := cl.Database(bad).Collection("x").FindOne(ctx, bson.D{}); return err },
		"collection": func() error { _, err := db.Collection(bad).FindOne(ctx, bson.D{}); return err },
		"new name":   func() error { return db.CreateCollection(ctx, bad) },
		"view":       func() error { return db.CreateView(ctx, "view", bad, bson.A{}) },
		"option": func() error {
			return db.CreateCollection(ctx, "y", sextant.CreateCollectionOptions{ValidationAction: bad})
		},
		"index":     func() error { return c.DropIndex(ctx, bad) },
		"field":     func() error { _, err := sextant.Distinct[any](ctx, c, bad, bson.D{}); return err },
		"hint":      find(bson.D{}, sextant.FindOptions{Hint: bad}),
		"comment":   find(bson.D{}, sextant.FindOptions{Comment: bad}),
		"tags":      find(bson.D{}, sextant.FindOptions{ReadPreference: readpref.PrimaryPreferred(readpref.Tags("dc", bad))}),
		"collation": find(bson.D{}, sextant.FindOptions{Collation: &sextant.Collation{Locale: bad}}),
		"read concern": func() error {
			_, err := c.With(sextant.CollectionOptions{ReadConcern: &concern.Read{Level: bad}}).FindOne(ctx, bson.D{})
			return err
		},
		"write concern": insert(bson.D{}, sextant.CollectionOptions{WriteConcern: &concern.Write{W: bad}}),
		"raw in filter": find(bson.D{{Key: "a", Value: inner}}, sextant.FindOptions{}),
		"raw in update": func() error {
			_, err := c.UpdateOne(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: inner}}}})
			return err
		},
		"raw in document": insert(bson.D{{Key: "a", Value: inner}}, none),
		"raw in command": func() error {
			_, err := db.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}, {Key: "comment", Value: inner}})
			return err
		},
		"deep in filter":   find(bson.D{{Key: "a", Value: deepRaw(199)}}, sextant.FindOptions{}),
		"deeper in filter": find(bson.D{{Key: "a", Value: deepRaw(2000)}}, sextant.FindOptions{}),
		"deep in document": insert(bson.D{{Key: "a", Value: deepRaw(200)}}, none),
	} {
		t.Run(name, func(t *testing.T) {
			refuse(t, call, func(err error) bool {
				e, ok := errors.AsType[*mongoerr.Error](err)
				return ok && (e.Stage == mongoerr.StageEncode || e.Stage == mongoerr.StageConfig)
			})
		})
	}
	for _, m := range cl.Hosts().Members {
		if m.Pool.Generation != 0 {
			t.Errorf("the pool of %s was cleared: something malformed was sent", m.Address)
		}
	}
}

func TestMessagesOfWrongArgumentsSayEachThingOnce(t *testing.T) {
	ctx, c := testContext(t), fresh[bson.D](t, connect(t, sharedURI(t)))
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}
	for want, call := range map[string]func() error{
		"write concern: w is -3": func() error {
			_, err := c.With(sextant.CollectionOptions{WriteConcern: &concern.Write{W: -3}}).InsertOne(ctx, bson.D{})
			return err
		},
		"mode primary can not have tags": func() error {
			_, err := sextant.ParseURI("mongodb://h/?readPreference=primary&readPreferenceTags=dc:x")
			return err
		},
		"element 0 of arrayFilters is nil": func() error {
			_, err := c.UpdateOne(ctx, bson.D{}, set, sextant.UpdateOneOptions{ArrayFilters: []any{nil}})
			return err
		},
		"the document is nil": func() error { _, err := c.InsertOne(ctx, bson.M(nil)); return err },
		"Limit or BatchSize":  func() error { _, err := c.Find(ctx, bson.D{}, sextant.FindOptions{Limit: -1 << 63}); return err },
		"BatchSize is":        func() error { _, err := c.Find(ctx, bson.D{}, sextant.FindOptions{BatchSize: -1 << 31}); return err },
	} {
		err := call()
		if !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "config:") != 1 || strings.Contains(err.Error(), "match everything") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	cur, err := c.Find(ctx, bson.D{}, sextant.FindOptions{Limit: 1<<31 - 1, BatchSize: 1<<31 - 1})
	if err != nil {
		t.Fatalf("the greatest limit and batch size: %v", err)
	}
	if _, err := cur.All(ctx); err != nil {
		t.Error(err)
	}
}

func TestSeedThatNeverAnswersIsCalledSilent(t *testing.T) {
	cl := connect(t, "mongodb://"+silent(t), func(c *sextant.Config) { c.ServerSelectionTimeout = time.Second })
	if v, err := cl.Explain(testContext(t), sextant.Want{}); !strings.Contains(v.Sentence, "silent for 1 s") || err != nil {
		t.Errorf("after the first answer was due: %s, %v", v.Sentence, err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if v, err := connect(t, "mongodb://"+silent(t)).Explain(ended, sextant.Want{}); !strings.Contains(v.Sentence, "not checked yet") || !errors.Is(err, context.Canceled) {
		t.Errorf("before anybody has answered: %s, %v", v.Sentence, err)
	}
	refuse(t, ping(cl), mongoerr.IsSelection, "silent for 2 s")
}

func TestTLSOnOneSideOnlyIsToldInTheFirstLine(t *testing.T) {
	quick := func(c *sextant.Config) { c.ServerSelectionTimeout = time.Second }
	plain := connect(t, "mongodb://"+answering(t, "")+"/?tls=true", quick)
	refuse(t, ping(plain), mongoerr.IsSelection, "during the TLS handshake", "port without TLS")
	hangsUp := connect(t, "mongodb://"+answering(t, ""), quick)
	refuse(t, ping(hangsUp), mongoerr.IsSelection, "closed the connection during the handshake", "TLS")
}
