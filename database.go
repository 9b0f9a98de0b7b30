package sextant

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/readpref"
)

// Database is a handle of one database. It is immutable and safe for concurrent use; making one does no I/O, and
// the database need not exist.
type Database struct{ h handle }

// at is the handle. That of nothing says so at its first use.
func (d *Database) at() *handle {
	if d == nil {
		return &handle{err: argument("", "", "the Database is nil: Client.Database makes one")}
	}
	return &d.h
}

// DatabaseOptions are the settings of a database handle; a nil field inherits the client's.
type DatabaseOptions struct {
	ReadPreference *readpref.ReadPref
	Pin            *Pin // reads go where it is, in the place of ReadPreference; giving both is an error
	ReadConcern    *concern.Read
	WriteConcern   *concern.Write
	BSON           *bson.Options // see Config.BSON
}

// Database makes a handle of a database. A wrong name is told by the first call that uses the handle.
func (cl *Client) Database(name string, opts ...DatabaseOptions) *Database {
	d := &Database{handle{client: cl, db: name, set: cl.settings(), err: checkDatabase(name)}}
	o, err := one("Database", opts)
	if err != nil && d.h.err == nil {
		d.h.err = err
	}
	d.h = d.h.with(CollectionOptions(o))
	return d
}

// With is a copy of the handle with other settings; nil fields keep what it has.
func (d *Database) With(o DatabaseOptions) *Database {
	return &Database{d.at().with(CollectionOptions(o))}
}

// Name is the database's name.
func (d *Database) Name() string { return d.at().db }

// Client is the client that the handle belongs to.
func (d *Database) Client() *Client { return d.at().client }

// ReadPreference is the read preference in force, set here or inherited; primary where nobody set one.
func (d *Database) ReadPreference() *readpref.ReadPref { return d.at().set.effectiveReadPref() }

// Pin is the pin in force; nil is none.
func (d *Database) Pin() *Pin { return d.at().set.pin }

// ReadConcern is the read concern in force, set here or inherited; nil is the server's default.
func (d *Database) ReadConcern() *concern.Read { return d.at().set.readConcern }

// WriteConcern is the write concern in force, set here or inherited; nil is the server's default.
func (d *Database) WriteConcern() *concern.Write { return d.at().set.writeConcern }

// BSONOptions are the options in force by which values are encoded and decoded, set here or inherited.
func (d *Database) BSONOptions() bson.Options { return d.at().set.bson }

// Collection makes a handle whose documents are bson.D. For documents of a type of your own use CollectionOf.
func (d *Database) Collection(name string, opts ...CollectionOptions) *Collection[bson.D] {
	return CollectionOf[bson.D](d, name, opts...)
}
