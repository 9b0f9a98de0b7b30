package command

import (
	"bytes"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// collation is how a command wants strings compared. Without one of its own it compares as the collection does.
type collation struct {
	given bool
	doc   bson.Raw // with every default; nil compares by bytes
	fault error    // of a statement's: told when the statement runs
}

// collationField reads the argument collation of most commands; an empty document is none.
func collationField(key string, v bson.RawValue) (c collation, err error) {
	d, ok := v.DocumentOK()
	if !ok {
		return c, wrongOld(key, v, "object")
	}
	return readCollation(d)
}

func readCollation(d bson.Raw) (c collation, err error) {
	if d.IsEmpty() {
		return c, nil
	}
	c.given = true
	c.doc, err = value.FullCollation(d)
	return c, err
}

// statementCollation reads the collation of one statement of a batch, whose faults are the statement's.
func statementCollation(key string, v bson.RawValue) (c collation, err error) {
	d, ok := v.DocumentOK()
	if !ok {
		return c, wrongOld(key, v, "object")
	}
	c, fault := readCollation(d)
	c.fault = fault
	return c, nil
}

// on is the collation that applies to a collection, which need not exist.
func (c collation) on(coll *store.Coll) bson.Raw {
	if c.given || coll == nil {
		return c.doc
	}
	return coll.Options().Collation
}

// checkView refuses to compare otherwise than a view does, or a view below it.
func (c collation) checkView(coll *store.Coll) error {
	if c.given && !bytes.Equal(c.doc, coll.Options().Collation) {
		return mongoerr.Server(mongoerr.CodeOptionNotSupportedOnView, "Cannot override a view's default collation: %s", coll.NS())
	}
	return nil
}
