package query

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// evaluate computes an expression on a document; with fold set, in two steps.
func evaluate(spec bson.RawValue, doc bson.Raw, fold bool) (bson.RawValue, error) {
	env := &expr.Env{Now: testOptions.Now, Zone: testZone}
	e, err := (&expr.Parser{Env: env}).Operand(spec)
	if err == nil && fold {
		e, err = expr.Fold(e, env)
	}
	if err != nil {
		return value.Missing, err
	}
	return e.Eval(env.On(doc, nil))
}

func TestExpressions(t *testing.T) {
	doc := `{"a":1,"b":{"c":[{"d":1},{"d":2}]},"s":"Joe","t":{"$date":{"$numberLong":"1582979696789"}},"l":[3,1,2]}`
	for spec, want := range map[string]string{
		`{"$add":["$a",{"$numberLong":"1"}]}`:                     `{"$numberLong":"2"}`,
		`{"$add":[2147483647,1]}`:                                 `{"$numberLong":"2147483648"}`,
		`{"$multiply":[{"$numberLong":"9223372036854775807"},2]}`: `{"$numberDouble":"1.8446744073709552e19"}`,
		`{"$divide":[{"$numberDecimal":"7"},2]}`:                  `{"$numberDecimal":"3.5"}`,
		`"$b.c.d"`:                                                `[1,2]`,
		`{"$concat":["$s","-","$missing"]}`:                       `null`,
		`{"$toUpper":"$s"}`:                                       `"JOE"`,
		`{"$dateToString":{"date":"$t","format":"%Y-%m-%d","timezone":"+12:00"}}`:           `"2020-03-01"`,
		`{"$map":{"input":"$l","as":"x","in":{"$multiply":["$$x",2]}}}`:                     `[6,2,4]`,
		`{"$filter":{"input":"$l","cond":{"$gt":["$$this",1]}}}`:                            `[3,2]`,
		`{"$reduce":{"input":"$l","initialValue":0,"in":{"$add":["$$value","$$this"]}}}`:    `6`,
		`{"$let":{"vars":{"x":"$a"},"in":{"$eq":["$$x","$$CURRENT.a"]}}}`:                   `true`,
		`{"$switch":{"branches":[{"case":{"$lt":["$a",0]},"then":"neg"}],"default":"pos"}}`: `"pos"`,
		`{"$ifNull":["$missing",null,"x"]}`:                                                 `"x"`,
		`{"$arrayElemAt":["$l",-1]}`:                                                        `2`,
		`{"$sum":"$l"}`:                                                                     `6`,
		`{"$convert":{"input":"x","to":"int","onError":"no"}}`:                              `"no"`,
		`{"$setUnion":["$l",[1,4]]}`:                                                        `[1,2,3,4]`,
		`{"$mergeObjects":["$b",{"e":1}]}`:                                                  `{"c":[{"d":1},{"d":2}],"e":1}`,
		`{"$type":"$missing"}`:                                                              `"missing"`,
		`{"$regexMatch":{"input":"$s","regex":"^j","options":"i"}}`:                         `true`,
		`{"$dateTrunc":{"date":"$t","unit":"month"}}`:                                       `{"$date":{"$numberLong":"1580515200000"}}`,
		`{"$sortArray":{"input":"$l","sortBy":-1}}`:                                         `[3,2,1]`,
	} {
		specValue := js(t, `{"v":`+spec+`}`).Lookup("v")
		got, err := evaluate(specValue, js(t, doc), false)
		if err != nil || !same(got, js(t, `{"v":`+want+`}`).Lookup("v")) {
			t.Errorf("%s: %s, %v; want %s", spec, jsonText(got), err, want)
		}
	}
}

// Folding only moves work to an earlier time: it changes no result.
func TestFoldingChangesNoResult(t *testing.T) {
	ops := []string{"$add", "$subtract", "$multiply", "$divide", "$mod", "$concat", "$and", "$or", "$eq", "$cmp", "$ifNull", "$setUnion", "$concatArrays", "$in", "$max"}
	rapid.Check(t, func(t *rapid.T) {
		arg := func(name string) bson.RawValue {
			if rapid.Bool().Draw(t, name+" is a field") {
				return bson.StringValue("$" + rapid.SampledFrom([]string{"a", "b", "a.b", "z"}).Draw(t, name+" path"))
			}
			return docValueOf("$literal", anyValue(1).Draw(t, name))
		}
		inner := docValueOf(rapid.SampledFrom(ops).Draw(t, "inner"), value.ArrayOf([]bson.RawValue{arg("x"), arg("y")}))
		spec := docValueOf(rapid.SampledFrom(ops).Draw(t, "outer"), value.ArrayOf([]bson.RawValue{inner, arg("z")}))
		doc := anyDoc(2).Draw(t, "doc")
		plain, err1 := evaluate(spec, doc, false)
		folded, err2 := evaluate(spec, doc, true)
		if err1 == nil && err2 == nil && !same(folded, plain) {
			t.Fatalf("%s on %s: %s, folded %s", jsonText(spec), show([]bson.Raw{doc}), jsonText(plain), jsonText(folded))
		}
		if err1 != nil && err2 == nil && !shortCircuits(spec) {
			t.Fatalf("%s fails with %v, folded it gives %s", jsonText(spec), err1, jsonText(folded))
		}
	})
}

// shortCircuits says whether an operator may skip an argument that fails.
func shortCircuits(spec bson.RawValue) bool {
	op, _ := value.First(value.Doc(spec))
	return op == "$and" || op == "$or"
}

func TestHeavyNumbersEndSoon(t *testing.T) {
	start := time.Now()
	for _, spec := range []string{
		`{"$pow":[{"$numberDecimal":"1.5"},{"$numberDecimal":"1E+30"}]}`, `{"$pow":[{"$numberDecimal":"0.5"},{"$numberDecimal":"1E+6000"}]}`,
		`{"$pow":[{"$numberDecimal":"1E+6000"},{"$numberDecimal":"0.1"}]}`, `{"$exp":{"$numberDecimal":"9E+6144"}}`, `{"$exp":{"$numberDecimal":"-14000"}}`,
		`{"$ln":{"$numberDecimal":"1E-6176"}}`, `{"$log10":{"$numberDecimal":"9.999E+6144"}}`, `{"$mod":[{"$numberDecimal":"9E+6144"},{"$numberDecimal":"7E-6176"}]}`,
		`{"$round":[{"$numberDecimal":"1E+6144"},100]}`, `{"$sqrt":{"$numberDecimal":"3E-6176"}}`, `{"$log":[{"$numberDecimal":"1E-6176"},2]}`,
		`{"$range":[0,2147483647]}`, `{"$dateAdd":{"startDate":{"$date":{"$numberLong":"0"}},"unit":"day","amount":{"$numberLong":"60000000000"}}}`,
	} {
		began := time.Now()
		_, err := evaluate(js(t, `{"v":`+spec+`}`).Lookup("v"), js(t, `{}`), true)
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("%s took %v (%v)", spec, d, err)
		}
	}
	t.Logf("all in %v", time.Since(start))
}
