package store

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// keyText prints an index key, whose fields have no names: { : 1, : "x" }.
func keyText(vals []bson.RawValue) string {
	var b strings.Builder
	b.WriteString("{")
	for i, v := range vals {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(" : " + value.Print(v))
	}
	b.WriteString(" }")
	return b.String()
}
