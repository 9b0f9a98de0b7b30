package sextant_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// models is a shorter name for what a bulk write takes.
type models = []sextant.WriteModel

func insertOf(doc any) sextant.WriteModel { return sextant.InsertOneModel{Document: doc} }

func id(v any) bson.D { return bson.D{{Key: "_id", Value: v}} }

// inc is the update that adds one to n.
var inc = bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}

// contents are the documents of a collection in the order of their ids.
func contents(t testing.TB, c *sextant.Collection[bson.D]) bson.A {
	t.Helper()
	cur := must[*sextant.Cursor[bson.D]](t)(c.Find(testContext(t), bson.D{}, sextant.FindOptions{Sort: id(1)}))
	all := bson.A{}
	for _, d := range must[[]bson.D](t)(cur.All(testContext(t))) {
		all = append(all, d)
	}
	return all
}

// failures are the models that an error names.
func failures(err error) (at []int) {
	e, _ := errors.AsType[*mongoerr.Error](err)
	if e == nil {
		return nil
	}
	for _, w := range e.WriteErrors {
		at = append(at, w.Index)
	}
	return at
}

// tally is what a result says, to be compared.
func tally(r *sextant.BulkWriteResult) string {
	return fmt.Sprintf("inserted %d %v, matched %d, modified %d, deleted %d, upserted %d %v",
		r.InsertedCount, r.InsertedIDs, r.MatchedCount, r.ModifiedCount, r.DeletedCount, r.UpsertedCount, r.UpsertedIDs)
}

func TestBulkWriteTellsWhatBecameOfEveryModel(t *testing.T) {
	ctx, c := testContext(t), fresh[bson.D](t, connect(t, sharedURI(t)))
	doc := func(v, n any) bson.D { return bson.D{{Key: "_id", Value: v}, {Key: "n", Value: n}} }
	for _, ordered := range []bool{true, false} {
		must[*sextant.DeleteResult](t)(c.DeleteMany(ctx, bson.D{}))
		must[*sextant.InsertManyResult](t)(c.InsertMany(ctx, []bson.D{doc(1, 1), doc(2, 2), doc(3, 3), doc(4, 4), doc(5, 5)}))
		res, err := c.BulkWrite(ctx, models{
			insertOf(doc(10, 10)),
			&sextant.UpdateOneModel{Filter: id(20), Update: inc, Upsert: true}, // first of all updates: FerretDB numbers upserts, not statements
			sextant.ReplaceOneModel{Filter: id("u"), Replacement: bson.D{{Key: "x", Value: "up"}}, Upsert: true},
			sextant.UpdateOneModel{Filter: id(1), Update: inc},
			sextant.InsertOneModel{Document: doc(11, 11)},
			sextant.UpdateManyModel{Filter: bson.M{"n": bson.M{"$gt": 3, "$lt": 6}}, Update: bson.M{"$set": bson.M{"n": 5}}},
			sextant.ReplaceOneModel{Filter: id(2), Replacement: bson.D{{Key: "x", Value: "new"}}},
			sextant.DeleteOneModel{Filter: bson.M{"n": 3}},
			sextant.DeleteManyModel{Filter: bson.M{"_id": bson.M{"$in": bson.A{4, 5}}}},
			sextant.DeleteOneModel{Filter: id(99)},
		}, sextant.BulkWriteOptions{Ordered: new(ordered)})
		if err != nil {
			t.Fatalf("ordered %v: %v", ordered, err)
		}
		want := "inserted 2 map[0:10 4:11], matched 4, modified 3, deleted 3, upserted 2 map[1:20 2:u]"
		if got := tally(res); got != want || !res.Acknowledged {
			t.Errorf("ordered %v:\n got %s\nwant %s", ordered, got, want)
		}
		same(t, bson.M{"all": contents(t, c)}, bson.M{"all": bson.A{
			doc(1, 2), bson.D{{Key: "_id", Value: 2}, {Key: "x", Value: "new"}}, doc(10, 10), doc(11, 11), doc(20, 1),
			bson.D{{Key: "_id", Value: "u"}, {Key: "x", Value: "up"}},
		}})
	}
}

