package sextant

import (
	"unicode/utf8"

	"github.com/sextantdb/sextant/bson"
)

// excerpt is the first limit characters of a document as relaxed Extended JSON, and "..." if there are more. Its cost
// depends on the limit, not on the document.
func excerpt(doc bson.Raw, limit int) string {
	if doc == nil {
		return "{}"
	}
	x := excerpter{most: utf8.UTFMax * (limit + 1)} // so many bytes are more characters than are shown
	x.value(bson.DocumentValue(doc))
	return cut(x.out, limit)
}

// cut shortens text to limit characters; "..." says that it did.
func cut(text []byte, limit int) string {
	if len(text) <= limit {
		return string(text)
	}
	end := 0
	for range limit {
		if end == len(text) {
			return string(text)
		}
		_, n := utf8.DecodeRune(text[end:])
		end += n
	}
	if end == len(text) {
		return string(text)
	}
	return string(text[:end]) + "..."
}

// excerpter writes a value until it has more than enough.
type excerpter struct {
	out  []byte
	most int
}

func (x *excerpter) full() bool { return len(x.out) > x.most }

func (x *excerpter) value(v bson.RawValue) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		if doc, ok := v.DocumentOK(); ok {
			x.document(doc)
			return
		}
	case bson.TypeArray:
		if a, ok := v.ArrayOK(); ok {
			x.array(a)
			return
		}
	case bson.TypeString:
		if text := v.Value[min(4, len(v.Value)):]; len(text) > x.most { // behind its length
			end := x.most
			for end > 0 && !utf8.RuneStart(text[end]) {
				end--
			}
			v = bson.StringValue(string(text[:end]))
		}
	case bson.TypeBinary:
		if subtype, data, ok := v.BinaryOK(); ok && len(data) > x.most {
			v = bson.BinaryValue(subtype, data[:x.most-x.most%3])
		}
	}
	x.out = append(x.out, v.String()...)
}

func (x *excerpter) document(doc bson.Raw) {
	x.out = append(x.out, '{')
	first := true
	for key, v := range doc.All() {
		if !first {
			x.out = append(x.out, ',')
		}
		first = false
		x.out = append(x.out, bson.StringValue(key).String()...)
		x.out = append(x.out, ':')
		if x.value(v); x.full() {
			return
		}
	}
	x.out = append(x.out, '}')
}

func (x *excerpter) array(a bson.RawArray) {
	x.out = append(x.out, '[')
	first := true
	for _, v := range a.All() {
		if !first {
			x.out = append(x.out, ',')
		}
		first = false
		if x.value(v); x.full() {
			return
		}
	}
	x.out = append(x.out, ']')
}
