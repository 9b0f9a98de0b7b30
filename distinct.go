package sextant

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/readpref"
)

// DistinctOptions are the options of Distinct; zero fields are not sent.
type DistinctOptions struct {
	ReadPreference *readpref.ReadPref // of this call alone; nil inherits
	Pin            *Pin               // go where it is, in the place of ReadPreference
	Selector       Selector           // of this call alone; nil: none
	Collation      *Collation
	Comment        any
	Hint           any // 7.1
	MaxTime        time.Duration
	RawData        *bool
}

// Distinct returns the different values of a field among the documents that match the filter, each decoded into a V.
// An array counts as its elements. It is a function since V is a type of its own; use any for values of several types.
func Distinct[V, T any](ctx context.Context, c *Collection[T], field string, filter any, opts ...DistinctOptions) ([]V, error) {
	o, err := one("distinct", opts)
	if err != nil {
		return nil, err
	}
	cm := c.at().cmd("distinct")
	if field == "" {
		cm.fail(argument(cm.name, cm.ns, "the field's name is empty"))
	}
	cm.text("key", field)
	cm.docAs("query", "filter", filter)
	cm.collation(o.Collation)
	cm.any("comment", o.Comment)
	cm.hint(o.Hint)
	cm.millis("maxTimeMS", o.MaxTime)
	cm.rawData = o.RawData
	op := c.at().read(cm, route{o.ReadPreference, o.Pin, o.Selector})
	out := []V{}
	op.Decode = func(reply bson.Raw, r operation.Result) (err error) {
		values, err := list(reply, "values")
		if err != nil {
			return err
		}
		if out, err = decodeValues[V](c.at().set.bson, values); err != nil {
			return decodeError(cm.name, cm.ns, r.Server, err)
		}
		return nil
	}
	if err := c.at().run(ctx, cm, op); err != nil {
		return nil, err
	}
	return out, nil
}
