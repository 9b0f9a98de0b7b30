package store

import (
	"errors"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

func isNoCollection(err error) bool {
	e, ok := errors.AsType[*mongoerr.Error](err)
	return ok && e.Code == mongoerr.CodeNamespaceNotFound
}

// Create makes a collection or view. Error 48: the name is taken.
func (tx *Tx) Create(ns string, opts CollOptions) error {
	return tx.createWithUUID(ns, opts, newUUID())
}

func (tx *Tx) createWithUUID(ns string, opts CollOptions, uuid [16]byte) error {
	if tx.root.Collection(ns) != nil {
		return mongoerr.Server(mongoerr.CodeNamespaceExists, "a collection '%s' already exists", ns)
	}
	if opts.ViewOn != "" {
		uuid = [16]byte{}
	}
	c := newColl(ns, uuid, opts)
	if err := c.compile(); err != nil {
		return err
	}
	tx.put(c)
	return tx.log(entryParts{op: "c", coll: c, o: createEntry(c)})
}

// createEntry is {create: name, options..., idIndex: {...}}.
func createEntry(c *Coll) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendString(dst, "create", c.Name())
	for key, v := range c.opts.Document().All() {
		dst = bson.AppendValue(dst, key, v)
	}
	if len(c.indexes) > 0 {
		dst = bson.AppendDocument(dst, "idIndex", c.indexes[0].spec.Doc)
	}
	return bson.EndDocument(dst, start)
}

// Drop removes a collection or view with its indexes. Error 26: there is none.
func (tx *Tx) Drop(ns string) error {
	c := tx.root.Collection(ns)
	if c == nil {
		return noCollection(ns)
	}
	tx.forget(ns)
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendString(dst, "drop", c.Name())
	o := bson.EndDocument(dst, start)
	dst, start = bson.BeginDocument(nil)
	dst = bson.AppendInt64(dst, "numRecords", c.Count())
	return tx.log(entryParts{op: "c", coll: c, o: o, o2: bson.EndDocument(dst, start)})
}

// DropDatabase removes every collection of a database.
func (tx *Tx) DropDatabase(db string) error {
	colls := tx.root.Collections(db)
	for _, c := range colls {
		if err := tx.Drop(c.ns); err != nil {
			return err
		}
	}
	if len(colls) == 0 {
		return nil
	}
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendInt32(dst, "dropDatabase", 1)
	return tx.log(entryParts{op: "c", ns: db + ".$cmd", o: bson.EndDocument(dst, start)})
}

// CreateIndex builds an index over the documents that are there, creating the
// collection where there is none. It reports false when the same index exists.
// Errors: 85 and 86 (another index of that name or key), 11000, 171.
func (tx *Tx) CreateIndex(ns string, spec IndexSpec) (created bool, err error) {
	if tx.root.Collection(ns) == nil {
		if err := tx.Create(ns, CollOptions{}); err != nil {
			return false, err
		}
	}
	if same, err := tx.root.Collection(ns).conflict(spec); same || err != nil {
		return false, err
	}
	ix := newIndex(spec)
	for rid, doc := range tx.root.Collection(ns).Records(0) {
		entries, multikey, err := ix.keysOf(rid, doc)
		if err != nil {
			return false, err
		}
		if vals := ix.clash(rid, entries); vals != nil {
			return false, duplicateKey(ns, ix, vals)
		}
		ix.add(entries, multikey)
	}
	c := tx.own(ns)
	c.indexes = append(c.indexes[:len(c.indexes):len(c.indexes)], ix)
	tx.changed = true
	return true, tx.log(entryParts{op: "c", coll: c, o: createIndexEntry(c, spec)})
}

func createIndexEntry(c *Coll, spec IndexSpec) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendString(dst, "createIndexes", c.Name())
	for key, v := range spec.Doc.All() {
		dst = bson.AppendValue(dst, key, v)
	}
	return bson.EndDocument(dst, start)
}

