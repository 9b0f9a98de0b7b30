package bson

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The rules and examples in the text of the specifications extended-json and bson-decimal128, whose test plans are the
// files of bson-corpus.

func exampleDocument() D {
	id := func(s string) ObjectID { x, _ := ObjectIDFromHex(s); return x }
	dec, _ := ParseDecimal128("1234.5")
	u, _ := ParseUUID("c8edabc3-f738-4ca3-b68d-ab92a91478a3")
	return D{
		{"_id", id("57e193d7a9cc81b4027498b5")}, {"String", "string"}, {"Int32", int32(42)}, {"Int64", int64(42)}, {"Double", 42.42},
		{"Decimal", dec}, {"Binary", u}, {"BinaryUserDefined", Binary{0x80, []byte("123")}}, {"Code", JavaScript("function() {}")},
		{"CodeWithScope", CodeWithScope{"function() {}", D{}}}, {"Subdocument", D{{"foo", "bar"}}}, {"Array", A{1, 2, 3, 4, 5}},
		{"Timestamp", Timestamp{42, 1}}, {"RegularExpression", Regex{"foo*", "xi"}}, {"DatetimeEpoch", time.UnixMilli(0)},
		{"DatetimePositive", time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)}, {"DatetimeNegative", time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"True", true}, {"False", false},
		{"DBRef", D{{"$ref", "collection"}, {"$id", id("57e193d7a9cc81b4027498b1")}, {"$db", "database"}}},
		{"DBRefNoDB", D{{"$ref", "collection"}, {"$id", id("57fd71e96e32ab4225b723fb")}}},
		{"Minkey", MinKey{}}, {"Maxkey", MaxKey{}}, {"Null", nil},
	}
}

const exampleCanonical = `{"_id":{"$oid":"57e193d7a9cc81b4027498b5"},"String":"string","Int32":{"$numberInt":"42"},` +
	`"Int64":{"$numberLong":"42"},"Double":{"$numberDouble":"42.42"},"Decimal":{"$numberDecimal":"1234.5"},` +
	`"Binary":{"$binary":{"base64":"yO2rw/c4TKO2jauSqRR4ow==","subType":"04"}},"BinaryUserDefined":{"$binary":{"base64":"MTIz","subType":"80"}},` +
	`"Code":{"$code":"function() {}"},"CodeWithScope":{"$code":"function() {}","$scope":{}},"Subdocument":{"foo":"bar"},` +
	`"Array":[{"$numberInt":"1"},{"$numberInt":"2"},{"$numberInt":"3"},{"$numberInt":"4"},{"$numberInt":"5"}],` +
	`"Timestamp":{"$timestamp":{"t":42,"i":1}},"RegularExpression":{"$regularExpression":{"pattern":"foo*","options":"ix"}},` +
	`"DatetimeEpoch":{"$date":{"$numberLong":"0"}},"DatetimePositive":{"$date":{"$numberLong":"253402300799999"}},` +
	`"DatetimeNegative":{"$date":{"$numberLong":"-62135596800000"}},"True":true,"False":false,` +
	`"DBRef":{"$ref":"collection","$id":{"$oid":"57e193d7a9cc81b4027498b1"},"$db":"database"},` +
	`"DBRefNoDB":{"$ref":"collection","$id":{"$oid":"57fd71e96e32ab4225b723fb"}},"Minkey":{"$minKey":1},"Maxkey":{"$maxKey":1},"Null":null}`

// TestProseExtendedJSONExamples: the canonical and the relaxed example, written and read.
func TestProseExtendedJSONExamples(t *testing.T) {
	relaxed := strings.NewReplacer(`{"$numberInt":"42"}`, `42`, `{"$numberLong":"42"}`, `42`, `{"$numberDouble":"42.42"}`, `42.42`,
		`{"$numberInt":"1"}`, `1`, `{"$numberInt":"2"}`, `2`, `{"$numberInt":"3"}`, `3`, `{"$numberInt":"4"}`, `4`, `{"$numberInt":"5"}`, `5`,
		`{"$date":{"$numberLong":"0"}}`, `{"$date":"1970-01-01T00:00:00Z"}`,
		`{"$date":{"$numberLong":"253402300799999"}}`, `{"$date":"9999-12-31T23:59:59.999Z"}`).Replace(exampleCanonical)
	doc := exampleDocument()
	raw := mustMarshal(t, doc)
	for canonical, want := range map[bool]string{true: exampleCanonical, false: relaxed} {
		got, err := MarshalExtJSON(doc, canonical, false)
		if err != nil || string(got) != want {
			t.Errorf("canonical %v, %v\n got %s\nwant %s", canonical, err, got, want)
		}
	}
	if got, err := ParseExtJSON([]byte(exampleCanonical), true); err != nil || !bytes.Equal(got.Value, raw) {
		t.Errorf("read: %v, %v", got, err)
	}
}

