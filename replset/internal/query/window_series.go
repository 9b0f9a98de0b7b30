package query

import (
	"math"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// calculus is $derivative and $integral: values over what is sorted by.
type calculus struct {
	frame
	integral bool
	input    expr.Expr
	unit     float64 // milliseconds; 0 without a unit
}

func (s *setWindowStage) calculus(pp *pipelineParser, name string, arg, window bson.RawValue) (windowFunc, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(mongoerr.CodeFailedToParse, "Argument to %s must be an object", name)
	}
	w := &calculus{integral: name == "$integral"}
	var err error
	for k, v := range bson.Raw(arg.Value).All() {
		switch k {
		case "input":
			w.input, err = pp.operand(v)
		case "unit":
			unit, isText := value.Text(v)
			if !isText {
				return nil, fail(mongoerr.CodeTypeMismatch, "%s 'unit' must be a string", name)
			}
			if err = expr.CheckUnit(unit); err != nil {
				return nil, err
			}
			span := expr.Span(unit)
			if span == 0 {
				return nil, fail(5490704, "unit must be 'week' or smaller")
			}
			w.unit = float64(span.Milliseconds())
		default:
			return nil, fail(mongoerr.CodeFailedToParse, "%s got unexpected argument: %s", name, k)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case w.input == nil:
		return nil, fail(mongoerr.CodeFailedToParse, "%s requires an 'input' expression", name)
	case s.by == nil:
		return nil, fail(mongoerr.CodeFailedToParse, "%s requires a sortBy with exactly one field", name)
	case window.Type == 0 && !w.integral:
		return nil, fail(mongoerr.CodeFailedToParse, "%s requires explicit window bounds", name)
	}
	w.frame, err = s.frame(pp, window)
	return w, err
}

func (w *calculus) compute(r *running, p *partition) ([]bson.RawValue, error) {
	ys, err := evalAll(r, p, w.input)
	if err != nil {
		return nil, err
	}
	out := make([]bson.RawValue, len(p.docs))
	for i := range out {
		from, to, err := w.around(p, i)
		if err != nil {
			return nil, err
		}
		of := w.derivative
		if w.integral {
			of = w.area
		}
		if out[i], err = of(p.by[from:to], ys[from:to]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// distance is how far two values of the sortBy field are apart, dates in the function's unit.
func (w *calculus) distance(a, b bson.RawValue) (bson.RawValue, error) {
	if w.unit == 0 {
		if !value.IsNumber(a) || !value.IsNumber(b) {
			return a, fail(5624902, "$derivative (with no 'unit') expects the sortBy field to be numeric")
		}
		return expr.Subtract(b, a)
	}
	if a.Type != bson.TypeDateTime || b.Type != bson.TypeDateTime {
		return a, fail(5624901, "$derivative with 'unit' expects the sortBy field to be a Date")
	}
	ms, err := expr.Subtract(b, a)
	if err != nil {
		return ms, err
	}
	return expr.Divide(ms, bson.DoubleValue(w.unit))
}

func (w *calculus) derivative(xs, ys []bson.RawValue) (bson.RawValue, error) {
	n := len(xs) - 1
	if n < 1 {
		return bson.NullValue(), nil
	}
	if value.Nullish(ys[0]) || value.Nullish(ys[n]) {
		return bson.NullValue(), nil
	}
	run, err := w.distance(xs[0], xs[n])
	if err != nil {
		return run, err
	}
	rise, err := expr.Subtract(ys[n], ys[0])
	if err != nil || value.Float(run) == 0 {
		return bson.NullValue(), err
	}
	return expr.Divide(rise, run)
}

// area sums the trapezoids between neighbours.
func (w *calculus) area(xs, ys []bson.RawValue) (bson.RawValue, error) {
	if len(xs) == 0 {
		return bson.NullValue(), nil
	}
	sum := bson.DoubleValue(0)
	for i := 1; i < len(xs); i++ {
		if !value.IsNumber(ys[i-1]) || !value.IsNumber(ys[i]) {
			continue
		}
		width, err := w.distance(xs[i-1], xs[i])
		if err != nil {
			return width, err
		}
		both, err := expr.Add(ys[i-1], ys[i])
		if err != nil {
			return both, err
		}
		area, err := expr.Multiply(both, width)
		if err != nil {
			return area, err
		}
		if area, err = expr.Divide(area, bson.DoubleValue(2)); err != nil {
			return area, err
		}
		if sum, err = expr.Add(sum, area); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// movingAverage is $expMovingAvg: each value weighs alpha, what was before the rest.
type movingAverage struct {
	input expr.Expr
	alpha bson.RawValue
}

func (s *setWindowStage) movingAverage(pp *pipelineParser, arg, window bson.RawValue) (windowFunc, error) {
	const form = "$expMovingAvg must have exactly one argument of 'N' and 'alpha' beside 'input'"
	switch {
	case arg.Type != bson.TypeEmbeddedDocument:
		return nil, fail(mongoerr.CodeFailedToParse, "$expMovingAvg must have object argument")
	case window.Type != 0:
		return nil, fail(mongoerr.CodeFailedToParse, "$expMovingAvg does not accept a 'window' field")
	case s.sort == nil:
		return nil, fail(mongoerr.CodeFailedToParse, "$expMovingAvg requires an explicit 'sortBy'")
	}
	w := &movingAverage{}
	var err error
	for k, v := range bson.Raw(arg.Value).All() {
		n, whole := value.Integral(v)
		f := value.Float(v)
		switch {
		case k == "input":
			w.input, err = pp.operand(v)
		case k != "N" && k != "alpha":
			return nil, fail(mongoerr.CodeFailedToParse, "Got unrecognized field in $expMovingAvg: %s", k)
		case w.alpha.Type != 0:
			return nil, fail(mongoerr.CodeFailedToParse, form)
		case k == "N" && (!whole || !value.IsNumber(v) || n <= 0):
			return nil, fail(mongoerr.CodeFailedToParse, "'N' field must be an integer greater than zero, but found %s", value.Print(v))
		case k == "N":
			w.alpha = bson.DoubleValue(2 / (float64(n) + 1))
		case !value.IsNumber(v) || !(f > 0 && f < 1):
			return nil, fail(mongoerr.CodeFailedToParse, "'alpha' must be between 0 and 1 (exclusive), found %s", value.Print(v))
		default:
			w.alpha = v
		}
		if err != nil {
			return nil, err
		}
	}
	if w.input == nil || w.alpha.Type == 0 {
		return nil, fail(mongoerr.CodeFailedToParse, form)
	}
	return w, nil
}

func (w *movingAverage) compute(r *running, p *partition) ([]bson.RawValue, error) {
	vals, err := evalAll(r, p, w.input)
	if err != nil {
		return nil, err
	}
	rest, err := expr.Subtract(bson.Int32Value(1), w.alpha)
	if err != nil {
		return nil, err
	}
	last := bson.NullValue()
	for i, v := range vals {
		if value.IsNumber(v) {
			if last.Type == bson.TypeNull {
				last = v
			} else if last, err = weighed(v, w.alpha, last, rest); err != nil {
				return nil, err
			}
		}
		vals[i] = last
	}
	return vals, nil
}

func weighed(a, wa, b, wb bson.RawValue) (bson.RawValue, error) {
	x, err := expr.Multiply(a, wa)
	if err != nil {
		return x, err
	}
	y, err := expr.Multiply(b, wb)
	if err != nil {
		return y, err
	}
	return expr.Add(x, y)
}

// filler is $locf, the last value that was there, and $linearFill, what lies on the line between two that are.
type filler struct {
	linear bool
	input  expr.Expr
}

func (s *setWindowStage) filler(pp *pipelineParser, name string, arg, window bson.RawValue) (windowFunc, error) {
	if window.Type != 0 {
		return nil, fail(mongoerr.CodeFailedToParse, "'window' field is not allowed in %s", name)
	}
	if s.sort == nil {
		return nil, fail(mongoerr.CodeFailedToParse, "%s requires a sortBy", name)
	}
	if name == "$linearFill" && s.by == nil {
		return nil, fail(605001, "$linearFill must be specified with a top level sortBy expression with exactly one element")
	}
	e, err := pp.operand(arg)
	return &filler{name == "$linearFill", e}, err
}

func (w *filler) compute(r *running, p *partition) ([]bson.RawValue, error) {
	vals, err := evalAll(r, p, w.input)
	if err != nil {
		return nil, err
	}
	last := -1
	out := make([]bson.RawValue, len(vals))
	for i, v := range vals {
		out[i] = bson.NullValue()
		switch {
		case !w.linear && !value.Nullish(v):
			last, out[i] = i, v
		case !w.linear && last >= 0:
			out[i] = vals[last]
		case w.linear && !value.Nullish(v):
			if !value.IsNumber(v) {
				return nil, fail(mongoerr.CodeTypeMismatch, "Value to be filled must be numeric or nullish")
			}
			out[i] = v
			if last >= 0 {
				err = between(p, vals, out, last, i)
			}
			last = i
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// between fills the places from a to b.
func between(p *partition, vals, out []bson.RawValue, a, b int) error {
	x := func(i int) (float64, error) {
		switch v := p.by[i]; {
		case value.IsNumber(v):
			return value.Float(v), nil
		case v.Type == bson.TypeDateTime:
			ms, _ := v.DateTimeOK()
			return float64(ms), nil
		}
		return math.NaN(), fail(mongoerr.CodeTypeMismatch, "Sort field must be numeric or a date")
	}
	from, err := x(a)
	if err != nil {
		return err
	}
	to, err := x(b)
	if err != nil {
		return err
	}
	if b > a+1 && from == to {
		return fail(6050106, "There can be no repeated values in the sort field in $linearFill")
	}
	rise, err := expr.Subtract(vals[b], vals[a])
	if err != nil {
		return err
	}
	for i := a + 1; i < b; i++ {
		at, err := x(i)
		if err != nil {
			return err
		}
		part, err := expr.Multiply(rise, bson.DoubleValue((at-from)/(to-from)))
		if err != nil {
			return err
		}
		if out[i], err = expr.Add(vals[a], part); err != nil {
			return err
		}
	}
	return nil
}
