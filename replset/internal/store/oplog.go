package store

import (
	"fmt"
	"iter"

	"github.com/sextantdb/sextant/bson"
)

// OplogNS is the namespace of the oplog, a capped collection without an _id index
// whose record ids are the entries' timestamps.
const OplogNS = "local.oplog.rs"

const (
	defaultOplogMax  = 100_000
	defaultOplogSize = 64 << 20
)

// entryParts is what an oplog entry says beside its position and session.
type entryParts struct {
	op        string // i u d c n
	coll      *Coll  // whose namespace and uuid; nil for n, and for c with ns
	ns        string // used when coll is nil
	o, o2     bson.Raw
	preImage  OpTime // of the entry that holds the document as it was before
	postImage OpTime // of the entry that holds the document as it became
}

func (p entryParts) namespace() string {
	switch {
	case p.coll == nil:
		return p.ns
	case p.op == "c":
		return DatabaseOf(p.coll.ns) + ".$cmd"
	}
	return p.coll.ns
}

// log appends an oplog entry for a change that has been made. What is in "local" is
// this member's own and is not logged.
func (tx *Tx) log(p entryParts) error {
	tx.changed = true
	ns := p.namespace()
	if tx.clock == nil || DatabaseOf(ns) == "local" {
		return nil
	}
	at, wall := tx.clock()
	dst, start := bson.BeginDocument(nil)
	dst = tx.stmt.appendSession(dst, p.op)
	dst = bson.AppendString(dst, "op", p.op)
	dst = bson.AppendString(dst, "ns", ns)
	if p.coll != nil && p.coll.uuid != [16]byte{} {
		dst = bson.AppendBinary(dst, "ui", 4, p.coll.uuid[:])
	}
	dst = bson.AppendDocument(dst, "o", p.o)
	if p.o2 != nil {
		dst = bson.AppendDocument(dst, "o2", p.o2)
	}
	dst = tx.stmt.appendStatement(dst, p, tx.prevOpTime())
	dst = bson.AppendTimestamp(dst, "ts", at.TS.T, at.TS.I)
	dst = bson.AppendInt64(dst, "t", at.Term)
	dst = bson.AppendInt64(dst, "v", 2)
	dst = bson.AppendTime(dst, "wall", wall)
	return tx.appendEntry(change{entry: bson.EndDocument(dst, start), at: at, op: p.op, stmt: tx.stmt})
}

// appendEntry puts an entry at the end of the oplog and into the retry history.
func (tx *Tx) appendEntry(c change) error {
	at := c.at
	if !tx.root.optime.Less(at) {
		return fmt.Errorf("oplog entry %v is not after %v", at, tx.root.optime)
	}
	oplog := tx.own(OplogNS)
	rid := at.recordID()
	if last := oplog.LastRecord(); last >= rid {
		return fmt.Errorf("oplog entry %v is not after the newest record %d", at, last)
	}
	oplog.records.Set(rid, c.entry)
	oplog.next = rid + 1
	oplog.size += int64(len(c.entry))
	first := oplog.FirstRecord()
	oplog.trim(tx.held)
	if kept := oplog.FirstRecord(); kept != first {
		tx.root.gone = kept - 1
	}
	tx.root.optime, tx.lastOp, tx.changed = at, at, true
	tx.remember(c)
	return nil
}

// Noop logs an entry of op "n" with the document o: a heartbeat of the clock, or the
// first entry of a term.
func (tx *Tx) Noop(o bson.Raw) error { return tx.log(entryParts{op: "n", o: o}) }

// OplogAfter yields the entries after op, oldest first.
func (sn *Snapshot) OplogAfter(op OpTime) iter.Seq[bson.Raw] {
	return func(yield func(bson.Raw) bool) {
		for _, entry := range sn.Collection(OplogNS).Records(op.recordID() + 1) {
			if !yield(entry) {
				return
			}
		}
	}
}

// tells reports whether the oplog has every entry after op.
func (sn *Snapshot) tells(op OpTime) bool { return op.recordID() >= sn.gone }
