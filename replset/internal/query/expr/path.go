package expr

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// path is "$a.b" or "$$name.a.b".
type path struct {
	variable string // empty: the document itself
	parts    []string
}

// systemVars are always defined. CURRENT can be redefined by the user, the others cannot.
var systemVars = map[string]bool{"ROOT": true, "CURRENT": true, "REMOVE": true, "NOW": true, "CLUSTER_TIME": true}

// Path parses a text that begins with one or two dollars.
func (p *Parser) Path(s string) (Expr, error) {
	if strings.HasPrefix(s, "$$") {
		return p.variable(s[2:])
	}
	if s == "$" {
		return nil, fail(16872, "'$' by itself is not a valid FieldPath")
	}
	if err := CheckPath(s[1:]); err != nil {
		return nil, err
	}
	out := &path{parts: strings.Split(s[1:], ".")}
	if p.Scope.defines("CURRENT") {
		out.variable = "CURRENT"
	}
	return out, nil
}

func (v *Vars) defines(name string) bool {
	_, ok := v.get(name)
	return ok
}

func (p *Parser) variable(s string) (Expr, error) {
	name, rest, dotted := strings.Cut(s, ".")
	if dotted || s == "" {
		if err := CheckPath(s); err != nil && name != "" {
			return nil, err
		}
	}
	if err := checkVariable(name, false); err != nil {
		return nil, err
	}
	out := &path{variable: name}
	if dotted {
		out.parts = strings.Split(rest, ".")
	}
	if v, ok := p.Extra[name]; ok {
		return Literal{v}, nil
	}
	if name == "NOW" && p.Env != nil && p.Env.Now.IsZero() || !systemVars[name] && !p.Scope.defines(name) {
		return nil, fail(17276, "Use of undefined variable: %s", name)
	}
	return out, nil
}

// CheckVariable says why a name cannot be that of a variable of the user.
func CheckVariable(name string) error { return checkVariable(name, true) }

// checkVariable says why a name cannot be that of a variable; own: one that the user defines.
func checkVariable(name string, own bool) error {
	if name == "" {
		return fail(16869, "empty variable names are not allowed")
	}
	if own && name == "CURRENT" {
		return nil
	}
	c := name[0]
	lower := c >= 'a' && c <= 'z' || c >= 0x80
	if !lower && (own || !(c >= 'A' && c <= 'Z')) {
		kind := "variable name"
		if own {
			kind = "user variable name"
		}
		return fail(16867, "'%s' starts with an invalid character for a %s", name, kind)
	}
	for i := 1; i < len(name); i++ {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80) {
			return fail(16868, "'%s' contains an invalid character for a variable name: '%c'", name, c)
		}
	}
	return nil
}

// Eval follows the path.
func (x *path) Eval(c *Ctx) (bson.RawValue, error) {
	v := c.Root
	if x.variable != "" {
		v = x.start(c)
	}
	out := Walk(v, x.parts)
	if out.Type == bson.TypeArray && len(out.Value) > smallValue && len(x.parts) > 1 { // it may have been collected out of an array
		m := c.meter()
		return m.settle(m.Mark(), out)
	}
	return out, nil
}

func (x *path) start(c *Ctx) bson.RawValue {
	if v, ok := c.Vars.get(x.variable); ok {
		return v
	}
	switch x.variable {
	case "ROOT", "CURRENT":
		return c.Root
	case "NOW":
		return bson.TimeValue(c.Env.Now)
	case "CLUSTER_TIME":
		return bson.TimestampValue(c.Env.ClusterTime.T, c.Env.ClusterTime.I)
	}
	return value.Missing
}

// Walk follows names through documents; an array on the way gives the array of what its documents give. Numbers do not
// index arrays.
func Walk(v bson.RawValue, parts []string) bson.RawValue {
	for i, part := range parts {
		switch v.Type {
		case bson.TypeEmbeddedDocument:
			v = value.Get(bson.Raw(v.Value), part)
		case bson.TypeArray:
			return walkArray(v, parts[i:])
		default:
			return value.Missing
		}
	}
	return v
}

func walkArray(a bson.RawValue, parts []string) bson.RawValue {
	var out []bson.RawValue
	for _, e := range bson.RawArray(a.Value).All() {
		if e.Type != bson.TypeEmbeddedDocument {
			continue
		}
		if v := Walk(e, parts); v.Type != 0 {
			out = append(out, v)
		}
	}
	return value.ArrayOf(out)
}

// PathOf gives the field path of an expression that is nothing but one on the document: "a.b" for "$a.b".
func PathOf(e Expr) (string, bool) {
	p, ok := e.(*path)
	if !ok {
		return "", false
	}
	switch {
	case p.variable == "" && len(p.parts) > 0:
		return strings.Join(p.parts, "."), true
	case (p.variable == "ROOT" || p.variable == "CURRENT") && len(p.parts) > 0:
		return strings.Join(p.parts, "."), true
	}
	return "", false
}
