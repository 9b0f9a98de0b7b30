package query

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// names reads a list of distinct field names.
func schemaNames(keyword string, v bson.RawValue) ([]string, error) {
	if v.Type != bson.TypeArray {
		return nil, fail(mongoerr.CodeTypeMismatch, "$jsonSchema keyword '%s' must be an array, but found an element of type %s", keyword, value.TypeName(v.Type))
	}
	var out []string
	seen := map[string]bool{}
	for _, e := range bson.RawArray(v.Value).All() {
		name, ok := value.Text(e)
		if !ok || e.Type != bson.TypeString {
			return nil, fail(mongoerr.CodeTypeMismatch, "$jsonSchema keyword '%s' must be an array of strings, but found an element of type: %s", keyword, value.TypeName(e.Type))
		}
		if seen[name] {
			return nil, fail(mongoerr.CodeFailedToParse, "$jsonSchema keyword '%s' array cannot contain duplicate values", keyword)
		}
		seen[name] = true
		out = append(out, name)
	}
	if len(out) == 0 {
		return nil, fail(mongoerr.CodeFailedToParse, "$jsonSchema keyword '%s' cannot be an empty array", keyword)
	}
	return out, nil
}

func hasAll(d bson.Raw, names []string) bool {
	for _, n := range names {
		if value.Get(d, n).Type == 0 {
			return false
		}
	}
	return true
}

func (p *parser) schemaRequired(s *schema, name string, v bson.RawValue, _ bson.Raw) error {
	names, err := schemaNames(name, v)
	if err != nil {
		return err
	}
	s.addFor(bson.TypeEmbeddedDocument, func(d bson.Raw) bool { return hasAll(d, names) })
	return nil
}

func (p *parser) schemaProperties(s *schema, name string, v bson.RawValue, all bson.Raw) error {
	if name == "additionalProperties" {
		return p.schemaAdditional(s, v, all)
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return fail(mongoerr.CodeTypeMismatch, "$jsonSchema keyword '%s' must be an object", name)
	}
	for key, e := range bson.Raw(v.Value).All() {
		sub, err := p.sub(e, "Nested schema for $jsonSchema property '%s' must be an object", key)
		if err != nil {
			return err
		}
		if name == "properties" {
			s.addFor(bson.TypeEmbeddedDocument, func(d bson.Raw) bool {
				e := value.Get(d, key)
				return e.Type == 0 || sub.accepts(e)
			})
			continue
		}
		re, err := value.CompileRegex(key, "")
		if err != nil {
			return err
		}
		s.addFor(bson.TypeEmbeddedDocument, func(d bson.Raw) bool {
			for k, e := range d.All() {
				if found, err := p.opts.Meter.Match(re, k); err != nil || found && !sub.accepts(e) {
					return false
				}
			}
			return true
		})
	}
	return nil
}

// schemaAdditional is about the fields that neither properties nor patternProperties name.
func (p *parser) schemaAdditional(s *schema, v bson.RawValue, all bson.Raw) error {
	if v.Type == bson.TypeBoolean && value.Truthy(v) {
		return nil
	}
	sub := &schema{checks: []schemaCheck{func(bson.RawValue) bool { return false }}}
	if v.Type != bson.TypeBoolean {
		var err error
		if sub, err = p.sub(v, "$jsonSchema keyword 'additionalProperties' must be an object or a boolean"); err != nil {
			return err
		}
	}
	named := value.Doc(value.Get(all, "properties"))
	var patterns []*value.Regex
	for k := range value.Doc(value.Get(all, "patternProperties")).All() {
		re, err := value.CompileRegex(k, "")
		if err != nil {
			return err
		}
		patterns = append(patterns, re)
	}
	s.addFor(bson.TypeEmbeddedDocument, func(d bson.Raw) bool {
		for k, e := range d.All() {
			if value.Get(named, k).Type == 0 && !p.matchesAny(patterns, k) && !sub.accepts(e) {
				return false
			}
		}
		return true
	})
	return nil
}

func (p *parser) matchesAny(patterns []*value.Regex, s string) bool {
	for _, re := range patterns {
		if ok, err := p.opts.Meter.Match(re, s); ok && err == nil {
			return true
		}
	}
	return false
}

func (p *parser) schemaDependencies(s *schema, _ string, v bson.RawValue, _ bson.Raw) error {
	if v.Type != bson.TypeEmbeddedDocument {
		return fail(mongoerr.CodeTypeMismatch, "$jsonSchema keyword 'dependencies' must be an object")
	}
	for key, e := range bson.Raw(v.Value).All() {
		var then func(d bson.Raw) bool
		if e.Type == bson.TypeArray {
			names, err := schemaNames("dependencies", e)
			if err != nil {
				return err
			}
			then = func(d bson.Raw) bool { return hasAll(d, names) }
		} else {
			sub, err := p.sub(e, "$jsonSchema keyword 'dependencies': the value of '%s' must be an object or an array", key)
			if err != nil {
				return err
			}
			then = func(d bson.Raw) bool { return sub.accepts(bson.DocumentValue(d)) }
		}
		s.addFor(bson.TypeEmbeddedDocument, func(d bson.Raw) bool { return value.Get(d, key).Type == 0 || then(d) })
	}
	return nil
}

func (p *parser) schemaEnum(s *schema, name string, v bson.RawValue, _ bson.Raw) error {
	if v.Type != bson.TypeArray {
		return fail(mongoerr.CodeTypeMismatch, "$jsonSchema keyword 'enum' must be an array, but found an element of type %s", value.TypeName(v.Type))
	}
	keys := map[string]bool{} // an enumeration compares by bytes, whatever the collation
	for _, e := range bson.RawArray(v.Value).All() {
		k := value.Key(e, nil)
		if keys[k] {
			return fail(mongoerr.CodeFailedToParse, "$jsonSchema keyword 'enum' array cannot contain duplicate values.")
		}
		keys[k] = true
	}
	if len(keys) == 0 {
		return fail(mongoerr.CodeFailedToParse, "$jsonSchema keyword 'enum' cannot be an empty array")
	}
	s.add(func(v bson.RawValue) bool { return keys[value.Key(v, nil)] })
	return nil
}

func (p *parser) schemaCombine(s *schema, name string, v bson.RawValue, _ bson.Raw) error {
	if v.Type != bson.TypeArray {
		return fail(mongoerr.CodeTypeMismatch, "$jsonSchema keyword '%s' must be an array", name)
	}
	var subs []*schema
	for _, e := range bson.RawArray(v.Value).All() {
		sub, err := p.sub(e, "$jsonSchema keyword '%s' must be an array of objects, but found an element of type %s", name, value.TypeName(e.Type))
		if err != nil {
			return err
		}
		subs = append(subs, sub)
	}
	if len(subs) == 0 {
		return bad("$jsonSchema keyword '%s' must be a non-empty array", name)
	}
	s.add(func(v bson.RawValue) bool {
		n := 0
		for _, sub := range subs {
			if sub.accepts(v) {
				n++
			}
		}
		return name == "allOf" && n == len(subs) || name == "anyOf" && n > 0 || name == "oneOf" && n == 1
	})
	return nil
}

func (p *parser) schemaNot(s *schema, _ string, v bson.RawValue, _ bson.Raw) error {
	sub, err := p.sub(v, "$jsonSchema keyword 'not' must be an object, but found an element of type %s", value.TypeName(v.Type))
	if err != nil {
		return err
	}
	s.add(func(v bson.RawValue) bool { return !sub.accepts(v) })
	return nil
}