func TestBulkWriteNamesTheModelsThatFail(t *testing.T) {
	ctx, c := testContext(t), fresh[bson.D](t, connect(t, sharedURI(t)))
	for _, k := range []struct {
		ordered bool
		failed  []int
		want    string
		left    bson.A
	}{
		{true, []int{3}, "inserted 2 map[0:1 2:3], matched 0, modified 0, deleted 0, upserted 1 map[1:8]", bson.A{1, 3, 8}},
		{false, []int{3, 7}, "inserted 3 map[0:1 2:3 5:4], matched 1, modified 1, deleted 1, upserted 1 map[1:8]", bson.A{3, 4, 8}},
	} {
		must[*sextant.DeleteResult](t)(c.DeleteMany(ctx, bson.D{}))
		res, err := c.BulkWrite(ctx, models{
			insertOf(id(1)),
			sextant.UpdateOneModel{Filter: id(8), Update: inc, Upsert: true},
			insertOf(id(3)),
			insertOf(id(3)),
			sextant.DeleteOneModel{Filter: id(1)},
			insertOf(id(4)),
			sextant.UpdateOneModel{Filter: id(1), Update: inc},
			insertOf(id(4)),
		}, sextant.BulkWriteOptions{Ordered: new(k.ordered)})
		if !mongoerr.IsDuplicateKey(err) || !slices.Equal(failures(err), k.failed) {
			t.Errorf("ordered %v: %v", k.ordered, err)
		}
		if got := tally(res); got != k.want {
			t.Errorf("ordered %v:\n got %s\nwant %s", k.ordered, got, k.want)
		}
		var left bson.A
		for _, d := range contents(t, c) {
			left = append(left, d.(bson.D)[0].Value)
		}
		same(t, bson.M{"left": left}, bson.M{"left": k.left})
	}
}

