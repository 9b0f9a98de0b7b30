package query

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// graphStage is $graphLookup: it follows connections breadth first.
type graphStage struct {
	from, as, connectFrom, connectTo, depthField string
	start                                        expr.Expr
	restrict                                     *Filter
	maxDepth                                     int64 // -1: no limit
}

func parseGraphLookup(pp *pipelineParser, _ string, arg bson.RawValue) ([]stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(mongoerr.CodeFailedToParse, "the $graphLookup stage specification must be an object, but found %s", value.TypeName(arg.Type))
	}
	s := &graphStage{maxDepth: -1}
	doc := bson.Raw(arg.Value)
	for k, v := range doc.All() {
		var err error
		switch k {
		case "startWith":
			s.start, err = pp.operand(v)
		case "maxDepth":
			err = s.depth(v)
		case "restrictSearchWithMatch":
			if v.Type != bson.TypeEmbeddedDocument {
				return nil, fail(40185, "restrictSearchWithMatch must be an object, found %s", value.TypeName(v.Type))
			}
			if s.restrict, err = pp.filter(bson.Raw(v.Value)); err != nil {
				err = prefixed("Failed to parse 'restrictSearchWithMatch' option to $graphLookup :: caused by :: ", err)
			}
		default:
			err = s.text(k, v)
		}
		if err != nil {
			return nil, err
		}
	}
	if s.from == "" {
		return nil, fail(mongoerr.CodeFailedToParse, "missing 'from' option to $graphLookup stage specification: %s", value.PrintDoc(doc))
	}
	if s.as == "" || s.start == nil || s.connectFrom == "" || s.connectTo == "" {
		return nil, fail(40105, "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified.")
	}
	return []stage{s}, nil
}

func (s *graphStage) depth(v bson.RawValue) error {
	if !value.IsNumber(v) {
		return fail(40100, "maxDepth must be numeric, found type: %s", value.TypeName(v.Type))
	}
	n, ok := value.Integral(v)
	if value.CutLong(v) < 0 {
		return fail(40101, "maxDepth requires a nonnegative argument, found: %d", value.CutLong(v))
	}
	if !ok {
		return fail(40102, "maxDepth could not be represented as a long long: %d", value.CutLong(v))
	}
	s.maxDepth = n
	return nil
}

func (s *graphStage) text(k string, v bson.RawValue) error {
	slots := map[string]*string{"from": &s.from, "as": &s.as, "connectFromField": &s.connectFrom, "connectToField": &s.connectTo, "depthField": &s.depthField}
	slot := slots[k]
	if slot == nil {
		return fail(40104, "Unknown argument to $graphLookup: %s", k)
	}
	t, ok := value.Text(v)
	if !ok || v.Type != bson.TypeString {
		if k == "from" {
			return fail(mongoerr.CodeFailedToParse, "'from' option to $graphLookup must be a string, but was type %s", value.TypeName(v.Type))
		}
		return fail(40103, "expected string as argument for %s, found: %s", k, value.Print(v))
	}
	*slot = t
	if k == "from" {
		return nil
	}
	return expr.CheckPath(t)
}

func (s *graphStage) run(r *running, in Docs) Docs {
	return r.mapped(in, func(d bson.Raw) (bson.Raw, error) {
		start, err := s.start.Eval(r.ctx(d))
		if err != nil {
			return nil, err
		}
		found, err := s.search(r, start)
		if err != nil {
			return nil, err
		}
		return setAt(d, s.as, arrayOfDocs(found)), nil
	})
}

func (s *graphStage) search(r *running, start bson.RawValue) ([]bson.Raw, error) {
	m := r.meter()
	h := &holding{m: m, stage: "$graphLookup"}
	all, err := r.collect(h, r.others(s.from))
	if err != nil {
		return nil, err
	}
	seen, asked := make([]bool, len(all)), map[string]bool{}
	frontier := spread(start, nil)
	var out []bson.Raw
	for depth := int64(0); len(frontier) > 0 && (s.maxDepth < 0 || depth <= s.maxDepth); depth++ {
		f := equalTo(r, s.connectTo, value.ArrayOf(frontier))
		var next []bson.RawValue
		for i, d := range all {
			if seen[i] {
				continue
			}
			if err := m.Step(bytesPerCompare * len(frontier)); err != nil {
				return nil, err
			}
			ok, err := s.wanted(r, f, d)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			seen[i] = true
			next = spread(expr.Walk(bson.DocumentValue(d), strings.Split(s.connectFrom, ".")), next)
			if s.depthField != "" {
				d = setAt(d, s.depthField, bson.Int64Value(depth))
			}
			if err := m.Hold("$graphLookup", 2*len(d)+docCost); err != nil {
				return nil, fail(40099, "$graphLookup reached maximum memory consumption")
			}
			out = append(out, d)
		}
		frontier = fresh(next, asked, r.ee.Collator)
	}
	return out, nil
}

func (s *graphStage) wanted(r *running, f *Filter, d bson.Raw) (bool, error) {
	ok, _, err := f.eval(d, r.vars)
	if err != nil || !ok || s.restrict == nil {
		return ok, err
	}
	ok, _, err = s.restrict.eval(d, r.vars)
	return ok, err
}

// spread appends a value, or the elements of an array; missing is no connection.
func spread(v bson.RawValue, to []bson.RawValue) []bson.RawValue {
	switch v.Type {
	case 0:
		return to
	case bson.TypeArray:
		return append(to, value.Array(v)...)
	}
	return append(to, v)
}

// fresh keeps the values that have not been asked for yet.
func fresh(vs []bson.RawValue, asked map[string]bool, c *value.Collator) (out []bson.RawValue) {
	for _, v := range vs {
		if k := value.Key(v, c); !asked[k] {
			asked[k] = true
			out = append(out, v)
		}
	}
	return out
}
