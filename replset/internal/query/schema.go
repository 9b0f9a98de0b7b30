package query

import (
	"slices"
	"unicode/utf8"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// schema is a $jsonSchema: every check must accept a value. A check only looks at values of the type it is about.
type schema struct{ checks []schemaCheck }

type schemaCheck func(v bson.RawValue) bool

func (s *schema) accepts(v bson.RawValue) bool {
	for _, c := range s.checks {
		if !c(v) {
			return false
		}
	}
	return true
}

func (s *schema) match(doc bson.Raw, _ *state) bool     { return s.accepts(bson.DocumentValue(doc)) }
func (s *schema) single(v bson.RawValue, _ *state) bool { return s.accepts(v) }
func (s *schema) add(c schemaCheck)                     { s.checks = append(s.checks, c) }
func (s *schema) addFor(t bson.Type, c func(d bson.Raw) bool) {
	s.add(func(v bson.RawValue) bool { return v.Type != t || c(bson.Raw(v.Value)) })
}

func (p *parser) jsonSchema(_ string, arg bson.RawValue, _ level) (node, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(mongoerr.CodeTypeMismatch, "$jsonSchema must be an object")
	}
	return p.schema(bson.Raw(arg.Value))
}

// schemaKeyword parses one keyword into checks.
type schemaKeyword func(p *parser, s *schema, name string, v bson.RawValue, all bson.Raw) error

func schemaKeywordFor(name string) schemaKeyword {
	switch name {
	case "type", "bsonType":
		return (*parser).schemaType
	case "title", "description":
		return func(_ *parser, _ *schema, name string, v bson.RawValue, _ bson.Raw) error {
			if v.Type != bson.TypeString {
				return fail(mongoerr.CodeTypeMismatch, "$jsonSchema keyword '%s' must be of type string", name)
			}
			return nil
		}
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		return (*parser).schemaNumber
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		return (*parser).schemaCount
	case "pattern":
		return (*parser).schemaPattern
	case "uniqueItems":
		return (*parser).schemaUnique
	case "items", "additionalItems":
		return (*parser).schemaItems
	case "required":
		return (*parser).schemaRequired
	case "properties", "patternProperties", "additionalProperties":
		return (*parser).schemaProperties
	case "dependencies":
		return (*parser).schemaDependencies
	case "enum":
		return (*parser).schemaEnum
	case "allOf", "anyOf", "oneOf":
		return (*parser).schemaCombine
	case "not":
		return (*parser).schemaNot
	}
	return nil
}

var schemaUnsupported = []string{"$ref", "$schema", "default", "definitions", "format", "id"}

func (p *parser) schema(doc bson.Raw) (*schema, error) {
	if p.depth++; p.depth > maxFilterDepth {
		return nil, bad("$jsonSchema nests deeper than %d levels", maxFilterDepth)
	}
	defer func() { p.depth-- }()
	s := &schema{}
	if value.Get(doc, "type").Type != 0 && value.Get(doc, "bsonType").Type != 0 {
		return nil, fail(mongoerr.CodeFailedToParse, "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'")
	}
	for name, v := range doc.All() {
		k := schemaKeywordFor(name)
		switch {
		case slices.Contains(schemaUnsupported, name):
			return nil, fail(mongoerr.CodeFailedToParse, "$jsonSchema keyword '%s' is not currently supported", name)
		case k == nil:
			return nil, fail(mongoerr.CodeFailedToParse, "Unknown $jsonSchema keyword: %s", name)
		}
		if err := k(p, s, name, v, doc); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// sub parses a schema inside another.
func (p *parser) sub(v bson.RawValue, format string, args ...any) (*schema, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, fail(mongoerr.CodeTypeMismatch, format, args...)
	}
	return p.schema(bson.Raw(v.Value))
}

var jsonTypes = map[string]string{"object": "object", "array": "array", "number": "number", "boolean": "bool", "string": "string", "null": "null"}

func (p *parser) schemaType(s *schema, name string, v bson.RawValue, _ bson.Raw) error {
	list := []bson.RawValue{v}
	if v.Type == bson.TypeArray {
		list = value.Array(v)
	}
	t := &typeTest{types: map[bson.Type]bool{}}
	for _, e := range list {
		text, ok := value.Text(e)
		if !ok || e.Type != bson.TypeString {
			return fail(mongoerr.CodeTypeMismatch, "$jsonSchema keyword '%s' must be either a string or an array of strings", name)
		}
		if name == "type" {
			if text == "integer" {
				return fail(mongoerr.CodeFailedToParse, "$jsonSchema type 'integer' is not currently supported.")
			}
			alias, ok := jsonTypes[text]
			if !ok {
				return bad("Unknown type name alias: %s", text)
			}
			text = alias
		}
		if err := t.addAlias(text); err != nil {
			return err
		}
	}
	s.add(func(v bson.RawValue) bool { return t.holds(v, nil) })
	return nil
}

func (p *parser) schemaNumber(s *schema, name string, v bson.RawValue, all bson.Raw) error {
	switch name {
	case "exclusiveMinimum", "exclusiveMaximum":
		base := map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}[name]
		if v.Type != bson.TypeBoolean {
			return fail(mongoerr.CodeTypeMismatch, "$jsonSchema keyword '%s' must be a boolean", name)
		}
		if value.Get(all, base).Type == 0 {
			return fail(mongoerr.CodeFailedToParse, "$jsonSchema keyword '%s' must be a present if %s is present", base, name)
		}
		return nil
	}
	if !value.IsNumber(v) {
		return fail(mongoerr.CodeTypeMismatch, "$jsonSchema keyword '%s' must be a number", name)
	}
	if name == "multipleOf" {
		if value.Compare(v, bson.Int32Value(0)) <= 0 {
			return fail(mongoerr.CodeFailedToParse, "$jsonSchema keyword 'multipleOf' must have a positive value")
		}
		s.add(func(w bson.RawValue) bool { return !value.IsNumber(w) || value.IsMultiple(w, v) })
		return nil
	}
	c := &comparison{op: opGte, want: v}
	if name == "maximum" {
		c.op = opLte
	}
	if name == "minimum" && value.Truthy(value.Get(all, "exclusiveMinimum")) {
		c.op = opGt
	}
	if name == "maximum" && value.Truthy(value.Get(all, "exclusiveMaximum")) {
		c.op = opLt
	}
	s.add(func(w bson.RawValue) bool { return !value.IsNumber(w) || c.holds(w, nil) })
	return nil
}

