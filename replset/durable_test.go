package replset

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
)

var journaled = sextant.CollectionOptions{WriteConcern: &concern.Write{W: 1, Journal: new(true)}}

func clientOf(t testing.TB, uri string) *sextant.Client {
	t.Helper()
	c, err := sextant.Connect(t.Context(), uri)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// idsIn are the _ids in test.kept now, as the primary proves.
func idsIn(t testing.TB, c *sextant.Client) map[string]bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cur, err := c.Database("test").Collection("kept", sextant.CollectionOptions{ReadConcern: concern.Linearizable()}).Find(ctx, bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	docs, err := cur.All(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, d := range docs {
		for _, e := range d {
			if e.Key == "_id" {
				ids[fmt.Sprint(e.Value)] = true
			}
		}
	}
	return ids
}

func insertKept(t testing.TB, c *sextant.Client, o sextant.CollectionOptions, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if _, err := c.Database("test").Collection("kept", o).InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}}); err != nil {
			t.Fatal(err)
		}
	}
}

func wantIDs(t testing.TB, c *sextant.Client, want ...string) {
	t.Helper()
	got := idsIn(t, c)
	for _, id := range want {
		if !got[id] {
			t.Errorf("%s is lost; there are %v", id, got)
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %v, want %v", got, want)
	}
}

// TestSetStartedAgainGoesOnWhereItEnded: same data, indexes, oplog, address and configuration, and a later term.
func TestSetStartedAgainGoesOnWhereItEnded(t *testing.T) {
	o := Options{Members: 3, Dir: filepath.Join(t.TempDir(), "not", "there", "yet")}
	set := Run(t, o)
	client := clientOf(t, set.URI())
	insertKept(t, client, sextant.CollectionOptions{}, "a", "b")
	kept := client.Database("test").Collection("kept")
	if _, err := client.Database("test").RunCommand(t.Context(), bson.D{{Key: "createIndexes", Value: "kept"}, {Key: "indexes", Value: bson.A{
		bson.D{{Key: "key", Value: bson.D{{Key: "n", Value: 1}}}, {Key: "name", Value: "by n"}, {Key: "unique", Value: true}, {Key: "sparse", Value: true}}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "a"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 1}}}}); err != nil {
		t.Fatal(err)
	}
	if err := set.AwaitReplication(t.Context()); err != nil {
		t.Fatal(err)
	}
	uri, term, applied := set.URI(), set.Primary().current().Config().Version, set.Member(1).data().Applied()
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}

	set = Run(t, o)
	if set.URI() != uri {
		t.Logf("the ports were taken: %s has become %s", uri, set.URI())
	}
	if got := set.Primary().current().Config().Version; got != term {
		t.Errorf("the configuration has version %d, want %d", got, term)
	}
	if err := set.AwaitReplication(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range set.Members() {
		if got := set.Member(i).data().Applied(); got.Term <= applied.Term || got.Less(applied) {
			t.Errorf("member %d goes on at %v, want a later term than %v", i, got, applied)
		}
	}
	client = clientOf(t, set.URI())
	wantIDs(t, client, "a", "b")
	kept = client.Database("test").Collection("kept")
	if _, err := kept.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "b"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 1}}}}); err == nil {
		t.Error("the unique index is gone")
	}
}