// TestProseExtendedJSONParsersIgnoreTheOrderOfKeys in wrapper objects.
func TestProseExtendedJSONParsersIgnoreTheOrderOfKeys(t *testing.T) {
	for a, b := range map[string]string{
		`{"$code":"f","$scope":{}}`:                                   `{"$scope":{},"$code":"f"}`,
		`{"$binary":{"base64":"AQ==","subType":"00"}}`:                `{"$binary":{"subType":"0","base64":"AQ=="}}`,
		`{"$timestamp":{"t":1,"i":2}}`:                                `{"$timestamp":{"i":2,"t":1}}`,
		`{"$regularExpression":{"pattern":"p","options":""}}`:         `{"$regularExpression":{"options":"","pattern":"p"}}`,
		`{"$dbPointer":{"$ref":"c","$id":{"$oid":"` + hexABC + `"}}}`: `{"$dbPointer":{"$id":{"$oid":"` + strings.ToUpper(hexABC) + `"},"$ref":"c"}}`,
	} {
		x, err := ParseExtJSON([]byte(`[`+a+`]`), true)
		y, err2 := ParseExtJSON([]byte(`[`+b+`]`), true)
		if err != nil || err2 != nil || !bytes.Equal(x.Value, y.Value) || RawArray(x.Value).Index(0).Type == TypeEmbeddedDocument {
			t.Errorf("%s: %v %v, %v %v", a, x, err, y, err2)
		}
	}
}

const hexABC = "57e193d7a9cc81b4027498b5"

// TestProseExtendedJSONWrappersHaveExactlyTheirKeys: an extra key, a missing one or a value of another type is an error.
func TestProseExtendedJSONWrappersHaveExactlyTheirKeys(t *testing.T) {
	good := map[string]string{
		"$oid": `"` + hexABC + `"`, "$symbol": `"s"`, "$numberInt": `"1"`, "$numberLong": `"1"`, "$numberDouble": `"1.0"`, "$numberDecimal": `"1"`,
		"$binary": `{"base64":"","subType":"00"}`, "$code": `"f"`, "$timestamp": `{"t":1,"i":1}`, "$regularExpression": `{"pattern":"","options":""}`,
		"$dbPointer": `{"$ref":"c","$id":{"$oid":"` + hexABC + `"}}`, "$date": `{"$numberLong":"1"}`, "$minKey": `1`, "$maxKey": `1`, "$undefined": `true`,
		"$uuid": `"c8edabc3-f738-4ca3-b68d-ab92a91478a3"`,
	}
	refused := func(text string) {
		t.Helper()
		if v, err := ParseExtJSON([]byte(text), false); err == nil {
			t.Errorf("%s is read as %v", text, v)
		}
	}
	for key, value := range good {
		if v, err := ParseExtJSON([]byte(`{"a":{"`+key+`":`+value+`}}`), false); err != nil || v.Document().Lookup("a").Type == TypeEmbeddedDocument {
			t.Errorf("%s: %v, %v", key, v, err)
		}
		refused(`{"a":{"` + key + `":` + value + `,"unrelated":1}}`)
		refused(`{"a":{"x":1,"` + key + `":` + value + `}}`)
		refused(`{"a":{"` + key + `":` + value + `,"` + key + `":` + value + `}}`)
		for _, other := range []string{`null`, `[]`, `{}`, `7`, `false`, `"no such value"`} {
			if key != "$code" && key != "$symbol" || !strings.HasPrefix(other, `"`) {
				refused(`{"a":{"` + key + `":` + other + `}}`)
			}
		}
	}
	for _, text := range []string{`{"$binary":{"base64":""}}`, `{"$binary":{"base64":"","subType":"00","x":1}}`, `{"$binary":{"base64":"AQ","subType":"00"}}`,
		`{"$binary":{"base64":"","subType":"100"}}`, `{"$timestamp":{"t":1}}`, `{"$timestamp":{"t":-1,"i":1}}`, `{"$timestamp":{"t":1.0,"i":1}}`,
		`{"$timestamp":{"t":4294967296,"i":1}}`, `{"$regularExpression":{"pattern":""}}`, `{"$dbPointer":{"$ref":"c"}}`, `{"$scope":{}}`, `{"$code":"f","$scope":1}`,
		`{"$numberInt":"0x1"}`, `{"$numberInt":" 1"}`, `{"$numberInt":"1.0"}`, `{"$numberLong":"9223372036854775808"}`, `{"$numberDouble":"infinity"}`, `{"$numberDouble":""}`} {
		refused(`{"a":` + text + `}`)
	}
}

