package query

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// shape is the tree of a $project or $addFields: what becomes of the fields of a document.
type shape struct {
	mode  shapeMode
	names []string // of kids and computed fields, in the order of the specification
	kids  map[string]*shape
	exprs map[string]expr.Expr
	named map[string]bool // included, or excluded
}

type shapeMode uint8

const (
	including shapeMode = iota // what is not named goes
	excluding                  // what is not named stays
	adding                     // what is not named stays, what is named is computed
)

func newShape(m shapeMode) *shape {
	return &shape{mode: m, kids: map[string]*shape{}, exprs: map[string]expr.Expr{}, named: map[string]bool{}}
}

// computes says whether anything is computed in the tree.
func (s *shape) computes() bool {
	if len(s.exprs) > 0 {
		return true
	}
	for _, k := range s.kids {
		if k.computes() {
			return true
		}
	}
	return false
}

// document shapes a document; expressions are evaluated in c.
func (s *shape) document(c *expr.Ctx, doc bson.Raw) (bson.Raw, error) {
	w := shapeWriter{s: s, c: c, done: map[string]bool{}}
	var start int
	w.dst, start = bson.BeginDocument(nil)
	for k, v := range doc.All() {
		if err := w.existing(k, v); err != nil {
			return nil, err
		}
	}
	for _, name := range s.names {
		if !w.done[name] {
			if err := w.fresh(name); err != nil {
				return nil, err
			}
		}
	}
	return bson.EndDocument(w.dst, start), nil
}

type shapeWriter struct {
	s    *shape
	c    *expr.Ctx
	dst  []byte
	done map[string]bool
}

func (w *shapeWriter) put(key string, v bson.RawValue) {
	if v.Type != 0 {
		w.dst = bson.AppendValue(w.dst, key, v)
	}
}

// existing writes what becomes of a field of the input.
func (w *shapeWriter) existing(key string, v bson.RawValue) error {
	s := w.s
	if k := s.kids[key]; k != nil {
		container := v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray
		if !container && s.mode == including {
			return nil // it may be built afresh at the end
		}
		w.done[key] = true
		out, err := k.value(w.c, v)
		w.put(key, out)
		return err
	}
	if e := s.exprs[key]; e != nil {
		if s.mode != adding {
			return nil
		}
		w.done[key] = true
		out, err := e.Eval(w.c)
		w.put(key, out)
		return err
	}
	if s.named[key] == (s.mode == including) {
		w.put(key, v)
	}
	return nil
}

// fresh writes a named field that the input did not have.
func (w *shapeWriter) fresh(name string) error {
	if e := w.s.exprs[name]; e != nil {
		v, err := e.Eval(w.c)
		w.put(name, v)
		return err
	}
	if k := w.s.kids[name]; k != nil && k.computes() {
		v, err := k.value(w.c, value.Missing)
		w.put(name, v)
		return err
	}
	return nil
}

// value shapes a value below a path: documents, the elements of arrays; a scalar gives way to what is computed.
func (s *shape) value(c *expr.Ctx, v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		d, err := s.document(c, bson.Raw(v.Value))
		return bson.DocumentValue(d), err
	case bson.TypeArray:
		var out []bson.RawValue
		for _, e := range bson.RawArray(v.Value).All() {
			e, err := s.value(c, e)
			if err != nil {
				return e, err
			}
			if e.Type != 0 {
				out = append(out, e)
			}
		}
		return value.ArrayOf(out), nil
	}
	switch {
	case s.mode == excluding:
		return v, nil
	case s.computes():
		d, err := s.document(c, value.DocOf())
		return bson.DocumentValue(d), err
	}
	return value.Missing, nil
}

func (s *shape) fold(env *expr.Env) error {
	for n, e := range s.exprs {
		f, err := expr.Fold(e, env)
		if err != nil {
			return err
		}
		s.exprs[n] = f
	}
	for _, k := range s.kids {
		if err := k.fold(env); err != nil {
			return err
		}
	}
	return nil
}

// shapeParser reads a specification and finds out whether it includes or excludes.
type shapeParser struct {
	spec   bson.Raw
	p      *expr.Parser
	mode   *shapeMode
	adding bool
	paths  [][]string
	fields []shapeField
	noID   bool // _id: 0
}

type shapeField struct {
	parts []string
	on    bool
	expr  bson.RawValue // computed if not missing
}

// parseShape reads the specification of $project (or $addFields). Faults of its form are told as of the stage.
func parseShape(stage string, spec bson.Raw, p *expr.Parser, add bool) (*shape, error) {
	sp := &shapeParser{spec: spec, p: p, adding: add}
	if spec.IsEmpty() {
		return nil, fail(40177, "Invalid %s :: caused by :: specification must have at least one field", stage)
	}
	prefix := "Invalid " + stage + " :: caused by :: "
	for k, v := range spec.All() {
		if err := sp.form(k, v, false); err != nil {
			return nil, prefixed(prefix, err)
		}
	}
	for k, v := range spec.All() {
		if err := sp.field(strings.Split(k, "."), v); err != nil {
			return nil, err
		}
	}
	return sp.build()
}

