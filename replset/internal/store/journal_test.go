package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"pgregory.net/rapid"
)

func mustOpen(t testing.TB, path string, entries int64) (*Journal, *Store) {
	t.Helper()
	j, s, err := OpenJournal(path, entries, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Drop() })
	return j, s
}

func mustSync(t testing.TB, j *Journal) {
	t.Helper()
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
}

// onward is a clock that goes on where the oplog of s ends, in a later term.
func onward(s *Store) Clock {
	at := s.Latest().OpTime()
	term, n := at.Term+1, uint32(0)
	return func() (OpTime, time.Time) {
		n++
		return OpTime{TS: bson.Timestamp{T: at.TS.T + 1, I: n}, Term: term}, time.Unix(int64(at.TS.T)+1, 0)
	}
}

// withoutHistory is a dump without the retry history, which is kept as far as the oplog goes.
func withoutHistory(sn *Snapshot) []string {
	return slices.DeleteFunc(dump(sn), func(line string) bool {
		return strings.HasPrefix(line, "session") || strings.HasPrefix(line, "statement")
	})
}

// TestReopenedStoreIsAsItWasAtTheLastSync: whatever was written, committed, rolled back
// and copied, with oplogs so short that they lose entries between two Syncs.
func TestReopenedStoreIsAsItWasAtTheLastSync(t *testing.T) {
	dir := t.TempDir()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		path := filepath.Join(dir, strconv.Itoa(runs))
		entries := rapid.SampledFrom([]int64{4, 1000}).Draw(rt, "oplog entries")
		j, s, err := OpenJournal(path, entries, 1<<30)
		if err != nil {
			rt.Fatal(err)
		}
		first := j
		defer func() { _ = first.Drop() }()
		j.step = 1
		synced, last, commit := trimmed(s, entries, s.Committed()), dump(s.Latest()), s.Committed()
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0, 1:
				randomWrites(rt, s, onward(s), "writes")
			case 2:
				commitSome(rt, s)
			case 3:
				rollBackSome(rt, s)
			case 4:
				other := NewSized(entries, 1<<30)
				randomWrites(rt, other, onward(s), "writes of another")
				s.Adopt(other)
			case 5:
				_, _ = s.Write(nil, func(tx *Tx) error {
					_, err := tx.Insert("local.own", genDoc(rt, int(s.Latest().OpTime().Term)))
					return err
				})
			}
			if rapid.Bool().Draw(rt, "sync") {
				if err := j.Sync(); err != nil {
					rt.Fatal(err)
				}
				if j.Durable() != s.Latest().OpTime() {
					rt.Fatalf("%v is durable, %v was synced", j.Durable(), s.Latest().OpTime())
				}
				synced, last, commit = trimmed(s, entries, s.Committed()), dump(s.Latest()), s.Committed()
			}
		}
		if err := j.Drop(); err != nil {
			rt.Fatal(err)
		}
		j, s, err = OpenJournal(path, entries, 1<<30)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = j.Drop() }()
		if got := trimmed(s, entries, commit); !slices.Equal(got, synced) {
			rt.Fatalf("reopened\n got %v\nwant %v", got, synced)
		}
		if got := dump(s.Latest()); entries == 1000 && s.Latest().gone == 0 && !slices.Equal(got, last) {
			rt.Fatalf("retry history\n got %v\nwant %v", got, last)
		}
	})
}

// trimmed is the newest state with its oplog as a write leaves it: within its bounds, but for what is not committed. One that
// is opened has been written to since it learnt of its commit point, one that is dumped perhaps not; and a commit point is
// not worth a sync of its own, so that the file may have an older one.
func trimmed(s *Store, entries int64, commit OpTime) []string {
	lines := withoutHistory(s.Latest())
	first := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, OplogNS+" ") }) + 1
	if first == 0 {
		return lines
	}
	held := commit.recordID()
	for n := int64(len(entriesOf(s.Latest()))); n > entries; n-- {
		var rid RecordID
		if _, err := fmt.Sscan(lines[first], &rid); err != nil || rid >= held {
			break
		}
		lines = slices.Delete(lines, first, first+1)
	}
	return lines
}

