package operation

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sextantdb/sextant/event"
)

// Recorder keeps reports on the operations that ran under a context of Record. It is safe for concurrent use.
type Recorder struct {
	mu   sync.Mutex // guards list
	list []event.OperationReport
}

// mostReports is how many reports a Recorder keeps, the latest ones: its context may be that of a whole server.
const mostReports = 100

type recorderKey struct{}

// Record makes the operations under the context report to a Recorder of its own.
func Record(ctx context.Context) (context.Context, *Recorder) {
	r := &Recorder{}
	return context.WithValue(ctx, recorderKey{}, r), r
}

// Reports are the reports so far, in the order in which the operations ended.
func (r *Recorder) Reports() []event.OperationReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

func (r *Recorder) add(o event.OperationReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == mostReports {
		r.list = slices.Delete(r.list, 0, 1)
	}
	r.list = append(r.list, o)
}

// report is the report on a call in progress; nil if nobody asked for one, which all methods take.
type report struct {
	to *Recorder
	event.OperationReport
}

// reportOn begins a report, if the context asks for one.
func reportOn(ctx context.Context, op *Op, id int64) *report {
	to, _ := ctx.Value(recorderKey{}).(*Recorder)
	if to == nil {
		return nil
	}
	return &report{to, event.OperationReport{Name: op.Name, Namespace: op.NS(), OperationID: id, Began: time.Now()}}
}

// now is the time, for who wants to know.
func (r *report) now() (t time.Time) {
	if r != nil {
		t = time.Now()
	}
	return t
}

// selected begins an attempt.
func (r *report) selected(server string, took time.Duration, err error) {
	if r != nil {
		r.Attempts = append(r.Attempts, event.Attempt{Server: server, Selection: took, Err: err})
	}
}

// checkedOut says how the attempt came by a connection; 0 is the number of none.
func (r *report) checkedOut(start time.Time, connection int64) {
	if r != nil {
		a := &r.Attempts[len(r.Attempts)-1]
		a.CheckOut, a.ConnectionID = time.Since(start), connection
	}
}

// carried says how long the command was under way.
func (r *report) carried(start time.Time) {
	if r != nil {
		r.Attempts[len(r.Attempts)-1].Wire = time.Since(start)
	}
}

// ended says why the attempt ended.
func (r *report) ended(sent bool, err error) {
	if r != nil {
		a := &r.Attempts[len(r.Attempts)-1]
		a.Sent, a.Err = sent, err
	}
}

// end hands the report over.
func (r *report) end(err error) {
	if r == nil {
		return
	}
	r.Duration, r.Err = time.Since(r.Began), err
	if n := len(r.Attempts); n > 0 {
		r.Server = r.Attempts[n-1].Server
	}
	r.to.add(r.OperationReport)
}
