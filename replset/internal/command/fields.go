package command

import (
	"math"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// genericField are the arguments that any command may carry beside its own; the
// dispatcher reads them.
var genericField = map[string]bool{
	"$db": true, "lsid": true, "$clusterTime": true, "txnNumber": true, "autocommit": true, "startTransaction": true,
	"stmtId": true, "readConcern": true, "writeConcern": true, "maxTimeMS": true, "comment": true,
	"apiVersion": true, "apiStrict": true, "apiDeprecationErrors": true, "$readPreference": true, "$queryOptions": true,
	"$configServerState": true, "$oplogQueryData": true, "$replData": true, "$configTime": true, "$topologyTime": true,
	"rawData": true, "maxTimeMSOpOnly": true, "$audit": true, "$client": true, "help": true,
}

// eachField calls read with each field of the body that is the command's own, its
// first (the command's name) and the generic ones left out.
func (r *Request) eachField(read func(key string, v bson.RawValue) error) error {
	first := true
	for key, v := range r.Body.All() {
		if !first && !genericField[key] {
			if err := read(key, v); err != nil {
				return err
			}
		}
		first = false
	}
	return nil
}

// unknownField refuses an argument: the server ignores none that it does not know.
func unknownField(path, key string) error {
	return mongoerr.Server(40415, "BSON field '%s.%s' is an unknown field.", path, key)
}

func missingField(path, key string) error {
	return mongoerr.Server(40414, "BSON field '%s.%s' is missing but a required field", path, key)
}

func wrongField(path, key string, v bson.RawValue, want string) error {
	return mongoerr.Server(mongoerr.CodeTypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected type '%s'",
		path, key, value.TypeName(v.Type), want)
}

// wrongOld is the wording of commands that have not been ported to generated parsers.
func wrongOld(key string, v bson.RawValue, want string) error {
	return mongoerr.Server(mongoerr.CodeTypeMismatch, `"%s" had the wrong type. Expected %s, found %s`, key, want, value.TypeName(v.Type))
}

// parseFailure is the wording of find and its like: the whole command, then the fault.
func (r *Request) parseFailure(format string, args ...any) error {
	return mongoerr.Server(mongoerr.CodeFailedToParse, "Failed to parse: %s. "+format, append([]any{value.PrintDoc(r.Body)}, args...)...)
}

// docField takes a document; null counts as absent.
func docField(path, key string, v bson.RawValue) (bson.Raw, error) {
	if v.Type == bson.TypeNull {
		return nil, nil
	}
	d, ok := v.DocumentOK()
	if !ok {
		return nil, wrongField(path, key, v, "object")
	}
	return d, nil
}

// strictBool takes a boolean; null counts as false.
func strictBool(path, key string, v bson.RawValue) (bool, error) {
	b, ok := v.BooleanOK()
	if !ok && !value.Nullish(v) {
		return false, wrongField(path, key, v, "bool")
	}
	return b, nil
}

// boolField takes a boolean or a number; null counts as false.
func boolField(path, key string, v bson.RawValue) (bool, error) {
	if value.Nullish(v) {
		return false, nil
	}
	if b, ok := v.BooleanOK(); ok {
		return b, nil
	}
	if v.IsNumber() {
		return value.Truthy(v), nil
	}
	return false, wrongField(path, key, v, "bool")
}

// truncated is a number without its fraction, kept within int64; ok is false for what
// is no number.
func truncated(v bson.RawValue) (n int64, ok bool) {
	if n, ok := v.Int64OK(); ok {
		return n, true
	}
	f, ok := v.AsFloat64OK()
	switch {
	case !ok || math.IsNaN(f):
		return 0, ok
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), true
}

func oneOf(s string, list ...string) bool {
	for _, x := range list {
		if s == x {
			return true
		}
	}
	return false
}

// cursorOption reads {batchSize: n}; -1 if it is not given.
func cursorOption(v bson.RawValue) (int64, error) {
	d, ok := v.DocumentOK()
	if !ok {
		return -1, mongoerr.Server(mongoerr.CodeTypeMismatch, "cursor field must be missing or an object")
	}
	size := int64(-1)
	for key, e := range d.All() {
		if key != "batchSize" {
			return -1, mongoerr.Server(mongoerr.CodeBadValue, "cursor object can't contain fields other than batchSize")
		}
		if size, ok = truncated(e); !ok {
			return -1, mongoerr.Server(mongoerr.CodeTypeMismatch, "cursor.batchSize must be a number")
		}
		if size < 0 {
			return -1, mongoerr.Server(mongoerr.CodeBadValue, "cursor.batchSize must not be negative")
		}
	}
	return size, nil
}

// arrayOf is the array of these documents.
func arrayOf(docs []bson.Raw) bson.RawArray {
	dst, start := bson.BeginDocument(nil)
	for i, d := range docs {
		dst = bson.AppendDocument(dst, indexKey(i), d)
	}
	return bson.RawArray(bson.EndDocument(dst, start))
}
