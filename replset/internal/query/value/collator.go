package value

import (
	"bytes"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// Collator orders strings; the nil Collator orders them by bytes.
type Collator struct{}

// ParseCollation reads a collation document; none, and the locale "simple", give nil.
func ParseCollation(doc bson.Raw) (*Collator, error) {
	if doc.IsEmpty() {
		return nil, nil
	}
	if l, _ := Text(Get(doc, "locale")); l == "simple" {
		return nil, nil
	}
	return nil, mongoerr.Server(mongoerr.CodeBadValue, "collations other than simple are not served")
}

func (c *Collator) compare(a, b []byte) int { return bytes.Compare(a, b) }

// key gives bytes that are equal exactly for strings that compare equal.
func (c *Collator) key(s []byte) []byte { return s }
