package expr

import (
	"strings"
	"unicode/utf8"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func regexOps() map[string]parseFunc {
	return map[string]parseFunc{
		"$regexMatch":   parseRegex,
		"$regexFind":    parseRegex,
		"$regexFindAll": parseRegex,
		"$replaceOne":   parseReplace(1),
		"$replaceAll":   parseReplace(-1),
	}
}

func parseRegex(p *Parser, op string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(51103, "%s expects an object of named arguments but found: %s", op, typeOf(arg))
	}
	args := []Expr{nil, nil, Literal{}}
	for k, v := range bson.Raw(arg.Value).All() {
		i := strings.Index("input regex options", k) / 6
		if k != "input" && k != "regex" && k != "options" {
			return nil, fail(31024, "%s found an unknown argument: %s", op, k)
		}
		var err error
		if args[i], err = p.Operand(v); err != nil {
			return nil, err
		}
	}
	if args[0] == nil {
		return nil, fail(31022, "%s requires 'input' parameter", op)
	}
	if args[1] == nil {
		return nil, fail(31023, "%s requires 'regex' parameter", op)
	}
	return &call{args, func(c *Ctx, a []bson.RawValue) (bson.RawValue, error) { return runRegex(c, op, a) }}, nil
}

func runRegex(c *Ctx, op string, a []bson.RawValue) (bson.RawValue, error) {
	re, err := regexArg(op, a[1], a[2])
	if err != nil {
		return value.Missing, err
	}
	if re == nil || value.Nullish(a[0]) {
		switch op {
		case "$regexMatch":
			return bson.BooleanValue(false), nil
		case "$regexFindAll":
			return value.ArrayOf(nil), nil
		}
		return null, nil
	}
	s, ok := str(a[0])
	if !ok {
		return failed(51104, "%s needs 'input' to be of type string", op)
	}
	switch op {
	case "$regexMatch":
		ok, err := c.meter().Match(re, s)
		return bson.BooleanValue(ok), err
	case "$regexFind":
		m, err := c.meter().Find(re, s, 0)
		if err != nil || m == nil {
			return null, err
		}
		return found(s, m), nil
	}
	return findAll(c, re, s)
}

// regexArg compiles the pattern; nil without an error if it is null.
func regexArg(op string, pattern, options bson.RawValue) (*value.Regex, error) {
	var p, o string
	switch pattern.Type {
	case 0, bson.TypeNull, bson.TypeUndefined:
		return nil, nil
	case bson.TypeString:
		p, _ = str(pattern)
	case bson.TypeRegex:
		p, o, _ = pattern.RegexOK()
	default:
		return nil, fail(51105, "%s needs 'regex' to be of type string or regex", op)
	}
	if !value.Nullish(options) {
		given, ok := str(options)
		if !ok {
			return nil, fail(51106, "%s needs 'options' to be of type string", op)
		}
		if o != "" {
			return nil, fail(51107, "%s found regex option(s) specified in both 'regex' and 'option' fields", op)
		}
		o = given
	}
	if strings.ContainsRune(p, 0) {
		return nil, fail(51109, "%s: regular expression cannot contain an embedded null byte", op)
	}
	if strings.Trim(o, "imsx") != "" {
		return nil, fail(51108, "%s invalid flag in regex options: %s", op, o)
	}
	re, err := value.CompileRegex(p, o)
	if err != nil {
		return nil, fail(51111, "Invalid Regex in %s: %v", op, err)
	}
	return re, nil
}

// found is {match, idx, captures}; idx counts code points.
func found(s string, m [][2]int) bson.RawValue {
	captures := make([]bson.RawValue, 0, len(m))
	for _, g := range m[1:] {
		if g[0] < 0 {
			captures = append(captures, null)
		} else {
			captures = append(captures, bson.StringValue(s[g[0]:g[1]]))
		}
	}
	return bson.DocumentValue(value.DocOf(
		value.Field{Key: "match", Value: bson.StringValue(s[m[0][0]:m[0][1]])},
		value.Field{Key: "idx", Value: bson.Int32Value(int32(utf8.RuneCountInString(s[:m[0][0]])))},
		value.Field{Key: "captures", Value: value.ArrayOf(captures)},
	))
}

func findAll(c *Ctx, re *value.Regex, s string) (bson.RawValue, error) {
	var out []bson.RawValue
	for from := 0; from < len(s) || from == 0; { // there is no match after the last character, save in an empty string
		m, err := c.meter().Find(re, s, from)
		if err != nil {
			return value.Missing, err
		}
		if m == nil {
			break
		}
		v := found(s, m)
		if err := c.meter().Hold("$regexFindAll", 2*len(v.Value)+elementCost); err != nil {
			return value.Missing, err
		}
		out = append(out, v)
		if from = m[0][1]; m[0][0] == m[0][1] { // an empty match: go on one character further
			_, n := utf8.DecodeRuneInString(s[from:])
			from += max(1, n)
		}
	}
	return value.ArrayOf(out), nil
}

func parseReplace(n int) parseFunc {
	return func(p *Parser, op string, arg bson.RawValue) (Expr, error) {
		if arg.Type != bson.TypeEmbeddedDocument {
			return nil, fail(51751, "%s requires an object as an argument, found: %s", op, typeOf(arg))
		}
		names := []string{"input", "find", "replacement"}
		args := make([]Expr, 3)
		for k, v := range bson.Raw(arg.Value).All() {
			i := indexOf(names, k)
			if i < 0 {
				return nil, fail(51750, "%s found an unknown argument: %s", op, k)
			}
			var err error
			if args[i], err = p.Operand(v); err != nil {
				return nil, err
			}
		}
		for i, e := range args {
			if e == nil {
				return nil, fail([]int32{51749, 51748, 51747}[i], "%s requires '%s' to be specified", op, names[i])
			}
		}
		return &call{args, func(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
			isNull := false
			var s [3]string
			for i, v := range a {
				if value.Nullish(v) {
					isNull = true
					continue
				}
				var ok bool
				if s[i], ok = str(v); !ok {
					return failed([]int32{51746, 51745, 51744}[i], "%s requires that '%s' be a string, found: %s", op, names[i], value.Show(v))
				}
			}
			if isNull {
				return null, nil
			}
			if n < 0 {
				if err := c.repeated(op, int64(strings.Count(s[0], s[1])), len(s[2])); err != nil {
					return null, err
				}
			}
			return bson.StringValue(strings.Replace(s[0], s[1], s[2], n)), nil
		}}, nil
	}
}

func indexOf(list []string, s string) int {
	for i, e := range list {
		if e == s {
			return i
		}
	}
	return -1
}
