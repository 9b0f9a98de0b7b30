package replset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// opsOf are the operations that $currentOp shows, of one application.
func opsOf(t *testing.T, c *raw, app string, options bson.D) (found []bson.Raw) {
	t.Helper()
	reply, err := c.run("admin", bson.D{{Key: "aggregate", Value: 1}, {Key: "cursor", Value: bson.D{}},
		{Key: "pipeline", Value: bson.A{bson.D{{Key: "$currentOp", Value: options}}, bson.D{{Key: "$match", Value: bson.D{{Key: "appName", Value: app}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range reply.Lookup("cursor", "firstBatch").Array().All() {
		found = append(found, v.Document())
	}
	return found
}

// stuckFind starts a find that takes a minute unless somebody ends it, and gives its number and what comes of it.
func stuckFind(t *testing.T, s *Set, watcher *raw) (op int32, ended chan error) {
	t.Helper()
	if err := s.FailCommand(0, &FailCommand{Commands: []string{"find"}, AppName: "stuck", Block: time.Minute}); err != nil {
		t.Fatal(err)
	}
	victim := dialRaw(t, s, 0, "stuck")
	ended = make(chan error, 1)
	go func() {
		_, err := victim.run("shop", bson.D{{Key: "find", Value: "orders"}, {Key: "filter", Value: bson.D{{Key: "n", Value: 1}}}})
		ended <- err
	}()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if found := opsOf(t, watcher, "stuck", bson.D{}); len(found) == 1 {
			d := found[0]
			if d.Lookup("op").StringValue() != "query" || d.Lookup("ns").StringValue() != "shop.orders" || !d.Lookup("active").Boolean() ||
				d.Lookup("command", "filter", "n").AsInt64() != 1 || d.Lookup("host").StringValue() != s.Member(0).Addr() ||
				!strings.HasPrefix(d.Lookup("client").StringValue(), "127.0.0.1:") || d.Lookup("secs_running").Type != bson.TypeInt64 {
				t.Errorf("shown as %s", d)
			}
			return d.Lookup("opid").Int32(), ended
		}
		if time.Now().After(end) {
			t.Fatal("$currentOp never shows the find")
		}
	}
}

func TestOperationsAreSeenAndKilled(t *testing.T) {
	s := Run(t, Options{Members: 1})
	watcher := dialRaw(t, s, 0, "watcher")
	op, ended := stuckFind(t, s, watcher)
	if all := watcher.must(t, "admin", bson.D{{Key: "currentOp", Value: 1}}).Lookup("inprog").Array(); !strings.Contains(all.String(), "shop.orders") {
		t.Errorf("currentOp shows %s", all)
	}
	watcher.must(t, "admin", bson.D{{Key: "killOp", Value: 1}, {Key: "op", Value: op + 1000}})
	select {
	case err := <-ended:
		t.Fatalf("the find ended when another was killed: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	watcher.must(t, "admin", bson.D{{Key: "killOp", Value: 1}, {Key: "op", Value: op}})
	if err := <-ended; mongoerr.Code(err) != mongoerr.CodeInterrupted {
		t.Errorf("a killed find ends with %v", err)
	}
	if found := opsOf(t, watcher, "stuck", bson.D{}); len(found) != 0 {
		t.Errorf("still shown: %v", found)
	}
	if found := opsOf(t, watcher, "stuck", bson.D{{Key: "idleConnections", Value: true}}); len(found) != 1 || found[0].Lookup("active").Boolean() {
		t.Errorf("the idle connection is shown as %v", found)
	}
}

func TestOperationsOfOthersAreShownToThoseWhoAsk(t *testing.T) {
	s := Run(t, Options{Members: 1, Users: []User{{Name: "ann", Password: "ann"}, {Name: "joe", Password: "joe"}}})
	ann, joe := dialRaw(t, s, 0, "ann"), dialRaw(t, s, 0, "joe")
	for c, name := range map[*raw]string{ann: "ann", joe: "joe"} {
		if err := login(c, "SCRAM-SHA-256", name, name); err != nil {
			t.Fatal(err)
		}
	}
	idle := bson.D{{Key: "idleConnections", Value: true}}
	if found := opsOf(t, ann, "joe", idle); len(found) != 0 {
		t.Errorf("ann sees %v", found)
	}
	if found := opsOf(t, ann, "joe", append(idle, bson.E{Key: "allUsers", Value: true})); len(found) != 1 {
		t.Errorf("ann sees of all users %v", found)
	}
	if found := opsOf(t, joe, "joe", idle); len(found) != 1 {
		t.Errorf("joe sees of his own %v", found)
	}
}

// What a shell asks of a server, and what must not pass for done.
func TestDiagnosticCommands(t *testing.T) {
	s := Run(t, Options{Members: 1})
	c := dialRaw(t, s, 0, "shell")
	c.must(t, "shop", bson.D{{Key: "insert", Value: "things"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}, {Key: "s", Value: strings.Repeat("x", 4096)}}}}})
	for _, step := range []struct {
		db   string
		cmd  bson.D
		path string // into the reply
		want any
	}{
		{"shop", bson.D{{Key: "drop", Value: "things"}, {Key: "help", Value: true}}, "help", "help for: drop https://www.mongodb.com/docs/manual/reference/command/drop/"},
		{"shop", bson.D{{Key: "dropDatabase", Value: 1}, {Key: "help", Value: true}}, "help", "help for: dropDatabase https://www.mongodb.com/docs/manual/reference/command/dropDatabase/"},
		{"shop", bson.D{{Key: "count", Value: "things"}, {Key: "help", Value: false}}, "n", int32(1)},
		{"shop", bson.D{{Key: "dbStats", Value: 1}, {Key: "scale", Value: 1024}}, "dataSize", 4118.0 / 1024},
		{"shop", bson.D{{Key: "dbStats", Value: 1}, {Key: "scale", Value: 1024}}, "scaleFactor", int32(1024)},
		{"shop", bson.D{{Key: "collStats", Value: "things"}, {Key: "scale", Value: 1024}}, "size", int64(4)},
		{"shop", bson.D{{Key: "collStats", Value: "things"}, {Key: "scale", Value: 1024}}, "avgObjSize", int32(4118)},
		{"shop", bson.D{{Key: "collStats", Value: "nothing"}, {Key: "scale", Value: 7}}, "scaleFactor", int32(7)},
		{"shop", bson.D{{Key: "profile", Value: -1}}, "was", int32(0)},
		{"admin", bson.D{{Key: "setFeatureCompatibilityVersion", Value: "8.0"}, {Key: "confirm", Value: true}}, "ok", 1.0},
		{"admin", bson.D{{Key: "serverStatus", Value: 1}}, "opcounters.insert", int64(1)},
		{"admin", bson.D{{Key: "fsync", Value: 1}}, "numFiles", int32(1)},
		{"shop", bson.D{{Key: "compact", Value: "things"}}, "bytesFreed", int64(0)},
		{"shop", bson.D{{Key: "planCacheClear", Value: "things"}}, "ok", 1.0},
	} {
		reply := c.must(t, step.db, step.cmd)
		if got := reply.Lookup(strings.Split(step.path, ".")...); !sameValue(got, step.want) {
			t.Errorf("%v: %s is %s, not %v, in %s", step.cmd, step.path, got, step.want, reply)
		}
	}
	for _, step := range []struct {
		db   string
		cmd  bson.D
		code int32
	}{
		{"shop", bson.D{{Key: "dbStats", Value: 1}, {Key: "scale", Value: "x"}}, mongoerr.CodeTypeMismatch},
		{"shop", bson.D{{Key: "dbStats", Value: 1}, {Key: "scale", Value: -1}}, 51024},
		{"shop", bson.D{{Key: "collStats", Value: "things"}, {Key: "scale", Value: 0}}, 51024},
		{"shop", bson.D{{Key: "profile", Value: 2}}, mongoerr.CodeNotImplemented},
		{"admin", bson.D{{Key: "fsync", Value: 1}, {Key: "lock", Value: true}}, mongoerr.CodeNotImplemented},
		{"admin", bson.D{{Key: "fsyncUnlock", Value: 1}}, mongoerr.CodeIllegalOperation},
		{"admin", bson.D{{Key: "setFeatureCompatibilityVersion", Value: "8.0"}}, 7369100},
		{"admin", bson.D{{Key: "setFeatureCompatibilityVersion", Value: "7.0"}, {Key: "confirm", Value: true}}, mongoerr.CodeNotImplemented},
		{"admin", bson.D{{Key: "killOp", Value: 1}}, mongoerr.CodeNoSuchKey},
		{"shop", bson.D{{Key: "compact", Value: "nothing"}}, mongoerr.CodeNamespaceNotFound},
		{"shop", bson.D{{Key: "reIndex", Value: "things"}}, mongoerr.CodeIllegalOperation},
		{"shop", bson.D{{Key: "dbHash", Value: 1}, {Key: "collections", Value: bson.A{1}}}, mongoerr.CodeTypeMismatch},
		{"shop", bson.D{{Key: "createIndexes", Value: "things"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "name", Value: "wide"}, {Key: "key", Value: wide(33)}}}}}, 13103},
		{"admin", bson.D{{Key: "killOp", Value: 1}, {Key: "op", Value: "x"}}, mongoerr.CodeTypeMismatch},
		{"shop", bson.D{{Key: "killOp", Value: 1}, {Key: "op", Value: 1}}, mongoerr.CodeUnauthorized},
		{"shop", bson.D{{Key: "count", Value: "things"}, {Key: "filter", Value: bson.D{}}}, 40415},
		{"shop", bson.D{{Key: "distinct", Value: "things"}, {Key: "key", Value: "s"}, {Key: "limit", Value: 1}}, 40415},
		{"shop", bson.D{{Key: "listCollections", Value: 1}, {Key: "name", Value: 1}}, 40415},
		{"shop", bson.D{{Key: "listIndexes", Value: "things"}, {Key: "filter", Value: 1}}, 40415},
		{"shop", bson.D{{Key: "dropIndexes", Value: "things"}, {Key: "index", Value: "*"}, {Key: "name", Value: 1}}, 40415},
		{"shop", bson.D{{Key: "dbStats", Value: 1}, {Key: "foo", Value: 1}}, 40415},
		{"shop", bson.D{{Key: "killCursors", Value: "things"}, {Key: "cursors", Value: bson.A{}}, {Key: "foo", Value: 1}}, 40415},
	} {
		if reply, err := c.run(step.db, step.cmd); mongoerr.Code(err) != step.code {
			t.Errorf("%v: not refused with %d: %v, %s", step.cmd, step.code, err, reply)
		}
	}
}

func sameValue(got bson.RawValue, want any) bool {
	var v any
	return got.Unmarshal(&v) == nil && v == want
}

// wide is the key of an index of so many fields.
func wide(n int) (key bson.D) {
	for i := range n {
		key = append(key, bson.E{Key: fmt.Sprint("f", i), Value: 1})
	}
	return key
}

func TestMembersWithTheSameDataHashAlike(t *testing.T) {
	onFakeTime(t, Options{Members: 3}, func(t *testing.T, s *Set) {
		p := primaryIndex(t, s)
		c := dialRaw(t, s, p, "app")
		for _, id := range []int{3, 1, 2} {
			c.must(t, "t", insert(id, bson.D{{Key: "w", Value: 3}}))
		}
		hash := bson.D{{Key: "dbHash", Value: 1}}
		before := c.must(t, "t", hash).Lookup("md5").StringValue()
		for i := range s.Members() {
			if got := dialRaw(t, s, i, "app").must(t, "t", hash).Lookup("md5").StringValue(); got != before {
				t.Errorf("member %d: %s, the primary: %s", i, got, before)
			}
		}
		c.must(t, "t", insert(4, nil))
		after := c.must(t, "t", hash)
		if after.Lookup("md5").StringValue() == before || len(after.Lookup("collections", "c").StringValue()) != 32 {
			t.Errorf("after another insert: %s, before: %s", after, before)
		}
		if only := c.must(t, "t", append(hash, bson.E{Key: "collections", Value: bson.A{"other"}})); only.Lookup("collections").Document().Len() != 0 {
			t.Errorf("of another collection: %s", only)
		}
	})
}
