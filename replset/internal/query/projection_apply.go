package query

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Apply projects a document. pos is the index at which the filter matched, for the positional $, -1 if none.
func (p *Projection) Apply(doc bson.Raw, pos int) (bson.Raw, error) {
	if p.empty {
		return doc, nil
	}
	w := projWriter{pos: pos, positional: p.positional, strict: p.strict}
	dst, start := bson.BeginDocument(nil)
	for k, v := range doc.All() {
		if k == "_id" {
			if p.keepID {
				dst = bson.AppendValue(dst, k, v)
			}
			continue
		}
		if m := p.matchers[k]; m != nil {
			elem, ok := matchedElement(m, doc, v)
			if !ok {
				continue
			}
			v = elem
		}
		var err error
		if dst, err = w.field(dst, &p.fields, k, v); err != nil {
			return nil, err
		}
	}
	out := bson.Raw(bson.EndDocument(dst, start))
	if c := p.computing; c != nil {
		m := c.env.Meter
		mark := m.Mark()
		defer func() { m.Release(mark) }()
		return c.shape.document(c.env.On(out, c.vars), out)
	}
	return out, nil
}

// matchedElement is the array that holds the first element that $elemMatch accepts.
func matchedElement(m node, doc bson.Raw, v bson.RawValue) (bson.RawValue, bool) {
	st := state{pos: -1, record: true}
	if !m.match(doc, &st) || st.pos < 0 {
		return value.Missing, false
	}
	e := bson.RawArray(v.Value).Index(st.pos)
	return value.ArrayOf([]bson.RawValue{e}), e.Type != 0
}

type projWriter struct {
	pos        int
	positional bool
	strict     bool
}

func (w *projWriter) field(dst []byte, n *projNode, key string, v bson.RawValue) ([]byte, error) {
	sub := n.kids[key]
	if sub == nil {
		if n.include {
			dst = bson.AppendValue(dst, key, v)
		}
		return dst, nil
	}
	if len(sub.kids) == 0 && !sub.sliced || v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		if sub.include {
			dst = bson.AppendValue(dst, key, v)
		}
		return dst, nil
	}
	if v.Type == bson.TypeEmbeddedDocument {
		return w.document(dst, sub, key, bson.Raw(v.Value))
	}
	if w.positional {
		return w.position(dst, key, bson.RawArray(v.Value))
	}
	return w.array(dst, sub, key, bson.RawArray(v.Value), false)
}

func (w *projWriter) document(dst []byte, n *projNode, key string, doc bson.Raw) ([]byte, error) {
	dst, start := bson.BeginDocumentElement(dst, key)
	for k, v := range doc.All() {
		var err error
		if dst, err = w.field(dst, n, k, v); err != nil {
			return nil, err
		}
	}
	return bson.EndDocument(dst, start), nil
}

func (w *projWriter) position(dst []byte, key string, a bson.RawArray) ([]byte, error) {
	if w.strict && (w.pos < 0 || a.Index(w.pos).Type == 0) {
		return nil, fail(51246, "positional operator '.$' couldn't find a matching element in the array")
	}
	if w.pos < 0 {
		return nil, bad("positional operator (%s.$) requires corresponding field in query specifier", key)
	}
	e := a.Index(w.pos)
	if e.Type == 0 {
		return nil, bad("positional operator element mismatch")
	}
	return bson.AppendValue(dst, key, value.ArrayOf([]bson.RawValue{e})), nil
}

// array projects an array's elements; a slice only counts in the outermost array.
func (w *projWriter) array(dst []byte, n *projNode, key string, a bson.RawArray, nested bool) ([]byte, error) {
	skip, limit := n.skip, n.limit
	if nested {
		skip, limit = 0, -1
	}
	if skip < 0 {
		skip = max(0, skip+a.Len())
	}
	dst, start := bson.BeginArrayElement(dst, key)
	out := 0
	for i, e := range a.All() {
		if i < skip {
			continue
		}
		if limit >= 0 && i-skip >= limit {
			break
		}
		var err error
		switch {
		case e.Type == bson.TypeArray:
			dst, err = w.array(dst, n, value.Index(out), bson.RawArray(e.Value), true)
		case e.Type == bson.TypeEmbeddedDocument:
			dst, err = w.document(dst, n, value.Index(out), bson.Raw(e.Value))
		case n.include:
			dst = bson.AppendValue(dst, value.Index(out), e)
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		out++
	}
	return bson.EndDocument(dst, start), nil
}
