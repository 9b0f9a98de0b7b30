package expr

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func logicOps() map[string]parseFunc {
	return map[string]parseFunc{
		"$and":    parseShortCircuit,
		"$or":     parseShortCircuit,
		"$not":    unary(func(_ *Ctx, v bson.RawValue) (bson.RawValue, error) { return bson.BooleanValue(!value.Truthy(v)), nil }),
		"$cond":   parseCond,
		"$ifNull": parseIfNull,
		"$switch": parseSwitch,
		"$eq":     comparison(func(n int) bool { return n == 0 }),
		"$ne":     comparison(func(n int) bool { return n != 0 }),
		"$lt":     comparison(func(n int) bool { return n < 0 }),
		"$lte":    comparison(func(n int) bool { return n <= 0 }),
		"$gt":     comparison(func(n int) bool { return n > 0 }),
		"$gte":    comparison(func(n int) bool { return n >= 0 }),
		"$cmp": fixed(2, func(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
			return bson.Int32Value(int32(compare(c, a[0], a[1]))), nil
		}),
	}
}

func compare(c *Ctx, a, b bson.RawValue) int {
	n := value.CompareWith(a, b, c.Env.collator())
	return min(1, max(-1, n))
}

func (e *Env) collator() *value.Collator {
	if e == nil {
		return nil
	}
	return e.Collator
}

func comparison(holds func(int) bool) parseFunc {
	return fixed(2, func(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
		return bson.BooleanValue(holds(compare(c, a[0], a[1]))), nil
	})
}

// shortCircuit is $and and $or: it ends at the first argument that decides.
type shortCircuit struct {
	args []Expr
	or   bool
}

func parseShortCircuit(p *Parser, name string, arg bson.RawValue) (Expr, error) {
	args, err := p.args(arg)
	return &shortCircuit{args, name == "$or"}, err
}

// Eval computes arguments until one decides.
func (s *shortCircuit) Eval(c *Ctx) (bson.RawValue, error) {
	for _, a := range s.args {
		v, err := a.Eval(c)
		if err != nil {
			return v, err
		}
		if value.Truthy(v) == s.or {
			return bson.BooleanValue(s.or), nil
		}
	}
	return bson.BooleanValue(!s.or), nil
}

func (s *shortCircuit) fold(c *Ctx) (Expr, error) {
	args, constant, err := foldAll(s.args, c)
	if err != nil {
		return nil, err
	}
	out := &shortCircuit{args, s.or}
	if n := len(args); n > 0 { // a deciding constant at the end decides alone: what stands before it is never computed
		if l, ok := args[n-1].(Literal); ok && value.Truthy(l.Value) == s.or {
			return Literal{bson.BooleanValue(s.or)}, nil
		}
	}
	if !constant {
		return out, nil
	}
	v, err := out.Eval(c)
	return Literal{v}, err
}

// cond is $cond.
type cond struct{ test, yes, no Expr }

func parseCond(p *Parser, name string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		args, err := p.args(arg)
		if err != nil {
			return nil, err
		}
		if len(args) != 3 {
			return nil, fail(16020, "Expression $cond takes exactly 3 arguments. %d were passed in.", len(args))
		}
		return &cond{args[0], args[1], args[2]}, nil
	}
	out := &cond{}
	slots := map[string]*Expr{"if": &out.test, "then": &out.yes, "else": &out.no}
	for k, v := range bson.Raw(arg.Value).All() {
		slot := slots[k]
		if slot == nil {
			return nil, fail(17083, "Unrecognized parameter to $cond: %s", k)
		}
		var err error
		if *slot, err = p.Operand(v); err != nil {
			return nil, err
		}
	}
	switch {
	case out.test == nil:
		return nil, fail(17080, "Missing 'if' parameter to $cond")
	case out.yes == nil:
		return nil, fail(17081, "Missing 'then' parameter to $cond")
	case out.no == nil:
		return nil, fail(17082, "Missing 'else' parameter to $cond")
	}
	return out, nil
}

// Eval computes the branch that the test picks.
func (x *cond) Eval(c *Ctx) (bson.RawValue, error) {
	v, err := x.test.Eval(c)
	if err != nil {
		return v, err
	}
	if value.Truthy(v) {
		return x.yes.Eval(c)
	}
	return x.no.Eval(c)
}

