package query

import (
	"slices"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// facetStage is $facet: several pipelines over the same documents, one result document.
type facetStage struct {
	names []string
	pipes []*Pipeline
}

func parseFacet(pp *pipelineParser, _ string, arg bson.RawValue) ([]stage, error) {
	doc := value.Doc(arg)
	if arg.Type != bson.TypeEmbeddedDocument || doc.IsEmpty() {
		return nil, fail(40169, "the $facet specification must be a non-empty object")
	}
	s := &facetStage{}
	for k, v := range doc.All() {
		if err := expr.CheckFieldName(k); err != nil {
			return nil, err
		}
		if v.Type != bson.TypeArray {
			return nil, fail(40170, "arguments to $facet must be arrays, %s is type %s", k, value.TypeName(v.Type))
		}
		for i, e := range bson.Raw(v.Value).All() {
			if e.Type != bson.TypeEmbeddedDocument {
				return nil, fail(40171, "elements of arrays in $facet spec must be non-empty objects, %s argument contained an element of type %s: %s",
					k, value.TypeName(e.Type), value.PrintElement(i, e))
			}
		}
		if bson.Raw(v.Value).IsEmpty() {
			return nil, bad("sub-pipeline in $facet stage cannot be empty")
		}
		p, err := pp.sub("$facet").parse(bson.RawArray(v.Value))
		if err != nil {
			return nil, err
		}
		s.names, s.pipes = append(s.names, k), append(s.pipes, p)
	}
	return []stage{s}, nil
}

func (s *facetStage) run(r *running, in Docs) Docs {
	return r.whole("$facet", in, func(h *holding, docs []bson.Raw) ([]bson.Raw, error) {
		var fields []value.Field
		for i, p := range s.pipes {
			out, err := r.ofStage().collect(h, p.run(r, docsOf(docs)))
			if err != nil {
				return nil, err
			}
			if err := h.addAll(out); err != nil { // once as documents, once in the array
				return nil, err
			}
			fields = append(fields, value.Field{Key: s.names[i], Value: arrayOfDocs(out)})
		}
		return []bson.Raw{value.DocOf(fields...)}, nil
	})
}

// sampleStage is $sample.
type sampleStage struct{ n int64 }

func parseSample(_ *pipelineParser, _ string, arg bson.RawValue) ([]stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(28745, "the $sample stage specification must be an object")
	}
	s := &sampleStage{n: -1}
	for k, v := range bson.Raw(arg.Value).All() {
		if k != "size" {
			return nil, fail(28748, "unrecognized option to $sample: %s", k)
		}
		if !value.IsNumber(v) {
			return nil, fail(28746, "size argument to $sample must be a number")
		}
		if s.n = value.CutLong(v); s.n < 0 {
			return nil, fail(28747, "size argument to $sample must not be negative")
		}
	}
	if s.n < 0 {
		return nil, fail(28749, "$sample stage must specify a size")
	}
	return []stage{s}, nil
}

func (s *sampleStage) run(r *running, in Docs) Docs {
	return r.whole("$sample", in, func(_ *holding, docs []bson.Raw) ([]bson.Raw, error) {
		if r.env.Random == nil {
			return nil, fail(mongoerr.CodeInternalError, "$sample has no source of randomness here")
		}
		docs = slices.Clone(docs)
		n := int(min(s.n, int64(len(docs))))
		for i := range n { // the head of a shuffle
			j := i + int(r.env.Random()*float64(len(docs)-i))
			docs[i], docs[j] = docs[j], docs[i]
		}
		return docs[:n], nil
	})
}

// redactStage is $redact: it keeps, prunes or descends into each document, level by level.
type redactStage struct{ e expr.Expr }

var redactWords = map[string]bson.RawValue{
	"KEEP": bson.StringValue("keep"), "PRUNE": bson.StringValue("prune"), "DESCEND": bson.StringValue("descend"),
}

func parseRedact(pp *pipelineParser, _ string, arg bson.RawValue) ([]stage, error) {
	p := pp.exprs()
	p.Extra = redactWords
	p.Scope = p.Scope.With("CURRENT", value.Missing)
	e, err := p.Operand(arg)
	return []stage{&redactStage{e}}, err
}

func (s *redactStage) run(r *running, in Docs) Docs {
	return r.mapped(in, func(d bson.Raw) (bson.Raw, error) {
		v, err := s.level(r.ctx(d), bson.DocumentValue(d))
		return value.Doc(v), err
	})
}

func (s *redactStage) level(root *expr.Ctx, v bson.RawValue) (bson.RawValue, error) {
	word, err := s.e.Eval(root.With("CURRENT", v))
	if err != nil {
		return v, err
	}
	switch text, _ := value.Text(word); {
	case text == "keep":
		return v, nil
	case text == "prune":
		return value.Missing, nil
	case text != "descend":
		return v, fail(17053, "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE, but returned %s", value.Show(word))
	}
	dst, start := bson.BeginDocument(nil)
	for k, e := range bson.Raw(v.Value).All() {
		if e, err = s.descend(root, e); err != nil {
			return v, err
		}
		if e.Type != 0 {
			dst = bson.AppendValue(dst, k, e)
		}
	}
	return bson.DocumentValue(bson.EndDocument(dst, start)), nil
}

func (s *redactStage) descend(root *expr.Ctx, v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return s.level(root, v)
	case bson.TypeArray:
		var out []bson.RawValue
		for _, e := range bson.RawArray(v.Value).All() {
			e, err := s.descend(root, e)
			if err != nil {
				return v, err
			}
			if e.Type != 0 {
				out = append(out, e)
			}
		}
		return value.ArrayOf(out), nil
	}
	return v, nil
}
