package query

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// matchStage is $match.
type matchStage struct{ filter *Filter }

func parseMatch(pp *pipelineParser, _ string, arg bson.RawValue) ([]stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(15959, "the match filter must be an expression in an object")
	}
	f, err := pp.filter(bson.Raw(arg.Value))
	return []stage{&matchStage{f}}, err
}

// filter parses a filter that sees the variables of the pipeline.
func (pp *pipelineParser) filter(doc bson.Raw) (*Filter, error) {
	p := parser{opts: pp.env.Options, coll: pp.ee.Collator, scope: pp.scope, noWhere: true}
	root, err := p.document(doc, levelTop)
	if err != nil {
		return nil, err
	}
	return &Filter{root: root, raw: doc, opts: pp.env.Options, coll: pp.ee.Collator}, nil
}

func (m *matchStage) run(r *running, in Docs) Docs {
	return r.mapped(in, func(d bson.Raw) (bson.Raw, error) {
		ok, _, err := m.filter.eval(d, r.vars)
		if err != nil || !ok {
			return nil, err
		}
		return d, nil
	})
}

// shapeStage is $project and $addFields.
type shapeStage struct{ shape *shape }

func parseProject(pp *pipelineParser, name string, arg bson.RawValue) ([]stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(15969, "$project specification must be an object")
	}
	return pp.shape(name, bson.Raw(arg.Value), false)
}

func parseAddFields(pp *pipelineParser, name string, arg bson.RawValue) ([]stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(40272, "%s specification stage must be an object, got %s", name, value.TypeName(arg.Type))
	}
	return pp.shape(name, bson.Raw(arg.Value), true)
}

func (pp *pipelineParser) shape(name string, spec bson.Raw, add bool) ([]stage, error) {
	s, err := parseShape(name, spec, pp.exprs(), add)
	if err != nil {
		return nil, err
	}
	return []stage{&shapeStage{s}}, s.fold(pp.ee)
}

func (s *shapeStage) run(r *running, in Docs) Docs {
	return r.mapped(in, func(d bson.Raw) (bson.Raw, error) { return s.shape.document(r.ctx(d), d) })
}

func parseUnset(pp *pipelineParser, name string, arg bson.RawValue) ([]stage, error) {
	list := []bson.RawValue{arg}
	if arg.Type == bson.TypeArray {
		if list = value.Array(arg); len(list) == 0 {
			return nil, fail(31119, "$unset specification must be a string or an array with at least one field")
		}
	} else if arg.Type != bson.TypeString {
		return nil, fail(31002, "$unset specification must be a string or an array")
	}
	var fields []value.Field
	for _, v := range list {
		s, ok := value.Text(v)
		if !ok || v.Type != bson.TypeString {
			return nil, fail(31120, "$unset specification must be a string or an array containing only string values")
		}
		fields = append(fields, value.Field{Key: s, Value: bson.Int32Value(0)})
	}
	return pp.shape(name, value.DocOf(fields...), false)
}

// sortStage is $sort.
type sortStage struct{ sort *Sort }

func parseSortStage(pp *pipelineParser, _ string, arg bson.RawValue) ([]stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(15973, "the $sort key specification must be an object")
	}
	s := &Sort{coll: pp.ee.Collator}
	for k, v := range bson.Raw(arg.Value).All() {
		if v.Type == bson.TypeEmbeddedDocument {
			return nil, sortMeta(bson.Raw(v.Value))
		}
		if !value.IsNumber(v) {
			return nil, fail(15974, "$sort key ordering must be specified using a number or {$meta: 'textScore'}")
		}
		n, ok := value.Integral(v)
		if !ok || n != 1 && n != -1 {
			return nil, fail(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
		}
		if err := expr.CheckPath(k); err != nil {
			return nil, err
		}
		s.fields = append(s.fields, IndexField{Path: k, Descending: n < 0})
	}
	if len(s.fields) == 0 {
		return nil, fail(15976, "$sort stage must have at least one sort key")
	}
	return []stage{&sortStage{s}}, nil
}

