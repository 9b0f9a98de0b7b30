package bson

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Zip   int32
	Notes []string `bson:",omitempty"`
}

type whole struct {
	ID      ObjectID `bson:"_id"`
	Name    string
	Age     int     `bson:"age,omitempty"`
	Wide    int64   `bson:"wide,minsize"`
	Cut     int     `bson:"cut,truncate"`
	Score   float64 `bson:"score"`
	When    time.Time
	Blob    []byte
	Fixed   [3]byte
	Addr    *inner
	Many    []inner
	Any     any
	Map     map[string]int
	Hidden  string `bson:"-"`
	private string
	Inline  `bson:",inline"`
	Nested
	Rest map[string]any `bson:",inline"`
}

type Inline struct{ X, Y int }
type Nested struct{ Deep bool }

func full() whole {
	return whole{
		ID: ObjectID{1, 2, 3}, Name: "joe", Age: 3, Wide: 7, Score: 1.5,
		When: time.UnixMilli(1700000000123).UTC(), Blob: []byte{1}, Fixed: [3]byte{1, 2, 3},
		Addr: &inner{Zip: 9, Notes: []string{"a", "b"}}, Many: []inner{{Zip: 1}, {Zip: 2}},
		Any: D{{"k", A{int32(1), "x", nil}}}, Map: map[string]int{"one": 1},
		Inline: Inline{4, 5}, Nested: Nested{true}, Rest: map[string]any{"extra": "e"},
	}
}

func mustMarshal(t *testing.T, v any) Raw {
	t.Helper()
	b, err := Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := Raw(b).Validate(); err != nil {
		t.Fatalf("Marshal wrote a malformed document: %v", err)
	}
	return b
}

func TestStructRoundTripsThroughItsTags(t *testing.T) {
	w := full()
	w.private = "stays here"
	b := mustMarshal(t, w)
	w.private = ""
	if byPointer := mustMarshal(t, &w); !bytes.Equal(b, byPointer) {
		t.Error("a struct and a pointer to it are written differently")
	}
	var got whole
	if err := Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, w) {
		t.Errorf("got  %+v\nwant %+v", got, w)
	}
	for key, want := range map[string]Type{"_id": TypeObjectID, "name": TypeString, "wide": TypeInt32, "when": TypeDateTime,
		"blob": TypeBinary, "fixed": TypeBinary, "x": TypeInt32, "nested": TypeEmbeddedDocument, "extra": TypeString,
		"hidden": 0, "private": 0, "inline": 0} {
		if got := b.Lookup(key).Type; got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
}

func TestContainersFollowTheirParent(t *testing.T) {
	b := mustMarshal(t, D{{"d", D{{"x", A{D{{"y", 1}}}}}}})
	var d D
	var m M
	var plain map[string]any
	var a any
	for _, to := range []any{&d, &m, &plain, &a} {
		if err := Unmarshal(b, to); err != nil {
			t.Fatal(err)
		}
	}
	if want := (D{{"d", D{{"x", A{D{{"y", int32(1)}}}}}}}); !reflect.DeepEqual(d, want) || !reflect.DeepEqual(a, any(want)) {
		t.Errorf("D: %#v, any: %#v", d, a)
	}
	if want := (M{"d": M{"x": A{M{"y": int32(1)}}}}); !reflect.DeepEqual(m, want) {
		t.Errorf("M: %#v", m)
	}
	if want := (map[string]any{"d": map[string]any{"x": A{map[string]any{"y": int32(1)}}}}); !reflect.DeepEqual(plain, want) {
		t.Errorf("map: %#v", plain)
	}
}

