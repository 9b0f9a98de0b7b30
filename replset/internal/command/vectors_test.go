package command

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/conformance/corpus"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// The vectors are commands and answers recorded from a real server of version 4.0. They are
// read where they lie and are no part of this repository: $SEXTANT_VECTORS_DIR, or
// ../shared/vectors beside the module's folder. testdata/vectors.count holds how many
// pass; it may only rise.
//
// Where this server follows a newer version on purpose, the comparison forgives: an index
// specification has no "ns" (since 4.4), configureFailPoint tells its count (since 4.4),
// hello and state changes carry topologyVersion (since 4.4), a fail point's text changed,
// and error code names changed with time.

func vectorsFile(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open(corpus.NeedVectors(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCommandVectors(t *testing.T) {
	f := vectorsFile(t, "commands.jsonl")
	defer f.Close()
	m := newPrimary(t)
	passed, groups := 0, map[string]*[2]int{}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		v, err := bson.ParseExtJSON(s.Bytes(), false)
		if err != nil {
			t.Fatalf("%v: %.200s", err, s.Text())
		}
		vec, _ := v.DocumentOK()
		id, _ := vec.Lookup("id").StringValueOK()
		group := strings.Split(id, "-")[1]
		if groups[group] == nil {
			groups[group] = &[2]int{}
		}
		groups[group][1]++
		start := time.Now()
		err = runVector(t, m, vec)
		if d := time.Since(start); d > 300*time.Millisecond {
			t.Logf("%s took %v", id, d)
		}
		if err != nil {
			t.Logf("%s: %v", id, err)
			continue
		}
		passed++
		groups[group][0]++
	}
	printGroups(t, groups)
	if want := pinnedCount(t); passed < want {
		t.Errorf("%d vectors pass, %d did before", passed, want)
	} else {
		t.Logf("%d vectors pass, %d are pinned in testdata/vectors.count", passed, want)
	}
}

func pinnedCount(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "vectors.count"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatalf("testdata/vectors.count: %v", err)
	}
	return n
}

func printGroups(t *testing.T, groups map[string]*[2]int) {
	var names []string
	for name := range groups {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Logf("%-16s %3d of %3d", name, groups[name][0], groups[name][1])
	}
}

// runVector runs one vector on an empty database.
func runVector(t *testing.T, m *Member, vec bson.Raw) error {
	for _, db := range []string{"vc", "vd", "vother"} {
		runCommand(t, m, db, document(bson.D{{Key: "dropDatabase", Value: int32(1)}}))
	}
	runCommand(t, m, "admin", document(bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "off"}}))
	if !vec.Lookup("watch").IsZero() {
		return fmt.Errorf("change streams are not run")
	}
	if !vec.Lookup("command", "replSetStepDown").IsZero() {
		return fmt.Errorf("a set of one would wait for a secondary to catch up")
	}
	for _, v := range value.Array(vec.Lookup("setup")) {
		d, _ := v.DocumentOK()
		if reply := runCommand(t, m, "vc", d); !reply.Lookup("errmsg").IsZero() || !reply.Lookup("writeErrors").IsZero() {
			return fmt.Errorf("setup %s: %s", value.PrintDoc(d), value.PrintDoc(reply))
		}
	}
	steps := value.Array(vec.Lookup("steps"))
	if len(steps) == 0 {
		steps = []bson.RawValue{bson.DocumentValue(vec)}
	}
	var replies []bson.Raw
	for i, v := range steps {
		step, _ := v.DocumentOK()
		reply, err := runStep(t, m, step, replies)
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		replies = append(replies, reply)
	}
	if post, ok := vec.Lookup("post").DocumentOK(); ok {
		if _, err := runStep(t, m, post, replies); err != nil {
			return fmt.Errorf("afterwards: %w", err)
		}
	}
	return nil
}

func runStep(t *testing.T, m *Member, step bson.Raw, replies []bson.Raw) (bson.Raw, error) {
	cmd, _ := step.Lookup("command").DocumentOK()
	db, ok := step.Lookup("db").StringValueOK()
	if !ok {
		db = "vc"
	}
	cmd = resolveRefs(cmd, replies)
	got := runCommand(t, m, db, cmd)
	if !cmd.Lookup("configureFailPoint").IsZero() {
		got = without(got, "count")
	}
	want, ok := step.Lookup("reply").DocumentOK()
	if !ok {
		return got, fmt.Errorf("no reply is recorded: %s", value.PrintDoc(step))
	}
	if err := sameReply(want, got); err != nil {
		return got, fmt.Errorf("%w\n  command %s\n  want %s\n  got  %s", err, value.PrintDoc(cmd), value.PrintDoc(want), value.PrintDoc(got))
	}
	return got, nil
}

