package expr

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Parser parses expressions. Scope holds the names of the user's variables that are defined where the expression stands.
type Parser struct {
	Env   *Env
	Scope *Vars
	// Extra names system variables beyond ROOT, CURRENT and the like: $redact has KEEP, PRUNE and DESCEND.
	Extra map[string]bson.RawValue
	depth int
}

// maxDepth bounds the nesting of expressions, so that no input exhausts the stack.
const maxDepth = 200

// parseFunc parses the argument of one operator.
type parseFunc func(p *Parser, name string, arg bson.RawValue) (Expr, error)

// evalFunc computes an operator from the values of its arguments.
type evalFunc func(c *Ctx, a []bson.RawValue) (bson.RawValue, error)

var registry map[string]parseFunc

// The families refer back to the parser, which the compiler takes for a cycle if the table is a plain initialiser.
func init() {
	registry = map[string]parseFunc{}
	for _, family := range []map[string]parseFunc{
		logicOps(), arithmeticOps(), mathOps(), stringOps(), regexOps(), arrayOps(), iterationOps(), setOps(), objectOps(),
		datePartOps(), dateOps(), dateMathOps(), convertOps(), miscOps(), trigOps(), bitOps(),
	} {
		for name, f := range family {
			registry[name] = f
		}
	}
}

// Operand parses anything that may stand as an argument: "$path", "$$variable", {$operator: ...}, {field: ...}, [...] or a constant.
func (p *Parser) Operand(v bson.RawValue) (Expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fail(mongoerr.CodeBadValue, "expression nests deeper than %d levels", maxDepth)
	}
	defer func() { p.depth-- }()
	switch v.Type {
	case bson.TypeString:
		s, _ := value.Text(v)
		if strings.HasPrefix(s, "$") {
			return p.Path(s)
		}
	case bson.TypeEmbeddedDocument:
		return p.Object(bson.Raw(v.Value))
	case bson.TypeArray:
		return p.array(bson.RawArray(v.Value))
	}
	return Literal{v}, nil
}

// Object parses a document: an operator if its first name begins with $, else a document of expressions.
func (p *Parser) Object(doc bson.Raw) (Expr, error) {
	first, _ := value.First(doc)
	if strings.HasPrefix(first, "$") {
		return p.Operator(doc)
	}
	out := &object{}
	for k, v := range doc.All() {
		if err := CheckFieldName(k); err != nil {
			return nil, err
		}
		e, err := p.Operand(v)
		if err != nil {
			return nil, err
		}
		out.keys, out.exprs = append(out.keys, k), append(out.exprs, e)
	}
	return out, nil
}

// Known says whether there is an operator of that name.
func Known(name string) bool { return registry[name] != nil }

// Operator parses {$name: argument}.
func (p *Parser) Operator(doc bson.Raw) (Expr, error) {
	if doc.Len() != 1 {
		return nil, fail(15983, "An object representing an expression must have exactly one field: %s", value.PrintDoc(doc))
	}
	name, arg := value.First(doc)
	f := registry[name]
	if f == nil {
		return nil, fail(mongoerr.CodeInvalidPipelineOperator, "Unrecognized expression '%s'", name)
	}
	return f(p, name, arg)
}

func (p *Parser) array(a bson.RawArray) (Expr, error) {
	out := &array{}
	for _, v := range a.All() {
		e, err := p.Operand(v)
		if err != nil {
			return nil, err
		}
		out.exprs = append(out.exprs, e)
	}
	return out, nil
}

