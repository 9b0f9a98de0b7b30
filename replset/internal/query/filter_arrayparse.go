package query

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// all parses $all: the conjunction of equalities, regular expressions or $elemMatches.
func (p *parser) all(at string, arg bson.RawValue, _ bson.Raw, lv level) (node, error) {
	if arg.Type != bson.TypeArray {
		return nil, bad("$all needs an array")
	}
	values := value.Array(arg)
	if len(values) == 0 {
		return constant(false), nil
	}
	matches := isElemMatch(values[0])
	var subs []node
	for _, v := range values {
		n, err := p.allEntry(at, v, matches, lv)
		if err != nil {
			return nil, err
		}
		subs = append(subs, n)
	}
	return &and{subs: subs}, nil
}

func isElemMatch(v bson.RawValue) bool {
	first, _ := value.First(value.Doc(v))
	return v.Type == bson.TypeEmbeddedDocument && first == "$elemMatch"
}

func (p *parser) allEntry(at string, v bson.RawValue, matches bool, lv level) (node, error) {
	if matches {
		if !isElemMatch(v) {
			return nil, bad("$all/$elemMatch has to be consistent")
		}
		_, arg := value.First(bson.Raw(v.Value))
		return p.elemMatch(at, arg, nil, lv)
	}
	if v.Type == bson.TypeRegex {
		return p.regex(at, v)
	}
	if isOperators(v, true) {
		return nil, bad("no $ expressions in $all")
	}
	return p.compare(at, opEq, v)
}

// elemMatch parses $elemMatch: with operators it looks at each element's value, with fields at each element's document.
func (p *parser) elemMatch(at string, arg bson.RawValue, _ bson.Raw, _ level) (node, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, bad("$elemMatch needs an Object")
	}
	doc := bson.Raw(arg.Value)
	first, _ := value.First(doc)
	if isOperators(arg, true) && keywordFor(first) == nil {
		subs, err := p.operators("", doc, levelElement)
		if err != nil {
			return nil, err
		}
		return &leaf{path: newPath(at), test: &elemMatchValue{subs: subs}}, nil
	}
	sub, err := p.document(doc, levelElement)
	if err != nil {
		return nil, err
	}
	return &leaf{path: newPath(at), test: &elemMatchObject{sub: sub}}, nil
}

// regex parses a field compared with a regular expression value.
func (p *parser) regex(at string, v bson.RawValue) (node, error) {
	pattern, options, _ := v.RegexOK()
	return p.regexLeaf(at, pattern, options)
}

func (p *parser) regexLeaf(at, pattern, options string) (node, error) {
	r, err := p.regexTest(pattern, options)
	if err != nil {
		return nil, err
	}
	return &leaf{path: newPath(at), leaves: true, test: r}, nil
}

// regexDocument parses {$regex: ..., $options: ...} in either order.
func (p *parser) regexDocument(at string, _ bson.RawValue, doc bson.Raw, _ level) (node, error) {
	var pattern, options string
	for name, v := range doc.All() {
		switch name {
		case "$regex":
			switch v.Type {
			case bson.TypeString:
				pattern, _ = value.Text(v)
			case bson.TypeRegex:
				pattern, options, _ = v.RegexOK()
			default:
				return nil, bad("$regex has to be a string")
			}
		case "$options":
			if v.Type != bson.TypeString {
				return nil, bad("$options has to be a string")
			}
			options, _ = value.Text(v)
		}
	}
	return p.regexLeaf(at, pattern, options)
}

// options accepts $options beside a $regex; the $regex reads it.
func (p *parser) options(_ string, _ bson.RawValue, doc bson.Raw, _ level) (node, error) {
	if value.Get(doc, "$regex").Type == 0 {
		return nil, bad("$options needs a $regex")
	}
	return nil, nil
}