// DropIndex removes the index of that name. Error 27: there is none; 72: it is _id's.
func (tx *Tx) DropIndex(ns, name string) error {
	c := tx.root.Collection(ns)
	if c == nil {
		return noCollection(ns)
	}
	ix := c.Index(name)
	if ix == nil {
		return mongoerr.Server(mongoerr.CodeIndexNotFound, "index not found with name [%s]", name)
	}
	if ix.IsID() {
		return mongoerr.Server(mongoerr.CodeInvalidOptions, "cannot drop _id index")
	}
	c = tx.own(ns)
	kept := make([]*Index, 0, len(c.indexes))
	for _, other := range c.indexes {
		if other.spec.Name != name {
			kept = append(kept, other)
		}
	}
	c.indexes = kept
	tx.changed = true
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendString(dst, "dropIndexes", c.Name())
	dst = bson.AppendString(dst, "index", name)
	return tx.log(entryParts{op: "c", coll: c, o: bson.EndDocument(dst, start), o2: ix.spec.Doc})
}

// Rename gives a collection another namespace. Errors: 26 no source; 48 the target
// exists and dropTarget is false.
func (tx *Tx) Rename(from, to string, dropTarget bool) error {
	c := tx.root.Collection(from)
	if c == nil {
		return mongoerr.Server(mongoerr.CodeNamespaceNotFound, "source namespace does not exist")
	}
	target := tx.root.Collection(to)
	if target != nil && !dropTarget {
		return mongoerr.Server(mongoerr.CodeNamespaceExists, "target namespace exists")
	}
	c = tx.own(from)
	tx.forget(from)
	if target != nil {
		tx.forget(to)
	}
	// The Coll is this transaction's own; it moves as it is.
	c.ns = to
	tx.put(c)
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendString(dst, "renameCollection", from)
	dst = bson.AppendString(dst, "to", to)
	if target != nil {
		dst = bson.AppendBinary(dst, "dropTarget", 4, target.uuid[:])
	}
	return tx.log(entryParts{op: "c", coll: c, o: bson.EndDocument(dst, start)})
}

// CollMod sets options of a collection: those in changes replace those of the same
// name, an empty validator removes it. index, unless empty, is the specification of
// the index that changes, with its new options.
func (tx *Tx) CollMod(ns string, changes bson.Raw, index bson.Raw) error {
	c := tx.own(ns)
	if c == nil {
		return noCollection(ns)
	}
	if err := c.modify(changes, index); err != nil {
		return err
	}
	tx.changed = true
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendString(dst, "collMod", c.Name())
	for key, v := range changes.All() {
		dst = bson.AppendValue(dst, key, v)
	}
	if index != nil {
		dst = bson.AppendDocument(dst, "index", index)
	}
	return tx.log(entryParts{op: "c", coll: c, o: bson.EndDocument(dst, start)})
}

func (tx *Tx) applyCollMod(ns string, o bson.Raw) error {
	index, _ := o.Lookup("index").DocumentOK()
	return tx.CollMod(ns, without(without(o, "collMod"), "index"), index)
}

// modify changes a collection that the transaction owns.
func (c *Coll) modify(changes, index bson.Raw) error {
	doc := c.opts.Document()
	for key, v := range changes.All() {
		doc = setPath(doc, key, v, false)
		if d, ok := v.DocumentOK(); ok && key == "validator" && d.IsEmpty() {
			doc = without(doc, key)
		}
	}
	opts := ReadCollOptions(doc)
	opts.NoIDIndex = c.opts.NoIDIndex
	c.opts = opts
	if err := c.compile(); err != nil || index == nil {
		return err
	}
	spec, err := ReadIndexSpec(index)
	if err != nil {
		return err
	}
	indexes := append([]*Index(nil), c.indexes...)
	for i, ix := range indexes {
		if ix.spec.Name == spec.Name {
			changed := ix.copyTree()
			changed.spec = spec
			indexes[i] = changed
		}
	}
	c.indexes = indexes
	return nil
}
