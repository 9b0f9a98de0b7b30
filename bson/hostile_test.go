package bson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// made returns what a test puts into it, as a whole document and as a value.
type made struct{ data []byte }

func (m made) MarshalBSON() ([]byte, error) { return m.data, nil }

type madeValue struct {
	t    Type
	data []byte
}

func (m madeValue) MarshalBSONValue() (byte, []byte, error) { return byte(m.t), m.data, nil }

type registeredRubbish struct{ v RawValue }

// deep is a document of n levels.
func deep(n int) []byte {
	b := []byte{5, 0, 0, 0, 0}
	for range n - 1 {
		b = EndDocument(append(append([]byte{0, 0, 0, 0}, 3, 'a', 0), b...), 0)
	}
	return b
}

func TestMarshalersThatReturnRubbishAreRefused(t *testing.T) {
	Register(func(r registeredRubbish) (RawValue, error) { return r.v, nil }, nil)
	for what, v := range map[string]any{
		"nothing": made{}, "too short": made{[]byte{1}}, "too long": made{[]byte{5, 0, 0, 0, 0, 0}}, "length too large": made{[]byte{9, 0, 0, 0, 0}}, "huge length": made{[]byte{0xff, 0xff, 0xff, 0x7f, 0}},
		"negative length": made{[]byte{0xff, 0xff, 0xff, 0xff, 0}}, "no terminator": made{[]byte{5, 0, 0, 0, 1}}, "bytes behind": made{[]byte{6, 0, 0, 0, 0, 0}}, "string cut off": made{[]byte{8, 0, 0, 0, 2, 0, 1, 0}},
		"no UTF-8": made{[]byte("\x0e\x00\x00\x00\x02s\x00\x02\x00\x00\x00\xff\x00\x00")}, "too deep": made{deep(MaxDepth)},
		"no type": madeValue{}, "unknown type": madeValue{0x99, nil}, "int32 of one byte": madeValue{TypeInt32, []byte{1}}, "int32 of five": madeValue{TypeInt32, make([]byte, 5)}, "boolean 2": madeValue{TypeBoolean, []byte{2}},
		"string too long": madeValue{TypeString, []byte{9, 0, 0, 0, 'a', 0}}, "string without NUL": madeValue{TypeString, []byte{2, 0, 0, 0, 'a', 1}}, "regex without end": madeValue{TypeRegex, []byte("a\x00b")},
		"old binary": madeValue{TypeBinary, []byte{5, 0, 0, 0, 2, 9, 0, 0, 0, 1}}, "code": madeValue{TypeCodeWithScope, []byte{14, 0, 0, 0, 9, 0, 0, 0, 0, 5, 0, 0, 0, 0}},
		"registered": registeredRubbish{RawValue{TypeEmbeddedDocument, []byte{8, 0, 0, 0, 2, 0, 1, 0}}}, "registered without type": registeredRubbish{},
	} {
		for _, place := range []any{D{{"v", v}}, M{"v": v}, struct{ V any }{v}, D{{"v", A{v}}}, map[string]any{"v": v}} {
			b, err := Marshal(place)
			var ee *EncodeError
			if !errors.As(err, &ee) || !strings.HasPrefix(ee.Path(), "v") {
				t.Errorf("%s in %T: %x, %v", what, place, b, err)
			}
		}
		before := []byte("before")
		if got, err := Append(before, D{{"a", 1}, {"v", v}}); err == nil || !bytes.Equal(got, before) {
			t.Errorf("%s: after the error the buffer is %x, %v", what, got, err)
		}
	}
	if _, err := Marshal(made{deep(MaxDepth)}); err != nil {
		t.Errorf("a whole document of the greatest depth: %v", err)
	}
}

type envelopeOf struct {
	Kind    string
	Payload any
	Named   fmt.Stringer
}

type invoice struct{ Total int }

func (i *invoice) String() string { return fmt.Sprint(i.Total) }

func TestAFieldThatHoldsAPointerIsDecodedIntoWhatItPointsTo(t *testing.T) {
	doc := mustMarshal(t, D{{"kind", "invoice"}, {"payload", D{{"total", 7}}}, {"named", D{{"total", 8}}}})
	payload, named := &invoice{1}, &invoice{2}
	e := envelopeOf{Payload: payload, Named: named}
	if err := Unmarshal(doc, &e); err != nil || payload.Total != 7 || named.Total != 8 || e.Payload != any(payload) {
		t.Errorf("%+v, %+v, %v", payload, named, err)
	}
	if err := Unmarshal(mustMarshal(t, D{{"payload", D{{"total", "x"}}}}), &e); err == nil || !strings.Contains(err.Error(), "payload.total: cannot decode string into int") {
		t.Errorf("%v", err)
	}
	if err := Unmarshal(mustMarshal(t, D{{"payload", nil}}), &e); err != nil || *payload != (invoice{}) {
		t.Errorf("null: %+v, %v", payload, err)
	}
	for _, held := range []any{(*invoice)(nil), invoice{1}, 5, nil} { // none of which can take anything
		e := envelopeOf{Payload: held}
		if err := Unmarshal(mustMarshal(t, D{{"payload", "x"}}), &e); err != nil || e.Payload != "x" {
			t.Errorf("%#v becomes %#v, %v", held, e.Payload, err)
		}
	}
	var self any
	self = &self
	loop := envelopeOf{Payload: self}
	if err := Unmarshal(mustMarshal(t, D{{"payload", D{{"total", 7}}}}), &loop); err != nil || !reflect.DeepEqual(self, D{{"total", int32(7)}}) {
		t.Errorf("a pointer to itself: %v, %v", self, err)
	}
}

type (
	namedByte   byte
	namedBytes  []byte
	namedDigest [2]byte
)

func TestTypesMadeOfBytesTakeWhatTheyStandFor(t *testing.T) {
	expect(t, namedBytes{1, 2}, []byte{1, 2})
	expect(t, []byte{1, 2}, namedBytes{1, 2})
	expect(t, A{1, 2}, namedBytes{1, 2})
	expect(t, A{1, 2}, [2]byte{1, 2})
	expect(t, A{1}, namedDigest{1, 0})
	expect(t, []byte{1, 2}, namedDigest{1, 2})
	expect(t, []namedByte{1, 2}, A{int32(1), int32(2)})
	expect(t, Symbol("s"), []byte("s"))
	refuse[[]byte](t, A{1, 2})
	refuse[namedBytes](t, A{300})
	refuse[[2]byte](t, A{1, 2, 3})
	refuse[namedBytes](t, Symbol("s"))
	refuse[[]namedByte](t, []byte{1})
	for o, want := range map[Options]Type{{}: TypeNull, {NilSliceAsEmpty: true}: TypeBinary, {NilByteSliceAsEmpty: true}: TypeNull} {
		if v, err := o.ValueOf(namedBytes(nil)); err != nil || v.Type != want {
			t.Errorf("%+v: a nil slice of a named type is %v, %v", o, v.Type, err)
		}
	}
}

func TestTextsConvertAsOfficially(t *testing.T) {
	expect(t, "s", Symbol("s"))
	expect(t, []byte("s"), Symbol("s"))
	expect(t, 1e21, json.Number("1000000000000000000000"))
	refuse[Symbol](t, 1)
	if v, err := (Options{IntMinSize: true}).ValueOf(json.Number("1")); err != nil || v.Type != TypeInt32 {
		t.Errorf("%v, %v", v, err)
	}
}
