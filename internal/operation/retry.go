package operation

import (
	"errors"
	"strings"
	"time"

	"github.com/sextantdb/sextant/mongoerr"
)

// wireLabels is the wire version of MongoDB 4.4, from which servers label errors themselves.
const wireLabels = 9

// trial keeps the failures of one call and says what follows. It is pure.
type trial struct {
	kind     Kind
	allowed  bool // the call is retryable and the client's option is on
	adaptive bool // the client's option is on: an overloaded server may be asked again, whatever the call is
	most     int  // retries once a server was overloaded (maxAdaptiveRetries)
	tries    int  // attempts begun
	strained bool // a server was overloaded
	raised   error
}

// failed enters the error of an attempt and says whether to try again, and after what pause at the longest: an overloaded
// server must not be asked at once, nor by everybody at the same time. sent says whether anything was sent: an error
// from before that does not hide an earlier one, nor does one by which the server says that it wrote nothing
// (specifications "retryable writes", "executing retryable write commands", and "client backpressure").
func (t *trial) failed(err error, sent bool) (again bool, pause time.Duration) {
	if t.raised == nil || sent && !mongoerr.HasLabel(err, mongoerr.LabelNoWritesPerformed) {
		t.raised = err
	}
	overload := mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded)
	t.strained = t.strained || overload
	retries := 1
	if t.strained {
		retries = t.most
	}
	switch {
	case t.tries > retries:
	case t.allowed && t.repeatable(err):
		again = true
	case t.adaptive && overload:
		again = mongoerr.HasLabel(err, mongoerr.LabelRetryable)
	}
	if again && overload {
		pause = backoff(err, t.tries)
	}
	return again, pause
}

// repeatable says whether a retryable call may be made once more after the error.
func (t *trial) repeatable(err error) bool {
	if t.kind == Write {
		return mongoerr.HasLabel(err, mongoerr.LabelRetryableWrite)
	}
	return mongoerr.IsRetryableRead(err)
}

// Limits of the pause before an overloaded server is asked again.
const (
	backoffBase = 100 * time.Millisecond
	backoffMost = 10 * time.Second
)

// backoff is the longest pause before retry number n, from 1: 200 ms, 400 ms and so on, or what the server says in the
// place of the 100 ms that are doubled.
func backoff(err error, n int) time.Duration {
	base := backoffBase
	if e, ok := errors.AsType[*mongoerr.Error](err); ok && len(e.Response) > 0 {
		if ms, ok := e.Response.Lookup("baseBackoffMS").AsInt64OK(); ok && ms > 0 && ms <= backoffMost.Milliseconds() {
			base = time.Duration(ms) * time.Millisecond
		}
	}
	for ; n > 0 && base < backoffMost; n-- {
		base *= 2
	}
	return min(base, backoffMost)
}

// unsupported puts the words that the specification demands in the place of those by which a storage engine says that it
// takes no retryable writes.
func (t *trial) unsupported(e *mongoerr.Error) {
	if t.kind == Write && t.allowed && e.Code == mongoerr.CodeIllegalOperation && strings.HasPrefix(e.Message, "Transaction numbers") {
		e.Message = "This MongoDB deployment does not support retryable writes. Please add retryWrites=false to your connection string."
	}
}

// label gives an error of a retryable write the label RetryableWriteError where the driver, not the server, must: on
// failures of the network and of the pool, by their code for servers before 4.4, and by their code for failures of a
// handshake, where no server labels (maxWire is 0 as long as there is no connection).
func (t *trial) label(e *mongoerr.Error, maxWire int32, mongos bool) {
	if t.kind != Write || !t.allowed {
		return
	}
	old := maxWire < wireLabels
	switch {
	case mongoerr.IsNetwork(e), mongoerr.IsPoolCleared(e):
	case old && mongoerr.IsRetryableWriteCode(e.Code):
	case old && !mongos && e.WriteConcernError != nil && mongoerr.IsRetryableWriteCode(e.WriteConcernError.Code):
	default:
		return
	}
	e.Labels = append([]string{mongoerr.LabelRetryableWrite}, e.Labels...)
}

// authFailure is the refused login for which a pool was cleared, nil if it was cleared for something else.
// Whoever finds the pool paused is told of it at once: no waiting and no other member helps.
func authFailure(err error) *mongoerr.Error {
	e, ok := errors.AsType[*mongoerr.Error](err)
	if !ok || !mongoerr.IsPoolCleared(e) || !mongoerr.IsLoginRefused(e.Cause) {
		return nil
	}
	inner, _ := errors.AsType[*mongoerr.Error](e.Cause)
	return inner
}
