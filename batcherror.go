package sextant

import (
	"cmp"
	"errors"
	"slices"

	"github.com/sextantdb/sextant/mongoerr"
)

// batchError gathers the failures of several commands that are one call into one error.
type batchError struct {
	e     *mongoerr.Error
	wrote bool  // a command was carried out, be it in part
	last  []int // the positions in the lot of the write errors added last
	fin   error // a failure that ended the call and is no *mongoerr.Error
}

// add takes the error of a command with the writes of a lot from first to next. It reports whether the error is an answer
// about single writes, or about the write concern, so that the call may go on; otherwise the call is over.
func (b *batchError) add(err error, l *lot, first, next int) bool {
	b.last = b.last[:0]
	var e *mongoerr.Error
	if !errors.As(err, &e) {
		b.fin = err
		return false
	}
	partial := e.Code == 0 && (len(e.WriteErrors) > 0 || e.WriteConcernError != nil)
	merged := *e
	merged.WriteErrors = nil
	for _, w := range e.WriteErrors {
		at := first + w.Index
		if at < first || at >= next { // a refusal that makes no sense
			partial = false
			continue
		}
		b.last = append(b.last, at)
		w.Index = l.index(at)
		merged.WriteErrors = append(merged.WriteErrors, w)
	}
	b.merge(&merged)
	b.wrote = b.wrote || partial
	return partial
}

// merge puts what is known of earlier commands into the error of the latest, which takes their place.
func (b *batchError) merge(e *mongoerr.Error) {
	if b.wrote { // the command may have written nothing, the call has
		e.Labels = slices.DeleteFunc(slices.Clone(e.Labels), func(l string) bool { return l == mongoerr.LabelNoWritesPerformed })
	}
	if old := b.e; old != nil {
		e.WriteErrors = slices.Concat(old.WriteErrors, e.WriteErrors)
		slices.SortStableFunc(e.WriteErrors, func(x, y mongoerr.WriteError) int { return cmp.Compare(x.Index, y.Index) })
		e.Labels = slices.Clone(e.Labels)
		for _, l := range old.Labels {
			if l != mongoerr.LabelNoWritesPerformed {
				e.AddLabel(l)
			}
		}
		unmet := slices.Concat(unmetBy(old), unmetBy(e))
		if len(unmet) > 0 {
			e.WriteConcernError = unmet[len(unmet)-1]
		}
		if len(unmet) > 1 {
			e.WriteConcernErrors = unmet
		}
	}
	b.e = e
}

// unmetBy are the write concern errors of an error.
func unmetBy(e *mongoerr.Error) []*mongoerr.WriteConcernError {
	switch {
	case len(e.WriteConcernErrors) > 0:
		return e.WriteConcernErrors
	case e.WriteConcernError != nil:
		return []*mongoerr.WriteConcernError{e.WriteConcernError}
	}
	return nil
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
