package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func TestExplainCountsWhatAQueryLooksAt(t *testing.T) {
	m := newPrimary(t)
	for i := range 20 {
		command(t, m, "t", fmt.Sprintf(`{"insert":"c","documents":[{"_id":%d,"n":%d,"tags":["a","b%d"]}]}`, i, i%5, i%2))
	}
	command(t, m, "t", `{"createIndexes":"c","indexes":[{"key":{"n":1},"name":"n_1"},{"key":{"tags":1},"name":"tags_1"}]}`)
	for _, c := range []struct {
		cmd                  string
		returned, keys, docs int64
	}{
		{`{"find":"c","filter":{"x":{"$exists":false}}}`, 20, 0, 20},
		{`{"find":"c","filter":{"x":1}}`, 0, 0, 20},
		{`{"find":"c","filter":{"x":null},"skip":2,"limit":3}`, 3, 0, 5},
		{`{"find":"c","filter":{"_id":7}}`, 1, 1, 1},
		{`{"find":"c","filter":{"n":{"$gte":3}}}`, 8, 8, 8},
		{`{"find":"c","filter":{"n":3,"_id":{"$lt":10}},"hint":"n_1"}`, 2, 4, 4},
		{`{"find":"c","filter":{"tags":{"$in":["a","b1"]}}}`, 20, 30, 20},
		{`{"find":"nothing"}`, 0, 0, 0},
		{`{"count":"c"}`, 20, 0, 0},
		{`{"count":"c","query":{"n":1}}`, 4, 4, 4},
	} {
		stats := command(t, m, "t", `{"explain":`+c.cmd+`,"verbosity":"executionStats"}`).Lookup("executionStats")
		d, _ := stats.DocumentOK()
		for field, want := range map[string]int64{"nReturned": c.returned, "totalKeysExamined": c.keys, "totalDocsExamined": c.docs} {
			if got, ok := d.Lookup(field).AsInt64OK(); !ok || got != want {
				t.Errorf("%s: %s is %s, want %d", c.cmd, field, value.Print(d.Lookup(field)), want)
			}
		}
		if done, _ := d.Lookup("executionSuccess").BooleanOK(); !done || d.Lookup("executionTimeMillis").IsZero() || d.Lookup("executionStages", "stage").IsZero() {
			t.Errorf("%s: %s", c.cmd, value.Print(stats))
		}
	}
}

func TestExplainTellsWhatEachStageLookedAt(t *testing.T) {
	m := filled(t)
	command(t, m, "t", `{"createIndexes":"c","indexes":[{"key":{"a":1},"name":"a_1"}]}`)
	reply := command(t, m, "t", `{"explain":{"find":"c","filter":{"a":2},"sort":{"x":1}}}`)
	stages := reply.Lookup("executionStats", "executionStages")
	d, _ := stages.DocumentOK()
	for path, want := range map[string]int64{"nReturned": 2, "inputStage.docsExamined": 2, "inputStage.inputStage.keysExamined": 2} {
		if got, ok := d.Lookup(strings.Split(path, ".")...).AsInt64OK(); !ok || got != want {
			t.Errorf("%s is not %d in %s", path, want, value.Print(stages))
		}
	}
	if reply.Lookup("executionStats", "allPlansExecution").IsZero() {
		t.Error("allPlansExecution is the default and tells no plans")
	}
}

// Shells and tools look for the configuration in the database local.
func TestConfigurationIsADocumentOfLocal(t *testing.T) {
	m := newPrimary(t)
	config := command(t, m, "admin", `{"replSetGetConfig":1}`).Lookup("config")
	found := command(t, m, "local", `{"find":"system.replset","filter":{"_id":"rs0"}}`).Lookup("cursor", "firstBatch", "0")
	if !found.Equal(config) {
		t.Errorf("local.system.replset holds %s, the configuration is %s", value.Print(found), value.Print(config))
	}
	names := docsIn(command(t, m, "local", `{"listCollections":1,"nameOnly":true,"filter":{"name":"system.replset"}}`).Lookup("cursor", "firstBatch"))
	if len(names) != 1 {
		t.Errorf("listCollections: %v", names)
	}
	if reply := command(t, m, "local", `{"insert":"system.replset","documents":[{"_id":1}]}`); failure(reply) == nil {
		t.Errorf("it can be written: %s", reply)
	}
	if n := len(m.Store.Latest().Collections("local")); n != 1 {
		t.Errorf("the store keeps %d collections of local", n)
	}
}
