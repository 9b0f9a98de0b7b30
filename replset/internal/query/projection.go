package query

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Projection is a parsed projection of a find: inclusion or exclusion by dotted paths, $slice, $elemMatch, the positional $.
type Projection struct {
	fields     projNode
	keepID     bool
	matchers   map[string]node // $elemMatch by field
	positional bool
	excludes   bool // some field other than _id
	empty      bool
	strict     bool       // as since 4.4
	computing  *computing // nil if nothing is computed
}

// projNode says what becomes of the fields below one path. The rules are those of a 4.0 server, order of the
// specification included: what stands last decides whether unnamed fields stay.
type projNode struct {
	kids        map[string]*projNode
	include     bool // unnamed fields, and the value itself if it is no container
	sliced      bool
	skip, limit int // limit -1: all
}

func newProjNode() *projNode { return &projNode{include: true, limit: -1} }

// ParseProjection parses a projection. The filter serves to check a positional $; nil leaves that unchecked.
func ParseProjection(p bson.Raw, filter *Filter) (*Projection, error) {
	var o Options
	if filter != nil {
		o = filter.opts
	}
	return ParseProjectionWith(p, filter, o)
}

// ParseProjectionWith is ParseProjection with options for what is computed; without them those of the filter serve.
func ParseProjectionWith(p bson.Raw, filter *Filter, o Options) (*Projection, error) {
	out := &Projection{keepID: true, matchers: map[string]node{}, fields: *newProjNode(), empty: p.IsEmpty(), strict: o.Strict}
	if o.Strict {
		if err := checkStrictly(p); err != nil {
			return nil, err
		}
	}
	for _, v := range p.All() {
		if isComputed(v) {
			return out, out.parseComputed(p, filter, o)
		}
	}
	c := projChecker{filter: filter, p: out, opts: o}
	for path, v := range p.All() {
		out.excludes = out.excludes || path != "_id" && v.Type != bson.TypeEmbeddedDocument && !value.Truthy(v)
	}
	for path, v := range p.All() {
		if err := c.entry(path, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

type projChecker struct {
	p         *Projection
	filter    *Filter
	opts      Options
	including *bool
}

func (c *projChecker) entry(path string, v bson.RawValue) error {
	on := value.Truthy(v)
	switch {
	case v.Type == bson.TypeEmbeddedDocument:
		if err := c.operator(path, bson.Raw(v.Value)); err != nil {
			return err
		}
	case path == "_id" && !on:
		c.p.keepID = false
	case path == "_id" && c.opts.Strict && c.p.excludes:
	default:
		if c.including != nil && *c.including != on {
			return bad("Projection cannot have a mix of inclusion and exclusion.")
		}
		c.including = &on
		c.p.fields.add(strings.Split(path, "."), on)
		if path == "" { // names no field: what is not named goes, or stays
			c.p.fields.include = !on
		}
	}
	if i := strings.Index(path, ".$"); i >= 0 && !isReferencePart(path[i+1:]) {
		return c.position(path, on)
	}
	return nil
}

func isReferencePart(s string) bool {
	return strings.HasPrefix(s, "$ref") || strings.HasPrefix(s, "$id") || strings.HasPrefix(s, "$db")
}

func (c *projChecker) operator(path string, doc bson.Raw) error {
	if doc.Len() != 1 {
		return bad(">1 field in obj: %s", value.PrintDoc(doc))
	}
	name, arg := value.First(doc)
	switch name {
	case "$slice":
		skip, limit, err := sliceBounds(arg)
		if err != nil {
			return err
		}
		c.p.fields.slice(strings.Split(path, "."), skip, limit)
		return nil
	case "$elemMatch":
		return c.elemMatch(path, doc, arg)
	case "$meta":
		return checkMeta(path, arg)
	}
	return bad("Unsupported projection option: %s", value.PrintElement(path, bson.DocumentValue(doc)))
}

func sliceBounds(arg bson.RawValue) (skip, limit int, err error) {
	if value.IsNumber(arg) {
		n := int(int32(value.Long(arg)))
		if n < 0 {
			return n, -n, nil
		}
		return 0, n, nil
	}
	if arg.Type != bson.TypeArray {
		return 0, 0, bad("$slice only supports numbers and [skip, limit] arrays")
	}
	vs := value.Array(arg)
	if len(vs) != 2 {
		return 0, 0, bad("$slice array wrong size")
	}
	skip, limit = int(int32(value.Long(vs[0]))), int(int32(value.Long(vs[1])))
	if limit <= 0 {
		return 0, 0, bad("$slice limit must be positive")
	}
	return skip, limit, nil
}

func (c *projChecker) elemMatch(path string, doc bson.Raw, arg bson.RawValue) error {
	switch {
	case arg.Type != bson.TypeEmbeddedDocument:
		return bad("elemMatch: Invalid argument, object required.")
	case c.p.positional:
		return bad("Cannot specify positional operator and $elemMatch.")
	case strings.Contains(path, "."):
		return bad("Cannot use $elemMatch projection on a nested field.")
	}
	coll, err := value.ParseCollation(c.opts.Collation)
	if err != nil {
		return err
	}
	p := parser{opts: c.opts, coll: coll, noWhere: true}
	n, err := p.element(path, bson.DocumentValue(doc), levelTop)
	if err != nil {
		return err
	}
	c.p.matchers[path] = n
	c.p.fields.add([]string{path}, true)
	return nil
}

func checkMeta(path string, arg bson.RawValue) error {
	name, ok := value.Text(arg)
	if strings.Contains(path, ".") {
		return bad("field for $meta cannot be nested")
	}
	if !ok || arg.Type != bson.TypeString {
		return bad("unexpected argument to $meta in proj")
	}
	switch name {
	case "textScore", "recordId", "indexKey", "geoNearDistance", "geoNearPoint":
		return bad("$meta operator not served: %s", name)
	case "sortKey":
		return bad("cannot use sortKey $meta projection without a sort")
	}
	return bad("unsupported $meta operator: %s", name)
}

func (c *projChecker) position(path string, on bool) error {
	first, _, _ := strings.Cut(path, ".")
	_, after, _ := strings.Cut(path, ".$")
	switch {
	case !on:
		return bad("Cannot exclude array elements with the positional operator.")
	case c.p.positional:
		return bad("Cannot specify more than one positional proj. per query.")
	case len(c.p.matchers) > 0:
		return bad("Cannot specify positional operator and $elemMatch.")
	case strings.Contains(after, ".$"):
		return bad("Positional projection '%s' contains the positional operator more than once.", path)
	case c.filter != nil && !c.opts.Strict && !namesField(c.filter.root, first):
		return bad("Positional projection '%s' does not match the query document.", path)
	}
	c.p.positional = true
	return nil
}

// namesField says whether a filter looks at a path that begins with the field.
func namesField(n node, first string) bool {
	for _, p := range paths(n, nil) {
		if f, _, _ := strings.Cut(p, "."); f == first {
			return true
		}
	}
	return false
}

func (n *projNode) add(parts []string, include bool) {
	if len(parts) == 0 || len(parts) == 1 && parts[0] == "" { // "a." means a
		n.include = include
		return
	}
	n.include = !include
	n.kid(parts[0]).add(parts[1:], include)
}

func (n *projNode) slice(parts []string, skip, limit int) {
	n.sliced = true
	if len(parts) == 0 {
		n.skip, n.limit = skip, limit
		return
	}
	n.kid(parts[0]).slice(parts[1:], skip, limit)
}

func (n *projNode) kid(name string) *projNode {
	if n.kids == nil {
		n.kids = map[string]*projNode{}
	}
	if n.kids[name] == nil {
		n.kids[name] = newProjNode()
	}
	return n.kids[name]
}
