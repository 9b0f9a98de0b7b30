package sextant

import (
	"strings"
	"unicode/utf8"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/readpref"
)

// settings is what is inherited along the chain client, database, collection, call. Handles hold it by value and
// never change it, so a handle that was made before a parent's copy was altered keeps what it had.
type settings struct {
	readPref     *readpref.ReadPref
	pin          *Pin // its read preference is then readPref
	readConcern  *concern.Read
	writeConcern *concern.Write
	bson         bson.Options
}

// override returns s with every given value in the place of the inherited one; nil inherits.
func (s settings) override(rp *readpref.ReadPref, rc *concern.Read, wc *concern.Write) settings {
	if rp != nil {
		s.readPref, s.pin = rp, nil
	}
	if rc != nil {
		s.readConcern = rc
	}
	if wc != nil {
		s.writeConcern = wc
	}
	return s
}

// effectiveReadPref is the read preference that a read under these settings uses: primary where nothing was set.
func (s settings) effectiveReadPref() *readpref.ReadPref {
	if s.readPref == nil {
		return readpref.Primary()
	}
	return s.readPref
}

// one returns the single options value of a call, or the zero value when there is none. Two are an error:
// which of them should win is a question that no rule answers for every field.
func one[O any](op string, opts []O) (O, error) {
	var zero O
	switch len(opts) {
	case 0:
		return zero, nil
	case 1:
		return opts[0], nil
	}
	return zero, argument(op, "", "%d options values given: pass none or one %T", len(opts), zero)
}

// checkDatabase says what is wrong with a database name, if anything is. The characters are those that no server
// on any platform accepts; $external is the one name with a dollar sign.
func checkDatabase(name string) error {
	switch {
	case name == "":
		return argument("", "", "the database name is empty")
	case len(name) > 63:
		return argument("", "", "the database name %.20q... has %d bytes: at most 63 are allowed", name, len(name))
	case name == "$external":
		return nil
	case !utf8.ValidString(name):
		return argument("", "", "the database name %q is not UTF-8", name)
	}
	if i := strings.IndexAny(name, "\x00/\\. \"$"); i >= 0 {
		return argument("", "", "the database name %q must not contain %q", name, name[i])
	}
	return nil
}

// checkCollection says what is wrong with a collection name, if anything is. The server checks the finer points.
func checkCollection(db, name string) error {
	switch {
	case name == "":
		return argument("", db, "the collection name is empty")
	case strings.IndexByte(name, 0) >= 0:
		return argument("", db, "the collection name %q contains a zero byte", name)
	case !utf8.ValidString(name):
		return argument("", db, "the collection name %q is not UTF-8", name)
	}
	return nil
}
