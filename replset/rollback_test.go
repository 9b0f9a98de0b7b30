package replset

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/command"
)

// lockedBuffer is a log that a test can read.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// loseWrites has a primary that is cut off make writes that no majority gets, heals, and returns when they are gone.
func loseWrites(t *testing.T, s *Set, watch func()) (old int) {
	t.Helper()
	old = primaryIndex(t, s)
	c := dialRaw(t, s, old, "app")
	defer c.nc.Close()
	all := len(s.Members())
	for _, id := range []string{"changed", "deleted", "kept"} {
		c.must(t, "t", insert(id, w(all)))
	}
	others := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == old })
	if err := s.Partition([]int{old}, others); err != nil {
		t.Fatal(err)
	}
	c.must(t, "t", insert("lost", w(1)))
	c.must(t, "t", bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: "changed"}}},
		{Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 1}}}}}}}}, {Key: "writeConcern", Value: w(1)}})
	c.must(t, "t", bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: "deleted"}}}, {Key: "limit", Value: 1}}}},
		{Key: "writeConcern", Value: w(1)}})
	within(t, 5*time.Second, "a primary on the other side", func() bool { q := s.Primary(); return q != nil && q.Index() != old })
	d := dialRaw(t, s, primaryIndex(t, s), "app")
	defer d.nc.Close()
	d.must(t, "t", insert("new", majority()))
	within(t, 5*time.Second, "the minority's primary to step down", func() bool { return s.Member(old).State() == "SECONDARY" })
	if watch != nil {
		watch()
	}
	s.Heal()
	within(t, 10*time.Second, "rollback", func() bool { return len(s.RolledBack(old)) > 0 })
	within(t, 10*time.Second, "all to be equal", func() bool {
		return s.Member(old).current().HasAllOf(s.Member(primaryIndex(t, s)).current())
	})
	return old
}

func wantLost(t *testing.T, lost []RolledBack) {
	t.Helper()
	got := map[string]string{}
	for _, l := range lost {
		id, _ := l.ID.StringValueOK()
		got[id] = "gone"
		if l.Document != nil {
			got[id] = l.Document.String()
		}
		if l.Namespace != "t.c" || l.Term != 1 || l.TS.IsZero() {
			t.Errorf("%+v", l)
		}
	}
	if len(got) != 3 || got["deleted"] != "gone" || !strings.Contains(got["changed"], `"n"`) || !strings.Contains(got["lost"], "lost") {
		t.Errorf("kept aside: %v", got)
	}
}

// TestWhatARollbackTakesBackIsKeptAside: an insert, an update and a deletion that no majority had.
func TestWhatARollbackTakesBackIsKeptAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		s := named(t, 3, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		defer s.Close()
		states := map[string]bool{}
		old := loseWrites(t, s, func() {
			for i := range 3 { // slow enough to be seen
				if err := s.Delay(i, 50*time.Millisecond, MemberApp(0)); err != nil {
					t.Fatal(err)
				}
			}
			go func() {
				for len(s.RolledBack(0)) == 0 {
					time.Sleep(5 * time.Millisecond)
					state := s.Member(0).State()
					if state == "ROLLBACK" && !states[state] {
						c := dialRaw(t, s, 0, "app") // going there has closed all that were open
						h := helloOf(t, c)
						if secondary, _ := h.Lookup("secondary").BooleanOK(); secondary {
							t.Errorf("hello in ROLLBACK: %v", h)
						}
						c.fails(t, mongoerr.CodeNotPrimaryOrSecondary, "t", bson.D{{Key: "find", Value: "c"}, nearest})
					}
					states[state] = true
				}
			}()
		})
		time.Sleep(time.Second)
		if old != 0 || !states["ROLLBACK"] {
			t.Errorf("member %d was in %v", old, states)
		}
		wantLost(t, s.RolledBack(old))
		for i := range 3 {
			if i != old && len(s.RolledBack(i)) > 0 {
				t.Errorf("member %d took back %v", i, s.RolledBack(i))
			}
		}
		if n := strings.Count(log.String(), "rolled back"); n != 1 {
			t.Errorf("%d lines about the rollback:\n%s", n, log.String())
		}
		if got := dialIDs(t, s, old); !slices.Equal(got, []string{`"changed"`, `"deleted"`, `"kept"`, `"new"`}) {
			t.Errorf("it has %v", got)
		}
	})
}

