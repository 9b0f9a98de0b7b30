package query

import (
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// IndexField is one part of an index's key pattern.
type IndexField struct {
	Path       string
	Descending bool
}

// IndexKeys gives the keys that an index on pattern has for a document: one for each element where a path leads through or
// to an array (multikey), else one. A missing field gives null, an empty array undefined. The same key is given once.
// Two arrays side by side are refused with CannotIndexParallelArrays.
func IndexKeys(pattern []IndexField, doc bson.Raw) (keys [][]bson.RawValue, multikey bool, err error) {
	g := keyGen{}
	t := track{rest: make([]string, len(pattern)), done: make([]bool, len(pattern)), key: make([]bson.RawValue, len(pattern)), by: make([]byIndex, len(pattern))}
	for i, f := range pattern {
		t.rest[i] = f.Path
	}
	if err := g.expand(t, doc); err != nil {
		return nil, false, err
	}
	return once(g.keys), g.multikey, nil
}

type keyGen struct {
	keys     [][]bson.RawValue
	multikey bool
}

// track is how far each field of the pattern has come.
type track struct {
	rest []string        // what is left of each path
	done []bool          // the path has ended and key holds its value
	key  []bson.RawValue //
	by   []byIndex       // the element that the next part of a path names by its index
}

type byIndex struct {
	elem  bson.RawValue // missing: the path does not name an element here
	array bson.Raw
}

func (t track) clone() track {
	return track{rest: slices.Clone(t.rest), done: slices.Clone(t.done), key: slices.Clone(t.key), by: make([]byIndex, len(t.by))}
}

// expand takes all paths down to the first array, which must be the same for all, and goes on in each of its elements.
func (g *keyGen) expand(t track, doc bson.Raw) error {
	var array bson.RawValue
	var through []int // the fields whose path leads to or through the array
	var arrayName string
	whole := true // a path that ends at the array takes its elements
	for i := range t.rest {
		if t.done[i] {
			continue
		}
		v, rest, name, nested, err := t.step(i, doc)
		if err != nil {
			return err
		}
		t.rest[i] = rest
		if v.Type != bson.TypeArray {
			if v.Type == 0 {
				v = bson.NullValue()
			}
			t.key[i], t.done[i] = v, true
			continue
		}
		if array.Type != 0 && &array.Value[0] != &v.Value[0] {
			return fail(mongoerr.CodeCannotIndexParallelArrays, "cannot index parallel arrays [%s] [%s]", name, arrayName)
		}
		if rest == "" && nested {
			whole = false
		}
		array, arrayName, through = v, name, append(through, i)
	}
	if array.Type == 0 {
		g.add(t.key)
		return nil
	}
	return g.elements(t, array, through, whole)
}

// step follows one path in doc, or from the element that it named by index. It ends at an array or at the path's end.
func (t track) step(i int, doc bson.Raw) (v bson.RawValue, rest, name string, nested bool, err error) {
	first, tail, _ := strings.Cut(t.rest[i], ".")
	has := value.Get(doc, first).Type != 0
	elem := t.by[i].elem
	if has && elem.Type != 0 {
		return v, "", "", false, fail(16746, "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), field: '%s' for array: %s",
			first, value.PrintDoc(t.by[i].array))
	}
	switch {
	case has:
		v, rest, name = follow(doc, t.rest[i])
		return v, rest, name, false, nil
	case elem.Type == 0:
		return value.Missing, "", "", false, nil
	case tail == "" || elem.Type == bson.TypeArray:
		return elem, tail, first, elem.Type == bson.TypeArray, nil
	case elem.Type == bson.TypeEmbeddedDocument:
		v, rest, name = follow(bson.Raw(elem.Value), tail)
		return v, rest, name, false, nil
	}
	return value.Missing, "", "", false, nil
}

// follow walks documents to the path's end or the first array; rest is what is left of the path behind an array.
func follow(doc bson.Raw, path string) (v bson.RawValue, rest, name string) {
	for {
		first, tail, more := strings.Cut(path, ".")
		v = value.Get(doc, first)
		switch {
		case v.Type == bson.TypeArray, !more, tail == "" && v.Type != bson.TypeEmbeddedDocument:
			return v, tail, first
		case v.Type != bson.TypeEmbeddedDocument:
			return value.Missing, "", first
		}
		doc, path = bson.Raw(v.Value), tail
	}
}

func (g *keyGen) elements(t track, array bson.RawValue, through []int, whole bool) error {
	g.multikey = true
	elems := value.Array(array)
	if len(elems) == 0 {
		return g.element(t, bson.UndefinedValue(), array, through, true, nil)
	}
	by := make([]byIndex, len(t.rest))
	for _, i := range through {
		part, _, _ := strings.Cut(t.rest[i], ".")
		if n, ok := value.ParseIndex(part); ok && n < len(elems) {
			by[i] = byIndex{elem: elems[n], array: bson.Raw(array.Value)}
		}
	}
	for _, e := range elems {
		if err := g.element(t, e, array, through, whole, by); err != nil {
			return err
		}
	}
	return nil
}

func (g *keyGen) element(t track, e, array bson.RawValue, through []int, whole bool, by []byIndex) error {
	sub := t.clone()
	copy(sub.by, by)
	for _, i := range through {
		if sub.rest[i] == "" {
			sub.done[i] = true
			sub.key[i] = e
			if !whole {
				sub.key[i] = array
			}
		}
	}
	var doc bson.Raw
	if e.Type == bson.TypeEmbeddedDocument {
		doc = bson.Raw(e.Value)
	}
	return g.expand(sub, doc)
}

func (g *keyGen) add(key []bson.RawValue) { g.keys = append(g.keys, slices.Clone(key)) }

// once are the keys without those that came before.
func once(keys [][]bson.RawValue) [][]bson.RawValue {
	if len(keys) < 2 {
		return keys
	}
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	compare := func(i, j int) int {
		return slices.CompareFunc(keys[i], keys[j], value.Compare)
	}
	slices.SortStableFunc(order, compare)
	repeated := make([]bool, len(keys))
	for n := 1; n < len(order); n++ {
		repeated[order[n]] = compare(order[n-1], order[n]) == 0
	}
	out := keys[:0]
	for i, key := range keys {
		if !repeated[i] {
			out = append(out, key)
		}
	}
	return out
}
