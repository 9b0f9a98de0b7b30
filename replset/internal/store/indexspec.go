package store

import (
	"bytes"
	"math"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

const (
	idIndexName = "_id_"
	maxIndexes  = 64
)

// idIndexSpec is the index of _id, which compares as its collection does.
func idIndexSpec(collation bson.Raw) IndexSpec {
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendInt32(dst, "_id", 1)
	key := bson.Raw(bson.EndDocument(dst, start))
	spec := IndexSpec{Name: idIndexName, Key: key, Fields: []query.IndexField{{Path: "_id"}}, Unique: true}
	dst, start = bson.BeginDocument(nil)
	dst = bson.AppendInt32(dst, "v", 2)
	dst = bson.AppendDocument(dst, "key", key)
	dst = bson.AppendString(dst, "name", idIndexName)
	if collation != nil {
		dst = bson.AppendDocument(dst, "collation", collation)
	}
	spec.Doc = bson.EndDocument(dst, start)
	spec.Collation = collation
	spec.coll, _ = value.ParseCollation(collation) // checked when the collection was made
	return spec
}

// ReadIndexSpec is ParseIndexSpec and Check in one: for a specification that has
// passed them before, such as an oplog entry's.
func ReadIndexSpec(doc bson.Raw) (IndexSpec, error) {
	spec, err := ParseIndexSpec(doc)
	if err != nil {
		return spec, err
	}
	return spec, spec.Check()
}

// ParseIndexSpec reads one element of createIndexes' array "indexes" and refuses
// what has the wrong form. Options: unique, sparse, hidden, partialFilterExpression,
// expireAfterSeconds (kept and shown; documents do not expire), background, comment of
// version and namespace. What an index cannot be here (hashed, text, geo, wildcard) is refused by Check.
func ParseIndexSpec(doc bson.Raw) (IndexSpec, error) {
	doc = bytes.Clone(doc)
	var spec IndexSpec
	var rest []byte
	hasName := false
	for key, v := range doc.All() {
		keep, err := spec.read(doc, key, v)
		if err != nil {
			return spec, err
		}
		hasName = hasName || key == "name"
		if keep {
			rest = bson.AppendValue(rest, key, v)
		}
	}
	if spec.Key == nil {
		return spec, mongoerr.Server(mongoerr.CodeFailedToParse, "The 'key' field is a required property of an index specification")
	}
	if !hasName {
		return spec, mongoerr.Server(mongoerr.CodeFailedToParse, "The 'name' field is a required property of an index specification")
	}
	spec.Doc = spec.document(rest)
	return spec, nil
}

// document is the specification as listIndexes shows it.
func (s *IndexSpec) document(rest []byte) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendInt32(dst, "v", 2)
	if s.Unique {
		dst = bson.AppendBoolean(dst, "unique", true)
	}
	dst = bson.AppendDocument(dst, "key", s.Key)
	dst = bson.AppendString(dst, "name", s.Name)
	dst = append(dst, rest...)
	if s.Collation != nil {
		dst = bson.AppendDocument(dst, "collation", s.Collation)
	}
	return bson.EndDocument(dst, start)
}

// read takes one option. keep says that it is shown as it was given.
func (s *IndexSpec) read(doc bson.Raw, key string, v bson.RawValue) (keep bool, err error) {
	switch key {
	case "key":
		d, ok := v.DocumentOK()
		if !ok {
			return false, wrongType(key, "an object", v)
		}
		s.Key = d
		s.Fields, err = parseKey(d)
	case "name":
		name, ok := v.StringValueOK()
		if !ok {
			return false, wrongType(key, "a string", v)
		}
		s.Name = name
	case "ns":
		if _, ok := v.StringValueOK(); !ok {
			return false, wrongType(key, "a string", v)
		}
	case "unique":
		s.Unique = value.Truthy(v)
	case "sparse":
		s.Sparse = value.Truthy(v)
		return true, nil
	case "hidden":
		s.Hidden = value.Truthy(v)
		return true, nil
	case "partialFilterExpression":
		d, ok := v.DocumentOK()
		if !ok {
			return false, wrongType(key, "an object", v)
		}
		s.Partial = d
		s.partial, err = query.ParseFilter(d, query.Options{})
		return true, err
	case "collation":
		return s.readCollation(v)
	case "v", "dropDups":
	default:
		if !indexOptions[key] {
			return false, mongoerr.Server(mongoerr.CodeInvalidIndexSpecificationOption,
				"The field '%s' is not valid for an index specification. Specification: %s", key, value.PrintDoc(doc))
		}
		return true, nil
	}
	return false, err
}

