package store

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync/atomic"

	"github.com/sextantdb/sextant/bson"
	"go.etcd.io/bbolt"
)

// Journal keeps a store in one file, so that it outlives its process.
//
// The file holds the collections as of a position that a majority has (the stable
// one), the oplog from there on and some way before, and notes (the vote, the
// configuration). Reading it back is loading the collections and applying the rest of
// the oplog: nothing else is replayed, whatever the file's age. Rollback never goes
// behind the stable position, so it may cut the oplog but not the collections.
//
// Every Sync is one transaction of bbolt: it writes pages that nothing refers to yet,
// syncs, writes the page that refers to them, and syncs again. A process that is
// killed, or a disk that forgets what was not synced, therefore leaves the state of
// the last Sync that returned, or of the one that was under way, and never a part.
//
// What "local" holds beside the oplog has no history: it is kept as it was at the last
// Sync. The retry history is not kept: the oplog in the file tells it, as far back as it goes.
//
// Sync and Close belong to one goroutine at a time; all else is safe for concurrent use.
type Journal struct {
	db    *bbolt.DB
	path  string
	store *Store

	stable *Snapshot // what the file's collections hold; nil: the file must be written anew
	top    *Snapshot // what was synced last
	ahead  int64     // entries synced since stable was moved
	step   int64     // so many may it be ahead
	total  int64     // entries in the file

	durable atomic.Pointer[position]
}

// position is an optime within a lineage of the store.
type position struct {
	op      OpTime
	lineage int64
}

// maxAhead bounds how many entries are applied when the file is opened.
const maxAhead = 2000

// Durable is the newest optime that is in the file and in the store's present oplog,
// or zero between a rollback and the Sync after it.
func (j *Journal) Durable() OpTime {
	p := j.durable.Load()
	if p.lineage != j.store.Latest().lineage {
		return OpTime{}
	}
	return p.op
}

// Path is the file's.
func (j *Journal) Path() string { return j.path }

// Sync brings everything that was published before the call into the file. After an
// error the file holds what it held before; the journal should not be used again.
func (j *Journal) Sync() error { return j.sync(false) }

// Close syncs, moves the collections forward as far as they may be, and closes the file.
func (j *Journal) Close() error {
	err := j.sync(true)
	return errors.Join(err, j.Drop())
}

// Drop closes the file as it is.
func (j *Journal) Drop() error {
	if err := j.db.Close(); err != nil {
		return fmt.Errorf("close the data file %s: %w", j.path, err)
	}
	return nil
}

// pair is a state that a majority has, and the newest one, of one lineage.
func (j *Journal) pair() (base, top *Snapshot) {
	for {
		lineage := j.store.Latest().lineage
		base = j.store.CommittedSnapshot()
		if top = j.store.Latest(); top.lineage == lineage {
			return base, top
		}
	}
}

// anew says that the file must be written anew: what is in it does not lead to top.
func (j *Journal) anew(top *Snapshot) bool {
	return j.stable == nil || top.lineage != j.top.lineage || !top.tells(j.stable.optime)
}

func (j *Journal) sync(move bool) error {
	base, top := j.stable, j.store.Latest()
	if top == j.top && !move {
		return nil
	}
	if move || j.ahead >= j.step || j.anew(top) {
		base, top = j.pair() // only now: the state at the commit point may have to be rebuilt
	}
	commit := j.store.Committed()
	if top.optime.Less(commit) {
		commit = top.optime
	}
	whole := j.anew(top)
	if whole && !top.tells(base.optime) {
		base = top // the oplog is too short to lead from one to the other
	}
	from, to := j.stable, j.stable
	if whole {
		from = nil
	}
	if whole || (move || j.ahead >= j.step) && j.stable.optime.Less(base.optime) {
		to = base
	}
	ahead := j.ahead
	total := j.total
	err := j.update(func(w *writer) {
		if whole {
			w.clear()
			total = w.oplog(top, OpTime{})
			w.locals(nil, top)
		} else {
			n := w.oplog(top, j.top.optime)
			ahead, total = ahead+n, total+n
			w.locals(j.top, top)
		}
		if from != to {
			w.move(from, to)
			total -= w.trim(top)
			ahead = 0
		}
		w.positions(positions{stable: to.optime, commit: commit, gone: top.gone, entries: total})
	})
	if err != nil {
		return err
	}
	j.stable, j.top, j.ahead, j.total = to, top, ahead, total
	j.durable.Store(&position{op: top.optime, lineage: top.lineage})
	return nil
}

// Note is what SetNote put under that name, or nil.
func (j *Journal) Note(name string) (doc bson.Raw) {
	_ = j.db.View(func(tx *bbolt.Tx) error {
		if v, ok := unseal(notesBucket, []byte(name), tx.Bucket(notesBucket).Get([]byte(name))); ok {
			doc = append(bson.Raw(nil), v...)
		}
		return nil
	})
	return doc
}

// SetNote keeps a small document beside the data. It is on the disk when SetNote returns.
func (j *Journal) SetNote(name string, doc bson.Raw) error {
	return j.update(func(w *writer) { w.note(name, doc) })
}

// update runs one transaction on the file.
func (j *Journal) update(fn func(w *writer)) (err error) {
	defer guard(&err, j.path)()
	err = j.db.Update(func(tx *bbolt.Tx) error {
		w := &writer{tx: tx}
		fn(w)
		return w.err
	})
	if err != nil {
		err = fmt.Errorf("write the data file %s: %w", j.path, err)
	}
	return err
}

// guard makes an error of what bbolt does about pages that cannot be right: it panics,
// or reads memory beyond the end of a file that was cut short.
func guard(err *error, path string) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			*err = damaged(path, fmt.Errorf("%v", p))
		}
	}
}

// damage is what was found wrong with a file.
type damage struct {
	path string
	why  error
}

func damaged(path string, why error) error {
	if errors.As(why, new(*damage)) {
		return why
	}
	return &damage{path, why}
}

func (d *damage) Unwrap() error { return d.why }

func (d *damage) Error() string {
	return fmt.Sprintf("the data file %s is damaged (%v): put a copy of it back, or delete it: the member then starts "+
		"without data and copies all from another member, if there is one", d.path, d.why)
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
