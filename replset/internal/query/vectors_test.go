package query

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/conformance/corpus"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// The vectors are answers recorded from a real server. They are read where they lie and are no part of this repository:
// $SEXTANT_VECTORS_DIR, or ../shared/vectors beside the module's folder. testdata/vectors.count holds how many pass of
// each file; it may only rise.

type vector struct {
	id  string
	doc bson.Raw
}

func (v vector) group() string {
	g := v.id[:strings.LastIndexByte(v.id, '-')]
	_, g, _ = strings.Cut(g, "-")
	return g
}

func (v vector) get(key string) bson.RawValue { return v.doc.Lookup(key) }

func (v vector) raws(key string) []bson.Raw { return documents(v.get(key)) }

func documents(list bson.RawValue) []bson.Raw {
	var out []bson.Raw
	for _, d := range value.Array(list) {
		out = append(out, bson.Raw(d.Value))
	}
	return out
}

func readVectors(t *testing.T, file string) []vector {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 64<<20)
	var out []vector
	for s.Scan() {
		v, err := parseJSON(s.Text())
		if err != nil {
			t.Fatal(err)
		}
		doc := bson.Raw(v.Value)
		out = append(out, vector{id: text(doc.Lookup("id")), doc: doc})
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestVectors(t *testing.T) {
	pinned := readCounts(t)
	for _, set := range []struct {
		file string
		run  func(vector) error
	}{
		{"query.jsonl", runQueryVector},
		{"update.jsonl", runUpdateVector},
		{"aggregate.jsonl", runAggregateVector},
		{"newer/query.jsonl", runQueryVector}, // the language after 4.0: evidence, not law
		{"newer/update.jsonl", runUpdateVector},
		{"newer/aggregate.jsonl", runAggregateVector},
	} {
		t.Run(strings.TrimSuffix(set.file, ".jsonl"), func(t *testing.T) {
			s := newScore(set.file)
			for _, v := range readVectors(t, corpus.NeedVectors(t, set.file)) {
				if v.get("doubt").Type == 0 {
					s.add(v, set.run(v))
				}
			}
			s.print(t)
			if want := pinned[set.file]; s.passed < want {
				t.Errorf("%s: %d vectors pass, %d did before", set.file, s.passed, want)
			} else if s.passed > want {
				t.Logf("%s: %d pass, %d are pinned: raise testdata/vectors.count", set.file, s.passed, want)
			}
		})
	}
}

func readCounts(t *testing.T) map[string]int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "vectors.count"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for line := range strings.Lines(string(b)) {
		name, n, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		if out[name], err = strconv.Atoi(n); err != nil {
			t.Fatalf("testdata/vectors.count: %v", err)
		}
	}
	return out
}

// score counts what passes, by group and by operator.
type score struct {
	file            string
	passed, total   int
	group, operator map[string]*[2]int
	failed          []string
}

func newScore(file string) *score {
	return &score{file: file, group: map[string]*[2]int{}, operator: map[string]*[2]int{}}
}

func (s *score) add(v vector, err error) {
	s.total++
	ops := map[string]bool{}
	for _, key := range []string{"filter", "options", "op", "findAndModify", "pipeline"} {
		collectOperators(v.get(key), ops)
	}
	hit := 0
	if err == nil {
		hit = 1
	} else {
		s.failed = append(s.failed, v.id+": "+err.Error())
	}
	s.passed += hit
	count(s.group, v.group(), hit)
	for o := range ops {
		count(s.operator, o, hit)
	}
}

func count(m map[string]*[2]int, key string, hit int) {
	if m[key] == nil {
		m[key] = new([2]int)
	}
	m[key][0] += hit
	m[key][1]++
}

func collectOperators(v bson.RawValue, into map[string]bool) {
	for k, e := range value.Doc(v).All() {
		if strings.HasPrefix(k, "$") {
			into[k] = true
		}
		collectOperators(e, into)
	}
}

func (s *score) print(t *testing.T) {
	var b strings.Builder
	for _, f := range s.failed {
		fmt.Fprintf(&b, "FAIL %s\n", f)
	}
	for title, m := range map[string]map[string]*[2]int{"operator": s.operator} {
		fmt.Fprintf(&b, "by %s:", title)
		for _, k := range slices.SortedFunc(maps.Keys(m), cmp.Compare[string]) {
			fmt.Fprintf(&b, " %s %d/%d", k, m[k][0], m[k][1])
		}
		b.WriteByte('\n')
	}
	b.WriteString("groups with failures:")
	for _, k := range slices.Sorted(maps.Keys(s.group)) {
		if n := s.group[k]; n[0] < n[1] {
			fmt.Fprintf(&b, " %s %d/%d", k, n[0], n[1])
		}
	}
	fmt.Fprintf(&b, "\n%s: %d of %d pass", s.file, s.passed, s.total)
	t.Log("\n" + b.String())
}

// wantError compares a refusal with the recorded one.
func wantError(v vector, err error) error {
	want := v.get("error")
	newer := strings.HasPrefix(v.id, "ddb-") // recorded from another server: its texts are its own
	if err == nil {
		return fmt.Errorf("no error, want %s", jsonText(want))
	}
	code, _ := word(want, "code").AsInt64OK()
	msg := text(word(want, "errmsg"))
	var e *mongoerr.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("error of a foreign kind: %v", err)
	}
	if int64(e.Code) != code || e.Message != msg && !newer {
		return fmt.Errorf("error %d %q, want %d %q", e.Code, e.Message, code, msg)
	}
	return nil
}

func sameDocs(got, want []bson.Raw) error {
	if len(got) == len(want) && slices.EqualFunc(got, want, sameDoc) {
		return nil
	}
	extra, lacking := without(got, want), without(want, got)
	if len(extra)+len(lacking) == 0 {
		return fmt.Errorf("another order:\n   got  %s\n   want %s", show(got), show(want))
	}
	return fmt.Errorf("%d documents, want %d:\n   got  %s\n   want %s", len(got), len(want), show(extra), show(lacking))
}

func sameDoc(got, want bson.Raw) bool { return same(bson.DocumentValue(got), bson.DocumentValue(want)) }

// without gives the documents of a that b has not.
func without(a, b []bson.Raw) (out []bson.Raw) {
	for _, d := range a {
		if !slices.ContainsFunc(b, func(e bson.Raw) bool { return sameDoc(d, e) || sameDoc(e, d) }) {
			out = append(out, d)
		}
	}
	return out
}

func show(docs []bson.Raw) string {
	var parts []string
	for _, d := range docs {
		parts = append(parts, jsonText(bson.DocumentValue(d)))
	}
	s := strings.Join(parts, " ")
	if len(s) > 700 {
		s = s[:700] + "..."
	}
	return s
}

// same compares exactly, types too; {"$$type": T} on the recorded side stands for any value of the type.
func same(got, want bson.RawValue) bool {
	if key, t := value.First(value.Doc(want)); key == "$$type" {
		name := text(t)
		return name == "any" || name == value.TypeName(got.Type) || name == "number" && value.IsNumber(got)
	}
	if got.Type != want.Type {
		return false
	}
	if got.Type != bson.TypeEmbeddedDocument && got.Type != bson.TypeArray {
		return string(got.Value) == string(want.Value) || got.Type == bson.TypeDouble && value.IsNaN(got) && value.IsNaN(want)
	}
	g, _ := bson.Raw(got.Value).Elements()
	w, _ := bson.Raw(want.Value).Elements()
	return slices.EqualFunc(g, w, func(a, b bson.RawElement) bool { return a.Key() == b.Key() && same(a.Value(), b.Value()) })
}
