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
	name  string
	input expr.Expr
	unit  int64 // milliseconds; 0 without a unit
}

func (s *setWindowStage) calculus(pp *pipelineParser, name string, arg, window bson.RawValue) (windowFunc, error) {
	switch {
	case s.sort == nil:
		return nil, fail(mongoerr.CodeFailedToParse, "%s requires a sortBy", name)
	case s.by == nil:
		return nil, fail(mongoerr.CodeFailedToParse, "%s requires a non-compound sortBy", name)
	}
	w := &calculus{name: name}
	var err error
	if w.frame, err = s.frame(pp, window); err != nil {
		return nil, err
	}
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(mongoerr.CodeFailedToParse, "%s expects an object, but got a %s: %s", name, value.TypeName(arg.Type), value.PrintElement(name, arg))
	}
	for k, v := range bson.Raw(arg.Value).All() {
		switch k {
		case "input":
			w.input, err = pp.operand(v)
		case "unit":
			w.unit, err = unitOf(v)
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
	case window.Type == 0 && name == "$derivative":
		return nil, fail(mongoerr.CodeFailedToParse, "$derivative requires explicit window bounds")
	}
	return w, nil
}

// unitOf reads a unit that always has the same length, in milliseconds.
func unitOf(v bson.RawValue) (int64, error) {
	unit, isText := value.Text(v)
	if !isText || v.Type != bson.TypeString {
		return 0, fail(mongoerr.CodeFailedToParse, "unit' must be a string, but got %s", value.TypeName(v.Type))
	}
	if err := expr.CheckUnit(unit); err != nil {
		return 0, err
	}
	span := expr.Span(unit)
	if span == 0 {
		return 0, fail(5490710, "unit must be 'week' or smaller")
	}
	return span.Milliseconds(), nil
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
		if w.name == "$integral" {
			of = w.area
		}
		if out[i], err = of(p.by[from:to], ys[from:to]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// derivative is the rise between the ends of the window over their distance. An empty window, or one of no extent, has none.
func (w *calculus) derivative(xs, ys []bson.RawValue) (bson.RawValue, error) {
	if len(xs) == 0 {
		return bson.NullValue(), nil
	}
	n := len(xs) - 1
	if err := w.checkEnds(xs[0], xs[n]); err != nil {
		return bson.NullValue(), err
	}
	run, err := expr.Subtract(xs[n], xs[0])
	if err != nil {
		return run, err
	}
	rise, err := expr.Subtract(ys[n], ys[0])
	switch {
	case err != nil:
		return rise, err
	case value.Nullish(rise):
		return rise, fail(5624903, "$derivative input must not be null or missing")
	case value.Float(run) == 0:
		return bson.NullValue(), nil
	}
	out, err := expr.Divide(rise, run)
	if err != nil || w.unit == 0 {
		return out, err
	}
	return expr.Multiply(out, bson.Int64Value(w.unit))
}

func (w *calculus) checkEnds(a, b bson.RawValue) error {
	date := func(v bson.RawValue) bool { return v.Type == bson.TypeDateTime }
	switch {
	case w.unit != 0 && (!date(a) || !date(b)):
		return fail(5624900, "$derivative with 'unit' expects the sortBy field to be a Date")
	case w.unit == 0 && (date(a) || date(b)):
		return fail(5624901, "$derivative where the sortBy is a Date requires an 'unit'")
	case w.unit == 0 && (!value.IsNumber(a) || !value.IsNumber(b)):
		return fail(5624902, "$derivative (with no 'unit') expects the sortBy field to be numeric")
	}
	return nil
}

// area sums the trapezoids between neighbours.
func (w *calculus) area(xs, ys []bson.RawValue) (bson.RawValue, error) {
	if len(xs) == 0 {
		return bson.NullValue(), nil
	}
	sum, isNaN := bson.Int32Value(0), false
	for i := range xs {
		if err := w.checkPoint(xs[i], ys[i]); err != nil {
			return sum, err
		}
		isNaN = isNaN || value.IsNaN(xs[i]) || value.IsNaN(ys[i])
		if i == 0 || isNaN || value.IsNumber(xs[i]) != value.IsNumber(xs[i-1]) {
			continue
		}
		area, err := trapezoid(xs[i-1], ys[i-1], xs[i], ys[i])
		if err != nil {
			return area, err
		}
		if sum, err = expr.Add(sum, area); err != nil {
			return sum, err
		}
	}
	switch {
	case isNaN:
		return bson.DoubleValue(math.NaN()), nil
	case w.unit != 0:
		return expr.Divide(sum, bson.Int64Value(w.unit))
	}
	return sum, nil
}

func (w *calculus) checkPoint(x, y bson.RawValue) error {
	switch {
	case !value.IsNumber(y) || !value.IsNumber(x) && x.Type != bson.TypeDateTime:
		return fail(5423900, "The input value of $integral window function must be a vector of 2 value, the first value must be numeric or date type and the second must be numeric.")
	case w.unit != 0 && x.Type != bson.TypeDateTime:
		return fail(5423901, "$integral with 'unit' expects the sortBy field to be a Date")
	case w.unit == 0 && !value.IsNumber(x):
		return fail(5423902, "$integral (with no 'unit') expects the sortBy field to be numeric")
	}
	return nil
}

func trapezoid(x0, y0, x1, y1 bson.RawValue) (bson.RawValue, error) {
	width, err := expr.Subtract(x1, x0)
	if err != nil {
		return width, err
	}
	both, err := expr.Add(y1, y0)
	if err != nil {
		return both, err
	}
	area, err := expr.Multiply(both, width)
	if err != nil {
		return area, err
	}
	return expr.Divide(area, bson.DoubleValue(2))
}

// movingAverage is $expMovingAvg: each value weighs alpha, what was before the rest.
type movingAverage struct {
	input expr.Expr
	alpha bson.RawValue
}

func (s *setWindowStage) movingAverage(pp *pipelineParser, arg, window bson.RawValue) (windowFunc, error) {
	const form = "$expMovingAvg sub object must have exactly two fields: An 'input' field, and either an 'N' field or an 'alpha' field"
	doc := value.Doc(arg)
	switch {
	case window.Type != 0 || arg.Type != bson.TypeEmbeddedDocument:
		return nil, fail(mongoerr.CodeFailedToParse, "$expMovingAvg must have exactly one argument that is an object")
	case doc.Len() != 2 || value.Get(doc, "input").Type == 0:
		return nil, fail(mongoerr.CodeFailedToParse, form)
	case s.sort == nil:
		return nil, fail(mongoerr.CodeFailedToParse, "$expMovingAvg requires an explicit 'sortBy'")
	}
	w := &movingAverage{}
	var err error
	if w.input, err = pp.operand(value.Get(doc, "input")); err != nil {
		return nil, err
	}
	n, alpha := value.Get(doc, "N"), value.Get(doc, "alpha")
	switch {
	case n.Type != 0:
		w.alpha, err = weightOf(n)
	case alpha.Type == 0:
		return nil, fail(mongoerr.CodeFailedToParse, "Got unrecognized field in $expMovingAvg"+form)
	case !value.IsNumber(alpha):
		return nil, fail(mongoerr.CodeFailedToParse, "'alpha' must be a number")
	case !(value.Float(alpha) > 0 && value.Float(alpha) < 1):
		return nil, fail(mongoerr.CodeFailedToParse, "'alpha' must be between 0 and 1 (exclusive), found %s", value.PrintElement("alpha", alpha))
	default:
		w.alpha = alpha
	}
	return w, err
}

// weightOf is the alpha of an N.
func weightOf(v bson.RawValue) (bson.RawValue, error) {
	n, whole := value.Integral(v)
	switch {
	case !value.IsNumber(v):
		return v, fail(mongoerr.CodeFailedToParse, "'N' field must be an integer, but found type %s", value.TypeName(v.Type))
	case !whole:
		return v, fail(mongoerr.CodeFailedToParse, "'N' field must be an integer, but found  %s. To use a non-integer, use the 'alpha' argument instead", value.PrintElement("N", v))
	case n <= 0:
		return v, fail(mongoerr.CodeFailedToParse, "'N' must be greater than zero. Got %d", n)
	}
	return bson.DoubleValue(2 / (float64(n) + 1)), nil
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
	if w.linear {
		return w.interpolated(p, vals)
	}
	last := bson.NullValue()
	for i, v := range vals {
		if !value.Nullish(v) {
			last = v
		}
		vals[i] = last
	}
	return vals, nil
}

// interpolated keeps the values that are there, and puts the others on the line between their neighbours.
func (w *filler) interpolated(p *partition, vals []bson.RawValue) ([]bson.RawValue, error) {
	last := -1
	out := make([]bson.RawValue, len(vals))
	for i, v := range vals {
		out[i] = bson.NullValue()
		if err := checkLine(p, i, v); err != nil {
			return nil, err
		}
		if value.Nullish(v) {
			continue
		}
		out[i] = v
		for k := last + 1; last >= 0 && k < i; k++ {
			var err error
			if out[k], err = onLine(p, vals, last, i, k); err != nil {
				return nil, err
			}
		}
		last = i
	}
	return out, nil
}

// checkLine refuses what no line can be drawn through.
func checkLine(p *partition, i int, v bson.RawValue) error {
	x := p.by[i]
	switch {
	case !value.IsNumber(v) && !value.Nullish(v):
		return fail(mongoerr.CodeTypeMismatch, "Value to be filled must be numeric or nullish, but found %s", value.TypeName(v.Type))
	case !value.IsNumber(x) && x.Type != bson.TypeDateTime:
		return fail(mongoerr.CodeTypeMismatch, "Value of the sortBy field must be numeric or a date, but found %s", value.TypeName(x.Type))
	case i > 0 && value.Compare(x, p.by[i-1]) == 0:
		return fail(6050106, "There can be no repeated values in the sort field")
	case i > 0 && !sameKind(x, p.by[i-1]):
		return fail(mongoerr.CodeTypeMismatch, "Conflicting sort value types, previously received type %s, but found %s", value.TypeName(p.by[i-1].Type), value.TypeName(x.Type))
	}
	return nil
}

// onLine is the value at k of the line from a to b.
func onLine(p *partition, vals []bson.RawValue, a, b, k int) (bson.RawValue, error) {
	rise, err := expr.Subtract(vals[b], vals[a])
	if err != nil {
		return rise, err
	}
	run, err := expr.Subtract(p.by[b], p.by[a])
	if err != nil {
		return run, err
	}
	slope, err := expr.Divide(rise, run)
	if err != nil {
		return slope, err
	}
	way, err := expr.Subtract(p.by[k], p.by[a])
	if err != nil {
		return way, err
	}
	part, err := expr.Multiply(way, slope)
	if err != nil {
		return part, err
	}
	return expr.Add(vals[a], part)
}
