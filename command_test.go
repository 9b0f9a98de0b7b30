package sextant

import (
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/operation"
)

// body is the command as a document, in relaxed Extended JSON.
func body(t *testing.T, c *cmd) string {
	t.Helper()
	if c.err != nil {
		t.Fatal(c.err)
	}
	b, start := bson.BeginDocument(nil)
	doc := bson.Raw(bson.EndDocument(append(b, c.b...), start))
	if err := doc.Validate(); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(bson.DocumentValue(doc).String(), " ", "")
}

var shopPeople = &handle{db: "shop", coll: "people"}

func TestFindSendsWhatWasGivenAndNothingElse(t *testing.T) {
	c := findCmd(shopPeople, bson.D{}, &FindOptions{})
	if got, want := body(t, c), `{"find":"people","filter":{}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c = findCmd(shopPeople, bson.D{{Key: "x", Value: 1}}, &FindOptions{
		Sort: bson.D{{Key: "x", Value: -1}}, Projection: bson.M{"x": 1}, Hint: "x_1", Skip: 2, Limit: 4, BatchSize: 3,
		Comment: "why", MaxTime: 1500 * time.Microsecond, AllowDiskUse: new(false), Collation: &Collation{Locale: "en", Strength: 2},
		Let: bson.M{"v": 1}, CursorType: TailableAwait,
	})
	want := `{"find":"people","filter":{"x":1},"sort":{"x":-1},"projection":{"x":1},"hint":"x_1","skip":2,"limit":4,"batchSize":3,` +
		`"comment":"why","maxTimeMS":2,"tailable":true,"awaitData":true,"allowDiskUse":false,"collation":{"locale":"en","strength":2},"let":{"v":1}}`
	if got := body(t, c); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFindOneAsksForOneDocumentInOneBatch(t *testing.T) {
	full := (&FindOneOptions{Sort: bson.D{{Key: "x", Value: 1}}}).find()
	got := body(t, findCmd(shopPeople, bson.D{}, &full))
	if want := `{"find":"people","filter":{},"sort":{"x":1},"limit":1,"singleBatch":true}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBatchOfTheLimitsSizeAsksForOneMore(t *testing.T) {
	got := body(t, findCmd(shopPeople, bson.D{}, &FindOptions{Limit: 4, BatchSize: 4}))
	if want := `{"find":"people","filter":{},"limit":4,"batchSize":5}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRawDataIsSentOnlyToServersThatKnowIt(t *testing.T) {
	c := findCmd(shopPeople, bson.D{}, &FindOptions{RawData: new(false)})
	for wire, want := range map[int32]bool{wire82 - 1: false, wire82: true} {
		b, start := bson.BeginDocument(nil)
		b, err := c.append(b, operation.Target{MaxWire: wire})
		doc := bson.Raw(bson.EndDocument(b, start))
		if sent := !doc.Lookup("rawData").IsZero(); err != nil || sent != want {
			t.Errorf("wire version %d: %v, %v", wire, doc, err)
		}
	}
}

func TestMapsOfSeveralKeysAreRefusedWhereOrderMatters(t *testing.T) {
	for name, o := range map[string]FindOptions{
		"sort": {Sort: bson.M{"a": 1, "b": 1}}, "hint": {Hint: map[string]int{"a": 1, "b": 1}}, "min": {Min: bson.M{"a": 1, "b": 1}},
	} {
		if c := findCmd(shopPeople, bson.D{}, &o); c.err == nil || !strings.Contains(c.err.Error(), name) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	if c := findCmd(shopPeople, bson.D{}, &FindOptions{Sort: bson.M{"a": 1}}); c.err != nil {
		t.Errorf("a map of one key: %v", c.err)
	}
}

func TestNegativeNumbersAreRefused(t *testing.T) {
	if c := findCmd(shopPeople, bson.D{}, &FindOptions{Skip: -1}); c.err == nil {
		t.Error("skip -1 was taken")
	}
	if c := findCmd(shopPeople, bson.D{}, &FindOptions{MaxTime: -time.Second}); c.err == nil {
		t.Error("maxTime -1s was taken")
	}
}

func TestFindAndModifyPutsTheCallIntoOneCommand(t *testing.T) {
	m := modification{filter: bson.M{"_id": 1}, change: bson.M{"$inc": bson.M{"n": 1}}, o: FindOneAndUpdateOptions{
		ReturnDocument: After, Upsert: true, Projection: bson.M{"n": 1}, Sort: bson.M{"n": 1}, ArrayFilters: []any{bson.M{"e": 1}},
	}}
	want := `{"findAndModify":"people","query":{"_id":1},"sort":{"n":1},"update":{"$inc":{"n":1}},"new":true,"fields":{"n":1},"upsert":true,"arrayFilters":[{"e":1}]}`
	if got := body(t, m.cmd(shopPeople)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	m = modification{filter: bson.D{}, remove: true}
	if got, want := body(t, m.cmd(shopPeople)), `{"findAndModify":"people","query":{},"remove":true}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCountDocumentsIsAnAggregation(t *testing.T) {
	c := shopPeople.cmd("aggregate")
	c.countPipeline(bson.D{{Key: "x", Value: 1}}, &CountOptions{Skip: 2, Limit: 3})
	want := `{"aggregate":"people","pipeline":[{"$match":{"x":1}},{"$skip":2},{"$limit":3},{"$group":{"_id":1,"n":{"$sum":1}}}]}`
	if got := body(t, c); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestIndexesGetTheNameThatAllDriversGive(t *testing.T) {
	c := &cmd{}
	m := IndexModel{Keys: bson.D{{Key: "name", Value: 1}, {Key: "age", Value: -1.0}, {Key: "at", Value: "2dsphere"}}, Unique: new(true)}
	if got := m.append(c); got != "name_1_age_-1_at_2dsphere" {
		t.Errorf("got %q", got)
	}
	if got, want := body(t, c), `"unique":true`; !strings.Contains(got, want) {
		t.Errorf("%s is not in %s", want, got)
	}
}

func TestOutAndMergeAreFoundAtTheEndOfAPipeline(t *testing.T) {
	for _, c := range []struct {
		pipeline any
		want     bool
	}{
		{[]bson.D{}, false},
		{[]bson.D{{{Key: "$match", Value: bson.D{}}}}, false},
		{[]bson.D{{{Key: "$match", Value: bson.D{}}}, {{Key: "$out", Value: "x"}}}, true},
		{bson.A{bson.M{"$merge": bson.M{"into": "x"}}}, true},
	} {
		cm := &cmd{}
		cm.pipeline("pipeline", c.pipeline)
		if cm.err != nil || endsInWrite(cm.b) != c.want {
			t.Errorf("%v: %v, %v", c.pipeline, endsInWrite(cm.b), cm.err)
		}
	}
}

func TestRunCommandTakesItsNameFromTheFirstKey(t *testing.T) {
	h := &handle{db: "admin"}
	c := h.plain(bson.D{{Key: "hello", Value: 1}, {Key: "comment", Value: "x"}})
	if c.name != "hello" || body(t, c) != `{"hello":1,"comment":"x"}` {
		t.Errorf("%q: %s", c.name, body(t, c))
	}
	for _, bad := range []any{bson.D{}, bson.M{"a": 1, "b": 2}, 5, nil, bson.Raw{1, 2}} {
		if c := h.plain(bad); c.err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

func TestRawArgumentsAreCheckedBeforeTheyAreSent(t *testing.T) {
	for _, bad := range []bson.Raw{{}, {5, 0, 0, 0}, {200, 0, 0, 0, 0}, {9, 0, 0, 0, 2, 'a', 0, 0, 0}} {
		c := findCmd(shopPeople, bad, &FindOptions{})
		if c.err == nil {
			t.Errorf("% x was taken", bad)
		}
	}
}