// form checks names, conflicts and empty documents.
func (sp *shapeParser) form(path string, v bson.RawValue, nested bool) error {
	if err := expr.CheckPath(path); err != nil {
		return err
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return sp.conflict(path)
	}
	doc := bson.Raw(v.Value)
	if doc.IsEmpty() {
		return fail(40180, "an empty object is not a valid value. Found empty object at path %s", path)
	}
	for k, sub := range doc.All() {
		if strings.HasPrefix(k, "$") {
			if n := doc.Len(); n != 1 {
				return fail(40181, "an expression specification must contain exactly one field, the name of the expression. Found %d fields in %s, while parsing object %s",
					n, value.PrintDoc(doc), value.PrintDoc(sp.spec))
			}
			if sp.p != nil && sp.p.Env != nil && sp.p.Env.Newer && !expr.Known(k) {
				return fail(31325, "Unknown expression %s", k)
			}
			return sp.conflict(path)
		}
		if strings.Contains(k, ".") {
			return fail(40183, "cannot use dotted field name '%s' in a sub object: %s", k, value.PrintDoc(doc))
		}
		if err := sp.form(path+"."+k, sub, true); err != nil {
			return err
		}
	}
	return nil
}

func (sp *shapeParser) conflict(path string) error {
	parts := strings.Split(path, ".")
	for _, other := range sp.paths {
		if !onPath(parts, other) {
			continue
		}
		if sp.p == nil || sp.p.Env == nil || !sp.p.Env.Newer {
			return fail(40176, "specification contains two conflicting paths. Cannot specify both '%s' and '%s': %s", path, strings.Join(other, "."), value.PrintDoc(sp.spec))
		}
		if len(parts) > len(other) {
			return fail(31249, "Path collision at %s remaining portion %s", path, strings.Join(parts[len(other):], "."))
		}
		return fail(31250, "Path collision at %s", path)
	}
	sp.paths = append(sp.paths, parts)
	return nil
}

func (sp *shapeParser) field(parts []string, v bson.RawValue) error {
	if v.Type == bson.TypeEmbeddedDocument {
		doc := bson.Raw(v.Value)
		if first, _ := value.First(doc); !strings.HasPrefix(first, "$") {
			for k, sub := range doc.All() {
				if err := sp.field(append(parts[:len(parts):len(parts)], k), sub); err != nil {
					return err
				}
			}
			return nil
		}
	}
	switch {
	case sp.adding:
		sp.fields = append(sp.fields, shapeField{parts: parts, expr: v})
		return nil
	case v.Type != bson.TypeBoolean && !value.IsNumber(v):
		sp.fields = append(sp.fields, shapeField{parts: parts, expr: v})
		return sp.set(including)
	case value.Truthy(v):
		sp.fields = append(sp.fields, shapeField{parts: parts, on: true})
		return sp.set(including)
	case len(parts) == 1 && parts[0] == "_id":
		sp.noID = true
		return nil
	}
	sp.fields = append(sp.fields, shapeField{parts: parts})
	return sp.set(excluding)
}

func (sp *shapeParser) set(m shapeMode) error {
	switch {
	case sp.mode == nil:
		sp.mode = &m
	case *sp.mode == m:
	case m == excluding:
		return fail(40178, "Bad projection specification, cannot exclude fields other than '_id' in an inclusion projection: %s", value.PrintDoc(sp.spec))
	default:
		return fail(40179, "Bad projection specification, cannot include fields or add computed fields during an exclusion projection: %s", value.PrintDoc(sp.spec))
	}
	return nil
}

func (sp *shapeParser) build() (*shape, error) {
	mode := excluding
	switch {
	case sp.adding:
		mode = adding
	case sp.mode != nil:
		mode = *sp.mode
	}
	root := newShape(mode)
	idNamed := sp.noID
	for _, f := range sp.fields {
		idNamed = idNamed || f.parts[0] == "_id"
		if err := sp.put(root, f); err != nil {
			return nil, err
		}
	}
	if mode == excluding && sp.noID || mode == including && !idNamed {
		root.named["_id"] = true
	}
	return root, nil
}

func (sp *shapeParser) put(s *shape, f shapeField) error {
	for _, part := range f.parts[:len(f.parts)-1] {
		if s.kids[part] == nil {
			s.kids[part] = newShape(s.mode)
			s.names = append(s.names, part)
		}
		s = s.kids[part]
	}
	last := f.parts[len(f.parts)-1]
	if f.expr.Type == 0 {
		s.named[last] = true
		return nil
	}
	e, err := sp.p.Operand(f.expr)
	if err != nil {
		return err
	}
	s.exprs[last] = e
	s.names = append(s.names, last)
	return nil
}
