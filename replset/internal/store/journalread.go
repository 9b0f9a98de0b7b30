package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sextantdb/sextant/bson"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// OpenJournal opens the file at path, makes it where there is none, and returns the
// store as it was at the last Sync. The oplog's bounds are those of NewSized; they may
// differ from what they were. The error names the file and, where somebody has it open
// or it is damaged, what to do.
func OpenJournal(path string, entries, size int64) (*Journal, *Store, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := create(path); err != nil {
			return nil, nil, fmt.Errorf("make the data file %s: %w", path, err)
		}
	}
	db, err := openFile(path)
	if err != nil {
		return nil, nil, err
	}
	j := &Journal{db: db, path: path, step: max(min(maxAhead, entries/4), 1)}
	if err := j.load(entries, size); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return j, j.store, nil
}

// create makes an empty file. It gets its name when it is complete, so that a crash
// leaves no half of one.
func create(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	half := path + ".new"
	if err := os.Remove(half); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	db, err := openFile(half)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		w := &writer{tx: tx}
		w.clear()
		if _, err := tx.CreateBucket(notesBucket); err != nil {
			return err
		}
		w.positions(positions{})
		return w.err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := os.Rename(half, path); err != nil {
		return err
	}
	return errors.Join(syncDir(dir), syncDir(filepath.Dir(dir)))
}

func openFile(path string) (db *bbolt.DB, err error) {
	var file *os.File
	o := bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType, NoStatistics: true}
	o.OpenFile = func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
		file, err = os.OpenFile(name, flag, mode)
		return file, err
	}
	func() {
		defer guard(&err, path)()
		db, err = bbolt.Open(path, 0o600, &o)
	}()
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("the data file %s is in use: end the other process, or take another folder", path)
	case errors.As(err, new(*fs.PathError)):
		return nil, fmt.Errorf("open the data file %s: %w", path, err)
	}
	if file != nil {
		_ = file.Close() // whatever went wrong, the lock on the file shall go
	}
	return nil, damaged(path, err)
}

// load reads the file into a new store.
func (j *Journal) load(entries, size int64) (err error) {
	defer guard(&err, j.path)()
	l := &loader{root: emptySnapshot(entries, size)}
	if err := j.db.View(l.read); err != nil {
		return damaged(j.path, err)
	}
	j.store = &Store{}
	j.store.install(l.root)
	j.stable = j.store.Latest()
	j.store.SetCommitted(l.at.commit) // before the rest is applied: what is newer must stay in the oplog
	if _, err := j.store.ApplyOplog(l.ahead); err != nil {
		return damaged(j.path, err)
	}
	j.top, j.ahead, j.total = j.store.Latest(), int64(len(l.ahead)), l.at.entries
	j.durable.Store(&position{op: j.top.optime})
	return nil
}

// loader reads one file.
type loader struct {
	root  *Snapshot
	at    positions
	ahead []bson.Raw // the entries after the stable position
}

func (l *loader) read(tx *bbolt.Tx) error {
	notes, oplog, colls := tx.Bucket(notesBucket), tx.Bucket(oplogBucket), tx.Bucket(collsBucket)
	if notes == nil || oplog == nil || colls == nil {
		return errors.New("it is not a sextant data file")
	}
	at, ok := unseal(notesBucket, []byte(positionsNote), notes.Get([]byte(positionsNote)))
	if !ok {
		return errors.New("the checksum of its positions is wrong")
	}
	l.at = readPositions(at)
	l.root.gone = l.at.gone
	if err := l.oplog(oplog); err != nil {
		return err
	}
	n := int64(0)
	err := colls.ForEachBucket(func(ns []byte) error {
		n++
		if err := l.collection(string(ns), colls.Bucket(ns)); err != nil {
			return fmt.Errorf("collection %s: %w", ns, err)
		}
		return nil
	})
	if err == nil && n != l.at.colls {
		err = fmt.Errorf("it has %d collections of %d", n, l.at.colls)
	}
	return err
}

// oplog puts the entries up to the stable position into the root, where the retry
// history comes from them, and keeps the others for later.
func (l *loader) oplog(b *bbolt.Bucket) error {
	tx, n := newTx(l.root, nil), int64(0)
	err := b.ForEach(func(k, sealed []byte) error {
		n++
		v, ok := unseal(oplogBucket, k, sealed)
		if !ok || len(k) != 8 {
			return fmt.Errorf("the checksum of oplog entry %x is wrong", k)
		}
		entry := append(bson.Raw(nil), v...)
		c := readChange(entry)
		if l.at.stable.Less(c.at) {
			l.ahead = append(l.ahead, entry)
			return nil
		}
		return tx.appendEntry(c)
	})
	l.root = tx.commit()
	l.root.optime = l.at.stable // also when the oplog begins after it
	if err == nil && n != l.at.entries {
		err = fmt.Errorf("it has %d oplog entries of %d", n, l.at.entries)
	}
	return err
}

func (l *loader) collection(ns string, b *bbolt.Bucket) error {
	v, ok := unseal([]byte(ns), aboutKey, b.Get(aboutKey))
	records := b.Bucket(recordsKey)
	if !ok || records == nil {
		return errors.New("the checksum of its options is wrong")
	}
	about := append(bson.Raw(nil), v...)
	c, err := readAbout(ns, about)
	if err != nil {
		return err
	}
	err = records.ForEach(func(k, sealed []byte) error {
		doc, ok := unseal([]byte(ns), k, sealed)
		if !ok || len(k) != 8 {
			return fmt.Errorf("the checksum of record %x is wrong", k)
		}
		return c.load(RecordID(binary.BigEndian.Uint64(k)), append(bson.Raw(nil), doc...))
	})
	l.root.colls.Set(ns, c)
	if n, _ := about.Lookup("count").AsInt64OK(); err == nil && n != c.Count() {
		err = fmt.Errorf("it has %d documents of %d", c.Count(), n)
	}
	return err
}

// readAbout makes an empty collection of what the file says about it.
func readAbout(ns string, about bson.Raw) (*Coll, error) {
	options, _ := about.Lookup("options").DocumentOK()
	next, _ := about.Lookup("next").AsInt64OK()
	c := newColl(ns, [16]byte{}, ReadCollOptions(options))
	if _, uuid, ok := about.Lookup("uuid").BinaryOK(); ok {
		copy(c.uuid[:], uuid)
	}
	c.next, c.indexes = RecordID(next), nil
	indexes, _ := about.Lookup("indexes").DocumentOK()
	for name, v := range indexes.All() {
		doc, _ := v.DocumentOK()
		spec, err := ReadIndexSpec(doc)
		if err != nil {
			return nil, fmt.Errorf("index %s: %w", name, err)
		}
		c.indexes = append(c.indexes, newIndex(spec))
	}
	return c, c.compile()
}

// load adds a record that was checked when it was written.
func (c *Coll) load(rid RecordID, doc bson.Raw) error {
	for _, ix := range c.indexes {
		entries, multikey, err := ix.keysOf(rid, doc)
		if err != nil {
			return fmt.Errorf("record %d: %w", rid, err)
		}
		ix.add(entries, multikey)
	}
	c.records.Load(rid, doc)
	c.size += int64(len(doc))
	return nil
}
