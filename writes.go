package sextant

import (
	"context"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// writes are the writes of one call, sent in as many commands as their kinds and the server's limits demand.
type writes struct {
	h               *handle
	lots            []lot
	noun            string // what errors call a write: "document", "model"
	ordered         bool
	bypass, rawData *bool // bypass is told to inserts and updates alone
	comment, let    any   // let is told to updates and deletes alone
	hints           int32 // the wire version that a server must have for the hints; 0: any

	// counted is told of each command that was answered: the position of its first write in the lot, and the reply.
	// nil: nobody counts.
	counted  func(l *lot, first int, reply bson.Raw)
	measured bool  // no write is larger than a server takes
	failed   []int // the caller's indexes of the writes that surely or possibly were not done
}

// lot is writes of one kind, in the order in which they are sent.
type lot struct {
	command string     // insert, update or delete
	list    []bson.Raw // documents to insert, or statements
	at      []int      // the caller's index of each; nil: its position
	many    []bool     // which may concern many documents, so that their command is not sent twice; nil: none
}

// sequences are the fields of the commands that hold the writes.
var sequences = map[string]string{"insert": "documents", "update": "updates", "delete": "deletes"}

// index is the caller's index of the write at a position.
func (l *lot) index(i int) int {
	if l.at == nil {
		return i
	}
	return l.at[i]
}

func (l *lot) isMany(i int) bool { return l.many != nil && l.many[i] }

// repeatable reports whether none of the writes from first on that may go into one command to t concerns many documents.
func (l *lot) repeatable(first int, t operation.Target) bool {
	b := operation.NewBatch(t, 0, "").Statements()
	for i := first; i < len(l.list); i++ {
		if fits, err := b.Add(i, len(l.list[i])); !fits || err != nil {
			break
		}
		if l.many[i] {
			return false
		}
	}
	return true
}

// run sends all writes. With ordered, the first that fails ends it; what was done stays. Errors of several commands become
// one, whose write errors have the caller's indexes.
func (w *writes) run(ctx context.Context) error {
	ctx, cancel := w.h.bounded(ctx)
	defer cancel()
	var all batchError
	for i := range w.lots {
		if w.runLot(ctx, &w.lots[i], &all) {
			continue
		}
		for j := range w.lots[i+1:] {
			w.fail(&w.lots[i+1+j], 0)
		}
		break
	}
	return all.err()
}

// runLot sends one lot and reports whether the call goes on.
func (w *writes) runLot(ctx context.Context, l *lot, all *batchError) bool {
	for done := 0; done < len(l.list); {
		took, err := w.send(ctx, l, done)
		next := done + took
		switch {
		case err == nil:
			all.wrote = true
		case !all.add(err, l, done, next): // not an answer about writes: nothing is known of this command
			w.fail(l, done)
			return false
		case w.note(l, all.last, next):
			return false
		}
		done = next
	}
	return true
}

// note records which positions failed of a command whose writes end before next, and whether the rest is not to be sent.
func (w *writes) note(l *lot, last []int, next int) (stop bool) {
	first := next
	for _, i := range last {
		first = min(first, i)
	}
	if w.ordered && first < next {
		w.fail(l, first)
		return true
	}
	for _, i := range last {
		w.failed = append(w.failed, l.index(i))
	}
	return false
}

// fail records the writes of the lot from first on as not done.
func (w *writes) fail(l *lot, first int) {
	for i := first; i < len(l.list); i++ {
		w.failed = append(w.failed, l.index(i))
	}
}

// send sends one command with as many writes of the lot from first on as the chosen server takes.
func (w *writes) send(ctx context.Context, l *lot, first int) (took int, err error) {
	c := w.command(l)
	op := w.h.write(c, !l.isMany(first))
	if w.hints > 0 {
		c.demand(op, "the option hint", w.hints)
	}
	single := false // as it was when the command was first sent: no other server's limits change it
	if l.many != nil {
		op.Repeatable = func(t operation.Target) bool {
			single = l.repeatable(first, t)
			return single
		}
	}
	op.Sequence = func(dst []byte, t operation.Target) (_ []byte, err error) {
		if err := w.measure(t); err != nil {
			return dst, err
		}
		dst, took, err = w.fill(dst, l, first, t, single)
		op.Statements = took
		return dst, err
	}
	if w.counted != nil {
		op.Decode = func(reply bson.Raw, _ operation.Result) error {
			w.counted(l, first, reply)
			return nil
		}
	}
	err = w.h.run(ctx, c, op)
	if e, ok := err.(*mongoerr.Error); ok && w.counted != nil && partly(e) {
		w.counted(l, first, e.Response)
	}
	return took, err
}

// partly reports whether the error is of a command that was done and answered, but for some writes or the write concern.
func partly(e *mongoerr.Error) bool {
	if e.Code != 0 || len(e.WriteErrors) == 0 && e.WriteConcernError == nil {
		return false
	}
	ok, isBool := e.Response.Lookup("ok").BooleanOK()
	n, _ := e.Response.Lookup("ok").AsFloat64OK()
	return n == 1 || isBool && ok
}

// command is the lot's command without its writes.
func (w *writes) command(l *lot) *cmd {
	c := w.h.cmd(l.command)
	c.b = bson.AppendBoolean(c.b, "ordered", w.ordered)
	if l.command != "delete" {
		c.opt("bypassDocumentValidation", w.bypass)
	}
	c.any("comment", w.comment)
	if l.command != "insert" {
		c.optDoc("let", w.let)
	}
	c.rawData = w.rawData
	return c
}

// measure refuses, before the first command is sent, what is too large for the server in any command.
func (w *writes) measure(t operation.Target) error {
	if w.measured {
		return nil
	}
	for i := range w.lots {
		l := &w.lots[i]
		whole := operation.NewBatch(t, 0, w.noun)
		each := l.batch(t, 0, w.noun)
		for i, doc := range l.list {
			if err := each.Check(l.index(i), len(doc)); err != nil {
				return err
			}
			if len(doc) <= int(t.MaxBSON) || l.command != "update" {
				continue
			}
			if err := whole.Check(l.index(i), len(doc.Lookup("u").Value)); err != nil { // most likely a replacement
				return err
			}
		}
	}
	w.measured = true
	return nil
}

// batch begins a message with writes of the lot.
func (l *lot) batch(t operation.Target, used int, noun string) *operation.Batch {
	b := operation.NewBatch(t, used, noun)
	if l.command != "insert" {
		b.Statements()
	}
	return b
}

// fill appends writes from first on until the message is full, and returns how many. With single, one that concerns many
// documents ends the message.
func (w *writes) fill(dst []byte, l *lot, first int, t operation.Target, single bool) ([]byte, int, error) {
	dst, start := wire.AppendSequenceStart(dst, sequences[l.command])
	batch := l.batch(t, len(dst), w.noun)
	for i := first; i < len(l.list); i++ {
		if single && l.isMany(i) {
			break
		}
		ok, err := batch.Add(l.index(i), len(l.list[i]))
		if err != nil {
			return dst, 0, err
		}
		if !ok {
			break
		}
		dst = append(dst, l.list[i]...)
	}
	return wire.EndSequence(dst, start), batch.Count(), nil
}
