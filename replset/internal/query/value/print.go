package value

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// Print gives a value as the server prints it in error messages: { a: [ 1, 2.0, "x" ] }. Long strings are cut.
func Print(v bson.RawValue) string {
	var b printer
	printValue(&b, v)
	return b.String()
}

// printer is where a value is printed. What is beyond most bytes may be left out, if most is not 0.
type printer struct {
	strings.Builder
	most int
}

func (b *printer) full() bool { return b.most > 0 && b.Len() > b.most }

// cut is as much of data as anybody will see.
func cut[T string | []byte](b *printer, data T) T {
	if b.most > 0 && len(data) > b.most {
		return data[:b.most+1]
	}
	return data
}

// PrintCut prints a value in at most so many bytes, in little more time than these take. Where it is cut it ends in dots.
func PrintCut(v bson.RawValue, most int) string {
	b := printer{most: most}
	printValue(&b, v)
	s := b.String()
	if len(s) > most {
		s = s[:most-3] + "..."
	}
	return strings.ToValidUTF8(s, "")
}

// PrintDoc prints a document.
func PrintDoc(d bson.Raw) string { return Print(bson.DocumentValue(d)) }

// PrintElement prints one element with its name: a: 1.
func PrintElement(key string, v bson.RawValue) string { return key + ": " + Print(v) }

func printValue(b *printer, v bson.RawValue) {
	switch v.Type {
	case 0:
		b.WriteString("EOO")
	case bson.TypeDouble:
		b.WriteString(PrintFloat(Float(v)))
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := Int64(v)
		b.WriteString(strconv.FormatInt(n, 10))
	case bson.TypeDecimal128:
		d, _ := v.Decimal128OK()
		b.WriteString(d.String())
	case bson.TypeString, bson.TypeSymbol:
		printString(b, string(stringBytes(v)))
	case bson.TypeEmbeddedDocument:
		printFields(b, v, "{", "}", true)
	case bson.TypeArray:
		printFields(b, v, "[", "]", false)
	case bson.TypeBoolean:
		b.WriteString(strconv.FormatBool(Truthy(v)))
	case bson.TypeDateTime:
		fmt.Fprintf(b, "new Date(%d)", int64(word(v)))
	case bson.TypeNull:
		b.WriteString("null")
	case bson.TypeUndefined:
		b.WriteString("undefined")
	case bson.TypeMinKey:
		b.WriteString("MinKey")
	case bson.TypeMaxKey:
		b.WriteString("MaxKey")
	case bson.TypeObjectID:
		fmt.Fprintf(b, "ObjectId('%s')", hex.EncodeToString(v.Value))
	case bson.TypeTimestamp:
		t, i, _ := v.TimestampOK()
		fmt.Fprintf(b, "Timestamp(%d, %d)", t, i)
	default:
		printRare(b, v)
	}
}

func printRare(b *printer, v bson.RawValue) {
	switch v.Type {
	case bson.TypeBinary:
		sub, data, _ := v.BinaryOK()
		if sub == 4 && len(data) == 16 {
			fmt.Fprintf(b, "UUID(\"%x-%x-%x-%x-%x\")", data[:4], data[4:6], data[6:8], data[8:10], data[10:])
			return
		}
		fmt.Fprintf(b, "BinData(%d, %X)", sub, cut(b, data))
	case bson.TypeRegex:
		p, o, _ := v.RegexOK()
		b.WriteString("/" + cut(b, p) + "/" + o)
	case bson.TypeJavaScript:
		b.Write(cut(b, stringBytes(v)))
	case bson.TypeCodeWithScope:
		c, s, _ := v.CodeWithScopeOK()
		b.WriteString("CodeWScope( " + cut(b, c) + ", ")
		printValue(b, bson.DocumentValue(s))
		b.WriteString(")")
	case bson.TypeDBPointer:
		if n := len(v.Value); n >= 17 {
			fmt.Fprintf(b, "DBRef('%s',%s)", cut(b, v.Value[4:n-13]), hex.EncodeToString(v.Value[n-12:]))
		}
	}
}

func printString(b *printer, s string) {
	b.WriteByte('"')
	if len(s) >= 160 {
		b.WriteString(s[:150] + `..."`)
		return
	}
	b.WriteString(s)
	b.WriteByte('"')
}

func printFields(b *printer, v bson.RawValue, open, end string, names bool) {
	b.WriteString(open)
	n := 0
	for k, e := range bson.Raw(v.Value).All() {
		if b.full() {
			return
		}
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteByte(' ')
		if names {
			b.WriteString(cut(b, k) + ": ")
		}
		printValue(b, e)
		n++
	}
	if n > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(end)
}

// PrintFloat is a double as in printed documents: 16 digits, and ".0" where nothing else tells it from an integer.
func PrintFloat(f float64) string {
	s := FormatFloat(f, 16)
	if !strings.ContainsAny(s, ".EN") {
		s += ".0"
	}
	return s
}

// FormatFloat is the %.<digits>g of C: inf and nan in small letters.
func FormatFloat(f float64, digits int) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'g', digits, 64)
}

// Show gives a value as expressions print it in error messages: {a: 1, b: "x"}, numbers with six digits, MISSING.
func Show(v bson.RawValue) string {
	switch v.Type {
	case 0:
		return "MISSING"
	case bson.TypeDouble:
		return FormatFloat(Float(v), 6)
	case bson.TypeString, bson.TypeSymbol:
		return `"` + string(stringBytes(v)) + `"`
	case bson.TypeDateTime:
		return FormatDate(int64(word(v)))
	case bson.TypeObjectID:
		return hex.EncodeToString(v.Value)
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		return showFields(v)
	}
	return Print(v)
}

func showFields(v bson.RawValue) string {
	var parts []string
	for k, e := range bson.Raw(v.Value).All() {
		if v.Type == bson.TypeEmbeddedDocument {
			parts = append(parts, k+": "+Show(e))
		} else {
			parts = append(parts, Show(e))
		}
	}
	if v.Type == bson.TypeArray {
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// FormatDate gives milliseconds since 1970 as 2020-01-02T03:04:05.006Z.
func FormatDate(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}