func commitSome(t *rapid.T, s *Store) {
	entries := entriesOf(s.Latest())
	if len(entries) > 0 {
		s.SetCommitted(EntryOpTime(entries[rapid.IntRange(0, len(entries)-1).Draw(t, "committed")]))
	}
}

func rollBackSome(t *rapid.T, s *Store) {
	for _, e := range entriesOf(s.Latest()) {
		if at := EntryOpTime(e); !at.Less(s.Committed()) && rapid.Bool().Draw(t, "back to "+at.String()) {
			_ = s.TruncateAfter(at) // after a copy, or with a short oplog, it may lie too far back
			return
		}
	}
}

// TestReopenedStoreCanStillRollBackToItsCommitPoint: the file holds the collections as
// of the commit point, so what came after can be taken back.
func TestReopenedStoreCanStillRollBackToItsCommitPoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	j, s := mustOpen(t, path, 1000)
	first := mustWrite(t, s, ticker(1), insertAll(doc("_id", 1)))
	s.SetCommitted(first)
	mustWrite(t, s, onward(s), insertAll(doc("_id", 2)))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	_, s = mustOpen(t, path, 1000)
	if s.Committed() != first {
		t.Errorf("the commit point is %v, want %v", s.Committed(), first)
	}
	wantTexts(t, s.CommittedSnapshot(), "t.c", `{ _id: 1 }`)
	wantTexts(t, s.Latest(), "t.c", `{ _id: 1 }`, `{ _id: 2 }`)
	if err := s.TruncateAfter(first); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, s.Latest(), "t.c", `{ _id: 1 }`)
}

func TestNotesOutliveTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	j, _ := mustOpen(t, path, 1000)
	if j.Note("vote") != nil {
		t.Error("a new file has a note")
	}
	if err := j.SetNote("vote", doc("term", 7)); err != nil {
		t.Fatal(err)
	}
	if err := j.Drop(); err != nil {
		t.Fatal(err)
	}
	j, _ = mustOpen(t, path, 1000)
	if n, _ := j.Note("vote").Lookup("term").AsInt64OK(); n != 7 {
		t.Errorf("the note is %v", j.Note("vote"))
	}
}

func TestOpenFileCannotBeOpenedTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	mustOpen(t, path, 1000)
	_, _, err := OpenJournal(path, 1000, 1<<30)
	if err == nil || !strings.Contains(err.Error(), path+" is in use") {
		t.Errorf("the second opening gives %v", err)
	}
}

const pageSize = 4096

// TestDiskThatForgetsWhatWasNotSyncedLosesNothingSynced stands for a crash of the
// machine in every moment of a Sync. A transaction of bbolt writes data pages, syncs,
// writes one of the two first pages, and syncs; until a sync returns, the disk may
// have kept any of the pages written before it, or half of one. Each such disk is put
// together from the file before and after and must open as the state before or, only
// when all data pages and the new first page are there, as the state after.
func TestDiskThatForgetsWhatWasNotSyncedLosesNothingSynced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "data")
	j, s := mustOpen(t, path, 50)
	j.step = 7
	rng := rand.New(rand.NewPCG(1, 2))
	stateBefore, before := dump(s.Latest()), read(t, path)
	for round := range 15 {
		n := 1 + rng.IntN(30)
		op := mustWrite(t, s, onward(s), func(tx *Tx) error {
			for i := range n {
				if _, err := tx.Insert("t.c", doc("_id", 1000*round+i, "text", strings.Repeat("x", rng.IntN(600)))); err != nil {
					return err
				}
			}
			return nil
		})
		s.SetCommitted(op)
		mustSync(t, j)
		after, stateAfter := read(t, path), dump(s.Latest())
		for range 4 {
			wantState(t, dir, lossy(before, after, rng, func(page int) bool { return page > 1 && rng.IntN(2) == 0 }, 0), stateBefore)
		}
		wantState(t, dir, lossy(before, after, rng, func(page int) bool { return page > 1 }, 0), stateBefore)
		wantState(t, dir, lossy(before, after, rng, func(page int) bool { return page > 1 }, 40), stateBefore)
		wantState(t, dir, after, stateAfter)
		before, stateBefore = after, stateAfter
	}
}

