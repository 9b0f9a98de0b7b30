package query

import (
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// densifyStage is $densify: documents for the values that a field skips.
type densifyStage struct {
	field      string
	parts      []string
	step       bson.RawValue
	unit       string // of dates
	lo, hi     bson.RawValue
	perPart    bool // from the least to the greatest value of each partition
	everywhere bool // from the least to the greatest value of all
}

// maxDensified is how many documents one stage may make.
const maxDensified = 500000

func parseDensify(_ *pipelineParser, name string, arg bson.RawValue) ([]stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(mongoerr.CodeFailedToParse, "The %s stage specification must be an object, found %s", name, value.TypeName(arg.Type))
	}
	args, err := idl(name, value.Doc(arg), map[string]string{"field": "string", "partitionByFields": "array", "range": "object"}, "field", "range")
	if err != nil {
		return nil, err
	}
	s := &densifyStage{}
	if err := s.parseRange(name+".range", value.Doc(args["range"])); err != nil {
		return nil, err
	}
	s.field, _ = value.Text(args["field"])
	if err := expr.CheckPath(s.field); err != nil {
		return nil, err
	}
	for _, p := range value.Array(args["partitionByFields"]) {
		path, ok := value.Text(p)
		if !ok {
			return nil, fail(mongoerr.CodeTypeMismatch, "BSON field '%s.partitionByFields' must hold strings, found %s", name, value.TypeName(p.Type))
		}
		if err := expr.CheckPath(path); err != nil {
			return nil, err
		}
		if onPath(strings.Split(path, "."), strings.Split(s.field, ".")) {
			return nil, fail(8993000, "BSON field '%s.partitionByFields' contains the field that is being densified", name)
		}
		s.parts = append(s.parts, path)
	}
	if s.perPart && len(s.parts) == 0 {
		return nil, fail(5733408, "One cannot specify the bounds as 'partition' without specifying a non-empty array of partitionByFields. You may have meant to specify 'full' bounds.")
	}
	return []stage{s}, nil
}

func (s *densifyStage) parseRange(name string, doc bson.Raw) error {
	args, err := idl(name, doc, map[string]string{"step": "int, decimal, double, long", "bounds": "", "unit": "string"}, "step", "bounds")
	if err != nil {
		return err
	}
	s.step = args["step"]
	if value.Compare(s.step, bson.Int32Value(0)) <= 0 {
		return fail(5733401, "The step parameter in a range statement must be a strictly positive numeric value")
	}
	if v := args["unit"]; v.Type != 0 {
		if _, whole := value.Integral(s.step); !whole {
			return fail(6586400, "The step parameter in a range statement must be a whole number when densifying a date range")
		}
		s.unit, _ = value.Text(v)
		if err := expr.CheckUnit(s.unit); err != nil {
			return err
		}
	}
	switch word, isText := value.Text(args["bounds"]); {
	case word == "full":
		s.everywhere = true
	case word == "partition":
		s.perPart = true
	case isText:
		return fail(5946802, "Bounds string must either be 'full' or 'partition'")
	case args["bounds"].Type == bson.TypeArray:
		return s.parseBounds(value.Array(args["bounds"]))
	default:
		return fail(5733404, "The bounds in a range statement must be the string 'full', 'partition', or an ascending array of two numbers or two dates")
	}
	return nil
}

func (s *densifyStage) parseBounds(bounds []bson.RawValue) error {
	if len(bounds) != 2 {
		return fail(5733403, "A bounding array in a range statement must have exactly two elements")
	}
	s.lo, s.hi = bounds[0], bounds[1]
	const mixed = "A bounding array must contain either both dates or both numeric types"
	switch {
	case value.Compare(s.lo, s.hi) > 0:
		return fail(5733402, "A bounding array must be an ascending array of either two dates or two numbers")
	case value.IsNumber(s.lo) && s.unit != "":
		return fail(5733409, "Numeric bounds may not have unit parameter")
	case value.IsNumber(s.lo) && !value.IsNumber(s.hi):
		return fail(5733406, mixed)
	case value.IsNumber(s.lo) && (s.lo.Type != s.hi.Type || s.lo.Type != s.step.Type):
		return fail(5876900, "Upper bound, lower bound, and step must all have the same type")
	case value.IsNumber(s.lo):
		return nil
	case s.lo.Type != bson.TypeDateTime:
		return fail(5946800, "Explicit bounds must be numeric or dates")
	case s.hi.Type != bson.TypeDateTime:
		return fail(5733405, mixed)
	case s.unit == "":
		return fail(5733410, "A bounding array of dates must specify a unit")
	}
	return nil
}

// densified is a document and its value.
type densified struct {
	doc bson.Raw
	v   bson.RawValue
}

