package query

import (
	"math"
	"slices"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// operatorParser parses one operator on a path; doc is the whole document of operators, for $regex and its $options.
type operatorParser func(p *parser, path string, arg bson.RawValue, doc bson.Raw, at level) (node, error)

func operatorFor(name string) operatorParser {
	switch name {
	case "$eq", "$lt", "$lte", "$gt", "$gte":
		return func(p *parser, path string, arg bson.RawValue, _ bson.Raw, _ level) (node, error) {
			return p.compare(path, compareOps[name], arg)
		}
	case "$ne":
		return (*parser).notEqual
	case "$in", "$nin":
		return func(p *parser, path string, arg bson.RawValue, _ bson.Raw, _ level) (node, error) {
			return p.in(path, name, arg)
		}
	case "$not":
		return (*parser).not
	case "$exists":
		return (*parser).exists
	case "$type":
		return (*parser).typeOf
	case "$size":
		return (*parser).size
	case "$mod":
		return (*parser).mod
	case "$all":
		return (*parser).all
	case "$elemMatch":
		return (*parser).elemMatch
	case "$regex":
		return (*parser).regexDocument
	case "$options":
		return (*parser).options
	case "$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear":
		return func(p *parser, path string, arg bson.RawValue, _ bson.Raw, _ level) (node, error) {
			return p.bits(path, name, arg)
		}
	}
	return nil
}

func (p *parser) operator(path, name string, arg bson.RawValue, doc bson.Raw, at level) (node, error) {
	if parse := operatorFor(name); parse != nil {
		return parse(p, path, arg, doc, at)
	}
	switch name {
	case "$where":
		return nil, bad("$where cannot be applied to a field")
	case "$near", "$nearSphere", "$geoNear", "$geoWithin", "$within", "$geoIntersects":
		return nil, bad("unable to find index for $geoNear query: geospatial queries are not served (%s)", name)
	}
	return nil, bad("unknown operator: %s", name)
}

func (p *parser) compare(at string, o op, arg bson.RawValue) (node, error) {
	if arg.Type == bson.TypeRegex && o != opEq {
		return nil, bad("Can't have RegEx as arg to predicate over field '%s'.", at)
	}
	if arg.Type == bson.TypeUndefined {
		return nil, bad("cannot compare to undefined")
	}
	return &leaf{path: newPath(at), leaves: true, test: &comparison{op: o, want: arg, coll: p.coll}}, nil
}

func (p *parser) notEqual(at string, arg bson.RawValue, _ bson.Raw, _ level) (node, error) {
	if arg.Type == bson.TypeRegex {
		return nil, bad("Can't have regex as arg to $ne.")
	}
	n, err := p.compare(at, opEq, arg)
	if err != nil {
		return nil, err
	}
	return &not{sub: n}, nil
}

func (p *parser) in(at, name string, arg bson.RawValue) (node, error) {
	if arg.Type != bson.TypeArray {
		return nil, bad("%s needs an array", name)
	}
	var values []bson.RawValue
	var regexes []*regexTest
	for _, v := range bson.RawArray(arg.Value).All() {
		switch {
		case isOperators(v, false):
			return nil, bad("cannot nest $ under $in")
		case v.Type == bson.TypeUndefined:
			return nil, bad("cannot compare to undefined")
		case v.Type == bson.TypeRegex:
			pattern, options, _ := v.RegexOK()
			r, err := p.regexTest(pattern, options)
			if err != nil {
				return nil, err
			}
			regexes = append(regexes, r)
		default:
			values = append(values, v)
		}
	}
	l := &leaf{path: newPath(at), leaves: true, test: p.membership(values, regexes)}
	if name == "$nin" {
		return &not{sub: l}, nil
	}
	return l, nil
}

// membership makes an equality of one value, which takes undefined for null as $in itself does not.
func (p *parser) membership(values []bson.RawValue, regexes []*regexTest) test {
	values = slices.CompactFunc(values, func(a, b bson.RawValue) bool { return value.CompareWith(a, b, p.coll) == 0 })
	if len(values) == 1 && len(regexes) == 0 {
		return &comparison{op: opEq, want: values[0], coll: p.coll}
	}
	return newIn(values, regexes, p.coll)
}

func (p *parser) not(path string, arg bson.RawValue, _ bson.Raw, at level) (node, error) {
	if arg.Type == bson.TypeRegex {
		n, err := p.regex(path, arg)
		if err != nil {
			return nil, err
		}
		return &not{sub: n}, nil
	}
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, bad("$not needs a regex or a document")
	}
	doc := bson.Raw(arg.Value)
	if doc.IsEmpty() {
		return nil, bad("$not cannot be empty")
	}
	subs, err := p.operators(path, doc, at)
	if err != nil {
		return nil, err
	}
	if value.Get(doc, "$regex").Type != 0 && !p.opts.Strict { // since 4.0.7
		return nil, bad("$not cannot have a regex")
	}
	return &not{sub: conjunction(subs)}, nil
}

func (p *parser) exists(at string, arg bson.RawValue, _ bson.Raw, _ level) (node, error) {
	l := &leaf{path: newPath(at), test: existsTest{}}
	if value.Truthy(arg) {
		return l, nil
	}
	return &not{sub: l}, nil
}

func (p *parser) typeOf(at string, arg bson.RawValue, _ bson.Raw, _ level) (node, error) {
	t, err := parseTypes(at, arg)
	if err != nil {
		return nil, err
	}
	return &leaf{path: newPath(at), leaves: true, test: t}, nil
}

func (p *parser) size(at string, arg bson.RawValue, _ bson.Raw, _ level) (node, error) {
	n, whole := value.Integral(arg)
	switch {
	case arg.Type != bson.TypeInt32 && arg.Type != bson.TypeInt64 && arg.Type != bson.TypeDouble:
		return nil, bad("$size needs a number")
	case arg.Type == bson.TypeInt64 && (n > math.MaxInt32 || n < math.MinInt32):
		return nil, bad("$size must be representable as a 32-bit integer")
	case !whole || n > math.MaxInt32 || n < math.MinInt32:
		return nil, bad("$size must be a whole number")
	case n < 0:
		return nil, bad("$size may not be negative")
	}
	return &leaf{path: newPath(at), test: sizeTest(n)}, nil
}

func (p *parser) mod(at string, arg bson.RawValue, _ bson.Raw, _ level) (node, error) {
	if arg.Type != bson.TypeArray {
		return nil, bad("malformed mod, needs to be an array")
	}
	v := value.Array(arg)
	switch {
	case len(v) < 1:
		return nil, bad("malformed mod, not enough elements")
	case !value.IsNumber(v[0]):
		return nil, bad("malformed mod, divisor not a number")
	case len(v) < 2:
		return nil, bad("malformed mod, not enough elements")
	case len(v) > 2:
		return nil, bad("malformed mod, too many elements")
	}
	m := modTest{divisor: cutInt(v[0]), remainder: cutInt(v[1])}
	if m.divisor == 0 {
		return nil, bad("divisor cannot be 0")
	}
	return &leaf{path: newPath(at), leaves: true, test: m}, nil
}

// cutInt converts to 32 bits as the machine does: a long loses its upper half, what else does not fit is the smallest int.
func cutInt(v bson.RawValue) int64 {
	n := value.CutLong(v)
	if v.Type != bson.TypeInt64 && n != int64(int32(n)) {
		return math.MinInt32
	}
	return int64(int32(n))
}
