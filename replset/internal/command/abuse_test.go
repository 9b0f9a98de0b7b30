package command

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// muchFromLittle are commands of a few bytes that ask for very much, and the codes that a server refuses them with. The
// language's own test has many more; here it is about what a whole command takes.
func muchFromLittle() []struct {
	name, cmd string
	codes     []int64
} {
	const double = `{"$reduce":{"input":{"$range":[0,40]},"initialValue":{"$toString":"$_id"},"in":{"$concat":["$$value","$$value"]}}}`
	const text = `{"$reduce":{"input":{"$range":[0,21]},"initialValue":"0123456789abcdef","in":{"$concat":["$$value","$$value"]}}}` // 32 MB
	const all = `{"$size":{"$range":["$_id",2147483647]}}`
	return []struct {
		name, cmd string
		codes     []int64
	}{
		{"$reduce with $concat", `{"aggregate":"one","pipeline":[{"$project":{"r":` + double + `}}],"cursor":{}}`, []int64{146}},
		{"$map over $range", `{"aggregate":"one","pipeline":[{"$project":{"r":{"$map":{"input":{"$range":["$_id",3000000]},"in":{"a":"$$this"}}}}}],"cursor":{}}`, []int64{146}},
		{"$push of products", `{"aggregate":"large","pipeline":[{"$lookup":{"from":"large","pipeline":[],"as":"o"}},{"$unwind":"$o"},{"$group":{"_id":null,"all":{"$push":"$o"}}}],"cursor":{}}`, []int64{146}},
		{"a computed document that is too large", `{"aggregate":"one","pipeline":[{"$project":{"r":` + text + `,"s":"x"}}],"cursor":{}}`, []int64{10334}},
		{"let of a command", `{"find":"one","let":{"a":{"$range":[0,2147483647]}}}`, []int64{146}},
		{"a find's projection", `{"find":"one","projection":{"r":` + all + `}}`, []int64{146}},
		{"a find's document that is too large", `{"find":"one","projection":{"r":` + text + `}}`, []int64{10334}},
		{"a findAndModify's document that is too large", `{"findAndModify":"one","query":{},"update":{"$set":{"z":1}},"fields":{"r":` + text + `}}`, []int64{10334}},
		{"a find's $expr", `{"find":"one","filter":{"$expr":{"$gt":[` + all + `,1]}}}`, []int64{146}},
		{"a count's $expr", `{"count":"one","query":{"$expr":{"$gt":[` + all + `,1]}}}`, []int64{146}},
		{"a distinct's on a view", `{"distinct":"view","key":"o.t"}`, []int64{146}},
		{"an update's pipeline", `{"update":"one","updates":[{"q":{},"u":[{"$set":{"r":` + all + `}}]}]}`, []int64{146}},
		{"an update to a document that is too large", `{"update":"one","updates":[{"q":{},"u":[{"$set":{"r":` + text + `}}]}]}`, []int64{17419, 10334}},
		{"an update far beyond an array's end", `{"update":"one","updates":[{"q":{},"u":{"$set":{"l.1600000":1}}}]}`, []int64{34}},
		{"a findAndModify's pipeline", `{"findAndModify":"one","query":{},"update":[{"$set":{"r":` + double + `}}]}`, []int64{146}},
		{"a delete's $expr", `{"delete":"one","deletes":[{"q":{"$expr":{"$gt":[` + all + `,1]}},"limit":0}]}`, []int64{146}},
		{"a validator's $expr", `{"insert":"checked","documents":[{"_id":1}]}`, []int64{146, 121}},
	}
}

func fillForAbuse(t *testing.T, m *Member) {
	t.Helper()
	command(t, m, "t", `{"insert":"one","documents":[{"_id":1,"l":[]}]}`)
	var many, large []bson.D
	for i := range 200 {
		many = append(many, bson.D{{Key: "_id", Value: int32(i)}, {Key: "k", Value: int32(i % 5)}})
		large = append(large, bson.D{{Key: "_id", Value: int32(i)}, {Key: "k", Value: int32(i % 5)}, {Key: "t", Value: strings.Repeat("x", 100_000)}})
	}
	runCommand(t, m, "t", document(bson.D{{Key: "insert", Value: "many"}, {Key: "documents", Value: many}}))
	command(t, m, "t", `{"create":"view","viewOn":"many","pipeline":[{"$lookup":{"from":"large","pipeline":[],"as":"o"}},{"$unwind":"$o"}]}`)
	command(t, m, "t", `{"create":"checked","validator":{"$expr":{"$gt":[{"$size":{"$range":["$_id",2147483647]}},1]}}}`)
	runCommand(t, m, "t", document(bson.D{{Key: "insert", Value: "large"}, {Key: "documents", Value: large}}))
}

