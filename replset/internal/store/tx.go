package store

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"unicode/utf8"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Tx is one write transaction. Each of its methods either does all it says or, with an
// error, nothing, so that the transaction may go on after a failed statement.
type Tx struct {
	root    *Snapshot // private until commit
	clock   Clock     // nil: nothing is logged
	owned   map[string]bool
	changed bool
	stmt    Statement
	bypass  bool
	lastOp  OpTime   // of the newest entry that this transaction logged
	held    RecordID // of the oplog: from here on it is not trimmed; 0: all may be
}

func newTx(base *Snapshot, clock Clock) *Tx {
	root := &Snapshot{optime: base.optime, colls: base.colls.Copy(), retry: base.retry.Copy(), looked: base.looked, gone: base.gone, lineage: base.lineage}
	return &Tx{root: root, clock: clock, owned: map[string]bool{}}
}

// commit hands out the new root; the transaction is over.
func (tx *Tx) commit() *Snapshot { return tx.root }

// Snapshot is the data as this transaction has changed it so far. It is valid until
// the transaction's next change; collect what is to be changed before changing it.
func (tx *Tx) Snapshot() *Snapshot { return tx.root }

// Collection is Snapshot().Collection(ns).
func (tx *Tx) Collection(ns string) *Coll { return tx.root.Collection(ns) }

// BypassValidation turns the collections' validators off for the rest of the transaction.
func (tx *Tx) BypassValidation() { tx.bypass = true }

// own returns a collection that this transaction may change, or nil.
func (tx *Tx) own(ns string) *Coll {
	c := tx.root.Collection(ns)
	if c == nil || tx.owned[ns] {
		return c
	}
	c = c.copyTrees()
	tx.put(c)
	return c
}

// put makes c, which the transaction owns, the collection of its namespace.
func (tx *Tx) put(c *Coll) {
	tx.root.colls.Set(c.ns, c)
	tx.owned[c.ns] = true
	tx.changed = true
}

func (tx *Tx) forget(ns string) {
	tx.root.colls.Delete(ns)
	delete(tx.owned, ns)
	tx.changed = true
}

// Insert adds a document, which PrepareInsert has made ready, creating the collection
// where there is none. Errors: 11000 duplicate key, 121 failed validation.
func (tx *Tx) Insert(ns string, doc bson.Raw) (RecordID, error) {
	if tx.root.Collection(ns) == nil {
		if err := tx.Create(ns, CollOptions{}); err != nil {
			return 0, err
		}
	}
	c := tx.own(ns)
	if err := c.insertable(tx, doc); err != nil {
		return 0, err
	}
	rid, err := c.insert(doc)
	if err != nil {
		return 0, err
	}
	tx.changed = true
	return rid, tx.log(entryParts{op: "i", coll: c, o: doc, o2: idDocument(doc)})
}

// insertable checks what only a new write is held to, not the oplog's.
func (c *Coll) insertable(tx *Tx, doc bson.Raw) error {
	if c.opts.ViewOn != "" {
		return mongoerr.Server(mongoerr.CodeCommandNotSupportedOnView, "Namespace %s is a view, not a collection", c.ns)
	}
	if c.opts.Capped && c.opts.Size > 0 && int64(len(doc)) > c.opts.Size {
		return mongoerr.Server(mongoerr.CodeBadValue, "object to insert exceeds cappedMaxSize")
	}
	return c.validate(tx, doc)
}

// Changed reports whether the transaction has changed anything so far.
func (tx *Tx) Changed() bool { return tx.changed }

// Update sets a record's document to what operators made of it; the entry says which
// paths changed. A document that is the same, byte for byte, is not written.
func (tx *Tx) Update(ns string, rid RecordID, doc bson.Raw) error {
	return tx.changeLogged(ns, rid, doc, delta, entryParts{})
}

// Replace sets a record's document; the entry holds the whole document.
func (tx *Tx) Replace(ns string, rid RecordID, doc bson.Raw) error {
	return tx.changeLogged(ns, rid, doc, whole, entryParts{})
}

// whole is the update entry of a replacement.
func whole(_, after bson.Raw) bson.Raw { return after }

func (tx *Tx) changeLogged(ns string, rid RecordID, doc bson.Raw, entry func(before, after bson.Raw) bson.Raw, p entryParts) error {
	c := tx.own(ns)
	if c == nil {
		return noCollection(ns)
	}
	before, ok := c.records.Get(rid)
	if !ok {
		return fmt.Errorf("update of record %d of %s, which does not exist", rid, ns)
	}
	if bytes.Equal(before, doc) {
		return nil
	}
	if c.opts.Capped && len(doc) != len(before) {
		return mongoerr.Server(10003, "Cannot change the size of a document in a capped collection: %d != %d", len(before), len(doc))
	}
	if err := c.validateChange(tx, before, doc); err != nil {
		return err
	}
	if err := c.replace(rid, before, doc); err != nil {
		return err
	}
	tx.changed = true
	p.op, p.coll, p.o, p.o2 = "u", c, entry(before, doc), idDocument(before)
	return tx.log(p)
}

// Delete removes a record.
func (tx *Tx) Delete(ns string, rid RecordID) error { return tx.deleteLogged(ns, rid, entryParts{}) }

func (tx *Tx) deleteLogged(ns string, rid RecordID, p entryParts) error {
	c := tx.own(ns)
	if c == nil {
		return noCollection(ns)
	}
	doc, ok := c.records.Get(rid)
	if !ok {
		return fmt.Errorf("delete of record %d of %s, which does not exist", rid, ns)
	}
	c.remove(rid, doc)
	tx.changed = true
	p.op, p.coll, p.o = "d", c, idDocument(doc)
	return tx.log(p)
}