func dialIDs(t *testing.T, s *Set, i int) []string {
	t.Helper()
	c := dialRaw(t, s, i, "app")
	defer c.nc.Close()
	return c.ids(t)
}

func TestRollbackWritesAFileBelowTheDataFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := named(t, 3, Options{Dir: dir})
		defer s.Close()
		wantLost(t, s.RolledBack(loseWrites(t, s, nil)))
		files, err := filepath.Glob(filepath.Join(dir, "rollback", "t.c", "*.bson"))
		if err != nil || len(files) != 1 {
			t.Fatalf("files %v, %v", files, err)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for len(data) > 4 {
			size := int(data[0]) | int(data[1])<<8 | int(data[2])<<16
			if err := bson.Raw(data[:size]).Validate(); err != nil {
				t.Fatal(err)
			}
			data, n = data[size:], n+1
		}
		if n != 2 {
			t.Errorf("%d documents in the file; two were lost, and a deletion", n)
		}
	})
}

// TestRollbackOfANamespaceWithALongNameEnds: sixty letters of Cyrillic are 360 bytes in an escaped name.
func TestRollbackOfANamespaceWithALongNameEnds(t *testing.T) {
	long := strings.Repeat("заказы", 10)
	for _, ns := range []string{"t." + long, "t." + long + "2", "t.c/../../x", "t." + strings.Repeat("l/", 120)} {
		name := folderOf(ns)
		if len(name) > 255 || strings.ContainsAny(name, "/\\") || strings.Contains(name, "%-") {
			t.Errorf("%q becomes %q", ns, name)
		}
	}
	if a, b := folderOf("t."+long), folderOf("t."+long+"2"); a == b {
		t.Errorf("two namespaces share the folder %s", a)
	}
	dir := t.TempDir()
	m := &Member{set: &Set{opt: Options{Dir: dir}}}
	doc := bson.Raw{5, 0, 0, 0, 0}
	lost := []command.Lost{{NS: "t." + long, Doc: doc}, {NS: "t.C", Doc: doc}, {NS: "t.c", Doc: doc}}
	for range 2 {
		if err := m.keepAside(lost); err != nil {
			t.Fatal(err)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "rollback", "*", "*.bson")); len(files) != 6 {
		t.Errorf("files %v", files)
	}
}

// TestMemberThatCannotKeepAsideEnds: what it was to take back is still in its file, and is kept aside when that can be.
func TestMemberThatCannotKeepAsideEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var log lockedBuffer
		s := named(t, 3, Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		defer s.Close()
		old := primaryIndex(t, s)
		c := dialRaw(t, s, old, "app")
		defer c.nc.Close()
		c.must(t, "t", insert("kept", w(3)))
		if err := os.WriteFile(filepath.Join(dir, "rollback"), nil, 0o600); err != nil { // where the folder should be
			t.Fatal(err)
		}
		if err := s.Partition([]int{old}, slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == old })); err != nil {
			t.Fatal(err)
		}
		c.must(t, "t", bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: "lost"}}}},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}, {Key: "j", Value: true}}}})
		within(t, 5*time.Second, "another primary", func() bool { q := s.Primary(); return q != nil && q.Index() != old })
		d := dialRaw(t, s, primaryIndex(t, s), "app")
		defer d.nc.Close()
		d.must(t, "t", insert("new", majority()))
		s.Heal()
		within(t, 10*time.Second, "the member's end", func() bool { return s.Member(old).State() == "DOWN" })
		if n := strings.Count(log.String(), "cannot be kept aside"); n != 1 {
			t.Errorf("%d lines say so:\n%s", n, log.String())
		}
		if err := s.AwaitReplication(t.Context()); err != nil { // of the others
			t.Error(err)
		}
		if err := os.Remove(filepath.Join(dir, "rollback")); err != nil {
			t.Fatal(err)
		}
		for _, step := range []func(int) error{s.Kill, s.Restart} {
			if err := step(old); err != nil {
				t.Fatal(err)
			}
		}
		within(t, 10*time.Second, "rollback", func() bool { return len(s.RolledBack(old)) == 1 })
		if id, _ := s.RolledBack(old)[0].ID.StringValueOK(); id != "lost" {
			t.Errorf("kept aside: %v", s.RolledBack(old))
		}
		d.must(t, "t", insert("last", w(3)))
	})
}