func (p *parser) schemaCount(s *schema, name string, v bson.RawValue, _ bson.Raw) error {
	if !value.IsNumber(v) {
		return fail(mongoerr.CodeFailedToParse, "Expected a number in: %s", value.PrintElement(name, v))
	}
	n, ok := value.Integral(v)
	if !ok {
		return fail(mongoerr.CodeFailedToParse, "Expected an integer: %s", value.PrintElement(name, v))
	}
	if n < 0 {
		return fail(mongoerr.CodeFailedToParse, "Expected a positive number in: %s", value.PrintElement(name, v))
	}
	fits := func(have int) bool {
		if name[:3] == "min" {
			return int64(have) >= n
		}
		return int64(have) <= n
	}
	switch name[3:] {
	case "Length":
		s.add(func(v bson.RawValue) bool {
			text, ok := value.Text(v)
			return !ok || v.Type != bson.TypeString || fits(utf8.RuneCountInString(text))
		})
	case "Items":
		s.addFor(bson.TypeArray, func(d bson.Raw) bool { return fits(d.Len()) })
	default:
		s.addFor(bson.TypeEmbeddedDocument, func(d bson.Raw) bool { return fits(d.Len()) })
	}
	return nil
}

func (p *parser) schemaPattern(s *schema, name string, v bson.RawValue, _ bson.Raw) error {
	pattern, ok := value.Text(v)
	if !ok || v.Type != bson.TypeString {
		return fail(mongoerr.CodeTypeMismatch, "$jsonSchema keyword '%s' must be of type string", name)
	}
	re, err := value.CompileRegex(pattern, "")
	if err != nil {
		return err
	}
	s.add(func(v bson.RawValue) bool {
		text, ok := value.Text(v)
		if !ok || v.Type != bson.TypeString {
			return true
		}
		found, err := p.opts.Meter.Match(re, text)
		return found && err == nil
	})
	return nil
}

func (p *parser) schemaUnique(s *schema, name string, v bson.RawValue, _ bson.Raw) error {
	if v.Type != bson.TypeBoolean {
		return fail(mongoerr.CodeTypeMismatch, "$jsonSchema keyword '%s' must be a boolean", name)
	}
	if value.Truthy(v) {
		s.addFor(bson.TypeArray, func(d bson.Raw) bool {
			seen := map[string]bool{}
			for _, e := range d.All() {
				k := value.Key(e, nil)
				if seen[k] {
					return false
				}
				seen[k] = true
			}
			return true
		})
	}
	return nil
}

// schemaItems is items: a schema for all elements or one for each; then additionalItems is for the rest.
func (p *parser) schemaItems(s *schema, name string, v bson.RawValue, all bson.Raw) error {
	items := value.Get(all, "items")
	from := 0
	if name == "additionalItems" {
		if items.Type != bson.TypeArray {
			return nil
		}
		from = bson.RawArray(items.Value).Len()
	}
	if v.Type == bson.TypeBoolean {
		if !value.Truthy(v) {
			s.addFor(bson.TypeArray, func(d bson.Raw) bool { return d.Len() <= from })
		}
		return nil
	}
	if v.Type == bson.TypeArray {
		for i, e := range bson.RawArray(v.Value).All() {
			sub, err := p.sub(e, "$jsonSchema keyword 'items' requires that each element of the array is an object, but found a %s", value.TypeName(e.Type))
			if err != nil {
				return err
			}
			s.addFor(bson.TypeArray, func(d bson.Raw) bool {
				e := bson.RawArray(d).Index(i)
				return e.Type == 0 || sub.accepts(e)
			})
		}
		return nil
	}
	sub, err := p.sub(v, "$jsonSchema keyword '%s' must be either an object or a boolean, but got an element of type %s", name, value.TypeName(v.Type))
	if err != nil {
		return err
	}
	s.addFor(bson.TypeArray, func(d bson.Raw) bool {
		for i, e := range bson.RawArray(d).All() {
			if i >= from && !sub.accepts(e) {
				return false
			}
		}
		return true
	})
	return nil
}
