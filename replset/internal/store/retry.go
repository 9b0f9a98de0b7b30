package store

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/tidwall/btree"
)

// Statement says on whose behalf the next changes are made, for the oplog and for the
// retry history. The zero Statement is a write without a transaction number.
type Statement struct {
	LSID      bson.Raw // {id: UUID, uid: hash}; nil: none
	TxnNumber int64    // used when LSID is set
	StmtID    int32    // number of the statement in its command
}

// Outcome is what the retry history knows of a statement that was executed. What the oplog no longer holds is nil.
type Outcome struct {
	Op       string   // i, u or d, as logged
	O        bson.Raw // as logged
	PreImage bson.Raw // the document before, where findAndModify answered with it
	// PostImage is the document after, where findAndModify answered with it.
	PostImage bson.Raw
}

// sessionRecord is the history of a session's newest transaction number. The oplog holds what was done, so that the
// record of a session that never comes back, of which there is one for every broken connection, is small.
type sessionRecord struct {
	txnNumber int64
	lastOp    OpTime
	stmts     *btree.Map[int32, executed]
}

// executed is a statement that was executed.
type executed struct {
	op    byte     // as logged
	entry RecordID // of the oplog
}

func (r *sessionRecord) copyTree() *sessionRecord {
	d := *r
	d.stmts = r.stmts.Copy()
	return &d
}

// Statement sets on whose behalf the following changes are made.
func (tx *Tx) Statement(s Statement) { tx.stmt = s }

// Retried looks a statement up. It returns its recorded outcome when it was executed
// before, nil when it is new, and error 225 when the session has since used a greater
// transaction number.
func (sn *Snapshot) Retried(s Statement) (*Outcome, error) {
	if s.LSID == nil {
		return nil, nil
	}
	r, ok := sn.retry.Get(string(s.LSID))
	switch {
	case !ok || s.TxnNumber > r.txnNumber:
		return nil, nil
	case s.TxnNumber < r.txnNumber:
		return nil, mongoerr.Server(mongoerr.CodeTransactionTooOld,
			"Cannot start transaction %d on session %v because a newer transaction %d has already started.",
			s.TxnNumber, s.LSID.Lookup("id"), r.txnNumber)
	}
	if done, ok := r.stmts.Get(s.StmtID); ok {
		return sn.outcome(done), nil
	}
	return nil, nil
}

func (sn *Snapshot) outcome(done executed) *Outcome {
	entry, _ := sn.Collection(OplogNS).Get(done.entry)
	out := &Outcome{Op: string(done.op), PreImage: sn.image(entry, "preImageOpTime"), PostImage: sn.image(entry, "postImageOpTime")}
	out.O, _ = entry.Lookup("o").DocumentOK()
	return out
}

// image is the document in the entry that field points to.
func (sn *Snapshot) image(entry bson.Raw, field string) bson.Raw {
	ref, ok := entry.Lookup(field).DocumentOK()
	if !ok {
		return nil
	}
	img, _ := sn.Collection(OplogNS).Get(EntryOpTime(ref).recordID())
	doc, _ := img.Lookup("o").DocumentOK()
	return doc
}

// prevOpTime is the optime of the previous entry of the statement's transaction number.
func (tx *Tx) prevOpTime() OpTime {
	if tx.stmt.LSID == nil {
		return OpTime{}
	}
	r, ok := tx.root.retry.Get(string(tx.stmt.LSID))
	if !ok || r.txnNumber != tx.stmt.TxnNumber {
		return OpTime{}
	}
	return r.lastOp
}

func (s Statement) appendSession(dst []byte, op string) []byte {
	if s.LSID == nil || op == "c" {
		return dst
	}
	dst = bson.AppendDocument(dst, "lsid", s.LSID)
	return bson.AppendInt64(dst, "txnNumber", s.TxnNumber)
}

