package sextant

import (
	"errors"

	"github.com/sextantdb/sextant/mongoerr"
)

// batchError gathers the failures of several commands that are one call into one error.
type batchError struct {
	e    *mongoerr.Error
	last []int // the caller's indexes of the write errors added last
	fin  error // a failure that ended the call and is no *mongoerr.Error
}

// add takes the error of a command whose first document is the caller's at offset. It reports whether the error is an
// answer about single documents, or about the write concern, so that the call may go on; otherwise the call is over.
func (b *batchError) add(err error, offset int) bool {
	b.last = b.last[:0]
	var e *mongoerr.Error
	if !errors.As(err, &e) {
		b.fin = err
		return false
	}
	merged := *e
	merged.WriteErrors = nil
	for _, w := range e.WriteErrors {
		w.Index += offset
		merged.WriteErrors = append(merged.WriteErrors, w)
		b.last = append(b.last, w.Index)
	}
	if b.e != nil {
		merged.WriteErrors = append(b.e.WriteErrors[:len(b.e.WriteErrors):len(b.e.WriteErrors)], merged.WriteErrors...)
		if merged.WriteConcernError == nil {
			merged.WriteConcernError = b.e.WriteConcernError
		}
	}
	b.e = &merged
	return e.Code == 0 && (len(e.WriteErrors) > 0 || e.WriteConcernError != nil)
}

// err is the one error, nil if nothing was added.
func (b *batchError) err() error {
	switch {
	case b.fin != nil && b.e != nil:
		return errors.Join(b.fin, b.e)
	case b.fin != nil:
		return b.fin
	case b.e != nil:
		return b.e
	}
	return nil
}
