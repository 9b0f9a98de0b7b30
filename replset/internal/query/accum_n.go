package query

import (
	"slices"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// parseNamed parses an accumulator that takes a document of arguments.
type parseNamed func(pp *pipelineParser, name string, arg bson.RawValue) (func(*expr.Env) expr.Accumulator, expr.Expr, error)

func namedAccumulator(name string) parseNamed {
	switch name {
	case "$count":
		return parseCountAccumulator
	case "$percentile", "$median":
		return parsePercentileAccumulator
	case "$firstN", "$lastN", "$minN", "$maxN":
		return parseListN
	case "$top", "$bottom", "$topN", "$bottomN":
		return parseTop
	}
	return nil
}

func parseCountAccumulator(pp *pipelineParser, _ string, arg bson.RawValue) (func(*expr.Env) expr.Accumulator, expr.Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument || !bson.Raw(arg.Value).IsEmpty() {
		return nil, nil, fail(14, "$count takes no arguments, i.e. $count:{}")
	}
	return func(env *expr.Env) expr.Accumulator { return expr.NewAccumulator("$count", env) }, expr.Literal{}, nil
}

func parsePercentileAccumulator(pp *pipelineParser, name string, arg bson.RawValue) (func(*expr.Env) expr.Accumulator, expr.Expr, error) {
	x, err := pp.exprs().ParsePercentile(name, arg, map[string]int32{"$percentile": 7429703, "$median": 7436100}[name])
	if err != nil {
		return nil, nil, err
	}
	return func(*expr.Env) expr.Accumulator { return x.New() }, x.Input(), nil
}

// arguments reads the document of an accumulator of the N family.
func (pp *pipelineParser) arguments(name string, arg bson.RawValue, keys ...string) (map[string]bson.RawValue, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(codesOf(name).object, "specification must be an object; found %s", value.PrintElement(name, arg))
	}
	out := map[string]bson.RawValue{}
	for k, v := range bson.Raw(arg.Value).All() {
		if !slices.Contains(keys, k) {
			return nil, fail(codesOf(name).unknown, "Unknown argument for '%s' operator: %s", name, k)
		}
		out[k] = v
	}
	for _, k := range keys {
		if out[k].Type == 0 {
			return nil, fail(codesOf(name).missing[k], "Missing value for '%s'", k)
		}
	}
	return out, nil
}

// nCodes are the codes of faults in the arguments of one family.
type nCodes struct {
	object, unknown int32
	missing         map[string]int32
}

func codesOf(name string) nCodes {
	switch name {
	case "$top", "$bottom", "$topN", "$bottomN":
		return nCodes{5788001, 5788002, map[string]int32{"n": 5788003, "output": 5788004, "sortBy": 5788005}}
	}
	return nCodes{5787801, 5787901, map[string]int32{"n": 5787906, "input": 5787907}}
}

// howMany reads n, a constant of at least 1.
func (pp *pipelineParser) howMany(v bson.RawValue) (int, error) {
	e, err := pp.operand(v)
	if err != nil {
		return 0, err
	}
	l, ok := e.(expr.Literal)
	if !ok {
		return 0, fail(5787902, "Value for 'n' must be of integral type, but found %s", value.Print(v))
	}
	n, whole := value.Integral(l.Value)
	if !value.IsNumber(l.Value) || !whole {
		if !value.IsNumber(l.Value) {
			return 0, fail(5787902, "Value for 'n' must be of integral type, but found %s", value.Show(l.Value))
		}
		return 0, fail(5787903, "Value for 'n' must be of integral type, but found %s", value.Show(l.Value))
	}
	if n <= 0 {
		return 0, fail(5787908, "'n' must be greater than 0, found %d", n)
	}
	return int(min(n, 1<<30)), nil
}

// listN keeps some of the values: the first, the last, or after sorting the least or greatest.
type listN struct {
	n    int
	kind string
	c    *value.Collator
	vs   []bson.RawValue
	size int
}

func parseListN(pp *pipelineParser, name string, arg bson.RawValue) (func(*expr.Env) expr.Accumulator, expr.Expr, error) {
	args, err := pp.arguments(name, arg, "input", "n")
	if err != nil {
		return nil, nil, err
	}
	n, err := pp.howMany(args["n"])
	if err != nil {
		return nil, nil, err
	}
	e, err := pp.operand(args["input"])
	return func(env *expr.Env) expr.Accumulator { return &listN{n: n, kind: name, c: env.Collator} }, e, err
}

