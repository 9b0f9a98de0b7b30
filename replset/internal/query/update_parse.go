package query

import (
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

type updateParser struct {
	opts    Options
	coll    *value.Collator
	filters map[string]*Filter
	used    map[string]bool
	order   []string
}

// makeLeaf builds the operator for one path and its argument.
type makeLeaf func(p *updateParser, path string, arg bson.RawValue) (operator, error)

func leafMaker(name string) makeLeaf {
	switch name {
	case "$set":
		return makeSet
	case "$setOnInsert":
		return makeSetOnInsert
	case "$unset":
		return makeUnset
	case "$inc", "$mul":
		return func(_ *updateParser, path string, arg bson.RawValue) (operator, error) {
			return makeArithmetic(name, path, arg)
		}
	case "$min", "$max":
		return func(p *updateParser, _ string, arg bson.RawValue) (operator, error) {
			return &extreme{arg: arg, max: name == "$max", coll: p.coll}, nil
		}
	case "$currentDate":
		return makeCurrentDate
	case "$bit":
		return makeBit
	case "$rename":
		return makeRename
	case "$push":
		return makePush
	case "$addToSet":
		return makeAddToSet
	case "$pop":
		return makePop
	case "$pull":
		return makePull
	case "$pullAll":
		return makePullAll
	}
	return nil
}

func newUpdateParser(o Options, arrayFilters []bson.Raw) (*updateParser, error) {
	c, err := value.ParseCollation(o.Collation)
	if err != nil {
		return nil, err
	}
	p := &updateParser{opts: o, coll: c, filters: map[string]*Filter{}, used: map[string]bool{}}
	for _, f := range arrayFilters {
		if err := p.addFilter(f); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *updateParser) operators(doc bson.Raw) (*objectNode, error) {
	root := newObjectNode()
	for name, arg := range doc.All() {
		mk := leafMaker(name)
		if mk == nil {
			return nil, fail(mongoerr.CodeFailedToParse, "Unknown modifier: %s", name)
		}
		if arg.Type != bson.TypeEmbeddedDocument {
			return nil, fail(mongoerr.CodeFailedToParse, "Modifiers operate on fields but we found type %s instead. For example: {$mod: {<field>: ...}} not {%s: %s}",
				value.TypeName(arg.Type), name, value.Print(arg))
		}
		if bson.Raw(arg.Value).IsEmpty() && !p.opts.Dollars { // since 5.0 there is just nothing to do
			return nil, fail(mongoerr.CodeFailedToParse, "'%s' is empty. You must specify a field like so: {%s: {<field>: ...}}", name, name)
		}
		for path, v := range bson.Raw(arg.Value).All() {
			if err := p.field(root, name, mk, path, v); err != nil {
				return nil, err
			}
		}
	}
	return root, nil
}

// field adds one path. $rename occupies two: the source is only there to conflict with others.
func (p *updateParser) field(root *objectNode, name string, mk makeLeaf, path string, arg bson.RawValue) error {
	op, err := mk(p, path, arg)
	if err != nil {
		return err
	}
	if name == "$rename" {
		if err := p.add(root, path, nil); err != nil {
			return err
		}
		path, _ = value.Text(arg)
	}
	return p.add(root, path, &leafNode{op: op})
}

// checkPath refuses empty parts, a $ in front or two of them.
func checkPath(path string) ([]string, error) {
	if path == "" {
		return nil, fail(mongoerr.CodeEmptyFieldName, "An empty update path is not valid.")
	}
	parts := strings.Split(path, ".")
	positionals := 0
	for _, part := range parts {
		if part == "" {
			return nil, fail(mongoerr.CodeEmptyFieldName, "The update path '%s' contains an empty field name, which is not allowed.", path)
		}
		if part == "$" {
			positionals++
		}
	}
	switch {
	case positionals > 1:
		return nil, bad("Too many positional (i.e. '$') elements found in path '%s'", path)
	case parts[0] == "$":
		return nil, bad("Cannot have positional (i.e. '$') element in the first position in path '%s'", path)
	case isIdentifier(parts[0]):
		return nil, bad("Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '%s'", path)
	}
	return parts, nil
}

// isIdentifier says whether a part is $[] or $[id].
func isIdentifier(part string) bool {
	return strings.HasPrefix(part, "$[") && strings.HasSuffix(part, "]")
}

// add puts a node at a path of the tree, making the nodes on the way. A nil node only holds the place.
func (p *updateParser) add(root *objectNode, path string, leaf *leafNode) error {
	parts, err := checkPath(path)
	if err != nil {
		return err
	}
	var at updateNode = root
	for i, part := range parts {
		last := i == len(parts)-1
		get, set, err := p.slot(at, part, path)
		if err != nil {
			return err
		}
		if get == nil {
			var node updateNode = leaf
			switch {
			case last && leaf == nil:
				node = &leafNode{}
			case !last && isIdentifier(parts[i+1]):
				node = &arrayNode{kids: map[string]updateNode{}, filters: p.filters}
			case !last:
				node = newObjectNode()
			}
			set(node)
			at = node
			continue
		}
		if conflicts(get, parts, i) {
			return fail(mongoerr.CodeConflictingUpdateOperators, "Updating the path '%s' would create a conflict at '%s'", path, strings.Join(parts[:i+1], "."))
		}
		at = get
	}
	return nil
}

// conflicts says whether an existing node cannot take what the path wants there.
func conflicts(node updateNode, parts []string, i int) bool {
	if i == len(parts)-1 {
		return true
	}
	switch node.(type) {
	case *objectNode:
		return isIdentifier(parts[i+1])
	case *arrayNode:
		return !isIdentifier(parts[i+1])
	}
	return true
}

// slot is the place of one part in a node.
func (p *updateParser) slot(at updateNode, part, path string) (have updateNode, set func(updateNode), err error) {
	switch at := at.(type) {
	case *objectNode:
		if part == "$" {
			return at.positional, func(n updateNode) { at.positional = n }, nil
		}
		return at.kids[part], func(n updateNode) { at.kids[part] = n }, nil
	case *arrayNode:
		id := part[2 : len(part)-1]
		if id != "" && p.filters[id] == nil {
			return nil, nil, bad("No array filter found for identifier '%s' in path '%s'", id, path)
		}
		p.used[id] = true
		return at.kids[id], func(n updateNode) { at.kids[id] = n }, nil
	}
	return nil, nil, nil
}

// addFilter parses one array filter: a query whose paths all begin with one identifier.
func (p *updateParser) addFilter(doc bson.Raw) error {
	const prefix = "Error parsing array filter :: caused by :: "
	fp := parser{opts: p.opts, coll: p.coll, noExpr: "$expr is not allowed in this context"}
	root, err := fp.document(doc, levelTop)
	if err != nil {
		return prefixed(prefix, err)
	}
	var name string
	for _, path := range paths(root, nil) {
		first, _, _ := strings.Cut(path, ".")
		if name != "" && name != first {
			return fail(mongoerr.CodeFailedToParse, prefix+"Expected a single top-level field name, found '%s' and '%s'", name, first)
		}
		name = first
	}
	switch {
	case name == "":
		return fail(mongoerr.CodeFailedToParse, "Cannot use an expression without a top-level field name in arrayFilters")
	case !validIdentifier(name):
		return bad(prefix+"The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '%s'", name)
	case p.filters[name] != nil:
		return fail(mongoerr.CodeFailedToParse, "Found multiple array filters with the same top-level field name %s", name)
	}
	p.filters[name] = &Filter{root: root, raw: doc, opts: p.opts, coll: p.coll}
	p.order = append(p.order, name)
	return nil
}

func validIdentifier(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if !(c >= 'a' && c <= 'z') && !(i > 0 && s[i] >= '0' && s[i] <= '9') {
			return false
		}
	}
	return s != "" && s[0] >= 'a' && s[0] <= 'z'
}

// unusedFilter refuses an array filter that no path names.
func (p *updateParser) unusedFilter(doc bson.Raw) error {
	i := slices.IndexFunc(p.order, func(id string) bool { return !p.used[id] })
	if i < 0 {
		return nil
	}
	return fail(mongoerr.CodeFailedToParse, "The array filter for identifier '%s' was not used in the update %s", p.order[i], value.PrintDoc(doc))
}

// paths lists the paths that a filter looks at.
func paths(n node, out []string) []string {
	switch n := n.(type) {
	case *and:
		for _, s := range n.subs {
			out = paths(s, out)
		}
	case *or:
		for _, s := range n.subs {
			out = paths(s, out)
		}
	case *not:
		out = paths(n.sub, out)
	case *leaf:
		out = append(out, n.path.text)
	}
	return out
}
