package store

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Text prints a value as the server prints values in its messages: { a: 1, b: "x" }.
// It is not Extended JSON: strings are not escaped, and long ones are cut.
func Text(v bson.RawValue) string {
	var b strings.Builder
	writeText(&b, v)
	return b.String()
}

// DocText is Text of a document.
func DocText(doc bson.Raw) string { return Text(bson.DocumentValue(doc)) }

// keyText prints an index key, whose fields have no names.
func keyText(vals []bson.RawValue) string {
	var b strings.Builder
	b.WriteString("{")
	for i, v := range vals {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(" : ")
		writeText(&b, v)
	}
	b.WriteString(" }")
	return b.String()
}

func writeText(b *strings.Builder, v bson.RawValue) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		writeDocument(b, bson.Raw(v.Value))
	case bson.TypeArray:
		writeArray(b, bson.RawArray(v.Value))
	case bson.TypeString, bson.TypeSymbol:
		s, ok := v.StringValueOK()
		if !ok {
			s, _ = v.SymbolOK()
		}
		b.WriteString(`"` + cut(s, 160, 150) + `"`)
	default:
		b.WriteString(scalarText(v))
	}
}

// cut shortens a text of more than limit bytes.
func cut(s string, limit, keep int) string {
	if len(s) < limit {
		return s
	}
	return s[:keep] + "..."
}

func writeDocument(b *strings.Builder, doc bson.Raw) {
	sep := "{ "
	for key, v := range doc.All() {
		b.WriteString(sep + key + ": ")
		writeText(b, v)
		sep = ", "
	}
	if sep == "{ " {
		b.WriteString("{}")
		return
	}
	b.WriteString(" }")
}

func writeArray(b *strings.Builder, arr bson.RawArray) {
	sep := "[ "
	for _, v := range arr.All() {
		b.WriteString(sep)
		writeText(b, v)
		sep = ", "
	}
	if sep == "[ " {
		b.WriteString("[]")
		return
	}
	b.WriteString(" ]")
}

func scalarText(v bson.RawValue) string {
	switch v.Type {
	case bson.TypeDouble:
		f, _ := v.DoubleOK()
		return doubleText(f)
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := v.AsInt64OK()
		return strconv.FormatInt(n, 10)
	case bson.TypeDecimal128:
		d, _ := v.Decimal128OK()
		return d.String()
	case bson.TypeBoolean:
		t, _ := v.BooleanOK()
		return strconv.FormatBool(t)
	case bson.TypeDateTime:
		ms, _ := v.DateTimeOK()
		return fmt.Sprintf("new Date(%d)", ms)
	case bson.TypeTimestamp:
		t, i, _ := v.TimestampOK()
		return fmt.Sprintf("Timestamp(%d, %d)", t, i)
	case bson.TypeObjectID:
		id, _ := v.ObjectIDOK()
		return fmt.Sprintf("ObjectId('%s')", id.Hex())
	case bson.TypeBinary:
		return binaryText(v)
	}
	return rareText(v)
}

func rareText(v bson.RawValue) string {
	switch v.Type {
	case bson.TypeNull, 0:
		return "null"
	case bson.TypeUndefined:
		return "undefined"
	case bson.TypeMinKey:
		return "MinKey"
	case bson.TypeMaxKey:
		return "MaxKey"
	case bson.TypeRegex:
		pattern, options, _ := v.RegexOK()
		return "/" + pattern + "/" + options
	case bson.TypeJavaScript:
		code, _ := v.JavaScriptOK()
		return code
	case bson.TypeCodeWithScope:
		code, scope, _ := v.CodeWithScopeOK()
		return "CodeWScope( " + code + ", " + DocText(scope) + ")"
	}
	return value.TypeName(v.Type)
}

func binaryText(v bson.RawValue) string {
	subtype, data, _ := v.BinaryOK()
	if subtype == 4 && len(data) == 16 {
		h := hex.EncodeToString(data)
		return "UUID(" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:] + ")"
	}
	return fmt.Sprintf("BinData(%d, %s)", subtype, strings.ToUpper(hex.EncodeToString(data)))
}

// doubleText has up to 16 significant digits and always looks like a double.
func doubleText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan.0"
	case math.IsInf(f, 1):
		return "inf.0"
	case math.IsInf(f, -1):
		return "-inf.0"
	}
	s := strconv.FormatFloat(f, 'g', 16, 64)
	if strings.Contains(s, ".") || strings.Contains(s, "e") {
		s = trimZeros(s)
	}
	if strings.ContainsAny(s, ".e") {
		return s
	}
	return s + ".0"
}

// trimZeros removes what strconv pads a 'g' format with.
func trimZeros(s string) string {
	mantissa, exp, hasExp := strings.Cut(s, "e")
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	if hasExp {
		return mantissa + "e" + exp
	}
	return mantissa
}
