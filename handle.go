package sextant

import (
	"context"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/operation"
)

// handle is what every operation of a database or a collection starts from: the client, the namespace and the
// settings in force. A mistake in the handle's making is kept in err and told by the first call.
type handle struct {
	client   *Client
	db, coll string
	set      settings
	err      error
}

// ns is "db.coll", or "db" for a handle of a database.
func (h *handle) ns() string {
	if h.coll == "" {
		return h.db
	}
	return h.db + "." + h.coll
}

// with is a copy of the handle with other settings.
func (h *handle) with(o CollectionOptions) handle {
	c := *h
	c.set = c.set.override(o.ReadPreference, o.ReadConcern, o.WriteConcern)
	c.usePin(o)
	c.useBSON(o.BSON)
	return c
}

// useBSON puts the options in force, unless they are nil: then those that were inherited stay.
func (h *handle) useBSON(o *bson.Options) {
	if o == nil {
		return
	}
	h.set.bson = *o
	if err := o.Validate(); err != nil && h.err == nil {
		h.err = argument("", h.ns(), "%s", words(err))
	}
}

// cmd starts a command whose first element names this handle's collection.
func (h *handle) cmd(name string) *cmd { return h.encoded(newCmd(name, h.ns(), h.coll)) }

// encoded makes the values that are appended to c follow the handle's options.
func (h *handle) encoded(c *cmd) *cmd {
	c.bson = h.set.bson
	return c
}

// read fills in what all reads have: where to go, as the call says or else as is inherited, the read concern, and one
// retry.
func (h *handle) read(c *cmd, r route) *operation.Op {
	if r.pref == nil && r.pin == nil {
		r.pref, r.pin = h.set.readPref, h.set.pin
	}
	op := &operation.Op{
		Name: c.name, DB: h.db, Coll: h.coll, Kind: operation.Read, Append: c.append,
		ReadConcern: h.set.readConcern, Retryable: true,
	}
	h.direct(c, op, r)
	return op
}

// write fills in what all writes have. No read preference reaches a write: its target is the primary, always.
func (h *handle) write(c *cmd, retryable bool) *operation.Op {
	return &operation.Op{
		Name: c.name, DB: h.db, Coll: h.coll, Kind: operation.Write, Append: c.append,
		WriteConcern: h.set.writeConcern, Retryable: retryable,
	}
}

// append is the Op's Append. The elements are ready, whoever the target is; only rawData must not be shown to servers
// that do not know it (CRUD specification).
func (c *cmd) append(dst []byte, t operation.Target) ([]byte, error) {
	dst = append(dst, c.b...)
	if c.rawData != nil && t.MaxWire >= wire82 {
		dst = bson.AppendBoolean(dst, "rawData", *c.rawData)
	}
	return dst, nil
}

// run sends the command that c holds through op.
func (h *handle) run(ctx context.Context, c *cmd, op *operation.Op) error {
	switch {
	case ctx == nil:
		return argument(c.name, h.ns(), "the context is nil")
	case h.err != nil:
		return h.err
	case c.err != nil:
		return c.err
	}
	if h.set.writeConcern != nil {
		if err := h.set.writeConcern.Validate(); err != nil {
			return argument(c.name, h.ns(), "%s", words(err))
		}
	}
	if err := h.client.ready(c.name, h.ns()); err != nil {
		return err
	}
	ctx, cancel := h.bounded(ctx)
	defer cancel()
	return h.client.exec.Run(ctx, op)
}

// bounded puts the client's Timeout on a context without a deadline. A call of several commands does so itself, so that it
// holds for all of them.
func (h *handle) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx == nil || h.client.empty() {
		return ctx, func() {} // run says so
	}
	if _, limited := ctx.Deadline(); !limited && h.client.cfg.Timeout > 0 {
		return context.WithTimeout(ctx, h.client.cfg.Timeout)
	}
	return ctx, func() {}
}
