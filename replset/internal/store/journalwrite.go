package store

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/sextantdb/sextant/bson"
	"go.etcd.io/bbolt"
)

// The file's layout. Every value is preceded by its checksum: bbolt has one for its
// two first pages only.
//
//	notes        name -> document; "positions" is the journal's own
//	oplog        timestamp, 8 bytes big endian -> entry
//	collections  namespace -> bucket: "about" -> options and indexes; "records" -> bucket: record id, 8 bytes -> document
var (
	notesBucket = []byte("notes")
	oplogBucket = []byte("oplog")
	collsBucket = []byte("collections")
	recordsKey  = []byte("records")
	aboutKey    = []byte("about")
)

// positionsNote says what the file holds.
const positionsNote = "positions"

// dense fills pages that are written in ascending order.
const dense = 0.95

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum is the checksum of a value at its place: the name of the bucket, or of the
// collection, and the key.
func sum(scope, key, value []byte) uint32 {
	return crc32.Update(crc32.Update(crc32.Checksum(scope, castagnoli), castagnoli, key), castagnoli, value)
}

func seal(scope, key, value []byte) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(value)), sum(scope, key, value)), value...)
}

func unseal(scope, key, sealed []byte) (value []byte, ok bool) {
	if len(sealed) < 4 {
		return nil, false
	}
	return sealed[4:], binary.BigEndian.Uint32(sealed) == sum(scope, key, sealed[4:])
}

func (id RecordID) key() []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }

// writer writes one transaction and keeps the first error.
type writer struct {
	tx  *bbolt.Tx
	err error
}

func (w *writer) put(b *bbolt.Bucket, scope, key, value []byte) {
	if w.err == nil {
		w.err = b.Put(key, seal(scope, key, value))
	}
}

func (w *writer) delete(b *bbolt.Bucket, key []byte) {
	if w.err == nil {
		w.err = b.Delete(key)
	}
}

// bucket is a bucket below parent, made where there is none; nil after an error.
func (w *writer) bucket(parent *bbolt.Bucket, name []byte) *bbolt.Bucket {
	if w.err != nil {
		return nil
	}
	b, err := parent.CreateBucketIfNotExists(name)
	w.err = err
	if b != nil {
		b.FillPercent = dense
	}
	return b
}

// clear empties the file, save the notes.
func (w *writer) clear() {
	for _, name := range [][]byte{oplogBucket, collsBucket} {
		if w.err != nil {
			return
		}
		if w.tx.Bucket(name) != nil {
			if w.err = w.tx.DeleteBucket(name); w.err != nil {
				return
			}
		}
		_, w.err = w.tx.CreateBucket(name)
	}
}

// oplog appends the entries after op and counts them.
func (w *writer) oplog(top *Snapshot, op OpTime) (n int64) {
	b := w.tx.Bucket(oplogBucket)
	if w.err != nil {
		return 0
	}
	b.FillPercent = dense
	for rid, entry := range top.Collection(OplogNS).Records(op.recordID() + 1) {
		w.put(b, oplogBucket, rid.key(), entry)
		n++
	}
	return n
}

// trim removes entries that the oplog of top no longer has, and counts them.
func (w *writer) trim(top *Snapshot) (n int64) {
	if w.err != nil {
		return 0
	}
	return w.deleteBefore(w.tx.Bucket(oplogBucket), top.Collection(OplogNS).FirstRecord())
}

func (w *writer) deleteBefore(b *bbolt.Bucket, first RecordID) (n int64) {
	end := first.key()
	var old [][]byte // a cursor must not be moved over what is being deleted
	c := b.Cursor()
	for k, _ := c.First(); k != nil && bytes.Compare(k, end) < 0; k, _ = c.Next() {
		old = append(old, bytes.Clone(k))
	}
	for _, k := range old {
		w.delete(b, k)
	}
	return int64(len(old))
}

func (w *writer) note(name string, doc bson.Raw) {
	w.put(w.tx.Bucket(notesBucket), notesBucket, []byte(name), doc)
}

// isLocal: what has no history.
func isLocal(ns string) bool { return DatabaseOf(ns) == "local" }

// locals writes the collections of "local" that differ, except the oplog.
func (w *writer) locals(before, after *Snapshot) {
	w.dropMissing(before, after, isLocal)
	for _, c := range after.Collections("local") {
		if c.ns != OplogNS && (before == nil || before.Collection(c.ns) != c) {
			w.whole(c)
		}
	}
}

// move brings the collections from one state to a later one; from nothing when from is nil.
func (w *writer) move(from, to *Snapshot) {
	replicated := func(ns string) bool { return !isLocal(ns) }
	w.dropMissing(from, to, replicated)
	touched := touchedIDs(from, to)
	to.colls.Scan(func(ns string, c *Coll) bool {
		var old *Coll
		if from != nil {
			old = from.Collection(ns)
		}
		switch {
		case isLocal(ns) || old == c:
		case old == nil || old.uuid != c.uuid || len(c.indexes) == 0:
			w.whole(c)
		default:
			w.partly(old, c, touched[ns])
		}
		return w.err == nil
	})
}

