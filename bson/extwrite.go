package bson

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// extWriter turns BSON into Extended JSON text.
type extWriter struct {
	canonical  bool
	escapeHTML bool
}

// value appends v. The outer length of v may be wrong: malformed bytes give an error.
func (w *extWriter) value(dst []byte, v RawValue, depth int) ([]byte, error) {
	if payloadLen(v.Type, v.Value) != len(v.Value) {
		return dst, invalid("%d bytes are no %v", len(v.Value), v.Type)
	}
	switch v.Type {
	case TypeEmbeddedDocument:
		return w.document(dst, v.Value, depth)
	case TypeArray:
		return w.array(dst, v.Value, depth)
	case TypeCodeWithScope:
		return w.codeWithScope(dst, v, depth)
	}
	if err := validateValue(v.Type, v.Value, depth); err != nil {
		return dst, err
	}
	return w.scalar(dst, v), nil
}

func (w *extWriter) document(dst, doc []byte, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return dst, tooDeep()
	}
	dst = append(dst, '{')
	s := scan(doc)
	for first := true; s.next(); first = false {
		if !first {
			dst = append(dst, ',')
		}
		if !utf8.Valid(s.key()) {
			return dst, invalid("key %q is not UTF-8", s.key())
		}
		dst = append(w.text(dst, s.key()), ':')
		var err error
		if dst, err = w.value(dst, s.value(), depth+1); err != nil {
			return dst, encodeUnder(err, string(s.key()))
		}
	}
	if s.bad != "" {
		return dst, invalid("%s", s.bad)
	}
	return append(dst, '}'), nil
}

func (w *extWriter) array(dst, array []byte, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return dst, tooDeep()
	}
	dst = append(dst, '[')
	s := scan(array)
	for i := 0; s.next(); i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = w.value(dst, s.value(), depth+1); err != nil {
			return dst, encodeUnder(err, strconv.Itoa(i))
		}
	}
	if s.bad != "" {
		return dst, invalid("%s", s.bad)
	}
	return append(dst, ']'), nil
}

func (w *extWriter) codeWithScope(dst []byte, v RawValue, depth int) ([]byte, error) {
	code, scope, ok := v.CodeWithScopeOK()
	if !ok || !utf8.ValidString(code) {
		return dst, malformed(v)
	}
	dst = append(w.text(append(dst, `{"$code":`...), []byte(code)), `,"$scope":`...)
	dst, err := w.document(dst, scope, depth)
	if err != nil {
		return dst, encodeUnder(err, "$scope")
	}
	return append(dst, '}'), nil
}

// scalar appends a value that has been validated and holds no document.
func (w *extWriter) scalar(dst []byte, v RawValue) []byte {
	switch v.Type {
	case TypeDouble:
		return w.double(dst, v.Double())
	case TypeInt32:
		return w.integer(dst, "$numberInt", int64(v.Int32()))
	case TypeInt64:
		return w.integer(dst, "$numberLong", v.Int64())
	case TypeBoolean:
		return strconv.AppendBool(dst, v.Boolean())
	case TypeString:
		b, _ := v.textBytes(TypeString)
		return w.text(dst, b)
	case TypeObjectID:
		return wrap(dst, "$oid", v.ObjectID().Hex())
	case TypeDateTime:
		return w.date(dst, v.DateTime())
	case TypeDecimal128:
		return wrap(dst, "$numberDecimal", v.Decimal128().String())
	case TypeNull:
		return append(dst, "null"...)
	case TypeUndefined:
		return append(dst, `{"$undefined":true}`...)
	case TypeMinKey:
		return append(dst, `{"$minKey":1}`...)
	case TypeMaxKey:
		return append(dst, `{"$maxKey":1}`...)
	}
	return w.rare(dst, v)
}

func (w *extWriter) rare(dst []byte, v RawValue) []byte {
	switch v.Type {
	case TypeBinary:
		subtype, data := v.Binary()
		dst = append(dst, `{"$binary":{"base64":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, data)
		dst = append(dst, `","subType":"`...)
		dst = hex.AppendEncode(dst, []byte{subtype})
		return append(dst, `"}}`...)
	case TypeRegex:
		pattern, options := v.Regex()
		dst = w.text(append(dst, `{"$regularExpression":{"pattern":`...), []byte(pattern))
		dst = w.text(append(dst, `,"options":`...), []byte(sortedOptions(options)))
		return append(dst, `}}`...)
	case TypeDBPointer:
		ns, id := v.DBPointer()
		dst = w.text(append(dst, `{"$dbPointer":{"$ref":`...), []byte(ns))
		return append(wrap(append(dst, `,"$id":`...), "$oid", id.Hex()), `}}`...)
	case TypeJavaScript:
		return append(w.text(append(dst, `{"$code":`...), []byte(v.JavaScript())), '}')
	case TypeSymbol:
		return append(w.text(append(dst, `{"$symbol":`...), []byte(v.Symbol())), '}')
	}
	t, i := v.Timestamp()
	dst = strconv.AppendUint(append(dst, `{"$timestamp":{"t":`...), uint64(t), 10)
	dst = strconv.AppendUint(append(dst, `,"i":`...), uint64(i), 10)
	return append(dst, `}}`...)
}

// wrap appends {"key":"text"}, neither of which needs escapes.
func wrap(dst []byte, key, text string) []byte {
	dst = append(append(dst, `{"`...), key...)
	dst = append(append(dst, `":"`...), text...)
	return append(dst, `"}`...)
}

func (w *extWriter) integer(dst []byte, key string, n int64) []byte {
	if w.canonical {
		return wrap(dst, key, strconv.FormatInt(n, 10))
	}
	return strconv.AppendInt(dst, n, 10)
}

func (w *extWriter) double(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return wrap(dst, "$numberDouble", "NaN")
	case math.IsInf(f, 1):
		return wrap(dst, "$numberDouble", "Infinity")
	case math.IsInf(f, -1):
		return wrap(dst, "$numberDouble", "-Infinity")
	}
	s := strconv.FormatFloat(f, 'G', -1, 64)
	if !strings.ContainsAny(s, "E.") {
		s += ".0" // so that it does not come back as an integer
	}
	if w.canonical {
		return wrap(dst, "$numberDouble", s)
	}
	return append(dst, s...)
}

// date appends a datetime: relaxed as text, but only for the years that the specification names, 1970 to 9999.
func (w *extWriter) date(dst []byte, ms int64) []byte {
	const year10000 = 253402300800000
	if w.canonical || ms < 0 || ms >= year10000 {
		return append(wrap(append(dst, `{"$date":`...), "$numberLong", strconv.FormatInt(ms, 10)), '}')
	}
	layout := "2006-01-02T15:04:05.000Z"
	if ms%1000 == 0 {
		layout = "2006-01-02T15:04:05Z"
	}
	return wrap(dst, "$date", time.UnixMilli(ms).UTC().Format(layout))
}

// text appends valid UTF-8 as a JSON string.
func (w *extWriter) text(dst, s []byte) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c == '\f':
			dst = append(dst, `\f`...)
		case c < ' ' || w.escapeHTML && (c == '<' || c == '>' || c == '&'):
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		case c == 0xe2 && i+2 < len(s) && s[i+1] == 0x80 && s[i+2]&^1 == 0xa8:
			dst = append(append(dst, `\u202`...), digits[s[i+2]&15])
			i += 2
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
