package replset

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// forgetfulDisk is set in the environment of this program when it is built over a bbolt whose disks forget what was not
// synced when their power fails.
const forgetfulDisk = "SEXTANT_FORGETFUL_DISK"

// powerOff has the power of a member's disk fail: after so many more writes and syncs of its file all that was not synced
// is gone, or half gone, and nothing can be written. The member is killed a little later, as its machine would be.
func (w *world) powerOff(ctx context.Context, who, writes int) error {
	s := w.set
	if r := s.Member(who).current(); r == nil {
		return os.ErrProcessDone
	}
	sign := s.opt.file(who) + ".power-off"
	if err := os.WriteFile(sign, []byte(strconv.Itoa(writes)), 0o600); err != nil {
		return err
	}
	w.late.Go(func() {
		time.Sleep(300 * time.Millisecond)
		if err := s.Kill(who); err != nil {
			w.note("    the member without power: %s", firstLine(err))
		}
		_ = os.Remove(sign)
	})
	return nil
}

// TestStoriesOnDisksThatForgetLoseNothingSynced builds this test over a copy of bbolt beneath which testdata/forgetful.go
// stands in for the disk, and tells SEXTANT_FORGETFUL stories there: the power fails at any write or sync, and what was not
// synced by then is lost, kept or torn, page by page. A program that does not sync, or confirms before it has, must be
// caught. As building takes
// longer than telling, nothing is built unless SEXTANT_FORGETFUL is set, as make stories does; the copy is made always.
func TestStoriesOnDisksThatForgetLoseNothingSynced(t *testing.T) {
	t.Parallel()
	n := number("SEXTANT_FORGETFUL", 0)
	mod := forgetfulBolt(t)
	careless := []mutant{
		{"never syncs", "replset/internal/store/journalread.go", "NoStatistics: true}", "NoStatistics: true, NoSync: true}", "is damaged"},
		{"confirms before it has synced", "replset/internal/command/disk.go", "durable = d.journal.Durable()", "durable = applied", keeps},
	}
	var overlays []string
	for _, m := range careless {
		overlays = append(overlays, m.write(t))
	}
	if n == 0 {
		return
	}
	run := func(stories uint64, build ...string) (string, error) {
		program := filepath.Join(filepath.Dir(mod), "stories.test")
		args := append([]string{"test", "-modfile", mod, "-c", "-o", program}, build...)
		if out, err := exec.CommandContext(t.Context(), "go", append(args, ".")...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		cmd := exec.CommandContext(t.Context(), program, "-test.run", "TestStoriesInFolders", "-test.failfast")
		cmd.Env = append(os.Environ(), forgetfulDisk+"=1", "SEXTANT_STORY=1", "SEXTANT_FOLDERS="+strconv.FormatUint(stories, 10))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for i, m := range careless {
		if out, err := run(enough, "-overlay", overlays[i]); err == nil || !strings.Contains(out, m.promise) {
			t.Errorf("a program that %s was not caught: %v\n%s", m.name, err, out)
		}
	}
	out, err := run(n)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Log(out)
}

// forgetfulBolt copies bbolt, puts the forgetful disk beneath it, and returns a go.mod that asks for the copy.
func forgetfulBolt(t *testing.T) (mod string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "go.etcd.io/bbolt").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bolt := filepath.Join(dir, "bbolt")
	if err := os.CopyFS(bolt, os.DirFS(strings.TrimSpace(string(out)))); err != nil {
		t.Fatal(err)
	}
	edit := func(file, old, new string, times int) {
		t.Helper()
		path := filepath.Join(bolt, file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), old); n != times {
			t.Fatalf("bbolt's %s has %q %d times, not %d: this test does not know any more where the disk is", file, old, n, times)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, new)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit("db.go", "db.ops.writeAt = db.file.WriteAt", "db.ops.writeAt = forgetful(db.file)", 1)
	edit("db.go", "fdatasync(db)", "syncForgetful(db)", 2)
	edit("tx.go", "fdatasync(tx.db)", "syncForgetful(tx.db)", 2)
	edit("db.go", "\t// Close file handles.\n", "\tcloseForgetful(db.file)\n", 1)
	for from, to := range map[string]string{"testdata/forgetful.go": filepath.Join(bolt, "forgetful.go"), "../go.sum": filepath.Join(dir, "go.sum")} {
		copyFile(t, from, to, "")
	}
	mod = filepath.Join(dir, "go.mod")
	copyFile(t, "../go.mod", mod, "\nreplace go.etcd.io/bbolt => "+bolt+"\n")
	return mod
}

func copyFile(t *testing.T, from, to, more string) {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(from))
	if err == nil {
		err = os.WriteFile(to, append(text, more...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
