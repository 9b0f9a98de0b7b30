package query

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// function parses a window function: one that only windows have, or an accumulator.
func (s *setWindowStage) function(pp *pipelineParser, name string, arg, window bson.RawValue) (windowFunc, error) {
	switch name {
	case "$rank", "$denseRank", "$documentNumber":
		return s.rank(name, arg, window)
	case "$shift":
		return s.shift(pp, arg, window)
	case "$derivative", "$integral":
		return s.calculus(pp, name, arg, window)
	case "$expMovingAvg":
		return s.movingAverage(pp, arg, window)
	case "$linearFill", "$locf":
		return s.filler(pp, name, arg, window)
	}
	f, err := s.frame(pp, window)
	if err != nil {
		return nil, err
	}
	if name == "$covariancePop" || name == "$covarianceSamp" {
		e, err := pp.operand(arg)
		return &framed{f, name, func(*expr.Env) expr.Accumulator { return &covariance{sample: name == "$covarianceSamp"} }, e}, err
	}
	a, err := pp.windowAccumulator(name, arg)
	return &framed{f, name, a.make, a.arg}, err
}

func (pp *pipelineParser) windowAccumulator(name string, arg bson.RawValue) (a accumulation, err error) {
	if parse := namedAccumulator(name); parse != nil {
		a.make, a.arg, err = parse(pp, name, arg)
		return a, err
	}
	if expr.NewAccumulator(name, pp.ee) == nil {
		return a, fail(mongoerr.CodeFailedToParse, "Unrecognized window function, %s", name)
	}
	a.make = func(env *expr.Env) expr.Accumulator { return expr.NewAccumulator(name, env) }
	a.arg, err = pp.operand(arg)
	return a, err
}

// framed accumulates over the documents of the window.
type framed struct {
	frame
	name string
	make func(*expr.Env) expr.Accumulator
	arg  expr.Expr
}

