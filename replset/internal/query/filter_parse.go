package query

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// level says where in a filter a document stands: $expr, $where and $text only serve at the top.
type level uint8

const (
	levelTop level = iota
	levelClause
	levelElement // inside $elemMatch
)

type parser struct {
	opts    Options
	coll    *value.Collator
	noExpr  string // why $expr may not be used here, empty if it may
	noWhere bool
	scope   *expr.Vars // variables that $expr may use, nil for those of the command's let
	depth   int
}

// maxFilterDepth bounds the nesting of logical operators, as the server does with its parser.
const maxFilterDepth = 100

// keyword parses an operator that stands where a field name could.
type keyword func(p *parser, name string, arg bson.RawValue, at level) (node, error)

// keywordFor finds the operators that have no path. The parts of a database reference look like such and are fields.
func keywordFor(name string) keyword {
	switch name {
	case "$and", "$or", "$nor":
		return (*parser).logical
	case "$comment":
		return func(*parser, string, bson.RawValue, level) (node, error) { return nil, nil }
	case "$expr":
		return (*parser).expression
	case "$alwaysTrue", "$alwaysFalse":
		return (*parser).constant
	case "$where":
		return (*parser).where
	case "$text":
		return (*parser).textSearch
	case "$jsonSchema":
		return (*parser).jsonSchema
	case "$sampleRate":
		return (*parser).sampleRate
	case "$ref", "$id", "$db":
		return func(p *parser, name string, arg bson.RawValue, _ level) (node, error) {
			return p.compare(name, opEq, arg)
		}
	}
	return nil
}

// document parses a query document: the conjunction of its elements.
func (p *parser) document(doc bson.Raw, at level) (node, error) {
	if p.depth++; p.depth > maxFilterDepth {
		return nil, bad("exceeded maximum query tree depth of %d at %s", maxFilterDepth, value.PrintDoc(doc))
	}
	defer func() { p.depth-- }()
	all := &and{}
	for name, arg := range doc.All() {
		n, err := p.element(name, arg, at)
		if err != nil {
			return nil, err
		}
		all.add(n)
	}
	all.order()
	return all, nil
}

func (p *parser) element(name string, arg bson.RawValue, at level) (node, error) {
	if strings.HasPrefix(name, "$") {
		if k := keywordFor(name); k != nil {
			return k(p, name, arg, at)
		}
		return nil, bad("unknown top level operator: %s", name)
	}
	if isOperators(arg, false) {
		subs, err := p.operators(name, bson.Raw(arg.Value), at)
		if err != nil {
			return nil, err
		}
		return conjunction(subs), nil
	}
	if arg.Type == bson.TypeRegex {
		return p.regex(name, arg)
	}
	return p.compare(name, opEq, arg)
}

func conjunction(subs []node) node {
	if len(subs) == 1 {
		return subs[0]
	}
	return &and{subs: subs}
}

// isOperators says whether a value is a document of operators rather than a document to compare with: its first name
// begins with $ and it is no database reference. A lenient caller takes any of $ref, $id, $db for a reference.
func isOperators(v bson.RawValue, lenient bool) bool {
	if v.Type != bson.TypeEmbeddedDocument {
		return false
	}
	first, _ := value.First(bson.Raw(v.Value))
	return strings.HasPrefix(first, "$") && !isDBRef(bson.Raw(v.Value), lenient)
}

func isDBRef(doc bson.Raw, lenient bool) bool {
	ref, id, db := false, false, false
	for k := range doc.All() {
		ref = ref || k == "$ref"
		id = id || k == "$id"
		db = db || k == "$db"
	}
	if lenient {
		return ref || id || db
	}
	return ref && id
}

// operators parses {$gt: 1, $lt: 5} for a path.
func (p *parser) operators(path string, doc bson.Raw, at level) ([]node, error) {
	var out []node
	for name, arg := range doc.All() {
		n, err := p.operator(path, name, arg, doc, at)
		if err != nil {
			return nil, err
		}
		if n != nil {
			out = append(out, n)
		}
	}
	return out, nil
}

// logical parses $and, $or, $nor.
func (p *parser) logical(name string, arg bson.RawValue, at level) (node, error) {
	if arg.Type != bson.TypeArray {
		return nil, bad("%s must be an array", name)
	}
	if at == levelTop {
		at = levelClause
	}
	var subs []node
	for _, v := range bson.RawArray(arg.Value).All() {
		if v.Type != bson.TypeEmbeddedDocument {
			return nil, bad("$or/$and/$nor entries need to be full objects")
		}
		n, err := p.document(bson.Raw(v.Value), at)
		if err != nil {
			return nil, err
		}
		subs = append(subs, n)
	}
	if len(subs) == 0 {
		return nil, bad("$and/$or/$nor must be a nonempty array")
	}
	switch name {
	case "$and":
		all := &and{}
		for _, s := range subs {
			all.add(s)
		}
		all.order()
		return all, nil
	case "$or":
		return &or{subs: subs}, nil
	}
	return &not{sub: &or{subs: subs}}, nil
}

func (p *parser) constant(name string, arg bson.RawValue, _ level) (node, error) {
	if !value.IsNumber(arg) {
		return nil, fail(mongoerr.CodeFailedToParse, "Expected a number in: %s", value.PrintElement(name, arg))
	}
	if n, ok := value.Integral(arg); !ok || n != 1 {
		return nil, fail(mongoerr.CodeFailedToParse, "%s must be an integer value of 1", name)
	}
	return constant(name == "$alwaysTrue"), nil
}

func (p *parser) where(string, bson.RawValue, level) (node, error) {
	if p.noWhere {
		return nil, bad("$where is not allowed in this context")
	}
	return nil, bad("no globalScriptEngine in $where parsing")
}

func (p *parser) textSearch(_ string, arg bson.RawValue, at level) (node, error) {
	switch {
	case at == levelElement:
		return nil, bad("$text can only be applied to the top-level document")
	case arg.Type != bson.TypeEmbeddedDocument:
		return nil, bad("$text expects an object")
	}
	return nil, fail(mongoerr.CodeIndexNotFound, "text index required for $text query")
}

// sample is $sampleRate: it lets a share of the documents pass.
type sample struct {
	rate   float64
	random func() float64
}

func (p *parser) sampleRate(_ string, arg bson.RawValue, _ level) (node, error) {
	rate := value.Float(arg)
	if !value.IsNumber(arg) {
		return nil, bad("argument to $sampleRate must be a numeric type")
	}
	if !(rate >= 0 && rate <= 1) {
		return nil, bad("numeric argument to $sampleRate must be in [0, 1]")
	}
	if p.opts.Random == nil && rate > 0 && rate < 1 {
		return nil, bad("$sampleRate has no source of randomness here")
	}
	return &sample{rate, p.opts.Random}, nil
}

func (s *sample) match(bson.Raw, *state) bool {
	return s.rate >= 1 || s.rate > 0 && s.random() < s.rate
}

func (s *sample) single(bson.RawValue, *state) bool { return s.match(nil, nil) }