// args parses the arguments of an operator: the elements of an array, or the one value.
func (p *Parser) args(arg bson.RawValue) ([]Expr, error) {
	if arg.Type != bson.TypeArray {
		e, err := p.Operand(arg)
		return []Expr{e}, err
	}
	var out []Expr
	for _, v := range bson.RawArray(arg.Value).All() {
		e, err := p.Operand(v)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// call is an operator whose arguments are all computed before it.
type call struct {
	args []Expr
	fn   evalFunc
}

// Eval computes the arguments and the operator.
func (x *call) Eval(c *Ctx) (bson.RawValue, error) {
	var space [4]bson.RawValue
	vals := space[:0]
	m := c.meter()
	mark := m.Mark()
	for _, a := range x.args {
		v, err := a.Eval(c)
		if err != nil {
			return v, err
		}
		vals = append(vals, v)
	}
	if err := m.holdArguments(vals); err != nil {
		return null, err
	}
	v, err := x.fn(c, vals)
	if err != nil {
		return v, err
	}
	return m.settle(mark, v)
}

func (x *call) fold(c *Ctx) (Expr, error) {
	mark := c.meter().Mark()
	args, constant, err := foldAll(x.args, c)
	if err != nil {
		return nil, err
	}
	out := &call{args, x.fn}
	if !constant {
		return out, nil
	}
	return literal(c, mark, out)
}

// literal computes a constant. The constants that it was made of are forgotten.
func literal(c *Ctx, mark int64, e Expr) (Expr, error) {
	v, err := e.Eval(c)
	if err != nil {
		return nil, err
	}
	v, err = c.meter().settle(mark, v)
	return Literal{v}, err
}

// fixed is an operator of exactly n arguments.
func fixed(n int, fn evalFunc) parseFunc {
	return func(p *Parser, name string, arg bson.RawValue) (Expr, error) {
		args, err := p.args(arg)
		if err != nil {
			return nil, err
		}
		if len(args) != n {
			return nil, fail(16020, "Expression %s takes exactly %d arguments. %d were passed in.", name, n, len(args))
		}
		return &call{args, fn}, nil
	}
}

// between is an operator of lo to hi arguments.
func between(lo, hi int, fn evalFunc) parseFunc {
	return func(p *Parser, name string, arg bson.RawValue) (Expr, error) {
		args, err := p.args(arg)
		if err != nil {
			return nil, err
		}
		if len(args) < lo || len(args) > hi {
			return nil, fail(28667, "Expression %s takes at least %d arguments, and at most %d, but %d were passed in.", name, lo, hi, len(args))
		}
		return &call{args, fn}, nil
	}
}

// variadic is an operator of any number of arguments.
func variadic(fn evalFunc) parseFunc {
	return func(p *Parser, _ string, arg bson.RawValue) (Expr, error) {
		args, err := p.args(arg)
		if err != nil {
			return nil, err
		}
		return &call{args, fn}, nil
	}
}

// unary is an operator of one argument.
func unary(fn func(c *Ctx, v bson.RawValue) (bson.RawValue, error)) parseFunc {
	return fixed(1, func(c *Ctx, a []bson.RawValue) (bson.RawValue, error) { return fn(c, a[0]) })
}

// object builds a document.
type object struct {
	keys  []string
	exprs []Expr
}

// Eval builds the document; missing fields are left out.
func (o *object) Eval(c *Ctx) (bson.RawValue, error) {
	dst, start := bson.BeginDocument(nil)
	m := c.meter()
	mark := m.Mark()
	for i, e := range o.exprs {
		v, err := e.Eval(c)
		if err != nil {
			return v, err
		}
		m.Release(mark + int64(len(dst)))
		if err := m.Hold("an object", len(v.Value)); err != nil {
			return v, err
		}
		if v.Type != 0 {
			dst = bson.AppendValue(dst, o.keys[i], v)
		}
	}
	return m.settle(mark, bson.DocumentValue(bson.EndDocument(dst, start)))
}

func (o *object) fold(c *Ctx) (Expr, error) {
	mark := c.meter().Mark()
	exprs, constant, err := foldAll(o.exprs, c)
	if err != nil {
		return nil, err
	}
	out := &object{o.keys, exprs}
	if !constant {
		return out, nil
	}
	return literal(c, mark, out)
}

// array builds an array; missing elements become null.
type array struct{ exprs []Expr }

// Eval builds the array.
func (a *array) Eval(c *Ctx) (bson.RawValue, error) {
	vals := make([]bson.RawValue, len(a.exprs))
	m := c.meter()
	mark := m.Mark()
	for i, e := range a.exprs {
		v, err := e.Eval(c)
		if err != nil {
			return v, err
		}
		vals[i] = v
		if err := m.Hold("an array", len(v.Value)+elementCost); err != nil {
			return null, err
		}
	}
	return m.settle(mark, value.ArrayOf(vals))
}

func (a *array) fold(c *Ctx) (Expr, error) {
	mark := c.meter().Mark()
	exprs, constant, err := foldAll(a.exprs, c)
	if err != nil {
		return nil, err
	}
	out := &array{exprs}
	if !constant {
		return out, nil
	}
	return literal(c, mark, out)
}

// CheckFieldName says why a name cannot be a part of a path.
func CheckFieldName(s string) error {
	switch {
	case s == "":
		return fail(15998, "FieldPath field names may not be empty strings.")
	case s[0] == '$':
		return fail(16410, "FieldPath field names may not start with '$'.")
	case strings.ContainsRune(s, 0):
		return fail(16411, "FieldPath field names may not contain '\\0'.")
	case strings.ContainsRune(s, '.'):
		return fail(16412, "FieldPath field names may not contain '.'.")
	}
	return nil
}

// CheckPath says why a text is no dotted path of fields.
func CheckPath(s string) error {
	switch {
	case s == "":
		return fail(40352, "FieldPath cannot be constructed with empty string")
	case strings.HasSuffix(s, "."):
		return fail(40353, "FieldPath must not end with a '.'.")
	}
	for part := range strings.SplitSeq(s, ".") {
		if err := CheckFieldName(part); err != nil {
			return err
		}
	}
	return nil
}

// Fields gives the names and expressions of an expression that builds a document, none for any other.
func Fields(e Expr) ([]string, []Expr) {
	if o, ok := e.(*object); ok {
		return o.keys, o.exprs
	}
	return nil, nil
}
