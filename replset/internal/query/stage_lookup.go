package query

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// lookupStage is $lookup: by equal fields, by a pipeline, or both.
type lookupStage struct {
	from, as       string
	local, foreign string
	names          []string
	vals           []expr.Expr
	pipeline       *Pipeline
}

func parseLookup(pp *pipelineParser, _ string, arg bson.RawValue) ([]stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(mongoerr.CodeFailedToParse, "the $lookup stage specification must be an object, but found %s", value.TypeName(arg.Type))
	}
	s := &lookupStage{}
	var pipeline, let bson.RawValue
	doc := bson.Raw(arg.Value)
	for k, v := range doc.All() {
		var err error
		switch k {
		case "pipeline":
			pipeline = v
			if v.Type != bson.TypeArray {
				err = fail(mongoerr.CodeTypeMismatch, "'pipeline' option must be specified as an array")
			}
		case "let":
			let = v
			if v.Type != bson.TypeEmbeddedDocument {
				err = fail(mongoerr.CodeFailedToParse, "$lookup argument '%s' must be an object, is type %s", value.PrintElement(k, v), value.TypeName(v.Type))
			}
		default:
			err = s.text(k, v)
		}
		if err != nil {
			return nil, err
		}
	}
	first, _ := value.First(value.Doc(bson.RawArray(pipeline.Value).Index(0)))
	own := first == "$documents"
	if value.Get(doc, "from").Type == 0 && !own {
		return nil, fail(mongoerr.CodeFailedToParse, "missing 'from' option to $lookup stage specification: %s", value.PrintDoc(doc))
	}
	if s.from == "" && !own {
		return nil, fail(mongoerr.CodeInvalidNamespace, "invalid $lookup namespace: %s.", pp.env.DB)
	}
	if s.as == "" {
		return nil, fail(mongoerr.CodeFailedToParse, "must specify 'as' field for a $lookup")
	}
	if (s.local == "") != (s.foreign == "") || s.local == "" && pipeline.Type == 0 {
		return nil, fail(mongoerr.CodeFailedToParse, "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified")
	}
	for _, p := range []string{s.as, s.local, s.foreign} {
		if p != "" {
			if err := expr.CheckPath(p); err != nil {
				return nil, err
			}
		}
	}
	if pipeline.Type == 0 {
		return []stage{s}, nil
	}
	return []stage{s}, s.inner(pp, let, bson.RawArray(pipeline.Value))
}

func (s *lookupStage) text(k string, v bson.RawValue) error {
	t, ok := value.Text(v)
	if !ok || v.Type != bson.TypeString {
		if k == "from" {
			return fail(mongoerr.CodeFailedToParse, "'from' option to $lookup must be a string, but was type %s", value.TypeName(v.Type))
		}
		return fail(mongoerr.CodeFailedToParse, "$lookup argument '%s' must be a string, is type %s", value.PrintElement(k, v), value.TypeName(v.Type))
	}
	switch k {
	case "from":
		s.from = t
	case "as":
		s.as = t
	case "localField":
		s.local = t
	case "foreignField":
		s.foreign = t
	default:
		return fail(mongoerr.CodeFailedToParse, "unknown argument to $lookup: %s", k)
	}
	return nil
}

// inner parses the pipeline, which sees the variables of let.
func (s *lookupStage) inner(pp *pipelineParser, let bson.RawValue, stages bson.RawArray) error {
	sub := pp.sub("$lookup")
	for k, v := range value.Doc(let).All() {
		if err := expr.CheckVariable(k); err != nil {
			return err
		}
		e, err := pp.operand(v)
		if err != nil {
			return err
		}
		s.names, s.vals = append(s.names, k), append(s.vals, e)
		sub.scope = sub.scope.With(k, value.Missing)
	}
	var err error
	s.pipeline, err = sub.parse(stages)
	return err
}

func (r *running) others(coll string) Docs {
	if r.env.Lookup == nil {
		return failing(fail(mongoerr.CodeInternalError, "other collections cannot be read here"))
	}
	return r.env.Lookup(coll)
}

func (s *lookupStage) run(r *running, in Docs) Docs {
	return r.mapped(in, func(d bson.Raw) (bson.Raw, error) {
		src := docsOf(nil)
		if s.from != "" {
			src = r.others(s.from)
		}
		if s.local != "" {
			f, err := s.join(r, d)
			if err != nil {
				return nil, err
			}
			src = s.matching(r, f, d, src)
		}
		if s.pipeline != nil {
			inner := *r.ofStage()
			for i, e := range s.vals {
				v, err := e.Eval(r.ctx(d))
				if err != nil {
					return nil, err
				}
				inner.vars = inner.vars.With(s.names[i], v)
			}
			src = s.pipeline.run(&inner, src)
		}
		found, err := s.found(r, src)
		if err != nil {
			return nil, err
		}
		return setAt(d, s.as, arrayOfDocs(found)), nil
	})
}

