package command

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// A clustered collection (since version 5.3) keeps its documents by _id. Here it is shown as one and is stored like any
// other: only the order in which documents lie differs.

// clusteredIndex reads {key: {_id: 1}, unique: true, name} and gives it as it is shown.
func clusteredIndex(v bson.RawValue) (bson.Raw, error) {
	d, ok := v.DocumentOK()
	if !ok {
		return nil, wrongField("create", "clusteredIndex", v, "object")
	}
	name, unique := "_id_", false
	var key bson.Raw
	for k, e := range d.All() {
		switch k {
		case "key":
			if key, ok = e.DocumentOK(); !ok {
				return nil, wrongField("create.clusteredIndex", k, e, "object")
			}
		case "name":
			if name, ok = e.StringValueOK(); !ok {
				return nil, wrongField("create.clusteredIndex", k, e, "string")
			}
		case "unique":
			unique = value.Truthy(e)
		case "v":
		default:
			return nil, unknownField("create.clusteredIndex", k)
		}
	}
	n, _ := key.Lookup("_id").AsInt64OK()
	switch {
	case key == nil:
		return nil, missingField("create.clusteredIndex", "key")
	case key.Len() != 1 || n != 1:
		return nil, mongoerr.Server(197, "The clusteredIndex option is only supported for key: {_id: 1}, found %s", value.PrintDoc(key))
	case !unique:
		return nil, mongoerr.Server(mongoerr.CodeInvalidIndexSpecificationOption, "The clusteredIndex option requires unique: true to be specified")
	}
	return document(bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: key}, {Key: "name", Value: name}, {Key: "unique", Value: true}}), nil
}

// clustered is the index of a clustered collection as listIndexes shows it, nil for another collection.
func clustered(c *store.Coll) bson.Raw {
	spec, ok := c.Options().Document().Lookup("clusteredIndex").DocumentOK()
	if !ok {
		return nil
	}
	dst, start := bson.BeginDocument(nil)
	for k, v := range spec.All() {
		dst = bson.AppendValue(dst, k, v)
	}
	return bson.EndDocument(bson.AppendBoolean(dst, "clustered", true), start)
}
