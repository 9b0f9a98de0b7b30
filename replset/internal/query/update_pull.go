package query

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// pop is $pop.
type pop struct{ first bool }

func makePop(_ *updateParser, path string, arg bson.RawValue) (operator, error) {
	if !value.IsNumber(arg) {
		return nil, fail(mongoerr.CodeFailedToParse, "Expected a number in: %s", value.PrintElement(path, arg))
	}
	n, ok := value.Integral(arg)
	if !ok {
		return nil, fail(mongoerr.CodeFailedToParse, "Expected an integer: %s", value.PrintElement(path, arg))
	}
	if n != 1 && n != -1 {
		return nil, fail(mongoerr.CodeFailedToParse, "$pop expects 1 or -1, found: %d", n)
	}
	return pop{first: n < 0}, nil
}

func (p pop) change(_ *applying, e *elem, at place) (bool, error) {
	if !e.isArray() {
		return false, fail(mongoerr.CodeTypeMismatch, "Path '%s' contains an element of non-array type '%s'", at.text(), value.TypeName(e.val.Type))
	}
	kids := e.children()
	if len(kids) == 0 {
		return false, nil
	}
	if p.first {
		e.kids = kids[1:]
	} else {
		e.kids = kids[:len(kids)-1]
	}
	return true, nil
}

func (pop) create(*applying) (bson.RawValue, error) { return value.Missing, nil }

// pull is $pull and $pullAll: it takes out the elements that the func picks.
type pull struct {
	picks func(v bson.RawValue) (bool, error)
}

func (p *pull) change(_ *applying, e *elem, _ place) (bool, error) {
	if !e.isArray() {
		return false, bad("Cannot apply $pull to a non-array value")
	}
	var kept []*elem
	for _, k := range e.children() {
		out, err := p.picks(k.value())
		if err != nil {
			return false, err
		}
		if !out {
			kept = append(kept, k)
		}
	}
	changed := len(kept) != len(e.kids)
	e.kids = kept
	return changed, nil
}

func (*pull) create(*applying) (bson.RawValue, error) { return value.Missing, nil }

func makePullAll(p *updateParser, _ string, arg bson.RawValue) (operator, error) {
	if arg.Type != bson.TypeArray {
		return nil, bad("$pullAll requires an array argument but was given a %s", value.TypeName(arg.Type))
	}
	values := value.Array(arg)
	return &pull{func(v bson.RawValue) (bool, error) {
		for _, w := range values {
			if value.CompareWith(v, w, p.coll) == 0 {
				return true, nil
			}
		}
		return false, nil
	}}, nil
}

// makePull takes a value to compare with, a condition on the element's value ({$gt: 3}, a regular expression), or a query
// on elements that are documents.
func makePull(p *updateParser, _ string, arg bson.RawValue) (operator, error) {
	fp := parser{opts: p.opts, coll: p.coll, noExpr: "$expr is not allowed in this context"}
	first, _ := value.First(value.Doc(arg))
	switch {
	case arg.Type == bson.TypeRegex, arg.Type == bson.TypeEmbeddedDocument && operatorFor(first) != nil && first != "$not":
		n, err := fp.document(value.DocOf(value.Field{Key: "", Value: arg}), levelTop)
		if err != nil {
			return nil, err
		}
		return &pull{pickWrapped(n)}, nil
	case arg.Type == bson.TypeEmbeddedDocument:
		n, err := fp.document(bson.Raw(arg.Value), levelTop)
		if err != nil {
			return nil, err
		}
		return &pull{pickDocument(n)}, nil
	}
	return &pull{func(v bson.RawValue) (bool, error) { return value.CompareWith(v, arg, p.coll) == 0, nil }}, nil
}

func pickWrapped(n node) func(bson.RawValue) (bool, error) {
	return func(v bson.RawValue) (bool, error) {
		st := state{pos: -1}
		ok := n.match(value.DocOf(value.Field{Key: "", Value: v}), &st)
		return ok, st.err
	}
}

func pickDocument(n node) func(bson.RawValue) (bool, error) {
	return func(v bson.RawValue) (bool, error) {
		if v.Type != bson.TypeEmbeddedDocument {
			return false, nil
		}
		st := state{pos: -1}
		ok := n.match(bson.Raw(v.Value), &st)
		return ok, st.err
	}
}
