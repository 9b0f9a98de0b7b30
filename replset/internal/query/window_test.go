package query

import (
	"testing"

	"github.com/sextantdb/sextant/bson"
)

// pipelineOn runs a pipeline, given as an array in Extended JSON, over documents given so too.
func pipelineOn(t *testing.T, docs, stages string) (string, error) {
	t.Helper()
	p, err := ParsePipeline(bson.RawArray(js(t, stages)), Env{Options: testOptions})
	if err != nil {
		return "", err
	}
	var in []bson.Raw
	for _, v := range bson.RawArray(js(t, docs)).All() {
		in = append(in, bson.Raw(v.Value))
	}
	out, err := collect(p.Run(docsOf(in)))
	return show(out), err
}

func TestWindowFunctionsSeeTheirWindowAlone(t *testing.T) {
	const docs = `[{"x":3,"v":30},{"x":1,"v":10},{"x":2,"v":null},{"x":5,"v":50}]`
	for _, c := range []struct{ fn, want string }{
		{`{"$sum":"$v","window":{"documents":[-1,0]}}`, `10 10 30 80`},
		{`{"$sum":"$x","window":{"range":[-1,1]}}`, `3 6 5 5`},
		{`{"$shift":{"output":"$x","by":1,"default":"end"}}`, `2 3 5 "end"`},
		{`{"$rank":{}}`, `1 2 3 4`},
		{`{"$locf":"$v"}`, `10 10 30 50`},
		{`{"$linearFill":"$v"}`, `10 {"$numberDouble":"20"} 30 50`},
		{`{"$derivative":{"input":"$x"},"window":{"documents":["unbounded","current"]}}`,
			`null {"$numberDouble":"1"} {"$numberDouble":"1"} {"$numberDouble":"1"}`},
		{`{"$integral":{"input":"$x"},"window":{"documents":["unbounded","current"]}}`,
			`0 {"$numberDouble":"1.5"} {"$numberDouble":"4"} {"$numberDouble":"12"}`},
		{`{"$expMovingAvg":{"input":"$x","N":3}}`, `1 {"$numberDouble":"1.5"} {"$numberDouble":"2.25"} {"$numberDouble":"3.625"}`},
		{`{"$covariancePop":["$x","$x"],"window":{"documents":[-1,0]}}`,
			`{"$numberDouble":"0"} {"$numberDouble":"0.25"} {"$numberDouble":"0.25"} {"$numberDouble":"1"}`},
	} {
		got, err := pipelineOn(t, docs, `[{"$setWindowFields":{"sortBy":{"x":1},"output":{"r":`+c.fn+`}}},{"$group":{"_id":null,"r":{"$push":"$r"}}}]`)
		if list := listOf(t, got); err != nil || list != c.want {
			t.Errorf("%s: %s, %v; want %s", c.fn, list, err, c.want)
		}
	}
}

func TestFillIsShortForWindowsAndValues(t *testing.T) {
	got, err := pipelineOn(t, `[{"p":"a","x":1,"v":1},{"p":"a","x":2},{"p":"b","x":3},{"p":"a","x":3,"v":5}]`,
		`[{"$fill":{"partitionBy":"$p","sortBy":{"x":1},"output":{"v":{"method":"linear"},"w":{"value":0}}}}]`)
	if want := `{"p":"a","x":1,"v":1,"w":0} {"p":"a","x":2,"v":{"$numberDouble":"3"},"w":0} {"p":"a","x":3,"v":5,"w":0} {"p":"b","x":3,"v":null,"w":0}`; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

func TestPercentilesOfGroupsWindowsAndLists(t *testing.T) {
	const docs = `[{"x":5},{"x":1},{"x":"no"},{"x":3},{"x":4},{"x":2}]`
	for stage, want := range map[string]string{
		`{"$group":{"_id":null,"r":{"$percentile":{"input":"$x","p":[0,0.5,0.95,1],"method":"approximate"}}}}`: `{"$numberDouble":"1"} {"$numberDouble":"3"} {"$numberDouble":"5"} {"$numberDouble":"5"}`,
		`{"$group":{"_id":null,"r":{"$push":{"$median":{"input":["$x",7,9],"method":"approximate"}}}}}`:        `{"$numberDouble":"7"} {"$numberDouble":"7"} {"$numberDouble":"7"} {"$numberDouble":"7"} {"$numberDouble":"7"} {"$numberDouble":"7"}`,
	} {
		got, err := pipelineOn(t, docs, "["+stage+"]")
		if list := listOf(t, got); err != nil || list != want {
			t.Errorf("%s: %s, %v; want %s", stage, list, err, want)
		}
	}
	if _, err := pipelineOn(t, docs, `[{"$group":{"_id":null,"r":{"$percentile":{"input":"$x","p":[2],"method":"approximate"}}}}]`); err == nil {
		t.Error("p of 2 is accepted")
	}
}

func TestDensifyRefusesToMakeDocumentsWithoutEnd(t *testing.T) {
	if _, err := pipelineOn(t, `[{"v":0},{"v":1e300}]`, `[{"$densify":{"field":"v","range":{"step":1,"bounds":"full"}}}]`); err == nil {
		t.Error("no error")
	}
}

// listOf is the values of the array r of a document.
func listOf(t *testing.T, doc string) (out string) {
	t.Helper()
	if doc == "" {
		return ""
	}
	for i, v := range bson.RawArray(js(t, doc).Lookup("r").Value).All() {
		if i > 0 {
			out += " "
		}
		out += jsonText(v)
	}
	return out
}
