package bson

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

type small struct {
	X int `bson:"x"`
}

type switched struct {
	S []string
	M map[string]int
	B []byte
	D D
	N int64
	Z small  `bson:",omitempty"`
	J string `json:"jay,omitempty"`
}

func TestEachEncodingSwitchChangesWhatItSays(t *testing.T) {
	base := `{"s":null,"m":null,"b":null,"d":null,"n":{"$numberLong":"1"},"z":{"x":{"$numberInt":"0"}},"j":""}`
	for _, c := range []struct {
		o        Options
		from, to string
	}{
		{Options{}, "", ""},
		{Options{NilSliceAsEmpty: true}, `"s":null,"m":null,"b":null,"d":null`, `"s":[],"m":null,"b":null,"d":{}`},
		{Options{NilMapAsEmpty: true}, `"m":null`, `"m":{}`},
		{Options{NilByteSliceAsEmpty: true}, `"b":null`, `"b":{"$binary":{"base64":"","subType":"00"}}`},
		{Options{OmitEmpty: true}, `"s":null,"m":null,"b":null,"d":null,`, ``},
		{Options{OmitZeroStruct: true}, `"z":{"x":{"$numberInt":"0"}},`, ``},
		{Options{IntMinSize: true}, `{"$numberLong":"1"}`, `{"$numberInt":"1"}`},
		{Options{UseJSONStructTags: true}, `,"j":""`, ``},
	} {
		want := strings.Replace(base, c.from, c.to, 1)
		if c.o.OmitEmpty {
			want = strings.Replace(strings.Replace(want, `,"j":""`, "", 1), `"x":{"$numberInt":"0"}`, "", 1)
		}
		b, err := c.o.Marshal(switched{N: 1})
		if err != nil {
			t.Fatal(err)
		}
		got, err := MarshalExtJSON(Raw(b), true, false)
		if err != nil || string(got) != want {
			t.Errorf("%+v\ngot  %s\nwant %s, %v", c.o, got, want, err)
		}
		doc, err := c.o.Append([]byte("x"), D{{"v", switched{N: 1}}, {"n", int64(1)}})
		if err != nil || !Raw(doc[1:]).Lookup("v").Equal(DocumentValue(b)) || (Raw(doc[1:]).Lookup("n").Type == TypeInt32) != c.o.IntMinSize {
			t.Errorf("%+v: inside a D: %v, %v", c.o, Raw(doc[1:]), err)
		}
	}
	type key struct{ A int }
	if b, err := (Options{StringifyMapKeysWithFmt: true}).Marshal(map[key]int{{1}: 2}); err != nil || Raw(b).String() != `{"{1}":2}` {
		t.Errorf("%s, %v", Raw(b), err)
	}
	type shadow struct {
		small `bson:",inline"`
		Y     string `bson:"x"`
	}
	if _, err := (Options{ErrorOnInlineDuplicates: true}).Marshal(shadow{}); err == nil || !strings.Contains(err.Error(), `two fields with the key "x"`) {
		t.Errorf("got %v", err)
	}
}

func TestEachDecodingSwitchChangesWhatItSays(t *testing.T) {
	doc := mustMarshal(t, D{{"f", 1.5}, {"b", Binary{0, []byte{1}}}, {"id", ObjectID{1}}, {"t", DateTime(5)}, {"d", D{{"x", int32(1)}}}})
	into := func(o Options, v any) any {
		t.Helper()
		if err := o.Unmarshal(doc, v); err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		return reflect.ValueOf(v).Elem().Interface()
	}
	var f struct{ F int }
	if err := Unmarshal(doc, &f); err == nil {
		t.Error("1.5 went into an int")
	}
	into(Options{AllowTruncatingDoubles: true}, &f)
	var id struct{ ID string }
	if err := Unmarshal(doc, &id); err == nil {
		t.Error("an ObjectID went into a string")
	}
	into(Options{ObjectIDAsHexString: true}, &id)
	if f.F != 1 || id.ID != "010000000000000000000000" {
		t.Errorf("%v, %v", f, id)
	}
	var b struct{ B any }
	if into(Options{BinaryAsSlice: true}, &b); !reflect.DeepEqual(b.B, []byte{1}) {
		t.Errorf("got %#v", b.B)
	}
	var at struct{ T time.Time }
	if into(Options{UseLocalTimeZone: true}, &at); at.T.Location() != time.Local || at.T.UnixMilli() != 5 {
		t.Errorf("got %v", at.T)
	}
	m := M{"old": 1}
	if into(Options{ZeroMaps: true}, &m); len(m) != 5 {
		t.Errorf("got %v", m)
	}
	st := struct{ Old, F any }{Old: 1}
	if into(Options{ZeroStructs: true}, &st); st.Old != nil || st.F != 1.5 {
		t.Errorf("got %v", st)
	}
	for kind, want := range map[DocumentType][3]any{
		DocumentsLikeParent: {D{{"x", int32(1)}}, M{"x": int32(1)}, map[string]any{"x": int32(1)}},
		DocumentsAsD:        {D{{"x", int32(1)}}, D{{"x", int32(1)}}, D{{"x", int32(1)}}},
		DocumentsAsM:        {M{"x": int32(1)}, M{"x": int32(1)}, M{"x": int32(1)}},
		DocumentsAsMap:      {map[string]any{"x": int32(1)}, map[string]any{"x": int32(1)}, map[string]any{"x": int32(1)}},
	} {
		o := Options{Documents: kind}
		got := [3]any{into(o, &struct{ D any }{}), into(o, &M{}).(M)["d"], into(o, &map[string]any{}).(map[string]any)["d"]}
		got[0] = reflect.ValueOf(got[0]).Field(0).Interface()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d: got %#v", kind, got)
		}
	}
}

