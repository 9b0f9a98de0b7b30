package expr

import (
	"slices"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
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
	for _, e := range bson.RawArray(in.Value).All() {
		v, err := x.body.Eval(c.With(x.as, e))
		if err != nil {
			return v, err
		}
		if !x.filter {
			out = append(out, v)
		} else if value.Truthy(v) {
			out = append(out, e)
		}
		if most > 0 && len(out) >= most {
			break
		}
	}
	return value.ArrayOf(out), nil
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
	in, err := x.input.Eval(c)
	if err != nil || value.Nullish(in) {
		return null, err
	}
	if in.Type != bson.TypeArray {
		return failed(40080, "$reduce requires that 'input' be an array, found: %s", value.Show(in))
	}
	acc, err := x.initial.Eval(c)
	if err != nil {
		return acc, err
	}
	for _, e := range bson.RawArray(in.Value).All() {
		if acc, err = x.body.Eval(c.With("this", e).With("value", acc)); err != nil {
			return acc, err
		}
	}
	return acc, nil
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
	for i, e := range x.vals {
		v, err := e.Eval(c)
		if err != nil {
			return v, err
		}
		inner = inner.With(x.names[i], v)
	}
	return x.body.Eval(inner)
}

func (x *let) fold(c *Ctx) (Expr, error) {
	vals, _, err := foldAll(x.vals, c)
	if err != nil {
		return nil, err
	}
	body, err := fold(x.body, c)
	return &let{x.names, vals, body}, err
}

// zip is $zip.
type zip struct {
	inputs, defaults []Expr
	longest          bool
}

func parseZip(p *Parser, _ string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(34460, "$zip only supports an object as an argument, found %s", typeOf(arg))
	}
	out := &zip{}
	for k, v := range bson.Raw(arg.Value).All() {
		var err error
		switch k {
		case "inputs":
			if v.Type != bson.TypeArray {
				return nil, fail(34461, "inputs must be an array of expressions, found %s", typeOf(v))
			}
			out.inputs, err = p.args(v)
		case "defaults":
			if v.Type != bson.TypeArray {
				return nil, fail(34462, "defaults must be an array of expressions, found %s", typeOf(v))
			}
			out.defaults, err = p.args(v)
		case "useLongestLength":
			if v.Type != bson.TypeBoolean {
				return nil, fail(34463, "useLongestLength must be a bool, found object")
			}
			out.longest = value.Truthy(v)
		default:
			err = fail(34464, "$zip found an unknown argument: %s", k)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case len(out.inputs) == 0:
		return nil, fail(34465, "$zip requires at least one input array")
	case len(out.defaults) > 0 && !out.longest:
		return nil, fail(34466, "cannot specify defaults unless useLongestLength is true")
	case len(out.defaults) > 0 && len(out.defaults) != len(out.inputs):
		return nil, fail(34467, "defaults and inputs must have the same length")
	}
	return out, nil
}

// Eval takes the arrays' elements side by side.
func (x *zip) Eval(c *Ctx) (bson.RawValue, error) {
	cols := make([][]bson.RawValue, len(x.inputs))
	rows := -1
	for i, e := range x.inputs {
		v, err := e.Eval(c)
		if err != nil || value.Nullish(v) {
			return null, err
		}
		if v.Type != bson.TypeArray {
			return failed(34468, "$zip found a non-array expression in input: %s", value.Show(v))
		}
		cols[i] = value.Array(v)
		if n := len(cols[i]); rows < 0 || x.longest && n > rows || !x.longest && n < rows {
			rows = n
		}
	}
	fill := make([]bson.RawValue, len(x.inputs))
	for i, e := range x.defaults {
		v, err := e.Eval(c)
		if err != nil {
			return v, err
		}
		fill[i] = v
	}
	var out []bson.RawValue
	for r := range rows {
		row := slices.Clone(fill)
		for i, col := range cols {
			if r < len(col) {
				row[i] = col[r]
			}
		}
		out = append(out, value.ArrayOf(row))
	}
	return value.ArrayOf(out), nil
}

func (x *zip) fold(c *Ctx) (Expr, error) {
	in, _, err := foldAll(x.inputs, c)
	if err != nil {
		return nil, err
	}
	def, _, err := foldAll(x.defaults, c)
	return &zip{in, def, x.longest}, err
}

// named parses an operator whose argument is a document of named expressions. Every name in need must be there.
func named(need, allow []string, code int32, fn evalFunc) parseFunc {
	names := append(slices.Clone(need), allow...)
	return func(p *Parser, op string, arg bson.RawValue) (Expr, error) {
		if arg.Type != bson.TypeEmbeddedDocument {
			return nil, fail(code, "%s requires an object as an argument, found: %s", op, typeOf(arg))
		}
		args := make([]Expr, len(names))
		for i := range args {
			args[i] = Literal{}
		}
		doc := bson.Raw(arg.Value)
		for k, v := range doc.All() {
			i := slices.Index(names, k)
			if i < 0 {
				return nil, fail(code+1, "Unknown argument for '%s' operator: %s", op, k)
			}
			var err error
			if args[i], err = p.Operand(v); err != nil {
				return nil, err
			}
		}
		for _, n := range need {
			if value.Get(doc, n).Type == 0 {
				return nil, fail(map[string]int32{"n": 5787906, "input": 5787907}[n], "%s requires an '%s' field", op, n)
			}
		}
		return &call{args, fn}, nil
	}
}

