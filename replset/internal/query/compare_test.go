package query

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// anyValue draws a value of any kind, with collisions between types made likely.
func anyValue(depth int) *rapid.Generator[bson.RawValue] {
	numbers := rapid.SampledFrom([]float64{0, 1, -1, 1.5, math.MaxInt64, 1 << 53, math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)})
	gens := []*rapid.Generator[bson.RawValue]{
		rapid.Custom(func(t *rapid.T) bson.RawValue { return bson.DoubleValue(numbers.Draw(t, "double")) }),
		rapid.Custom(func(t *rapid.T) bson.RawValue { return bson.Int32Value(rapid.Int32Range(-2, 2).Draw(t, "int")) }),
		rapid.Custom(func(t *rapid.T) bson.RawValue {
			return bson.Int64Value(rapid.SampledFrom([]int64{0, 1, 1 << 53, 1<<53 + 1, math.MaxInt64, math.MinInt64}).Draw(t, "long"))
		}),
		rapid.Custom(func(t *rapid.T) bson.RawValue {
			d, err := bson.ParseDecimal128(rapid.SampledFrom([]string{"0", "1", "1.0", "1.50", "NaN", "Infinity", "9007199254740993", "1E+400"}).Draw(t, "decimal"))
			if err != nil {
				t.Fatal(err)
			}
			return bson.Decimal128Value(d)
		}),
		rapid.Custom(func(t *rapid.T) bson.RawValue {
			return bson.StringValue(rapid.SampledFrom([]string{"", "a", "A", "b"}).Draw(t, "string"))
		}),
		rapid.Custom(func(t *rapid.T) bson.RawValue { return bson.BooleanValue(rapid.Bool().Draw(t, "bool")) }),
		rapid.Just(bson.NullValue()), rapid.Just(bson.UndefinedValue()), rapid.Just(bson.MinKeyValue()), rapid.Just(bson.MaxKeyValue()),
		rapid.Just(bson.DateTimeValue(-1)), rapid.Just(bson.TimestampValue(1, 2)), rapid.Just(bson.RegexValue("a", "i")),
		rapid.Just(bson.BinaryValue(0, []byte("a"))), rapid.Just(bson.ObjectIDValue(bson.ObjectID{1})),
	}
	if depth > 0 {
		gens = append(gens,
			rapid.Custom(func(t *rapid.T) bson.RawValue {
				return value.ArrayOf(rapid.SliceOfN(anyValue(depth-1), 0, 3).Draw(t, "array"))
			}),
			rapid.Custom(func(t *rapid.T) bson.RawValue { return bson.DocumentValue(anyDoc(depth-1).Draw(t, "document")) }),
		)
	}
	return rapid.OneOf(gens...)
}

func anyDoc(depth int) *rapid.Generator[bson.Raw] {
	return rapid.Custom(func(t *rapid.T) bson.Raw {
		var fields []value.Field
		for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "0", "c d"}), 0, 3, rapid.ID[string]).Draw(t, "keys") {
			fields = append(fields, value.Field{Key: k, Value: anyValue(depth).Draw(t, k)})
		}
		return value.DocOf(fields...)
	})
}

func TestCompareIsATotalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyValue(2)
		a, b, c := g.Draw(t, "a"), g.Draw(t, "b"), g.Draw(t, "c")
		if Compare(a, a) != 0 {
			t.Fatalf("%s differs from itself", jsonText(a))
		}
		if sign(Compare(a, b)) != -sign(Compare(b, a)) {
			t.Fatalf("%s and %s: %d one way, %d the other", jsonText(a), jsonText(b), Compare(a, b), Compare(b, a))
		}
		if Compare(a, b) <= 0 && Compare(b, c) <= 0 && Compare(a, c) > 0 {
			t.Fatalf("%s <= %s <= %s, and yet the first is greater than the last", jsonText(a), jsonText(b), jsonText(c))
		}
	})
}

func sign(n int) int { return max(-1, min(1, n)) }

func TestKeysAreEqualExactlyForEqualValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyValue(2).Draw(t, "a"), anyValue(2).Draw(t, "b")
		if same := value.Key(a, nil) == value.Key(b, nil); same != (Compare(a, b) == 0) {
			t.Fatalf("%s and %s: keys equal %v, order %d", jsonText(a), jsonText(b), same, Compare(a, b))
		}
	})
}

