package query

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// frame says which documents of a partition are in the window around one of them.
type frame struct {
	byRange bool
	unit    string // of a range of dates
	lo, hi  bound
}

// bound is one end of a window: none, or a distance from the document.
type bound struct {
	open bool
	by   bson.RawValue // for a range
	n    int64         // for a number of documents
}

// wholePartition is the window that nobody has narrowed.
var wholePartition = frame{lo: bound{open: true}, hi: bound{open: true}}

// frame reads the argument window.
func (s *setWindowStage) frame(pp *pipelineParser, v bson.RawValue) (f frame, err error) {
	if v.Type == 0 || value.Doc(v).IsEmpty() {
		return wholePartition, nil
	}
	const form = "'window' field can only contain 'documents' as the only argument or 'range' with an optional 'unit' field"
	other := false
	var documents, ranged, unit bson.RawValue
	for k, e := range value.Doc(v).All() {
		switch k {
		case "documents":
			documents = e
		case "range":
			ranged = e
		case "unit":
			unit = e
		default:
			other = true
		}
	}
	switch {
	case documents.Type != 0 && ranged.Type != 0:
		return f, fail(mongoerr.CodeFailedToParse, "Window bounds can specify either 'documents' or 'unit', not both.")
	case unit.Type != 0 && ranged.Type == 0:
		return f, fail(mongoerr.CodeFailedToParse, "Window bounds can only specify 'unit' with range-based bounds.")
	case ranged.Type == 0 && documents.Type == 0:
		return f, fail(mongoerr.CodeFailedToParse, form)
	case other && documents.Type != 0:
		return f, fail(mongoerr.CodeFailedToParse, "'window' field that specifies documents cannot have other fields")
	case other && unit.Type != 0:
		return f, fail(mongoerr.CodeFailedToParse, "'window' field that specifies unit cannot have other fields besides 'range'")
	case other:
		return f, fail(mongoerr.CodeFailedToParse, "'window' field that specifies range cannot have other fields besides 'unit'")
	case unit.Type != 0 && unit.Type != bson.TypeString:
		return f, fail(mongoerr.CodeFailedToParse, "'unit' must be a string")
	}
	if f.byRange = ranged.Type != 0; !f.byRange {
		return f, s.documentBounds(pp, &f, documents)
	}
	if unit.Type != 0 {
		f.unit, _ = value.Text(unit)
		if err := expr.CheckUnit(f.unit); err != nil {
			return f, err
		}
	}
	return f, s.rangeBounds(pp, &f, ranged)
}

func (f *frame) bounds(pp *pipelineParser, name string, v bson.RawValue, number func(bson.RawValue) (bound, error)) error {
	arr := value.Array(v)
	if v.Type != bson.TypeArray || len(arr) != 2 {
		return fail(mongoerr.CodeFailedToParse, "Window bounds must be a 2-element array: %s", value.PrintElement(name, v))
	}
	for i, b := range []*bound{&f.lo, &f.hi} {
		word, isText := value.Text(arr[i])
		switch {
		case word == "unbounded":
			b.open = true
			continue
		case word == "current":
			b.by = bson.Int32Value(0)
			continue
		case isText:
			return fail(mongoerr.CodeFailedToParse, "Window bounds must be 'unbounded', 'current', or a number.")
		}
		e, err := pp.operand(arr[i])
		if err != nil {
			return err
		}
		c, constant := expr.IsConstant(e)
		if !constant {
			return fail(mongoerr.CodeFailedToParse, "Window bounds expression must be a constant.")
		}
		if *b, err = number(c); err != nil {
			return err
		}
	}
	return nil
}

