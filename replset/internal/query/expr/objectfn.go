package expr

import (
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func objectOps() map[string]parseFunc {
	return map[string]parseFunc{
		"$mergeObjects":  accumulate("$mergeObjects"),
		"$objectToArray": unary(objectToArray),
		"$arrayToObject": unary(arrayToObject),
		"$getField":      parseGetField,
		"$setField":      parseSetField,
		"$unsetField":    parseSetField,
	}
}

func splitPath(s string) []string { return strings.Split(s, ".") }

// MergeObjects puts the fields of docs into one document; a later value takes the place of an earlier one.
func MergeObjects(docs []bson.Raw) bson.Raw {
	var s fieldSet
	for _, d := range docs {
		for k, v := range d.All() {
			s.put(value.Field{Key: k, Value: v})
		}
	}
	return value.DocOf(s.fields...)
}

// fieldSet holds the fields of a document under construction by name: the first of a name has the place, the last the value.
type fieldSet struct {
	fields []value.Field
	places map[string]int // once there are many
}

const manyFields = 16

func (s *fieldSet) put(f value.Field) {
	i, ok := s.places[f.Key]
	if s.places == nil {
		i = slices.IndexFunc(s.fields, func(g value.Field) bool { return g.Key == f.Key })
		ok = i >= 0
	}
	if ok {
		s.fields[i] = f
		return
	}
	s.fields = append(s.fields, f)
	if s.places != nil {
		s.places[f.Key] = len(s.fields) - 1
	} else if len(s.fields) > manyFields {
		s.places = map[string]int{}
		for i, g := range s.fields {
			s.places[g.Key] = i
		}
	}
}

func objectToArray(c *Ctx, v bson.RawValue) (bson.RawValue, error) {
	switch {
	case value.Nullish(v):
		return null, nil
	case v.Type != bson.TypeEmbeddedDocument:
		return failed(40390, "$objectToArray requires a document input, found: %s", typeOf(v))
	}
	if err := c.repeated("$objectToArray", int64(bson.Raw(v.Value).Len()), 2*elementCost); err != nil {
		return null, err
	}
	var out []bson.RawValue
	for k, e := range bson.Raw(v.Value).All() {
		out = append(out, bson.DocumentValue(value.DocOf(value.Field{Key: "k", Value: bson.StringValue(k)}, value.Field{Key: "v", Value: e})))
	}
	return value.ArrayOf(out), nil
}

func arrayToObject(_ *Ctx, v bson.RawValue) (bson.RawValue, error) {
	switch {
	case value.Nullish(v):
		return null, nil
	case v.Type != bson.TypeArray:
		return failed(40386, "$arrayToObject requires an array input, found: %s", typeOf(v))
	}
	var s fieldSet
	var first bson.Type
	for _, e := range bson.RawArray(v.Value).All() {
		if first == 0 {
			first = e.Type
		}
		f, err := pair(e, first)
		if err != nil {
			return value.Missing, err
		}
		s.put(f)
	}
	return bson.DocumentValue(value.DocOf(s.fields...)), nil
}

// pair reads one [key, value] or {k: key, v: value}; all of an array must be of the kind of the first.
func pair(e bson.RawValue, first bson.Type) (f value.Field, err error) {
	var k bson.RawValue
	switch first {
	case bson.TypeArray:
		if e.Type != bson.TypeArray {
			return f, fail(40396, "$arrayToObject requires a consistent input format. Elements mustall be arrays or all be objects. Array was detected, now found: %s", typeOf(e))
		}
		vs := value.Array(e)
		if len(vs) != 2 {
			return f, fail(40397, "$arrayToObject requires an array of size 2 arrays,found array of size: %d", len(vs))
		}
		k, f.Value = vs[0], vs[1]
		if k.Type != bson.TypeString {
			return f, fail(40395, "$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key type: %s", typeOf(k))
		}
	case bson.TypeEmbeddedDocument:
		if e.Type != bson.TypeEmbeddedDocument {
			return f, fail(40391, "$arrayToObject requires a consistent input format. Elements mustall be arrays or all be objects. Object was detected, now found: %s", typeOf(e))
		}
		doc := bson.Raw(e.Value)
		if n := doc.Len(); n != 2 {
			return f, fail(40392, "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:%d", n)
		}
		k, f.Value = value.Get(doc, "k"), value.Get(doc, "v")
		if k.Type == 0 || f.Value.Type == 0 {
			return f, fail(40393, "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: %s", value.Show(e))
		}
		if k.Type != bson.TypeString {
			return f, fail(40394, "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. Found type: %s", typeOf(k))
		}
	default:
		return f, fail(40398, "Unrecognised input type format for $arrayToObject: %s", value.TypeName(first))
	}
	f.Key, _ = value.Text(k)
	if strings.ContainsRune(f.Key, 0) {
		return f, fail(4940400, "Key field cannot contain an embedded null byte")
	}
	return f, nil
}

func parseGetField(p *Parser, _ string, arg bson.RawValue) (Expr, error) {
	var name, input bson.RawValue
	doc := value.Doc(arg)
	first, _ := value.First(doc)
	if arg.Type == bson.TypeEmbeddedDocument && !strings.HasPrefix(first, "$") {
		for k, v := range doc.All() {
			switch k {
			case "field":
				name = v
			case "input":
				input = v
			default:
				return nil, fail(3041701, "$getField found an unknown argument: %s", k)
			}
		}
		if name.Type == 0 {
			return nil, fail(3041702, "$getField requires 'field' to be specified")
		}
		if input.Type == 0 {
			return nil, fail(3041703, "$getField requires 'input' to be specified")
		}
	} else {
		name, input = arg, bson.StringValue("$$CURRENT")
	}
	key, err := p.fieldName("$getField", name, 5654600, 5654601, 3041704)
	if err != nil {
		return nil, err
	}
	in, err := p.Operand(input)
	if err != nil {
		return nil, err
	}
	return &call{[]Expr{in}, func(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
		switch a[0].Type {
		case bson.TypeEmbeddedDocument:
			return value.Get(bson.Raw(a[0].Value), key), nil
		case bson.TypeNull, bson.TypeUndefined:
			return null, nil
		}
		return value.Missing, nil
	}}, nil
}

// fieldName reads the constant name that $getField and $setField want.
func (p *Parser) fieldName(op string, v bson.RawValue, pathCode, constCode, typeCode int32) (string, error) {
	if s, ok := str(v); ok && strings.HasPrefix(s, "$") {
		return "", fail(pathCode, "A field path reference which is not allowed in this context. Did you mean {$literal: '%s'}?", s)
	}
	e, err := p.Operand(v)
	if err != nil {
		return "", err
	}
	if e, err = Fold(e, p.Env); err != nil {
		return "", err
	}
	l, ok := e.(Literal)
	if !ok {
		return "", fail(constCode, "%s requires 'field' to evaluate to a constant", op)
	}
	s, ok := str(l.Value)
	if !ok {
		return "", fail(typeCode, "%s requires 'field' to evaluate to type String, but got %s", op, typeOf(l.Value))
	}
	return s, nil
}

func parseSetField(p *Parser, op string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(4161100, "%s only supports an object as its argument", op)
	}
	args := map[string]bson.RawValue{}
	for k, v := range bson.Raw(arg.Value).All() {
		if k != "field" && k != "input" && (k != "value" || op == "$unsetField") {
			return nil, fail(4161101, "%s found an unknown argument: %s", op, k)
		}
		args[k] = v
	}
	if args["field"].Type == 0 {
		return nil, fail(4161102, "%s requires 'field' to be specified", op)
	}
	if op == "$setField" && args["value"].Type == 0 {
		return nil, fail(4161103, "%s requires 'value' to be specified", op)
	}
	if args["input"].Type == 0 {
		return nil, fail(4161109, "%s requires 'input' to be specified", op)
	}
	key, err := p.fieldName(op, args["field"], 4161108, 4161106, 4161107)
	if err != nil {
		return nil, err
	}
	in, err := p.Operand(args["input"])
	if err != nil {
		return nil, err
	}
	var val Expr = Literal{}
	if op == "$setField" {
		if val, err = p.Operand(args["value"]); err != nil {
			return nil, err
		}
	}
	return &call{[]Expr{in, val}, func(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) { return setField(key, a[0], a[1]) }}, nil
}

func setField(key string, in, v bson.RawValue) (bson.RawValue, error) {
	if value.Nullish(in) {
		return null, nil
	}
	if in.Type != bson.TypeEmbeddedDocument {
		return failed(4161105, "$setField requires 'input' to evaluate to type Object")
	}
	var fields []value.Field
	seen := false
	for k, e := range bson.Raw(in.Value).All() {
		if k == key {
			e, seen = v, true
		}
		fields = append(fields, value.Field{Key: k, Value: e})
	}
	if !seen {
		fields = append(fields, value.Field{Key: key, Value: v})
	}
	return bson.DocumentValue(value.DocOf(fields...)), nil
}