// resolveRefs puts values of earlier replies into a command.
func resolveRefs(doc bson.Raw, replies []bson.Raw) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	for key, v := range doc.All() {
		if d, ok := v.DocumentOK(); ok {
			if ref, ok := d.Lookup("$$ref").StringValueOK(); ok {
				v = refValue(ref, replies)
			}
		}
		if arr, ok := v.ArrayOK(); ok && key == "cursors" {
			v = bson.ArrayValue(bson.RawArray(resolveRefs(bson.Raw(arr), replies)))
		}
		dst = bson.AppendValue(dst, key, v)
	}
	return bson.EndDocument(dst, start)
}

func refValue(ref string, replies []bson.Raw) bson.RawValue {
	parts := strings.Split(ref, ".")
	i, err := strconv.Atoi(parts[0])
	if err != nil || i >= len(replies) {
		return bson.NullValue()
	}
	return replies[i].Lookup(parts[1:]...)
}

// volatile fields are on every reply, or depend on the recording's set-up.
var volatile = map[string]bool{"opTime": true, "electionId": true, "$clusterTime": true, "operationTime": true, "codeName": true, "totalSizeMb": true, "lastOp": true,
	"topologyVersion": true}

// sameReply compares replies, whose own fields and those of "cursor" may come in any order.
func sameReply(want, got bson.Raw) error {
	for key, w := range want.All() {
		if volatile[key] {
			continue
		}
		g := got.Lookup(key)
		wd, isDoc := w.DocumentOK()
		gd, gotDoc := g.DocumentOK()
		if key == "cursor" && isDoc && gotDoc {
			if err := sameReply(wd, gd); err != nil {
				return err
			}
			continue
		}
		if !sameValue(w, g) {
			return fmt.Errorf("field %s differs", key)
		}
	}
	for key := range got.All() {
		if !volatile[key] && want.Lookup(key).IsZero() {
			return fmt.Errorf("field %s is too much", key)
		}
	}
	return nil
}

func sameValue(want, got bson.RawValue) bool {
	if d, ok := want.DocumentOK(); ok {
		if typ, ok := d.Lookup("$$type").StringValueOK(); ok {
			return sameType(typ, got)
		}
		g, ok := got.DocumentOK()
		return ok && sameElements(withoutNS(d), g)
	}
	if arr, ok := want.ArrayOK(); ok {
		g, ok := got.ArrayOK()
		return ok && sameElements(bson.Raw(arr), bson.Raw(g))
	}
	if s, ok := want.StringValueOK(); ok && placeholder.MatchString(s) {
		g, _ := got.StringValueOK()
		return textPattern(s).MatchString(g)
	}
	if s, ok := want.StringValueOK(); ok {
		want = bson.StringValue(strings.Replace(s, "Failing command due to", "Failing command via", 1))
	}
	return want.Equal(got) || want.IsZero() && got.IsZero()
}

// withoutNS forgets the namespace of an index specification.
func withoutNS(d bson.Raw) bson.Raw {
	if !d.Lookup("key").IsZero() && !d.Lookup("v").IsZero() {
		return without(d, "ns")
	}
	return d
}

func sameElements(want, got bson.Raw) bool {
	w, _ := want.Elements()
	g, _ := got.Elements()
	if len(w) != len(g) {
		return false
	}
	for i := range w {
		if w[i].Key() != g[i].Key() || w[i].Key() != "codeName" && !sameValue(w[i].Value(), g[i].Value()) {
			return false
		}
	}
	return true
}

func sameType(typ string, got bson.RawValue) bool {
	switch typ {
	case "objectId", "date", "timestamp", "string", "object", "int", "long", "double":
		return value.TypeName(got.Type) == typ
	case "cursorId":
		n, ok := got.Int64OK()
		return ok && n != 0
	}
	return !got.IsZero()
}

var placeholder = regexp.MustCompile(`<(cursorId|t|i|ms|us|term|hash|uuid|objectId|ident|time|n|pid|addr|host|port)>`)

func textPattern(s string) *regexp.Regexp {
	var b strings.Builder
	last := 0
	for _, at := range placeholder.FindAllStringIndex(s, -1) {
		b.WriteString(regexp.QuoteMeta(s[last:at[0]]) + ".*")
		last = at[1]
	}
	return regexp.MustCompile("(?s)^" + b.String() + regexp.QuoteMeta(s[last:]) + "$")
}