func sortMeta(doc bson.Raw) error {
	name, arg := value.First(doc)
	if name != "$meta" || doc.Len() != 1 {
		return fail(17312, "$meta is the only expression supported by $sort right now")
	}
	if s, _ := value.Text(arg); s != "textScore" {
		return fail(17308, "Unsupported argument to $meta: %s", s)
	}
	return fail(40218, "pipeline requires text score metadata, but there is no text score available")
}

func (s *sortStage) run(r *running, in Docs) Docs {
	return func(yield func(bson.Raw, error) bool) {
		h := &holding{m: r.meter(), stage: "$sort"}
		defer h.release()
		docs, err := s.sorted(r, h, in)
		if err != nil {
			yield(nil, err)
			return
		}
		docsOf(docs)(yield)
	}
}

// sorted gathers and sorts. Where only so many are asked for, the others go when there are twice as many, or no room.
func (s *sortStage) sorted(r *running, h *holding, in Docs) (docs []bson.Raw, err error) {
	cost := func(d bson.Raw) int { return h.costOf(r, d) + docCost }
	shorten := func() error {
		if err := s.sort.Apply(docs); err != nil {
			return err
		}
		for _, gone := range docs[r.most:] {
			_ = h.add(-cost(gone)) // less is never refused
		}
		clear(docs[r.most:])
		docs = docs[:r.most]
		return nil
	}
	for d, err := range in {
		if err != nil {
			return nil, err
		}
		if err = h.add(cost(d)); err != nil && r.most > 0 && len(docs) > r.most {
			if err = shorten(); err == nil {
				err = h.add(cost(d))
			}
		}
		if err != nil {
			return nil, err
		}
		if docs = append(docs, d); r.most > 0 && len(docs) >= surplus(r.most) {
			if err := shorten(); err != nil {
				return nil, err
			}
		}
	}
	return docs, s.sort.Apply(docs)
}

// windowStage is $limit and $skip.
type windowStage struct{ skip, limit int64 }

func parseWindow(_ *pipelineParser, name string, arg bson.RawValue) ([]stage, error) {
	n := value.CutLong(arg)
	if name == "$limit" {
		switch {
		case !value.IsNumber(arg):
			return nil, fail(15957, "the limit must be specified as a number")
		case n <= 0:
			return nil, fail(15958, "the limit must be positive")
		}
		return []stage{&windowStage{limit: n}}, nil
	}
	switch {
	case !value.IsNumber(arg):
		return nil, fail(15972, "Argument to $skip must be a number not a %s", value.TypeName(arg.Type))
	case n < 0:
		return nil, fail(15956, "Argument to $skip cannot be negative")
	}
	return []stage{&windowStage{skip: n}}, nil
}