func TestTypesSortInTheServersOrder(t *testing.T) {
	doc := js(t, `{"v":[{"$minKey":1},null,1,"a",{},[],{"$binary":{"base64":"","subType":"00"}},{"$oid":"000000000000000000000001"},
		false,{"$date":{"$numberLong":"1"}},{"$timestamp":{"t":1,"i":1}},{"$regularExpression":{"pattern":"a","options":""}},{"$maxKey":1}]}`)
	all := value.Array(doc.Lookup("v"))
	for i := range all {
		for j := range all {
			if got, want := sign(Compare(all[i], all[j])), sign(i-j); got != want {
				t.Errorf("%s against %s: %d, want %d", jsonText(all[i]), jsonText(all[j]), got, want)
			}
		}
	}
}

func TestSortIsStableAndOrdered(t *testing.T) {
	s, err := ParseSort(js(t, `{"a":1,"b":-1}`))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var docs []bson.Raw
		for i, d := range rapid.SliceOfN(anyDoc(1), 0, 8).Draw(t, "docs") {
			if _, err := s.Key(d); err == nil { // two arrays side by side have no sort key
				docs = append(docs, setAt(d, "n", bson.Int32Value(int32(i))))
			}
		}
		if err := s.Apply(docs); err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(docs); i++ {
			c := s.Compare(docs[i-1], docs[i])
			before, after := value.Long(docs[i-1].Lookup("n")), value.Long(docs[i].Lookup("n"))
			if c > 0 || c == 0 && before > after {
				t.Fatalf("%s stands before %s", show(docs[i-1:i]), show(docs[i:i+1]))
			}
		}
	})
}

// The keys of a long array cost about what sorting it costs: a hundred thousand of them compared each with each would
// take a quarter of an hour.
func TestIndexKeysOfALongArray(t *testing.T) {
	var elems []bson.RawValue
	for i := range 100_000 {
		elems = append(elems, bson.Int32Value(int32(i%60_000)))
	}
	doc := bson.EndDocument(bson.AppendValue([]byte{0, 0, 0, 0}, "a", value.ArrayOf(elems)), 0)
	keys, _, err := IndexKeys([]IndexField{{Path: "a"}}, doc)
	if err != nil || len(keys) != 60_000 || keys[59_999][0].Int32() != 59_999 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}

func TestIndexKeysOfArrays(t *testing.T) {
	for _, c := range []struct {
		pattern []IndexField
		doc     string
		want    string
		multi   bool
	}{
		{[]IndexField{{Path: "a"}}, `{}`, `[[null]]`, false},
		{[]IndexField{{Path: "a"}}, `{"a":[1,2,1]}`, `[[1],[2]]`, true},
		{[]IndexField{{Path: "a"}}, `{"a":[3,1,3,2,1,3]}`, `[[3],[1],[2]]`, true},
		{[]IndexField{{Path: "a"}}, `{"a":[]}`, `[[{"$undefined":true}]]`, true},
		{[]IndexField{{Path: "a.b"}}, `{"a":[{"b":1},{"c":2},5]}`, `[[1],[null]]`, true},
		{[]IndexField{{Path: "a"}, {Path: "b"}}, `{"a":[1,2],"b":3}`, `[[1,3],[2,3]]`, true},
		{[]IndexField{{Path: "a.x"}, {Path: "a.y"}}, `{"a":[{"x":1,"y":2},{"x":3}]}`, `[[1,2],[3,null]]`, true},
		{[]IndexField{{Path: "a.1"}}, `{"a":[7,8]}`, `[[8]]`, true},
		{[]IndexField{{Path: "first place"}}, `{"first place":"gold"}`, `[["gold"]]`, false},
	} {
		keys, multi, err := IndexKeys(c.pattern, js(t, c.doc))
		if err != nil {
			t.Fatal(err)
		}
		var got []bson.RawValue
		for _, k := range keys {
			got = append(got, value.ArrayOf(k))
		}
		want := bson.RawValue{Type: bson.TypeArray, Value: js(t, c.want)}
		if !same(value.ArrayOf(got), want) || multi != c.multi {
			t.Errorf("%v of %s: %s multikey %v, want %s %v", c.pattern, c.doc, jsonText(value.ArrayOf(got)), multi, c.want, c.multi)
		}
	}
	_, _, err := IndexKeys([]IndexField{{Path: "a"}, {Path: "b"}}, js(t, `{"a":[1],"b":[2]}`))
	checkCode(t, err, 171)
}
