package query

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// doubled nests a $let n times, each of which doubles what the one before has made of start.
func doubled(n int, start, double string) string {
	expr := start
	for i := range n {
		v := fmt.Sprintf("v%d", i)
		expr = strings.ReplaceAll(fmt.Sprintf(`{"$let":{"vars":{"%s":%s},"in":%s}}`, v, expr, double), "$$x", "$$"+v)
	}
	return expr
}

const kilobyte = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// muchFromLittle are pipelines of a few bytes that ask for very much, and the codes that a server refuses them with.
func muchFromLittle() []struct {
	name, pipeline string
	codes          []int32
} {
	project := func(e string) string {
		return `[{"$limit":1},{"$project":{"r":` + e + `}}]`
	}
	sized := func(e string) string { return project(`{"$size":` + e + `}`) }
	stages := func(s string) string { return "[" + s + "]" }
	million := `{"$range":[0,{"$add":["$_id",100000]}]}`
	text := `{"$reduce":{"input":{"$range":[0,10]},"initialValue":"` + kilobyte + `","in":{"$concat":["$$value","$$value"]}}}`  // 64 kB
	product := `{"$lookup":{"from":"large","pipeline":[{"$limit":100}],"as":"o"}},{"$unwind":"$o"},{"$addFields":{"t":"$o.t"}}` // 20,000 documents of 20 kB
	repeat := func(what string, n int) string { return strings.TrimSuffix(strings.Repeat(what+",", n), ",") }
	memory, sorted := []int32{146}, []int32{292, 146}
	return []struct {
		name, pipeline string
		codes          []int32
	}{
		{"$range of all there is", sized(`{"$range":[0,2147483647]}`), memory},
		{"$range downwards", sized(`{"$range":[{"$add":["$_id",2147483640]},-2147483648,-1]}`), memory},
		{"$reduce with $concatArrays", sized(`{"$reduce":{"input":{"$range":[0,40]},"initialValue":["$_id"],"in":{"$concatArrays":["$$value","$$value"]}}}`), memory},
		{"$reduce with $concat", project(`{"$strLenBytes":{"$reduce":{"input":{"$range":[0,40]},"initialValue":"a","in":{"$concat":["$$value","$$value"]}}}}`), memory},
		{"$let in $let with $concat", project(`{"$strLenBytes":` + doubled(40, `{"$toString":"$_id"}`, `{"$concat":["$$x","$$x"]}`) + `}`), memory},
		{"$let in $let with arrays of arrays", sized(doubled(40, `["$_id"]`, `["$$x","$$x"]`)), memory},
		{"$let in $let with documents", project(`{"$bsonSize":` + doubled(40, `{"a":"$_id"}`, `{"a":"$$x","b":"$$x"}`) + `}`), memory},
		{"$map over $range", sized(`{"$map":{"input":` + million + `,"in":{"a":{"b":["$$this","` + kilobyte + `"]}}}}`), memory},
		{"$map in $map", sized(`{"$map":{"input":{"$range":[0,3000]},"in":{"$map":{"input":{"$range":[0,3000]},"as":"x","in":"$$x"}}}}`), memory},
		{"$filter in $map", sized(`{"$map":{"input":{"$range":[0,3000]},"in":{"$filter":{"input":{"$range":[0,{"$add":["$_id",3000]}]},"as":"x","cond":true}}}}`), memory},
		{"$setUnion", sized(`{"$setUnion":[` + repeat(million, 30) + `]}`), memory},
		{"$concatArrays of one variable", sized(`{"$let":{"vars":{"a":` + million + `},"in":{"$concatArrays":[` + repeat(`"$$a"`, 500) + `]}}}`), memory},
		{"$concat of one variable", project(`{"$strLenBytes":{"$let":{"vars":{"a":` + text + `},"in":{"$concat":[` + repeat(`"$$a"`, 500) + `]}}}}`), memory},
		{"an array of one variable", sized(`{"$let":{"vars":{"a":` + million + `},"in":[` + repeat(`"$$a"`, 500) + `]}}`), memory},
		{"$zip", sized(`{"$zip":{"inputs":[` + repeat(million, 20) + `]}}`), memory},
		{"$zip of few with the longest", sized(`{"$zip":{"useLongestLength":true,"defaults":["` + strings.Repeat(kilobyte, 16) + `",0],"inputs":[[1],` + million + `]}}`), memory},
		{"$regexFindAll", sized(`{"$regexFindAll":{"input":{"$concat":[` + text + `,` + text + `]},"regex":"(.)()"}}`), memory},
		{"$split", sized(`{"$split":[{"$concat":[` + repeat(text, 30) + `]},"0"]}`), memory},
		{"$objectToArray of an object of many", sized(`{"$objectToArray":{"$arrayToObject":{"$map":{"input":` + million + `,"in":{"k":{"$toString":"$$this"},"v":"$$this"}}}}}`), memory},
		{"many fields with much each", project(`{` + repeatFields(text, 200) + `}`), memory},
		{"many $addFields with much each", stages(`{"$limit":1},` + addFields(text, 60)), []int32{146}},
		{"$group with $push of all", stages(product + `,{"$group":{"_id":null,"all":{"$push":"$$ROOT"}}}`), memory},
		{"$group with $addToSet of all", stages(product + `,{"$addFields":{"t":{"$concat":["$t",{"$toString":"$_id"},{"$toString":"$o._id"}]}}},{"$group":{"_id":null,"all":{"$addToSet":"$t"}}}`), memory},
		{"$group with $mergeObjects of all", stages(product + `,{"$group":{"_id":null,"all":{"$mergeObjects":{"$arrayToObject":[[[{"$concat":[{"$toString":"$_id"},"-",{"$toString":"$o._id"}]},"$t"]]]}}}}`), memory},
		{"$group with as many groups", stages(product + `,{"$group":{"_id":{"a":"$_id","b":"$o._id","t":"$t"}}}`), sorted},
		{"$group with $topN of all", stages(product + `,{"$group":{"_id":null,"all":{"$topN":{"n":10000,"sortBy":{"_id":1},"output":"$t"}}}}`), memory},
		{"$sort of much", stages(product + `,{"$sort":{"t":1}}`), sorted},
		{"$bucketAuto of much", stages(product + `,{"$bucketAuto":{"groupBy":"$_id","buckets":5}}`), sorted},
		{"$setWindowFields of much", stages(product + `,{"$setWindowFields":{"sortBy":{"_id":1},"output":{"all":{"$push":"$_id","window":{"documents":["unbounded","unbounded"]}}}}}`), sorted},
		{"$densify", stages(`{"$addFields":{"t":1}},{"$densify":{"field":"_id","partitionByFields":["k"],"range":{"step":1,"bounds":[0,2000000]}}}`), []int32{5897900, 292}},
		{"$densify of large partitions", stages(`{"$addFields":{"t":` + strings.Replace(text, "10", "6", 1) + `}},{"$densify":{"field":"_id","partitionByFields":["t"],"range":{"step":1,"bounds":[0,2000000]}}}`), sorted},
		{"$facet of products", stages(`{"$facet":{"a":[` + product + `]}}`), sorted},
		{"$lookup of products", stages(`{"$lookup":{"from":"many","pipeline":[` + product + `],"as":"x"}}`), []int32{146, 4568}},
		{"$unionWith of itself", stages(`{"$unionWith":{"coll":"many","pipeline":[{"$unionWith":{"coll":"many","pipeline":[` + product + `]}}]}},{"$sort":{"t":1}}`), sorted},
		{"$graphLookup of all for all", stages(`{"$graphLookup":{"from":"large","startWith":[0,1,2,3,4],"connectFromField":"k","connectToField":"k","as":"x"}},{"$group":{"_id":null,"all":{"$push":"$x"}}}`), []int32{40099, 146}},
		{"$documents of many", `[{"$documents":{"$map":{"input":{"$range":[0,300000]},"in":{"x":"$$this"}}}}]`, memory},
	}
}

