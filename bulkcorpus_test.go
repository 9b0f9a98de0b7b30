package sextant_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/conformance/corpus"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// The official cases of the collection's bulk write. They use so little of the unified format (fail points, one call, and what
// came of it) that no runner of the format is needed; what this one does not know fails.

// officialFile is a file of cases.
type officialFile struct {
	RunOn    []officialNeed `bson:"runOnRequirements"`
	Entities []bson.D       `bson:"createEntities"`
	Initial  []officialData `bson:"initialData"`
	Tests    []officialCase `bson:"tests"`
}

type officialNeed struct {
	Min        string   `bson:"minServerVersion"`
	Max        string   `bson:"maxServerVersion"`
	Topologies []string `bson:"topologies"`
}

type officialData struct {
	Coll string   `bson:"collectionName"`
	DB   string   `bson:"databaseName"`
	Docs []bson.D `bson:"documents"`
}

type officialCase struct {
	Description string              `bson:"description"`
	RunOn       []officialNeed      `bson:"runOnRequirements"`
	Operations  []officialOperation `bson:"operations"`
	Outcome     []officialData      `bson:"outcome"`
	Events      []struct {
		Events []bson.D `bson:"events"`
	} `bson:"expectEvents"`
}

type officialOperation struct {
	Name   string        `bson:"name"`
	Args   officialArgs  `bson:"arguments"`
	Result bson.RawValue `bson:"expectResult"`
	Error  *struct {
		Code     int32         `bson:"errorCode"`
		Contains string        `bson:"errorContains"`
		IsClient *bool         `bson:"isClientError"`
		Has      []string      `bson:"errorLabelsContain"`
		Omits    []string      `bson:"errorLabelsOmit"`
		Result   bson.RawValue `bson:"expectResult"`
		Response bson.D        `bson:"errorResponse"`
		IsError  bool          `bson:"isError"`
	} `bson:"expectError"`
}

type officialArgs struct {
	FailPoint bson.D   `bson:"failPoint"`
	Client    string   `bson:"client"`
	Requests  []bson.D `bson:"requests"`
	Ordered   *bool    `bson:"ordered"`
	Comment   any      `bson:"comment"`
	Let       any      `bson:"let"`
	RawData   *bool    `bson:"rawData"`
}

// officialBulkCases is how many there are; of these the unmet are for servers that the embedded set is not: of the version 8.2, or
// so old that they refuse what the set knows.
const officialBulkCases, unmetBulkCases = 104, 17

