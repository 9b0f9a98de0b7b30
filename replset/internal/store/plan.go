package store

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Query is what is asked of a collection. Zero fields do not restrict.
type Query struct {
	Filter *query.Filter
	Sort   bson.Raw // sort document, nil: none
	Hint   bson.RawValue
	// Min and Max bound an index's keys: at least Min, less than Max. They need a hint.
	Min, Max bson.Raw
	// Collation is that of the query, with every default (value.FullCollation): an index of another one serves no strings.
	Collation bson.Raw
}

// Plan is how a query will be answered: by which index, and whether it gives the order.
type Plan struct {
	coll      *Coll
	filter    *query.Filter
	Index     *Index      // nil: the whole collection
	Reverse   bool        // the index or the natural order is walked backwards
	Sorted    bool        // the plan gives the order that Query.Sort asks for
	IDHack    bool        // one document by its _id
	bounds    []condition // one per index field that is bounded, in order
	equals    int         // how many of the leading bounds are single points
	min, max  []bson.RawValue
	hasMinMax bool
}

// Plan chooses the index: that with the most leading fields bound to single values, then
// one with a range, then one that gives the order. A collection is scanned when none
// helps. Error 2: a hint that names no index.
func (c *Coll) Plan(q Query) (*Plan, error) {
	p := &Plan{coll: c, filter: q.Filter}
	coll, err := value.ParseCollation(q.Collation)
	if err != nil {
		return nil, err
	}
	conds := conditions(filterRaw(q.Filter), coll)
	sortFields := parseSortFields(q.Sort)
	p.Sorted = len(sortFields) == 0
	if !q.Hint.IsZero() {
		return p.hinted(q, conds, sortFields)
	}
	if reverse, ok := naturalSort(q.Sort); ok {
		p.Reverse, p.Sorted = reverse, true
		return p, nil
	}
	best := 0
	for _, ix := range c.indexes {
		if cand := c.candidate(ix, q, conds, sortFields); cand != nil && cand.score() > best {
			best, p = cand.score(), cand
		}
	}
	p.IDHack = p.Index != nil && p.Index.IsID() && isIDLookup(filterRaw(q.Filter)) && p.equals == 1
	return p, nil
}

func filterRaw(f *query.Filter) bson.Raw {
	if f == nil {
		return emptyDocument()
	}
	return f.Raw()
}

// isIDLookup: the filter is an equality on _id and nothing else.
func isIDLookup(f bson.Raw) bool {
	key, v := firstElement(f)
	if key != "_id" || f.Len() != 1 {
		return false
	}
	d, ok := v.DocumentOK()
	return !ok || !isOperators(d)
}

func (p *Plan) hinted(q Query, conds []condition, sortFields []query.IndexField) (*Plan, error) {
	if d, ok := q.Hint.DocumentOK(); ok {
		if key, v := firstElement(d); key == "$natural" {
			f, _ := v.AsFloat64OK()
			p.Reverse = f < 0
			p.Sorted = len(sortFields) == 0
			return p, nil
		}
	}
	ix := p.coll.hintedIndex(q.Hint)
	if ix == nil {
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "error processing query: planner returned error: bad hint")
	}
	cand := p.coll.bound(ix, q, conds)
	cand.order(q, sortFields)
	if err := cand.limit(q); err != nil {
		return nil, err
	}
	return cand, nil
}

// hintedIndex finds the index by name or by key pattern.
func (c *Coll) hintedIndex(hint bson.RawValue) *Index {
	if name, ok := hint.StringValueOK(); ok {
		return c.Index(name)
	}
	d, _ := hint.DocumentOK()
	for _, ix := range c.indexes {
		if d != nil && equalKeys(ix.spec.Key, d) {
			return ix
		}
	}
	return nil
}

// candidate is the plan by ix, or nil when ix may miss documents or does not help.
func (c *Coll) candidate(ix *Index, q Query, conds []condition, sortFields []query.IndexField) *Plan {
	if ix.spec.Hidden {
		return nil
	}
	p := c.bound(ix, q, conds)
	if !p.complete(q) {
		return nil
	}
	p.order(q, sortFields)
	if len(p.bounds) == 0 && !p.Sorted {
		return nil
	}
	if len(p.bounds) == 0 && len(sortFields) == 0 {
		return nil
	}
	return p
}

