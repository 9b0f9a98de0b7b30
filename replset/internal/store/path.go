package store

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
)

// pathExists reports whether the dotted path leads to a value in doc, looking into
// the documents of arrays on the way as indexes do.
func pathExists(doc bson.Raw, path string) bool {
	key, rest, dotted := strings.Cut(path, ".")
	v := doc.Lookup(key)
	if v.IsZero() {
		return false
	}
	if !dotted {
		return true
	}
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return pathExists(bson.Raw(v.Value), rest)
	case bson.TypeArray:
		return arrayPathExists(bson.RawArray(v.Value), rest)
	}
	return false
}

func arrayPathExists(arr bson.RawArray, path string) bool {
	if pathExists(bson.Raw(arr), path) { // by position: "a.0"
		return true
	}
	for _, v := range arr.All() {
		if d, ok := v.DocumentOK(); ok && pathExists(d, path) {
			return true
		}
	}
	return false
}