func (x *cond) fold(c *Ctx) (Expr, error) {
	args, constant, err := foldAll([]Expr{x.test, x.yes, x.no}, c)
	if err != nil {
		return nil, err
	}
	out := &cond{args[0], args[1], args[2]}
	if !constant {
		return out, nil
	}
	v, err := out.Eval(c)
	return Literal{v}, err
}

// firstOf is $ifNull: the first value that is not null or missing, else the last.
type firstOf struct{ args []Expr }

func parseIfNull(p *Parser, _ string, arg bson.RawValue) (Expr, error) {
	args, err := p.args(arg)
	if err != nil {
		return nil, err
	}
	if len(args) < 2 {
		return nil, fail(16020, "Expression $ifNull takes exactly 2 arguments. %d were passed in.", len(args))
	}
	return &firstOf{args}, nil
}

// Eval computes arguments until one has a value.
func (x *firstOf) Eval(c *Ctx) (v bson.RawValue, err error) {
	for _, a := range x.args {
		if v, err = a.Eval(c); err != nil || !value.Nullish(v) {
			return v, err
		}
	}
	return v, nil
}

func (x *firstOf) fold(c *Ctx) (Expr, error) {
	args, constant, err := foldAll(x.args, c)
	if err != nil {
		return nil, err
	}
	out := &firstOf{args}
	if !constant {
		return out, nil
	}
	v, err := out.Eval(c)
	return Literal{v}, err
}

// branches is $switch.
type branches struct {
	cases, thens []Expr
	other        Expr // nil: none
}

func parseSwitch(p *Parser, _ string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(40060, "$switch requires an object as an argument, found: %s", typeOf(arg))
	}
	out := &branches{}
	for k, v := range bson.Raw(arg.Value).All() {
		var err error
		switch k {
		case "branches":
			err = out.parse(p, v)
		case "default":
			out.other, err = p.Operand(v)
		default:
			err = fail(40067, "$switch found an unknown argument: %s", k)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(out.cases) == 0 {
		return nil, fail(40068, "$switch requires at least one branch.")
	}
	return out, nil
}

func (x *branches) parse(p *Parser, list bson.RawValue) error {
	if list.Type != bson.TypeArray {
		return fail(40061, "$switch expected an array for 'branches', found: %s", typeOf(list))
	}
	for _, b := range bson.RawArray(list.Value).All() {
		if b.Type != bson.TypeEmbeddedDocument {
			return fail(40062, "$switch expected each branch to be an object, found: %s", typeOf(b))
		}
		var when, then Expr
		for k, v := range bson.Raw(b.Value).All() {
			var err error
			switch k {
			case "case":
				when, err = p.Operand(v)
			case "then":
				then, err = p.Operand(v)
			default:
				err = fail(40063, "$switch found an unknown argument to a branch: %s", k)
			}
			if err != nil {
				return err
			}
		}
		if when == nil {
			return fail(40064, "$switch requires each branch have a 'case' expression")
		}
		if then == nil {
			return fail(40065, "$switch requires each branch have a 'then' expression.")
		}
		x.cases, x.thens = append(x.cases, when), append(x.thens, then)
	}
	return nil
}

// Eval computes the first branch whose case is true.
func (x *branches) Eval(c *Ctx) (bson.RawValue, error) {
	for i, when := range x.cases {
		v, err := when.Eval(c)
		if err != nil {
			return v, err
		}
		if value.Truthy(v) {
			return x.thens[i].Eval(c)
		}
	}
	if x.other == nil {
		return failed(40066, "$switch could not find a matching branch for an input, and no default was specified.")
	}
	return x.other.Eval(c)
}

func (x *branches) fold(c *Ctx) (Expr, error) {
	cases, _, err := foldAll(x.cases, c)
	if err != nil {
		return nil, err
	}
	thens, _, err := foldAll(x.thens, c)
	if err != nil {
		return nil, err
	}
	out := &branches{cases: cases, thens: thens}
	if x.other != nil {
		out.other, err = fold(x.other, c)
	}
	return out, err
}
