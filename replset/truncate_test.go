package replset

import (
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// Four commands of nearly 16 MB each run at a time: what is told of them must fit into a document all the same.
func TestOperationsWithLargeCommandsAreShownInPart(t *testing.T) {
	s := Run(t, Options{Members: 1})
	watcher := dialRaw(t, s, 0, "watcher")
	if err := s.FailCommand(0, &FailCommand{Commands: []string{"find"}, AppName: "stuck", Block: time.Minute}); err != nil {
		t.Fatal(err)
	}
	const large = 15_900_000
	for _, cmd := range []bson.D{
		{{Key: "find", Value: "a"}, {Key: "filter", Value: bson.D{{Key: "s", Value: strings.Repeat("s", large)}}}, {Key: "comment", Value: bson.D{{Key: "who", Value: "me"}}}},
		{{Key: "find", Value: "b"}, {Key: "comment", Value: strings.Repeat("c", large)}},
		{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "n", Value: bson.D{{Key: "$in", Value: make([]int32, large/12)}}}}}},
		{{Key: "find", Value: "d"}, {Key: "filter", Value: bson.D{{Key: "short", Value: 1}}}},
	} {
		victim := dialRaw(t, s, 0, "stuck")
		go func() { _, _ = victim.run("shop", cmd) }()
	}
	options := bson.D{{Key: "truncateOps", Value: true}}
	for end := time.Now().Add(20 * time.Second); len(opsOf(t, watcher, "stuck", options)) < 4; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("$currentOp never shows the four")
		}
	}
	inprog := watcher.must(t, "admin", bson.D{{Key: "currentOp", Value: 1}}).Lookup("inprog").Array()
	var byCommand []bson.Raw
	for _, v := range inprog.All() {
		if v.Document().Lookup("appName").StringValue() == "stuck" {
			byCommand = append(byCommand, v.Document())
		}
	}
	for how, found := range map[string][]bson.Raw{"currentOp": byCommand, "$currentOp": opsOf(t, watcher, "stuck", options)} {
		if len(found) != 4 {
			t.Fatalf("%s shows %d operations", how, len(found))
		}
		for _, op := range found {
			checkShown(t, how, op)
		}
	}
	whole := 0
	for _, op := range opsOf(t, watcher, "stuck", bson.D{}) { // as many as fit into the first batch
		if cmd := op.Lookup("command").Document(); len(cmd) > large && cmd.Lookup("$truncated").IsZero() {
			whole++
		}
	}
	if whole == 0 {
		t.Error("$currentOp without truncateOps shows no command whole")
	}
}

// checkShown holds what is shown of one of the four to what is to be.
func checkShown(t *testing.T, how string, op bson.Raw) {
	t.Helper()
	cmd := op.Lookup("command").Document()
	text, cut := cmd.Lookup("$truncated").StringValueOK()
	name := op.Lookup("ns").StringValue()
	if !cut && name != "shop.d" || len(cmd) > 2100 || len(text) > 1000 || cut && !strings.HasPrefix(text, `{ find: "`+name[5:]+`"`) {
		t.Errorf("%s: of %s are shown %d bytes: %.200s", how, name, len(cmd), cmd)
	}
	switch name {
	case "shop.a":
		if cmd.Lookup("comment", "who").StringValue() != "me" {
			t.Errorf("%s: the comment is %s", how, cmd.Lookup("comment"))
		}
	case "shop.b":
		if comment, _ := cmd.Lookup("comment").StringValueOK(); !strings.Contains(comment, "ccc...") {
			t.Errorf("%s: the large comment is %.200s", how, comment)
		}
	case "shop.c":
		if !strings.HasSuffix(text, "0, 0, ...") && !strings.HasSuffix(text, "...") {
			t.Errorf("%s: the text of many numbers ends in %q", how, text[len(text)-20:])
		}
	case "shop.d":
		if cut || cmd.Lookup("filter", "short").AsInt64() != 1 {
			t.Errorf("%s: the short one is shown as %s", how, cmd)
		}
	}
}