func parseEnds(name string, first bool) parseFunc {
	return named([]string{"input", "n"}, nil, 5787900, func(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
		n, err := countArg(name, a[1])
		if err != nil {
			return null, err
		}
		if a[0].Type != bson.TypeArray {
			return failed(5788200, "Input must be an array")
		}
		all := value.Array(a[0])
		if first {
			return value.ArrayOf(all[:min(n, len(all))]), nil
		}
		return value.ArrayOf(all[max(0, len(all)-n):]), nil
	})
}

func countArg(name string, v bson.RawValue) (int, error) {
	if !value.IsNumber(v) {
		return 0, fail(5787902, "Value for 'n' must be of integral type, but found %s", value.Show(v))
	}
	n, ok := value.Integral(v)
	if !ok {
		return 0, fail(5787903, "Value for 'n' must be of integral type, but found %s", value.Show(v))
	}
	if n <= 0 {
		return 0, fail(5787908, "'n' must be greater than 0, found %d", n)
	}
	return int(min(n, 1<<30)), nil
}

func parseExtremes(name string, dir int) parseFunc {
	return named([]string{"input", "n"}, nil, 5787900, func(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
		n, err := countArg(name, a[1])
		if err != nil {
			return null, err
		}
		if a[0].Type != bson.TypeArray {
			return failed(5788200, "Input must be an array")
		}
		all := slices.DeleteFunc(value.Array(a[0]), value.Nullish)
		slices.SortStableFunc(all, func(x, y bson.RawValue) int { return dir * compare(c, x, y) })
		return value.ArrayOf(all[:min(n, len(all))]), nil
	})
}

func parseSortArray(p *Parser, _ string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(2942500, "$sortArray requires an object as an argument, found: %s", typeOf(arg))
	}
	var input Expr
	var order *Order
	for k, v := range bson.Raw(arg.Value).All() {
		var err error
		switch k {
		case "input":
			input, err = p.Operand(v)
		case "sortBy":
			order, err = ParseOrder(v)
		default:
			err = fail(2942501, "$sortArray found an unknown argument: %s", k)
		}
		if err != nil {
			return nil, err
		}
	}
	if input == nil {
		return nil, fail(2942502, "$sortArray requires 'input' to be specified")
	}
	if order == nil {
		return nil, fail(2942503, "$sortArray requires 'sortBy' to be specified")
	}
	return &call{[]Expr{input}, func(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
		switch {
		case value.Nullish(a[0]):
			return null, nil
		case a[0].Type != bson.TypeArray:
			return failed(2942504, "The input argument to $sortArray must be an array, but was of type: %s", typeOf(a[0]))
		}
		all := value.Array(a[0])
		slices.SortStableFunc(all, func(x, y bson.RawValue) int { return order.Compare(c.Env.collator(), x, y) })
		return value.ArrayOf(all), nil
	}}, nil
}

// Order sorts values: whole, or documents by paths.
type Order struct {
	parts [][]string
	desc  []bool
	whole int
}

// ParseOrder reads 1, -1 or {path: 1, ...}.
func ParseOrder(v bson.RawValue) (*Order, error) {
	direction := func(v bson.RawValue) (int, error) {
		n, ok := value.Integral(v)
		if !ok || n != 1 && n != -1 {
			return 0, fail(mongoerr.CodeBadValue, "The $sort element value must be either 1 or -1")
		}
		return int(n), nil
	}
	if v.Type != bson.TypeEmbeddedDocument {
		n, err := direction(v)
		return &Order{whole: n}, err
	}
	out := &Order{}
	for k, d := range bson.Raw(v.Value).All() {
		n, err := direction(d)
		if err != nil {
			return nil, err
		}
		if err := CheckPath(k); err != nil {
			return nil, err
		}
		out.parts, out.desc = append(out.parts, splitPath(k)), append(out.desc, n < 0)
	}
	if len(out.parts) == 0 {
		return nil, fail(mongoerr.CodeBadValue, "The $sort pattern is empty when it should be a set of fields.")
	}
	return out, nil
}

// Compare orders two values.
func (o *Order) Compare(c *value.Collator, a, b bson.RawValue) int {
	if o.whole != 0 {
		return o.whole * value.CompareWith(a, b, c)
	}
	for i, parts := range o.parts {
		if n := value.CompareWith(orNull(Walk(a, parts)), orNull(Walk(b, parts)), c); n != 0 {
			if o.desc[i] {
				return -n
			}
			return n
		}
	}
	return 0
}

func orNull(v bson.RawValue) bson.RawValue {
	if v.Type == 0 {
		return null
	}
	return v
}
