package expr

import (
	"math"
	"slices"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Percentile is $percentile and $median: the value below which a part of the numbers lies. A server approximates; this is exact,
// and the least of the numbers that have at least that part at or below them.
type Percentile struct {
	input  Expr
	parts  []float64
	single bool // $median: one value, not a list
}

// ParsePercentile reads {input, p, method}; $median has no p.
//
// noObject is the code of an argument that is no document.
func (p *Parser) ParsePercentile(op string, arg bson.RawValue, noObject int32) (*Percentile, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(noObject, "specification must be an object; found %s", value.PrintElement(op, arg))
	}
	out := &Percentile{single: op == "$median", parts: []float64{0.5}}
	args := map[string]bson.RawValue{}
	for k, v := range bson.Raw(arg.Value).All() {
		if k != "input" && k != "method" && (k != "p" || out.single) {
			return nil, fail(40415, "BSON field '%s.%s' is an unknown field.", op, k)
		}
		args[k] = v
	}
	for _, k := range []string{"input", "p", "method"} {
		if args[k].Type == 0 && (k != "p" || !out.single) {
			return nil, fail(40414, "BSON field '%s.%s' is missing but a required field", op, k)
		}
	}
	method, isText := str(args["method"])
	if !isText {
		return nil, fail(mongoerr.CodeTypeMismatch, "BSON field '%s.method' is the wrong type '%s', expected type 'string'", op, typeOf(args["method"]))
	}
	if method != "approximate" {
		return nil, fail(mongoerr.CodeBadValue, "Currently only 'approximate' can be used as percentile 'method'.")
	}
	var err error
	if !out.single {
		if out.parts, err = p.percentiles(args["p"]); err != nil {
			return nil, err
		}
	}
	out.input, err = p.Operand(args["input"])
	return out, err
}

func (p *Parser) percentiles(v bson.RawValue) ([]float64, error) {
	e, err := p.Operand(v)
	if err != nil {
		return nil, err
	}
	if e, err = Fold(e, p.Env); err != nil {
		return nil, err
	}
	list, constant := IsConstant(e)
	vs := value.Array(list)
	const form = "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: %s"
	if !constant {
		return nil, fail(7750300, "The $percentile 'p' field must be an array of constant values, but found value: %s.", value.Print(v))
	}
	if list.Type != bson.TypeArray || len(vs) == 0 {
		return nil, fail(7750301, form, value.Show(list))
	}
	var out []float64
	for _, n := range vs {
		f := value.Float(n)
		if !value.IsNumber(n) {
			return nil, fail(7750302, form, value.Show(n))
		}
		if !(f >= 0 && f <= 1) {
			return nil, fail(7750303, form, value.Show(bson.DoubleValue(f)))
		}
		out = append(out, f)
	}
	return out, nil
}

// Input is what an accumulator of this kind is fed.
func (x *Percentile) Input() Expr { return x.input }

// New makes an accumulator.
func (x *Percentile) New() Accumulator { return &percentileOf{of: x} }

// Eval is the operator: input is a list of numbers, or one.
func (x *Percentile) Eval(c *Ctx) (bson.RawValue, error) {
	v, err := x.input.Eval(c)
	if err != nil {
		return null, err
	}
	acc := &percentileOf{of: x}
	list := []bson.RawValue{v}
	if v.Type == bson.TypeArray {
		list = value.Array(v)
	}
	for _, e := range list {
		if err := acc.Add(e); err != nil {
			return null, err
		}
	}
	return acc.Result(), nil
}

type percentileOf struct {
	of     *Percentile
	xs     []float64
	sorted bool
}

// Add takes numbers; everything else does not count.
func (a *percentileOf) Add(v bson.RawValue) error {
	if value.IsNumber(v) && !value.IsNaN(v) {
		a.xs, a.sorted = append(a.xs, value.Float(v)), false
	}
	return nil
}

// Kept is what the numbers take.
func (a *percentileOf) Kept() int { return 16 * len(a.xs) }

func (a *percentileOf) Result() bson.RawValue {
	if !a.sorted {
		slices.Sort(a.xs)
		a.sorted = true
	}
	var out []bson.RawValue
	for _, p := range a.of.parts {
		if len(a.xs) == 0 {
			out = append(out, null)
			continue
		}
		i := int(math.Ceil(p*float64(len(a.xs)))) - 1
		out = append(out, bson.DoubleValue(a.xs[max(0, min(i, len(a.xs)-1))]))
	}
	if a.of.single {
		return out[0]
	}
	return value.ArrayOf(out)
}

func parsePercentile(p *Parser, op string, arg bson.RawValue) (Expr, error) {
	return p.ParsePercentile(op, arg, map[string]int32{"$percentile": 7436200, "$median": 7436201}[op])
}