// indexOptions are kept and shown without an effect here.
var indexOptions = map[string]bool{
	"background": true, "expireAfterSeconds": true, "storageEngine": true, "weights": true,
	"default_language": true, "language_override": true, "textIndexVersion": true, "2dsphereIndexVersion": true,
	"bits": true, "min": true, "max": true, "bucketSize": true, "wildcardProjection": true, "prepareUnique": true,
}

func (s *IndexSpec) readCollation(v bson.RawValue) (bool, error) {
	d, ok := v.DocumentOK()
	if !ok {
		return false, wrongType("collation", "an object", v)
	}
	if d.IsEmpty() {
		return false, mongoerr.Server(mongoerr.CodeBadValue, "The field 'collation' cannot be an empty object.")
	}
	var err error
	if s.Collation, err = value.FullCollation(d); err != nil {
		return false, err
	}
	s.coll, err = value.ParseCollation(d)
	s.ownCollation = true
	return false, err
}

// Inherit gives the index the collation of its collection, unless it has named one.
func (s *IndexSpec) Inherit(collation bson.Raw) {
	if s.ownCollation || collation == nil {
		return
	}
	s.Collation = collation
	s.coll, _ = value.ParseCollation(collation) // checked when the collection was made
	dst, start := bson.BeginDocument(nil)
	for key, v := range s.Doc.All() {
		dst = bson.AppendValue(dst, key, v)
	}
	dst = bson.AppendDocument(dst, "collation", collation)
	s.Doc = bson.EndDocument(dst, start)
}

func wrongType(field, want string, v bson.RawValue) error {
	return mongoerr.Server(mongoerr.CodeTypeMismatch, "The field '%s' must be %s, but got %s", field, want, value.TypeName(v.Type))
}

// mostFields is how many an index may have (manual, limits).
const mostFields = 32

func parseKey(key bson.Raw) ([]query.IndexField, error) {
	var fields []query.IndexField
	for path, v := range key.All() {
		if err := checkKeyPath(path); err != nil {
			return nil, err
		}
		desc, err := direction(v)
		if err != nil {
			return nil, err
		}
		fields = append(fields, query.IndexField{Path: path, Descending: desc})
	}
	switch {
	case len(fields) == 0:
		return nil, cannotCreate("Index keys cannot be empty.")
	case len(fields) > mostFields:
		return nil, mongoerr.Server(13103, "too many compound keys")
	}
	return fields, nil
}

func cannotCreate(format string, args ...any) error {
	return mongoerr.Server(mongoerr.CodeCannotCreateIndex, format, args...)
}

func direction(v bson.RawValue) (desc bool, err error) {
	if plugin, ok := v.StringValueOK(); ok {
		if !indexPlugins[plugin] {
			return false, cannotCreate("Unknown index plugin '%s'", plugin)
		}
		return false, nil // refused by Check
	}
	f, ok := v.AsFloat64OK()
	switch {
	case !ok:
		return false, cannotCreate("Values in v:2 index key pattern cannot be of type %s. Only numbers > 0, numbers < 0, and strings are allowed.", value.TypeName(v.Type))
	case math.IsNaN(f):
		return false, cannotCreate("Values in the index key pattern cannot be NaN.")
	case f == 0:
		return false, cannotCreate("Values in the index key pattern cannot be 0.")
	}
	return f < 0, nil
}

var indexPlugins = map[string]bool{"hashed": true, "text": true, "2d": true, "2dsphere": true, "geoHaystack": true}

func checkKeyPath(path string) error {
	if path == "" {
		return cannotCreate("Index keys cannot be an empty field.")
	}
	for _, part := range strings.Split(path, ".") {
		if part == "" {
			return cannotCreate("Index keys cannot contain an empty field.")
		}
		if part[0] == '$' && part != "$**" && part != "$ref" && part != "$id" && part != "$db" {
			return cannotCreate("Index key contains an illegal field name: field name starts with '$'.")
		}
	}
	return nil
}

// Check refuses what is well formed but cannot be built.
func (s *IndexSpec) Check() error {
	if s.Name == "" {
		return cannotCreate("index name cannot be empty")
	}
	for path, v := range s.Key.All() {
		if plugin, ok := v.StringValueOK(); ok {
			return cannotCreate("index type '%s' is not supported", plugin)
		}
		if strings.HasSuffix(path, "$**") {
			return cannotCreate("wildcard indexes are not supported")
		}
	}
	if isIDKey(s.Fields) && s.Fields[0].Descending {
		return mongoerr.Server(mongoerr.CodeBadValue, "The field 'key' for an _id index must be {_id: 1}, but got %s", value.PrintDoc(s.Key))
	}
	if s.Partial != nil && s.Sparse {
		return cannotCreate(`cannot mix "partialFilterExpression" and "sparse" options`)
	}
	if s.Partial != nil {
		return checkPartial(s.Partial, true)
	}
	return nil
}

