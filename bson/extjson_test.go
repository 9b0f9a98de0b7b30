package bson

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestStringPrintsRelaxedExtendedJSON(t *testing.T) {
	for want, v := range map[string]interface{ String() string }{
		`{"b":1,"a":{"$oid":"010000000000000000000000"}}`:     D{{"b", 1}, {"a", ObjectID{1}}},
		`{"a":{"x":1,"y":[1.0,{"p":1,"q":2}]},"b":null}`:      M{"b": nil, "a": map[string]any{"y": A{1.0, M{"q": 2, "p": 1}}, "x": 1}},
		`[1,"two",{"$date":"2012-12-24T12:15:30.501Z"},true]`: A{1, "two", DateTime(1356351330501), true},
		`{"a":1,"b":{"c":[true,"x"]}}`:                        sample(),
		`{"c":[true,"x"]}`:                                    sample().Lookup("b"),
		`[true,"x"]`:                                          sample().Lookup("b", "c").Array(),
		`{"$timestamp":{"t":7,"i":1}}`:                        TimestampValue(7, 1),
		``:                                                    RawValue{},
	} {
		if got := v.String(); got != want {
			t.Errorf("%T prints\n%s, want\n%s", v, got, want)
		}
	}
	if s := (Raw{9, 0, 0, 0, 1}).String(); !strings.HasPrefix(s, "<malformed") {
		t.Errorf("malformed bytes print %s", s)
	}
	if s := (D{{"c", make(chan int)}}).String(); !strings.Contains(s, "c: cannot encode") {
		t.Errorf("what cannot be encoded prints %s", s)
	}
	if es, err := sample().Elements(); err != nil || es[0].String() != `"a": 1` {
		t.Errorf("%v, %v", es, err)
	}
}

func TestExtendedJSONErrorsSayWhere(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1`:                             "byte 7: the text ends where '}' should be",
		`{"a": tru}`:                          "byte 6: 't' where a value should be",
		`{"a": 01}`:                           "byte 7: '1' where '}' should be",
		`{"a": "` + "\x01" + `"}`:             "control character",
		`{"a": "\ud800"}`:                     "half of a surrogate pair",
		`{"a": "` + "\xff" + `"}`:             "not UTF-8",
		`{"a": 1} x`:                          "unexpected 'x' after the value",
		``:                                    "byte 0: the text ends",
		`{"a": [1, {"$oid": "x"}]}`:           "bson: a.1: ",
		`{"a": {"$date": "yesterday"}}`:       `a: $date needs a date`,
		`{"a": {"$numberInt": "3000000000"}}`: "integer of 32 bits",
		`{"a": {"$numberDouble": "0x1p4"}}`:   "$numberDouble needs",
		`{"a": {"$scope": {}}}`:               "$code is missing",
		`{"a": {"$oid": "5f", "$oid": "5f"}}`: "no other keys",
		strings.Repeat(`{"a":`, 201) + "1" + strings.Repeat("}", 201): "deeper",
		strings.Repeat(`[`, 100000):                                   "deeper",
	} {
		var d D
		err := UnmarshalExtJSON([]byte(text), false, &d)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got %.200v, want %s", text, err, want)
		}
	}
}

func TestCanonicalOnlyRefusesRelaxedForms(t *testing.T) {
	var d D
	for _, text := range []string{`{"a": 1}`, `{"a": {"$date": "1970-01-01T00:00:00Z"}}`} {
		if err := UnmarshalExtJSON([]byte(text), true, &d); err == nil {
			t.Errorf("%s was read as canonical", text)
		}
		if err := UnmarshalExtJSON([]byte(text), false, &d); err != nil {
			t.Error(err)
		}
	}
}

func TestJSONNumbersTakeTheSmallestType(t *testing.T) {
	var d D
	text := `{"a": 1, "b": 2147483648, "c": 1.0, "d": 9223372036854775808, "e": -0, "f": 1e2}`
	if err := UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, e := range d {
		types = append(types, reflect.TypeOf(e.Value).String())
	}
	if got := strings.Join(types, " "); got != "int32 int64 float64 float64 int32 float64" {
		t.Errorf("got %s", got)
	}
}

func TestIndentedExtendedJSON(t *testing.T) {
	got, err := MarshalExtJSONIndent(D{{"a", int64(1)}}, true, false, "", "  ")
	want := "{\n  \"a\": {\n    \"$numberLong\": \"1\"\n  }\n}"
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	if got, _ := MarshalExtJSON(D{{"a", "<&\u2028"}}, false, true); string(got) != `{"a":"\u003c\u0026\u2028"}` {
		t.Errorf("with escapes for HTML: %s", got)
	}
}

func TestPlainJSONKeepsTheOrder(t *testing.T) {
	const text = `{"z":1,"a":[true,{"y":null,"b":"x"}]}`
	var d D
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(d); err != nil || string(got) != text {
		t.Errorf("got %s, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`[1]`), &d); err == nil {
		t.Error("an array was read into a D")
	}
}