func (w *framed) compute(r *running, p *partition) ([]bson.RawValue, error) {
	vals, err := evalAll(r, p, w.arg)
	if err != nil {
		return nil, err
	}
	out := make([]bson.RawValue, len(p.docs))
	var acc expr.Accumulator
	m := r.meter()
	begun, done := 0, 0
	for i := range p.docs {
		from, to, err := w.around(p, i)
		if err != nil {
			return nil, err
		}
		if acc == nil || from != begun || to < done { // else the window has only grown
			if acc != nil {
				_ = m.Adjust(w.name, -keptBy(acc))
			}
			acc, begun, done = w.make(r.ee), from, from
		}
		for ; done < to; done++ {
			kept := keptBy(acc)
			if err := acc.Add(vals[done]); err != nil {
				return nil, err
			}
			if err := m.Adjust(w.name, keptBy(acc)-kept); err != nil {
				return nil, err
			}
		}
		out[i] = acc.Result()
		if err := m.Hold(w.name, len(out[i].Value)+docCost); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func evalAll(r *running, p *partition, e expr.Expr) ([]bson.RawValue, error) {
	vals := make([]bson.RawValue, len(p.docs))
	m := r.meter()
	for i, d := range p.docs {
		var err error
		if vals[i], err = e.Eval(r.ctx(d)); err != nil {
			return nil, err
		}
		if err := m.Hold("$setWindowFields", docCost); err != nil {
			return nil, err
		}
	}
	return vals, nil
}

// ranking is $rank, $denseRank and $documentNumber.
type ranking struct{ name string }

func (s *setWindowStage) rank(name string, arg, window bson.RawValue) (windowFunc, error) {
	switch {
	case window.Type != 0:
		return nil, fail(5371601, "Rank style window functions take no other arguments")
	case arg.Type != bson.TypeEmbeddedDocument || !bson.Raw(arg.Value).IsEmpty():
		return nil, fail(5371603, "%s must be specified with '{}' as the value", name)
	case s.sort == nil || len(s.sort.Fields()) != 1:
		return nil, fail(5371602, "%s must be specified with a top level sortBy expression with exactly one element", name)
	}
	return ranking{name}, nil
}

func (w ranking) compute(_ *running, p *partition) ([]bson.RawValue, error) {
	out := make([]bson.RawValue, len(p.docs))
	rank, dense := 0, 0
	for i, d := range p.docs {
		if i == 0 || p.sort.Compare(p.docs[i-1], d) != 0 {
			rank, dense = i+1, dense+1
		}
		n := map[string]int{"$rank": rank, "$denseRank": dense, "$documentNumber": i + 1}[w.name]
		out[i] = bson.Int32Value(int32(n))
	}
	return out, nil
}

// shift is the value of the document some places further on.
type shift struct {
	output expr.Expr
	by     int64
	other  bson.RawValue
}

func (s *setWindowStage) shift(pp *pipelineParser, arg, window bson.RawValue) (windowFunc, error) {
	switch {
	case arg.Type != bson.TypeEmbeddedDocument:
		return nil, fail(mongoerr.CodeFailedToParse, "Argument to $shift must be an object")
	case window.Type != 0:
		return nil, fail(mongoerr.CodeFailedToParse, "$shift does not accept a 'window' field")
	}
	args := map[string]bson.RawValue{}
	for k, v := range bson.Raw(arg.Value).All() {
		if k != "output" && k != "by" && k != "default" {
			return nil, fail(mongoerr.CodeFailedToParse, "Unknown argument in $shift")
		}
		args[k] = v
	}
	by, whole := value.Integral(args["by"])
	switch {
	case args["by"].Type != 0 && (!whole || !value.IsNumber(args["by"]) || !fitsInt(by)):
		return nil, fail(mongoerr.CodeFailedToParse, "'$shift:by' field must be an integer, but found  %s", value.PrintElement("by", args["by"]))
	case args["output"].Type == 0:
		return nil, fail(mongoerr.CodeFailedToParse, "$shift requires an 'output' expression.")
	case args["by"].Type == 0:
		return nil, fail(mongoerr.CodeFailedToParse, "$shift requires 'by' as an integer value.")
	}
	w := &shift{by: by, other: bson.NullValue()}
	var err error
	if w.output, err = pp.operand(args["output"]); err != nil {
		return nil, err
	}
	if args["default"].Type != 0 {
		e, err := pp.operand(args["default"])
		if err != nil {
			return nil, err
		}
		var constant bool
		if w.other, constant = expr.IsConstant(e); !constant {
			return nil, fail(mongoerr.CodeFailedToParse, "'$shift:default' expression must yield a constant value.")
		}
	}
	if s.sort == nil {
		return nil, fail(mongoerr.CodeFailedToParse, "'$shift' requires a sortBy")
	}
	return w, nil
}

func (w *shift) compute(r *running, p *partition) ([]bson.RawValue, error) {
	vals, err := evalAll(r, p, w.output)
	if err != nil {
		return nil, err
	}
	out := make([]bson.RawValue, len(vals))
	for i := range out {
		out[i] = w.other
		if at := int64(i) + w.by; at >= 0 && at < int64(len(vals)) {
			if out[i] = vals[at]; out[i].Type == 0 {
				out[i] = bson.NullValue()
			}
		}
	}
	return out, nil
}

// covariance is that of pairs of numbers, by the recurrence of Welford.
type covariance struct {
	sample   bool
	n, mx, m float64
	my       float64
}

func (c *covariance) Add(v bson.RawValue) error {
	pair := value.Array(v)
	if len(pair) != 2 || !value.IsNumber(pair[0]) || !value.IsNumber(pair[1]) {
		return nil
	}
	x, y := value.Float(pair[0]), value.Float(pair[1])
	c.n++
	dx := x - c.mx
	c.mx += dx / c.n
	c.my += (y - c.my) / c.n
	c.m += dx * (y - c.my)
	return nil
}

func (c *covariance) Result() bson.RawValue {
	n := c.n
	if c.sample {
		n--
	}
	if n <= 0 {
		return bson.NullValue()
	}
	return bson.DoubleValue(c.m / n)
}