func TestNilIsNullAndEmptyIsEmpty(t *testing.T) {
	b := mustMarshal(t, struct {
		NilSlice, Slice []int
		NilMap, Map     map[string]int
		NilBytes, Bytes []byte
		Ptr             *int
		D               D
		Any             any
	}{Slice: []int{}, Map: map[string]int{}, Bytes: []byte{}})
	for key, want := range map[string]Type{"nilslice": TypeNull, "slice": TypeArray, "nilmap": TypeNull, "map": TypeEmbeddedDocument,
		"nilbytes": TypeNull, "bytes": TypeBinary, "ptr": TypeNull, "d": TypeNull, "any": TypeNull} {
		if got := b.Lookup(key).Type; got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
}

func TestIntegersTakeTheOfficialWidths(t *testing.T) {
	type widths struct {
		Small        int
		I8           int8
		U16          uint16
		I64          int64
		U32          uint32
		Min, MinWide uint64 `bson:",minsize"`
	}
	b := mustMarshal(t, widths{1, -1, 65535, 1, 1, 1, 1 << 40})
	for key, want := range map[string]Type{"small": TypeInt32, "i8": TypeInt32, "u16": TypeInt32, "i64": TypeInt64, "u32": TypeInt64, "min": TypeInt32, "minwide": TypeInt64} {
		if got := b.Lookup(key).Type; got != want {
			t.Errorf("field %s is %v, want %v", key, got, want)
		}
	}
	if big := mustMarshal(t, struct{ N uint64 }{1 << 40}).Lookup("n").Type; big != TypeInt64 {
		t.Errorf("a wide uint64 is %v", big)
	}
	b = mustMarshal(t, D{{"small", 1}, {"i8", int8(-1)}, {"u16", uint16(65535)}, {"i64", int64(1)}, {"u32", uint32(1)}})
	for key, want := range map[string]Type{"small": TypeInt32, "i8": TypeInt32, "u16": TypeInt32, "i64": TypeInt64, "u32": TypeInt64} {
		if got := b.Lookup(key).Type; got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if _, err := Marshal(D{{"n", uint64(math.MaxUint64)}}); err == nil {
		t.Error("an integer beyond int64 was written")
	}
}

func TestErrorsNameThePathAndTheTypes(t *testing.T) {
	type address struct {
		Zip []int32
	}
	type person struct{ Address []address }
	b := mustMarshal(t, D{{"address", A{D{{"zip", A{"x"}}}}}})
	var p person
	err := Unmarshal(b, &p)
	if want := "bson: address.0.zip.0: cannot decode string into int32"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = Marshal(D{{"a", A{1, D{{"b", make(chan int)}}}}})
	if want := "bson: a.1.b: cannot encode a value of type chan int"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	var ee *EncodeError
	if !errors.As(err, &ee) || ee.Path() != "a.1.b" {
		t.Errorf("the error is %T", err)
	}
}

type foreignID [12]byte
type registeredID [12]byte

func TestForeignObjectIDIsAnErrorUntilRegistered(t *testing.T) {
	_, err := Marshal(D{{"_id", foreignID{1}}})
	if err == nil || !strings.Contains(err.Error(), "RegisterObjectIDType[bson.foreignID]") {
		t.Errorf("got %v", err)
	}
	RegisterObjectIDType[registeredID]()
	b := mustMarshal(t, D{{"_id", registeredID{1, 2}}})
	var back struct {
		ID registeredID `bson:"_id"`
	}
	if err := Unmarshal(b, &back); err != nil || b.Lookup("_id").Type != TypeObjectID || back.ID != (registeredID{1, 2}) {
		t.Errorf("%v, %v, %v", b.Lookup("_id").Type, back, err)
	}
}

func TestTopLevelMustBeADocument(t *testing.T) {
	var nilD D
	for _, v := range []any{nil, 1, "x", A{1}, nilD, (*whole)(nil), M(nil), Raw(nil)} {
		if b, err := Marshal(v); err == nil {
			t.Errorf("Marshal(%#v) = %x", v, b)
		}
	}
	var w whole
	for _, to := range []any{nil, w, (*whole)(nil), map[string]any(nil), 1} {
		if err := Unmarshal(sample(), to); err == nil {
			t.Errorf("Unmarshal into %#v succeeded", to)
		}
	}
}

func TestDepthIsLimited(t *testing.T) {
	var v any = D{}
	for range MaxDepth - 1 {
		v = D{{"a", v}}
	}
	b := mustMarshal(t, v)
	var back D
	if err := Unmarshal(b, &back); err != nil {
		t.Error(err)
	}
	if _, err := Marshal(D{{"a", v}}); err == nil {
		t.Error("one level too many was written")
	}
	deeper := Raw(EndDocument(append(append([]byte{0, 0, 0, 0}, 3, 'a', 0), b...), 0))
	if err := Unmarshal(deeper, &back); err == nil {
		t.Error("one level too many was read")
	}
	if err := deeper.Validate(); err == nil {
		t.Error("one level too many is valid")
	}
	var loop any
	loop = &loop
	type ring struct{ Next *ring }
	r := &ring{}
	r.Next = r
	for _, cyclic := range []any{D{{"x", loop}}, r} {
		if _, err := Marshal(cyclic); err == nil || !strings.Contains(err.Error(), "deeper") {
			t.Errorf("a value that holds itself: %.80v", err)
		}
	}
}
