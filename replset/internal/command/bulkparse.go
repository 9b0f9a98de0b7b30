package command

import (
	"iter"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

func (w *bulkWrite) parse(r *Request) error {
	b := &w.all
	err := r.eachField(func(key string, v bson.RawValue) (err error) {
		switch key {
		case "ops", "nsInfo", "stmtIds":
		case "ordered":
			var ordered bool
			ordered, err = boolField(r.Name, key, v)
			b.unordered = !ordered
		case "errorsOnly":
			w.errorsOnly, err = boolField(r.Name, key, v)
		case "bypassDocumentValidation":
			b.bypass, err = boolField(r.Name, key, v)
		case "let":
			if b.let, err = docField(r.Name, key, v); err == nil {
				b.let, err = evaluateLet(r.ctx, w.m, b.now, b.let)
			}
		case "cursor":
			var n int64
			if n, err = cursorOption(v); n >= 0 {
				w.batchSize = n
			}
		default:
			err = unknownField(r.Name, key)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := w.parseNamespaces(r); err != nil {
		return err
	}
	ops, err := r.statements("ops")
	if err != nil {
		return err
	}
	for _, d := range ops {
		op, err := w.parseOp(d)
		if err != nil {
			return err
		}
		w.ops = append(w.ops, op)
	}
	return b.parseStmtIDs(len(ops))
}

func (w *bulkWrite) parseNamespaces(r *Request) error {
	infos, ok, err := r.Documents("nsInfo")
	switch {
	case err != nil:
		return err
	case !ok:
		return missingField(r.Name, "nsInfo")
	}
	for _, d := range infos {
		ns, err := parseNamespaceInfo(d)
		if err != nil {
			return err
		}
		if err := checkWritable(ns); err != nil {
			return err
		}
		w.namespaces = append(w.namespaces, ns)
	}
	return nil
}

// parseNamespaceInfo reads {ns: "db.collection"}.
func parseNamespaceInfo(d bson.Raw) (ns string, err error) {
	const path = "bulkWrite.nsInfo"
	for key, v := range d.All() {
		switch key {
		case "ns":
			var ok bool
			if ns, ok = v.StringValueOK(); !ok {
				return "", wrongField(path, key, v, "string")
			}
		case "collectionUUID", "encryptionInformation", "isTimeseriesNamespace", "shardVersion", "databaseVersion":
		default:
			return "", unknownField(path, key)
		}
	}
	if d.Lookup("ns").IsZero() {
		return "", missingField(path, "ns")
	}
	return ns, nil
}

// bulkWording is how operations call what the update command calls otherwise.
var bulkWording = wording{path: "bulkWrite.ops", names: map[string]string{"q": "filter", "u": "updateMods", "c": "constants"}}

// parseOp reads {insert|update|delete: index of a namespace, ...}.
func (w *bulkWrite) parseOp(d bson.Raw) (op bulkOp, err error) {
	op.kind = firstKey(d)
	if !oneOf(op.kind, "insert", "update", "delete") {
		return op, mongoerr.Server(mongoerr.CodeFailedToParse, "Unrecognized bulkWrite operation: %s", op.kind)
	}
	if op.ns, err = w.namespace(op.kind, d.Lookup(op.kind)); err != nil {
		return op, err
	}
	switch op.kind {
	case "insert":
		op.doc, err = parseBulkInsert(d)
	case "update":
		op.update, err = parseUpdateSpec(afterFirst(d), bulkWording)
	case "delete":
		op.delete, err = parseBulkDelete(d)
	}
	return op, err
}

// namespace is the one with that index in nsInfo.
func (w *bulkWrite) namespace(kind string, at bson.RawValue) (string, error) {
	i, ok := truncated(at)
	switch {
	case !ok:
		return "", mongoerr.Server(mongoerr.CodeTypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected types '[long, int, decimal, double]'",
			bulkWording.path, kind, bsonName(at.Type))
	case i < 0:
		return "", mongoerr.Server(51024, "BSON field '%s' value must be >= 0, actual value '%d'", kind, i)
	case i >= int64(len(w.namespaces)):
		return "", badOption("BulkWrite ops entry has an invalid nsInfo index.")
	}
	return w.namespaces[i], nil
}

// afterFirst are the fields without the first, which says what is to be done.
func afterFirst(d bson.Raw) iter.Seq2[string, bson.RawValue] {
	return func(yield func(string, bson.RawValue) bool) {
		first := true
		for key, v := range d.All() {
			if !first && !yield(key, v) {
				return
			}
			first = false
		}
	}
}

func parseBulkInsert(d bson.Raw) (doc bson.Raw, err error) {
	path := bulkWording.path
	for key, v := range afterFirst(d) {
		if key != "document" {
			return nil, unknownField(path, key)
		}
		var ok bool
		if doc, ok = v.DocumentOK(); !ok {
			return nil, wrongField(path, key, v, "object")
		}
	}
	if doc == nil {
		return nil, missingField(path, "document")
	}
	return doc, nil
}

func parseBulkDelete(d bson.Raw) (s deleteSpec, err error) {
	path := bulkWording.path
	s.limit = bson.Int32Value(1)
	for key, v := range afterFirst(d) {
		switch key {
		case "filter":
			s.filter, err = docField(path, key, v)
		case "multi":
			var multi bool
			if multi, err = strictBool(path, key, v); multi {
				s.limit = bson.Int32Value(0)
			}
		case "collation":
			s.collation, err = statementCollation(key, v)
		case "hint":
			s.hint = v
		case "sampleId":
		default:
			err = unknownField(path, key)
		}
		if err != nil {
			return s, err
		}
	}
	if s.filter == nil {
		err = missingField(path, "filter")
	}
	return s, err
}
