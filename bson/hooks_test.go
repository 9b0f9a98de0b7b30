package bson

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

type celsius float64

func (c celsius) MarshalBSONValue() (byte, []byte, error) {
	t, b, err := MarshalValue(fmt.Sprintf("%gC", float64(c)))
	return byte(t), b, err
}

func (c *celsius) UnmarshalBSONValue(t byte, b []byte) error {
	var s string
	if err := UnmarshalValue(Type(t), b, &s); err != nil {
		return err
	}
	_, err := fmt.Sscanf(s, "%gC", (*float64)(c))
	return err
}

// envelope marshals by pointer receiver and counts its use.
type envelope struct {
	Body string
	Used int
}

func (e *envelope) MarshalBSON() ([]byte, error) {
	e.Used++
	return Marshal(D{{"wrapped", e.Body}})
}

func (e *envelope) UnmarshalBSON(b []byte) error {
	s, ok := Raw(b).Lookup("wrapped").StringValueOK()
	if !ok {
		return errors.New("no wrapped string")
	}
	e.Body = s
	return nil
}

type broken struct{}

func (broken) MarshalBSONValue() (byte, []byte, error) { return byte(TypeInt64), []byte{1}, nil }

func TestMarshalersAreUsedEverywhere(t *testing.T) {
	type doc struct {
		T    celsius
		P    *celsius
		Nil  *celsius
		Map  map[string]celsius
		List []celsius
		Env  envelope
		Any  any
	}
	c := celsius(2)
	in := doc{T: 1.5, P: &c, Map: map[string]celsius{"x": 3}, List: []celsius{4}, Env: envelope{Body: "b"}, Any: celsius(5)}
	b := mustMarshal(t, in)
	want := `{"t":"1.5C","p":"2C","nil":null,"map":{"x":"3C"},"list":["4C"],"env":{"wrapped":"b"},"any":"5C"}`
	if b.String() != want {
		t.Errorf("got %s, want %s", b, want)
	}
	if in.Env.Used != 0 {
		t.Error("encoding a copy changed the original")
	}
	var back doc
	if err := Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	in.Any = "5C"
	if !reflect.DeepEqual(back, in) {
		t.Errorf("got %+v, want %+v", back, in)
	}
	mustMarshal(t, &in)
	if in.Env.Used != 1 {
		t.Error("a method with a pointer receiver does not see the caller's value")
	}
	if err := Unmarshal(mustMarshal(t, D{{"env", D{}}}), &back); err == nil || !strings.Contains(err.Error(), "env: no wrapped string") {
		t.Errorf("a hook's error: %v", err)
	}
	if _, err := Marshal(D{{"x", broken{}}}); err == nil || !strings.Contains(err.Error(), "MarshalBSONValue of bson.broken") {
		t.Errorf("a hook's malformed value: %v", err)
	}
}

type level int

func (l level) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "L%d", int(l)), nil }
func (l *level) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "L%d", (*int)(l))
	return err
}

func TestMapKeysBecomeText(t *testing.T) {
	type maps struct {
		S map[string]int
		I map[int8]int
		U map[uint]int
		L map[level]int
	}
	in := maps{map[string]int{"a": 1}, map[int8]int{-2: 1}, map[uint]int{3: 1}, map[level]int{4: 1}}
	b := mustMarshal(t, in)
	if want := `{"s":{"a":1},"i":{"-2":1},"u":{"3":1},"l":{"L4":1}}`; b.String() != want {
		t.Errorf("got %s", b)
	}
	var back maps
	if err := Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, in) {
		t.Errorf("got %v, %v", back, err)
	}
	if err := Unmarshal(mustMarshal(t, D{{"i", D{{"300", 1}}}}), &back); err == nil {
		t.Error("a key out of range was read")
	}
	if _, err := Marshal(map[float64]int{1: 1}); err == nil {
		t.Error("keys of float64 were written")
	}
}

type tagged struct {
	Empty  string            `bson:",omitempty"`
	Time   time.Time         `bson:",omitempty"`
	ID     ObjectID          `bson:",omitempty"`
	Struct Inline            `bson:",omitempty"`
	Zero   Inline            `bson:",omitzero"`
	Map    map[string]string `bson:",omitempty"`
	Ptr    *Inline           `bson:",omitempty"`
	PtrID  *ObjectID         `bson:",omitempty"`
	List   []int             `bson:"renamed,omitempty"`
	Plain  int               `other:"x"`
}

func TestOmitTagsLeaveOutWhatIsEmpty(t *testing.T) {
	got := mustMarshal(t, tagged{Map: map[string]string{}, List: []int{}, PtrID: &ObjectID{}}).String()
	if want := `{"struct":{"x":0,"y":0},"plain":0}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

type base struct{ Shared, OnlyBase int }
type Mid struct {
	*base  `bson:",inline"`
	Shared int
}
type pointered struct {
	P     *Inline `bson:",inline"`
	Other int
}

func TestInlineFollowsGoRules(t *testing.T) {
	var p pointered
	if got := mustMarshal(t, p).String(); got != `{"other":0}` {
		t.Errorf("a nil inline pointer: %s", got)
	}
	if err := Unmarshal(mustMarshal(t, D{{"y", 7}}), &p); err != nil || p.P == nil || p.P.Y != 7 {
		t.Errorf("%+v, %v", p, err)
	}
	type shadow struct {
		Inline `bson:",inline"`
		X      string
	}
	if got := mustMarshal(t, shadow{Inline{1, 2}, "mine"}).String(); got != `{"y":2,"x":"mine"}` {
		t.Errorf("the outer field does not hide the inner: %s", got)
	}
	type twice struct {
		A int `bson:"k"`
		B int `bson:"k"`
	}
	type wrong struct {
		A int `bson:",inline"`
	}
	type clash struct {
		A    int
		Rest map[string]int `bson:",inline"`
	}
	for _, v := range []any{twice{}, wrong{}, clash{Rest: map[string]int{"a": 1}}} {
		if b, err := Marshal(v); err == nil {
			t.Errorf("%T gives %s", v, Raw(b))
		}
	}
	if err := Unmarshal(sample(), &twice{}); err == nil {
		t.Error("a struct with one key twice was decoded into")
	}
	if got := mustMarshal(t, Mid{Shared: 1}).String(); got != `{"shared":1}` {
		t.Errorf("an embedded pointer to an unexported struct cannot be set and is left out: %s", got)
	}
}

func TestTagMayBeNothingButTheOptions(t *testing.T) {
	tag := parseTag(reflect.StructField{Name: "Field", Tag: "key,omitempty,unknown"}, false)
	if want := (fieldTag{key: "key", omitEmpty: true}); tag != want {
		t.Errorf("got %+v", tag)
	}
}

func TestFieldNamesFallBackToLowerCase(t *testing.T) {
	var v struct{ Name string }
	if err := Unmarshal(mustMarshal(t, D{{"NAME", "a"}}), &v); err != nil || v.Name != "a" {
		t.Errorf("%q, %v", v.Name, err)
	}
}
