package store

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// collection fills t.c and builds the indexes.
func collection(t testing.TB, docs []bson.Raw, indexes ...bson.Raw) *Coll {
	t.Helper()
	s := New()
	mustWrite(t, s, ticker(1), func(tx *Tx) error {
		if err := insertAll(docs...)(tx); err != nil {
			return err
		}
		for _, ix := range indexes {
			if _, err := tx.CreateIndex("t.c", spec(t, elements(ix)...)); err != nil {
				return err
			}
		}
		return nil
	})
	return s.Latest().Collection("t.c")
}

func index(name string, key bson.Raw, more ...any) bson.Raw {
	return doc(append([]any{"key", key, "name", name}, more...)...)
}

func TestPlanFindsWhatDifferentElementsOfAnArrayMatch(t *testing.T) {
	both := doc("_id", 1, "a", []any{doc("b", 1, "c", 5), doc("b", 5, "c", 2)})
	for _, tc := range []struct {
		filter bson.Raw
		docs   []bson.Raw
		index  bson.Raw
	}{
		{doc("a", doc("$gt", 3, "$lt", 2)), []bson.Raw{doc("_id", 1, "a", []any{1, 5})}, index("i", doc("a", 1))},
		{doc("a", doc("$lt", 2, "$gt", 3)), []bson.Raw{doc("_id", 1, "a", []any{1, 5})}, index("i", doc("a", -1))},
		{doc("a.b", 1, "a.c", 2), []bson.Raw{both}, index("i", doc("a.b", 1, "a.c", 1))},
		{doc("a.b", doc("$gte", 5), "a.c", doc("$gte", 5)), []bson.Raw{both}, index("i", doc("a.c", 1, "a.b", -1))},
	} {
		c := collection(t, tc.docs, tc.index)
		got, plan := find(t, c, Query{Filter: filterOf(t, tc.filter)})
		if len(got) != 1 || plan.Index == nil || plan.Index.Spec().Name != "i" {
			t.Errorf("filter %s finds %v by %v", value.PrintDoc(tc.filter), got, plan.Index)
		}
	}
}

func TestPlanLeavesIndexesThatMayMissDocuments(t *testing.T) {
	docs := []bson.Raw{doc("_id", 1), doc("_id", 2, "a", nil), doc("_id", 3, "a", 1)}
	for _, tc := range []struct {
		index, filter bson.Raw
		found         int
		used          bool
	}{
		{index("i", doc("a", 1), "sparse", true), doc("a", nil), 2, false},
		{index("i", doc("a", 1), "sparse", true), doc("a", doc("$in", []any{nil, 1})), 3, false},
		{index("i", doc("a", 1), "sparse", true), doc("a", 1), 1, true},
		{index("i", doc("a", 1)), doc("a", nil), 2, true},
		{index("i", doc("a", 1), "partialFilterExpression", doc("_id", doc("$gt", 2))), doc("a", nil), 2, false},
		{index("i", doc("a", 1), "partialFilterExpression", doc("_id", doc("$gt", 2))), doc("a", 1, "_id", doc("$gt", 2)), 1, true},
		{index("i", doc("a", 1), "hidden", true), doc("a", 1), 1, false},
	} {
		got, plan := find(t, collection(t, docs, tc.index), Query{Filter: filterOf(t, tc.filter)})
		used := plan.Index != nil && plan.Index.Spec().Name == "i"
		if len(got) != tc.found || used != tc.used {
			t.Errorf("index %s, filter %s: found %v, index used: %v", value.PrintDoc(tc.index), value.PrintDoc(tc.filter), got, used)
		}
	}
}

func TestPlanGivesTheSortFromTheIndex(t *testing.T) {
	docs := []bson.Raw{doc("_id", 1, "a", 1, "b", 2), doc("_id", 2, "a", 1, "b", 3), doc("_id", 3, "a", 0, "b", 9), doc("_id", 4, "a", 1, "b", 1)}
	for _, tc := range []struct {
		filter, sort bson.Raw
		sorted       bool
		ids          string
	}{
		{doc("a", 1), doc("b", 1), true, "[4 1 2]"},
		{doc("a", 1), doc("b", -1), true, "[2 1 4]"},
		{doc(), doc("a", 1, "b", -1), true, "[3 2 1 4]"},
		{doc(), doc("a", -1, "b", 1), true, "[4 1 2 3]"},
		{doc("b", doc("$gt", 1)), doc(), true, "[1 2 3]"},
		{doc(), doc("a", 1, "b", 1), false, ""},
		{doc("a", doc("$in", []any{0, 1})), doc("b", 1), false, ""},
		{doc(), doc("$natural", -1), true, "[4 3 2 1]"},
	} {
		c := collection(t, docs, index("ab", doc("a", 1, "b", -1)))
		seq, plan, err := c.Find(Query{Filter: filterOf(t, tc.filter), Sort: tc.sort})
		if err != nil {
			t.Fatal(err)
		}
		var ids []int32
		for r := range seq {
			id, _ := r.Doc.Lookup("_id").Int32OK()
			ids = append(ids, id)
		}
		if plan.Sorted != tc.sorted || tc.sorted && fmt.Sprint(ids) != tc.ids {
			t.Errorf("filter %s sort %s: sorted %v, order %v, want %s", value.PrintDoc(tc.filter), value.PrintDoc(tc.sort), plan.Sorted, ids, tc.ids)
		}
	}
}

