package command

import (
	"math"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// checkTxnNumber refuses a transaction number on what is no retryable write. Version 4.0 has other words, and takes one on reads.
func (m *Member) checkTxnNumber(r *Request) error {
	switch {
	case r.TxnNumber < 0 || r.Spec.Flags&TakesTxnNumber != 0:
		return nil
	case m.opt.Persona.wire >= wire42:
		return mongoerr.Server(mongoerr.CodeNotARetryableWriteCommand, "txnNumber may only be provided for multi-document transactions and retryable write commands. "+
			"autocommit:false was not provided, and %s is not a retryable write command.", r.Spec.Name)
	case r.Spec.Flags&Reads != 0:
		return nil
	}
	return mongoerr.Server(mongoerr.CodeNotARetryableWriteCommand, "It is illegal to provide a txnNumber for command %s", r.Name)
}

// parseStmtIDs reads stmtIds (one a statement) or stmtId (the first's, counting up) of n statements.
func (b *batch) parseStmtIDs(n int) error {
	first, hasFirst, err := b.r.stmtID(n)
	if err != nil {
		return err
	}
	ids, hasList, err := b.r.stmtIDs()
	switch {
	case err != nil:
		return err
	case hasFirst && hasList:
		kind := "write"
		if b.r.Spec.Name == "bulkWrite" {
			kind = "bulkWrite"
		}
		return mongoerr.Server(mongoerr.CodeInvalidOptions, "May not specify both stmtId and stmtIds in %s command", kind)
	case hasList && len(ids) != n:
		return mongoerr.Server(mongoerr.CodeInvalidLength, "Number of statement ids must match the number of batch entries. Got %d statement ids but %d operations.", len(ids), n)
	case hasList:
		b.stmtIDs = ids
		return nil
	}
	for i := range n {
		b.stmtIDs = append(b.stmtIDs, first+int32(i))
	}
	return nil
}

// stmtID is the number of the first of n statements. The numbers of the others must exist: a server lets them wrap around.
func (r *Request) stmtID(n int) (id int32, given bool, err error) {
	v := r.Field("stmtId")
	if v.IsZero() || value.Nullish(v) {
		return 0, false, nil
	}
	id, ok := v.Int32OK()
	switch {
	case !ok:
		return 0, false, wrongField(r.Spec.Name, "stmtId", v, "int")
	case int64(id) > math.MaxInt32-int64(n)+1:
		return 0, false, mongoerr.Server(mongoerr.CodeInvalidOptions, "stmtId %d is too large for a command of %d statements: the last would be beyond %d", id, n, math.MaxInt32)
	}
	return id, true, nil
}

// stmtIDs are the numbers of the statements; those that are null do not count, as for a server.
func (r *Request) stmtIDs() (ids []int32, given bool, err error) {
	v := r.Field("stmtIds")
	if v.IsZero() || value.Nullish(v) {
		return nil, false, nil
	}
	arr, ok := v.ArrayOK()
	if !ok {
		return nil, false, wrongField(r.Spec.Name, "stmtIds", v, "array")
	}
	for i, e := range arr.All() {
		id, ok := e.Int32OK()
		switch {
		case ok:
			ids = append(ids, id)
		case !value.Nullish(e):
			return nil, false, wrongField(r.Spec.Name+".stmtIds", indexKey(i), e, "int")
		}
	}
	return ids, true, nil
}

// statement says on whose behalf the i-th write is made.
func (b *batch) statement(i int) store.Statement { return b.r.statement(b.stmtIDs[i]) }

// statement is empty for a write that is not retryable.
func (r *Request) statement(id int32) store.Statement {
	if r.TxnNumber < 0 || r.LSID == nil {
		return store.Statement{}
	}
	return store.Statement{LSID: r.LSID, TxnNumber: r.TxnNumber, StmtID: id}
}

// retried is the outcome of a statement that was executed before, nil if it was not.
func (m *Member) retried(tx *store.Tx, s store.Statement) (*store.Outcome, error) {
	if m.opt.Misbehave == ForgottenRetries {
		return nil, nil
	}
	return tx.Snapshot().Retried(s)
}

// retried counts an insertion or a deletion that was made before.
func (b *batch) retried(int, *store.Outcome) error {
	b.n++
	return nil
}

// retriedUpdate counts a statement that was executed before.
func (b *batch) retriedUpdate(i int, out *store.Outcome) error {
	switch out.Op {
	case "i":
		if out.O == nil {
			return incompleteHistory("the document that the update inserted")
		}
		b.upserted = append(b.upserted, bson.D{{Key: "index", Value: int32(i)}, {Key: "_id", Value: out.O.Lookup("_id")}})
	case "u":
		b.modified++
	default:
		return otherWrite(40638, "update", out)
	}
	b.n++
	return nil
}

// retried answers from the retry history. What was done must be what is asked for, as far as a server checks it: a removal is
// answered with an update's outcome.
func (f *findAndModify) retried(out *store.Outcome) error {
	switch {
	case out.Op == "i" && !f.spec.upsert:
		return otherWrite(40608, "findAndModify", out)
	case out.Op == "i" && out.O == nil:
		return incompleteHistory("the document that findAndModify inserted")
	case out.Op == "i":
		f.last = upsertedError(out.O.Lookup("_id"))
		if f.after {
			f.value = out.O
		}
		return nil
	case out.Op == "d" && !f.remove:
		return otherWrite(40606, "findAndModify", out)
	case out.O == nil:
		return incompleteHistory("the document that findAndModify answered with")
	}
	f.last = lastError(1, out.Op == "d")
	f.value = out.PreImage
	if f.after {
		f.value = out.PostImage
	}
	return f.checkImage(out)
}

// checkImage refuses what the first execution did not store.
func (f *findAndModify) checkImage(out *store.Outcome) error {
	switch {
	case f.value != nil:
		return nil
	case out.Op == "d":
		return mongoerr.Server(40607, "No pre-image available for findAndModify retry request")
	case f.after:
		return mongoerr.Server(40611, "findAndModify retry request wants the document after update returned, but only before update document is stored")
	}
	return mongoerr.Server(40612, "findAndModify retry request wants the document before update returned, but only after update document is stored")
}

// otherWrite refuses the retry of another write than the one that was made.
func otherWrite(code int32, command string, out *store.Outcome) error {
	return mongoerr.Server(code, "%s retry request is not compatible with previous write in the transaction of type: %s", command, out.Op)
}

// incompleteHistory is what a retry is told that wants more of the first execution than the oplog still holds.
func incompleteHistory(what string) error {
	return mongoerr.Server(mongoerr.CodeIncompleteTransactionHistory, "the oplog no longer holds %s when this retried write was first executed", what)
}