// bound sets the bounds that the conditions give the index's leading fields.
func (c *Coll) bound(ix *Index, q Query, conds []condition) *Plan {
	p := &Plan{coll: c, filter: q.Filter, Index: ix}
	for i, f := range ix.spec.Fields {
		cond, ok := conditionOf(f.Path, conds, ix.multikey)
		if !ok || cond.collated() && !ix.collates(q) || ix.multikey && sharesRoot(ix.spec.Fields[:i], f.Path) {
			return p
		}
		p.bounds = append(p.bounds, cond)
		if !cond.isPoints() {
			return p
		}
		p.equals++
	}
	return p
}

// collates reports whether the index compares strings as the query does.
func (ix *Index) collates(q Query) bool { return bytes.Equal(ix.spec.Collation, q.Collation) }

// conditionOf joins the conditions on a path. With arrays only one of them may be
// used, since different elements may satisfy them.
func conditionOf(path string, conds []condition, multikey bool) (out condition, found bool) {
	for _, c := range conds {
		switch {
		case c.path != path:
		case !found:
			out, found = c, true
		case multikey:
			if c.preference() < out.preference() {
				out = c
			}
		default:
			out = intersect(out, c)
		}
	}
	return out, found
}

// sharesRoot: fields below one array make one key of each element, and a document may
// match by values of different elements. Bounds on both would miss it.
func sharesRoot(fields []query.IndexField, path string) bool {
	root, _, _ := strings.Cut(path, ".")
	for _, f := range fields {
		if r, _, _ := strings.Cut(f.Path, "."); r == root {
			return true
		}
	}
	return false
}

// complete reports whether every document that may match has a key in the index.
func (p *Plan) complete(q Query) bool {
	if p.Index.spec.Sparse {
		has := false
		for _, b := range p.bounds {
			has = has || !b.matchNull
		}
		if !has {
			return false
		}
	}
	return p.Index.spec.Partial == nil || p.Index.collates(q) && implies(filterRaw(q.Filter), p.Index.spec.Partial)
}

// implies reports whether filter holds each clause of part, literally.
func implies(filter, part bson.Raw) bool {
	for key, v := range part.All() {
		if key == "$and" {
			arr, _ := v.ArrayOK()
			for _, sub := range arr.All() {
				if d, ok := sub.DocumentOK(); !ok || !implies(filter, d) {
					return false
				}
			}
			continue
		}
		if !hasClause(filter, key, v) {
			return false
		}
	}
	return true
}

func hasClause(filter bson.Raw, key string, v bson.RawValue) bool {
	for k, w := range filter.All() {
		if k == key && w.Type == v.Type && bytes.Equal(w.Value, v.Value) {
			return true
		}
		if k == "$and" {
			arr, _ := w.ArrayOK()
			for _, sub := range arr.All() {
				if d, ok := sub.DocumentOK(); ok && hasClause(d, key, v) {
					return true
				}
			}
		}
	}
	return false
}

// order finds out whether the plan gives the sort's order. Leading fields bound to one
// value may stand before the sort's fields. Arrays have many keys and no such order.
func (p *Plan) order(q Query, sortFields []query.IndexField) {
	if len(sortFields) == 0 {
		p.Sorted = true
		return
	}
	if !p.Index.collates(q) || p.Index.multikey || p.Index.spec.Sparse && len(p.bounds) == 0 {
		return
	}
	fields := p.Index.spec.Fields
	for skip := 0; skip <= len(fields); skip++ {
		if ok, reverse := matchesOrder(fields[skip:], sortFields); ok {
			p.Sorted, p.Reverse = true, reverse
			return
		}
		if skip >= len(p.bounds) || len(p.bounds[skip].intervals) != 1 || !p.bounds[skip].intervals[0].isPoint(p.bounds[skip].coll) {
			return
		}
	}
}

// matchesOrder reports whether the index's fields begin with the sort's, all in the
// sort's direction or all against it.
func matchesOrder(fields, sortFields []query.IndexField) (ok, reverse bool) {
	if len(sortFields) > len(fields) {
		return false, false
	}
	for i, s := range sortFields {
		against := fields[i].Descending != s.Descending
		if fields[i].Path != s.Path || i > 0 && against != reverse {
			return false, false
		}
		reverse = against
	}
	return true, reverse
}

// score orders plans: more is better, 0 is no better than a scan.
func (p *Plan) score() int {
	if len(p.bounds) == 0 {
		return 1
	}
	s := 10 + 10*p.equals + 2*(len(p.bounds)-p.equals)
	if p.Sorted {
		s++
	}
	if p.Index.spec.Unique && p.equals == len(p.Index.spec.Fields) {
		s += 1000
	}
	return s
}