func TestBulkWriteNamesTheModelsThatUpserted(t *testing.T) {
	cl := whole(t, embedded(t, 1), narrowly)
	ctx := testContext(t)
	set := func(v any) sextant.WriteModel {
		return sextant.UpdateOneModel{Filter: id(v), Update: inc, Upsert: true}
	}
	replace := sextant.ReplaceOneModel{Filter: id("r"), Replacement: bson.D{}, Upsert: true}
	for ordered, name := range map[bool]string{true: "ordered", false: "unordered"} {
		c := cl.Database("shop").Collection(name)
		res := must[*sextant.BulkWriteResult](t)(c.BulkWrite(ctx, models{
			insertOf(id(1)), set(1), set("a"), insertOf(id(2)), set(1), set(2), insertOf(id(3)), set("b"), set(3), replace, set("a"),
		}, sextant.BulkWriteOptions{Ordered: new(ordered)}))
		if got, want := tally(res), "inserted 3 map[0:1 3:2 6:3], matched 5, modified 5, deleted 0, upserted 3 map[2:a 7:b 9:r]"; got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

func TestBulkWriteWritesGeneratedIDsBack(t *testing.T) {
	ctx, c := testContext(t), fresh[*person](t, connect(t, sharedURI(t)))
	joe, m := &person{Name: "joe"}, bson.M{"name": "ann"}
	res := must[*sextant.BulkWriteResult](t)(c.BulkWrite(ctx, models{insertOf(joe), insertOf(m), insertOf(person{Name: "bob"})}))
	if joe.ID.IsZero() || res.InsertedIDs[0] != joe.ID || m["_id"] == nil || res.InsertedIDs[1] != m["_id"] || res.InsertedIDs[2] == nil {
		t.Errorf("%+v, %v, %+v", joe, m, res)
	}
	if got := must[*person](t)(c.FindOne(ctx, id(joe.ID))); got.Name != "joe" {
		t.Errorf("%+v", got)
	}
}

// commandsOf prints the writes that a client sent, each with the number of its statements and whether it can be retried.
func (s *seen) commandsOf(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, c := range s.commands {
		for name, key := range map[string]string{"insert": "documents", "update": "updates", "delete": "deletes"} {
			if c.name != name {
				continue
			}
			list, _ := c.body.Lookup(key).ArrayOK()
			text := fmt.Sprintf("%s %d", name, list.Len())
			if _, retryable := c.body.Lookup("txnNumber").Int64OK(); !retryable {
				text += " once"
			}
			all = append(all, text)
		}
	}
	s.commands = nil
	return strings.Join(all, ", ")
}

func TestBulkWriteSendsOneCommandForARunOfModels(t *testing.T) {
	var s seen
	set := embedded(t, 1)
	cl := whole(t, set, func(c *sextant.Config) { c.Monitor = s.monitor() })
	ctx, c := testContext(t), cl.Database("shop").Collection("orders")
	one, many := sextant.UpdateOneModel{Filter: id(1), Update: inc}, sextant.UpdateManyModel{Filter: id(1), Update: inc}
	replace := sextant.ReplaceOneModel{Filter: id(1), Replacement: bson.D{}}
	gone, all := sextant.DeleteOneModel{Filter: id(7)}, sextant.DeleteManyModel{Filter: id(7)}
	doc := func() sextant.WriteModel { return insertOf(bson.D{}) }
	for _, k := range []struct {
		models  models
		ordered bool
		want    string
	}{
		{models{doc(), doc(), one, replace, gone, gone, doc()}, true, "insert 2, update 2, delete 2, insert 1"},
		{models{doc(), doc(), one, replace, gone, gone, doc()}, false, "insert 3, update 2, delete 2"},
		{models{one, many, replace, doc(), one, gone, all}, true, "update 3 once, insert 1, update 1, delete 2 once"},
		{models{gone, doc(), one, all, doc(), many}, false, "delete 2 once, insert 2, update 2 once"},
	} {
		s.take("")
		must[*sextant.BulkWriteResult](t)(c.BulkWrite(ctx, k.models, sextant.BulkWriteOptions{Ordered: new(k.ordered)}))
		if got := s.commandsOf(t); got != k.want {
			t.Errorf("ordered %v:\n got %s\nwant %s", k.ordered, got, k.want)
		}
	}
}

func TestBulkWriteOptionsReachTheCommandsThatKnowThem(t *testing.T) {
	var s seen
	set := embedded(t, 1)
	cl := whole(t, set, func(c *sextant.Config) { c.Monitor = s.monitor() })
	ctx, c := testContext(t), cl.Database("shop").Collection("orders")
	must[string](t)(c.CreateIndex(ctx, sextant.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}}))
	must[*sextant.BulkWriteResult](t)(c.BulkWrite(ctx, models{
		insertOf(bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 1}, {Key: "l", Value: bson.A{1, 5}}}),
		sextant.UpdateOneModel{Filter: bson.D{{Key: "n", Value: 1}}, Update: bson.M{"$set": bson.M{"l.$[e]": 9}}, ArrayFilters: []any{bson.M{"e": bson.M{"$gt": 3}}},
			Hint: "n_1", Sort: id(-1), Collation: &sextant.Collation{Locale: "en"}},
		sextant.UpdateManyModel{Filter: bson.D{}, Update: []bson.M{{"$set": bson.M{"v": "$$v"}}}},
		sextant.ReplaceOneModel{Filter: id(5), Replacement: bson.D{}, Hint: id(1), Sort: id(1)},
		sextant.DeleteManyModel{Filter: bson.M{"$expr": bson.M{"$eq": bson.A{"$_id", "$$v"}}}, Hint: "_id_", Collation: &sextant.Collation{Locale: "de"}},
	}, sextant.BulkWriteOptions{Comment: "why", Let: bson.D{{Key: "v", Value: 7}}, BypassDocumentValidation: new(true)}))
	same(t, bson.M{"all": contents(t, c)}, bson.M{"all": bson.A{
		bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 1}, {Key: "l", Value: bson.A{1, 9}}, {Key: "v", Value: 7}},
	}})
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, want := range map[string][3]bool{"insert": {true, true, false}, "update": {true, true, true}, "delete": {true, false, true}} {
		for _, sent := range s.commands {
			if sent.name != name {
				continue
			}
			for i, key := range []string{"comment", "bypassDocumentValidation", "let"} {
				if got := sent.body.Lookup(key).Type != 0; got != want[i] {
					t.Errorf("%s has %s: %v", name, key, got)
				}
			}
		}
	}
}

// narrowly makes a client that sees servers which take three writes a command.
func narrowly(c *sextant.Config) {
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, address)
		return narrow{nc}, err
	}
}