// TestReconfiguredSetStaysSo: the newest configuration wins over the options, at today's addresses.
func TestReconfiguredSetStaysSo(t *testing.T) {
	o := Options{Members: 1, Dir: t.TempDir()}
	set := Run(t, o)
	admin := clientOf(t, set.URI()).Database("admin")
	reply, err := admin.RunCommand(t.Context(), bson.D{{Key: "replSetGetConfig", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := set.Primary().current().Config()
	if doc, _ := reply.Lookup("config", "writeConcernMajorityJournalDefault").BooleanOK(); !doc {
		t.Errorf("a majority does not mean the journal: %v", reply)
	}
	_, err = admin.RunCommand(t.Context(), bson.D{{Key: "replSetReconfig", Value: bson.D{{Key: "_id", Value: cfg.SetName}, {Key: "version", Value: 5},
		{Key: "members", Value: bson.A{bson.D{{Key: "_id", Value: 0}, {Key: "host", Value: cfg.Members[0].Host}, {Key: "priority", Value: 3.0},
			{Key: "votes", Value: 1}, {Key: "tags", Value: bson.D{{Key: "dc", Value: "east"}}}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	set = Run(t, o)
	if got := set.Primary().current().Config(); got.Version != 5 || got.Members[0].Priority != 3 || got.Members[0].Host != set.Member(0).Addr() {
		t.Errorf("the configuration is %+v", got)
	}
	if got := set.Member(0).Tags()["dc"]; got != "east" {
		t.Errorf("the tag is %q", got)
	}
}

// TestKilledMemberComesBackWithWhatWasJournaled: Kill drops what is not in the file.
func TestKilledMemberComesBackWithWhatWasJournaled(t *testing.T) {
	set := Run(t, Options{Dir: t.TempDir(), ElectionTimeout: 200 * time.Millisecond})
	client := clientOf(t, set.URI())
	var want []string
	for round := range 3 {
		for i := range 5 {
			id := fmt.Sprint(round, "-", i)
			insertKept(t, client, []sextant.CollectionOptions{journaled, {WriteConcern: concern.Majority()}}[i%2], id)
			want = append(want, id)
		}
		if err := set.Kill(0); err != nil {
			t.Fatal(err)
		}
		if err := set.Restart(0); err != nil {
			t.Fatal(err)
		}
		if err := set.Restart(0); err == nil {
			t.Fatal("a running member was restarted")
		}
		wantIDs(t, client, want...)
	}
}

// TestRolledBackMemberKeepsTheRightFile: what a primary wrote alone is gone from its file too, after a kill of all.
func TestRolledBackMemberKeepsTheRightFile(t *testing.T) {
	set := Run(t, Options{Members: 3, Dir: t.TempDir(), ElectionTimeout: 300 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	old := set.Primary()
	insertKept(t, clientOf(t, set.URI()), sextant.CollectionOptions{}, "before")
	if err := set.AwaitReplication(ctx); err != nil {
		t.Fatal(err)
	}
	var others []int
	for i := range set.Members() {
		if i != old.Index() {
			others = append(others, i)
		}
	}
	if err := set.Partition([]int{old.Index()}, others); err != nil {
		t.Fatal(err)
	}
	alone := clientOf(t, "mongodb://"+old.Addr()+"/?directConnection=true")
	insertKept(t, alone, journaled, "alone") // journaled, but no majority has it
	if err := set.until(ctx, "waiting for another primary", func() bool { p := set.Primary(); return p != nil && p != old }); err != nil {
		t.Fatal(err)
	}
	insertKept(t, clientOf(t, "mongodb://"+set.Primary().Addr()+"/?directConnection=true"), sextant.CollectionOptions{}, "after")
	set.Heal()
	if err := set.AwaitReplication(ctx); err != nil {
		t.Fatal(err)
	}
	insertKept(t, clientOf(t, set.URI()), sextant.CollectionOptions{WriteConcern: &concern.Write{W: 3, Journal: new(true)}}, "all")
	for i := range set.Members() {
		if err := set.Kill(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := set.Restart(old.Index()); err != nil {
		t.Fatal(err)
	}
	// The member that rolled back is asked alone: what its own file gave it.
	got := 0
	for range old.data().Documents("test.kept") {
		got++
	}
	if got != 3 {
		t.Errorf("the file of the member that rolled back has %d documents, want before, after and all", got)
	}
	for _, i := range others {
		if err := set.Restart(i); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := set.WaitPrimary(ctx); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, clientOf(t, set.URI()), "before", "after", "all")
}

// TestWipedMemberCopiesEverythingIntoItsFile: and has it after the next kill.
func TestWipedMemberCopiesEverythingIntoItsFile(t *testing.T) {
	set := Run(t, Options{Members: 3, Dir: t.TempDir(), OplogEntries: 10, ElectionTimeout: 5 * time.Second, HeartbeatInterval: 60 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client := clientOf(t, set.URI())
	victim := (set.Primary().Index() + 1) % 3
	if err := set.Kill(victim); err != nil {
		t.Fatal(err)
	}
	if err := set.Wipe(victim); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		insertKept(t, client, sextant.CollectionOptions{}, fmt.Sprint(i))
	}
	if err := set.Restart(victim); err != nil {
		t.Fatal(err)
	}
	if err := set.AwaitReplication(ctx); err != nil {
		t.Fatal(err)
	}
	insertKept(t, client, sextant.CollectionOptions{WriteConcern: &concern.Write{W: 3, Journal: new(true)}}, "last")
	if err := set.Kill(victim); err != nil {
		t.Fatal(err)
	}
	if err := set.Restart(victim); err != nil {
		t.Fatal(err)
	}
	if n := len(set.Member(victim).data().Documents("test.kept")); n != 31 {
		t.Errorf("the copy has %d documents after the kill, want 31", n)
	}
}

func TestDataFolderThatCannotBeUsedIsRefused(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir}
	set := Run(t, o)
	refused := func(o Options, text string) {
		t.Helper()
		other, err := Start(t.Context(), o)
		if err == nil {
			_ = other.Close()
			t.Fatalf("a set started that should say %q", text)
		}
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error is %v, want %q in it", err, text)
		}
	}
	file := filepath.Join(dir, "member0", "data.bolt")
	refused(o, file+" is in use")
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	refused(Options{Dir: dir, Members: 3}, "holds a set of 1 members, not 3")
	refused(Options{Dir: dir, SetName: "other"}, "holds the set rs0, not other")
	if err := os.WriteFile(file, []byte(strings.Repeat("no data file ", 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(o, file+" is damaged")
}

// BenchmarkWrite is one client that inserts, by where the data is and what is waited for.
func BenchmarkWrite(b *testing.B) {
	for _, members := range []int{1, 3} {
		for name, o := range map[string]sextant.CollectionOptions{"w1": {WriteConcern: concern.W(1)}, "j": journaled, "majority": {WriteConcern: concern.Majority()}} {
			for _, where := range []string{"memory", "folder"} {
				b.Run(fmt.Sprintf("members=%d/%s/%s", members, where, name), func(b *testing.B) {
					opt := Options{Members: members}
					if where == "folder" {
						opt.Dir = b.TempDir()
					}
					coll := clientOf(b, Run(b, opt).URI()).Database("test").Collection("kept", o)
					for b.Loop() {
						if _, err := coll.InsertOne(b.Context(), bson.D{{Key: "x", Value: "some text of a few bytes"}}); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// TestMemberWhoseFileFailsConfirmsNothing: it ends, as by a crash, and says so to the log alone.
func TestMemberWhoseFileFailsConfirmsNothing(t *testing.T) {
	set := Run(t, Options{Dir: t.TempDir(), ElectionTimeout: 200 * time.Millisecond})
	client := clientOf(t, set.URI())
	insertKept(t, client, journaled, "before")
	if err := set.Member(0).data().Close(true); err != nil { // from now on every sync fails
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := client.Database("test").Collection("kept", journaled).InsertOne(ctx, bson.D{{Key: "_id", Value: "lost"}}); err == nil {
		t.Fatal("a write was confirmed that no file has")
	}
	if p := set.Primary(); p != nil {
		t.Errorf("member %d is still primary", p.Index())
	}
	if err := set.Kill(0); err != nil {
		t.Fatal(err)
	}
	if err := set.Restart(0); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, client, "before")
}