// TestProseExtendedJSONUnknownDollarKeysAreLeft: also objects that resemble a DBRef, and the filters of the text.
func TestProseExtendedJSONUnknownDollarKeysAreLeft(t *testing.T) {
	for _, text := range []string{
		`{"a":{"$ref":"c"}}`, `{"a":{"$id":1}}`, `{"a":{"$ref":1,"$id":2,"x":3}}`, `{"a":{"$db":"d","$ref":"c"}}`, `{"a":{"$unknown":1,"b":2}}`,
		`{"zipCode":{"$type":2}}`, `{"zipCode":{"$type":"string"}}`, `{"a":{"$regex":"foo*","$options":"ix"}}`, `{"a":{"$set":{"x":1}}}`,
		`{"a":{"$regex":{"$regularExpression":{"pattern":"foo*","options":""}},"$options":"ix"}}`,
		`{"a":{"$regex":{"$regularExpression":{"pattern":"foo*","options":""}}}}`,
	} {
		v, err := ParseExtJSON([]byte(text), false)
		if err != nil || v.String() != text {
			t.Errorf("%s: %v, %v", text, v, err)
		}
	}
	// At the top an object is a document, whatever its keys are.
	if v, err := ParseExtJSON([]byte(`{"$oid":"x","$date":1}`), false); err != nil || v.Document().Lookup("$oid").StringValue() != "x" {
		t.Errorf("at the top: %v, %v", v, err)
	}
}

// TestProseExtendedJSONNumbers: "Special rules for parsing JSON numbers" and the names of what is not finite.
func TestProseExtendedJSONNumbers(t *testing.T) {
	for text, want := range map[string]Type{
		"1": TypeInt32, "-2147483648": TypeInt32, "2147483647": TypeInt32, "2147483648": TypeInt64, "-9223372036854775808": TypeInt64,
		"9223372036854775808": TypeDouble, "1.0": TypeDouble, "1e2": TypeDouble, "1E-400": TypeDouble,
		`{"$numberDouble":"Infinity"}`: TypeDouble, `{"$numberDouble":"-Infinity"}`: TypeDouble, `{"$numberDouble":"NaN"}`: TypeDouble,
	} {
		v, err := ParseExtJSON([]byte(`[`+text+`]`), false)
		if err != nil || RawArray(v.Value).Index(0).Type != want {
			t.Errorf("%s: %v, %v", text, v, err)
		}
		if strings.HasPrefix(text, "{") && v.String() != "["+text+"]" {
			t.Errorf("%s is written as %v", text, v)
		}
	}
}

// TestProseExtendedJSONUUID: $uuid is binary of subtype 4, with hyphens or without.
func TestProseExtendedJSONUUID(t *testing.T) {
	want := `{"Binary":{"$binary":{"base64":"yO2rw/c4TKO2jauSqRR4ow==","subType":"04"}}}`
	for _, u := range []string{"c8edabc3-f738-4ca3-b68d-ab92a91478a3", "C8EDABC3-F738-4CA3-B68D-AB92A91478A3", "c8edabc3f7384ca3b68dab92a91478a3"} {
		if v, err := ParseExtJSON([]byte(`{"Binary":{"$uuid":"`+u+`"}}`), false); err != nil || v.String() != want {
			t.Errorf("%s: %v, %v", u, v, err)
		}
	}
}

