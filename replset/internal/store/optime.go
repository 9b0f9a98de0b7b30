package store

import (
	"fmt"

	"github.com/sextantdb/sextant/bson"
)

// OpTime names a position in the oplog: the entry's timestamp and the term of the
// primary that wrote it. The zero OpTime is before every entry.
type OpTime struct {
	TS   bson.Timestamp
	Term int64
}

// Compare orders by term first and timestamp second: an entry of a later term is
// newer whatever its clock said.
func (o OpTime) Compare(p OpTime) int {
	switch {
	case o.Term != p.Term:
		return sign(o.Term < p.Term)
	case o.TS.T != p.TS.T:
		return sign(o.TS.T < p.TS.T)
	case o.TS.I != p.TS.I:
		return sign(o.TS.I < p.TS.I)
	}
	return 0
}

func sign(less bool) int {
	if less {
		return -1
	}
	return 1
}

// Less reports whether o is before p.
func (o OpTime) Less(p OpTime) bool { return o.Compare(p) < 0 }

// IsZero reports whether o is the zero OpTime.
func (o OpTime) IsZero() bool { return o == OpTime{} }

// String prints as "Timestamp(5, 1) term 2".
func (o OpTime) String() string {
	return fmt.Sprintf("Timestamp(%d, %d) term %d", o.TS.T, o.TS.I, o.Term)
}

// Append appends the element key: {ts, t}, the form in replies and oplog entries.
func (o OpTime) Append(dst []byte, key string) []byte {
	dst, start := bson.BeginDocumentElement(dst, key)
	dst = bson.AppendTimestamp(dst, "ts", o.TS.T, o.TS.I)
	dst = bson.AppendInt64(dst, "t", o.Term)
	return bson.EndDocument(dst, start)
}

// Document is {ts, t}.
func (o OpTime) Document() bson.Raw {
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendTimestamp(dst, "ts", o.TS.T, o.TS.I)
	dst = bson.AppendInt64(dst, "t", o.Term)
	return bson.EndDocument(dst, start)
}

// EntryOpTime reads ts and t of an oplog entry, or of any document of that form.
func EntryOpTime(entry bson.Raw) OpTime {
	t, i, _ := entry.Lookup("ts").TimestampOK()
	term, _ := entry.Lookup("t").AsInt64OK()
	return OpTime{TS: bson.Timestamp{T: t, I: i}, Term: term}
}

// recordID is the place of an entry in local.oplog.rs: the timestamp itself, so
// that a position is found without an index.
func (o OpTime) recordID() RecordID { return RecordID(o.TS.T)<<32 | RecordID(o.TS.I) }
