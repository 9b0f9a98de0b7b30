package query

import (
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// parseBucket makes a $group by a $switch over the boundaries, and a $sort.
func parseBucket(pp *pipelineParser, _ string, arg bson.RawValue) ([]stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(40201, "Argument to $bucket stage must be an object, but found type: %s.", value.TypeName(arg.Type))
	}
	var by, bounds, other, output bson.RawValue
	for k, v := range bson.Raw(arg.Value).All() {
		switch k {
		case "groupBy":
			if by = v; !isGroupBy(v) {
				return nil, fail(40202, "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but found: %s.", value.Print(v))
			}
		case "boundaries":
			bounds = v
		case "default":
			other = v
		case "output":
			if output = v; v.Type != bson.TypeEmbeddedDocument {
				return nil, fail(40196, "The $bucket 'output' field must be an object, but found type: %s.", value.TypeName(v.Type))
			}
		default:
			return nil, fail(40197, "Unrecognized option to $bucket: %s.", k)
		}
	}
	if by.Type == 0 || bounds.Type == 0 {
		return nil, fail(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.")
	}
	edges, err := pp.edges(bounds)
	if err != nil {
		return nil, err
	}
	if other, err = pp.bucketDefault(other, edges); err != nil {
		return nil, err
	}
	return pp.parseAll(bucketGroup(by, edges, other, output), docValueOf("$sort", docValueOf("_id", bson.Int32Value(1))))
}

func isGroupBy(v bson.RawValue) bool {
	s, _ := value.Text(v)
	return v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeString && strings.HasPrefix(s, "$")
}

// edges reads the boundaries: constants of one type, ascending.
func (pp *pipelineParser) edges(v bson.RawValue) ([]bson.RawValue, error) {
	if v.Type != bson.TypeArray {
		return nil, fail(40200, "The $bucket 'boundaries' field must be an array, but found type: %s.", value.TypeName(v.Type))
	}
	var out []bson.RawValue
	for _, b := range bson.RawArray(v.Value).All() {
		e, err := pp.operand(b)
		if err != nil {
			return nil, err
		}
		l, ok := e.(expr.Literal)
		if !ok {
			return nil, fail(40191, "The $bucket 'boundaries' field must be an array of constant values, but found value: %s.", value.Print(b))
		}
		out = append(out, l.Value)
	}
	if len(out) < 2 {
		return nil, fail(40192, "The $bucket 'boundaries' field must have at least 2 values, but found %d value(s).", len(out))
	}
	for i := 1; i < len(out); i++ {
		a, b := out[i-1], out[i]
		if value.Canonical(a.Type) != value.Canonical(b.Type) {
			return nil, fail(40193, "All values in the the 'boundaries' option to $bucket must have the same type. Found conflicting types %s and %s.",
				value.TypeName(a.Type), value.TypeName(b.Type))
		}
		if value.CompareWith(a, b, pp.ee.Collator) >= 0 {
			return nil, fail(40194, "The 'boundaries' option to $bucket must be sorted, but elements %d and %d are not in ascending order (%s is not less than %s).",
				i-1, i, value.Show(a), value.Show(b))
		}
	}
	return out, nil
}

func (pp *pipelineParser) bucketDefault(v bson.RawValue, edges []bson.RawValue) (bson.RawValue, error) {
	if v.Type == 0 {
		return v, nil
	}
	e, err := pp.operand(v)
	if err != nil {
		return v, err
	}
	l, ok := e.(expr.Literal)
	if !ok {
		return v, fail(40195, "The $bucket 'default' field must be a constant expression, but found: %s.", value.Print(v))
	}
	if value.Compare(l.Value, edges[0]) >= 0 && value.Compare(l.Value, edges[len(edges)-1]) < 0 {
		return v, fail(40199, "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary.")
	}
	return l.Value, nil
}

func bucketGroup(by bson.RawValue, edges []bson.RawValue, other, output bson.RawValue) bson.RawValue {
	pair := func(op string, edge bson.RawValue) bson.RawValue {
		return docValueOf(op, value.ArrayOf([]bson.RawValue{by, docValueOf("$literal", edge)}))
	}
	var branches []bson.RawValue
	for i := 1; i < len(edges); i++ {
		both := value.ArrayOf([]bson.RawValue{pair("$gte", edges[i-1]), pair("$lt", edges[i])})
		branches = append(branches, bson.DocumentValue(value.DocOf(
			value.Field{Key: "case", Value: docValueOf("$and", both)},
			value.Field{Key: "then", Value: docValueOf("$literal", edges[i-1])})))
	}
	sw := []value.Field{{Key: "branches", Value: value.ArrayOf(branches)}}
	if other.Type != 0 {
		sw = append(sw, value.Field{Key: "default", Value: docValueOf("$literal", other)})
	}
	fields := []value.Field{{Key: "_id", Value: docValueOf("$switch", bson.DocumentValue(value.DocOf(sw...)))}}
	return docValueOf("$group", bson.DocumentValue(value.DocOf(append(fields, outputs(output)...)...)))
}

// outputs are the accumulated fields of a bucket: a count if none are asked for.
func outputs(output bson.RawValue) []value.Field {
	if output.Type == 0 {
		return []value.Field{{Key: "count", Value: docValueOf("$sum", bson.Int32Value(1))}}
	}
	var out []value.Field
	for k, v := range bson.Raw(output.Value).All() {
		out = append(out, value.Field{Key: k, Value: v})
	}
	return out
}

// bucketAutoStage is $bucketAuto without a granularity: buckets of about the same number of documents.
type bucketAutoStage struct {
	by expr.Expr
	n  int
	groupStage
}

func parseBucketAuto(pp *pipelineParser, _ string, arg bson.RawValue) ([]stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(40240, "The argument to $bucketAuto must be an object, but found type: %s", value.TypeName(arg.Type))
	}
	s := &bucketAutoStage{}
	output := value.Missing
	for k, v := range bson.Raw(arg.Value).All() {
		var err error
		switch k {
		case "groupBy":
			if !isGroupBy(v) {
				return nil, fail(40239, "The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression object, but found: %s", value.Print(v))
			}
			s.by, err = pp.operand(v)
		case "buckets":
			err = s.buckets(v)
		case "output":
			if output = v; v.Type != bson.TypeEmbeddedDocument {
				return nil, fail(40244, "The $bucketAuto 'output' field must be an object, but found type: %s", value.TypeName(v.Type))
			}
		case "granularity":
			err = checkGranularity(v)
		default:
			err = fail(40245, "Unrecognized option to $bucketAuto: %s", k)
		}
		if err != nil {
			return nil, err
		}
	}
	if s.by == nil || s.n == 0 {
		return nil, fail(40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified")
	}
	for _, f := range outputs(output) {
		if err := s.accumulator(pp, f.Key, f.Value); err != nil {
			return nil, err
		}
	}
	return []stage{s}, nil
}

func checkGranularity(v bson.RawValue) error {
	s, ok := value.Text(v)
	if !ok || v.Type != bson.TypeString {
		return fail(40261, "The $bucketAuto 'granularity' field must be a string, but found type: %s", value.TypeName(v.Type))
	}
	if slices.Contains([]string{"R5", "R10", "R20", "R40", "R80", "1-2-5", "E6", "E12", "E24", "E48", "E96", "E192", "POWERSOF2"}, s) {
		return bad("$bucketAuto with a 'granularity' is not served (%s)", s)
	}
	return fail(40257, "Unknown rounding granularity '%s'", s)
}

func (s *bucketAutoStage) buckets(v bson.RawValue) error {
	n, whole := value.Integral(v)
	switch {
	case !value.IsNumber(v):
		return fail(40241, "The $bucketAuto 'buckets' field must be a numeric value, but found type: %s", value.TypeName(v.Type))
	case !whole || !fitsInt(n):
		return fail(40242, "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found %s", value.Show(v))
	case n <= 0:
		return fail(40243, "The $bucketAuto 'buckets' field must be greater than 0, but found: %d", n)
	}
	s.n = int(n)
	return nil
}

type autoEntry struct {
	key bson.RawValue
	doc bson.Raw
}

func (s *bucketAutoStage) run(r *running, in Docs) Docs {
	return r.whole("$bucketAuto", in, func(h *holding, docs []bson.Raw) ([]bson.Raw, error) {
		var all []autoEntry
		for _, d := range docs {
			mark := h.m.Mark()
			k, err := s.by.Eval(r.ctx(d))
			if err != nil {
				return nil, err
			}
			h.m.Release(mark)
			if err := h.add(len(k.Value) + docCost); err != nil {
				return nil, err
			}
			if k.Type == 0 {
				k = bson.NullValue()
			}
			all = append(all, autoEntry{k, d})
		}
		cmp := func(a, b bson.RawValue) int { return value.CompareWith(a, b, r.ee.Collator) }
		slices.SortStableFunc(all, func(a, b autoEntry) int { return cmp(a.key, b.key) })
		return s.cut(r, h, all, cmp)
	})
}

// cut fills bucket by bucket; equal keys stay together, and the last bucket takes what is left.
func (s *bucketAutoStage) cut(r *running, h *holding, all []autoEntry, cmp func(a, b bson.RawValue) int) ([]bson.Raw, error) {
	size := max(1, int(float64(len(all))/float64(s.n)+0.5))
	var out []bson.Raw
	for i := 0; i < len(all); {
		end := min(i+size, len(all))
		if len(out) == s.n-1 {
			end = len(all)
		}
		for end < len(all) && cmp(all[end-1].key, all[end].key) == 0 {
			end++
		}
		upper := all[end-1].key
		if end < len(all) {
			upper = all[end].key
		}
		g := &group{id: bson.DocumentValue(value.DocOf(value.Field{Key: "min", Value: all[i].key}, value.Field{Key: "max", Value: upper}))}
		for _, a := range s.accs {
			g.accs = append(g.accs, a.make(r.ee))
		}
		for _, e := range all[i:end] {
			if err := s.feed(h, g, r.ctx(e.doc)); err != nil {
				return nil, err
			}
		}
		out = append(out, s.result(g))
		i = end
	}
	return out, nil
}
