package query

import (
	"math/rand"
	"slices"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func testZone(name string) (*time.Location, bool) {
	loc, err := time.LoadLocation(name)
	return loc, err == nil
}

func runAggregateVector(v vector) error {
	var written []bson.Raw
	var target *Output
	env := Env{Options: testOptions, DB: "vt", Coll: "c"}
	env.Collation = value.Doc(value.Doc(v.get("options")).Lookup("collation"))
	env.Zone, env.Random = testZone, rand.New(rand.NewSource(1)).Float64
	foreign := value.Doc(v.get("foreign"))
	env.Lookup = func(coll string) Docs {
		if coll == "c" {
			return docsOf(v.raws("docs"))
		}
		return docsOf(documents(foreign.Lookup(coll)))
	}
	env.Write = func(o Output, docs []bson.Raw) error {
		target, written = &o, withIDs(docs)
		return uniqueIDs(o, written)
	}
	got, err := func() ([]bson.Raw, error) {
		let, err := EvalLet(value.Doc(value.Doc(v.get("options")).Lookup("let")), env.Options)
		if err != nil {
			return nil, err
		}
		env.Let = let
		p, err := ParsePipeline(bson.RawArray(v.get("pipeline").Value), env)
		if err != nil {
			return nil, err
		}
		return collect(p.Run(docsOf(v.raws("docs"))))
	}()
	if v.get("error").Type != 0 {
		return wantError(v, err)
	}
	if err != nil {
		return err
	}
	want := v.raws("result")
	if r := v.get("reply"); r.Type != 0 {
		want = documents(value.Doc(r).Lookup("cursor", "firstBatch"))
	}
	if value.Truthy(v.get("unordered")) {
		byAll := func(a, b bson.Raw) int { return value.CompareDocs(a, b) }
		slices.SortFunc(got, byAll)
		slices.SortFunc(want, byAll)
	}
	if after := v.get("outAfter"); after.Type != 0 && target != nil && !target.Merge {
		if err := sameDocs(written, documents(value.Doc(after).Lookup(target.Coll))); err != nil {
			return err
		}
	}
	return sameDocs(got, want)
}

func withIDs(docs []bson.Raw) []bson.Raw {
	out := slices.Clone(docs)
	for i, d := range out {
		if value.Get(d, "_id").Type == 0 {
			out[i] = setFirst(d, bson.ObjectIDValue(testOptions.ObjectID()))
		}
	}
	slices.SortStableFunc(out, func(a, b bson.Raw) int { return Compare(value.Get(a, "_id"), value.Get(b, "_id")) })
	return out
}

func uniqueIDs(o Output, docs []bson.Raw) error {
	for i := 1; i < len(docs); i++ {
		if id := value.Get(docs[i], "_id"); Compare(id, value.Get(docs[i-1], "_id")) == 0 {
			return fail(11000, "E11000 duplicate key error collection: %s.%s index: _id_ dup key: { : %s }", o.DB, o.Coll, value.Print(id))
		}
	}
	return nil
}
