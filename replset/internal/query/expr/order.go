package expr

import (
	"slices"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

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
				unknown := code + 1
				if op == "$firstN" || op == "$lastN" {
					unknown = 5787901
				}
				return nil, fail(unknown, "Unknown argument for '%s' operator: %s", op, k)
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
	return named([]string{"input", "n"}, nil, 5787801, func(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
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
