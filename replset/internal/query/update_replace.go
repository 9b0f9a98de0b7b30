package query

import (
	"bytes"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// applyReplacement puts the new document in the old one's place: the _id stays and stands first, and an empty timestamp at
// the top becomes the present one.
func (u *Update) applyReplacement(doc bson.Raw, insert bool) (bson.Raw, bool, error) {
	if err := u.opts.checkReplacement(u.replace); err != nil {
		return nil, false, err
	}
	old, id := value.Get(doc, "_id"), value.Get(u.replace, "_id")
	if id.Type == 0 {
		id = old
	} else if old.Type != 0 && value.Compare(old, id) != 0 {
		return nil, false, fail(mongoerr.CodeImmutableField, "After applying the update, the (immutable) field '_id' was found to have been altered to %s", value.PrintElement("_id", id))
	}
	dst, start := bson.BeginDocument(nil)
	if id.Type != 0 {
		dst = bson.AppendValue(dst, "_id", id)
	}
	for k, v := range u.replace.All() {
		if k != "_id" {
			dst = bson.AppendValue(dst, k, u.stamp(v))
		}
	}
	out := bson.Raw(bson.EndDocument(dst, start))
	if bytes.Equal(out, doc) && !insert {
		return doc, false, nil
	}
	return out, true, nil
}

// stamp replaces the empty timestamp, which asks for the present moment.
func (u *Update) stamp(v bson.RawValue) bson.RawValue {
	if t, i, ok := v.TimestampOK(); ok && t == 0 && i == 0 {
		return u.opts.timestamp()
	}
	return v
}

func (o Options) timestamp() bson.RawValue {
	if o.ClusterTime.T != 0 {
		return bson.TimestampValue(o.ClusterTime.T, o.ClusterTime.I)
	}
	return bson.TimestampValue(uint32(o.Now.Unix()), 1)
}
