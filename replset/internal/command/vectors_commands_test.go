package command

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Where this server follows a newer version on purpose, the comparison forgives: an index
// specification has no "ns" (since 4.4), configureFailPoint tells its count (since 4.4),
// hello and state changes carry topologyVersion (since 4.4), a fail point's text changed,
// error code names changed with time, and duplicate keys name their fields (since 4.2).

// runCommandVector runs one vector on an empty database.
func runCommandVector(t *testing.T, m *Member, v vector) error {
	vec := v.doc
	for _, d := range docsIn(runCommand(t, m, "admin", document(bson.D{{Key: "listDatabases", Value: int32(1)}})).Lookup("databases")) {
		if db, _ := d.Lookup("name").StringValueOK(); db != "admin" && db != "config" && db != "local" {
			runCommand(t, m, db, document(bson.D{{Key: "dropDatabase", Value: int32(1)}}))
		}
	}
	runCommand(t, m, "admin", document(bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "off"}}))
	if !vec.Lookup("watch").IsZero() {
		return fmt.Errorf("change streams are not run")
	}
	if !vec.Lookup("command", "replSetStepDown").IsZero() {
		return fmt.Errorf("a set of one would wait for a secondary to catch up")
	}
	explained := v.group() == "explain"
	for _, d := range docsIn(vec.Lookup("setup")) {
		if explained {
			d = withoutText(d)
		}
		if err := failure(runCommand(t, m, "vc", d)); err != nil {
			return fmt.Errorf("setup %s: %w", value.PrintDoc(d), err)
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
	compare := sameReply
	if !cmd.Lookup("explain").IsZero() && db == "vc" && (!want.Lookup("$$winningPlan").IsZero() || !want.Lookup("$$topKeys").IsZero() || !want.Lookup("errmsg").IsZero()) {
		compare = samePlan
	}
	if err := compare(want, got); err != nil {
		return got, fmt.Errorf("%w\n  command %s\n  want %s\n  got  %s", err, value.PrintDoc(cmd), value.PrintDoc(want), value.PrintDoc(got))
	}
	return got, nil
}

// withoutText leaves text indexes out of a createIndexes: only what asks for $text needs them.
func withoutText(cmd bson.Raw) bson.Raw {
	indexes := docsIn(cmd.Lookup("indexes"))
	if len(indexes) == 0 {
		return cmd
	}
	var kept []bson.Raw
	for _, ix := range indexes {
		if _, kind := value.First(ix.Lookup("key").Document()); kind.Type != bson.TypeString {
			kept = append(kept, ix)
		}
	}
	return with(bson.D{}, document(bson.D{{Key: "createIndexes", Value: cmd.Lookup("createIndexes")}, {Key: "indexes", Value: kept}}))
}

// samePlan compares what was kept of an explanation: of the plan every field that is recorded, and numbers of the execution.
func samePlan(want, got bson.Raw) error {
	for key, w := range want.All() {
		var g bson.RawValue
		switch key {
		case "$$winningPlan":
			if err := samePart("plan", w, got.Lookup("queryPlanner", "winningPlan")); err != nil {
				return err
			}
			continue
		case "nReturned", "totalKeysExamined", "totalDocsExamined":
			g = got.Lookup("executionStats", key)
		case "$$stageNames":
			return fmt.Errorf("stages of a pipeline are not shown")
		case "ok", "errmsg", "code":
			g = got.Lookup(key)
		default:
			continue // names of fields, of another version
		}
		if value.Compare(w, g) != 0 && (w.Type != bson.TypeNull || !g.IsZero()) {
			return fmt.Errorf("%s differs", key)
		}
	}
	return nil
}

func samePart(name string, want, got bson.RawValue) error {
	w, isDoc := want.DocumentOK()
	g, _ := got.DocumentOK()
	if !isDoc || name == "filter" || name == "indexBounds" {
		if want.Type != got.Type || value.Compare(want, got) != 0 {
			return fmt.Errorf("%s differs", name)
		}
		return nil
	}
	for key, v := range w.All() {
		if err := samePart(key, v, g.Lookup(key)); err != nil {
			return err
		}
	}
	for _, key := range []string{"filter", "inputStage"} {
		if w.Lookup(key).IsZero() != g.Lookup(key).IsZero() {
			return fmt.Errorf("%s is there or is not", key)
		}
	}
	return nil
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
	want, got = duplicateBefore42(want), duplicateBefore42(got)
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

// duplicateBefore42 is an error 11000 as version 4.0 tells it, and any other document as it is.
func duplicateBefore42(d bson.Raw) bson.Raw {
	keys, ok := d.Lookup("keyValue").DocumentOK()
	text, _ := d.Lookup("errmsg").StringValueOK()
	if !ok || text == "" {
		return d
	}
	var nameless []string
	for _, v := range keys.All() {
		nameless = append(nameless, " : "+value.Print(v))
	}
	what, _, _ := strings.Cut(text, "{")
	dst, start := bson.BeginDocument(nil)
	for key, v := range without(without(d, "keyPattern"), "keyValue").All() {
		if key == "errmsg" {
			v = bson.StringValue(what + "{" + strings.Join(nameless, ",") + " }")
		}
		dst = bson.AppendValue(dst, key, v)
	}
	return bson.EndDocument(dst, start)
}

func sameElements(want, got bson.Raw) bool {
	w, _ := duplicateBefore42(want).Elements()
	g, _ := duplicateBefore42(got).Elements()
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
