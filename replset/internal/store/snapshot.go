package store

import (
	"iter"
	"sort"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/tidwall/btree"
)

// treeDegree is lower than the library's default of 32: every write copies one node a
// level, and smaller nodes make roots that are kept cheaper.
const treeDegree = 8

// RecordID numbers the records of a collection in insertion order: natural order.
type RecordID int64

// Snapshot is the whole data of a member at one moment. It is immutable and needs
// no lock.
type Snapshot struct {
	optime  OpTime
	colls   *btree.Map[string, *Coll] // by namespace
	retry   *btree.Map[string, *sessionRecord]
	looked  int      // how many sessions there were when those that had ended were forgotten: see forget
	gone    RecordID // of the oplog: entries up to here may have been trimmed
	lineage int64    // how often the store before it went back or was replaced: of one lineage, later roots only add to earlier ones
}

// Coll is one collection of a snapshot, or a view (Options().ViewOn is set, no records).
type Coll struct {
	ns        string
	uuid      [16]byte
	opts      CollOptions
	records   *btree.Map[RecordID, bson.Raw]
	next      RecordID // the id of the next record, greater than every id ever given
	size      int64    // bytes of all records
	indexes   []*Index // the _id index first, if there is one
	validator *query.Filter
}

func emptySnapshot(entries, size int64) *Snapshot {
	sn := &Snapshot{colls: new(btree.Map[string, *Coll]), retry: new(btree.Map[string, *sessionRecord])}
	oplog := newColl(OplogNS, [16]byte{}, CollOptions{Capped: true, Size: size, Max: entries, NoIDIndex: true})
	sn.colls.Set(OplogNS, oplog)
	return sn
}

func newColl(ns string, uuid [16]byte, opts CollOptions) *Coll {
	c := &Coll{ns: ns, uuid: uuid, opts: opts, records: btree.NewMap[RecordID, bson.Raw](treeDegree), next: 1}
	if !opts.NoIDIndex && opts.ViewOn == "" {
		c.indexes = []*Index{newIndex(idIndexSpec(opts.Collation))}
	}
	return c
}

// copyTrees is a collection that may be changed while c stays as it is.
func (c *Coll) copyTrees() *Coll {
	d := *c
	d.records = c.records.Copy()
	d.indexes = make([]*Index, len(c.indexes))
	for i, ix := range c.indexes {
		d.indexes[i] = ix.copyTree()
	}
	return &d
}

// detach is a snapshot that shares no tree head with sn, so that two stores may each
// go on from it. The caller holds the lock of the store that sn belongs to.
func (sn *Snapshot) detach() *Snapshot {
	d := &Snapshot{optime: sn.optime, colls: new(btree.Map[string, *Coll]), retry: new(btree.Map[string, *sessionRecord]), looked: sn.looked, gone: sn.gone}
	sn.colls.Scan(func(ns string, c *Coll) bool {
		d.colls.Set(ns, c.copyTrees())
		return true
	})
	sn.retry.Scan(func(key string, r *sessionRecord) bool {
		d.retry.Set(key, r.copyTree())
		return true
	})
	return d
}

// With is sn with one collection more (or another one of that name), which holds one document: what a member shows and
// does not keep.
func (sn *Snapshot) With(ns string, doc bson.Raw) (*Snapshot, error) {
	c := newColl(ns, [16]byte{}, CollOptions{})
	if _, err := c.insert(doc); err != nil {
		return nil, err
	}
	d := *sn
	d.colls = new(btree.Map[string, *Coll])
	sn.colls.Scan(func(ns string, c *Coll) bool {
		d.colls.Set(ns, c)
		return true
	})
	d.colls.Set(ns, c)
	return &d, nil
}

// OpTime is the newest oplog entry's.
func (sn *Snapshot) OpTime() OpTime { return sn.optime }

// Collection returns the collection or view of that namespace ("db.coll"), or nil.
func (sn *Snapshot) Collection(ns string) *Coll {
	c, _ := sn.colls.Get(ns)
	return c
}

// Collections returns the collections and views of a database, ordered by name.
func (sn *Snapshot) Collections(db string) []*Coll {
	var out []*Coll
	sn.colls.Ascend(db+".", func(ns string, c *Coll) bool {
		if !strings.HasPrefix(ns, db+".") {
			return false
		}
		out = append(out, c)
		return true
	})
	return out
}

// Databases returns the names of the databases that hold a collection, in order.
func (sn *Snapshot) Databases() []string {
	seen := map[string]bool{}
	var out []string
	sn.colls.Scan(func(ns string, _ *Coll) bool {
		if db := DatabaseOf(ns); !seen[db] {
			seen[db] = true
			out = append(out, db)
		}
		return true
	})
	sort.Strings(out)
	return out
}

// DatabaseOf is the part of a namespace before its first dot.
func DatabaseOf(ns string) string {
	db, _, _ := strings.Cut(ns, ".")
	return db
}

// CollectionOf is the part of a namespace after its first dot.
func CollectionOf(ns string) string {
	_, coll, _ := strings.Cut(ns, ".")
	return coll
}

// NS is the namespace, "db.coll".
func (c *Coll) NS() string { return c.ns }

// Name is the namespace without the database.
func (c *Coll) Name() string { return CollectionOf(c.ns) }

// UUID identifies the collection on every member and across renames. It is zero for
// views and for what is not replicated.
func (c *Coll) UUID() [16]byte { return c.uuid }

// Options are those given at creation.
func (c *Coll) Options() CollOptions { return c.opts }

// Indexes returns the indexes, the _id index first. The slice must not be changed.
func (c *Coll) Indexes() []*Index { return c.indexes }

// Index returns the index of that name, or nil.
func (c *Coll) Index(name string) *Index {
	for _, ix := range c.indexes {
		if ix.spec.Name == name {
			return ix
		}
	}
	return nil
}

// Count is the number of documents.
func (c *Coll) Count() int64 { return int64(c.records.Len()) }

// Size is the number of bytes of all documents.
func (c *Coll) Size() int64 { return c.size }

// Get returns the document of a record.
func (c *Coll) Get(id RecordID) (bson.Raw, bool) { return c.records.Get(id) }

// LastRecord is the id of the newest record, 0 if there is none.
func (c *Coll) LastRecord() RecordID {
	id, _, _ := c.records.Max()
	return id
}

// FirstRecord is the id of the oldest record, 0 if there is none.
func (c *Coll) FirstRecord() RecordID {
	id, _, _ := c.records.Min()
	return id
}

// Records yields the documents in natural order, from the record from on (0: all).
func (c *Coll) Records(from RecordID) iter.Seq2[RecordID, bson.Raw] {
	return func(yield func(RecordID, bson.Raw) bool) { c.records.Ascend(from, yield) }
}

// RecordsReverse yields the documents newest first.
func (c *Coll) RecordsReverse() iter.Seq2[RecordID, bson.Raw] {
	return func(yield func(RecordID, bson.Raw) bool) { c.records.Reverse(yield) }
}

// FindID returns the document with that _id.
func (c *Coll) FindID(id bson.RawValue) (RecordID, bson.Raw, bool) {
	if len(c.indexes) == 0 || !c.indexes[0].IsID() {
		return 0, nil, false
	}
	rid, ok := c.indexes[0].lookup([]bson.RawValue{id})
	if !ok {
		return 0, nil, false
	}
	doc, ok := c.records.Get(rid)
	return rid, doc, ok
}