// dropMissing removes collections that a later state no longer has.
func (w *writer) dropMissing(from, to *Snapshot, which func(ns string) bool) {
	if from == nil {
		return
	}
	b := w.tx.Bucket(collsBucket)
	from.colls.Scan(func(ns string, _ *Coll) bool {
		if w.err == nil && which(ns) && ns != OplogNS && to.Collection(ns) == nil && b.Bucket([]byte(ns)) != nil {
			w.err = b.DeleteBucket([]byte(ns))
		}
		return w.err == nil
	})
}

// touchedIDs are the _ids that the entries between two states name, by namespace.
// Entries of commands need no look: a collection that one has made has a new uuid.
func touchedIDs(from, to *Snapshot) map[string]map[string]bson.RawValue {
	touched := map[string]map[string]bson.RawValue{}
	if from == nil {
		return touched
	}
	for entry := range to.OplogAfter(from.optime) {
		op, _ := entry.Lookup("op").StringValueOK()
		id := entry.Lookup("o", "_id")
		switch op {
		case "i", "d":
		case "u":
			id = entry.Lookup("o2", "_id")
		default:
			continue
		}
		ns, _ := entry.Lookup("ns").StringValueOK()
		if touched[ns] == nil {
			touched[ns] = map[string]bson.RawValue{}
		}
		touched[ns][string(id.Type)+string(id.Value)] = id
	}
	return touched
}

// whole writes a collection in place of whatever bears its name.
func (w *writer) whole(c *Coll) {
	colls := w.tx.Bucket(collsBucket)
	if w.err == nil && colls.Bucket([]byte(c.ns)) != nil {
		w.err = colls.DeleteBucket([]byte(c.ns))
	}
	b := w.bucket(colls, []byte(c.ns))
	w.about(b, c)
	records := w.bucket(b, recordsKey)
	for rid, doc := range c.Records(0) {
		w.put(records, []byte(c.ns), rid.key(), doc)
	}
}

// partly writes what has changed of a collection.
func (w *writer) partly(old, c *Coll, ids map[string]bson.RawValue) {
	b := w.bucket(w.tx.Bucket(collsBucket), []byte(c.ns))
	w.about(b, c)
	records := w.bucket(b, recordsKey)
	for _, id := range ids {
		before, _, had := old.FindID(id)
		now, doc, has := c.FindID(id)
		if had && (!has || before != now) {
			w.delete(records, before.key())
		}
		if has {
			w.put(records, []byte(c.ns), now.key(), doc)
		}
	}
	if c.opts.Capped && w.err == nil {
		w.deleteBefore(records, c.FirstRecord())
	}
}

func (w *writer) about(b *bbolt.Bucket, c *Coll) {
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendBinary(dst, "uuid", 4, c.uuid[:])
	dst = bson.AppendDocument(dst, "options", c.opts.Document())
	dst = bson.AppendInt64(dst, "next", int64(c.next))
	dst = bson.AppendInt64(dst, "count", c.Count())
	dst, indexes := bson.BeginDocumentElement(dst, "indexes")
	for _, ix := range c.indexes {
		dst = bson.AppendDocument(dst, ix.spec.Name, ix.spec.Doc)
	}
	dst = bson.EndDocument(dst, indexes)
	w.put(b, []byte(c.ns), aboutKey, bson.EndDocument(dst, start))
}

// positions say what the file holds.
type positions struct {
	stable OpTime   // of the collections
	commit OpTime   // the newest that a majority is known to have
	gone   RecordID // see Snapshot

	entries, colls int64 // how many there are, so that none can get lost
}

func (w *writer) positions(p positions) {
	if w.err == nil {
		w.err = w.tx.Bucket(collsBucket).ForEachBucket(func([]byte) error { p.colls++; return nil })
	}
	dst, start := bson.BeginDocument(nil)
	dst = p.stable.Append(dst, "stable")
	dst = p.commit.Append(dst, "commit")
	dst = bson.AppendInt64(dst, "gone", int64(p.gone))
	dst = bson.AppendInt64(dst, "entries", p.entries)
	dst = bson.AppendInt64(dst, "collections", p.colls)
	w.note(positionsNote, bson.EndDocument(dst, start))
}

func readPositions(doc bson.Raw) (p positions) {
	stable, _ := doc.Lookup("stable").DocumentOK()
	commit, _ := doc.Lookup("commit").DocumentOK()
	gone, _ := doc.Lookup("gone").AsInt64OK()
	p = positions{stable: EntryOpTime(stable), commit: EntryOpTime(commit), gone: RecordID(gone)}
	p.entries, _ = doc.Lookup("entries").AsInt64OK()
	p.colls, _ = doc.Lookup("collections").AsInt64OK()
	return p
}
