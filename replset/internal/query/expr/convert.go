package expr

import (
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func convertOps() map[string]parseFunc {
	out := map[string]parseFunc{"$convert": parseConvert}
	for name, t := range map[string]bson.Type{
		"$toBool": bson.TypeBoolean, "$toDate": bson.TypeDateTime, "$toDecimal": bson.TypeDecimal128, "$toDouble": bson.TypeDouble,
		"$toInt": bson.TypeInt32, "$toLong": bson.TypeInt64, "$toObjectId": bson.TypeObjectID, "$toString": bson.TypeString,
	} {
		out[name] = func(p *Parser, op string, arg bson.RawValue) (Expr, error) {
			args, err := p.args(arg)
			if err != nil {
				return nil, err
			}
			if len(args) != 1 {
				return nil, fail(50723, "%s requires a single argument, got %d", op, len(args))
			}
			return &conversion{input: args[0], to: Literal{bson.StringValue(value.TypeName(t))}}, nil
		}
	}
	return out
}

// conversion is $convert and its short forms.
type conversion struct{ input, to, onError, onNull Expr }

func parseConvert(p *Parser, _ string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(mongoerr.CodeFailedToParse, "$convert expects an object of named arguments but found: %s", typeOf(arg))
	}
	out := &conversion{}
	slots := map[string]*Expr{"input": &out.input, "to": &out.to, "onError": &out.onError, "onNull": &out.onNull}
	for k, v := range bson.Raw(arg.Value).All() {
		slot := slots[k]
		if slot == nil {
			return nil, fail(mongoerr.CodeFailedToParse, "$convert found an unknown argument: %s", k)
		}
		var err error
		if *slot, err = p.Operand(v); err != nil {
			return nil, err
		}
	}
	if out.input == nil {
		return nil, fail(mongoerr.CodeFailedToParse, "Missing 'input' parameter to $convert")
	}
	if out.to == nil {
		return nil, fail(mongoerr.CodeFailedToParse, "Missing 'to' parameter to $convert")
	}
	return out, nil
}

// Eval converts; a failed conversion gives onError, a null input onNull.
func (x *conversion) Eval(c *Ctx) (bson.RawValue, error) {
	to, err := x.to.Eval(c)
	if err != nil {
		return to, err
	}
	in, err := x.input.Eval(c)
	if err != nil {
		return in, err
	}
	t, err := targetType(to)
	if err != nil {
		return value.Missing, err
	}
	if value.Nullish(in) {
		if x.onNull != nil {
			return x.onNull.Eval(c)
		}
		return null, nil
	}
	if value.Nullish(to) {
		return null, nil
	}
	v, err := convert(c, in, t)
	var e *mongoerr.Error
	if errors.As(err, &e) && e.Code == mongoerr.CodeConversionFailure && x.onError != nil {
		return x.onError.Eval(c)
	}
	return v, err
}

func (x *conversion) fold(c *Ctx) (Expr, error) {
	out, constant := *x, true
	for _, slot := range []*Expr{&out.input, &out.to, &out.onError, &out.onNull} {
		if *slot == nil {
			continue
		}
		e, err := fold(*slot, c)
		if err != nil {
			return nil, err
		}
		_, lit := e.(Literal)
		*slot, constant = e, constant && lit
	}
	if !constant {
		return &out, nil
	}
	v, err := out.Eval(c)
	return Literal{v}, err
}

func targetType(to bson.RawValue) (bson.Type, error) {
	if value.Nullish(to) {
		return 0, nil
	}
	if s, ok := str(to); ok {
		if s == "missing" {
			return 0, nil
		}
		t, ok := value.TypeFromName(s)
		if !ok {
			return 0, fail(mongoerr.CodeBadValue, "Unknown type name: %s", s)
		}
		return t, nil
	}
	if !value.IsNumber(to) {
		return 0, fail(mongoerr.CodeFailedToParse, "$convert's 'to' argument must be a string or number, but is %s", typeOf(to))
	}
	n, ok := value.Integral(to)
	if !ok {
		return 0, fail(mongoerr.CodeFailedToParse, "In $convert, numeric 'to' argument is not an integer")
	}
	if t := bson.Type(byte(n)); n == int64(int8(n)) && value.TypeName(t) != "unknown" {
		return t, nil
	}
	return 0, fail(mongoerr.CodeFailedToParse, "In $convert, numeric value for 'to' does not correspond to a BSON type: %d", n)
}