func (w *windowStage) run(r *running, in Docs) Docs {
	return func(yield func(bson.Raw, error) bool) {
		i := int64(0)
		for d, err := range in {
			if err == nil {
				err = r.meter().Step(0)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if i++; i <= w.skip {
				continue
			}
			if !yield(d, nil) || w.limit > 0 && i >= w.limit {
				return
			}
		}
	}
}

// replaceStage is $replaceRoot.
type replaceStage struct{ root expr.Expr }

func parseReplaceRoot(pp *pipelineParser, name string, arg bson.RawValue) ([]stage, error) {
	if name == "$replaceRoot" {
		if arg.Type != bson.TypeEmbeddedDocument {
			return nil, fail(40229, "expected an object as specification for $replaceRoot stage, got %s", value.TypeName(arg.Type))
		}
		spec := bson.Raw(arg.Value)
		for k := range spec.All() {
			if k != "newRoot" {
				return nil, fail(40230, "unrecognized option to $replaceRoot stage: %s, only valid option is 'newRoot'.", k)
			}
		}
		if arg = value.Get(spec, "newRoot"); arg.Type == 0 {
			return nil, fail(40231, "no newRoot specified for the $replaceRoot stage")
		}
	}
	e, err := pp.operand(arg)
	return []stage{&replaceStage{e}}, err
}

func (s *replaceStage) run(r *running, in Docs) Docs {
	return r.mapped(in, func(d bson.Raw) (bson.Raw, error) {
		v, err := s.root.Eval(r.ctx(d))
		if err != nil {
			return nil, err
		}
		if v.Type != bson.TypeEmbeddedDocument {
			return nil, fail(40228, "'newRoot' expression must evaluate to an object, but resulting value was: %s. Type of resulting value: '%s'. Input document: %s",
				value.Show(v), value.TypeName(v.Type), value.Show(bson.DocumentValue(s.needed(d))))
		}
		return bson.Raw(v.Value), nil
	})
}

// needed is the part of the document that the expression looks at: the server has no other then.
func (s *replaceStage) needed(d bson.Raw) bson.Raw {
	if _, constant := s.root.(expr.Literal); constant {
		return value.DocOf()
	}
	path, ok := expr.PathOf(s.root)
	if !ok {
		return d
	}
	sh := newShape(including)
	sp := &shapeParser{}
	if err := sp.put(sh, shapeField{parts: strings.Split(path, "."), on: true}); err != nil {
		return d
	}
	out, err := sh.document(nil, d)
	if err != nil {
		return d
	}
	return out
}

func parseCount(pp *pipelineParser, _ string, arg bson.RawValue) ([]stage, error) {
	s, ok := value.Text(arg)
	switch {
	case !ok || arg.Type != bson.TypeString:
		return nil, fail(40156, "the count field must be a non-empty string")
	case s == "":
		return nil, fail(40157, "the count field must be a non-empty string")
	case s[0] == '$':
		return nil, fail(40158, "the count field cannot be a $-prefixed path")
	case strings.ContainsRune(s, 0):
		return nil, fail(40159, "the count field cannot contain a null byte")
	case strings.Contains(s, "."):
		return nil, fail(40160, "the count field cannot contain '.'")
	case s == "_id":
		return nil, fail(15948, "a group's _id may only be specified once")
	}
	return []stage{&countStage{s}}, nil
}

// countStage is $count: nothing comes out where nothing went in.
type countStage struct{ field string }

func (s *countStage) run(r *running, in Docs) Docs {
	return func(yield func(bson.Raw, error) bool) {
		n := int64(0)
		for _, err := range in {
			if err == nil {
				err = r.meter().Step(0)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			n++
		}
		if n > 0 {
			yield(value.DocOf(value.Field{Key: s.field, Value: countOf(n)}), nil)
		}
	}
}

// countOf is an int, or a long for what no int holds.
func countOf(n int64) bson.RawValue {
	if fitsInt(n) {
		return bson.Int32Value(int32(n))
	}
	return bson.Int64Value(n)
}

// documentsStage is $documents.
type documentsStage struct{ list expr.Expr }

func parseDocuments(pp *pipelineParser, _ string, arg bson.RawValue) ([]stage, error) {
	e, err := pp.operand(arg)
	return []stage{&documentsStage{e}}, err
}

func (s *documentsStage) run(r *running, _ Docs) Docs {
	v, err := s.list.Eval(r.ctx(value.DocOf()))
	if err != nil {
		return failing(err)
	}
	if v.Type != bson.TypeArray {
		return failing(fail(5858203, "an array is expected"))
	}
	var docs []bson.Raw
	for _, e := range bson.RawArray(v.Value).All() {
		if e.Type != bson.TypeEmbeddedDocument {
			return failing(fail(mongoerr.CodeBadValue, "$documents: each element must be an object, found %s", value.TypeName(e.Type)))
		}
		docs = append(docs, bson.Raw(e.Value))
	}
	return docsOf(docs)
}
