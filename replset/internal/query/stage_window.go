package query

import (
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// setWindowStage is $setWindowFields: partitions, sorted, and for each document of one what functions make of the documents
// in a window around it.
type setWindowStage struct {
	partition expr.Expr // nil: all documents are one
	sort      *Sort
	by        expr.Expr // the value of the one field that is sorted by, nil otherwise
	outputs   []windowOutput
}

type windowOutput struct {
	path string
	fn   windowFunc
}

// windowFunc computes its value for every document of a partition.
type windowFunc interface {
	compute(r *running, p *partition) ([]bson.RawValue, error)
}

// partition is what a window function works on.
type partition struct {
	docs []bson.Raw
	sort *Sort
	by   []bson.RawValue // the values sorted by, if that is one field
}

// idl checks the fields of a stage's document as a generated parser does: wanted gives their types, "" for any.
func idl(stage string, doc bson.Raw, wanted map[string]string, required ...string) (map[string]bson.RawValue, error) {
	out := map[string]bson.RawValue{}
	for k, v := range doc.All() {
		types, known := wanted[k]
		if !known {
			return nil, fail(40415, "BSON field '%s.%s' is an unknown field.", stage, k)
		}
		if types != "" && !slices.Contains(strings.Split(types, ", "), value.TypeName(v.Type)) {
			if strings.Contains(types, ",") {
				return nil, fail(mongoerr.CodeTypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected types '[%s]'", stage, k, value.TypeName(v.Type), types)
			}
			return nil, fail(mongoerr.CodeTypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected type '%s'", stage, k, value.TypeName(v.Type), types)
		}
		out[k] = v
	}
	for _, k := range required {
		if out[k].Type == 0 {
			return nil, fail(40414, "BSON field '%s.%s' is missing but a required field", stage, k)
		}
	}
	return out, nil
}

func parseSetWindowFields(pp *pipelineParser, name string, arg bson.RawValue) ([]stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(mongoerr.CodeFailedToParse, "the %s stage specification must be an object, found %s", name, value.TypeName(arg.Type))
	}
	args, err := idl(name, value.Doc(arg), map[string]string{"partitionBy": "", "sortBy": "object", "output": "object"}, "output")
	if err != nil {
		return nil, err
	}
	s := &setWindowStage{}
	if v := args["partitionBy"]; v.Type != 0 {
		if s.partition, err = pp.operand(v); err != nil {
			return nil, err
		}
		if c, constant := expr.IsConstant(s.partition); constant && c.Type == bson.TypeArray {
			return nil, partitionedByArray()
		}
	}
	if err := s.sorted(pp, value.Doc(args["sortBy"])); err != nil {
		return nil, err
	}
	for path, v := range value.Doc(args["output"]).All() {
		if err := s.output(pp, path, v); err != nil {
			return nil, err
		}
	}
	return []stage{s}, nil
}

func partitionedByArray() error {
	return fail(mongoerr.CodeTypeMismatch, "An expression used to partition cannot evaluate to value of type array")
}

func (s *setWindowStage) sorted(pp *pipelineParser, by bson.Raw) (err error) {
	if by.IsEmpty() {
		return nil
	}
	if s.sort, err = ParseSortWith(by, pp.env.Options); err != nil {
		return err
	}
	if fields := s.sort.Fields(); len(fields) == 1 {
		s.by, err = pp.operand(bson.StringValue("$" + fields[0].Path))
	}
	return err
}

// output parses one field: {$function: argument, window: {...}}.
func (s *setWindowStage) output(pp *pipelineParser, path string, v bson.RawValue) error {
	if err := expr.CheckPath(path); err != nil {
		return err
	}
	for _, o := range s.outputs {
		if onPath(strings.Split(o.path, "."), strings.Split(path, ".")) {
			return fail(40176, "specification contains two conflicting paths. Cannot specify both '%s' and '%s'", path, o.path)
		}
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return fail(mongoerr.CodeFailedToParse, "The field '%s' must be an object", path)
	}
	name, arg, window := "", bson.RawValue{}, bson.RawValue{}
	for k, e := range bson.Raw(v.Value).All() {
		switch {
		case k == "window":
			if window = e; e.Type != bson.TypeEmbeddedDocument {
				return fail(mongoerr.CodeFailedToParse, "'window' field must be an object")
			}
		case strings.HasPrefix(k, "$") && name == "":
			name, arg = k, e
		default:
			return fail(mongoerr.CodeFailedToParse, "Window function found an unknown argument: %s", k)
		}
	}
	if name == "" {
		return fail(mongoerr.CodeFailedToParse, "Expected a $-prefixed window function, window")
	}
	fn, err := s.function(pp, name, arg, window)
	s.outputs = append(s.outputs, windowOutput{path, fn})
	return err
}

func (s *setWindowStage) run(r *running, in Docs) Docs {
	return r.whole("$setWindowFields", in, func(h *holding, docs []bson.Raw) ([]bson.Raw, error) {
		parts, err := partitionBy(r, s.partition, docs)
		if err != nil {
			return nil, err
		}
		var out []bson.Raw
		for _, part := range parts {
			done, err := s.one(r, h, part)
			if err != nil {
				return nil, err
			}
			out = append(out, done...)
		}
		return out, nil
	})
}

// partitionBy splits documents by the value of an expression, in the order of the values; missing counts as null.
func partitionBy(r *running, e expr.Expr, docs []bson.Raw) ([][]bson.Raw, error) {
	if e == nil {
		return [][]bson.Raw{docs}, nil
	}
	type part struct {
		by   bson.RawValue
		docs []bson.Raw
	}
	parts := map[string]*part{}
	var order []*part
	for _, d := range docs {
		v, err := e.Eval(r.ctx(d))
		if err != nil {
			return nil, err
		}
		if v.Type == bson.TypeArray {
			return nil, partitionedByArray()
		}
		if v.Type == 0 {
			v = bson.NullValue()
		}
		k := value.Key(v, r.ee.Collator)
		if parts[k] == nil {
			parts[k] = &part{by: v}
			order = append(order, parts[k])
		}
		parts[k].docs = append(parts[k].docs, d)
	}
	slices.SortStableFunc(order, func(a, b *part) int { return value.CompareWith(a.by, b.by, r.ee.Collator) })
	var out [][]bson.Raw
	for _, p := range order {
		out = append(out, p.docs)
	}
	return out, nil
}

// one computes the fields of a partition's documents. Every function sees the documents as they came in.
func (s *setWindowStage) one(r *running, h *holding, docs []bson.Raw) ([]bson.Raw, error) {
	p := &partition{docs: slices.Clone(docs), sort: s.sort}
	if s.sort != nil {
		if err := s.sort.Apply(p.docs); err != nil {
			return nil, err
		}
	}
	if s.by != nil {
		for _, d := range p.docs {
			v, err := s.by.Eval(r.ctx(d))
			if err != nil {
				return nil, err
			}
			p.by = append(p.by, v)
			if err := h.add(len(v.Value) + docCost); err != nil {
				return nil, err
			}
		}
	}
	out := slices.Clone(p.docs)
	for _, o := range s.outputs {
		mark := h.m.Mark()
		vals, err := o.fn.compute(r, p)
		if err != nil {
			return nil, err
		}
		h.m.Release(mark)
		for i, v := range vals {
			before := len(out[i])
			out[i] = setAt(out[i], o.path, v)
			if err := h.add(len(out[i]) - before + len(o.path)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
