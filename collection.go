package sextant

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/readpref"
)

// Collection is a handle of one collection whose documents decode into T: a struct, a pointer to one, bson.D,
// bson.M, bson.Raw. It is immutable and safe for concurrent use; making one does no I/O, and the collection need
// not exist.
//
// Documents to insert, filters and updates are any values that encode to a document; T is the type of what comes back.
type Collection[T any] struct{ h handle }

// at is the handle. That of nothing says so at its first use.
func (c *Collection[T]) at() *handle {
	if c == nil {
		return &handle{err: argument("", "", "the Collection is nil: Database.Collection or CollectionOf makes one")}
	}
	return &c.h
}

// CollectionOptions are the settings of a collection handle; a nil field inherits the database's.
type CollectionOptions struct {
	ReadPreference *readpref.ReadPref
	Pin            *Pin // reads go where it is, in the place of ReadPreference; giving both is an error
	ReadConcern    *concern.Read
	WriteConcern   *concern.Write
	BSON           *bson.Options // see Config.BSON
}

// CollectionOf makes a handle of a collection with documents of type T. It is a function since a Go method has no
// type parameters of its own. A wrong name is told by the first call that uses the handle.
func CollectionOf[T any](d *Database, name string, opts ...CollectionOptions) *Collection[T] {
	h := *d.at()
	h.coll = name
	if h.err == nil {
		h.err = checkCollection(h.db, name)
	}
	o, err := one("Collection", opts)
	if err != nil && h.err == nil {
		h.err = err
	}
	return &Collection[T]{h.with(o)}
}

// As is the same collection with the same settings, whose documents decode into another type: for a projection, or
// to look at raw documents.
func As[R, T any](c *Collection[T]) *Collection[R] { return &Collection[R]{*c.at()} }

// With is a copy of the handle with other settings; nil fields keep what it has.
func (c *Collection[T]) With(o CollectionOptions) *Collection[T] {
	return &Collection[T]{c.at().with(o)}
}

// Name is the collection's name without the database.
func (c *Collection[T]) Name() string { return c.at().coll }

// Namespace is "database.collection".
func (c *Collection[T]) Namespace() string { return c.at().ns() }

// Database is a handle of the collection's database, with the settings of this handle.
func (c *Collection[T]) Database() *Database {
	h := *c.at()
	h.coll, h.err = "", checkDatabase(h.db)
	h.useBSON(&h.set.bson)
	return &Database{h}
}

// ReadPreference is the read preference in force, set here or inherited; primary where nobody set one.
func (c *Collection[T]) ReadPreference() *readpref.ReadPref { return c.at().set.effectiveReadPref() }

// Pin is the pin in force, set here or inherited; nil is none.
func (c *Collection[T]) Pin() *Pin { return c.at().set.pin }

// ReadConcern is the read concern in force, set here or inherited; nil is the server's default.
func (c *Collection[T]) ReadConcern() *concern.Read { return c.at().set.readConcern }

// WriteConcern is the write concern in force, set here or inherited; nil is the server's default.
func (c *Collection[T]) WriteConcern() *concern.Write { return c.at().set.writeConcern }

// BSONOptions are the options in force by which values are encoded and decoded, set here or inherited.
func (c *Collection[T]) BSONOptions() bson.Options { return c.at().set.bson }
