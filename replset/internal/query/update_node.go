package query

import (
	"maps"
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// updateNode is a node of the tree that the paths of an update make. The tree fixes the order of application: names in
// byte order at each level.
type updateNode interface {
	apply(a *applying, at place) (changed bool, err error)
}

// objectNode has a node for each name, and perhaps one for the positional $.
type objectNode struct {
	kids       map[string]updateNode
	positional updateNode
}

// arrayNode has a node for each array filter; the empty name is $[].
type arrayNode struct {
	kids    map[string]updateNode
	filters map[string]*Filter
}

func newObjectNode() *objectNode { return &objectNode{kids: map[string]updateNode{}} }

func (n *objectNode) apply(a *applying, at place) (changed bool, err error) {
	if n.positional != nil && a.matched == "" {
		return false, bad("The positional operator did not find the match needed from the query.")
	}
	kids := n.kids
	if n.positional != nil {
		kids = maps.Clone(n.kids)
		child := n.positional
		if other := kids[a.matched]; other != nil {
			if child, err = merge(other, child, at.step(a.matched).text()); err != nil {
				return false, err
			}
		}
		kids[a.matched] = child
	}
	for _, name := range slices.Sorted(maps.Keys(kids)) {
		c, err := kids[name].apply(a, resume(a, at, name))
		if err != nil {
			return false, err
		}
		changed = changed || c
	}
	return changed, nil
}

// resume steps to a child from the place as it is now: a sibling may have created what was missing.
func resume(a *applying, at place, name string) place {
	p := cursorAt(a.root)
	if len(at.missing) == 0 {
		return at.step(name)
	}
	for _, part := range at.taken {
		p = p.step(part)
	}
	for _, part := range at.missing {
		p = p.step(part)
	}
	return p.step(name)
}

func (n *arrayNode) apply(a *applying, at place) (changed bool, err error) {
	if len(at.missing) > 0 {
		return false, bad("The path '%s' must exist in the document in order to apply array updates.", at.text())
	}
	if !at.at.isArray() {
		return false, bad("Cannot apply array updates to non-array element %s", at.at.text())
	}
	chosen, err := n.choose(at)
	if err != nil {
		return false, err
	}
	for i, nodes := range chosen {
		if len(nodes) == 0 {
			continue
		}
		here := at.step(at.at.children()[i].indexKey())
		node := nodes[0]
		for _, other := range nodes[1:] {
			if node, err = merge(node, other, here.text()); err != nil {
				return false, err
			}
		}
		c, err := node.apply(a, here)
		if err != nil {
			return false, err
		}
		changed = changed || c
	}
	return changed, nil
}

// choose says which nodes apply to each element; all filters look at the array as it was.
func (n *arrayNode) choose(at place) ([][]updateNode, error) {
	kids := at.at.children()
	out := make([][]updateNode, len(kids))
	for _, id := range slices.Sorted(maps.Keys(n.kids)) {
		for i, k := range kids {
			ok := id == ""
			if f := n.filters[id]; f != nil {
				dst, start := bson.BeginDocument(nil)
				var err error
				if ok, _, err = f.Eval(bson.EndDocument(bson.AppendValue(dst, id, k.value()), start)); err != nil {
					return nil, err
				}
			}
			if ok {
				out[i] = append(out[i], n.kids[id])
			}
		}
	}
	return out, nil
}

// merge joins two nodes that meet at one element; two operators at one place are a conflict.
func merge(a, b updateNode, at string) (updateNode, error) {
	switch a := a.(type) {
	case *objectNode:
		if b, ok := b.(*objectNode); ok {
			return mergeObjects(a, b, at)
		}
	case *arrayNode:
		if b, ok := b.(*arrayNode); ok {
			kids, err := mergeKids(a.kids, b.kids, at, func(id string) string { return "$[" + id + "]" })
			return &arrayNode{kids: kids, filters: a.filters}, err
		}
	}
	return nil, fail(mongoerr.CodeConflictingUpdateOperators, "Update created a conflict at '%s'", at)
}

func mergeObjects(a, b *objectNode, at string) (updateNode, error) {
	kids, err := mergeKids(a.kids, b.kids, at, strings.Clone)
	if err != nil {
		return nil, err
	}
	out := &objectNode{kids: kids, positional: a.positional}
	switch {
	case out.positional == nil:
		out.positional = b.positional
	case b.positional != nil:
		out.positional, err = merge(a.positional, b.positional, at+".$")
	}
	return out, err
}

func mergeKids(a, b map[string]updateNode, at string, name func(string) string) (map[string]updateNode, error) {
	out := maps.Clone(a)
	for _, k := range slices.Sorted(maps.Keys(b)) {
		node := b[k]
		if out[k] != nil {
			var err error
			if node, err = merge(out[k], node, at+"."+name(k)); err != nil {
				return nil, err
			}
		}
		out[k] = node
	}
	return out, nil
}
