package sextant_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset"
)

func TestReportTellsWhoAnsweredAndHowLongItTook(t *testing.T) {
	inSet(t, nil, func(t *testing.T, b *bubble) {
		must[*sextant.InsertOneResult](t)(b.orders().InsertOne(t.Context(), bson.M{"x": 1}))
		if err := b.set.Delay(0, 30*time.Millisecond, "app"); err != nil {
			t.Fatal(err)
		}
		ctx, report := sextant.WithReport(t.Context())
		if report.Server() != "" || report.Attempts() != nil || report.String() != "" {
			t.Errorf("before any operation: %v", report)
		}
		must[bson.D](t)(b.orders().FindOne(ctx, bson.D{}))
		o := report.Last()
		if o.Name != "find" || o.Namespace != "shop.orders" || o.Server != b.set.Member(0).Addr() || o.Err != nil || len(o.Attempts) != 1 || o.OperationID == 0 {
			t.Fatalf("%+v", o)
		}
		a := o.Attempts[0]
		if a.Wire != 30*time.Millisecond || a.Selection != 0 || a.CheckOut != 0 || !a.Sent || a.ConnectionID == 0 || o.Duration != a.Wire || report.Server() != o.Server {
			t.Errorf("%+v", o)
		}
		want := "find shop.orders: " + o.Server + " answered after 30 ms (selection 0 ms, check-out 0 ms, wire 30 ms), 1 attempt"
		if report.String() != want {
			t.Errorf("got  %s\nwant %s", report, want)
		}
	})
}

func TestReportSaysWhyEachAttemptEnded(t *testing.T) {
	inSet(t, nil, func(t *testing.T, b *bubble) {
		must[*sextant.InsertOneResult](t)(b.orders().InsertOne(t.Context(), bson.M{"x": 1}))
		b.fail(t, 0, replset.FailCommand{Commands: []string{"find"}, Times: 1, CloseConnection: true})
		ctx, report := sextant.WithReport(t.Context())
		must[bson.D](t)(b.orders().FindOne(ctx, bson.D{}))
		got := report.Attempts()
		if len(got) != 2 || !mongoerr.IsNetwork(got[0].Err) || !got[0].Sent || got[1].Err != nil || got[1].ConnectionID == got[0].ConnectionID {
			t.Fatalf("%+v", got)
		}
		if !strings.Contains(report.String(), "2 attempts\n  attempt 1, "+b.set.Member(0).Addr()+": find shop.orders") {
			t.Errorf("the report is\n%v", report)
		}
	})
}

func TestReportOfASelectionInVainHasNoServer(t *testing.T) {
	inSet(t, func(c *sextant.Config) { c.ServerSelectionTimeout = 2 * time.Second }, func(t *testing.T, b *bubble) {
		ctx, report := sextant.WithReport(t.Context())
		_, err := b.orders().FindOne(ctx, bson.D{}, sextant.FindOneOptions{ReadPreference: readpref.Nearest(readpref.Tags("dc", "moon"))})
		o := report.Last()
		if o.Err != err || o.Server != "" || len(o.Attempts) != 1 || o.Selection() != 2*time.Second || o.Attempts[0].Err == nil {
			t.Errorf("%+v", o)
		}
	})
}

func TestReportFollowsACursorAndManyGoroutines(t *testing.T) {
	_, cl := seeded(t)
	c := cl.Database("shop").Collection("people")
	docs := make([]any, 30)
	for i := range docs {
		docs[i] = bson.M{"x": i}
	}
	must[*sextant.InsertManyResult](t)(c.InsertMany(testContext(t), docs))
	ctx, report := sextant.WithReport(testContext(t))
	must[[]bson.D](t)(must[*sextant.Cursor[bson.D]](t)(c.Find(ctx, bson.D{}, sextant.FindOptions{BatchSize: 20})).All(ctx))
	var names []string
	for _, o := range report.Operations() {
		names = append(names, o.Name)
	}
	if got := strings.Join(names, " "); got != "find getMore" {
		t.Errorf("operations: %s", got)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if _, err := c.FindOne(ctx, bson.D{}); err != nil {
					t.Error(err)
				}
				_ = report.Server()
			}
		})
	}
	wg.Wait()
	if n := len(report.Operations()); n != 100 {
		t.Errorf("%d operations are kept", n)
	}
	inner, within := sextant.WithReport(ctx)
	before := report.Last().OperationID
	must[bson.D](t)(c.FindOne(inner, bson.D{}))
	if within.Last().Name != "find" || report.Last().OperationID != before {
		t.Errorf("the inner report is %v", within)
	}
	var nothing context.Context
	if none, r := sextant.WithReport(nothing); none != nil || r.Last().Name != "" {
		t.Error("a report on a nil context")
	}
}

// TestOperationWithoutAReportAllocatesNothingForIt: the same read, with and without a context that could hold a report.
func TestOperationWithoutAReportAllocatesNothingForIt(t *testing.T) {
	_, cl := seeded(t)
	db := cl.Database("admin")
	run := func(ctx context.Context) func() {
		return func() {
			if _, err := db.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	plain := testing.AllocsPerRun(300, run(context.Background()))
	ctx, report := sextant.WithReport(context.Background())
	told := testing.AllocsPerRun(300, run(ctx))
	if told <= plain {
		t.Errorf("%v allocations with a report, %v without: the report costs nothing, so this test measures nothing", told, plain)
	}
	var last event.OperationReport = report.Last()
	if last.Name != "ping" {
		t.Errorf("%+v", last)
	}
}