func isIDKey(fields []query.IndexField) bool { return len(fields) == 1 && fields[0].Path == "_id" }

// checkPartial refuses the operators that a partial index cannot have.
func checkPartial(f bson.Raw, top bool) error {
	for key, v := range f.All() {
		switch key {
		case "$and":
			if !top {
				return cannotCreate("$and only supported in partialFilterExpression at top level")
			}
			if err := checkPartialAll(v); err != nil {
				return err
			}
			continue
		case "$or", "$nor", "$expr", "$where", "$text", "$jsonSchema":
			return cannotCreate("unsupported expression in partial index: %s", key)
		}
		if err := checkPartialField(key, v); err != nil {
			return err
		}
	}
	return nil
}

func checkPartialAll(v bson.RawValue) error {
	arr, _ := v.ArrayOK()
	for _, sub := range arr.All() {
		d, _ := sub.DocumentOK()
		if err := checkPartial(d, false); err != nil {
			return err
		}
	}
	return nil
}

func checkPartialField(path string, v bson.RawValue) error {
	if pattern, options, ok := v.RegexOK(); ok {
		return cannotCreate("unsupported expression in partial index: %s regex /%s/%s\n", path, pattern, options)
	}
	d, ok := v.DocumentOK()
	if !ok {
		return nil
	}
	for op, arg := range d.All() {
		switch op {
		case "$eq", "$gt", "$gte", "$lt", "$lte", "$type":
		case "$exists":
			if !value.Truthy(arg) {
				return cannotCreate("unsupported expression in partial index: $not\n    %s exists\n", path)
			}
		case "$ne":
			return cannotCreate("unsupported expression in partial index: $not\n    %s $eq %s\n", path, value.Print(arg))
		default:
			if strings.HasPrefix(op, "$") {
				return cannotCreate("unsupported expression in partial index: %s %s %s\n", path, op, value.Print(arg))
			}
		}
	}
	return nil
}

// conflict compares a new index with those that exist: the same (true), another one of
// the same name or key (an error), or new.
func (c *Coll) conflict(spec IndexSpec) (same bool, err error) {
	if isIDKey(spec.Fields) && len(c.indexes) > 0 && c.indexes[0].IsID() {
		return true, nil
	}
	for _, ix := range c.indexes {
		old := ix.spec
		sameKey := equalKeys(old.Key, spec.Key) && bytes.Equal(old.Partial, spec.Partial) && bytes.Equal(old.Collation, spec.Collation)
		switch {
		case old.Name == spec.Name && !equalKeys(old.Key, spec.Key):
			return false, mongoerr.Server(mongoerr.CodeIndexKeySpecsConflict,
				"Index must have unique name.The existing index: %s has the same name as the requested index: %s", value.PrintDoc(old.Doc), value.PrintDoc(spec.Doc))
		case old.Name == spec.Name && !old.sameOptions(spec):
			return false, mongoerr.Server(mongoerr.CodeIndexOptionsConflict, "Index with name: %s already exists with different options", spec.Name)
		case old.Name == spec.Name:
			return true, nil
		case sameKey && !old.sameOptions(spec):
			return false, mongoerr.Server(mongoerr.CodeIndexOptionsConflict, "Index: %s already exists with different options: %s", value.PrintDoc(spec.Doc), value.PrintDoc(old.Doc))
		case sameKey:
			return false, mongoerr.Server(mongoerr.CodeIndexOptionsConflict, "Index already exists with a different name: %s", old.Name)
		}
	}
	if len(c.indexes) >= maxIndexes {
		return false, cannotCreate("add index fails, too many indexes for %s key:%s", c.ns, value.PrintDoc(spec.Key))
	}
	return false, nil
}

// equalKeys compares key patterns: the same fields in the same order and direction.
func equalKeys(a, b bson.Raw) bool {
	return query.Compare(bson.DocumentValue(a), bson.DocumentValue(b)) == 0
}

func (s IndexSpec) sameOptions(t IndexSpec) bool {
	ttl := func(d bson.Raw) bson.RawValue { return d.Lookup("expireAfterSeconds") }
	return s.Unique == t.Unique && s.Sparse == t.Sparse && bytes.Equal(s.Partial, t.Partial) && bytes.Equal(s.Collation, t.Collation) &&
		ttl(s.Doc).Equal(ttl(t.Doc))
}