func TestBulkWriteSplitsWhatOneCommandCannotHold(t *testing.T) {
	var s seen
	cl := connect(t, sharedURI(t), narrowly, func(c *sextant.Config) { c.Monitor = s.monitor() })
	ctx, c := testContext(t), fresh[bson.D](t, cl)
	var all models
	for i := range 5 {
		all = append(all, insertOf(id(i)))
	}
	for i := range 5 {
		all = append(all, sextant.UpdateOneModel{Filter: id(10 + i), Update: inc, Upsert: true})
	}
	all = append(all, insertOf(id(4)), insertOf(id(20)), insertOf(id(4)), insertOf(id(21)))
	for ordered, want := range map[bool]struct {
		commands, tally string
		failed          []int
	}{
		true: {"insert 3, insert 2, update 3, update 2, insert 3", "inserted 5 map[0:0 1:1 2:2 3:3 4:4], matched 0, modified 0, deleted 0, upserted 5 map[5:10 6:11 7:12 8:13 9:14]", []int{10}},
		false: {"insert 3, insert 3, insert 3, update 3, update 2", "inserted 7 map[0:0 1:1 2:2 3:3 4:4 11:20 13:21], matched 0, modified 0, deleted 0, " +
			"upserted 5 map[5:10 6:11 7:12 8:13 9:14]", []int{10, 12}},
	} {
		must[*sextant.DeleteResult](t)(c.DeleteMany(ctx, bson.D{}))
		s.take("")
		res, err := c.BulkWrite(ctx, all, sextant.BulkWriteOptions{Ordered: new(ordered)})
		if got := tally(res); got != want.tally || !slices.Equal(failures(err), want.failed) {
			t.Errorf("ordered %v: %v\n got %s\nwant %s", ordered, err, got, want.tally)
		}
		if got := strings.ReplaceAll(s.commandsOf(t), " once", ""); got != want.commands { // a standalone knows no retries
			t.Errorf("ordered %v: %s", ordered, got)
		}
	}
}

// limited is a server that takes documents of 1,000 bytes and messages of 3,000, and says yes to all.
func limited(t *testing.T) string {
	return scripted(t, func(_ int, command string) bson.Raw {
		if command == "insert" {
			return raw(bson.D{{Key: "n", Value: 4}, {Key: "ok", Value: 1}})
		}
		return raw(bson.D{{Key: "n", Value: 1}, {Key: "nModified", Value: 1}, {Key: "ok", Value: 1}})
	}, bson.E{Key: "maxBsonObjectSize", Value: 1000}, bson.E{Key: "maxMessageSizeBytes", Value: 3000}, bson.E{Key: "maxWriteBatchSize", Value: 100})
}

// sized is a document of so many bytes.
func sized(n int) bson.D { return bson.D{{Key: "_id", Value: strings.Repeat("x", n-15)}} }

func TestBulkWriteRefusesWhatIsTooLargeBeforeAnythingIsSent(t *testing.T) {
	var s seen
	cl := connect(t, "mongodb://"+limited(t), func(c *sextant.Config) { c.Monitor = s.monitor() })
	ctx, c := testContext(t), cl.Database("shop").Collection("orders")
	for _, m := range (models{
		insertOf(sized(1001)), sextant.ReplaceOneModel{Filter: id(1), Replacement: sized(1001)},
		sextant.DeleteOneModel{Filter: sized(20000)}, sextant.UpdateOneModel{Filter: sized(20000), Update: inc},
	}) {
		for _, ordered := range []bool{true, false} {
			res, err := c.BulkWrite(ctx, models{insertOf(id(1)), sextant.DeleteOneModel{Filter: id(9)}, insertOf(id(2)), m}, sextant.BulkWriteOptions{Ordered: new(ordered)})
			if mongoerr.Code(err) != mongoerr.CodeBSONObjectTooLarge || !strings.Contains(err.Error(), "model 3 has ") || tally(res) != tally(&sextant.BulkWriteResult{}) {
				t.Errorf("model %T: %v, %+v", m, err, res)
			}
		}
	}
	if sent := s.commandsOf(t); sent != "" {
		t.Errorf("sent: %s", sent)
	}
}