// limit reads min and max.
func (p *Plan) limit(q Query) error {
	if q.Min == nil && q.Max == nil {
		return nil
	}
	p.hasMinMax = true
	p.bounds, p.equals = nil, 0
	var err error
	if p.min, err = p.keyOf(q.Min); err != nil {
		return err
	}
	p.max, err = p.keyOf(q.Max)
	return err
}

func (p *Plan) keyOf(doc bson.Raw) ([]bson.RawValue, error) {
	if doc == nil {
		return nil, nil
	}
	var vals []bson.RawValue
	for key, v := range doc.All() {
		if i := len(vals); i >= len(p.Index.spec.Fields) || p.Index.spec.Fields[i].Path != key {
			return nil, mongoerr.Server(51174, "The index chosen is not compatible with min/max")
		}
		vals = append(vals, v)
	}
	return vals, nil
}

// parseSortFields reads a sort of plain directions; $meta and $natural give none.
func parseSortFields(sort bson.Raw) []query.IndexField {
	var out []query.IndexField
	for path, v := range sort.All() {
		f, ok := v.AsFloat64OK()
		if !ok || strings.HasPrefix(path, "$") {
			return []query.IndexField{{Path: "$unsortable"}}
		}
		out = append(out, query.IndexField{Path: path, Descending: f < 0})
	}
	return out
}

func naturalSort(sort bson.Raw) (reverse, ok bool) {
	key, v := firstElement(sort)
	if key != "$natural" {
		return false, false
	}
	f, _ := v.AsFloat64OK()
	return f < 0, true
}

// Covered are the clauses of the filter that the bounds alone decide: what has a key within them matches.
func (p *Plan) Covered() (out []Clause) {
	for _, b := range p.bounds {
		out = append(out, b.clauses...)
	}
	return out
}

// Limited says that min or max bound the keys.
func (p *Plan) Limited() bool { return p.hasMinMax }

// BoundsText is how an explained plan shows the bounds of the index's i-th field, in the order in which it is walked:
// "[1, 1]", "(2, inf.0]". With min or max there are none.
func (p *Plan) BoundsText(i int) (out []string) {
	backwards := p.Reverse != p.Index.spec.Fields[i].Descending
	if i >= len(p.bounds) {
		if backwards {
			return []string{"[MaxKey, MinKey]"}
		}
		return []string{"[MinKey, MaxKey]"}
	}
	for _, iv := range p.bounds[i].intervals {
		lo, hi, hiOut := shownEnds(iv)
		left, right := "[", "]"
		if iv.loOut {
			left = "("
		}
		if hiOut {
			right = ")"
		}
		if backwards {
			left, right = map[string]string{"]": "[", ")": "("}[right], map[string]string{"[": "]", "(": ")"}[left]
			lo, hi = hi, lo
		}
		out = append(out, left+lo+", "+hi+right)
	}
	if backwards {
		slices.Reverse(out)
	}
	return out
}

// shownEnds are an interval's ends as a server has them: of numbers it goes from and to infinity, and a kind that has a
// greatest value ends there.
func shownEnds(iv interval) (lo, hi string, hiOut bool) {
	lo, hi, hiOut = shownBound(iv.lo), shownBound(iv.hi), iv.hiOut
	if iv.lo.Type == bson.TypeUndefined {
		lo = hi
	}
	low, next, ok := kindRange(iv.lo.Type)
	if !ok {
		return lo, hi, hiOut
	}
	if value.IsNumber(iv.lo) && value.IsNaN(iv.lo) && !(iv.hi.Type == iv.lo.Type && value.IsNaN(iv.hi)) {
		lo = "-inf.0"
	}
	if !iv.hiOut || iv.hi.Type != next.Type || value.Compare(iv.hi, next) != 0 {
		return lo, hi, hiOut
	}
	switch low.Type {
	case bson.TypeDouble:
		return lo, "inf.0", false
	case bson.TypeBoolean:
		return lo, "true", false
	case bson.TypeDateTime:
		return lo, "new Date(9223372036854775807)", false
	case bson.TypeTimestamp:
		return lo, "Timestamp(4294967295, 4294967295)", false
	case bson.TypeObjectID:
		return lo, "ObjectId('ffffffffffffffffffffffff')", false
	}
	return lo, hi, hiOut
}

// shownBound prints doubles as a server prints them among bounds, and empty containers without blanks.
func shownBound(v bson.RawValue) string {
	switch f := value.Float(v); {
	case v.Type == bson.TypeDouble && math.IsInf(f, 1):
		return "inf.0"
	case v.Type == bson.TypeDouble && math.IsInf(f, -1):
		return "-inf.0"
	case v.Type == bson.TypeDouble && math.IsNaN(f):
		return "nan.0"
	}
	return value.Print(v)
}
