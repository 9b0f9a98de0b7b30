package sextant_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset"
)

// kindOf says what the client takes the member for.
func kindOf(cl *sextant.Client, address string) event.Kind {
	m, _ := cl.Hosts().Member(address)
	return m.Kind
}

// whole is a client of a set that it has wholly discovered.
func whole(t *testing.T, set *replset.Set, edits ...func(*sextant.Config)) *sextant.Client {
	t.Helper()
	cl := connect(t, set.URI(), edits...)
	ctx := testContext(t)
	for ctx.Err() == nil {
		known := 0
		for _, m := range cl.Hosts().Members {
			if m.Kind.DataBearing() {
				known++
			}
		}
		if known == len(set.Members()) && cl.Hosts().Kind == event.ReplicaSetWithPrimary {
			return cl
		}
		if err := cl.WaitReady(ctx, sextant.Want{Write: true}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("the set was not discovered: %v", cl.Hosts())
	return nil
}

func TestNearestLevelDecidesWhereAReadGoes(t *testing.T) {
	set := embedded(t, 3)
	cl := whole(t, set, func(c *sextant.Config) { c.LocalThreshold = wide() })
	ctx := testContext(t)
	db := cl.Database("shop")
	plain := db.Collection("people")
	must[*sextant.InsertOneResult](t)(plain.InsertOne(ctx, bson.M{"x": 1}))
	if err := set.AwaitReplication(ctx); err != nil {
		t.Fatal(err)
	}
	served := func(c *sextant.Collection[bson.D], o ...sextant.FindOptions) event.Kind {
		t.Helper()
		cur := must[*sextant.Cursor[bson.D]](t)(c.Find(ctx, bson.D{}, o...))
		defer cur.Close(ctx)
		return kindOf(cl, cur.Server())
	}
	near := db.With(sextant.DatabaseOptions{ReadPreference: readpref.Secondary()})
	back := near.Collection("people", sextant.CollectionOptions{ReadPreference: readpref.Primary()})
	for range 10 {
		for name, c := range map[string]struct{ got, want event.Kind }{
			"client default": {served(plain), event.RSPrimary},
			"database":       {served(near.Collection("people")), event.RSSecondary},
			"collection":     {served(back), event.RSPrimary},
			"call":           {served(back, sextant.FindOptions{ReadPreference: readpref.Secondary()}), event.RSSecondary},
			"call on plain":  {served(plain, sextant.FindOptions{ReadPreference: readpref.SecondaryPreferred()}), event.RSSecondary},
		} {
			if c.got != c.want {
				t.Errorf("%s: served by %v, want %v", name, c.got, c.want)
			}
		}
	}
}

func TestWritesGoToThePrimaryWhateverTheReadPreference(t *testing.T) {
	set := embedded(t, 3)
	var s seen
	cl := whole(t, set, func(c *sextant.Config) {
		c.Monitor, c.ReadPreference = s.monitor(), readpref.Nearest(readpref.Tags("no", "such"))
	})
	ctx, people := testContext(t), cl.Database("shop").Collection("people")
	primary := set.Primary().Addr()
	for range 5 {
		must[*sextant.InsertOneResult](t)(people.InsertOne(ctx, bson.M{"x": 1}))
		must[*sextant.UpdateResult](t)(people.UpdateMany(ctx, bson.D{}, bson.M{"$inc": bson.M{"x": 1}}))
		must[bson.D](t)(people.FindOneAndUpdate(ctx, bson.D{}, bson.M{"$inc": bson.M{"x": 1}}))
		must[*sextant.DeleteResult](t)(people.DeleteOne(ctx, bson.D{}))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.commands {
		if c.server != primary {
			t.Errorf("%s went to %s, the primary is %s", c.name, c.server, primary)
		}
		if !c.body.Lookup("$readPreference").IsZero() {
			t.Errorf("%s carried a read preference: %v", c.name, c.body)
		}
	}
	if len(s.commands) != 20 {
		t.Errorf("%d commands", len(s.commands))
	}
}

func TestEveryReadTakesAReadPreferenceOfItsOwn(t *testing.T) {
	set := embedded(t, 3)
	var s seen
	cl := whole(t, set, func(c *sextant.Config) { c.Monitor = s.monitor() })
	ctx, c := testContext(t), cl.Database("shop").Collection("people")
	must[*sextant.InsertOneResult](t)(c.InsertOne(ctx, bson.M{"x": 1}))
	if err := set.AwaitReplication(ctx); err != nil {
		t.Fatal(err)
	}
	rp := readpref.Secondary()
	for name, call := range map[string]func() error{
		"find": func() error { _, err := c.Find(ctx, bson.D{}, sextant.FindOptions{ReadPreference: rp}); return err },
		"count": func() error {
			_, err := c.EstimatedDocumentCount(ctx, sextant.EstimatedDocumentCountOptions{ReadPreference: rp})
			return err
		},
		"distinct": func() error {
			_, err := sextant.Distinct[any](ctx, c, "x", bson.D{}, sextant.DistinctOptions{ReadPreference: rp})
			return err
		},
		"listCollections": func() error {
			_, err := c.Database().ListCollections(ctx, bson.D{}, sextant.ListCollectionsOptions{ReadPreference: rp})
			return err
		},
		"listIndexes": func() error { _, err := c.ListIndexes(ctx, sextant.ListIndexesOptions{ReadPreference: rp}); return err },
		"listDatabases": func() error {
			_, err := cl.ListDatabaseNames(ctx, bson.D{}, sextant.ListDatabasesOptions{ReadPreference: rp})
			return err
		},
	} {
		s.take("")
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		sent := s.take(name)
		if len(sent) != 1 || kindOf(cl, sent[0].server) != event.RSSecondary {
			t.Errorf("%s: %v", name, sent)
			continue
		}
		if mode, _ := sent[0].body.Lookup("$readPreference", "mode").StringValueOK(); mode != "secondary" {
			t.Errorf("%s told the member the mode %q", name, mode)
		}
	}
}

func TestTagsAndPriorityZeroChooseTheMember(t *testing.T) {
	tags := func(dc string) map[string]string { return map[string]string{"dc": dc} }
	set := replset.Run(t, replset.Options{Config: []replset.MemberOptions{
		{Tags: tags("east")}, {Tags: tags("east")}, {Tags: tags("west"), Priority: new(0.0)},
	}})
	cl := whole(t, set, func(c *sextant.Config) { c.LocalThreshold = wide() })
	ctx, c := testContext(t), cl.Database("shop").Collection("people")
	must[*sextant.InsertOneResult](t)(c.InsertOne(ctx, bson.M{"x": 1}))
	west := set.Members()[2].Addr()
	for range 20 {
		for name, rp := range map[string]*readpref.ReadPref{
			"nearest west":        readpref.Nearest(readpref.Tags("dc", "west")),
			"moon, then west":     readpref.Secondary(readpref.Tags("dc", "moon"), readpref.Tags("dc", "west")),
			"preferred secondary": readpref.SecondaryPreferred(readpref.Tags("dc", "west")),
		} {
			cur := must[*sextant.Cursor[bson.D]](t)(c.Find(ctx, bson.D{}, sextant.FindOptions{ReadPreference: rp}))
			if cur.Server() != west {
				t.Errorf("%s: served by %s, not by %s", name, cur.Server(), west)
			}
		}
	}
	cur := must[*sextant.Cursor[bson.D]](t)(c.Find(ctx, bson.D{}, sextant.FindOptions{ReadPreference: readpref.SecondaryPreferred(readpref.Tags("dc", "moon"))}))
	if kindOf(cl, cur.Server()) != event.RSPrimary {
		t.Errorf("without a secondary that matches, %s served", cur.Server())
	}
}

func TestExplainAndHostsShowEachMember(t *testing.T) {
	set := embedded(t, 3)
	cl := whole(t, set)
	hosts := cl.Hosts()
	if hosts.SetName != "rs0" || len(hosts.Members) != 3 {
		t.Fatalf("hosts: %v", hosts)
	}
	for _, m := range hosts.Members {
		if m.RTT <= 0 || m.Hello == nil || m.LastUpdate.IsZero() {
			t.Errorf("%+v", m)
		}
	}
	v := must[event.Verdict](t)(cl.Explain(testContext(t), sextant.Want{ReadPreference: readpref.Secondary()}))
	if got := v.Eligible(); len(got) == 0 || len(v.Members) != 3 {
		t.Errorf("%v", v)
	}
	if got := must[event.Verdict](t)(cl.Explain(testContext(t), sextant.Want{Write: true})).Eligible(); len(got) != 1 || got[0] != set.Primary().Addr() {
		t.Errorf("a write would go to %v", got)
	}
	if err := cl.Refresh(testContext(t)); err != nil {
		t.Error(err)
	}
}

func TestFailedSelectionSaysWhatWasWantedAndWhyNobodyServes(t *testing.T) {
	set := embedded(t, 3)
	cl := whole(t, set, func(c *sextant.Config) { c.ServerSelectionTimeout = 300 * time.Millisecond })
	c := cl.Database("shop").Collection("people")
	start := time.Now()
	_, err := c.FindOne(testContext(t), bson.D{}, sextant.FindOneOptions{ReadPreference: readpref.Secondary(readpref.Tags("dc", "moon"))})
	if !mongoerr.IsSelection(err) || time.Since(start) > 5*time.Second {
		t.Fatalf("after %v: %v", time.Since(start), err)
	}
	first, rest, _ := strings.Cut(err.Error(), "\n")
	if !strings.Contains(first, "secondary") || !strings.Contains(first, "moon") || strings.Count(rest, "\n") < 2 {
		t.Errorf("the error is\n%v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.FindOne(ctx, bson.D{}, sextant.FindOneOptions{ReadPreference: readpref.Secondary(readpref.Tags("dc", "moon"))}); !mongoerr.IsTimeout(err) {
		t.Errorf("with a short deadline: %v", err)
	}
}