func TestBulkWriteSplitsWhatOneMessageCannotHold(t *testing.T) {
	var s seen
	cl := connect(t, "mongodb://"+limited(t), func(c *sextant.Config) { c.Monitor = s.monitor() })
	var all models
	for range 8 { // four of 600 bytes fit beside the command
		all = append(all, insertOf(sized(600)))
	}
	for range 3 { // two of 1,500 bytes do not
		all = append(all, sextant.ReplaceOneModel{Filter: sized(500), Replacement: sized(1000)})
	}
	res, err := cl.Database("shop").Collection("orders").BulkWrite(testContext(t), all)
	if err != nil || res.InsertedCount != 8 || res.MatchedCount != 3 {
		t.Errorf("%v, inserted %d, matched %d", err, res.InsertedCount, res.MatchedCount)
	}
	want := "insert 4 once, insert 4 once, update 1 once, update 1 once, update 1 once"
	if sent := s.commandsOf(t); sent != want {
		t.Errorf("\n got %s\nwant %s", sent, want)
	}
}

func TestBulkWriteThatLosesConnectionsDoesEachWriteOnce(t *testing.T) {
	var s seen
	inBubble(t, func(_ *replset.Options, c *sextant.Config) {
		dial := c.Dial
		c.Monitor = s.monitor()
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := dial(ctx, network, address)
			return narrow{nc}, err
		}
	}, func(t *testing.T, b *bubble) { loseConnections(t, b, &s) })
}

func loseConnections(t *testing.T, b *bubble, s *seen) {
	ctx, c := t.Context(), b.orders()
	work := func() models {
		var all models
		for i := range 4 {
			all = append(all, insertOf(bson.D{{Key: "_id", Value: i}, {Key: "n", Value: 0}}))
		}
		for i := range 4 {
			all = append(all, sextant.UpdateOneModel{Filter: id(i), Update: inc})
		}
		return append(all, sextant.DeleteOneModel{Filter: id(3)})
	}
	want := bson.A{}
	for i := range 3 {
		want = append(want, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: 1}})
	}
	for _, how := range []replset.FailCommand{
		{CloseConnection: true},
		{WriteConcernError: &replset.WriteConcernError{Code: 91, Message: "shutting down"}, ErrorLabels: []string{mongoerr.LabelRetryableWrite}}, // the write is done
	} {
		for _, command := range []string{"insert", "update", "delete"} {
			how.Commands, how.Times, how.Skip = []string{command}, 1, 0
			if command != "delete" {
				how.Skip = 1 // the second command of the kind
			}
			must[*sextant.DeleteResult](t)(c.DeleteMany(ctx, bson.D{}))
			if err := b.set.FailCommand(replset.All, &how); err != nil {
				t.Fatal(err)
			}
			s.take("")
			res, err := c.BulkWrite(ctx, work())
			if err != nil || res.InsertedCount != 4 || res.ModifiedCount != 4 || res.DeletedCount != 1 {
				t.Errorf("%s fails: %v, %+v", command, err, res)
			}
			same(t, bson.M{"all": contents(t, c)}, bson.M{"all": want})
			numbers := map[string]bool{} // of a session each
			for _, sent := range s.commands {
				if n, ok := sent.body.Lookup("txnNumber").Int64OK(); ok {
					numbers[fmt.Sprint(n, sent.body.Lookup("lsid"))] = true
				}
			}
			if len(numbers) != 5 {
				t.Errorf("%s fails: five commands and %d transaction numbers", command, len(numbers))
			}
		}
	}
}

func TestBulkWriteThatCannotBeRetriedSaysWhatWasDone(t *testing.T) {
	set := embedded(t, 1)
	cl := whole(t, set)
	ctx, c := testContext(t), cl.Database("shop").Collection("orders")
	for _, ordered := range []bool{true, false} {
		must[*sextant.DeleteResult](t)(c.DeleteMany(ctx, bson.D{}))
		failOnce(t, cl, "update", bson.E{Key: "closeConnection", Value: true})
		res, err := c.BulkWrite(ctx, models{insertOf(id(1)), sextant.UpdateManyModel{Filter: bson.D{}, Update: inc}, insertOf(id(2)), sextant.DeleteOneModel{Filter: id(1)}},
			sextant.BulkWriteOptions{Ordered: new(ordered)})
		want := "inserted 1 map[0:1], matched 0, modified 0, deleted 0, upserted 0 map[]"
		if !ordered {
			want = "inserted 2 map[0:1 2:2], matched 0, modified 0, deleted 0, upserted 0 map[]"
		}
		if !mongoerr.IsNetwork(err) || mongoerr.HasLabel(err, mongoerr.LabelRetryableWrite) || tally(res) != want {
			t.Errorf("ordered %v: %v, %s", ordered, err, tally(res))
		}
	}
}

