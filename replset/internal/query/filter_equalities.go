package query

import "github.com/sextantdb/sextant/bson"

// Equality is one {path: value} that every matching document satisfies.
type Equality struct {
	Path  string
	Value bson.RawValue
}

// Equalities lists the equalities of the filter that hold for every match: at the top, under $and, $eq, $all and an $or of
// one clause. A path may occur twice. An upsert builds its document from them.
func (f *Filter) Equalities() []Equality { return equalities(f.root, nil) }

func equalities(n node, out []Equality) []Equality {
	switch n := n.(type) {
	case *and:
		for _, s := range n.subs {
			out = equalities(s, out)
		}
	case *or:
		if len(n.subs) == 1 {
			out = equalities(n.subs[0], out)
		}
	case *leaf:
		if c, ok := n.test.(*comparison); ok && c.op == opEq {
			out = append(out, Equality{n.path.text, c.want})
		}
	}
	return out
}
