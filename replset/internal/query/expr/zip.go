package expr

import (
	"slices"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

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
	m := c.meter()
	mark := m.Mark()
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
		if err := m.holdArguments([]bson.RawValue{v}); err != nil {
			return null, err
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
	total := 0
	for r := range rows {
		row := slices.Clone(fill)
		for i, col := range cols {
			if r < len(col) {
				row[i] = col[r]
			}
		}
		v := value.ArrayOf(row)
		if err := m.Hold("$zip", len(v.Value)+elementCost); err != nil {
			return null, err
		}
		out, total = append(out, v), total+len(v.Value)
	}
	if err := m.Hold("$zip", total); err != nil {
		return null, err
	}
	return m.settle(mark, value.ArrayOf(out))
}

func (x *zip) fold(c *Ctx) (Expr, error) {
	in, _, err := foldAll(x.inputs, c)
	if err != nil {
		return nil, err
	}
	def, _, err := foldAll(x.defaults, c)
	return &zip{in, def, x.longest}, err
}
