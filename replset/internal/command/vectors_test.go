package command

import (
	"bufio"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/conformance/corpus"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// The vectors are commands and answers recorded from a server of version 4.0, and (newer/) from a compatible server of the
// language after 4.0. They are read where they lie and are no part of this repository: $SEXTANT_VECTORS_DIR, or
// ../shared/vectors beside the module's folder. Each is run as the commands that it was recorded from, on a member.
//
// A vector passes that is answered as it was recorded, by a member of the version that the set claims by default, or of
// version 4.0 if that is where the versions differ. testdata/vectors.count holds how many pass, file by file; it may only
// rise. testdata/differences.tsv lists by cause every one that the version claimed by default answers otherwise; it may
// only shrink.

// vector is one line of a recording.
type vector struct {
	id  string
	doc bson.Raw
}

// group is the middle of the id, such as "regex" of query-regex-012.
func (v vector) group() string {
	parts := strings.Split(strings.TrimPrefix(v.id, "ddb-"), "-")
	return parts[1]
}

func (v vector) get(key string) bson.RawValue { return v.doc.Lookup(key) }

func (v vector) raw(key string) bson.Raw { return value.Doc(v.get(key)) }

// newer vectors are of another server: its texts are its own.
func (v vector) newer() bool { return strings.HasPrefix(v.id, "ddb-") }

func docsIn(list bson.RawValue) (out []bson.Raw) {
	for _, d := range value.Array(list) {
		out = append(out, bson.Raw(d.Value))
	}
	return out
}

func readVectors(t *testing.T, file string) (out []vector) {
	t.Helper()
	f, err := os.Open(corpus.NeedVectors(t, file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		v, err := bson.ParseExtJSON(s.Bytes(), false)
		if err != nil {
			t.Fatalf("%s: %v: %.200s", file, err, s.Text())
		}
		doc, _ := v.DocumentOK()
		id, _ := doc.Lookup("id").StringValueOK()
		out = append(out, vector{id: id, doc: doc})
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestVectors(t *testing.T) {
	corpus.NeedVectors(t, "query.jsonl")
	pinned, listed := readCounts(t), readDifferences(t)
	used := map[string]bool{}
	for _, set := range []struct {
		file string
		run  func(*testing.T, *Member, vector) error
	}{
		{"query.jsonl", runQueryVector},
		{"update.jsonl", runUpdateVector},
		{"aggregate.jsonl", runAggregateVector},
		{"commands.jsonl", runCommandVector},
		{"newer/query.jsonl", runQueryVector},
		{"newer/update.jsonl", runUpdateVector},
		{"newer/aggregate.jsonl", runAggregateVector},
	} {
		t.Run(strings.TrimSuffix(set.file, ".jsonl"), func(t *testing.T) {
			m, old := newPrimary(t), memberOfVersion(t, slog.New(slog.DiscardHandler), "4.0")
			for _, db := range []string{"admin", "config"} { // which the recorded server had from its start
				command(t, old, db, `{"create":"there"}`)
			}
			s := newScore(set.file)
			for _, v := range readVectors(t, set.file) {
				if !v.get("doubt").IsZero() {
					continue
				}
				err := set.run(t, m, v)
				if err != nil && !v.newer() && set.run(t, old, v) == nil {
					s.old[v.id], err = true, nil
				}
				s.add(v, err, listed[v.id])
				used[v.id] = true
			}
			s.print(t)
			s.judge(t, pinned[set.file], listed)
		})
	}
	for id := range listed {
		if !used[id] {
			t.Errorf("testdata/differences.tsv lists %s, which is no vector that was run", id)
		}
	}
	if len(listed) > pinned["differences"] {
		t.Errorf("testdata/differences.tsv lists %d vectors, %d were listed before: it may only shrink", len(listed), pinned["differences"])
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

// readDifferences gives the cause of each listed vector. A line is a cause and ids, between blanks; a cause has been
// explained before, on a line "#cause: why, and the page of the manual".
func readDifferences(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "differences.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	out, causes := map[string]string{}, map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if name, why, ok := strings.Cut(strings.TrimPrefix(line, "#"), ": "); ok && line[0] == '#' && len(why) > 10 {
			causes[name] = true
			continue
		}
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if !causes[words[0]] {
			t.Fatalf("testdata/differences.tsv: the cause %s is not explained", words[0])
		}
		for _, id := range words[1:] {
			if out[id] != "" {
				t.Fatalf("testdata/differences.tsv: %s is listed twice", id)
			}
			out[id] = words[0]
		}
	}
	return out
}

// fresh makes the collections of a vector anew.
func fresh(t *testing.T, m *Member, v vector) error {
	runCommand(t, m, "vt", document(bson.D{{Key: "dropDatabase", Value: int32(1)}}))
	if err := fill(t, m, "c", v.get("docs")); err != nil {
		return err
	}
	for name, docs := range v.raw("foreign").All() {
		if err := fill(t, m, name, docs); err != nil {
			return err
		}
	}
	if ix := v.get("indexes"); !ix.IsZero() {
		return failure(runCommand(t, m, "vt", document(bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: ix}})))
	}
	return nil
}

func fill(t *testing.T, m *Member, coll string, docs bson.RawValue) error {
	if len(value.Array(docs)) == 0 {
		return nil
	}
	return failure(runCommand(t, m, "vt", document(bson.D{{Key: "insert", Value: coll}, {Key: "documents", Value: docs}})))
}

// failure is the error that a reply tells, of the command or of its first write.
func failure(reply bson.Raw) error {
	if !reply.Lookup("errmsg").IsZero() {
		return &refusal{reply}
	}
	if w, ok := reply.Lookup("writeErrors", "0").DocumentOK(); ok {
		return &refusal{w}
	}
	return nil
}

// refusal is a document that has code and errmsg.
type refusal struct{ doc bson.Raw }

func (r *refusal) Error() string { return value.Print(r.doc.Lookup("code")) + " " + r.text() }

func (r *refusal) text() string { s, _ := r.doc.Lookup("errmsg").StringValueOK(); return s }

// wantError compares a refusal with the recorded one. Where a command puts words before an error of what it ran
// ("Executor error during find command :: caused by :: "), versions differ: the recorded text may be the end of ours.
func wantError(v vector, err error) error {
	want := &refusal{v.raw("error")}
	if err == nil {
		return errors.New("no error, want " + want.Error())
	}
	var got *refusal
	if !errors.As(err, &got) {
		return err
	}
	got = &refusal{duplicateBefore42(got.doc)}
	code, _ := want.doc.Lookup("code").AsInt64OK()
	own, _ := got.doc.Lookup("code").AsInt64OK()
	if code != own || !v.newer() && !sameText(want.text(), got.text()) {
		return errors.New("error " + got.Error() + "\n   want  " + want.Error())
	}
	return nil
}

func sameText(want, got string) bool {
	if want == got || strings.HasSuffix(got, " :: caused by :: "+want) {
		return true
	}
	return placeholder.MatchString(want) && textPattern(want).MatchString(got)
}

// allOf drains the cursor of a reply.
func allOf(t *testing.T, m *Member, reply bson.Raw) ([]bson.Raw, error) {
	docs := docsIn(reply.Lookup("cursor", "firstBatch"))
	for {
		id, _ := reply.Lookup("cursor", "id").Int64OK()
		if id == 0 {
			return docs, nil
		}
		reply = runCommand(t, m, "vt", document(bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}}))
		if err := failure(reply); err != nil {
			return docs, err
		}
		next := docsIn(reply.Lookup("cursor", "nextBatch"))
		docs = append(docs, next...)
		if left, _ := reply.Lookup("cursor", "id").Int64OK(); left != 0 && len(next) == 0 {
			return docs, errors.New("a batch without documents, and yet the cursor is open")
		}
	}
}

// everything is the collection in its natural order, or by _id.
func everything(t *testing.T, m *Member, coll string, byID bool) []bson.Raw {
	cmd := bson.D{{Key: "find", Value: coll}}
	if byID {
		cmd = append(cmd, bson.E{Key: "sort", Value: bson.D{{Key: "_id", Value: int32(1)}}})
	}
	docs, err := allOf(t, m, runCommand(t, m, "vt", document(cmd)))
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

// with appends the fields of options to a command.
func with(cmd bson.D, options bson.Raw) bson.Raw {
	for key, v := range options.All() {
		if i := slices.IndexFunc(cmd, func(e bson.E) bool { return e.Key == key }); i >= 0 {
			cmd[i].Value = v
			continue
		}
		cmd = append(cmd, bson.E{Key: key, Value: v})
	}
	return document(cmd)
}