// TestProseExtendedJSONNesting: 200 levels of documents are read and written, with wrappers at the bottom.
func TestProseExtendedJSONNesting(t *testing.T) {
	text := strings.Repeat(`{"a":`, MaxDepth) + `{"$binary":{"base64":"","subType":"00"}}` + strings.Repeat(`}`, MaxDepth)
	v, err := ParseExtJSON([]byte(text), true)
	if err != nil || v.String() != text {
		t.Errorf("%.80v, %v", v, err)
	}
}

// TestProseDecimal128FromString: the examples and notes of "From String Representation", and the exceptions.
func TestProseDecimal128FromString(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "12": "12", "-76": "-76", "12.70": "12.70", "+0.003": "0.003", "017.": "17", ".5": "0.5", "4E+9": "4E+9", "0.73e-7": "7.3E-8",
		"Inf": "Infinity", "-infinity": "-Infinity", "NaN": "NaN", "-nan": "NaN", "+INF": "Infinity",
		"1E6112":  "1.0E+6112", // clamping
		"0E+9999": "0E+6111", "0E-9999": "0E-6176",
		"1" + strings.Repeat("0", 40): "1.000000000000000000000000000000000E+40", // exact rounding
		"10E-6177":                    "1E-6176",
	} {
		if d, err := ParseDecimal128(text); err != nil || d.String() != want {
			t.Errorf("%q: %v, %v, want %s", text, d, err, want)
		}
	}
	for what, text := range map[string]string{
		"period alone": ".", "signed period": "+.", "sign alone": "-", "empty": "", "blank": " 1", "blank behind": "1 ", "two signs": "--1", "two periods": "1.2.3",
		"no exponent": "1E", "no digits": "E1", "letters": "1x", "overflow": "1E6145", "underflow": "1E-6177", "inexact": "1" + strings.Repeat("0", 33) + "1.5",
		"fractional exponent": "1E1.5", "other digits": "١", "huge exponent": "1E" + strings.Repeat("9", 40), "infinite exponent": "1Einf",
	} {
		if d, err := ParseDecimal128(text); err == nil {
			t.Errorf("%s: %q is %v", what, text, d)
		}
	}
}

// TestProseDecimal128ToString: the rules for exponents, and every special value.
func TestProseDecimal128ToString(t *testing.T) {
	for want, hl := range map[string][2]uint64{
		"Infinity": {0x7800000000000000, 0}, "-Infinity": {0xf800000000000000, 0}, "NaN": {0x7c00000000000000, 0},
		"0.000001": {0x3034000000000000, 1}, "1E-7": {0x3032000000000000, 1}, "1.2E+4": {0x3046000000000000, 12}, "-0": {0xb040000000000000, 0},
	} {
		if got := NewDecimal128(hl[0], hl[1]).String(); got != want {
			t.Errorf("%x is %s, want %s", hl, got, want)
		}
	}
	for _, hl := range [][2]uint64{{0xfc00000000000000, 0}, {0x7e00000000000000, 0}, {0xfe00000000000000, 0}, {0x7c00000000000000, 7}} {
		if got := NewDecimal128(hl[0], hl[1]).String(); got != "NaN" {
			t.Errorf("%x is %s", hl, got)
		}
	}
	// A coefficient of more than 34 digits stands for zero.
	for _, hl := range [][2]uint64{{0x6C10000000000000, 0}, {0x3041ed09bead87c0, 0x378d8e6400000000}} {
		if got := NewDecimal128(hl[0], hl[1]).String(); !strings.HasPrefix(got, "0") {
			t.Errorf("%x is %s", hl, got)
		}
	}
	if d, err := ParseDecimal128("1.50"); err != nil || !reflect.DeepEqual(mustMarshal(t, D{{"d", d}}).Lookup("d").Decimal128(), d) {
		t.Errorf("a round trip changes %v", d)
	}
}
