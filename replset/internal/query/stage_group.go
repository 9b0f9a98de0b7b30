package query

import (
	"math"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// groupStage is $group. Groups come out in the order in which their first document came in.
type groupStage struct {
	id   expr.Expr
	accs []accumulation
}

// accumulation is one field of a group: an accumulator and what it is fed.
type accumulation struct {
	field string
	name  string // of the accumulator
	make  func(env *expr.Env) expr.Accumulator
	arg   expr.Expr
}

func parseGroup(pp *pipelineParser, _ string, arg bson.RawValue) ([]stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(15947, "a group's fields must be specified in an object")
	}
	s := &groupStage{}
	for k, v := range bson.Raw(arg.Value).All() {
		var err error
		if k == "_id" {
			if s.id != nil {
				return nil, fail(15948, "a group's _id may only be specified once")
			}
			s.id, err = pp.groupID(v)
		} else {
			err = s.accumulator(pp, k, v)
		}
		if err != nil {
			return nil, err
		}
	}
	if s.id == nil {
		return nil, fail(15955, "a group specification must include an _id")
	}
	return []stage{s}, nil
}

// groupID parses the key; an array is a constant.
func (pp *pipelineParser) groupID(v bson.RawValue) (expr.Expr, error) {
	if v.Type == bson.TypeArray {
		return expr.Literal{Value: v}, nil
	}
	return pp.operand(v)
}

func (s *groupStage) accumulator(pp *pipelineParser, field string, v bson.RawValue) error {
	if strings.Contains(field, ".") {
		return fail(40235, "The field name '%s' cannot contain '.'", field)
	}
	if strings.HasPrefix(field, "$") {
		return fail(40236, "The field name '%s' cannot be an operator name", field)
	}
	doc := value.Doc(v)
	if v.Type != bson.TypeEmbeddedDocument || doc.IsEmpty() {
		return fail(40234, "The field '%s' must be an accumulator object", field)
	}
	if doc.Len() != 1 {
		return fail(40238, "The field '%s' must specify one accumulator", field)
	}
	name, arg := value.First(doc)
	if parse := namedAccumulator(name); parse != nil {
		mk, e, err := parse(pp, name, arg)
		if err != nil {
			return err
		}
		s.accs = append(s.accs, accumulation{field, name, mk, e})
		return nil
	}
	if arg.Type == bson.TypeArray {
		if n := bson.RawArray(arg.Value).Len(); n != 1 {
			return fail(40237, "The %s accumulator is a unary operator", name)
		}
		arg = bson.RawArray(arg.Value).Index(0)
	}
	if expr.NewAccumulator(name, pp.ee) == nil {
		return fail(15952, "unknown group operator '%s'", name)
	}
	e, err := pp.operand(arg)
	s.accs = append(s.accs, accumulation{field, name, func(env *expr.Env) expr.Accumulator { return expr.NewAccumulator(name, env) }, e})
	return err
}

type group struct {
	id   bson.RawValue
	accs []expr.Accumulator
}

func (s *groupStage) run(r *running, in Docs) Docs {
	return func(yield func(bson.Raw, error) bool) {
		h := &holding{m: r.meter(), stage: "$group"}
		defer h.release()
		groups, err := s.groups(r, h, in)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, g := range groups {
			if !yield(s.result(g), nil) {
				return
			}
		}
	}
}

// groupCost is what a group or an accumulator takes beside what it keeps.
const groupCost = 128

// groups makes the groups, document by document.
func (s *groupStage) groups(r *running, h *holding, in Docs) (order []*group, err error) {
	groups := map[string]*group{}
	for d, err := range in {
		if err == nil {
			err = h.m.Step(0)
		}
		if err != nil {
			return nil, err
		}
		mark := h.m.Mark()
		c := r.ctx(d)
		id, err := s.id.Eval(c)
		if err != nil {
			return nil, err
		}
		id = nullsForMissing(s.id, id, c)
		h.m.Release(mark)
		key := value.Key(id, r.ee.Collator)
		g := groups[key]
		if g == nil {
			if err := h.add(len(id.Value) + len(key) + (1+len(s.accs))*groupCost); err != nil {
				return nil, err
			}
			g = &group{id: expr.Own(id)}
			for _, a := range s.accs {
				g.accs = append(g.accs, a.make(r.ee))
			}
			groups[key] = g
			order = append(order, g)
		}
		if err := s.feed(h, g, c); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// nullsForMissing makes null of a key that is missing, whole or in a field of a document key.
func nullsForMissing(e expr.Expr, id bson.RawValue, c *expr.Ctx) bson.RawValue {
	if id.Type == 0 {
		return bson.NullValue()
	}
	keys, parts := expr.Fields(e)
	if len(keys) == 0 || bson.Raw(id.Value).Len() == len(keys) {
		return id
	}
	var fields []value.Field
	for i, k := range keys {
		v, err := parts[i].Eval(c)
		if err != nil || v.Type == 0 {
			v = bson.NullValue()
		}
		fields = append(fields, value.Field{Key: k, Value: v})
	}
	return bson.DocumentValue(value.DocOf(fields...))
}

func (s *groupStage) feed(h *holding, g *group, c *expr.Ctx) error {
	for i, a := range s.accs {
		mark := h.m.Mark()
		v, err := a.arg.Eval(c)
		if err != nil {
			return err
		}
		h.m.Release(mark)
		before := keptBy(g.accs[i])
		if err := g.accs[i].Add(v); err != nil {
			return err
		}
		kept := keptBy(g.accs[i])
		if err := h.accumulated(a.name, kept, kept-before); err != nil {
			return err
		}
	}
	return nil
}

func keptBy(a expr.Accumulator) int {
	if k, ok := a.(expr.Keeper); ok {
		return k.Kept()
	}
	return 0
}

func (s *groupStage) result(g *group) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendValue(dst, "_id", g.id)
	for i, a := range s.accs {
		dst = bson.AppendValue(dst, a.field, g.accs[i].Result())
	}
	return bson.EndDocument(dst, start)
}

func parseSortByCount(pp *pipelineParser, _ string, arg bson.RawValue) ([]stage, error) {
	const form = "the sortByCount field must be defined as a $-prefixed path or an expression inside an object"
	switch s, _ := value.Text(arg); {
	case arg.Type == bson.TypeEmbeddedDocument:
		if first, _ := value.First(bson.Raw(arg.Value)); !strings.HasPrefix(first, "$") {
			return nil, fail(40147, form)
		}
	case arg.Type == bson.TypeString:
		if !strings.HasPrefix(s, "$") {
			return nil, fail(40148, form)
		}
	default:
		return nil, fail(40149, "the sortByCount field must be specified as a string or as an object")
	}
	count := docValueOf("$sum", bson.Int32Value(1))
	return pp.parseAll(
		docValueOf("$group", bson.DocumentValue(value.DocOf(value.Field{Key: "_id", Value: arg}, value.Field{Key: "count", Value: count}))),
		docValueOf("$sort", docValueOf("count", bson.Int32Value(-1))),
	)
}

func docValueOf(key string, v bson.RawValue) bson.RawValue {
	return bson.DocumentValue(value.DocOf(value.Field{Key: key, Value: v}))
}

// parseAll parses the stages that a stage is short for.
func (pp *pipelineParser) parseAll(stages ...bson.RawValue) ([]stage, error) {
	p, err := pp.parse(bson.NewRawArray(stages...))
	if err != nil {
		return nil, err
	}
	return p.stages, nil
}

func fitsInt(n int64) bool { return n >= math.MinInt32 && n <= math.MaxInt32 }
