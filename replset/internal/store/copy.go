package store

import (
	"fmt"

	"github.com/sextantdb/sextant/bson"
)

// Copy is a store that is filled with another member's data, as that one had it at one moment. It is invisible until
// Adopt puts it in the place of a store. It belongs to one goroutine.
type Copy struct {
	tx    *Tx
	first RecordID // of the oplog
}

// NewCopy is an empty copy with the oplog's bounds of NewSized.
func NewCopy(entries, size int64) *Copy {
	return &Copy{tx: newTx(emptySnapshot(entries, size), nil)}
}

// Entries appends oplog entries, oldest first, and does not apply them: the retry history comes from them.
func (c *Copy) Entries(entries []bson.Raw) error {
	for _, entry := range entries {
		change := readChange(entry)
		if err := c.tx.appendEntry(change); err != nil {
			return err
		}
		if c.first == 0 {
			c.first = change.at.recordID()
		}
	}
	return nil
}

// Collection makes a collection or view, empty, with all its indexes. next is the id of the next record that the source
// would give.
func (c *Copy) Collection(ns string, opts CollOptions, uuid [16]byte, indexes []IndexSpec, next RecordID) error {
	if c.tx.root.Collection(ns) != nil {
		return fmt.Errorf("the source listed %s twice", ns)
	}
	coll := newColl(ns, uuid, opts)
	coll.indexes, coll.next = nil, max(next, 1)
	for _, spec := range indexes {
		coll.indexes = append(coll.indexes, newIndex(spec))
	}
	if err := coll.compile(); err != nil {
		return err
	}
	c.tx.put(coll)
	return nil
}

// Record adds a document under the id that it has at the source: ids come in ascending order.
func (c *Copy) Record(ns string, rid RecordID, doc bson.Raw) error {
	coll := c.tx.own(ns)
	if coll == nil {
		return noCollection(ns)
	}
	if last := coll.LastRecord(); rid <= last {
		return fmt.Errorf("%s: record %d came after record %d", ns, rid, last)
	}
	coll.next = max(coll.next, rid+1)
	return coll.load(rid, doc)
}

// Done is the store that was filled. The copy is over.
func (c *Copy) Done() (*Store, error) {
	root := c.tx.commit()
	if root.optime.IsZero() {
		return nil, fmt.Errorf("the source has no oplog")
	}
	root.gone = max(root.gone, c.first-1)
	s := &Store{}
	s.install(root)
	return s, nil
}

// Next is the id of the next record.
func (c *Coll) Next() RecordID { return c.next }

// keepLocal gives a root what is this member's own: the collections of "local", save the oplog.
func (sn *Snapshot) keepLocal(from *Snapshot) {
	for _, c := range from.Collections("local") {
		if c.ns != OplogNS {
			sn.colls.Set(c.ns, c)
		}
	}
}

// Lost is a change that a rollback takes back.
type Lost struct {
	NS     string
	Op     string        // i u d c, as logged
	ID     bson.RawValue // the document's; none for a command
	Doc    bson.Raw      // the document as it is before the rollback, nil if it had been deleted; a command's own document
	OpTime OpTime        // of the newest entry about it
}

// LostAfter are the changes after op, one for each document, by the order of their newest entries.
func (sn *Snapshot) LostAfter(op OpTime) []Lost {
	type key struct{ ns, id string }
	newest := map[key]OpTime{}
	about := func(entry bson.Raw) (l Lost, k key, ok bool) {
		l.OpTime = EntryOpTime(entry)
		l.Op, _ = entry.Lookup("op").StringValueOK()
		l.NS, _ = entry.Lookup("ns").StringValueOK()
		l.Doc, _ = entry.Lookup("o").DocumentOK()
		switch l.Op {
		case "i", "d":
			l.ID = l.Doc.Lookup("_id")
		case "u":
			l.ID = entry.Lookup("o2", "_id")
		case "c":
			return l, key{l.NS, l.OpTime.String()}, true
		default:
			return l, k, false
		}
		return l, key{l.NS, string(rune(l.ID.Type)) + string(l.ID.Value)}, true
	}
	for entry := range sn.OplogAfter(op) {
		if l, k, ok := about(entry); ok {
			newest[k] = l.OpTime
		}
	}
	out := make([]Lost, 0, len(newest))
	for entry := range sn.OplogAfter(op) {
		l, k, ok := about(entry)
		if !ok || newest[k] != l.OpTime {
			continue
		}
		switch {
		case l.Op == "d":
			l.Doc = nil
		case l.Op == "c":
		default:
			if c := sn.Collection(l.NS); c != nil {
				if _, doc, ok := c.FindID(l.ID); ok {
					l.Doc = doc
				}
			}
		}
		out = append(out, l)
	}
	return out
}
