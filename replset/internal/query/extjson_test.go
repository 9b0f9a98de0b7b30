package query

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
)

// parseJSON reads one value of canonical Extended JSON, keys in order. The vectors are read with it and not with the
// reader of package bson, so that a fault there cannot hide one here.
func parseJSON(text string) (v bson.RawValue, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v in %.200s", r, text)
		}
	}()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v = jsonValue(d, token(d))
	if _, err := d.Token(); err != io.EOF {
		return v, fmt.Errorf("more than one value in %.200s", text)
	}
	return v, nil
}

// js parses a literal of a test.
func js(t testing.TB, text string) bson.Raw {
	t.Helper()
	v, err := parseJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return bson.Raw(v.Value)
}

func token(d *json.Decoder) json.Token {
	t, err := d.Token()
	if err != nil {
		panic(err)
	}
	return t
}

func jsonValue(d *json.Decoder, t json.Token) bson.RawValue {
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			return jsonArray(d)
		}
		return jsonObject(d)
	case string:
		return bson.StringValue(t)
	case bool:
		return bson.BooleanValue(t)
	case json.Number:
		if n, err := strconv.ParseInt(t.String(), 10, 32); err == nil {
			return bson.Int32Value(int32(n))
		}
		f, _ := t.Float64()
		return bson.DoubleValue(f)
	}
	return bson.NullValue()
}

func jsonArray(d *json.Decoder) bson.RawValue {
	var vs []bson.RawValue
	for d.More() {
		vs = append(vs, jsonValue(d, token(d)))
	}
	token(d)
	return bson.RawValue{Type: bson.TypeArray, Value: bson.NewRawArray(vs...)}
}

func jsonObject(d *json.Decoder) bson.RawValue {
	dst, start := bson.BeginDocument(nil)
	for d.More() {
		key := token(d).(string)
		if start >= 0 && len(dst) == start+4 && (wrapped[key] != nil || key == "$code") {
			if v, ok := jsonWrapped(d, key); ok {
				return v
			}
		}
		dst = bson.AppendValue(dst, key, jsonValue(d, token(d)))
	}
	token(d)
	return bson.DocumentValue(bson.EndDocument(dst, start))
}

// jsonWrapped reads the rest of {"$numberInt": ...} and its like.
func jsonWrapped(d *json.Decoder, key string) (bson.RawValue, bool) {
	arg := jsonValue(d, token(d))
	if key == "$code" {
		code, _ := arg.StringValueOK()
		if !d.More() {
			token(d)
			return bson.JavaScriptValue(code), true
		}
		token(d)
		scope, _ := jsonValue(d, token(d)).DocumentOK()
		token(d)
		return bson.CodeWithScopeValue(code, scope), true
	}
	token(d)
	return wrapped[key](arg), true
}

func word(v bson.RawValue, key string) bson.RawValue { return bson.Raw(v.Value).Lookup(key) }

func text(v bson.RawValue) string { s, _ := v.StringValueOK(); return s }

var wrapped = map[string]func(bson.RawValue) bson.RawValue{
	"$numberInt": func(v bson.RawValue) bson.RawValue {
		n, err := strconv.ParseInt(text(v), 10, 32)
		must(err)
		return bson.Int32Value(int32(n))
	},
	"$numberLong": func(v bson.RawValue) bson.RawValue {
		n, err := strconv.ParseInt(text(v), 10, 64)
		must(err)
		return bson.Int64Value(n)
	},
	"$numberDouble": func(v bson.RawValue) bson.RawValue {
		f, err := strconv.ParseFloat(text(v), 64)
		must(err)
		return bson.DoubleValue(f)
	},
	"$numberDecimal": func(v bson.RawValue) bson.RawValue {
		d, err := bson.ParseDecimal128(text(v))
		must(err)
		return bson.Decimal128Value(d)
	},
	"$oid": func(v bson.RawValue) bson.RawValue {
		id, err := bson.ObjectIDFromHex(text(v))
		must(err)
		return bson.ObjectIDValue(id)
	},
	"$date": func(v bson.RawValue) bson.RawValue {
		n, _ := v.Int64OK()
		return bson.DateTimeValue(n)
	},
	"$timestamp": func(v bson.RawValue) bson.RawValue {
		t, _ := word(v, "t").AsFloat64OK()
		i, _ := word(v, "i").AsFloat64OK()
		return bson.TimestampValue(uint32(t), uint32(i))
	},
	"$binary": func(v bson.RawValue) bson.RawValue {
		data, err := base64.StdEncoding.DecodeString(text(word(v, "base64")))
		must(err)
		sub, err := strconv.ParseUint(text(word(v, "subType")), 16, 8)
		must(err)
		return bson.BinaryValue(byte(sub), data)
	},
	"$regularExpression": func(v bson.RawValue) bson.RawValue {
		return bson.RegexValue(text(word(v, "pattern")), text(word(v, "options")))
	},
	"$symbol":    func(v bson.RawValue) bson.RawValue { return bson.SymbolValue(text(v)) },
	"$undefined": func(bson.RawValue) bson.RawValue { return bson.UndefinedValue() },
	"$minKey":    func(bson.RawValue) bson.RawValue { return bson.MinKeyValue() },
	"$maxKey":    func(bson.RawValue) bson.RawValue { return bson.MaxKeyValue() },
	"$dbPointer": func(v bson.RawValue) bson.RawValue {
		id, _ := word(v, "$id").ObjectIDOK()
		return bson.DBPointerValue(text(word(v, "$ref")), id)
	},
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// jsonText prints a value as Extended JSON, types told apart.
func jsonText(v bson.RawValue) string {
	switch v.Type {
	case 0:
		return "(missing)"
	case bson.TypeEmbeddedDocument:
		var parts []string
		for k, e := range bson.Raw(v.Value).All() {
			parts = append(parts, strconv.Quote(k)+":"+jsonText(e))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case bson.TypeArray:
		var parts []string
		for _, e := range bson.RawArray(v.Value).All() {
			parts = append(parts, jsonText(e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case bson.TypeInt32:
		n, _ := v.Int32OK()
		return strconv.Itoa(int(n))
	case bson.TypeInt64:
		n, _ := v.Int64OK()
		return fmt.Sprintf(`{"$numberLong":"%d"}`, n)
	case bson.TypeDouble:
		f, _ := v.DoubleOK()
		return fmt.Sprintf(`{"$numberDouble":"%v"}`, f)
	case bson.TypeDecimal128:
		d, _ := v.Decimal128OK()
		return fmt.Sprintf(`{"$numberDecimal":"%v"}`, d)
	case bson.TypeString:
		return strconv.Quote(text(v))
	case bson.TypeDateTime:
		n, _ := v.DateTimeOK()
		return fmt.Sprintf(`{"$date":{"$numberLong":"%d"}}`, n)
	case bson.TypeBoolean:
		b, _ := v.BooleanOK()
		return strconv.FormatBool(b)
	case bson.TypeNull:
		return "null"
	case bson.TypeObjectID:
		id, _ := v.ObjectIDOK()
		return fmt.Sprintf(`{"$oid":"%s"}`, id.Hex())
	}
	return fmt.Sprintf(`{"%v":"%x"}`, v.Type, v.Value)
}
