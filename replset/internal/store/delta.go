package store

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/sextantdb/sextant/bson"
)

// delta is the update entry that turns before into after: {$v: 1, $unset, $set} of
// dotted paths. Where such an entry would not give after byte for byte (fields in
// another order, names with dots), or has too many of them, the entry is the whole document.
func delta(before, after bson.Raw) bson.Raw {
	d := &differ{}
	d.doc("", before, after)
	if d.failed {
		return after
	}
	entry := d.entry()
	if got, err := applyDelta(before, entry); err != nil || !bytes.Equal(got, after) {
		return after
	}
	return entry
}

// isDelta tells an update entry of operators from a whole document, which begins with
// its _id.
func isDelta(o bson.Raw) bool {
	for key := range o.All() {
		return key == "$v"
	}
	return false
}

type pathValue struct {
	path  string
	value bson.RawValue
}

// mostChanges bounds an entry: whoever applies it copies the document for each.
const mostChanges = 100

// differ collects the differences of two documents.
type differ struct {
	set    []pathValue
	unset  []string
	failed bool
}

func (d *differ) doc(prefix string, before, after bson.Raw) {
	was, is := fieldsOf(before), fieldsOf(after)
	for key := range before.All() {
		if is(key).IsZero() {
			d.unset = append(d.unset, prefix+key)
		}
		if d.checkKey(key); d.failed {
			return
		}
	}
	for key, v := range after.All() {
		d.value(prefix+key, was(key), v)
		if d.checkKey(key); d.failed {
			return
		}
	}
}

// fieldsOf finds a field of a document, the first of that name, in one of many quicker than by reading all before it.
func fieldsOf(doc bson.Raw) func(key string) bson.RawValue {
	const few = 20
	n := doc.Len()
	if n <= few {
		return func(key string) bson.RawValue { return doc.Lookup(key) }
	}
	fields := make(map[string]bson.RawValue, n)
	for key, v := range doc.All() {
		if _, again := fields[key]; !again {
			fields[key] = v
		}
	}
	return func(key string) bson.RawValue { return fields[key] }
}

// checkKey gives up on names that a dotted path cannot say, and on too many changes.
func (d *differ) checkKey(key string) {
	if key == "" || strings.ContainsRune(key, '.') || key[0] == '$' || len(d.set)+len(d.unset) > mostChanges {
		d.failed = true
	}
}

func (d *differ) value(path string, before, after bson.RawValue) {
	switch {
	case before.Type == after.Type && bytes.Equal(before.Value, after.Value):
	case before.Type == bson.TypeEmbeddedDocument && after.Type == bson.TypeEmbeddedDocument:
		d.doc(path+".", bson.Raw(before.Value), bson.Raw(after.Value))
	case before.Type == bson.TypeArray && after.Type == bson.TypeArray && growing(before, after):
		d.doc(path+".", bson.Raw(before.Value), bson.Raw(after.Value))
	default:
		d.set = append(d.set, pathValue{path, after})
	}
}

// growing: an array that has not become shorter is described element by element.
func growing(before, after bson.RawValue) bool {
	return bson.Raw(before.Value).Len() <= bson.Raw(after.Value).Len() && bson.Raw(before.Value).Len() > 0
}

func (d *differ) entry() bson.Raw {
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendInt32(dst, "$v", 1)
	if len(d.unset) > 0 {
		var at int
		dst, at = bson.BeginDocumentElement(dst, "$unset")
		for _, path := range d.unset {
			dst = bson.AppendBoolean(dst, path, true)
		}
		dst = bson.EndDocument(dst, at)
	}
	if len(d.set) > 0 {
		var at int
		dst, at = bson.BeginDocumentElement(dst, "$set")
		for _, pv := range d.set {
			dst = bson.AppendValue(dst, pv.path, pv.value)
		}
		dst = bson.EndDocument(dst, at)
	}
	return bson.EndDocument(dst, start)
}

// applyDelta applies an update entry of operators to a document.
func applyDelta(doc, entry bson.Raw) (bson.Raw, error) {
	if unset, ok := entry.Lookup("$unset").DocumentOK(); ok {
		for path := range unset.All() {
			doc = unsetPath(doc, path)
		}
	}
	if set, ok := entry.Lookup("$set").DocumentOK(); ok {
		for path, v := range set.All() {
			doc = setPath(doc, path, v, false)
		}
	}
	return doc, nil
}

// setPath sets a dotted path, making what is missing on the way. array says that
// doc is the body of an array, which is filled with nulls up to a new position.
func setPath(doc bson.Raw, path string, v bson.RawValue, array bool) bson.Raw {
	key, rest, dotted := strings.Cut(path, ".")
	dst, start := bson.BeginDocument(make([]byte, 0, len(doc)+len(v.Value)+len(path)+8))
	found := false
	n := 0
	for k, old := range doc.All() {
		n++
		if k != key {
			dst = bson.AppendValue(dst, k, old)
			continue
		}
		found = true
		dst = bson.AppendValue(dst, k, setBelow(old, rest, dotted, v))
	}
	if !found {
		dst = padArray(dst, key, n, array)
		dst = bson.AppendValue(dst, key, setBelow(bson.RawValue{}, rest, dotted, v))
	}
	return bson.EndDocument(dst, start)
}

func padArray(dst []byte, key string, n int, array bool) []byte {
	if !array {
		return dst
	}
	index, err := strconv.Atoi(key)
	for ; err == nil && n < index; n++ {
		dst = bson.AppendNull(dst, strconv.Itoa(n))
	}
	return dst
}

func setBelow(old bson.RawValue, rest string, dotted bool, v bson.RawValue) bson.RawValue {
	if !dotted {
		return v
	}
	switch old.Type {
	case bson.TypeEmbeddedDocument:
		return bson.RawValue{Type: old.Type, Value: setPath(bson.Raw(old.Value), rest, v, false)}
	case bson.TypeArray:
		return bson.RawValue{Type: old.Type, Value: setPath(bson.Raw(old.Value), rest, v, true)}
	}
	return bson.DocumentValue(setPath(emptyDocument(), rest, v, false))
}

func emptyDocument() bson.Raw { return bson.Raw{5, 0, 0, 0, 0} }

// unsetPath removes a dotted path; an array element becomes null.
func unsetPath(doc bson.Raw, path string) bson.Raw { return unset(doc, path, false) }

func unset(doc bson.Raw, path string, array bool) bson.Raw {
	key, rest, dotted := strings.Cut(path, ".")
	dst, start := bson.BeginDocument(make([]byte, 0, len(doc)))
	for k, old := range doc.All() {
		switch {
		case k != key:
			dst = bson.AppendValue(dst, k, old)
		case dotted && (old.Type == bson.TypeEmbeddedDocument || old.Type == bson.TypeArray):
			below := unset(bson.Raw(old.Value), rest, old.Type == bson.TypeArray)
			dst = bson.AppendValue(dst, k, bson.RawValue{Type: old.Type, Value: below})
		case dotted:
			dst = bson.AppendValue(dst, k, old)
		case array:
			dst = bson.AppendNull(dst, k)
		}
	}
	return bson.EndDocument(dst, start)
}