func (s *densifyStage) run(r *running, in Docs) Docs {
	return r.whole("$densify", in, func(h *holding, docs []bson.Raw) ([]bson.Raw, error) {
		var out []bson.Raw
		var least, greatest bson.RawValue
		parts := map[string]*densifyPart{}
		var order []*densifyPart
		for _, d := range docs {
			v, err := s.valueOf(d)
			if err != nil {
				return nil, err
			}
			if v.Type == 0 {
				out = append(out, d) // what has no value stays as it is
				continue
			}
			key, made := s.part(r, d)
			p := parts[key]
			if p == nil {
				p = &densifyPart{fields: made}
				parts[key] = p
				order = append(order, p)
			}
			p.docs = append(p.docs, densified{d, v})
			if least.Type == 0 || value.Compare(v, least) < 0 {
				least = v
			}
			if greatest.Type == 0 || value.Compare(v, greatest) > 0 {
				greatest = v
			}
		}
		if len(order) == 0 && len(s.parts) == 0 && !s.everywhere {
			order = append(order, &densifyPart{})
		}
		made := 0
		for _, p := range order {
			slices.SortStableFunc(p.docs, func(a, b densified) int { return value.Compare(a.v, b.v) })
			filled, err := s.fill(h, p, least, greatest, &made)
			if err != nil {
				return nil, err
			}
			out = append(out, filled...)
		}
		return out, nil
	})
}

// densifyPart is a partition: its documents and the fields that say which it is.
type densifyPart struct {
	fields []value.Field
	docs   []densified
}

func (s *densifyStage) part(r *running, doc bson.Raw) (string, []value.Field) {
	key := ""
	var fields []value.Field
	for _, path := range s.parts {
		v := valueAt(doc, path)
		key += value.Key(v, r.ee.Collator) + "\x00"
		if v.Type != 0 {
			fields = append(fields, value.Field{Key: path, Value: v})
		}
	}
	return key, fields
}

// valueAt follows a path through documents alone.
func valueAt(doc bson.Raw, path string) bson.RawValue {
	first, rest, more := strings.Cut(path, ".")
	v := value.Get(doc, first)
	switch {
	case !more:
		return v
	case v.Type != bson.TypeEmbeddedDocument:
		return value.Missing
	}
	return valueAt(bson.Raw(v.Value), rest)
}

func (s *densifyStage) valueOf(doc bson.Raw) (bson.RawValue, error) {
	v := valueAt(doc, s.field)
	switch {
	case value.Nullish(v):
		return value.Missing, nil
	case value.IsNumber(v) && s.unit != "":
		return v, fail(6053600, "Encountered numeric densify value in collection when step has a date unit.")
	case v.Type == bson.TypeDateTime && s.unit == "":
		return v, fail(6053601, "Encountered date densify value in collection when step does not have a date unit.")
	case !value.IsNumber(v) && v.Type != bson.TypeDateTime:
		return v, fail(5733201, "Densify field type must be numeric or a date")
	}
	return v, nil
}

// fill merges a partition with the values of the grid that it lacks.
func (s *densifyStage) fill(h *holding, p *densifyPart, least, greatest bson.RawValue, made *int) ([]bson.Raw, error) {
	at, end := s.lo, s.hi
	inside := func(v bson.RawValue) bool { return value.Compare(v, end) < 0 }
	if s.everywhere || s.perPart {
		at, end = least, greatest
		if s.perPart {
			at, end = p.docs[0].v, p.docs[len(p.docs)-1].v
		}
		inside = func(v bson.RawValue) bool { return value.Compare(v, end) <= 0 }
	}
	var out []bson.Raw
	rest := p.docs
	for inside(at) {
		there := false
		for len(rest) > 0 && value.Compare(rest[0].v, at) <= 0 {
			there = there || value.Compare(rest[0].v, at) == 0
			out, rest = append(out, rest[0].doc), rest[1:]
		}
		if !there {
			if *made++; *made > maxDensified {
				return nil, fail(5897900, "Generated %d documents in $densify, which is over the limit of %d. Increase the 'internalQueryMaxAllowedDensifyDocs' parameter to allow more generated documents", *made, maxDensified)
			}
			doc := value.DocOf()
			for _, f := range p.fields {
				doc = setAt(doc, f.Key, f.Value)
			}
			doc = setAt(doc, s.field, at)
			if err := h.add(len(doc) + docCost); err != nil {
				return nil, err
			}
			out = append(out, doc)
		}
		next, err := s.next(at)
		if err != nil {
			return nil, err
		}
		if value.Compare(next, at) <= 0 {
			return nil, bad("the step of $densify is too small to move on from %s", value.Print(at))
		}
		at = next
	}
	for _, d := range rest {
		out = append(out, d.doc)
	}
	return out, nil
}

func (s *densifyStage) next(v bson.RawValue) (bson.RawValue, error) {
	if s.unit != "" {
		return expr.AddUnits(v, s.unit, value.Long(s.step))
	}
	return expr.Add(v, s.step)
}