func TestOfficialCasesOfBulkWrites(t *testing.T) {
	var files []string
	for _, spec := range []string{"crud", "retryable-writes"} {
		all := must[[]string](t)(corpus.Files(filepath.Join(corpus.Need(t, spec), "unified")))
		files = append(files, slices.DeleteFunc(all, func(f string) bool { return !strings.HasPrefix(filepath.Base(f), "bulkWrite") })...)
	}
	cases, unmet := 0, 0
	for _, file := range files {
		var f officialFile
		if err := bson.UnmarshalExtJSON(must[[]byte](t)(os.ReadFile(file)), false, &f); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, c := range f.Tests {
			cases++
			version := versionFor(f.RunOn, c.RunOn)
			if version == "" || c.refusedByAge(&f) {
				unmet++
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json")+"/"+c.Description, func(t *testing.T) { runOfficial(t, version, &f, &c) })
		}
	}
	if cases != officialBulkCases || unmet != unmetBulkCases {
		t.Errorf("%d cases, of which %d do not run", cases, unmet)
	}
}

func runOfficial(t *testing.T, version string, f *officialFile, c *officialCase) {
	o := &official{seen: &seen{}}
	inBubble(t, func(r *replset.Options, cfg *sextant.Config) {
		r.Members, r.Version, cfg.Monitor = 1, version, o.seen.monitor()
	}, func(t *testing.T, b *bubble) {
		o.cl = b.cl
		o.run(t, f, c)
	})
}

// refusedByAge says whether the case wants an old server to refuse what it does not know. The embedded set claims versions, and
// knows all the same what came later.
func (c *officialCase) refusedByAge(f *officialFile) bool {
	old := slices.ContainsFunc(slices.Concat(f.RunOn, c.RunOn), func(n officialNeed) bool { return n.Max != "" })
	return old && slices.ContainsFunc(c.Operations, func(op officialOperation) bool {
		return op.Error != nil && (op.Error.IsClient == nil || !*op.Error.IsClient)
	})
}

// versionFor is the newest version that meets one of the file's needs and one of the case's, "" if there is none.
func versionFor(ofFile, ofCase []officialNeed) string {
	for _, v := range replset.Versions() {
		if met(ofFile, v) && met(ofCase, v) {
			return v
		}
	}
	return ""
}

func met(needs []officialNeed, version string) bool {
	return len(needs) == 0 || slices.ContainsFunc(needs, func(n officialNeed) bool {
		return (n.Topologies == nil || slices.Contains(n.Topologies, "replicaset")) &&
			compareVersions(version, n.Min) >= 0 && (n.Max == "" || compareVersions(version, n.Max) <= 0)
	})
}

// compareVersions compares "4.2" with "4.2.99": what a version does not say is 0.
func compareVersions(a, b string) int {
	part := func(s string, i int) int {
		parts := strings.Split(s, ".")
		if i >= len(parts) {
			return 0
		}
		n, _ := strconv.Atoi(parts[i])
		return n
	}
	for i := range 3 {
		if d := part(a, i) - part(b, i); d != 0 {
			return d
		}
	}
	return 0
}

// official is a client of the set that a case runs on.
type official struct {
	cl   *sextant.Client
	seen *seen
}

func (o *official) run(t *testing.T, f *officialFile, c *officialCase) {
	ctx := testContext(t)
	coll := o.collection(t, f)
	for _, d := range f.Initial {
		if len(d.Docs) > 0 {
			must[*sextant.InsertManyResult](t)(o.cl.Database(d.DB).Collection(d.Coll).InsertMany(ctx, d.Docs))
		}
	}
	for _, op := range c.Operations {
		switch op.Name {
		case "failPoint":
			must[bson.Raw](t)(o.cl.Database("admin").RunCommand(ctx, op.Args.FailPoint))
		case "bulkWrite":
			o.seen.take("")
			call(ctx, t, coll, &op)
		default:
			t.Fatalf("the operation %s is not known", op.Name)
		}
	}
	o.checkEvents(t, c)
	for _, d := range c.Outcome {
		same(t, bson.M{"all": contents(t, o.cl.Database(d.DB).Collection(d.Coll))}, bson.M{"all": d.Docs})
	}
}

// collection is the one of the file's entities.
func (o *official) collection(t *testing.T, f *officialFile) *sextant.Collection[bson.D] {
	db, name, options := "", "", sextant.CollectionOptions{}
	for _, e := range f.Entities {
		d := raw(e)
		if v, ok := d.Lookup("database", "databaseName").StringValueOK(); ok {
			db = v
		}
		if v, ok := d.Lookup("collection", "collectionName").StringValueOK(); ok {
			name = v
			if w, ok := d.Lookup("collection", "collectionOptions", "writeConcern", "w").AsInt64OK(); ok {
				options.WriteConcern = &concern.Write{W: int(w)}
			}
		}
	}
	return o.cl.Database(db).Collection(name, options)
}

// call calls BulkWrite and checks what it returns.
func call(ctx context.Context, t *testing.T, coll *sextant.Collection[bson.D], op *officialOperation) {
	var all models
	for _, r := range op.Args.Requests {
		all = append(all, modelOf(t, r[0].Key, r[0].Value.(bson.D)))
	}
	res, err := coll.BulkWrite(ctx, all, sextant.BulkWriteOptions{Ordered: op.Args.Ordered, Comment: op.Args.Comment, Let: op.Args.Let, RawData: op.Args.RawData})
	if op.Error == nil {
		if err != nil {
			t.Fatal(err)
		}
		checkResult(t, res, op.Result)
		return
	}
	e, ok := errors.AsType[*mongoerr.Error](err)
	if !ok {
		t.Fatalf("no error: %+v", res)
	}
	if want := op.Error; want.Code != 0 && !e.HasCode(want.Code) || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want.Contains)) {
		t.Errorf("%v, want %+v", err, want)
	}
	if is := e.Stage == mongoerr.StageConfig || mongoerr.IsNetwork(err); op.Error.IsClient != nil && is != *op.Error.IsClient {
		t.Errorf("an error of the client: %v, %v", is, err)
	}
	for _, f := range op.Error.Response {
		same(t, bson.M{f.Key: e.Response.Lookup(f.Key)}, bson.M{f.Key: f.Value})
	}
	for _, l := range op.Error.Has {
		if !e.HasLabel(l) {
			t.Errorf("no label %s: %v", l, e.Labels)
		}
	}
	for _, l := range op.Error.Omits {
		if e.HasLabel(l) {
			t.Errorf("label %s: %v", l, err)
		}
	}
	checkResult(t, res, op.Error.Result)
}

// modelOf is the model of a request.
func modelOf(t *testing.T, name string, d bson.D) sextant.WriteModel {
	f := map[string]any{}
	for _, e := range d {
		f[e.Key] = e.Value
	}
	upsert, _ := f["upsert"].(bool)
	var filters []any
	if a, ok := f["arrayFilters"].(bson.A); ok {
		filters = a
	}
	var collation *sextant.Collation
	if c, ok := f["collation"].(bson.D); ok {
		collation = &sextant.Collation{}
		if err := bson.Unmarshal(raw(c), collation); err != nil {
			t.Fatal(err)
		}
	}
	switch name {
	case "insertOne":
		return sextant.InsertOneModel{Document: f["document"]}
	case "updateOne":
		return sextant.UpdateOneModel{Filter: f["filter"], Update: f["update"], ArrayFilters: filters, Collation: collation, Hint: f["hint"], Sort: f["sort"], Upsert: upsert}
	case "updateMany":
		return sextant.UpdateManyModel{Filter: f["filter"], Update: f["update"], ArrayFilters: filters, Collation: collation, Hint: f["hint"], Upsert: upsert}
	case "replaceOne":
		return sextant.ReplaceOneModel{Filter: f["filter"], Replacement: f["replacement"], Collation: collation, Hint: f["hint"], Sort: f["sort"], Upsert: upsert}
	case "deleteOne":
		return sextant.DeleteOneModel{Filter: f["filter"], Collation: collation, Hint: f["hint"]}
	case "deleteMany":
		return sextant.DeleteManyModel{Filter: f["filter"], Collation: collation, Hint: f["hint"]}
	}
	t.Fatalf("the model %s is not known", name)
	return nil
}

