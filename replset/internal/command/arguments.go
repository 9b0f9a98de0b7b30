package command

import (
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// argument is one of a command's own.
type argument struct {
	name     string
	types    []bson.Type // that it may be of; nil: any
	elements bson.Type   // of an array; 0: any
	required bool
}

// argumentTypes are the types of the server's parsers that occur here, in the order in which it tells them.
var argumentTypes = map[string][]bson.Type{
	"":         nil,
	"bool":     {bson.TypeBoolean},
	"safeBool": {bson.TypeBoolean, bson.TypeInt64, bson.TypeInt32, bson.TypeDecimal128, bson.TypeDouble},
	"int":      {bson.TypeInt32},
	"safeLong": {bson.TypeInt64, bson.TypeInt32, bson.TypeDecimal128, bson.TypeDouble},
	"string":   {bson.TypeString},
	"object":   {bson.TypeEmbeddedDocument},
	"array":    {bson.TypeArray},
	"strings":  {bson.TypeArray},
	"objects":  {bson.TypeArray},
}

// arguments reads Spec.Fields: names parted by blanks, each perhaps with a colon and its type, and with an exclamation mark if
// it must be there. The name "=" is the command's own value. "-" stands for no arguments at all.
func (s *Spec) arguments() (list []argument) {
	for _, word := range strings.Fields(s.Fields) {
		if word == "-" {
			continue
		}
		word, required := strings.CutSuffix(word, "!")
		name, kind, _ := strings.Cut(word, ":")
		a := argument{name: name, types: argumentTypes[kind], required: required}
		switch kind {
		case "strings":
			a.elements = bson.TypeString
		case "objects":
			a.elements = bson.TypeEmbeddedDocument
		}
		list = append(list, a)
	}
	return list
}

// checkFields refuses arguments that a command does not have and values of wrong types, as servers do since the parser of the
// command is generated: see the .idl files of the server's sources, in which "strict" is the default.
func (m *Member) checkFields(r *Request) error {
	if r.Spec.Fields == "" {
		return nil
	}
	since := r.Spec.Since
	if since == 0 {
		since = wire50
	}
	if m.opt.Persona.wire < since {
		return r.checkListed()
	}
	list := r.Spec.arguments()
	err := r.eachField(func(key string, v bson.RawValue) error {
		i := slices.IndexFunc(list, func(a argument) bool { return a.name == key })
		if i < 0 {
			return unknownField(r.Spec.Name, key)
		}
		return list[i].check(r.Spec.Name, key, v)
	})
	if err != nil {
		return err
	}
	for _, a := range list {
		v := r.Field(a.name)
		if a.name == "=" {
			if err := a.check(r.Spec.Name, r.Spec.Name, r.Field(r.Name)); err != nil {
				return err
			}
		} else if _, beside := r.Docs[a.name]; a.required && !beside && value.Nullish(v) && (len(a.types) > 0 || v.IsZero()) {
			return missingField(r.Spec.Name, a.name)
		}
	}
	return nil
}

// checkListed refuses what a command does not have in the words of versions whose parsers were written by hand.
func (r *Request) checkListed() error {
	if !r.Spec.Listed {
		return nil
	}
	list := r.Spec.arguments()
	return r.eachField(func(key string, _ bson.RawValue) error {
		if !slices.ContainsFunc(list, func(a argument) bool { return a.name == key }) {
			return mongoerr.Server(mongoerr.CodeBadValue, `"%s" is not a valid argument to %s`, key, r.Spec.Name)
		}
		return nil
	})
}

// check holds a value to the types of an argument; null counts as absent, except for a command's own value.
func (a *argument) check(path, key string, v bson.RawValue) error {
	if len(a.types) == 0 || value.Nullish(v) && a.name != "=" {
		return nil
	}
	if !slices.Contains(a.types, v.Type) {
		return a.wrong(path, key, v)
	}
	if a.elements == 0 {
		return nil
	}
	for i, e := range v.Array().All() {
		if e.Type != a.elements {
			return wrongField(path+"."+key, indexKey(i), e, bsonName(a.elements))
		}
	}
	return nil
}

func (a *argument) wrong(path, key string, v bson.RawValue) error {
	if len(a.types) == 1 {
		return wrongField(path, key, v, bsonName(a.types[0]))
	}
	var names []string
	for _, t := range a.types {
		names = append(names, bsonName(t))
	}
	return mongoerr.Server(mongoerr.CodeTypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected types '[%s]'",
		path, key, value.TypeName(v.Type), strings.Join(names, ", "))
}