func (l *listN) Add(v bson.RawValue) error {
	sorted := l.kind == "$minN" || l.kind == "$maxN"
	if v.Type == 0 && !sorted {
		v = bson.NullValue()
	}
	if sorted && value.Nullish(v) || l.kind == "$firstN" && len(l.vs) >= l.n {
		return nil
	}
	l.vs = append(l.vs, expr.Own(v))
	if l.size += len(v.Value); len(l.vs) > surplus(l.n) {
		l.prune()
	}
	return nil
}

// surplus is how many values are kept before all but n of them go.
func surplus(n int) int { return 2*n + 64 }

func (l *listN) prune() {
	dir := 1
	switch l.kind {
	case "$lastN":
		l.vs = slices.Clone(l.vs[max(0, len(l.vs)-l.n):])
	case "$maxN":
		dir = -1
		fallthrough
	case "$minN":
		slices.SortStableFunc(l.vs, func(a, b bson.RawValue) int { return dir * value.CompareWith(a, b, l.c) })
	}
	l.vs = slices.Clone(l.vs[:min(l.n, len(l.vs))])
	l.size = 0
	for _, v := range l.vs {
		l.size += len(v.Value)
	}
}

func (l *listN) Kept() int { return expr.KeptOf(l.size, len(l.vs)) }

func (l *listN) Result() bson.RawValue {
	l.prune()
	return value.ArrayOf(l.vs)
}

// topN is $top, $bottom and their N forms: the outputs of the documents that sort first or last. It is fed {s: sort key
// document, o: output}.
type topN struct {
	n      int
	single bool
	bottom bool
	sort   *Sort
	vs     []bson.Raw
	size   int
}

func parseTop(pp *pipelineParser, name string, arg bson.RawValue) (func(*expr.Env) expr.Accumulator, expr.Expr, error) {
	keys := []string{"sortBy", "output"}
	single := name == "$top" || name == "$bottom"
	if !single {
		keys = append(keys, "n")
	}
	args, err := pp.arguments(name, arg, keys...)
	if err != nil {
		return nil, nil, err
	}
	n := 1
	if !single {
		if n, err = pp.howMany(args["n"]); err != nil {
			return nil, nil, err
		}
	}
	if args["sortBy"].Type != bson.TypeEmbeddedDocument {
		return nil, nil, fail(5788604, "expected 'sortBy' to already be an object in the arguments to %s", name)
	}
	ss, err := parseSortStage(pp, "$sort", args["sortBy"])
	if err != nil {
		return nil, nil, err
	}
	e, err := pp.operand(docValueOf("o", args["output"]))
	if err != nil {
		return nil, nil, err
	}
	order := ss[0].(*sortStage).sort
	mk := func(*expr.Env) expr.Accumulator {
		return &topN{n: n, single: single, bottom: name == "$bottom" || name == "$bottomN", sort: order}
	}
	return mk, &withRoot{e}, nil
}

// withRoot evaluates to {r: the document, o: output}, so that an accumulator can sort by the document.
type withRoot struct{ e expr.Expr }

func (w *withRoot) Eval(c *expr.Ctx) (bson.RawValue, error) {
	v, err := w.e.Eval(c)
	if err != nil {
		return v, err
	}
	return bson.DocumentValue(value.DocOf(value.Field{Key: "r", Value: c.Root}, value.Field{Key: "o", Value: value.Get(bson.Raw(v.Value), "o")})), nil
}

func (t *topN) Add(v bson.RawValue) error {
	t.vs = append(t.vs, bson.Raw(v.Value))
	if t.size += len(v.Value); len(t.vs) > surplus(t.n) {
		t.prune()
	}
	return nil
}

func (t *topN) prune() {
	root := func(d bson.Raw) bson.Raw { return value.Doc(value.Get(d, "r")) }
	slices.SortStableFunc(t.vs, func(a, b bson.Raw) int { return t.sort.Compare(root(a), root(b)) })
	kept := t.vs[:min(t.n, len(t.vs))]
	if t.bottom {
		kept = t.vs[max(0, len(t.vs)-t.n):]
	}
	t.vs, t.size = slices.Clone(kept), 0
	for _, d := range t.vs {
		t.size += len(d)
	}
}

func (t *topN) Kept() int { return expr.KeptOf(t.size, len(t.vs)) }

func (t *topN) Result() bson.RawValue {
	t.prune()
	var out []bson.RawValue
	for _, d := range t.vs {
		o := value.Get(d, "o")
		if o.Type == 0 {
			o = bson.NullValue()
		}
		out = append(out, o)
	}
	if t.single && len(out) == 0 {
		return bson.NullValue()
	}
	if t.single {
		return out[0]
	}
	return value.ArrayOf(out)
}
