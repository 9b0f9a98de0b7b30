package operation

import (
	"errors"

	"github.com/sextantdb/sextant/mongoerr"
)

// wireLabels is the wire version of MongoDB 4.4, from which servers label errors themselves.
const wireLabels = 9

// trial keeps the failures of one call and says what follows. It is pure.
type trial struct {
	kind    Kind
	allowed bool // the call is retryable and the client's option is on
	tries   int  // attempts begun
	raised  error
}

// failed enters the error of an attempt and says whether to try again. sent says whether anything was sent: an error
// from before that does not hide an earlier one, nor does one by which the server says that it wrote nothing
// (specification "retryable writes", "executing retryable write commands").
func (t *trial) failed(err error, sent bool) (again bool) {
	if t.raised == nil || sent && !mongoerr.HasLabel(err, mongoerr.LabelNoWritesPerformed) {
		t.raised = err
	}
	if !t.allowed || t.tries >= 2 {
		return false
	}
	if t.kind == Write {
		return mongoerr.HasLabel(err, mongoerr.LabelRetryableWrite)
	}
	return mongoerr.IsRetryableRead(err)
}

// label gives an error of a retryable write the label RetryableWriteError where the driver, not the server, must: on
// failures of the network and of the pool, and for servers before 4.4 by their code.
func (t *trial) label(e *mongoerr.Error, maxWire int32, mongos bool) {
	if t.kind != Write || !t.allowed {
		return
	}
	old := maxWire > 0 && maxWire < wireLabels
	switch {
	case mongoerr.IsNetwork(e), mongoerr.IsPoolCleared(e):
	case old && mongoerr.IsRetryableWriteCode(e.Code):
	case old && !mongos && e.WriteConcernError != nil && mongoerr.IsRetryableWriteCode(e.WriteConcernError.Code):
	default:
		return
	}
	e.Labels = append([]string{mongoerr.LabelRetryableWrite}, e.Labels...)
}

// authFailure is the failed authentication for which a pool was cleared, nil if it was cleared for something else.
// Whoever finds the pool paused is told of it at once: no waiting and no other member helps.
func authFailure(err error) *mongoerr.Error {
	e, ok := errors.AsType[*mongoerr.Error](err)
	if !ok || !mongoerr.IsPoolCleared(e) || !mongoerr.IsAuth(e.Cause) {
		return nil
	}
	inner, _ := errors.AsType[*mongoerr.Error](e.Cause)
	return inner
}
