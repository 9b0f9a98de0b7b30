package operation_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

var credential = &conn.Credential{Username: "joe", Password: "secret"}

// recorder keeps command events as short texts.
type recorder struct {
	list  []string
	sizes map[string]int // of the last document of each sort
	ids   map[int64]bool
	errs  []error
	panic bool
}

func (r *recorder) note(what, name string, doc bson.Raw, id int64) {
	r.list = append(r.list, what+" "+name)
	if r.sizes == nil {
		r.sizes, r.ids = map[string]int{}, map[int64]bool{}
	}
	r.sizes[what] = doc.Len()
	r.ids[id] = true
	if r.panic {
		panic("a callback that panics")
	}
}

func (r *recorder) monitor() *event.Monitor {
	return &event.Monitor{
		CommandStarted: func(_ context.Context, e *event.CommandStartedEvent) {
			r.note("started", e.Name, e.Command, e.OperationID)
		},
		CommandSucceeded: func(_ context.Context, e *event.CommandSucceededEvent) {
			r.note("succeeded", e.Name, e.Reply, e.OperationID)
		},
		CommandFailed: func(_ context.Context, e *event.CommandFailedEvent) {
			r.errs = append(r.errs, e.Err)
			r.note("failed", e.Name, nil, e.OperationID)
		},
	}
}

func TestEachAttemptIsToldUnderOneOperationID(t *testing.T) {
	r := &recorder{panic: true}
	deploy(t, settings{monitor: r.monitor()}, func(t *testing.T, d *deployment) {
		d.a.script(failure(mongoerr.CodeNotWritablePrimary, "NotWritablePrimary", mongoerr.LabelRetryableWrite))
		run(t, d, insert())
		if got := fmt.Sprint(r.list); got != "[started insert failed insert started insert succeeded insert]" {
			t.Errorf("events %s", got)
		}
		if len(r.ids) != 1 {
			t.Errorf("operation ids %v", r.ids)
		}
	})
}

func TestStartedEventShowsDocumentSequencesAsArrays(t *testing.T) {
	var seen bson.Raw
	m := &event.Monitor{CommandStarted: func(_ context.Context, e *event.CommandStartedEvent) { seen = e.Command.Clone() }}
	deploy(t, settings{monitor: m}, func(t *testing.T, d *deployment) {
		op := insert()
		op.Sequence = func(dst []byte, _ operation.Target) ([]byte, error) {
			dst, start := wire.AppendSequenceStart(dst, "documents")
			for i := range 12 {
				var err error
				if dst, err = bson.Append(dst, bson.D{{Key: "i", Value: i}}); err != nil {
					return nil, err
				}
			}
			return wire.EndSequence(dst, start), nil
		}
		run(t, d, op)
		if err := seen.Validate(); err != nil {
			t.Fatal(err)
		}
		arr, _ := seen.Lookup("documents").ArrayOK()
		if last, _ := seen.Lookup("documents", "11", "i").AsInt64OK(); arr.Len() != 12 || last != 11 {
			t.Errorf("the event shows %v", seen)
		}
	})
}

func TestFailedWritesAreASuccessfulCommandToTheMonitor(t *testing.T) {
	r := &recorder{}
	deploy(t, settings{monitor: r.monitor()}, func(t *testing.T, d *deployment) {
		d.a.script(answer{reply: okReply(bson.E{Key: "writeErrors", Value: bson.A{bson.D{
			{Key: "index", Value: 0}, {Key: "code", Value: 11000}, {Key: "errmsg", Value: "E11000 duplicate key"}}}})})
		err := d.x.Run(t.Context(), insert())
		if !mongoerr.IsDuplicateKey(err) {
			t.Errorf("error %v", err)
		}
		if got := fmt.Sprint(r.list); got != "[started insert succeeded insert]" {
			t.Errorf("events %s", got)
		}
	})
}

func TestSensitiveCommandsShowNothing(t *testing.T) {
	r := &recorder{}
	deploy(t, settings{monitor: r.monitor()}, func(t *testing.T, d *deployment) {
		create := &operation.Op{Name: "createUser", DB: "admin", Kind: operation.Write, Append: func(dst []byte, _ operation.Target) ([]byte, error) {
			dst = bson.AppendString(dst, "createUser", "joe")
			return bson.AppendString(dst, "pwd", "secret"), nil
		}}
		run(t, d, create)
		if r.sizes["started"] != 0 || r.sizes["succeeded"] != 0 {
			t.Errorf("documents of %v elements are shown", r.sizes)
		}
		f := failure(2, "BadValue")
		f.reply[1].Value = "the password secret is too short"
		d.a.script(f)
		err := d.x.Run(t.Context(), create)
		if err == nil || len(r.errs) != 1 || strings.Contains(r.errs[0].Error(), "secret") || mongoerr.Code(r.errs[0]) != 2 {
			t.Errorf("error %v, event %v", err, r.errs)
		}
		run(t, d, find())
		if r.sizes["started"] == 0 {
			t.Error("the command find is hidden")
		}
	})
}

func TestLostConnectionIsToldAsFailure(t *testing.T) {
	r := &recorder{}
	deploy(t, settings{monitor: r.monitor()}, func(t *testing.T, d *deployment) {
		d.a.script(answer{hangUp: true})
		op := find()
		op.Retryable = false
		err := d.x.Run(t.Context(), op)
		if len(r.errs) != 1 || !mongoerr.IsNetwork(r.errs[0]) || !errors.Is(err, errors.Unwrap(r.errs[0])) {
			t.Errorf("error %v, event %v", err, r.errs)
		}
	})
}