// peak is how much more memory is taken while f runs than before, garbage that is collected soon included.
func peak(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // or what is measured is garbage
	live := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	runtime.GC()
	metrics.Read(live)
	before, most := live[0].Value.Uint64(), uint64(0)
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	for {
		metrics.Read(live)
		most = max(most, live[0].Value.Uint64())
		select {
		case <-done:
			return most - min(most, before)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestMuchFromLittleIsRefusedBeforeItTakesMuch(t *testing.T) {
	const limit = 350 << 20 // 100 MB that are held, what is being built of them, and garbage
	m := newPrimary(t)
	fillForAbuse(t, m)
	for _, c := range muchFromLittle() {
		t.Run(c.name, func(t *testing.T) {
			var reply bson.Raw
			begun := time.Now()
			took := peak(func() { reply = drained(t, m, c.cmd) })
			t.Logf("%d MB, %v: %.300s", took>>20, time.Since(begun).Round(time.Millisecond), reply.Lookup("errmsg"))
			if code := codeOf(reply); c.codes != nil && !slices.Contains(c.codes, code) {
				t.Errorf("answered %d, want one of %v: %.300s", code, c.codes, reply)
			}
			if took > limit {
				t.Errorf("it took %d MB", took>>20)
			}
		})
	}
}

// drained runs a command, and all getMores after it; the last reply, or the one that failed.
func drained(t *testing.T, m *Member, text string) bson.Raw {
	reply := command(t, m, "t", text)
	for {
		id, _ := reply.Lookup("cursor", "id").Int64OK()
		if id == 0 {
			if e, ok := reply.Lookup("writeErrors", "0").DocumentOK(); ok {
				return e
			}
			return reply
		}
		ns, _ := reply.Lookup("cursor", "ns").StringValueOK()
		_, coll, _ := strings.Cut(ns, ".")
		reply = runCommand(t, m, "t", document(bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: coll}}))
	}
}

// endless are commands that take long and hardly any memory.
var endless = map[string]string{
	"expressions": `{"aggregate":"one","pipeline":[{"$project":{"r":{"$reduce":{"input":{"$range":[0,100000]},"initialValue":0,"in":{"$add":["$$value",
		{"$sum":{"$map":{"input":{"$range":[0,10000]},"as":"x","in":{"$multiply":["$$x","$$this"]}}}}]}}}}}],"cursor":{}}`,
	"products": `{"aggregate":"many","pipeline":[{"$lookup":{"from":"many","pipeline":[],"as":"a"}},{"$unwind":"$a"},{"$lookup":{"from":"many","pipeline":[],"as":"b"}},{"$unwind":"$b"},
		{"$lookup":{"from":"many","pipeline":[],"as":"c"}},{"$unwind":"$c"},{"$count":"n"}],"cursor":{}}`,
	"an update": `{"update":"one","updates":[{"q":{},"u":[{"$set":{"r":{"$reduce":{"input":{"$range":[0,100000]},"initialValue":0,"in":{"$add":["$$value",
		{"$sum":{"$map":{"input":{"$range":[0,10000]},"as":"x","in":{"$multiply":["$$x","$$this"]}}}}]}}}}}]}]}`,
	"a find": `{"find":"many","filter":{"$expr":{"$lt":[{"$reduce":{"input":{"$range":[0,1000000]},"initialValue":0,"in":{"$add":["$$value","$_id"]}}},-1]}}}`,
}

func TestMaxTimeEndsWhatAnExpressionDoes(t *testing.T) {
	m := newPrimary(t)
	fillForAbuse(t, m)
	endedByMaxTime(t, m, endless)
}

// endedByMaxTime has a fifth of a second end each command.
func endedByMaxTime(t *testing.T, m *Member, cmds map[string]string) {
	t.Helper()
	for name, cmd := range cmds {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			reply := command(t, m, "t", strings.TrimSuffix(cmd, "}")+`,"maxTimeMS":200}`)
			if e, ok := reply.Lookup("writeErrors", "0").DocumentOK(); ok {
				reply = e
			}
			if code := codeOf(reply); code != 50 {
				t.Errorf("answered %d: %.300s", code, reply)
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// What a stage lets through in the end is all that is counted: whoever sorts much and wants little of it gets it.
func TestSortOfMuchGivesTheFew(t *testing.T) {
	m := newPrimary(t)
	fillForAbuse(t, m)
	reply := command(t, m, "t", `{"aggregate":"large","pipeline":[{"$lookup":{"from":"many","pipeline":[{"$limit":20}],"as":"o"}},{"$unwind":"$o"},
		{"$sort":{"_id":-1,"o._id":1}},{"$skip":1},{"$limit":2},{"$project":{"o._id":1}}],"cursor":{}}`)
	if got, want := firstBatchOf(t, reply), "[ { _id: 199, o: { _id: 1 } }, { _id: 199, o: { _id: 2 } } ]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
