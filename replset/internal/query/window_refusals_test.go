package query

import (
	"strings"
	"testing"

	"github.com/sextantdb/sextant/mongoerr"
)

// The codes, and the conditions in their order, are those of a server's sources.
func TestSeriesStagesRefuseWithTheServersCodes(t *testing.T) {
	const docs = `[{"x":1,"v":1,"d":{"$date":{"$numberLong":"0"}}},{"x":2,"d":{"$date":{"$numberLong":"1000"}}},{"x":2,"v":"s","d":{"$date":{"$numberLong":"2000"}}}]`
	window := func(sortBy, fn string) string {
		if sortBy != "" {
			sortBy = `"sortBy":` + sortBy + `,`
		}
		return `{"$setWindowFields":{` + sortBy + `"output":{"r":` + fn + `}}}`
	}
	densify := func(bounds string) string {
		return `{"$densify":{"field":"x","range":{"step":1,"bounds":` + bounds + `}}}`
	}
	dated := func(step, bounds string) string {
		return `{"$densify":{"field":"d","range":{"step":` + step + `,"unit":"day","bounds":` + bounds + `}}}`
	}
	fill := func(output string) string { return `{"$fill":{"sortBy":{"x":1},"output":` + output + `}}` }
	group := func(acc string) string { return `{"$group":{"_id":null,"r":` + acc + `}}` }
	const day, byX = `{"$date":{"$numberLong":"0"}}`, `{"x":1}`
	for _, c := range []struct {
		stage string
		code  int32
		text  string
	}{
		{`{"$densify":1}`, 9, "The $densify stage specification must be an object, found int"},
		{`{"$densify":{"field":"x"}}`, 40414, ""},
		{`{"$densify":{"field":"x","range":{"step":"s","bounds":"full"}}}`, 14, ""},
		{`{"$densify":{"field":"x","range":{"step":0,"bounds":"full"}}}`, 5733401, "The step parameter in a range statement must be a strictly positive numeric value"},
		{dated("1.5", `"full"`), 6586400, "The step parameter in a range statement must be a whole number when densifying a date range"},
		{densify(`[1]`), 5733403, "A bounding array in a range statement must have exactly two elements"},
		{densify(`[2,1]`), 5733402, "A bounding array must be an ascending array of either two dates or two numbers"},
		{dated("1", `[1,2]`), 5733409, "Numeric bounds may not have unit parameter"},
		{densify(`[1,"s"]`), 5733406, "A bounding array must contain either both dates or both numeric types"},
		{densify(`[1,2.5]`), 5876900, "Upper bound, lower bound, and step must all have the same type"},
		{dated("1", `[`+day+`,{"$maxKey":1}]`), 5733405, ""},
		{densify(`[` + day + `,` + day + `]`), 5733410, "A bounding array of dates must specify a unit"},
		{densify(`["a","b"]`), 5946800, "Explicit bounds must be numeric or dates"},
		{densify(`"some"`), 5946802, "Bounds string must either be 'full' or 'partition'"},
		{densify(`1`), 5733404, "The bounds in a range statement must be the string 'full', 'partition', or an ascending array of two numbers or two dates"},
		{densify(`"partition"`), 5733408, "One cannot specify the bounds as 'partition' without specifying a non-empty array of partitionByFields. You may have meant to specify 'full' bounds."},

		{`{"$fill":1}`, 9, "The $fill stage specification must be an object, found int"},
		{fill(`{}`), 6050203, "The output field in '$fill' must contain an object with at least one element"},
		{fill(`{"v":1}`), 6050200, "Each fill output specification must be an object with exactly one field"},
		{fill(`{"v":{"method":"locf","value":1}}`), 6050201, "Each fill output specification must have exactly one of 'method' or 'value' fields, not both"},
		{fill(`{"v":{"method":"other"}}`), 6050202, "Method must be either locf or linear"},
		{fill(`{"v":{"method":1}}`), 14, ""},
		{fill(`{"v":{"how":1}}`), 40415, "BSON field '$fill.how' is an unknown field."},
		{`{"$fill":{"partitionBy":"$x","partitionByFields":["x"],"output":{"v":{"value":1}}}}`, 6050204, ""},
		{`{"$fill":{"output":{"v":{"method":"linear"}}}}`, 605001, "$linearFill must be specified with a top level sortBy expression with exactly one element"},

		{window(byX, `{"$documentNumber":{},"window":{}}`), 5371601, "Rank style window functions take no other arguments"},
		{window("", `{"$documentNumber":1}`), 5371603, "$documentNumber must be specified with '{}' as the value"},
		{window(`{"x":1,"v":1}`, `{"$rank":{}}`), 5371602, "$rank must be specified with a top level sortBy expression with exactly one element"},

		{window(byX, `{"$shift":1}`), 9, "Argument to $shift must be an object"},
		{window(byX, `{"$shift":{"output":"$x","by":1},"window":{}}`), 9, "$shift does not accept a 'window' field"},
		{window(byX, `{"$shift":{"output":"$x","by":1.5}}`), 9, "'$shift:by' field must be an integer, but found  by: 1.5"},
		{window(byX, `{"$shift":{"output":"$x"}}`), 9, "$shift requires 'by' as an integer value."},
		{window(byX, `{"$shift":{"by":1}}`), 9, "$shift requires an 'output' expression."},
		{window(byX, `{"$shift":{"output":"$x","by":1,"default":"$x"}}`), 9, "'$shift:default' expression must yield a constant value."},
		{window("", `{"$shift":{"output":"$x","by":1}}`), 9, "'$shift' requires a sortBy"},

		{window("", `{"$derivative":{"input":"$x"}}`), 9, "$derivative requires a sortBy"},
		{window(`{"x":1,"v":1}`, `{"$integral":{"input":"$x"}}`), 9, "$integral requires a non-compound sortBy"},
		{window(byX, `{"$derivative":1}`), 9, "$derivative expects an object, but got a int: $derivative: 1"},
		{window(byX, `{"$derivative":{}}`), 9, "$derivative requires an 'input' expression"},
		{window(byX, `{"$integral":{"input":"$x","of":1}}`), 9, "$integral got unexpected argument: of"},
		{window(byX, `{"$derivative":{"input":"$x"}}`), 9, "$derivative requires explicit window bounds"},
		{window(byX, `{"$derivative":{"input":"$x","unit":1},"window":{"documents":[-1,0]}}`), 9, "unit' must be a string, but got int"},
		{window(byX, `{"$derivative":{"input":"$x","unit":"month"},"window":{"documents":[-1,0]}}`), 5490710, "unit must be 'week' or smaller"},
		{window(byX, `{"$derivative":{"input":"$x","unit":"hour"},"window":{"documents":[-1,0]}}`), 5624900, "$derivative with 'unit' expects the sortBy field to be a Date"},
		{window(`{"d":1}`, `{"$derivative":{"input":"$x"},"window":{"documents":[-1,0]}}`), 5624901, "$derivative where the sortBy is a Date requires an 'unit'"},
		{window(`{"v":1}`, `{"$derivative":{"input":"$x"},"window":{"documents":[-1,0]}}`), 5624902, "$derivative (with no 'unit') expects the sortBy field to be numeric"},
		{window(byX, `{"$derivative":{"input":"$none"},"window":{"documents":[-1,0]}}`), 5624903, "$derivative input must not be null or missing"},
		{window(byX, `{"$integral":{"input":"$v"}}`), 5423900, ""},
		{window(byX, `{"$integral":{"input":"$x","unit":"hour"}}`), 5423901, "$integral with 'unit' expects the sortBy field to be a Date"},
		{window(`{"d":1}`, `{"$integral":{"input":"$x"}}`), 5423902, "$integral (with no 'unit') expects the sortBy field to be numeric"},

		{window(byX, `{"$expMovingAvg":1}`), 9, "$expMovingAvg must have exactly one argument that is an object"},
		{window(byX, `{"$expMovingAvg":{"input":"$x"}}`), 9, "$expMovingAvg sub object must have exactly two fields: An 'input' field, and either an 'N' field or an 'alpha' field"},
		{window("", `{"$expMovingAvg":{"input":"$x","N":2}}`), 9, "$expMovingAvg requires an explicit 'sortBy'"},
		{window(byX, `{"$expMovingAvg":{"input":"$x","N":"2"}}`), 9, "'N' field must be an integer, but found type string"},
		{window(byX, `{"$expMovingAvg":{"input":"$x","N":1.5}}`), 9, "'N' field must be an integer, but found  N: 1.5. To use a non-integer, use the 'alpha' argument instead"},
		{window(byX, `{"$expMovingAvg":{"input":"$x","N":0}}`), 9, "'N' must be greater than zero. Got 0"},
		{window(byX, `{"$expMovingAvg":{"input":"$x","alpha":"1"}}`), 9, "'alpha' must be a number"},
		{window(byX, `{"$expMovingAvg":{"input":"$x","alpha":1}}`), 9, "'alpha' must be between 0 and 1 (exclusive), found alpha: 1"},

		{window(byX, `{"$locf":"$v","window":{}}`), 9, "'window' field is not allowed in $locf"},
		{window("", `{"$linearFill":"$v"}`), 605001, "$linearFill must be specified with a top level sortBy expression with exactly one element"},
		{window(byX, `{"$linearFill":"$d"}`), 14, "Value to be filled must be numeric or nullish, but found date"},
		{window(`{"none":1}`, `{"$linearFill":"$x"}`), 14, "Value of the sortBy field must be numeric or a date, but found missing"},
		{window(byX, `{"$linearFill":"$none"}`), 6050106, "There can be no repeated values in the sort field"},

		{window(byX, `{"$sum":"$x","window":{"documents":[-1,0],"other":1}}`), 9, "'window' field that specifies documents cannot have other fields"},
		{window(byX, `{"$sum":"$x","window":{"range":[-1,0],"unit":1}}`), 9, "'unit' must be a string"},

		{group(`{"$percentile":1}`), 7429703, "specification must be an object; found $percentile: 1"},
		{group(`{"$median":1}`), 7436100, "specification must be an object; found $median: 1"},
		{`{"$project":{"r":{"$percentile":1}}}`, 7436200, "specification must be an object; found $percentile: 1"},
		{`{"$project":{"r":{"$median":1}}}`, 7436201, "specification must be an object; found $median: 1"},
		{group(`{"$percentile":{"input":"$x","method":"approximate"}}`), 40414, ""},
		{group(`{"$median":{"input":"$x","method":1}}`), 14, ""},
		{group(`{"$median":{"input":"$x","method":"exact"}}`), 2, "Currently only 'approximate' can be used as percentile 'method'."},
		{group(`{"$percentile":{"input":"$x","method":"approximate","p":"$x"}}`), 7750300, ""},
		{group(`{"$percentile":{"input":"$x","method":"approximate","p":[]}}`), 7750301, "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: []"},
		{group(`{"$percentile":{"input":"$x","method":"approximate","p":["s"]}}`), 7750302, ""},
		{group(`{"$percentile":{"input":"$x","method":"approximate","p":[10]}}`), 7750303, "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: 10"},
	} {
		_, err := pipelineOn(t, docs, "["+c.stage+"]")
		e, ok := err.(*mongoerr.Error)
		if !ok || e.Code != c.code || !strings.HasPrefix(e.Message, c.text) {
			t.Errorf("%s: %v, want %d %s", c.stage, err, c.code, c.text)
		}
	}
}