func TestBulkWriteGoesOnAtTheNextPrimary(t *testing.T) {
	set := embedded(t, 3)
	var stepped error
	var servers []string
	cl := whole(t, set, func(c *sextant.Config) {
		c.Monitor = &event.Monitor{CommandSucceeded: func(ctx context.Context, e *event.CommandSucceededEvent) {
			switch e.Name {
			case "insert", "update":
				stepped = errors.Join(stepped, set.StepDown(ctx))
				fallthrough
			case "delete":
				servers = append(servers, e.Server)
			}
		}}
	})
	ctx, c := testContext(t), cl.Database("shop").Collection("orders", sextant.CollectionOptions{WriteConcern: &concern.Write{W: "majority"}})
	res, err := c.BulkWrite(ctx, models{
		insertOf(id(1)), insertOf(id(2)), sextant.UpdateOneModel{Filter: id(1), Update: inc}, sextant.DeleteOneModel{Filter: id(2)},
	})
	if err != nil || stepped != nil || tally(res) != "inserted 2 map[0:1 1:2], matched 1, modified 1, deleted 1, upserted 0 map[]" {
		t.Fatalf("%v, %v, %+v", err, stepped, res)
	}
	if len(servers) != 3 || servers[0] == servers[1] || servers[1] == servers[2] {
		t.Errorf("answered by %v", servers)
	}
	same(t, bson.M{"all": contents(t, c)}, bson.M{"all": bson.A{bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 1}}}})
}

func TestBulkWriteKeepsEveryWriteConcernError(t *testing.T) {
	set := embedded(t, 1)
	cl := whole(t, set)
	ctx, c := testContext(t), cl.Database("shop").Collection("orders")
	unmet := &replset.FailCommand{Commands: []string{"insert", "update", "delete"}, WriteConcernError: &replset.WriteConcernError{Code: 64, Message: "late"}}
	if err := set.FailCommand(0, unmet); err != nil {
		t.Fatal(err)
	}
	res, err := c.BulkWrite(ctx, models{insertOf(id(1)), sextant.UpdateOneModel{Filter: id(1), Update: inc}, sextant.DeleteOneModel{Filter: id(1)}})
	e, _ := errors.AsType[*mongoerr.Error](err)
	if e == nil || len(e.WriteConcernErrors) != 3 || e.WriteConcernError == nil || e.WriteErrors != nil || !strings.Contains(err.Error(), "nor those of 2 more commands") {
		t.Errorf("%+v", e)
	}
	if got := tally(res); got != "inserted 1 map[0:1], matched 1, modified 1, deleted 1, upserted 0 map[]" {
		t.Error(got)
	}
}

func TestUnacknowledgedBulkWriteClaimsNothing(t *testing.T) {
	set := embedded(t, 1)
	cl := whole(t, set)
	ctx := testContext(t)
	c := cl.Database("shop").Collection("orders", sextant.CollectionOptions{WriteConcern: &concern.Write{W: 0}})
	res := must[*sextant.BulkWriteResult](t)(c.BulkWrite(ctx, models{insertOf(id(1)), sextant.UpdateOneModel{Filter: id(1), Update: inc}}))
	if got := tally(res); res.Acknowledged || got != "inserted 0 map[0:1], matched 0, modified 0, deleted 0, upserted 0 map[]" {
		t.Errorf("%v, %s", res.Acknowledged, got)
	}
	for ctx.Err() == nil {
		if d, err := c.FindOne(ctx, id(1)); err == nil && len(d) == 2 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("the writes were not done")
}

func TestTimeoutBoundsAllCommandsOfABulkWrite(t *testing.T) {
	inBubble(t, func(_ *replset.Options, c *sextant.Config) { c.Timeout = time.Second }, func(t *testing.T, b *bubble) {
		b.fail(t, replset.All, replset.FailCommand{Commands: []string{"insert", "update", "delete"}, Block: 400 * time.Millisecond})
		res, err := b.orders().BulkWrite(t.Context(), models{insertOf(id(1)), sextant.UpdateOneModel{Filter: id(1), Update: inc}, sextant.DeleteOneModel{Filter: id(1)}})
		if !mongoerr.IsTimeout(err) || res.ModifiedCount != 1 || res.DeletedCount != 0 || b.at() > 1100*time.Millisecond {
			t.Errorf("after %v: %v, %+v", b.at(), err, res)
		}
	})
}