func TestStringsKeepTheirTextHoweverTheyAreStored(t *testing.T) {
	long := strings.Repeat("long", 3000)
	want := []D{}
	for i := range 200 {
		want = append(want, D{{"key", fmt.Sprint("text", i)}, {"n", int32(i)}, {"l", A{long[:i*40], 1.5, int64(i)}}})
	}
	for _, memory := range []StringMemory{StringsInChunks, StringsCopied, StringsAliased} {
		batch := Options{Strings: memory}.NewBatch()
		var got []D
		for _, d := range want {
			var x D
			if err := batch.Unmarshal(mustMarshal(t, d), &x); err != nil {
				t.Fatal(err)
			}
			got = append(got, x)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("memory %d: the documents of a batch changed", memory)
		}
	}
	doc := mustMarshal(t, D{{"s", "text"}})
	var shared, own struct{ S string }
	if err := (Options{Strings: StringsAliased}).Unmarshal(doc, &shared); err != nil {
		t.Fatal(err)
	}
	if err := Unmarshal(doc, &own); err != nil || own.S != "text" {
		t.Fatal(own, err)
	}
	doc[len(doc)-6] = 'T'
	if own.S != "text" {
		t.Error("a string shares bytes with the document though it should not")
	}
}

type foreign struct{ hidden string }

func TestRegisteredTypesAreWrittenAndReadByTheirFunctions(t *testing.T) {
	type doc struct {
		F foreign
		L []foreign
		M map[string]foreign
		P *foreign
		A any
	}
	in := doc{F: foreign{"a"}, L: []foreign{{"b"}}, M: map[string]foreign{"k": {"c"}}, P: &foreign{"d"}}
	if b := mustMarshal(t, in); b.Lookup("f").Type != TypeEmbeddedDocument {
		t.Fatalf("before it is registered: %v", b)
	}
	Register(func(f foreign) (RawValue, error) { return StringValue("~" + f.hidden), nil }, func(v RawValue) (foreign, error) {
		s, ok := v.StringValueOK()
		if !ok {
			return foreign{}, errors.New("no string")
		}
		return foreign{s[1:]}, nil
	})
	in.A = foreign{"e"}
	b := mustMarshal(t, in)
	if want := `{"f":"~a","l":["~b"],"m":{"k":"~c"},"p":"~d","a":"~e"}`; b.String() != want {
		t.Errorf("got %s", b)
	}
	var out doc
	in.A = "~e"
	if err := Unmarshal(b, &out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%+v, %v", out, err)
	}
	if err := Unmarshal(mustMarshal(t, D{{"f", 1}}), &out); err == nil || err.Error() != "bson: f: no string" {
		t.Errorf("got %v", err)
	}
	if b, err := Marshal(D{{"x", foreign{"y"}}, {"n", 1}, {"d", D{{"s", "t"}}}}); err != nil || Raw(b).String() != `{"x":"~y","n":1,"d":{"s":"t"}}` {
		t.Errorf("%s, %v", Raw(b), err)
	}
	defer func() {
		if recover() == nil {
			t.Error("an interface was registered")
		}
	}()
	Register[error](nil, nil)
}

type counted int

func TestRegisteringWhileOthersWorkIsSafe(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				o := Options{IntMinSize: i%2 == 0}
				b, err := o.Marshal(struct{ C counted }{counted(i)})
				if err != nil {
					t.Error(err)
				}
				var back struct{ C counted }
				if err := Unmarshal(b, &back); err != nil || back.C != counted(i) {
					t.Error(back, err)
				}
			}
		})
	}
	for range 20 {
		Register(func(c counted) (RawValue, error) { return Int64Value(int64(c)), nil }, nil)
	}
	wg.Wait()
}
