package sextant

import (
	"context"
	"iter"

	"github.com/sextantdb/sextant/bson"
)

// Cursor walks over the documents of a query, each decoded into a T. Close it, or walk it to its end with Each or
// All, which close it. All its batches come from the member that answered first, within one session. A Cursor is not
// safe for concurrent use: Next and Close, too, must not run at the same time.
//
// Behind a load balancer a cursor with batches to come keeps a connection to itself, since no other is sure to lead to where
// the cursor is. It goes back to the pool with the last batch or with Close: there, an open cursor that is forgotten costs a
// connection, and even after an error of Next Close must be called.
//
// Documents may be kept: none of them changes later. What they keep in memory is chosen by bson.Options.Strings. By
// default strings of neighbouring documents share chunks, of which a kept string keeps one, at most 8 KiB. With
// bson.StringsCopied a string keeps itself alone. With bson.StringsAliased nothing is copied: the strings are parts of the
// batch as the server sent it, up to 16 MiB and more, which each of them keeps whole, and no other batch: each has memory of
// its own. Of a bson.D, M or A, a kept value of any other type may keep as much as a string does.
//
//	for person, err := range cur.Each(ctx) {
//		if err != nil { ... }
//	}
type Cursor[T any] struct {
	b       *batches
	current T
	err     error
}

// Each walks over the remaining documents and closes the cursor, also when the loop is left early. An error is the
// last thing that it yields.
func (c *Cursor[T]) Each(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		defer c.Close(ctx)
		for c.Next(ctx) {
			if !yield(c.current, nil) {
				return
			}
		}
		if err := c.Err(); err != nil {
			yield(*new(T), err)
		}
	}
}

// All returns the remaining documents and closes the cursor. Without an error the slice is not nil.
func (c *Cursor[T]) All(ctx context.Context) ([]T, error) {
	defer c.Close(ctx)
	all := []T{}
	for c.Next(ctx) {
		all = append(all, c.current)
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	return all, nil
}

// Next goes to the next document, fetching a batch if need be. It returns false at the end, on an error, which Err
// tells, and on a tailable cursor that has no new document yet; such a cursor may be asked again.
func (c *Cursor[T]) Next(ctx context.Context) bool {
	if c.Err() != nil {
		return false
	}
	doc, err := c.b.next(ctx)
	if err != nil {
		c.err = err
	}
	if doc == nil {
		c.current = *new(T)
		return false
	}
	var v T // a new one each time, so that no field of the last document shines through
	if err := c.decode(doc, &v); err != nil {
		c.err = err
		return false
	}
	c.current = v
	return true
}

// Current is the document that the last Next went to.
func (c *Cursor[T]) Current() T {
	if c == nil {
		return *new(T)
	}
	return c.current
}

// Raw is the current document as it came from the server. It is valid until the next call of Next.
func (c *Cursor[T]) Raw() bson.Raw { return c.at().doc }

// Err is the error that ended the walk, nil if there was none.
func (c *Cursor[T]) Err() error {
	if c == nil || c.b == nil {
		return argument("", "", "the Cursor is empty: Find and Aggregate make one")
	}
	return c.err
}

// at are the cursor's batches. A cursor that nothing was found with has none.
func (c *Cursor[T]) at() *batches {
	if c == nil || c.b == nil {
		return &batches{closed: true}
	}
	return c.b
}

// Server is the address of the member that answered and holds the cursor.
func (c *Cursor[T]) Server() string { return c.at().server }

// ID is the cursor's number at the server: 0 once the server has no more to send.
func (c *Cursor[T]) ID() int64 { return c.at().id }

// RemainingBatch is the number of documents that are here already.
func (c *Cursor[T]) RemainingBatch() int { return countDocs(c.at().rest) }

// Close ends the cursor, here and at the server. It may be called more than once. Even if ctx has ended the server
// is told, within a short time; whether that worked is not reported, since the server closes forgotten cursors itself.
func (c *Cursor[T]) Close(ctx context.Context) error {
	c.at().close(ctx)
	return nil
}

// decode decodes a document of the batch at hand. Strings of several documents share memory: see bson.StringMemory.
func (c *Cursor[T]) decode(doc bson.Raw, v *T) error {
	return decodeWith(c.b.decoder.Unmarshal, doc, v, c.b.op, c.b.h.ns(), c.b.server)
}
