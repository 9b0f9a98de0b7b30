package store

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// The limits of a stored document.
const (
	MaxDocumentSize = 16 << 20
	MaxNesting      = 180 // levels of a document that is inserted
)

// PrepareInsert makes a document ready to be stored: it refuses what a collection does
// not take, puts an _id first (newID's, where there is none) and replaces empty
// timestamps at the top level by now, as a real server does.
func PrepareInsert(doc bson.Raw, newID func() bson.ObjectID, now bson.Timestamp) (bson.Raw, error) {
	if len(doc) > MaxDocumentSize {
		return nil, tooLarge(len(doc))
	}
	if deeperThan(doc, MaxNesting) {
		return nil, mongoerr.Server(mongoerr.CodeOverflow, "cannot insert document because it exceeds %d levels of nesting", MaxNesting)
	}
	id, err := checkTop(doc)
	if err != nil {
		return nil, err
	}
	if !needsRewrite(doc, id) {
		return bytes.Clone(doc), nil // what is stored is nobody else's buffer
	}
	out := rewrite(doc, id, newID, now)
	return out, nil
}

// CheckStored holds what an update made to the same limits.
func CheckStored(doc bson.Raw) error {
	if len(doc) > MaxDocumentSize {
		return mongoerr.Server(17419, "Resulting document after update is larger than %d", MaxDocumentSize)
	}
	return CheckID(doc.Lookup("_id"))
}

func tooLarge(n int) error {
	return mongoerr.Server(mongoerr.CodeBadValue, "object to insert too large. size in bytes: %d, max size: %d", n, MaxDocumentSize)
}

// checkTop returns the _id, if any.
func checkTop(doc bson.Raw) (bson.RawValue, error) {
	id := doc.Lookup("_id")
	if id.IsZero() {
		return id, nil
	}
	return id, CheckID(id)
}

// CheckID refuses what cannot be an _id: arrays, regular expressions, undefined, and
// documents with names that begin with "$" (those of a DBRef excepted).
func CheckID(id bson.RawValue) error {
	switch id.Type {
	case bson.TypeArray:
		return mongoerr.Server(mongoerr.CodeBadValue, "can't use an array for _id")
	case bson.TypeRegex:
		return mongoerr.Server(mongoerr.CodeBadValue, "can't use a regex for _id")
	case bson.TypeUndefined:
		return mongoerr.Server(mongoerr.CodeBadValue, "can't use a undefined for _id")
	case bson.TypeEmbeddedDocument:
		return checkIDNames(bson.Raw(id.Value))
	}
	return nil
}

func checkIDNames(doc bson.Raw) error {
	for key, v := range doc.All() {
		if strings.HasPrefix(key, "$") && key != "$ref" && key != "$id" && key != "$db" {
			return mongoerr.Server(mongoerr.CodeDollarPrefixedFieldName, "%s is not valid for storage.", key)
		}
		if v.Type == bson.TypeEmbeddedDocument {
			if err := checkIDNames(bson.Raw(v.Value)); err != nil {
				return err
			}
		}
	}
	return nil
}

// deeperThan reports whether doc nests more than levels documents and arrays.
func deeperThan(doc bson.Raw, levels int) bool {
	if levels < 0 {
		return true
	}
	for _, v := range doc.All() {
		if (v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray) && deeperThan(bson.Raw(v.Value), levels-1) {
			return true
		}
	}
	return false
}

func needsRewrite(doc bson.Raw, id bson.RawValue) bool {
	if id.IsZero() {
		return true
	}
	first := true
	for key, v := range doc.All() {
		if first && key != "_id" || key != "_id" && emptyTimestamp(v) {
			return true
		}
		first = false
	}
	return false
}

func emptyTimestamp(v bson.RawValue) bool {
	t, i, ok := v.TimestampOK()
	return ok && t == 0 && i == 0
}

func rewrite(doc bson.Raw, id bson.RawValue, newID func() bson.ObjectID, now bson.Timestamp) bson.Raw {
	dst, start := bson.BeginDocument(make([]byte, 0, len(doc)+17))
	if id.IsZero() {
		dst = bson.AppendObjectID(dst, "_id", newID())
	} else {
		dst = bson.AppendValue(dst, "_id", id)
	}
	seenID := false
	for key, v := range doc.All() {
		switch {
		case key == "_id" && !seenID:
			seenID = true
		case emptyTimestamp(v):
			dst = bson.AppendTimestamp(dst, key, now.T, now.I)
			now.I++
		default:
			dst = bson.AppendValue(dst, key, v)
		}
	}
	return bson.EndDocument(dst, start)
}

// CheckNamespace refuses what cannot be the name of a collection that is written to.
func CheckNamespace(ns string) error {
	db, coll := DatabaseOf(ns), CollectionOf(ns)
	switch {
	case db == "" || strings.ContainsAny(db, "/\\. \"$\x00") || len(db) > 63:
		return mongoerr.Server(mongoerr.CodeInvalidNamespace, "Invalid namespace specified '%s'", ns)
	case coll == "" || strings.HasPrefix(coll, ".") || strings.ContainsRune(coll, 0):
		return mongoerr.Server(mongoerr.CodeInvalidNamespace, "Invalid namespace specified '%s'", ns)
	case strings.HasPrefix(coll, "$") || strings.Contains(coll, "$") && ns != "local.oplog.$main":
		return mongoerr.Server(mongoerr.CodeInvalidNamespace, "invalid collection name")
	case len(ns) > maxNamespace:
		return mongoerr.Server(mongoerr.CodeInvalidNamespace, "fully qualified namespace %s is too long (max is %d bytes)", ns, maxNamespace)
	}
	return nil
}

const maxNamespace = 255

// String prints options for a test's failure.
func (o CollOptions) String() string { return fmt.Sprint(o.Document()) }
