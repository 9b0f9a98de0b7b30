package sextant

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/readpref"
)

// RunCommandOptions are the options of RunCommand and RunCommandAs.
type RunCommandOptions struct {
	// ReadPreference chooses the member. It is not inherited: nil is the primary, as the server cannot know whether a
	// command of yours may run elsewhere.
	ReadPreference *readpref.ReadPref
	Pin            *Pin     // go where it is, in the place of ReadPreference
	Selector       Selector // nil: none
}

// RunCommandCursorOptions are the options of RunCommandCursor. All but those that choose the member are for the later batches:
// what the first should have belongs into the command.
type RunCommandCursorOptions struct {
	ReadPreference *readpref.ReadPref // not inherited; nil is the primary
	Pin            *Pin               // go where it is, in the place of ReadPreference
	Selector       Selector           // nil: none
	BatchSize      int32
	Comment        any
	CursorType     CursorType // as the command asks for it
	MaxAwaitTime   time.Duration
}

// RunCommand sends a command to the database as it is and returns the whole reply. The command is a document whose
// first key is the command's name: a bson.D, a struct, a bson.Raw. Nothing is inherited (no read preference, no read
// or write concern) and nothing is retried. A reply with ok: 0 is an error, and so is one with failed writes.
func (d *Database) RunCommand(ctx context.Context, command any, opts ...RunCommandOptions) (bson.Raw, error) {
	return RunCommandAs[bson.Raw](ctx, d, command, opts...)
}

// RunCommandAs is RunCommand with the reply decoded into an R.
func RunCommandAs[R any](ctx context.Context, d *Database, command any, opts ...RunCommandOptions) (R, error) {
	var out R
	o, err := one("runCommand", opts)
	if err != nil {
		return out, err
	}
	c := d.at().plain(command)
	op := d.at().command(c, route{o.ReadPreference, o.Pin, o.Selector})
	op.Decode = func(reply bson.Raw, r operation.Result) error {
		return decodeInto(d.at().set.bson, reply, &out, c.name, c.ns, r.Server)
	}
	if err := d.at().run(ctx, c, op); err != nil {
		return *new(R), err
	}
	return out, nil
}

// RunCommandCursor sends a command that makes a cursor and returns it.
func RunCommandCursor[R any](ctx context.Context, d *Database, command any, opts ...RunCommandCursorOptions) (*Cursor[R], error) {
	o, err := one("runCommand", opts)
	if err != nil {
		return nil, err
	}
	c := d.at().plain(command)
	if o.BatchSize < 0 {
		c.fail(argument(c.name, c.ns, "BatchSize is negative (%d)", o.BatchSize))
	}
	b := &batches{h: d.at(), op: c.name, decoder: d.at().set.bson.NewBatch(), batchSize: o.BatchSize, tailable: o.CursorType != NonTailable, maxAwait: o.MaxAwaitTime}
	b.setComment(c, o.Comment)
	if err := b.open(ctx, c, d.at().command(c, route{o.ReadPreference, o.Pin, o.Selector})); err != nil {
		return nil, err
	}
	return &Cursor[R]{b: b}, nil
}

// plain encodes a command of the caller's.
func (h *handle) plain(command any) *cmd {
	outer := h.encoded(&cmd{name: "runCommand", ns: h.ns()})
	outer.ordered("command", command)
	if isNil(command) {
		outer.fail(nilDocument(outer.name, outer.ns, "the command"))
	}
	if outer.err != nil {
		return outer
	}
	doc := bson.Raw(outer.b[1+len("command")+1:])
	name, err := firstKey(doc)
	if err != nil {
		outer.fail(argument(outer.name, outer.ns, "the command is empty"))
		return outer
	}
	return &cmd{name: name, ns: h.ns(), b: doc[4 : len(doc)-1]}
}

// command is the Op of a command that inherits nothing and is not retried.
func (h *handle) command(c *cmd, r route) *operation.Op {
	op := &operation.Op{Name: c.name, DB: h.db, Kind: operation.Command, Append: c.append}
	h.direct(c, op, r)
	return op
}
