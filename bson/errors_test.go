package bson

import (
	"errors"
	"strings"
	"testing"
)

func TestPathsNameEmptyKeys(t *testing.T) {
	inner := D{{"", D{{"a", make(chan int)}}}}
	_, err := Marshal(inner)
	wantError(t, err, `bson: "".a: cannot encode a value of type chan int`)
	var e *EncodeError
	if !errors.As(err, &e) || e.Path() != `"".a` || len(e.Keys()) != 2 || e.Keys()[0] != "" {
		t.Errorf("path %q, keys %q", e.Path(), e.Keys())
	}
	var v map[string]map[string]int
	wantError(t, Unmarshal(mustMarshal(t, D{{"", D{{"", "text"}}}}), &v), `bson: "".""`)
	wantError(t, UnmarshalExtJSON([]byte(`{"":1}`), true, &D{}), `bson: "": the number 1 is not canonical`)
	doc := mustMarshal(t, D{{"", D{{"x", true}}}})
	doc[len(doc)-3] = 7
	wantError(t, doc.Validate(), `at "".x: boolean`)
}

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want %s", err, text)
	}
}

// TestLongPathsAreShortened: a value that holds itself has a path of as many keys as documents may nest.
func TestLongPathsAreShortened(t *testing.T) {
	m := M{}
	m["a"] = m
	_, err := Marshal(m)
	wantError(t, err, "bson: a.a.a.a.a.a.a.a ... a.a.a.a (200 levels): nested deeper than 200")
	var e *EncodeError
	if !errors.As(err, &e) || len(e.Keys()) != MaxDepth || e.Path() != "a"+strings.Repeat(".a", MaxDepth-1) {
		t.Errorf("the path itself is %q", e.Path())
	}
	deep := Raw{5, 0, 0, 0, 0}
	for range MaxDepth {
		deep = NewRawDocument(AppendDocument(nil, "b", deep))
	}
	for _, err := range []error{Unmarshal(deep, &D{}), deep.Validate()} {
		wantError(t, err, "b.b.b.b.b.b.b.b ... b.b.b.b (200 levels): nested deeper than 200")
		if len(err.Error()) > 120 {
			t.Errorf("an error of %d bytes: %v", len(err.Error()), err)
		}
	}
	keys := strings.Split("1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18.19.20.21.22.23.24", ".")
	if got := shortPath(keys); got != strings.Join(keys, ".") {
		t.Errorf("24 keys are shown as %s", got)
	}
	if got := shortPath(append(keys, "25")); got != "1.2.3.4.5.6.7.8 ... 22.23.24.25 (25 levels)" {
		t.Errorf("25 keys are shown as %s", got)
	}
}

// TestChecksAreThoseOfTheDocumentation decodes what is malformed inside: a field finds that, what is stepped over or stays raw
// does not, Validate does.
func TestChecksAreThoseOfTheDocumentation(t *testing.T) {
	inner := mustMarshal(t, D{{"s", "x"}})
	inner[len(inner)-3] = 0xff
	deep := Raw{5, 0, 0, 0, 0}
	for range MaxDepth {
		deep = NewRawDocument(AppendDocument(nil, "b", deep))
	}
	for what, in := range map[string]Raw{"UTF-8": inner, "deeper": deep} {
		doc := Raw(NewRawDocument(AppendDocument(nil, "v", in)))
		if err := Unmarshal(doc, &struct{ Z int }{}); err != nil {
			t.Errorf("%s, no field: %v", what, err)
		}
		if err := Unmarshal(doc, &struct{ V Raw }{}); err != nil {
			t.Errorf("%s, raw: %v", what, err)
		}
		for _, err := range []error{Unmarshal(doc, &D{}), Unmarshal(doc, &struct{ V any }{}), doc.Validate()} {
			wantError(t, err, what)
		}
		cut := append(Raw(nil), doc...)
		cut[7]++ // the outer length of what is stepped over
		wantError(t, Unmarshal(cut, &struct{ Z int }{}), "does not fit")
	}
	key := Raw("\x08\x00\x00\x00\x0a\xff\x00\x00")
	if err := Unmarshal(key, &struct{ Z int }{}); err != nil {
		t.Errorf("a key that no field has: %v", err)
	}
	wantError(t, key.Validate(), "UTF-8")
	_, err := Marshal(D{{"r", inner}})
	_, made := Marshal(D{{"r", returns(inner)}})
	if err != nil {
		t.Errorf("the inside of a Raw is not looked at: %v", err)
	}
	wantError(t, made, "UTF-8")
}

// returns is a Marshaler that gives its bytes.
type returns []byte

func (r returns) MarshalBSON() ([]byte, error) { return r, nil }

// TestExtJSONErrorsSayWhere: malformed JSON has a position, what is wrong inside well-formed JSON has keys.
func TestExtJSONErrorsSayWhere(t *testing.T) {
	deep := strings.Repeat("[", maxJSONDepth+1)
	for text, want := range map[string]string{
		`{"a":1,}`: "byte 7", `{"a":tru}`: "byte 5", `{"a":1} x`: "byte 8", ``: "byte 0", `{"a":"\ud800"}`: "byte 12", deep: "byte 204",
	} {
		err := UnmarshalExtJSON([]byte(text), false, &D{})
		wantError(t, err, want)
		if e := (*DecodeError)(nil); errors.As(err, &e) {
			t.Errorf("%s: a path %q", text, e.Path())
		}
	}
	for text, path := range map[string]string{`{"a":{"b":{"$oid":1}}}`: "a.b", `{"a":[0,{"$numberInt":"x"}]}`: "a.1", `{"a":{"c\u0000":1}}`: "a"} {
		err := UnmarshalExtJSON([]byte(text), false, &D{})
		if e := (*DecodeError)(nil); !errors.As(err, &e) || e.Path() != path {
			t.Errorf("%s: %v", text, err)
		}
	}
}