func noCollection(ns string) error {
	return mongoerr.Server(mongoerr.CodeNamespaceNotFound, "ns does not exist: %s", ns)
}

// insert adds a record with all its keys, or nothing.
func (c *Coll) insert(doc bson.Raw) (RecordID, error) {
	rid := c.next
	keys, err := c.keys(rid, doc)
	if err != nil {
		return 0, err
	}
	c.next++
	c.records.Set(rid, doc)
	c.size += int64(len(doc))
	for i, k := range keys {
		c.indexes[i].add(k.entries, k.multikey)
	}
	c.trim(0)
	return rid, nil
}

type docKeys struct {
	entries  []entry
	multikey bool
}

// keys are the document's keys in every index, checked for uniqueness.
func (c *Coll) keys(rid RecordID, doc bson.Raw) ([]docKeys, error) {
	out := make([]docKeys, len(c.indexes))
	for i, ix := range c.indexes {
		entries, multikey, err := ix.keysOf(rid, doc)
		if err != nil {
			return nil, err
		}
		if vals := ix.clash(rid, entries); vals != nil {
			return nil, duplicateKey(c.ns, ix, vals)
		}
		out[i] = docKeys{entries, multikey}
	}
	return out, nil
}

func (c *Coll) replace(rid RecordID, before, after bson.Raw) error {
	keys, err := c.keys(rid, after)
	if err != nil {
		return err
	}
	for i, ix := range c.indexes {
		if old, _, err := ix.keysOf(rid, before); err == nil {
			ix.remove(old)
		}
		ix.add(keys[i].entries, keys[i].multikey)
	}
	c.records.Set(rid, after)
	c.size += int64(len(after) - len(before))
	return nil
}

func (c *Coll) remove(rid RecordID, doc bson.Raw) {
	for _, ix := range c.indexes {
		if old, _, err := ix.keysOf(rid, doc); err == nil {
			ix.remove(old)
		}
	}
	c.records.Delete(rid)
	c.size -= int64(len(doc))
}

// trim removes the oldest records of a capped collection until it is within its
// bounds, or until only records from held on are left. It is not logged: every member
// does the same.
func (c *Coll) trim(held RecordID) {
	if !c.opts.Capped {
		return
	}
	for c.records.Len() > 1 && (c.opts.Max > 0 && int64(c.records.Len()) > c.opts.Max || c.opts.Size > 0 && c.size > c.opts.Size) {
		rid, doc, _ := c.records.Min()
		if held > 0 && rid >= held {
			return
		}
		c.remove(rid, doc)
	}
}

// DuplicateKey is what an error 11000 is about, and its cause.
type DuplicateKey struct {
	Pattern   bson.Raw // the index's key pattern
	Value     bson.Raw // the key that is there already, by the index's fields
	Encoded   bson.Raw // Value with strings in hexadecimal that are keys of a collation, or no valid text
	Hex       bson.A   // which fields of Encoded are; nil: none
	Collation bson.Raw // the index's; nil: none
	Old       string   // the message as versions before 4.2 worded it, which names no fields
	Plain     string   // the message as versions before 4.4 worded it, which know of no collation
}

// Error says which key it is.
func (d *DuplicateKey) Error() string { return "dup key: " + value.PrintDoc(d.Value) }

// encode makes Encoded and Hex, and gives what the message shows of the key.
func (d *DuplicateKey) encode(coll *value.Collator) (shown string) {
	var told, key []value.Field
	any := false
	for name, v := range d.Value.All() {
		text, isText := v.StringValueOK()
		isHex := isText && (d.Collation != nil || !utf8.ValidString(text))
		d.Hex, any = append(d.Hex, isHex), any || isHex
		shown := v
		if isHex {
			digits := hex.EncodeToString(coll.Key(text))
			v, shown = bson.StringValue(digits), bson.StringValue("0x"+digits)
		}
		key, told = append(key, value.Field{Key: name, Value: v}), append(told, value.Field{Key: name, Value: shown})
	}
	if !any {
		d.Hex = nil
	}
	d.Encoded = value.DocOf(key...)
	return value.PrintDoc(value.DocOf(told...))
}

// duplicateKey is the server's error 11000, in the words of version 4.2 and later.
func duplicateKey(ns string, ix *Index, vals []bson.RawValue) error {
	key, start := bson.BeginDocument(nil)
	for i, f := range ix.spec.Fields {
		key = bson.AppendValue(key, f.Path, vals[i])
	}
	d := &DuplicateKey{Pattern: ix.spec.Key, Value: bson.EndDocument(key, start)}
	what := fmt.Sprintf("E11000 duplicate key error collection: %s index: %s ", ns, ix.spec.Name)
	d.Old, d.Plain = what+"dup key: "+keyText(vals), what+d.Error()
	if len(ix.spec.Collation) > 0 {
		d.Collation = ix.spec.Collation
		what += "collation: " + value.PrintDoc(d.Collation) + " "
	}
	e := mongoerr.Server(mongoerr.CodeDuplicateKey, "%sdup key: %s", what, d.encode(ix.spec.coll))
	e.Cause = d
	return e
}

// idDocument is {_id: ...} of doc.
func idDocument(doc bson.Raw) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	if id := doc.Lookup("_id"); !id.IsZero() {
		dst = bson.AppendValue(dst, "_id", id)
	}
	return bson.EndDocument(dst, start)
}

// newUUID is a random (version 4) uuid.
func newUUID() (u [16]byte) {
	_, _ = rand.Read(u[:]) // never fails
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}
