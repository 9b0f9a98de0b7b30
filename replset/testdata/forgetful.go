// Package bbolt: this file stands in a copy of bbolt, beneath it, when a test tells stories on disks that forget (see
// TestStoriesOnDisksThatForget). It is a disk whose power may fail: then, and when a file is closed, each page that was
// written and not synced is there, or not, or half.
package bbolt

import (
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
)

const forgetfulPage = 4096

// forgetfulFile is what is known of an open file.
type forgetfulFile struct {
	f *os.File

	mu       sync.Mutex       // guards all below
	unsynced map[int64][]byte // page -> what was there at the last sync
	steps    int              // writes and syncs since the power began to fail
	dead     bool
}

var (
	errNoPower     = errors.New("the disk has no power")
	forgetfulFiles sync.Map // *os.File -> *forgetfulFile
)

// forgetful is the WriteAt of a file.
func forgetful(f *os.File) func(b []byte, off int64) (int, error) {
	d := &forgetfulFile{f: f, unsynced: map[int64][]byte{}}
	forgetfulFiles.Store(f, d)
	return d.writeAt
}

func (d *forgetfulFile) writeAt(b []byte, off int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails() {
		return 0, errNoPower
	}
	for page := off / forgetfulPage; page*forgetfulPage < off+int64(len(b)); page++ {
		if d.unsynced[page] == nil {
			old := make([]byte, forgetfulPage)
			_, _ = d.f.ReadAt(old, page*forgetfulPage) // beyond the end there are zeros
			d.unsynced[page] = old
		}
	}
	return d.f.WriteAt(b, off)
}

// syncForgetful is fdatasync.
func syncForgetful(db *DB) error {
	v, ok := forgetfulFiles.Load(db.file)
	if !ok {
		return fdatasync(db)
	}
	d := v.(*forgetfulFile)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails() {
		return errNoPower
	}
	if err := fdatasync(db); err != nil {
		return err
	}
	clear(d.unsynced)
	return nil
}

// fails says whether the power is gone. It goes when as many writes and syncs as stand in the file's neighbour
// "<name>.power-off" have been made.
func (d *forgetfulFile) fails() bool {
	if d.dead {
		return true
	}
	text, err := os.ReadFile(d.f.Name() + ".power-off")
	if err != nil {
		return false
	}
	left, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	if d.steps++; d.steps > left {
		d.dead = true
		d.forget()
	}
	return d.dead
}

// forget loses some of what was not synced.
func (d *forgetfulFile) forget() {
	h := fnv.New64a()
	for range len(d.unsynced) + d.steps {
		_, _ = h.Write([]byte{1})
	}
	_, _ = h.Write([]byte(d.f.Name()))
	dice := rand.New(rand.NewPCG(h.Sum64(), 1))
	for page, old := range d.unsynced {
		switch dice.IntN(3) {
		case 0: // it made it
		case 1:
			_, _ = d.f.WriteAt(old, page*forgetfulPage)
		case 2: // half of it did
			_, _ = d.f.WriteAt(old[forgetfulPage/2:], page*forgetfulPage+forgetfulPage/2)
		}
	}
	clear(d.unsynced)
}

// closeForgetful is called before a file is closed.
func closeForgetful(f *os.File) {
	if v, ok := forgetfulFiles.LoadAndDelete(f); ok {
		d := v.(*forgetfulFile)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.forget()
	}
}
