package sextant

import (
	"fmt"

	"github.com/sextantdb/sextant/bson"
)

// The bytes of a reply belong to its connection, which uses them again. So what is decoded out of them must share none:
// with StringsAliased that takes a copy. The batches of a cursor are copies already.

// decodeInto decodes one document of a reply.
func decodeInto[T any](o bson.Options, doc bson.Raw, out *T, op, ns, server string) error {
	if o.Strings == bson.StringsAliased {
		doc = append(bson.Raw(nil), doc...)
	}
	return decodeWith(o.Unmarshal, doc, out, op, ns, server)
}

// decodeWith decodes a document, as it is if that is what is wanted: the server's bytes are not judged then.
func decodeWith[T any](unmarshal func([]byte, any) error, doc bson.Raw, out *T, op, ns, server string) error {
	if raw, ok := any(out).(*bson.Raw); ok {
		*raw = append(bson.Raw(nil), doc...)
		return nil
	}
	if err := unmarshal(doc, out); err != nil {
		return decodeError(op, ns, server, err)
	}
	return nil
}

// decodeValues decodes the values of an array of a reply, whose strings share memory as those of a cursor's documents do.
func decodeValues[V any](o bson.Options, values bson.RawArray) ([]V, error) {
	if o.Strings == bson.StringsAliased {
		values = append(bson.RawArray(nil), values...)
	}
	batch, out := o.NewBatch(), []V{}
	for i, v := range values.All() {
		var x V
		if raw, ok := any(&x).(*bson.RawValue); ok {
			*raw = clone(v)
		} else if err := batch.UnmarshalValue(v, &x); err != nil {
			return nil, fmt.Errorf("value %d: %w", i, err)
		}
		out = append(out, x)
	}
	return out, nil
}

// anyOf is the Go value that an any holds for v, a copy.
func anyOf(o bson.Options, v bson.RawValue) any {
	var x any
	if v.Type == 0 || o.UnmarshalValue(clone(v), &x) != nil {
		return nil
	}
	return x
}
