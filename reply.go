package sextant

import (
	"errors"

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

// count reads a number of the reply, 0 where it is missing.
func count(reply bson.Raw, key string) int64 {
	n, _ := reply.Lookup(key).AsInt64OK()
	return n
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
