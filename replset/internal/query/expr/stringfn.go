package expr

import (
	"strings"
	"unicode/utf8"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func stringOps() map[string]parseFunc {
	return map[string]parseFunc{
		"$concat":       variadic(concat),
		"$toLower":      unary(casing(lower)),
		"$toUpper":      unary(casing(upper)),
		"$strcasecmp":   fixed(2, caseCompare),
		"$substr":       fixed(3, substrBytes),
		"$substrBytes":  fixed(3, substrBytes),
		"$substrCP":     fixed(3, substrCP),
		"$strLenBytes":  unary(strLen("$strLenBytes", 34473, func(s string) int { return len(s) })),
		"$strLenCP":     unary(strLen("$strLenCP", 34471, utf8.RuneCountInString)),
		"$split":        fixed(2, split),
		"$indexOfBytes": between(2, 4, indexOfBytes),
		"$indexOfCP":    between(2, 4, indexOfCP),
		"$trim":         parseTrim(true, true),
		"$ltrim":        parseTrim(true, false),
		"$rtrim":        parseTrim(false, true),
	}
}

// str gives the text of a string value.
func str(v bson.RawValue) (string, bool) {
	if v.Type != bson.TypeString {
		return "", false
	}
	return value.Text(v)
}

// lower and upper only know ASCII, as the server does.
func lower(s string) string { return mapASCII(s, 'A', 'Z', 'a'-'A') }
func upper(s string) string { return mapASCII(s, 'a', 'z', -('a' - 'A')) }

func mapASCII(s string, lo, hi byte, shift int) string {
	b := []byte(s)
	for i, c := range b {
		if c >= lo && c <= hi {
			b[i] = byte(int(c) + shift)
		}
	}
	return string(b)
}

// AsString is the text that a scalar stands for in $toLower, $substr and their kin; null is the empty text.
func asString(v bson.RawValue) (string, error) {
	switch v.Type {
	case bson.TypeDouble:
		return value.FormatFloat(value.Float(v), 6), nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
		return value.Print(v), nil
	case bson.TypeString, bson.TypeSymbol, bson.TypeJavaScript:
		s, _ := value.Text(v)
		return s, nil
	case bson.TypeDateTime:
		ms, _ := v.DateTimeOK()
		return value.FormatDate(ms), nil
	case bson.TypeTimestamp:
		t, i, _ := v.TimestampOK()
		return showTimestamp(t, i), nil
	case 0, bson.TypeNull, bson.TypeUndefined:
		return "", nil
	}
	return "", fail(16007, "can't convert from BSON type %s to String", typeOf(v))
}

func concat(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	var b strings.Builder
	for _, v := range a {
		if value.Nullish(v) {
			return null, nil
		}
		s, ok := str(v)
		if !ok {
			return failed(16702, "$concat only supports strings, not %s", typeOf(v))
		}
		b.WriteString(s)
	}
	return bson.StringValue(b.String()), nil
}

func casing(fn func(string) string) func(*Ctx, bson.RawValue) (bson.RawValue, error) {
	return func(_ *Ctx, v bson.RawValue) (bson.RawValue, error) {
		s, err := asString(v)
		return bson.StringValue(fn(s)), err
	}
}

func caseCompare(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	x, err := asString(a[0])
	if err != nil {
		return value.Missing, err
	}
	y, err := asString(a[1])
	return bson.Int32Value(int32(strings.Compare(upper(x), upper(y)))), err
}

func strLen(name string, code int32, fn func(string) int) func(*Ctx, bson.RawValue) (bson.RawValue, error) {
	return func(_ *Ctx, v bson.RawValue) (bson.RawValue, error) {
		s, ok := str(v)
		if !ok {
			return failed(code, "%s requires a string argument, found: %s", name, typeOf(v))
		}
		return bson.Int32Value(int32(fn(s))), nil
	}
}

func continuation(s string, i int64) bool { return i < int64(len(s)) && !utf8.RuneStart(s[i]) }

func substrBytes(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	s, err := asString(a[0])
	if err != nil {
		return value.Missing, err
	}
	if !value.IsNumber(a[1]) {
		return failed(16034, "$substrBytes:  starting index must be a numeric type (is BSON type %s)", typeOf(a[1]))
	}
	if !value.IsNumber(a[2]) || a[2].Type == bson.TypeDecimal128 {
		return failed(16035, "$substrBytes:  length must be a numeric type (is BSON type %s)", typeOf(a[2]))
	}
	from, n := value.CutLong(a[1]), value.CutLong(a[2])
	if from < 0 {
		return failed(50752, "$substrBytes:  starting index must be non-negative (got: %d)", from)
	}
	if continuation(s, from) {
		return failed(28656, "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.")
	}
	if from >= int64(len(s)) {
		return bson.StringValue(""), nil
	}
	end := int64(len(s))
	if n >= 0 && n < end-from {
		end = from + n
	}
	if continuation(s, end) {
		return failed(28657, "$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character.")
	}
	return bson.StringValue(s[from:end]), nil
}

func substrCP(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	s, err := asString(a[0])
	if err != nil {
		return value.Missing, err
	}
	for i, what := range []string{"starting index", "length"} {
		v, codes := a[i+1], [][2]int32{{34450, 34451}, {34452, 34453}}[i]
		if !value.IsNumber(v) {
			return failed(codes[0], "$substrCP: %s must be a numeric type (is BSON type %s)", what, typeOf(v))
		}
		if !isInt(v) {
			return failed(codes[1], "$substrCP: %s cannot be represented as a 32-bit integral value: %s", what, value.Show(v))
		}
	}
	from, n := value.Long(a[1]), value.Long(a[2])
	if n < 0 {
		return failed(34454, "$substrCP: length must be a nonnegative integer.")
	}
	if from < 0 {
		return failed(34455, "$substrCP: the starting index must be nonnegative integer.")
	}
	r := []rune(s)
	from = min(from, int64(len(r)))
	return bson.StringValue(string(r[from:min(from+n, int64(len(r)))])), nil
}

func split(c *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	if value.Nullish(a[0]) || value.Nullish(a[1]) {
		return null, nil
	}
	s, ok := str(a[0])
	if !ok {
		return failed(40085, "$split requires an expression that evaluates to a string as a first argument, found: %s", typeOf(a[0]))
	}
	sep, ok := str(a[1])
	if !ok {
		return failed(40086, "$split requires an expression that evaluates to a string as a second argument, found: %s", typeOf(a[1]))
	}
	if sep == "" {
		return failed(40087, "$split requires a non-empty separator")
	}
	if err := c.repeated("$split", int64(strings.Count(s, sep)), 2*elementCost); err != nil {
		return null, err
	}
	var out []bson.RawValue
	for part := range strings.SplitSeq(s, sep) {
		out = append(out, bson.StringValue(part))
	}
	return value.ArrayOf(out), nil
}

// indexArg reads a start or end index of the $indexOf family; n is how long the text or array is.
func indexArg(name, which string, v bson.RawValue) (int64, error) {
	if !isInt(v) {
		return 0, fail(40096, "%srequires an integral %s index, found a value of type: %s, with value: %s", name, which, typeOf(v), value.Show(v))
	}
	n := value.Long(v)
	if n < 0 {
		return 0, fail(40097, "%s requires a nonnegative %s index, found: %d", name, which, n)
	}
	return n, nil
}

// bounds reads the optional start and end of the $indexOf family.
func bounds(name string, a []bson.RawValue, n int) (from, end int, err error) {
	lo, hi := int64(0), int64(n)
	if len(a) > 2 {
		if lo, err = indexArg(name, "starting", a[2]); err != nil {
			return 0, 0, err
		}
	}
	if len(a) > 3 {
		if hi, err = indexArg(name, "ending", a[3]); err != nil {
			return 0, 0, err
		}
	}
	return int(min(lo, int64(n)+1)), int(min(hi, int64(n))), nil
}

func indexOfBytes(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	s, sub, isNull, err := searchArgs("$indexOfBytes", 40091, 40092, a)
	if isNull || err != nil {
		return null, err
	}
	from, end, err := bounds("$indexOfBytes", a, len(s))
	if err != nil {
		return null, err
	}
	if from > len(s) || end < from {
		return bson.Int32Value(-1), nil
	}
	i := strings.Index(s[from:end], sub)
	if i >= 0 {
		i += from
	}
	return bson.Int32Value(int32(i)), nil
}

func searchArgs(name string, first, second int32, a []bson.RawValue) (s, sub string, isNull bool, err error) {
	if value.Nullish(a[0]) {
		return "", "", true, nil
	}
	s, ok := str(a[0])
	if !ok {
		return "", "", false, fail(first, "%s requires a string as the first argument, found: %s", name, typeOf(a[0]))
	}
	sub, ok = str(a[1])
	if !ok {
		return "", "", false, fail(second, "%s requires a string as the second argument, found: %s", name, typeOf(a[1]))
	}
	return s, sub, false, nil
}

func indexOfCP(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) {
	s, sub, isNull, err := searchArgs("$indexOfCP", 40093, 40094, a)
	if isNull || err != nil {
		return null, err
	}
	r := []rune(s)
	from, end, err := bounds("$indexOfCP", a, len(r))
	if err != nil {
		return null, err
	}
	if from >= len(r) && len(r) > 0 || from > len(r) || end < from { // at the end even the empty text is not found
		return bson.Int32Value(-1), nil
	}
	part := string(r[from:end])
	i := strings.Index(part, sub)
	if i >= 0 {
		i = from + utf8.RuneCountInString(part[:i])
	}
	return bson.Int32Value(int32(i)), nil
}

// blanks is what trims take off by default.
const blanks = "\x00 \t\n\v\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"

func parseTrim(left, right bool) parseFunc {
	return func(p *Parser, name string, arg bson.RawValue) (Expr, error) {
		if arg.Type != bson.TypeEmbeddedDocument {
			return nil, fail(50696, "%s only supports an object as an argument, found %s", name, typeOf(arg))
		}
		var input, chars Expr
		for k, v := range bson.Raw(arg.Value).All() {
			var err error
			switch k {
			case "input":
				input, err = p.Operand(v)
			case "chars":
				chars, err = p.Operand(v)
			default:
				err = fail(50694, "%s found an unknown argument: %s", name, k)
			}
			if err != nil {
				return nil, err
			}
		}
		if input == nil {
			return nil, fail(50695, "%s requires an 'input' field", name)
		}
		args := []Expr{input}
		if chars != nil {
			args = append(args, chars)
		}
		return &call{args, func(_ *Ctx, a []bson.RawValue) (bson.RawValue, error) { return trim(name, left, right, a) }}, nil
	}
}

func trim(name string, left, right bool, a []bson.RawValue) (bson.RawValue, error) {
	if value.Nullish(a[0]) {
		return null, nil
	}
	s, ok := str(a[0])
	if !ok {
		return failed(50699, "%s requires its input to be a string, got %s (of type %s) instead.", name, value.Show(a[0]), typeOf(a[0]))
	}
	chars := blanks
	if len(a) == 2 {
		if value.Nullish(a[1]) {
			return null, nil
		}
		if chars, ok = str(a[1]); !ok {
			return failed(50700, "%s requires 'chars' to be a string, got %s (of type %s) instead.", name, value.Show(a[1]), typeOf(a[1]))
		}
	}
	if left {
		s = strings.TrimLeft(s, chars)
	}
	if right {
		s = strings.TrimRight(s, chars)
	}
	return bson.StringValue(s), nil
}
