package expr

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func iterationOps() map[string]parseFunc {
	return map[string]parseFunc{
		"$map":       parseMap,
		"$filter":    parseFilter,
		"$reduce":    parseReduce,
		"$let":       parseLet,
		"$zip":       parseZip,
		"$sortArray": parseSortArray,
		"$firstN":    parseEnds("$firstN", true),
		"$lastN":     parseEnds("$lastN", false),
		"$minN":      parseExtremes("$minN", 1),
		"$maxN":      parseExtremes("$maxN", -1),
	}
}

// under parses an expression in a scope that has one name more.
func (p *Parser) under(v bson.RawValue, names ...string) (Expr, error) {
	sub := *p
	for _, n := range names {
		sub.Scope = sub.Scope.With(n, value.Missing)
	}
	return sub.Operand(v)
}

// each is $map, and $filter if keep is set.
type each struct {
	input, body, limit Expr
	as                 string
	filter             bool
}

func parseMap(p *Parser, _ string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(16878, "$map only supports an object as its argument")
	}
	fields := map[string]bson.RawValue{}
	for k, v := range bson.Raw(arg.Value).All() {
		if k != "input" && k != "as" && k != "in" {
			return nil, fail(16879, "Unrecognized parameter to $map: %s", k)
		}
		fields[k] = v
	}
	if fields["input"].Type == 0 {
		return nil, fail(16880, "Missing 'input' parameter to $map")
	}
	out := &each{as: "this"}
	var err error
	if out.as, err = asName(fields["as"]); err != nil {
		return nil, err
	}
	if fields["in"].Type == 0 {
		return nil, fail(16882, "Missing 'in' parameter to $map")
	}
	if out.input, err = p.Operand(fields["input"]); err != nil {
		return nil, err
	}
	out.body, err = p.under(fields["in"], out.as)
	return out, err
}

// asName reads the name of an iteration's variable; "this" if none is given.
func asName(v bson.RawValue) (string, error) {
	if v.Type == 0 {
		return "this", nil
	}
	s, _ := str(v)
	if s == "" {
		return "", fail(16866, "empty variable names are not allowed")
	}
	return s, checkVariable(s, true)
}

func parseFilter(p *Parser, _ string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(28646, "$filter only supports an object as its argument")
	}
	fields := map[string]bson.RawValue{}
	for k, v := range bson.Raw(arg.Value).All() {
		if k != "input" && k != "as" && k != "cond" && k != "limit" {
			return nil, fail(28647, "Unrecognized parameter to $filter: %s", k)
		}
		fields[k] = v
	}
	if fields["input"].Type == 0 {
		return nil, fail(28648, "Missing 'input' parameter to $filter")
	}
	if fields["cond"].Type == 0 {
		return nil, fail(28650, "Missing 'cond' parameter to $filter")
	}
	out := &each{filter: true}
	var err error
	if out.as, err = asName(fields["as"]); err != nil {
		return nil, err
	}
	if out.input, err = p.Operand(fields["input"]); err != nil {
		return nil, err
	}
	if fields["limit"].Type != 0 {
		if out.limit, err = p.Operand(fields["limit"]); err != nil {
			return nil, err
		}
	}
	out.body, err = p.under(fields["cond"], out.as)
	return out, err
}

// Eval computes the body for each element.
func (x *each) Eval(c *Ctx) (bson.RawValue, error) {
	m := c.meter()
	mark := m.Mark()
	in, err := x.input.Eval(c)
	if err != nil || value.Nullish(in) {
		return null, err
	}
	if in.Type != bson.TypeArray {
		if x.filter {
			return failed(28651, "input to $filter must be an array not %s", typeOf(in))
		}
		return failed(16883, "input to $map must be an array not %s", typeOf(in))
	}
	most, err := x.most(c)
	if err != nil {
		return null, err
	}
	var out []bson.RawValue
	total := 0
	for _, e := range bson.RawArray(in.Value).All() {
		before := m.Mark()
		v, err := x.body.Eval(c.With(x.as, e))
		if err != nil {
			return v, err
		}
		if x.filter && !value.Truthy(v) {
			m.Release(before)
			if err := m.Step(0); err != nil {
				return v, err
			}
			continue
		}
		if x.filter {
			v = e
		}
		m.Release(before)
		if err := m.Hold(x.name(), len(v.Value)+elementCost); err != nil {
			return v, err
		}
		out, total = append(out, v), total+len(v.Value)
		if most > 0 && len(out) >= most {
			break
		}
	}
	if err := m.Hold(x.name(), total); err != nil {
		return null, err
	}
	return m.settle(mark, value.ArrayOf(out))
}

func (x *each) name() string {
	if x.filter {
		return "$filter"
	}
	return "$map"
}