func repeatFields(e string, n int) string {
	var fields []string
	for i := range n {
		fields = append(fields, fmt.Sprintf(`"f%d":%s`, i, e))
	}
	return strings.Join(fields, ",")
}

func addFields(e string, n int) string {
	var stages []string
	for i := range n {
		stages = append(stages, fmt.Sprintf(`{"$addFields":{"f%d":%s}}`, i, e))
	}
	return strings.Join(stages, ",")
}

// smallMeter is a hundredth of what a command may hold, so that the test is quick.
func smallMeter() *Meter { return &Meter{Limit: 4 << 20} }

func TestMuchFromLittleIsRefused(t *testing.T) {
	var many, large []bson.Raw
	for i := range 200 {
		id, k := value.Field{Key: "_id", Value: bson.Int32Value(int32(i))}, value.Field{Key: "k", Value: bson.Int32Value(int32(i % 5))}
		many = append(many, value.DocOf(id, k))
		large = append(large, value.DocOf(id, k, value.Field{Key: "t", Value: bson.StringValue(strings.Repeat("x", 10_000))}))
	}
	for _, c := range muchFromLittle() {
		t.Run(c.name, func(t *testing.T) {
			o := testOptions
			o.Meter = smallMeter()
			env := Env{Options: o, DB: "t", Coll: "many", Lookup: func(coll string) Docs {
				if coll == "large" {
					return docsOf(large)
				}
				return docsOf(many)
			}}
			v, err := bson.ParseExtJSON([]byte(c.pipeline), false)
			if err != nil {
				t.Fatal(err)
			}
			arr, _ := v.ArrayOK()
			p, err := ParsePipeline(arr, env)
			if err == nil {
				for _, err = range p.Run(docsOf(many)) {
					if err != nil {
						break
					}
				}
			}
			e, ok := err.(*mongoerr.Error)
			if !ok || !slices.Contains(c.codes, e.Code) {
				t.Errorf("%v, want one of %v", err, c.codes)
			}
		})
	}
}