// found gathers what is joined to a document.
func (s *lookupStage) found(r *running, src Docs) (out []bson.Raw, err error) {
	n := 0
	for d, err := range src {
		if err != nil {
			return nil, err
		}
		if n += len(d); int64(n) > r.meter().Most() {
			return nil, fail(4568, "Total size of documents in %s matching pipeline's $lookup stage exceeds %d bytes", s.from, r.meter().Most())
		}
		if err := r.meter().Hold("$lookup", len(d)+docCost); err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, r.meter().Hold("$lookup", n)
}

func arrayOfDocs(docs []bson.Raw) bson.RawValue {
	vs := make([]bson.RawValue, len(docs))
	for i, d := range docs {
		vs[i] = bson.DocumentValue(d)
	}
	return value.ArrayOf(vs)
}

// bytesPerCompare is what a comparison counts among the steps of an execution.
const bytesPerCompare = 16

// matching filters; a local array is many comparisons a document.
func (s *lookupStage) matching(r *running, f *Filter, d bson.Raw, src Docs) Docs {
	n := len(expr.Walk(bson.DocumentValue(d), strings.Split(s.local, ".")).Value)
	return r.mapped(src, func(o bson.Raw) (bson.Raw, error) {
		if err := r.meter().Step(n); err != nil {
			return nil, err
		}
		ok, _, err := f.eval(o, r.vars)
		if err != nil || !ok {
			return nil, err
		}
		return o, nil
	})
}

// join is the filter for the documents whose foreign field equals the local one, or one of its elements.
func (s *lookupStage) join(r *running, d bson.Raw) (*Filter, error) {
	v := expr.Walk(bson.DocumentValue(d), strings.Split(s.local, "."))
	return equalTo(r, s.foreign, v), nil
}

// equalTo is the filter {path: v}, or {path: {$in: v}} for an array.
func equalTo(r *running, at string, v bson.RawValue) *Filter {
	vs := []bson.RawValue{v}
	if v.Type == bson.TypeArray {
		vs = value.Array(v)
	}
	any := &or{}
	for _, e := range vs {
		if value.Nullish(e) {
			e = bson.NullValue()
		}
		any.subs = append(any.subs, &leaf{path: newPath(at), leaves: true, test: &comparison{op: opEq, want: e, coll: r.ee.Collator}})
	}
	return &Filter{root: any, opts: r.env.Options, coll: r.ee.Collator}
}

// unionStage is $unionWith.
type unionStage struct {
	coll     string
	pipeline *Pipeline
}

func parseUnion(pp *pipelineParser, _ string, arg bson.RawValue) ([]stage, error) {
	s := &unionStage{}
	if t, ok := value.Text(arg); ok && arg.Type == bson.TypeString {
		s.coll = t
		return []stage{s}, nil
	}
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(mongoerr.CodeFailedToParse, "the $unionWith stage specification must be an object or string, but found %s", value.TypeName(arg.Type))
	}
	for k, v := range bson.Raw(arg.Value).All() {
		switch k {
		case "coll":
			t, ok := value.Text(v)
			if !ok || v.Type != bson.TypeString {
				return nil, fail(mongoerr.CodeTypeMismatch, "BSON field '$unionWith.coll' is the wrong type '%s', expected type 'string'", value.TypeName(v.Type))
			}
			s.coll = t
		case "pipeline":
			if v.Type != bson.TypeArray {
				return nil, fail(mongoerr.CodeTypeMismatch, "'pipeline' option must be specified as an array")
			}
			var err error
			if s.pipeline, err = pp.sub("$unionWith").parse(bson.RawArray(v.Value)); err != nil {
				return nil, err
			}
		default:
			return nil, fail(40415, "BSON field '$unionWith.%s' is an unknown field.", k)
		}
	}
	if s.coll == "" && (s.pipeline == nil || s.pipeline.ReadsCollection()) {
		return nil, fail(mongoerr.CodeFailedToParse, "$unionWith stage without explicit collection must have a pipeline with $documents as first stage")
	}
	return []stage{s}, nil
}

func (s *unionStage) run(r *running, in Docs) Docs {
	return func(yield func(bson.Raw, error) bool) {
		for d, err := range in {
			if !yield(d, err) || err != nil {
				return
			}
		}
		src := docsOf(nil)
		if s.coll != "" {
			src = r.others(s.coll)
		}
		if s.pipeline != nil {
			src = s.pipeline.run(r.ofStage(), src)
		}
		src(yield)
	}
}