func TestPlanPrefersTheMostSelectiveIndex(t *testing.T) {
	docs := []bson.Raw{doc("_id", 1, "a", 1, "b", 2)}
	c := collection(t, docs, index("a", doc("a", 1)), index("ab", doc("a", 1, "b", 1)), index("u", doc("b", 1), "unique", true))
	for _, tc := range []struct {
		filter bson.Raw
		want   string
	}{
		{doc("a", 1), "a"}, {doc("a", 1, "b", doc("$gt", 0)), "ab"}, {doc("a", 1, "b", 2), "u"}, {doc("_id", 1, "a", 1), "_id_"},
	} {
		plan, err := c.Plan(Query{Filter: filterOf(t, tc.filter)})
		if err != nil || plan.Index == nil || plan.Index.Spec().Name != tc.want {
			t.Errorf("filter %s is planned by %v (%v), want %s", value.PrintDoc(tc.filter), plan.Index, err, tc.want)
		}
	}
}

func TestHintThatNamesNoIndexIsRefused(t *testing.T) {
	c := collection(t, []bson.Raw{doc("_id", 1)}, index("a", doc("a", 1)))
	_, err := c.Plan(Query{Hint: bson.StringValue("nope")})
	wantCode(t, err, 2, "error processing query: planner returned error: bad hint")
}

// Whoever applies a delta copies the document for each of its paths: many changes are told by the document.
func TestManyChangesAreToldByTheWholeDocument(t *testing.T) {
	many := func(n, changed int, key func(int) string) bson.Raw {
		var fields []any
		for i := range n {
			v := 0
			if i < changed {
				v = 1
			}
			fields = append(fields, key(i), v)
		}
		return doc(fields...)
	}
	array := func(n, changed int) bson.Raw {
		return bson.EndDocument(bson.AppendValue([]byte{0, 0, 0, 0}, "a", bson.RawValue{Type: bson.TypeArray, Value: many(n, changed, strconv.Itoa)}), 0)
	}
	name := func(i int) string { return "f" + strconv.Itoa(i) }
	for _, tc := range []struct {
		before, after bson.Raw
		whole         bool
	}{
		{array(20_000, 0), array(20_000, mostChanges), false},
		{array(20_000, 0), array(20_000, mostChanges+1), true},
		{array(20_000, 0), array(20_000, 20_000), true},
		{array(1, 0), array(20_000, 0), true},
		{many(20_000, 0, name), many(20_000, mostChanges, name), false},
		{many(20_000, 0, name), many(20_000, 20_000, name), true},
		{many(20_000, 0, name), doc("_id", 1), true},
	} {
		entry := delta(tc.before, tc.after)
		if isDelta(entry) == tc.whole {
			t.Errorf("an entry of %d bytes for a document of %d", len(entry), len(tc.after))
		}
		if got, err := applyDelta(tc.before, entry); isDelta(entry) && (err != nil || string(got) != string(tc.after)) {
			t.Errorf("an entry of %d bytes makes a document of %d, %v", len(entry), len(got), err)
		}
	}
}

func TestDeltaIsIdempotentAndExact(t *testing.T) {
	for _, tc := range []struct{ before, after bson.Raw }{
		{doc("_id", 1, "a", 1), doc("_id", 1, "a", 2)},
		{doc("_id", 1, "a", 1), doc("_id", 1)},
		{doc("_id", 1, "a", doc("b", 1, "c", 2)), doc("_id", 1, "a", doc("b", 1, "c", 3, "d", 4))},
		{doc("_id", 1, "a", []any{1, 2}), doc("_id", 1, "a", []any{1, 3, 4})},
		{doc("_id", 1, "a", []any{1, 2}), doc("_id", 1, "a", []any{1})},
		{doc("_id", 1, "a", 1, "b", 2), doc("_id", 1, "b", 2, "a", 1)},
		{doc("_id", 1, "a.b", 1), doc("_id", 1, "a.b", 2)},
		{doc("_id", 1), doc("_id", 1, "", 2)},
	} {
		entry := delta(tc.before, tc.after)
		got := tc.before
		for range 2 {
			if isDelta(entry) {
				got, _ = applyDelta(got, entry)
			} else {
				got = entry
			}
			if string(got) != string(tc.after) {
				t.Errorf("%s with %s gives %s, want %s", value.PrintDoc(tc.before), value.PrintDoc(entry), value.PrintDoc(got), value.PrintDoc(tc.after))
			}
		}
	}
}