func unconvertible(format string, args ...any) (bson.RawValue, error) {
	return failed(mongoerr.CodeConversionFailure, format, args...)
}

func convert(c *Ctx, v bson.RawValue, t bson.Type) (bson.RawValue, error) {
	switch {
	case v.Type == t && t != bson.TypeInt32 && t != bson.TypeTimestamp && convertible[t]:
		return v, nil
	case t == bson.TypeBoolean:
		return bson.BooleanValue(value.Truthy(v)), nil
	case !convertible[t] || !convertible[v.Type] || t == bson.TypeTimestamp:
		return unsupported(v, t)
	}
	switch t {
	case bson.TypeString:
		return toText(v)
	case bson.TypeObjectID:
		return toObjectID(v)
	case bson.TypeDateTime:
		return toDate(c, v)
	}
	return toNumber(v, t)
}

var convertible = map[bson.Type]bool{
	bson.TypeDouble: true, bson.TypeString: true, bson.TypeObjectID: true, bson.TypeBoolean: true, bson.TypeDateTime: true,
	bson.TypeInt32: true, bson.TypeInt64: true, bson.TypeDecimal128: true, bson.TypeTimestamp: true,
}

func unsupported(v bson.RawValue, t bson.Type) (bson.RawValue, error) {
	return unconvertible("Unsupported conversion from %s to %s in $convert with no onError value", typeOf(v), value.TypeName(t))
}

func toText(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeDouble:
		return bson.StringValue(doubleText(value.Float(v))), nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128, bson.TypeBoolean:
		return bson.StringValue(value.Print(v)), nil
	case bson.TypeObjectID:
		return bson.StringValue(hex.EncodeToString(v.Value)), nil
	case bson.TypeDateTime:
		ms, _ := v.DateTimeOK()
		return bson.StringValue(value.FormatDate(ms)), nil
	}
	return unsupported(v, bson.TypeString)
}

func doubleText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return value.FormatFloat(f, 6)
}

func toObjectID(v bson.RawValue) (bson.RawValue, error) {
	s, ok := str(v)
	if !ok {
		return unsupported(v, bson.TypeObjectID)
	}
	const prefix = "Failed to parse objectId '%s' in $convert with no onError value: "
	if len(s) != 24 {
		return unconvertible(prefix+"Invalid string length for parsing to OID, expected 24 but found %d", s, len(s))
	}
	id, err := bson.ObjectIDFromHex(s)
	if err != nil {
		return unconvertible(prefix+"Invalid character found in hex string: %s", s, s)
	}
	return bson.ObjectIDValue(id), nil
}

func toDate(c *Ctx, v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeString:
		s, _ := str(v)
		ms, err := ParseDate(c.Env, s, nil)
		return bson.DateTimeValue(ms), err
	case bson.TypeObjectID:
		id, _ := v.ObjectIDOK()
		return bson.DateTimeValue(id.Timestamp().UnixMilli()), nil
	case bson.TypeTimestamp:
		t, _, _ := v.TimestampOK()
		return bson.DateTimeValue(int64(t) * 1000), nil
	case bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		n, err := toNumber(v, bson.TypeInt64)
		ms, _ := value.Int64(n)
		return bson.DateTimeValue(ms), err
	}
	return unsupported(v, bson.TypeDateTime)
}

func toNumber(v bson.RawValue, t bson.Type) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeBoolean:
		if value.Truthy(v) {
			return numberOf(1, t), nil
		}
		return numberOf(0, t), nil
	case bson.TypeDateTime:
		ms, _ := v.DateTimeOK()
		if t == bson.TypeInt32 {
			return unsupported(v, t)
		}
		return numberOf(ms, t), nil
	case bson.TypeString:
		s, _ := str(v)
		return parseNumber(s, t)
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := value.Int64(v)
		if t == bson.TypeInt32 && n != int64(int32(n)) {
			return overflows(v)
		}
		return numberOf(n, t), nil
	case bson.TypeDouble, bson.TypeDecimal128:
		return castNumber(v, t)
	}
	return unsupported(v, t)
}

