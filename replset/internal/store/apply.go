package store

import (
	"fmt"

	"github.com/sextantdb/sextant/bson"
)

// change is what an oplog entry says.
type change struct {
	entry  bson.Raw
	at     OpTime
	op, ns string
	o, o2  bson.Raw // nil: there is none
	uuid   [16]byte
	stmt   Statement // without a session: not retryable
}

// readChange reads an entry in one walk.
func readChange(entry bson.Raw) change {
	c, hasNumber := change{entry: entry}, false
	for key, v := range entry.All() {
		switch key {
		case "op":
			c.op, _ = v.StringValueOK()
		case "ns":
			c.ns, _ = v.StringValueOK()
		case "ui":
			if _, data, ok := v.BinaryOK(); ok && len(data) == len(c.uuid) {
				copy(c.uuid[:], data)
			}
		case "o":
			c.o, _ = v.DocumentOK()
		case "o2":
			c.o2, _ = v.DocumentOK()
		case "lsid":
			c.stmt.LSID, _ = v.DocumentOK()
		case "txnNumber":
			c.stmt.TxnNumber, hasNumber = v.AsInt64OK()
		case "stmtId":
			id, _ := v.AsInt64OK()
			c.stmt.StmtID = int32(id)
		case "ts":
			c.at.TS.T, c.at.TS.I, _ = v.TimestampOK()
		case "t":
			c.at.Term, _ = v.AsInt64OK()
		}
	}
	if !hasNumber {
		c.stmt = Statement{}
	}
	return c
}

// apply makes the change that another member's entry tells, and appends the entry.
// Inserting what is there replaces it, deleting what is not there does nothing, so
// that an entry may meet data that is already newer.
func (tx *Tx) apply(c change) error {
	if c.o == nil {
		return fmt.Errorf("entry of op %q has no document o", c.op)
	}
	var err error
	switch c.op {
	case "n":
	case "i":
		err = tx.applyInsert(c.ns, c.o)
	case "u":
		err = tx.applyUpdate(c.ns, c.o, c.o2)
	case "d":
		err = tx.applyDelete(c.ns, c.o)
	case "c":
		err = tx.applyCommand(DatabaseOf(c.ns), c.o, c.uuid)
	default:
		err = fmt.Errorf("unknown oplog entry %q", c.op)
	}
	if err != nil {
		return err
	}
	return tx.appendEntry(c)
}

func (tx *Tx) applyInsert(ns string, o bson.Raw) error {
	c := tx.own(ns)
	if c == nil {
		return noCollection(ns)
	}
	if rid, before, ok := c.FindID(o.Lookup("_id")); ok {
		return c.replace(rid, before, o)
	}
	_, err := c.insert(o)
	return err
}

func (tx *Tx) applyUpdate(ns string, o, o2 bson.Raw) error {
	c := tx.own(ns)
	if c == nil {
		return noCollection(ns)
	}
	rid, before, ok := c.FindID(o2.Lookup("_id"))
	if !ok {
		return fmt.Errorf("update of %s: no document %v", ns, o2)
	}
	after := o
	if isDelta(o) {
		var err error
		if after, err = applyDelta(before, o); err != nil {
			return err
		}
	}
	return c.replace(rid, before, after)
}

func (tx *Tx) applyDelete(ns string, o bson.Raw) error {
	c := tx.own(ns)
	if c == nil {
		return noCollection(ns)
	}
	if rid, doc, ok := c.FindID(o.Lookup("_id")); ok {
		c.remove(rid, doc)
	}
	return nil
}

// applyCommand applies an entry of op "c". The clock is off meanwhile: the entry
// itself is the log of what it does.
func (tx *Tx) applyCommand(db string, o bson.Raw, uuid [16]byte) error {
	clock := tx.clock
	tx.clock = nil
	defer func() { tx.clock = clock }()
	name, arg := firstElement(o)
	coll, _ := arg.StringValueOK()
	ns := db + "." + coll
	switch name {
	case "create":
		return tx.createWithUUID(ns, ReadCollOptions(o), uuid)
	case "drop":
		return ignoreMissing(tx.Drop(ns))
	case "dropDatabase":
		return tx.DropDatabase(db)
	case "createIndexes":
		spec, err := ReadIndexSpec(indexOfEntry(o))
		if err != nil {
			return err
		}
		_, err = tx.CreateIndex(ns, spec)
		return err
	case "dropIndexes":
		index, _ := o.Lookup("index").StringValueOK()
		return tx.DropIndex(ns, index)
	case "renameCollection":
		to, _ := o.Lookup("to").StringValueOK()
		_, _, dropsTarget := o.Lookup("dropTarget").BinaryOK()
		return tx.Rename(coll, to, dropsTarget)
	case "collMod":
		return tx.applyCollMod(ns, o)
	}
	return fmt.Errorf("unknown command %q in an oplog entry", name)
}

func ignoreMissing(err error) error {
	if isNoCollection(err) {
		return nil
	}
	return err
}

func firstElement(doc bson.Raw) (string, bson.RawValue) {
	for key, v := range doc.All() {
		return key, v
	}
	return "", bson.RawValue{}
}

// indexOfEntry is the index specification in a createIndexes entry: all but the
// command's own field.
func indexOfEntry(o bson.Raw) bson.Raw {
	return without(o, "createIndexes")
}

// without is doc without one field.
func without(doc bson.Raw, key string) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	for k, v := range doc.All() {
		if k != key {
			dst = bson.AppendValue(dst, k, v)
		}
	}
	return bson.EndDocument(dst, start)
}
