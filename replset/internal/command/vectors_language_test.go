package command

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func runQueryVector(t *testing.T, m *Member, v vector) error {
	if err := fresh(t, m, v); err != nil {
		return err
	}
	cmd := with(bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: v.get("filter")}}, v.raw("options"))
	got, err := answer(t, m, cmd)
	if !v.get("error").IsZero() {
		return wantError(v, err)
	}
	if err != nil {
		return err
	}
	return sameDocs(got, docsIn(v.get("result")))
}

// answer runs a command that opens a cursor, and drains it.
func answer(t *testing.T, m *Member, cmd bson.Raw) ([]bson.Raw, error) {
	reply := runCommand(t, m, "vt", cmd)
	if err := failure(reply); err != nil {
		return nil, err
	}
	return allOf(t, m, reply)
}

func runUpdateVector(t *testing.T, m *Member, v vector) error {
	if err := fresh(t, m, v); err != nil {
		return err
	}
	options := v.raw("options")
	cmd := with(bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{v.get("op")}}}, options)
	if fam := v.raw("findAndModify"); fam != nil {
		cmd = with(bson.D{{Key: "findAndModify", Value: "c"}}, fam)
	}
	reply := runCommand(t, m, "vt", cmd)
	err := failure(reply)
	switch {
	case !v.get("error").IsZero():
		if err := wantError(v, err); err != nil {
			return err
		}
	case err != nil && reply.Lookup("writeErrors").IsZero():
		return err
	default:
		if err := sameReply(v.raw("reply"), reply); err != nil {
			return fmt.Errorf("%w\n   got  %s\n   want %s", err, value.PrintDoc(reply), value.PrintDoc(v.raw("reply")))
		}
	}
	return sameDocs(everything(t, m, "c", v.newer()), docsIn(v.get("after")))
}

func runAggregateVector(t *testing.T, m *Member, v vector) error {
	if err := fresh(t, m, v); err != nil {
		return err
	}
	target := bson.StringValue("c")
	if value.Truthy(v.get("collectionless")) {
		target = bson.Int32Value(1)
	}
	cmd := with(bson.D{{Key: "aggregate", Value: target}, {Key: "pipeline", Value: v.get("pipeline")}, {Key: "cursor", Value: bson.D{}}}, v.raw("options"))
	got, err := answer(t, m, cmd)
	if !v.get("error").IsZero() {
		return wantError(v, err)
	}
	if err != nil {
		return err
	}
	for name, docs := range v.raw("outAfter").All() {
		if err := sameDocs(everything(t, m, name, true), docsIn(docs)); err != nil {
			return fmt.Errorf("in %s: %w", name, err)
		}
	}
	want := docsIn(v.get("result"))
	if r := v.raw("reply"); r != nil {
		want = docsIn(r.Lookup("cursor", "firstBatch"))
	}
	if value.Truthy(v.get("unordered")) {
		slices.SortFunc(got, value.CompareDocs)
		slices.SortFunc(want, value.CompareDocs)
	}
	return sameDocs(got, want)
}

func sameDocs(got, want []bson.Raw) error {
	if slices.EqualFunc(got, want, sameDoc) {
		return nil
	}
	extra, lacking := notIn(got, want, sameDoc), notIn(want, got, func(a, b bson.Raw) bool { return sameDoc(b, a) })
	if len(extra)+len(lacking) == 0 {
		return fmt.Errorf("another order:\n   got  %s\n   want %s", show(got), show(want))
	}
	return fmt.Errorf("%d documents, want %d; the different ones:\n   got  %s\n   want %s", len(got), len(want), show(extra), show(lacking))
}

func sameDoc(got, want bson.Raw) bool {
	return sameExactly(bson.DocumentValue(got), bson.DocumentValue(want))
}

// notIn gives the documents of a that b has not.
func notIn(a, b []bson.Raw, same func(a, b bson.Raw) bool) (out []bson.Raw) {
	for _, d := range a {
		if !slices.ContainsFunc(b, func(e bson.Raw) bool { return same(d, e) }) {
			out = append(out, d)
		}
	}
	return out
}

func show(docs []bson.Raw) (s string) {
	for _, d := range docs {
		text, err := bson.MarshalExtJSON(d, true, false)
		if err != nil {
			text = []byte(value.PrintDoc(d))
		}
		s += string(text) + " "
	}
	if len(s) > 700 {
		s = s[:700] + "..."
	}
	return s
}

// sameExactly compares types too; {"$$type": T} on the recorded side stands for any value of the type.
func sameExactly(got, want bson.RawValue) bool {
	if key, t := value.First(value.Doc(want)); key == "$$type" {
		name, _ := t.StringValueOK()
		return sameType(name, got)
	}
	if got.Type != want.Type {
		return false
	}
	if got.Type != bson.TypeEmbeddedDocument && got.Type != bson.TypeArray {
		return string(got.Value) == string(want.Value) || got.Type == bson.TypeDouble && value.IsNaN(got) && value.IsNaN(want)
	}
	g, _ := bson.Raw(got.Value).Elements()
	w, _ := bson.Raw(want.Value).Elements()
	return slices.EqualFunc(g, w, func(a, b bson.RawElement) bool {
		return a.Key() == b.Key() && sameExactly(a.Value(), b.Value())
	})
}
