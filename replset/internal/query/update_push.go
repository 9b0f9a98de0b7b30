package query

import (
	"math"
	"slices"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// push is $push with $each, $position, $sort and $slice.
type push struct {
	values   []bson.RawValue
	position int64
	slice    *int64
	sort     *elementOrder
}

func makePush(p *updateParser, _ string, arg bson.RawValue) (operator, error) {
	out := &push{position: math.MaxInt64}
	each := value.Get(value.Doc(arg), "$each")
	if arg.Type != bson.TypeEmbeddedDocument || each.Type == 0 {
		out.values = []bson.RawValue{arg}
		return out, nil
	}
	for k := range bson.Raw(arg.Value).All() {
		if k != "$each" && k != "$slice" && k != "$sort" && k != "$position" {
			return nil, bad("Unrecognized clause in $push: %s", k)
		}
	}
	if each.Type != bson.TypeArray {
		return nil, bad("The argument to $each in $push must be an array but it was of type: %s", value.TypeName(each.Type))
	}
	out.values = value.Array(each)
	return out, out.clauses(p, bson.Raw(arg.Value))
}

func (p *push) clauses(up *updateParser, doc bson.Raw) error {
	if v := value.Get(doc, "$slice"); v.Type != 0 {
		n, ok := value.Integral(v)
		if !ok {
			return bad("The value for $slice must be an integer value but was given type: %s", value.TypeName(v.Type))
		}
		p.slice = &n
	}
	if v := value.Get(doc, "$position"); v.Type != 0 {
		n, ok := value.Integral(v)
		if !ok {
			return bad("The value for $position must be an integer value, not of type: %s", value.TypeName(v.Type))
		}
		p.position = n
	}
	if v := value.Get(doc, "$sort"); v.Type != 0 {
		var err error
		p.sort, err = parseElementOrder(v, up.coll)
		return err
	}
	return nil
}

func (p *push) change(a *applying, e *elem, at place) (bool, error) {
	if !e.isArray() {
		return false, bad("The field '%s' must be an array but is of type %s in document {%s}", at.text(), value.TypeName(e.val.Type), a.root.idText())
	}
	return p.run(e), nil
}

func (p *push) create(*applying) (bson.RawValue, error) {
	e := &elem{val: value.ArrayOf(nil)}
	p.run(e)
	return e.value(), nil
}

func (p *push) run(e *elem) bool {
	changed := len(p.values) > 0
	at := insertAt(p.position, len(e.children()))
	for i, v := range p.values {
		e.insert(at+i, "", v)
	}
	if p.sort != nil {
		changed = true
		slices.SortStableFunc(e.kids, func(a, b *elem) int { return p.sort.compare(a.value(), b.value()) })
	}
	if p.slice != nil && p.cut(e) {
		changed = true
	}
	return changed
}

func insertAt(pos int64, n int) int {
	if pos < 0 {
		return int(max(0, int64(n)+pos))
	}
	return int(min(pos, int64(n)))
}

// cut keeps the first (or, negative, the last) elements.
func (p *push) cut(e *elem) bool {
	n := len(e.kids)
	switch keep := *p.slice; {
	case keep >= int64(n) || keep <= -int64(n) && n > 0:
		return false
	case keep >= 0:
		e.kids = e.kids[:keep]
	default:
		e.kids = e.kids[int64(n)+keep:]
	}
	return len(e.kids) != n
}

// elementOrder is the $sort of $push: whole elements, or fields of elements that are documents.
type elementOrder struct {
	whole  bool
	desc   bool
	fields []IndexField
	coll   *value.Collator
}

func parseElementOrder(v bson.RawValue, c *value.Collator) (*elementOrder, error) {
	o := &elementOrder{coll: c}
	if v.Type != bson.TypeEmbeddedDocument {
		n, ok := value.Integral(v)
		if !value.IsNumber(v) {
			return nil, bad("The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields")
		}
		if !ok || n != 1 && n != -1 {
			return nil, bad("The $sort element value must be either 1 or -1")
		}
		o.whole, o.desc = true, n < 0
		return o, nil
	}
	if bson.Raw(v.Value).IsEmpty() {
		return nil, bad("The $sort pattern is empty when it should be a set of fields.")
	}
	for k, d := range bson.Raw(v.Value).All() {
		n, ok := value.Integral(d)
		if !ok || n != 1 && n != -1 {
			return nil, bad("The $sort element value must be either 1 or -1")
		}
		if k == "" {
			return nil, bad("The $sort field cannot be empty")
		}
		if _, err := checkPath(k); err != nil {
			return nil, bad("The $sort field is a dotted field but has an empty part: %s", k)
		}
		o.fields = append(o.fields, IndexField{Path: k, Descending: n < 0})
	}
	return o, nil
}

func (o *elementOrder) compare(a, b bson.RawValue) int {
	if o.whole {
		c := value.CompareWith(a, b, o.coll)
		if o.desc {
			return -c
		}
		return c
	}
	for _, f := range o.fields {
		if c := value.CompareWith(sortField(a, f.Path), sortField(b, f.Path), o.coll); c != 0 {
			if f.Descending {
				return -c
			}
			return c
		}
	}
	return 0
}

// sortField takes a field of an element; what is not there counts as null, in a scalar too.
func sortField(v bson.RawValue, path string) bson.RawValue {
	parts := newPath(path).parts
	for _, part := range parts {
		v = value.Get(value.Doc(v), part)
	}
	if v.Type == 0 {
		return bson.NullValue()
	}
	return v
}

// addToSet is $addToSet. A new element bears the name that its value had in the update, which error texts show.
type addToSet struct {
	values []value.Field
	coll   *value.Collator
}

func makeAddToSet(p *updateParser, path string, arg bson.RawValue) (operator, error) {
	out := &addToSet{values: []value.Field{{Key: path, Value: arg}}, coll: p.coll}
	first, each := value.First(value.Doc(arg))
	if arg.Type == bson.TypeEmbeddedDocument && first == "$each" {
		if each.Type != bson.TypeArray {
			return nil, fail(mongoerr.CodeTypeMismatch, "The argument to $each in $addToSet must be an array but it was of type %s", value.TypeName(each.Type))
		}
		if bson.Raw(arg.Value).Len() > 1 {
			return nil, bad("Found unexpected fields after $each in $addToSet: %s", value.Print(arg))
		}
		out.values = nil
		for i, v := range value.Array(each) {
			out.values = append(out.values, value.Field{Key: value.Index(i), Value: v})
		}
	}
	return out, nil
}

func (s *addToSet) change(_ *applying, e *elem, _ place) (bool, error) {
	if !e.isArray() {
		return false, bad("Cannot apply $addToSet to non-array field. Field named '%s' has non-array type %s", e.key, value.TypeName(e.val.Type))
	}
	changed := false
	for _, v := range s.values {
		if !slices.ContainsFunc(e.children(), func(k *elem) bool { return value.CompareWith(k.value(), v.Value, s.coll) == 0 }) {
			e.append(v.Key, v.Value)
			changed = true
		}
	}
	return changed, nil
}

func (s *addToSet) create(a *applying) (bson.RawValue, error) {
	e := &elem{val: value.ArrayOf(nil)}
	_, err := s.change(a, e, place{})
	return e.value(), err
}
