package store

import (
	"fmt"
	"iter"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/tidwall/btree"
)

// IndexSpec describes an index. Build it with ParseIndexSpec.
type IndexSpec struct {
	Name      string
	Key       bson.Raw           // the key pattern as given
	Fields    []query.IndexField // the same, parsed
	Unique    bool
	Sparse    bool
	Hidden    bool
	Partial   bson.Raw // partialFilterExpression, nil if none
	Doc       bson.Raw // as listIndexes shows it: {v, key, name, options...}
	Collation bson.Raw // with every default; nil compares strings by bytes

	partial      *query.Filter
	coll         *value.Collator
	ownCollation bool
}

// Index is one index of a collection of a snapshot.
type Index struct {
	spec     IndexSpec
	tree     *btree.BTreeG[entry]
	multikey bool // some document has more than one key, or a key out of an array
}

// entry is one key of an index. Entries of equal values are ordered by record. edge
// makes a bound of a prefix: -1 is before, +1 after every entry that begins with vals.
type entry struct {
	vals []bson.RawValue
	rid  RecordID
	edge int8
}

func newIndex(spec IndexSpec) *Index {
	// The store orders all access itself (one writer, published trees are never
	// changed), so the tree's own lock is off.
	less := entryLess(&spec)
	return &Index{spec: spec, tree: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true, Degree: treeDegree})}
}

func (ix *Index) copyTree() *Index {
	c := *ix
	c.tree = ix.tree.Copy()
	return &c
}

func entryLess(spec *IndexSpec) func(a, b entry) bool {
	return func(a, b entry) bool {
		if c := spec.compareKeys(a.vals, b.vals); c != 0 {
			return c < 0
		}
		if a.edge != b.edge {
			return a.edge < b.edge
		}
		return a.rid < b.rid
	}
}

// compareKeys compares the values that both keys have.
func (s *IndexSpec) compareKeys(a, b []bson.RawValue) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		c := value.CompareWith(a[i], b[i], s.coll)
		if c == 0 {
			continue
		}
		if s.Fields[i].Descending {
			return -c
		}
		return c
	}
	return 0
}

// Spec describes the index.
func (ix *Index) Spec() IndexSpec { return ix.spec }

// Multikey reports whether some document has more than one key in the index, or a
// key out of an array.
func (ix *Index) Multikey() bool { return ix.multikey }

// Len is the number of keys.
func (ix *Index) Len() int { return ix.tree.Len() }

// IsID reports whether this is the index of _id that every collection has.
func (ix *Index) IsID() bool { return ix.spec.Name == idIndexName }

// keysOf are the entries that doc has in the index: none when it is sparse and no
// field is there, or partial and the document is not in the part.
func (ix *Index) keysOf(rid RecordID, doc bson.Raw) (entries []entry, multikey bool, err error) {
	if ix.spec.partial != nil && !ix.spec.partial.Match(doc) {
		return nil, false, nil
	}
	if ix.spec.Sparse && !hasAnyPath(ix.spec.Fields, doc) {
		return nil, false, nil
	}
	keys, multikey, err := query.IndexKeys(ix.spec.Fields, doc)
	if err != nil {
		return nil, false, err
	}
	entries = make([]entry, len(keys))
	for i, vals := range keys {
		entries[i] = entry{vals: vals, rid: rid}
	}
	return entries, multikey, nil
}

// lookup returns the first record that has exactly these key values.
func (ix *Index) lookup(vals []bson.RawValue) (rid RecordID, ok bool) {
	ix.tree.Ascend(entry{vals: vals, edge: -1}, func(e entry) bool {
		if ix.spec.compareKeys(e.vals, vals) == 0 {
			rid, ok = e.rid, true
		}
		return false
	})
	return rid, ok
}

// clash returns the key by which entries would break the index's uniqueness, or nil.
func (ix *Index) clash(rid RecordID, entries []entry) []bson.RawValue {
	if !ix.spec.Unique {
		return nil
	}
	for _, e := range entries {
		found := false
		ix.tree.Ascend(entry{vals: e.vals, edge: -1}, func(other entry) bool {
			if ix.spec.compareKeys(other.vals, e.vals) != 0 {
				return false
			}
			found = other.rid != rid
			return !found
		})
		if found {
			return e.vals
		}
	}
	return nil
}

func (ix *Index) add(entries []entry, multikey bool) {
	for _, e := range entries {
		ix.tree.Set(e)
	}
	ix.multikey = ix.multikey || multikey
}

func (ix *Index) remove(entries []entry) {
	for _, e := range entries {
		ix.tree.Delete(e)
	}
}

// scan yields the records of the entries from lo to hi, backwards when reverse.
func (ix *Index) scan(lo, hi entry, reverse bool) iter.Seq[entry] {
	less := entryLess(&ix.spec)
	return func(yield func(entry) bool) {
		if reverse {
			ix.tree.Descend(hi, func(e entry) bool { return !less(e, lo) && yield(e) })
			return
		}
		ix.tree.Ascend(lo, func(e entry) bool { return !less(hi, e) && yield(e) })
	}
}

// hasAnyPath reports whether doc has at least one of the indexed paths.
func hasAnyPath(fields []query.IndexField, doc bson.Raw) bool {
	for _, f := range fields {
		if pathExists(doc, f.Path) {
			return true
		}
	}
	return false
}

// Validate compares every index with the documents. It returns what is wrong, in
// words, and an empty list when nothing is.
func (c *Coll) Validate() []string {
	faults := []string{}
	for _, ix := range c.indexes {
		want := 0
		for rid, doc := range c.Records(0) {
			entries, _, err := ix.keysOf(rid, doc)
			if err != nil {
				faults = append(faults, err.Error())
				continue
			}
			want += len(entries)
			for _, e := range entries {
				if _, ok := ix.tree.Get(e); !ok {
					faults = append(faults, "index "+ix.spec.Name+" misses "+keyText(e.vals))
				}
			}
		}
		if want != ix.tree.Len() {
			faults = append(faults, fmt.Sprintf("index %s has %d keys, its documents have %d", ix.spec.Name, ix.tree.Len(), want))
		}
	}
	return faults
}
