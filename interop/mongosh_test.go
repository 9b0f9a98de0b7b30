package interop

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/replset"
)

// mongosh is the program, for node to run.
const mongosh = "node/node_modules/mongosh/bin/mongosh.js"

// mongoshHome is an environment in which mongosh keeps its files in a folder of the test's, and asks nobody for news.
func mongoshHome(t *testing.T) []string {
	t.Helper()
	needed(t, "mongosh", "there is no node", works("node", "--version"))
	needed(t, "mongosh", "the npm package mongosh is not in interop/node/node_modules", exists(mongosh))
	home := t.TempDir()
	folder := filepath.Join(home, ".mongodb", "mongosh")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	settings := `{"enableTelemetry":false,"updateURL":"","disableLogging":true,"disableGreetingMessage":true}`
	if err := os.WriteFile(filepath.Join(folder, "config"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"HOME=" + home, "NODE_NO_WARNINGS=1"}
}

// A shell is mongosh with somebody typing.
type shell struct {
	t      *testing.T
	in     io.WriteCloser
	chunks chan []byte // what it says, closed at its end
}

var prompt = regexp.MustCompile(`(?:^|\n)rs0 \[\w+\] \w+> $`)

func openShell(t *testing.T, uri string) *shell {
	in, out := program(t, mongoshHome(t), "node", mongosh, uri)
	s := &shell{t: t, in: in, chunks: make(chan []byte)}
	done := t.Context().Done()
	go func() {
		defer close(s.chunks)
		for {
			chunk := make([]byte, 64<<10)
			n, err := out.Read(chunk)
			if err != nil {
				return
			}
			select {
			case s.chunks <- chunk[:n]:
			case <-done:
				return
			}
		}
	}()
	s.said("the start")
	return s
}

// said is what the shell has said when it prompts again.
func (s *shell) said(line string) string {
	s.t.Helper()
	var out []byte
	for late := time.After(patience); !prompt.Match(out); {
		select {
		case chunk, ok := <-s.chunks:
			if !ok {
				s.t.Fatalf("after %s mongosh ended, saying:\n%s", line, out)
			}
			out = append(out, chunk...)
		case <-late:
			s.t.Fatalf("after %s mongosh does not prompt, saying:\n%s", line, out)
		}
	}
	return string(prompt.ReplaceAll(out, nil))
}

func (s *shell) types(line string) string {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
	return s.said(line)
}

// What people type, and expressions for what they must see, in that order.
var typed = []struct {
	line string
	see  []string
}{
	{`use shop`, []string{`switched to db shop`}},
	{`for (let i = 0; i < 45; i++) db.things.insertOne({_id: i, n: i, s: 'x' + i % 2})`, []string{`insertedId: 44`}},
	{`db.people.insertMany([{name: 'ann', awards: [{kind: 'gold'}]}, {name: 'joe'}])`, []string{`acknowledged: true`, `'0': ObjectId\('`, `'1': ObjectId\('`}},
	{`show dbs`, []string{`local +\S+ KiB`, `shop +\S+ KiB`}},
	{`show databases`, []string{`shop`}},
	{`show collections`, []string{`people\nthings`}},
	{`db.people.find({'awards.kind': 'gold'}, {_id: 0})`, []string{`\[ \{ name: 'ann', awards: \[ \{ kind: 'gold' \} \] \} \]`}},
	{`db.things.find()`, []string{`_id: 0,`, `_id: 19,`, `Type "it" for more`}},
	{`it`, []string{`_id: 20,`, `_id: 39,`, `Type "it" for more`}},
	{`it`, []string{`_id: 40,`, `_id: 44,`}},
	{`it`, []string{`no cursor`}},
	{`rs.status()`, []string{`set: 'rs0'`, `myState: 1`, `name: '127.0.0.1:\d+'`, `stateStr: 'PRIMARY'`, `stateStr: 'SECONDARY'`, `stateStr: 'SECONDARY'`, `ok: 1`}},
	{`rs.conf().members.map(m => m.priority)`, []string{`\[ 1, 1, 1 \]`}},
	{`rs.hello().isWritablePrimary`, []string{`true`}},
	{`rs.printReplicationInfo()`, []string{`configured oplog size`, `log length start to end`}},
	{`rs.printSecondaryReplicationInfo()`, []string{`source: 127.0.0.1:\d+`, `syncedTo`, `replLag: '[-\d]+ secs`, `source: 127.0.0.1:\d+`}},
	{`db.things.find({_id: 3}).explain()`, []string{`namespace: 'shop.things'`, `stage: '(IDHACK|EXPRESS_IXSCAN)'`, `ok: 1`}},
	{`db.things.find({n: 3}).explain('executionStats')`, []string{`stage: 'COLLSCAN'`, `executionSuccess: true`, `nReturned: 1`, `executionTimeMillis: \d+`,
		`totalKeysExamined: 0`, `totalDocsExamined: 45`, `executionStages: `}},
	{`db.things.createIndex({n: 1})`, []string{`n_1`}},
	{`db.things.find({n: 3}).explain('executionStats')`, []string{`stage: 'FETCH'`, `stage: 'IXSCAN'`, `indexName: 'n_1'`, `nReturned: 1`, `totalKeysExamined: 1`, `totalDocsExamined: 1`}},
	{`db.things.aggregate([{$match: {n: 3}}]).explain()`, []string{`stage: 'IXSCAN'`}},
	{`db.things.explain().count({n: 3})`, []string{`winningPlan`}},
	{`db.things.getIndexes()`, []string{`\{ v: 2, key: \{ _id: 1 \}, name: '_id_' \}`, `\{ v: 2, key: \{ n: 1 \}, name: 'n_1' \}`}},
	{`db.things.aggregate([{$group: {_id: '$s', n: {$sum: '$n'}}}, {$sort: {_id: 1}}])`, []string{`\[ \{ _id: 'x0', n: 506 \}, \{ _id: 'x1', n: 484 \} \]`}},
	{`db.things.insertOne({_id: 1})`, []string{`MongoServerError: E11000 duplicate key error collection: shop.things index: _id_ dup key: \{ _id: 1 \}`}},
	{`try { db.things.insertOne({_id: 1}) } catch (e) { print(e.code, e.errorResponse.keyPattern, e.errorResponse.keyValue) }`, []string{`11000 \{ _id: 1 \} \{ _id: 1 \}`}},
	{`db.things.updateMany({n: {$lt: 10}}, {$set: {small: true}})`, []string{`matchedCount: 10`, `modifiedCount: 10`}},
	{`db.things.countDocuments({small: true})`, []string{`10`}},
	{`db.things.stats().count`, []string{`45`}},
	{`db.stats().collections`, []string{`2`}},
	{`db.stats(1024).scaleFactor`, []string{`1024`}},
	{`db.things.validate().valid`, []string{`true`}},
	{`db.currentOp().inprog.filter(o => o.command.aggregate === 1).map(o => [o.active, o.ns])`, []string{`\[ \[ true, 'admin.\$cmd.*' \] \]`}},
	{`db.killOp(1000000).info`, []string{`attempting to kill op`}},
	{`db.getProfilingStatus().was`, []string{`0`}},
	{`db.commandHelp('dropDatabase')`, []string{`dropDatabase`}},
	{`db.things.countDocuments()`, []string{`45`}},
	{`db.serverStatus().opcounters.insert > 40`, []string{`true`}},
	{`db.serverStatus().process`, []string{`mongod`}},
	{`db.version()`, []string{`8\.0\.`}},
	{`show users`, []string{`\[\]`}},
	{`show logs`, []string{`global`}},
	{`db.people.drop()`, []string{`true`}},
	{`db.dropDatabase()`, []string{`dropped: 'shop'`}},
	{`db.nonsense({`, nil},
	{`)`, []string{`SyntaxError`}},
	{`db.adminCommand({noSuchCommand: 1})`, []string{`MongoServerError\[CommandNotFound\]: no such command: 'noSuchCommand'`}},
}

// TestMongoshAnswersWhatPeopleType types to an interactive mongosh.
func TestMongoshAnswersWhatPeopleType(t *testing.T) {
	t.Parallel()
	s := openShell(t, replset.Run(t, replset.Options{Members: 3}).URI())
	for _, step := range typed {
		if step.see == nil {
			if _, err := io.WriteString(s.in, step.line+"\n"); err != nil {
				t.Fatal(err)
			}
			continue
		}
		said := s.types(step.line)
		if !regexp.MustCompile(`(?s)` + strings.Join(step.see, `.*`)).MatchString(said) {
			t.Errorf("%s: expected %q, mongosh said:\n%s", step.line, step.see, said)
		}
	}
}

// TestMongoshWithAWrongPasswordDoesNotStart has mongosh show a wrong password to each mechanism.
func TestMongoshWithAWrongPasswordDoesNotStart(t *testing.T) {
	t.Parallel()
	m := strangerNamed("mongosh")
	for _, w := range ways {
		if w.mechanism == "" {
			continue
		}
		cmd := exec.Command("node", mongosh, "--quiet", w.uri(w.set(t), m, 3*time.Second, wrongPassword), "--eval", "db.people.countDocuments()")
		cmd.Env = append(os.Environ(), mongoshHome(t)...)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "Authentication failed") {
			t.Errorf("%s: %v, and said:\n%s", w.name, err, out)
		}
	}
}
