package sextant

import (
	"context"
	"strings"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/operation"
)

// Report collects what became of the operations that ran under a context: which member answered, which attempts were made
// and why each of them ended, and how long it took to choose a member, to get a connection and to hear the answer. It may be
// read at any time, by several goroutines. It keeps the last hundred operations.
type Report struct{ r *operation.Recorder }

// WithReport returns a context whose operations are told to the report, those of a cursor that is walked under it too. Of
// two reports, one around the other, the inner one is told. An operation without a report pays nothing for those of others.
func WithReport(ctx context.Context) (context.Context, *Report) {
	if ctx == nil {
		return nil, &Report{&operation.Recorder{}} // the operation will say what is wrong
	}
	ctx, r := operation.Record(ctx)
	return ctx, &Report{r}
}

// Operations are the operations that have ended, in that order. One call may be several: an InsertMany of many documents, a
// Find and the later batches of its cursor.
func (r *Report) Operations() []event.OperationReport {
	if r == nil || r.r == nil { // not of WithReport: nobody tells it anything
		return nil
	}
	return r.r.Reports()
}

// Last is the operation that ended last; the zero value if there is none yet.
func (r *Report) Last() event.OperationReport {
	if all := r.Operations(); len(all) > 0 {
		return all[len(all)-1]
	}
	return event.OperationReport{}
}

// Server is the member that the last operation was answered by, or at which its last attempt failed.
func (r *Report) Server() string { return r.Last().Server }

// Attempts are the attempts of the last operation.
func (r *Report) Attempts() []event.Attempt { return r.Last().Attempts }

// String is a line for each operation, and one for each attempt that failed.
func (r *Report) String() string {
	all := r.Operations()
	lines := make([]string, len(all))
	for i := range all {
		lines[i] = all[i].String()
	}
	return strings.Join(lines, "\n")
}
