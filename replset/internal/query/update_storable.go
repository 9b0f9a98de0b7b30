package query

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// maxDepth is how deep a stored document may nest.
const maxDepth = 200

// checkDepth refuses a document that nests too deep.
func checkDepth(doc bson.Raw) error {
	if deeper(doc, maxDepth) {
		return fail(mongoerr.CodeOverflow, "Document exceeds maximum nesting depth of %d", maxDepth)
	}
	return nil
}

func deeper(doc bson.Raw, levels int) bool {
	for _, v := range doc.All() {
		if sub := value.Doc(v); sub != nil && (levels <= 1 || deeper(sub, levels-1)) {
			return true
		}
	}
	return false
}

// checkStorable refuses names that begin with a dollar, except those of a database reference, in the element and (deep)
// below it.
func checkStorable(e *elem, deep bool) error {
	if e.parent != nil && !e.parent.isArray() && strings.HasPrefix(e.key, "$") {
		if err := checkDollar(e); err != nil {
			return err
		}
	}
	if !deep || !e.container() {
		return nil
	}
	if !e.open && !mayHoldDollar(e.val) {
		return nil
	}
	for _, k := range e.children() {
		if err := checkStorable(k, true); err != nil {
			return err
		}
	}
	return nil
}

// mayHoldDollar looks for a dollar in the names of a value that need not be opened otherwise.
func mayHoldDollar(v bson.RawValue) bool {
	for k, e := range value.Doc(v).All() {
		if strings.HasPrefix(k, "$") || mayHoldDollar(e) {
			return true
		}
	}
	return false
}

func checkDollar(e *elem) error {
	siblings, i := e.parent.children(), e.index()
	left := func(n int) string {
		if i-n < 0 {
			return ""
		}
		return siblings[i-n].key
	}
	switch e.key {
	case "$db":
		if e.val.Type != bson.TypeString {
			return invalidRef("The DBRef $db field must be a String, not a %s", value.TypeName(e.val.Type))
		}
		if left(1) != "$id" {
			return invalidRef("Found $db field without a $id before it, which is invalid.")
		}
		if left(2) != "$ref" {
			return invalidRef("Found $id field without a $ref before it, which is invalid.")
		}
	case "$id":
		if left(1) != "$ref" {
			return invalidRef("Found $id field without a $ref before it, which is invalid.")
		}
	case "$ref":
		if e.val.Type != bson.TypeString {
			return invalidRef("The DBRef $ref field must be a String, not a %s", value.TypeName(e.val.Type))
		}
		if i+1 >= len(siblings) || siblings[i+1].key != "$id" {
			return invalidRef("The DBRef $ref field must be followed by a $id field")
		}
	default:
		return fail(mongoerr.CodeDollarPrefixedFieldName, "The dollar ($) prefixed field '%s' in '%s' is not valid for storage.", e.key, e.fullName())
	}
	return nil
}

func invalidRef(format string, args ...any) error { return fail(55, format, args...) }

// storable checks the names that an operator has written. Since 5.0 a dollar may stand before any name but one at the top.
func (o Options) storable(e *elem) error {
	if !o.Dollars {
		return checkStorable(e, true)
	}
	if e.parent != nil && e.parent.parent == nil {
		return topDollar(e.key)
	}
	return nil
}

func topDollar(key string) error {
	if !strings.HasPrefix(key, "$") {
		return nil
	}
	return fail(mongoerr.CodeDollarPrefixedFieldName, "The dollar ($) prefixed field '%s' in '%s' is not allowed in the context of an update's replacement document. "+
		"Consider using an aggregation pipeline with $replaceWith.", key, key)
}

// checkReplacement is checkStored for a document that the client has written.
func (o Options) checkReplacement(doc bson.Raw) error {
	if o.Dollars {
		for k := range doc.All() {
			if err := topDollar(k); err != nil {
				return err
			}
		}
	}
	return o.checkStored(doc)
}

// checkStored says why a document cannot be stored as it is: an _id of a type that cannot be a key; before 5.0 a dollar in
// front of a name.
func (o Options) checkStored(doc bson.Raw) error {
	root := newTree(doc)
	if err := checkID(root); err != nil {
		return err
	}
	if o.Dollars || !mayHoldDollar(root.val) {
		return nil
	}
	return checkStorable(root, true)
}

func checkID(root *elem) error {
	id := root.child("_id")
	if id == nil {
		return nil
	}
	switch id.val.Type {
	case bson.TypeArray, bson.TypeRegex, bson.TypeUndefined:
		return fail(mongoerr.CodeInvalidIdField, "The '_id' value cannot be of type %s", value.TypeName(id.val.Type))
	}
	return nil
}
