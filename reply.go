package sextant

import (
	"errors"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/mongoerr"
)

// The wire versions at which servers learned what this package sends.
const (
	wire42 = 8  // MongoDB 4.2
	wire44 = 9  // MongoDB 4.4
	wire82 = 27 // MongoDB 8.2
)

// demand makes the command fail before it is sent if the chosen server is older than the wire version. It is for what
// an old server would pass over in silence (CRUD specification, "hint").
func (c *cmd) demand(op *operation.Op, what string, wire int32) {
	op.Append = func(dst []byte, t operation.Target) ([]byte, error) {
		if t.MaxWire < wire {
			return dst, argument(c.name, c.ns, "%s needs wire version %d, and the server %s has %d", what, wire, t.Addr, t.MaxWire)
		}
		return c.append(dst, t)
	}
}

// count reads a number from 0 on.
func count(doc bson.Raw, key, path string) (int64, error) {
	v := doc.Lookup(key)
	n, ok := v.AsInt64OK()
	if !ok || n < 0 {
		return 0, mongoerr.Malformed(path, v, "a count from 0 on")
	}
	return n, nil
}

// judged is a count that the executor has looked at (operation.Op.Statements), 0 where it is missing.
func judged(reply bson.Raw, key string) int64 {
	n, _ := reply.Lookup(key).AsInt64OK()
	return n
}

// list reads an array.
func list(reply bson.Raw, key string) (bson.RawArray, error) {
	v := reply.Lookup(key)
	arr, ok := v.ArrayOK()
	if !ok {
		return nil, mongoerr.Malformed(key, v, "an array")
	}
	return arr, nil
}

// nameFault demands that a document of a listing has a name.
func nameFault(doc bson.Raw, path string) error {
	v := doc.Lookup("name")
	if name, ok := v.StringValueOK(); !ok || name == "" {
		return mongoerr.Malformed(path+".name", v, "a name")
	}
	return nil
}

// malformed is the error of a reply that was found to be wrong after its command had ended. Other errors stay as they are.
func malformed(op, ns, server string, err error) error {
	f, ok := err.(*mongoerr.MalformedReply)
	if !ok {
		return err
	}
	e := f.Failure("")
	e.Op, e.NS, e.Server = op, ns, server
	return e
}

// cursorReply is what a reply says of a cursor.
type cursorReply struct {
	id       int64  // 0: the server has no more
	db, coll string // where it is, if it goes on; not read from later batches, which have it from the first
	docs     []byte // the elements of the batch, as bytes of the reply; all are documents
	count    int
}

// readCursor reads the cursor that a command on a database made. What could be read is returned beside an error: a cursor
// that is open can be closed.
//
// The collection need not be that of the command: views, time series and listings live under other names, and servers are
// asked for more by the name that they gave ("find, getMore and killCursors commands"). Another database never is; what is
// not read, since there is no more, may be missing.
func readCursor(reply bson.Raw, db string) (r cursorReply, err error) {
	doc, err := r.read(reply)
	if err != nil {
		return r, err
	}
	id := r.id
	r.id = 0 // as long as nobody knows where it is
	v := doc.Lookup("ns")
	ns, ok := v.StringValueOK()
	if !ok && (v.Type != 0 || id != 0) {
		return r, mongoerr.Malformed("cursor.ns", v, "the name of a collection")
	}
	r.db, r.coll, _ = strings.Cut(ns, ".")
	if id != 0 && (r.db != db || r.coll == "") {
		return r, mongoerr.Malformed("cursor.ns", v, "the name of a collection of %q", db)
	}
	r.id = id
	return r, r.batch(doc, "firstBatch")
}

// readMore reads a later batch of the cursor.
func readMore(reply bson.Raw, id int64) (r cursorReply, err error) {
	doc, err := r.read(reply)
	if err != nil {
		return r, err
	}
	if r.id != 0 && r.id != id {
		return r, mongoerr.Malformed("cursor.id", doc.Lookup("id"), "%d, the cursor that was asked, or 0", id)
	}
	return r, r.batch(doc, "nextBatch")
}

func (r *cursorReply) read(reply bson.Raw) (bson.Raw, error) {
	v := reply.Lookup("cursor")
	doc, ok := v.DocumentOK()
	if !ok {
		return nil, mongoerr.Malformed("cursor", v, "a document")
	}
	v = doc.Lookup("id")
	if r.id, ok = v.AsInt64OK(); !ok {
		return nil, mongoerr.Malformed("cursor.id", v, "a 64-bit integer")
	}
	return doc, nil
}

func (r *cursorReply) batch(doc bson.Raw, key string) error {
	v := doc.Lookup(key)
	arr, ok := v.ArrayOK()
	if !ok {
		return mongoerr.Malformed("cursor."+key, v, "an array of documents")
	}
	r.docs = elements(arr)
	for rest := r.docs; ; r.count++ {
		doc, next, bad := nextDoc(rest)
		if bad != nil {
			return &mongoerr.MalformedReply{Field: "cursor." + key + "." + index(r.count), Want: "a document", Got: bad.Error()}
		}
		if doc == nil {
			return nil
		}
		rest = next
	}
}

// partial looks at the error of a write. If the server did the write, and only its write concern was not met, the
// result is there as well as the error: done is true and the result has been decoded.
func partial(err error, decode func(bson.Raw, operation.Result) error) (done bool, _ error) {
	var e *mongoerr.Error
	switch {
	case err == nil:
		return true, nil
	case !errors.As(err, &e) || e.WriteConcernError == nil || e.Code != 0 || e.Response == nil:
		return false, err
	}
	return decode(e.Response, operation.Result{}) == nil, err
}