// most is the limit of a $filter, 0 for none.
func (x *each) most(c *Ctx) (int, error) {
	if x.limit == nil {
		return 0, nil
	}
	v, err := x.limit.Eval(c)
	if err != nil || value.Nullish(v) {
		return 0, err
	}
	if !isInt(v) {
		return 0, fail(327391, "$filter: limit must be represented as a 32-bit integral value: %s", value.Show(v))
	}
	if value.Long(v) <= 0 {
		return 0, fail(327392, "$filter: limit must be greater than 0: %s", value.Show(v))
	}
	return int(value.Long(v)), nil
}

func (x *each) fold(c *Ctx) (Expr, error) {
	out := *x
	var err error
	if out.input, err = fold(x.input, c); err != nil {
		return nil, err
	}
	out.body, err = fold(x.body, c)
	return &out, err
}

// reduce is $reduce.
type reduce struct{ input, initial, body Expr }

func parseReduce(p *Parser, _ string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(40075, "$reduce requires an object as an argument, found: %s", typeOf(arg))
	}
	out := &reduce{}
	for k, v := range bson.Raw(arg.Value).All() {
		var err error
		switch k {
		case "input":
			out.input, err = p.Operand(v)
		case "initialValue":
			out.initial, err = p.Operand(v)
		case "in":
			out.body, err = p.under(v, "this", "value")
		default:
			err = fail(40076, "$reduce found an unknown argument: %s", k)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case out.input == nil:
		return nil, fail(40077, "$reduce requires 'input' to be specified")
	case out.initial == nil:
		return nil, fail(40078, "$reduce requires 'initialValue' to be specified")
	case out.body == nil:
		return nil, fail(40079, "$reduce requires 'in' to be specified")
	}
	return out, nil
}

// Eval folds the elements into one value.
func (x *reduce) Eval(c *Ctx) (bson.RawValue, error) {
	m := c.meter()
	mark := m.Mark()
	in, err := x.input.Eval(c)
	if err != nil || value.Nullish(in) {
		return null, err
	}
	if in.Type != bson.TypeArray {
		return failed(40080, "$reduce requires that 'input' be an array, found: %s", value.Show(in))
	}
	begun := m.Mark()
	acc, err := x.initial.Eval(c)
	if err != nil {
		return acc, err
	}
	for _, e := range bson.RawArray(in.Value).All() {
		if acc, err = x.body.Eval(c.With("this", e).With("value", acc)); err != nil {
			return acc, err
		}
		m.Release(begun)
		if err := m.Hold("$reduce", len(acc.Value)); err != nil {
			return acc, err
		}
	}
	return m.settle(mark, acc)
}

func (x *reduce) fold(c *Ctx) (Expr, error) {
	args, _, err := foldAll([]Expr{x.input, x.initial, x.body}, c)
	if err != nil {
		return nil, err
	}
	return &reduce{args[0], args[1], args[2]}, nil
}

// let is $let.
type let struct {
	names []string
	vals  []Expr
	body  Expr
}

func parseLet(p *Parser, _ string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(16874, "$let only supports an object as its argument")
	}
	var vars, body bson.RawValue
	for k, v := range bson.Raw(arg.Value).All() {
		switch k {
		case "vars":
			vars = v
		case "in":
			body = v
		default:
			return nil, fail(16875, "Unrecognized parameter to $let: %s", k)
		}
	}
	if vars.Type == 0 {
		return nil, fail(16876, "Missing 'vars' parameter to $let")
	}
	if body.Type == 0 {
		return nil, fail(16877, "Missing 'in' parameter to $let")
	}
	if vars.Type != bson.TypeEmbeddedDocument {
		return nil, fail(10065, "invalid parameter: expected an object (vars)")
	}
	out := &let{}
	for k, v := range bson.Raw(vars.Value).All() {
		if err := checkVariable(k, true); err != nil {
			return nil, err
		}
		e, err := p.Operand(v)
		if err != nil {
			return nil, err
		}
		out.names, out.vals = append(out.names, k), append(out.vals, e)
	}
	var err error
	out.body, err = p.under(body, out.names...)
	return out, err
}

// Eval computes the body with the variables; they do not see each other.
func (x *let) Eval(c *Ctx) (bson.RawValue, error) {
	inner := c
	m := c.meter()
	mark := m.Mark()
	for i, e := range x.vals {
		v, err := e.Eval(c)
		if err != nil {
			return v, err
		}
		inner = inner.With(x.names[i], v)
	}
	v, err := x.body.Eval(inner)
	if err != nil {
		return v, err
	}
	return m.settle(mark, v)
}

func (x *let) fold(c *Ctx) (Expr, error) {
	vals, _, err := foldAll(x.vals, c)
	if err != nil {
		return nil, err
	}
	body, err := fold(x.body, c)
	return &let{x.names, vals, body}, err
}