func (s Statement) appendStatement(dst []byte, p entryParts, prev OpTime) []byte {
	if s.LSID == nil || p.op == "c" {
		return dst
	}
	dst = bson.AppendInt32(dst, "stmtId", s.StmtID)
	dst = prev.Append(dst, "prevOpTime")
	if !p.preImage.IsZero() {
		dst = p.preImage.Append(dst, "preImageOpTime")
	}
	if !p.postImage.IsZero() {
		dst = p.postImage.Append(dst, "postImageOpTime")
	}
	return dst
}

// remember derives the retry history from an entry, on the primary and on secondaries
// alike, so that whoever is primary next can answer a retried statement.
func (tx *Tx) remember(c change) {
	if c.stmt.LSID == nil || c.op == "" || c.op == "c" {
		return
	}
	key, number := string(c.stmt.LSID), c.stmt.TxnNumber
	r, found := tx.root.retry.Get(key)
	switch {
	case !found || number > r.txnNumber:
		r = &sessionRecord{txnNumber: number, stmts: new(btree.Map[int32, executed])}
	case number < r.txnNumber:
		return
	case !tx.owned[key]:
		r = r.copyTree()
	}
	tx.owned[key] = true // a namespace never looks like a BSON document
	tx.root.retry.Set(key, r)
	r.lastOp = c.at
	if c.op != "n" {
		r.stmts.Set(c.stmt.StmtID, executed{c.op[0], c.at.recordID()})
	}
	tx.root.forget()
}

// A session ends when nobody uses it for so many seconds (logicalSessionTimeoutMinutes), and nothing is retried in it after.
const sessionSeconds = 30 * 60

// forget drops the history of sessions that have ended by the time of the newest entry. It looks through all when there are
// half as many again as it left the last time, so that it costs an entry next to nothing.
func (sn *Snapshot) forget() {
	if sn.retry.Len() <= sn.looked+sn.looked/2 {
		return
	}
	var ended []string
	sn.retry.Scan(func(key string, r *sessionRecord) bool {
		if int64(sn.optime.TS.T)-int64(r.lastOp.TS.T) > sessionSeconds {
			ended = append(ended, key)
		}
		return true
	})
	for _, key := range ended {
		sn.retry.Delete(key)
	}
	sn.looked = max(sn.retry.Len(), 1000)
}

// Image says which document a findAndModify answers with, so that a retry can too.
type Image int

// The images.
const (
	NoImage   Image = iota
	PreImage        // the document before
	PostImage       // the document after
)

// UpdateWithImage is Update (or Replace) of a retryable findAndModify: the document
// that it answers with is logged too.
func (tx *Tx) UpdateWithImage(ns string, rid RecordID, doc bson.Raw, replace bool, img Image) error {
	p, err := tx.logImage(ns, rid, doc, img)
	if err != nil {
		return err
	}
	if replace {
		return tx.changeLogged(ns, rid, doc, whole, p)
	}
	return tx.changeLogged(ns, rid, doc, delta, p)
}

// DeleteWithImage is Delete of a retryable findAndModify.
func (tx *Tx) DeleteWithImage(ns string, rid RecordID) error {
	p, err := tx.logImage(ns, rid, nil, PreImage)
	if err != nil {
		return err
	}
	return tx.deleteLogged(ns, rid, p)
}

// logImage logs the image's entry, if the statement is retryable.
func (tx *Tx) logImage(ns string, rid RecordID, after bson.Raw, img Image) (entryParts, error) {
	c := tx.root.Collection(ns)
	if c == nil || tx.stmt.LSID == nil || img == NoImage {
		return entryParts{}, nil
	}
	doc := after
	if img == PreImage {
		doc, _ = c.Get(rid)
	}
	if err := tx.log(entryParts{op: "n", coll: c, o: doc}); err != nil {
		return entryParts{}, err
	}
	if img == PreImage {
		return entryParts{preImage: tx.lastOp}, nil
	}
	return entryParts{postImage: tx.lastOp}, nil
}