// checkResult compares the numbers and ids that a case names.
func checkResult(t *testing.T, r *sextant.BulkWriteResult, want bson.RawValue) {
	t.Helper()
	doc, ok := want.DocumentOK()
	if !ok {
		return
	}
	if r == nil {
		t.Fatalf("no result, where %v is wanted", doc)
	}
	got := raw(bson.D{
		{Key: "insertedCount", Value: r.InsertedCount}, {Key: "matchedCount", Value: r.MatchedCount}, {Key: "modifiedCount", Value: r.ModifiedCount},
		{Key: "deletedCount", Value: r.DeletedCount}, {Key: "upsertedCount", Value: r.UpsertedCount}, {Key: "acknowledged", Value: r.Acknowledged},
		{Key: "insertedIds", Value: byText(r.InsertedIDs)}, {Key: "upsertedIds", Value: byText(r.UpsertedIDs)},
	})
	if bad := differs(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: got}, want, true); bad != "" {
		t.Errorf("%s\n got %v\nwant %v", bad, got, doc)
	}
}

func byText(ids map[int]any) map[string]any {
	out := map[string]any{}
	for i, v := range ids {
		out[strconv.Itoa(i)] = v
	}
	return out
}

// checkEvents compares the commands that were sent with those that a case names.
func (o *official) checkEvents(t *testing.T, c *officialCase) {
	t.Helper()
	o.seen.mu.Lock()
	defer o.seen.mu.Unlock()
	for _, e := range c.Events {
		var started []bson.Raw
		for _, event := range e.Events {
			if v, ok := raw(event).Lookup("commandStartedEvent").DocumentOK(); ok {
				started = append(started, v)
			}
		}
		if len(started) != len(o.seen.commands) {
			t.Errorf("%d commands were sent, %d are expected", len(o.seen.commands), len(started))
			continue
		}
		for i, want := range started {
			sent := o.seen.commands[i]
			if name, ok := want.Lookup("commandName").StringValueOK(); ok && name != sent.name {
				t.Errorf("command %d is %s, not %s", i, sent.name, name)
			}
			if command := want.Lookup("command"); command.Type != 0 {
				if bad := differs(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: sent.body}, command, true); bad != "" {
					t.Errorf("command %d: %s\n got %v\nwant %v", i, bad, sent.body, command)
				}
			}
		}
	}
}

// differs says in which way a value is not the one that is wanted, by the rules of the unified format; more says whether a
// document may have fields that are not wanted.
func differs(got, want bson.RawValue, more bool) string {
	switch want.Type {
	case bson.TypeEmbeddedDocument:
		return documentDiffers(got, want, more)
	case bson.TypeArray:
		g, _ := got.ArrayOK()
		w, _ := want.ArrayOK()
		if got.Type != bson.TypeArray || g.Len() != w.Len() {
			return fmt.Sprintf("%v is not %v", got, want)
		}
		for i, v := range w.All() {
			if bad := differs(g.Index(i), v, false); bad != "" {
				return bad
			}
		}
		return ""
	}
	a, isNumber := got.AsFloat64OK()
	b, wantNumber := want.AsFloat64OK()
	if isNumber && wantNumber && a == b || got.Equal(want) {
		return ""
	}
	return fmt.Sprintf("%v is not %v", got, want)
}

func documentDiffers(got, want bson.RawValue, more bool) string {
	w, _ := want.DocumentOK()
	for key, v := range w.All() {
		switch key {
		case "$$unsetOrMatches":
			if got.Type == 0 {
				return ""
			}
			return differs(got, v, more)
		case "$$exists":
			if exists, _ := v.BooleanOK(); exists != (got.Type != 0) {
				return fmt.Sprintf("it is there: %v", !exists)
			}
			return ""
		case "$$type": // it is that of a hint: a name or keys
			if got.Type != bson.TypeString && got.Type != bson.TypeEmbeddedDocument {
				return fmt.Sprintf("%v is not of the type %v", got, v)
			}
			return ""
		}
	}
	g, ok := got.DocumentOK()
	if !ok {
		return fmt.Sprintf("%v is not %v", got, want)
	}
	n := 0
	for key, v := range w.All() {
		at := g.Lookup(key)
		if at.Type != 0 {
			n++
		}
		if bad := differs(at, v, false); bad != "" {
			return key + ": " + bad
		}
	}
	if !more && g.Len() != n {
		return fmt.Sprintf("%v has other fields than %v", g, w)
	}
	return ""
}