func numberOf(n int64, t bson.Type) bson.RawValue {
	switch t {
	case bson.TypeInt32:
		return bson.Int32Value(int32(n))
	case bson.TypeInt64:
		return bson.Int64Value(n)
	case bson.TypeDouble:
		return bson.DoubleValue(float64(n))
	}
	return value.DecimalValue(value.IntDecimal(n))
}

func overflows(v bson.RawValue) (bson.RawValue, error) {
	return unconvertible("Conversion would overflow target type in $convert with no onError value: %s", value.Show(v))
}

// castNumber converts between doubles and decimals, and to whole numbers by cutting toward zero.
func castNumber(v bson.RawValue, t bson.Type) (bson.RawValue, error) {
	switch t {
	case bson.TypeDecimal128:
		return value.DecimalValue(value.AsDecimal(v)), nil
	case bson.TypeDouble:
		d := value.Decimal(v)
		f := value.DecimalFloat(d)
		if d.Form == apd.Finite && math.IsInf(f, 0) {
			return overflows(v)
		}
		return bson.DoubleValue(f), nil
	}
	if value.IsNaN(v) {
		return unconvertible("Attempt to convert NaN value to integer type in $convert with no onError value")
	}
	if math.IsInf(value.Float(v), 0) && (v.Type == bson.TypeDouble || value.Decimal(v).Form == apd.Infinite) {
		return unconvertible("Attempt to convert infinity value to integer type in $convert with no onError value")
	}
	n := value.Long(v)
	off := value.Compare(v, bson.Int64Value(n))
	if (n == math.MaxInt64 && off > 0) || (n == math.MinInt64 && off < 0) || t == bson.TypeInt32 && n != int64(int32(n)) {
		return overflows(v)
	}
	return numberOf(n, t), nil
}

func parseNumber(s string, t bson.Type) (bson.RawValue, error) {
	bad := func(why string) (bson.RawValue, error) {
		return unconvertible("Failed to parse number '%s' in $convert with no onError value: %s", s, why)
	}
	digits := strings.TrimLeft(s, "+-")
	if strings.HasPrefix(strings.ToLower(digits), "0x") {
		return unconvertible("Illegal hexadecimal input in $convert with no onError value: %s", s)
	}
	switch t {
	case bson.TypeDouble:
		return parseDouble(s, bad)
	case bson.TypeDecimal128:
		if s == "" {
			return bad("Empty string")
		}
		d, err := bson.ParseDecimal128(s)
		if err != nil {
			return bad("Failed to parse string to decimal")
		}
		return bson.Decimal128Value(d), nil
	}
	body := s
	if body != "" && (body[0] == '+' || body[0] == '-') {
		body = body[1:]
	}
	if body == "" {
		return bad("No digits")
	}
	for i := range len(body) {
		if body[i] < '0' || body[i] > '9' {
			return bad(`Bad digit "` + body[i:i+1] + `" while parsing ` + s)
		}
	}
	width := 64
	if t == bson.TypeInt32 {
		width = 32
	}
	n, err := strconv.ParseInt(s, 10, width)
	if err != nil {
		return bad("Overflow")
	}
	return numberOf(n, t), nil
}

func parseDouble(s string, bad func(string) (bson.RawValue, error)) (bson.RawValue, error) {
	switch {
	case s == "":
		return bad("Empty string")
	case strings.TrimLeft(s, " \t\n\v\f\r") != s:
		return bad("Leading whitespace")
	case strings.Contains(s, "_"):
		return bad("Did not consume whole number.")
	}
	f, err := strconv.ParseFloat(s, 64)
	if errors.Is(err, strconv.ErrRange) {
		if f == 0 {
			return bson.DoubleValue(f), nil
		}
		return bad("Out of range")
	}
	if err != nil {
		return bad("Did not consume whole number.")
	}
	return bson.DoubleValue(f), nil
}
