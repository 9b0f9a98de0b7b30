package bson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// MarshalExtJSON returns v as MongoDB Extended JSON v2: canonical, which keeps every type, or relaxed, which is easier to
// read and turns the widths of numbers into plain JSON numbers. escapeHTML writes <, > and & as \u escapes; the line
// separators U+2028 and U+2029, which end a line in some languages, are written so always. v is anything that ValueOf takes. The error is an *EncodeError.
func MarshalExtJSON(v any, canonical, escapeHTML bool) ([]byte, error) {
	rv, err := ValueOf(v)
	if err != nil {
		return nil, err
	}
	w := extWriter{canonical: canonical, escapeHTML: escapeHTML}
	out, err := w.value(nil, rv, 1)
	if err != nil {
		return nil, encodeDone(err)
	}
	return out, nil
}

// MarshalExtJSONIndent is MarshalExtJSON with each key and value on a line of its own, as json.MarshalIndent does it.
func MarshalExtJSONIndent(v any, canonical, escapeHTML bool, prefix, indent string) ([]byte, error) {
	text, err := MarshalExtJSON(v, canonical, escapeHTML)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	if err := IndentExtJSON(&buf, text, prefix, indent); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// IndentExtJSON appends src to dst with each key and value on a line of its own.
func IndentExtJSON(dst *bytes.Buffer, src []byte, prefix, indent string) error {
	return json.Indent(dst, src, prefix, indent)
}

// UnmarshalExtJSON stores a text of Extended JSON v2 into v, as Unmarshal does. Both formats are read; with canonical only
// the canonical one. A text that is no JSON, holds half of a surrogate pair or nests too deep gives an error that says at
// which byte, counted from 0. An object that looks like a wrapper and is none, such as {"$oid": 1}, a key with NUL, and a value that
// does not fit v give a *DecodeError, with the keys that lead to it.
func UnmarshalExtJSON(data []byte, canonical bool, v any) error {
	rv, err := ParseExtJSON(data, canonical)
	if err != nil {
		return err
	}
	return rv.Unmarshal(v)
}

// ParseExtJSON returns a text of Extended JSON v2 as BSON: a document for an object, an array for an array. An object at
// the top is always a document, even with keys such as $oid. See UnmarshalExtJSON.
func ParseExtJSON(data []byte, canonical bool) (RawValue, error) {
	p := jsonParser{text: data}
	n, err := p.whole()
	if err != nil {
		return RawValue{}, err
	}
	r := extReader{canonicalOnly: canonical}
	var out []byte
	t := TypeEmbeddedDocument
	if n.kind == '{' {
		out, err = r.document(nil, n, 1)
	} else {
		out, t, err = r.value(nil, n, 1)
	}
	if err != nil {
		return RawValue{}, decodeDone(err)
	}
	return RawValue{t, out}, nil
}

// relaxed is the text that the String methods print; malformed values print why they are.
func relaxed(v RawValue) string {
	out, err := (&extWriter{}).value(nil, v, 1)
	if err != nil {
		return fmt.Sprintf("<malformed %v: %v>", v.Type, err)
	}
	return string(out)
}

// String returns the value as relaxed Extended JSON; a missing value is empty.
func (v RawValue) String() string {
	if v.IsZero() {
		return ""
	}
	return relaxed(v)
}

// String returns the document as relaxed Extended JSON.
func (r Raw) String() string { return relaxed(DocumentValue(r)) }

// String returns the array as relaxed Extended JSON.
func (a RawArray) String() string { return relaxed(ArrayValue(a)) }

// String returns the element as "key": value.
func (e RawElement) String() string {
	w := &extWriter{}
	return string(w.text(nil, []byte(e.Key()))) + ": " + e.Value().String()
}

// String returns the document as relaxed Extended JSON, or why it cannot be encoded.
func (d D) String() string { return printed(d) }

// String returns the document as relaxed Extended JSON, its keys sorted, or why it cannot be encoded.
func (m M) String() string { return printed(m) }

// String returns the array as relaxed Extended JSON, or why it cannot be encoded.
func (a A) String() string { return printed(a) }

func printed(v any) string {
	rv, err := ValueOf(new(sorter).sorted(v, 1))
	if err != nil {
		return "<" + err.Error() + ">"
	}
	return relaxed(rv)
}

// sorter makes printing repeatable: it replaces maps inside D, M and A by documents with sorted keys. At what is deeper than
// a document may be it gives up: encoding will fail there, and a value that holds itself twice has no end of such places.
type sorter struct{ tooDeep bool }

func (s *sorter) sorted(v any, depth int) any {
	if s.tooDeep = s.tooDeep || depth > MaxDepth+1; s.tooDeep {
		return v
	}
	switch x := v.(type) {
	case M:
		return s.sortedMap(x, depth)
	case map[string]any:
		return s.sortedMap(x, depth)
	case D:
		out := slices.Clone(x)
		for i := range out {
			out[i].Value = s.sorted(out[i].Value, depth+1)
		}
		return out
	case A:
		out := slices.Clone(x)
		for i := range out {
			out[i] = s.sorted(out[i], depth+1)
		}
		return out
	}
	return v
}

func (s *sorter) sortedMap(m map[string]any, depth int) D {
	if m == nil {
		return nil
	}
	d := make(D, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		d = append(d, E{k, s.sorted(m[k], depth+1)})
	}
	return d
}