func (s *setWindowStage) documentBounds(pp *pipelineParser, f *frame, v bson.RawValue) error {
	err := f.bounds(pp, "documents", v, func(c bson.RawValue) (bound, error) {
		n, whole := value.Integral(c)
		if !value.IsNumber(c) || !whole {
			return bound{}, fail(mongoerr.CodeFailedToParse, "Numeric document-based bounds must be an integer")
		}
		return bound{n: n, by: c}, nil
	})
	switch {
	case err != nil:
		return err
	case !f.lo.open && !f.hi.open && f.lo.n > f.hi.n:
		return fail(5339900, "Lower bound must not exceed upper bound: %s", value.Print(v))
	case s.sort == nil && (!f.lo.open || !f.hi.open):
		return fail(5339901, "Document-based bounds require a sortBy")
	}
	return nil
}

func (s *setWindowStage) rangeBounds(pp *pipelineParser, f *frame, v bson.RawValue) error {
	err := f.bounds(pp, "range", v, func(c bson.RawValue) (bound, error) {
		if !value.IsNumber(c) {
			return bound{}, fail(mongoerr.CodeFailedToParse, "Range-based bounds expression must be a number")
		}
		if _, whole := value.Integral(c); f.unit != "" && !whole {
			return bound{}, fail(mongoerr.CodeFailedToParse, "With 'unit', range-based bounds must be an integer")
		}
		return bound{by: c}, nil
	})
	switch {
	case err != nil:
		return err
	case !f.lo.open && !f.hi.open && value.Compare(f.lo.by, f.hi.by) > 0:
		return fail(5339900, "Lower bound must not exceed upper bound: %s", value.Print(v))
	case s.by == nil:
		return fail(5339902, "Range-based bounds require sortBy a single field")
	case s.sort.Fields()[0].Descending:
		return fail(8947401, "Range-based bounds require an ascending sortBy")
	}
	return nil
}

// around gives the first document in the window of the i-th, and the one after the last.
func (f *frame) around(p *partition, i int) (from, to int, err error) {
	if f.byRange {
		return f.ranged(p, i)
	}
	from, to = 0, len(p.docs)
	clip := func(n int64) int { return int(max(0, min(n, int64(len(p.docs))))) }
	if !f.lo.open {
		from = clip(int64(i) + f.lo.n)
	}
	if !f.hi.open {
		to = clip(int64(i) + f.hi.n + 1)
	}
	return from, max(from, to), nil
}

// ranged finds the documents whose value lies within the distances from the i-th's; those of another kind never do.
func (f *frame) ranged(p *partition, i int) (from, to int, err error) {
	base := p.by[i]
	if f.unit != "" && base.Type != bson.TypeDateTime {
		return 0, 0, fail(5429513, "Invalid range: Expected the sortBy field to be a Date, but it was %s", value.TypeName(base.Type))
	}
	if f.unit == "" && !value.IsNumber(base) {
		return 0, 0, fail(5429414, "Invalid range: Expected the sortBy field to be a number, but it was %s", value.TypeName(base.Type))
	}
	from, to = 0, len(p.docs)
	if !f.lo.open {
		at, err := f.distant(base, f.lo.by)
		if err != nil {
			return 0, 0, err
		}
		for from = i; from > 0 && sameKind(p.by[from-1], base) && value.Compare(p.by[from-1], at) >= 0; {
			from--
		}
		for from < len(p.docs) && value.Compare(p.by[from], at) < 0 {
			from++
		}
	}
	if !f.hi.open {
		at, err := f.distant(base, f.hi.by)
		if err != nil {
			return 0, 0, err
		}
		for to = i; to < len(p.docs) && sameKind(p.by[to], base) && value.Compare(p.by[to], at) <= 0; {
			to++
		}
		for to > 0 && value.Compare(p.by[to-1], at) > 0 {
			to--
		}
	}
	return from, max(from, to), nil
}

func sameKind(a, b bson.RawValue) bool { return value.Canonical(a.Type) == value.Canonical(b.Type) }

func (f *frame) distant(base, by bson.RawValue) (bson.RawValue, error) {
	if f.unit != "" {
		return expr.AddUnits(base, f.unit, value.Long(by))
	}
	return expr.Add(base, by)
}