// lossy is the file before with those pages of the file after that the disk has kept,
// and the first torn bytes of the pages 0 and 1.
func lossy(before, after []byte, rng *rand.Rand, kept func(page int) bool, torn int) []byte {
	disk := make([]byte, len(before), len(after))
	copy(disk, before)
	if rng.IntN(2) == 0 || torn > 0 {
		disk = disk[:len(after)]
	}
	for at := 0; at+pageSize <= len(after); at += pageSize {
		switch page := at / pageSize; {
		case page < 2:
			copy(disk[at:at+torn], after[at:])
		case kept(page) && at+pageSize <= len(disk):
			copy(disk[at:at+pageSize], after[at:])
		}
	}
	return disk
}

func wantState(t *testing.T, dir string, disk []byte, want []string) {
	t.Helper()
	path := filepath.Join(dir, "crashed")
	if err := os.WriteFile(path, disk, 0o600); err != nil {
		t.Fatal(err)
	}
	j, s, err := OpenJournal(path, 50, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Drop()
	// The retry history does not matter here: no statement has a number.
	if got := dump(s.Latest()); !slices.Equal(got, want) {
		t.Fatalf("the disk holds %d lines up to %s, want %d up to %s", len(got), got[0], len(want), want[0])
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDamagedFileIsAnErrorThatNamesIt: bytes that changed, and ends that are missing,
// are found or do not matter. They never panic and never give other data.
func TestDamagedFileIsAnErrorThatNamesIt(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "data")
	j, s := mustOpen(t, path, 1000)
	for i := range 120 {
		s.SetCommitted(mustWrite(t, s, onward(s), insertAll(doc("_id", i, "text", strings.Repeat("y", 50)))))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	good, want := read(t, path), dump(s.Latest())
	rng := rand.New(rand.NewPCG(3, 4))
	broken := filepath.Join(dir, "broken")
	found := 0
	for i := range 120 {
		bad := bytes.Clone(good)
		if i%10 == 0 {
			bad = bad[:rng.IntN(len(bad))]
		} else {
			bad[rng.IntN(len(bad))] ^= byte(1 + rng.IntN(255))
		}
		_ = os.Remove(broken) // its lock may outlive a failure that left it mapped
		if err := os.WriteFile(broken, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		j, s, err := OpenJournal(broken, 1000, 1<<30)
		if err == nil {
			got := dump(s.Latest())
			_ = j.Drop()
			if !slices.Equal(got, want) && len(bad) > 0 { // an empty file is a new one
				t.Fatalf("damage %d went unnoticed", i)
			}
			continue
		}
		found++
		if !strings.Contains(err.Error(), broken+" is damaged") || !strings.Contains(err.Error(), "delete it") {
			t.Fatalf("damage %d gives %v", i, err)
		}
	}
	if found < 20 {
		t.Errorf("%d of 120 damages were found: the test damages nothing", found)
	}
}

func BenchmarkReopen(b *testing.B) {
	const n = 100_000
	path := filepath.Join(b.TempDir(), "data")
	j, s := mustOpen(b, path, 1000)
	clock := ticker(1)
	for i := range n / 1000 {
		s.SetCommitted(mustWrite(b, s, clock, func(tx *Tx) error {
			for k := range 1000 {
				if _, err := tx.Insert("t.c", doc("_id", 1000*i+k, "name", fmt.Sprint("name ", k), "text", strings.Repeat("z", 100))); err != nil {
					return err
				}
			}
			return nil
		}))
		mustSync(b, j)
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		j, s, err := OpenJournal(path, 1000, 1<<30)
		if err != nil || s.Latest().Collection("t.c").Count() != n {
			b.Fatal("reopening lost documents", err)
		}
		_ = j.Drop()
	}
}
