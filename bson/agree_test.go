package bson

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// samples has a value of every type: as Go value, and as its constructor makes it.
func samples() []struct {
	value any
	raw   RawValue
} {
	id := ObjectID{1, 2}
	d := NewDecimal128(3, 4)
	return []struct {
		value any
		raw   RawValue
	}{
		{1.5, DoubleValue(1.5)},
		{"é", StringValue("é")},
		{D{{"a", int32(1)}, {"b", D{{"c", A{true, "x"}}}}}, DocumentValue(sample())},
		{A{true, "x"}, ArrayValue(NewRawArray(BooleanValue(true), StringValue("x")))},
		{Binary{7, []byte{1}}, BinaryValue(7, []byte{1})},
		{Binary{TypeBinaryBinaryOld, []byte{1}}, BinaryValue(TypeBinaryBinaryOld, []byte{1})},
		{Undefined{}, UndefinedValue()},
		{id, ObjectIDValue(id)},
		{false, BooleanValue(false)},
		{DateTime(-5), DateTimeValue(-5)},
		{Regex{"a", "ix"}, RegexValue("a", "xi")},
		{DBPointer{"n", id}, DBPointerValue("n", id)},
		{JavaScript("f"), JavaScriptValue("f")},
		{Symbol("s"), SymbolValue("s")},
		{CodeWithScope{"f", D{}}, CodeWithScopeValue("f", nil)},
		{int32(7), Int32Value(7)},
		{Timestamp{1, 2}, TimestampValue(1, 2)},
		{int64(7), Int64Value(7)},
		{d, Decimal128Value(d)},
		{MinKey{}, MinKeyValue()},
		{MaxKey{}, MaxKeyValue()},
	}
}

// holds decodes a document {v: raw} into a struct with a field of exactly the type of value.
func holds(t *testing.T, doc Raw, value any) any {
	t.Helper()
	st := reflect.StructOf([]reflect.StructField{{Name: "V", Type: reflect.TypeOf(value)}})
	p := reflect.New(st)
	if err := Unmarshal(doc, p.Interface()); err != nil {
		t.Error(err)
	}
	return p.Elem().Field(0).Interface()
}

func TestAllWaysToWriteAndReadAgree(t *testing.T) {
	for _, s := range samples() {
		if err := s.raw.Validate(); err != nil {
			t.Errorf("%T: %v", s.value, err)
		}
		if v, err := ValueOf(s.value); err != nil || !v.Equal(s.raw) {
			t.Errorf("%T: ValueOf gives %v, the constructor %v, error %v", s.value, v, s.raw, err)
		}
		field := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "V", Type: reflect.TypeOf(s.value)}})).Elem()
		field.Field(0).Set(reflect.ValueOf(s.value))
		doc := mustMarshal(t, field.Interface())
		if got := doc.Lookup("v"); !got.Equal(s.raw) {
			t.Errorf("%T: a struct's field gives %v, the constructor %v", s.value, got, s.raw)
		}
		byAny, err := AppendAny(nil, "k", s.value)
		if err != nil || string(byAny) != string(AppendValue(nil, "k", s.raw)) {
			t.Errorf("%T: AppendAny gives %x, error %v", s.value, byAny, err)
		}
		if got := s.raw.Any(); !reflect.DeepEqual(got, s.value) {
			t.Errorf("Any gives %#v, want %#v", got, s.value)
		}
		if got := holds(t, doc, s.value); !reflect.DeepEqual(got, s.value) {
			t.Errorf("a field of its type holds %#v, want %#v", got, s.value)
		}
		var kept struct{ V RawValue }
		if err := Unmarshal(doc, &kept); err != nil || !kept.V.Equal(s.raw) {
			t.Errorf("a RawValue holds %v, error %v", kept.V, err)
		}
		others := mustMarshal(t, struct{ V int64 }{1 << 40})
		if s.raw.Type != TypeInt64 && s.raw.Type != TypeBoolean && s.raw.Type != TypeDouble && s.raw.Type != TypeInt32 {
			p := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "V", Type: reflect.TypeOf(s.value)}}))
			err := Unmarshal(others, p.Interface())
			if want := "bson: v: cannot decode 64-bit integer into "; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%T takes an int64: %v", s.value, err)
			}
		}
	}
}

func TestPlainAccessorsReturnTheValueOrPanic(t *testing.T) {
	accessors := map[Type]func(RawValue) any{
		TypeDouble:           func(v RawValue) any { return v.Double() },
		TypeString:           func(v RawValue) any { return v.StringValue() },
		TypeEmbeddedDocument: func(v RawValue) any { return DocumentValue(v.Document()).Any() },
		TypeArray:            func(v RawValue) any { return ArrayValue(v.Array()).Any() },
		TypeBinary:           func(v RawValue) any { s, b := v.Binary(); return Binary{s, b} },
		TypeObjectID:         func(v RawValue) any { return v.ObjectID() },
		TypeBoolean:          func(v RawValue) any { return v.Boolean() },
		TypeDateTime:         func(v RawValue) any { return NewDateTimeFromTime(v.Time()) },
		TypeRegex:            func(v RawValue) any { p, o := v.Regex(); return Regex{p, o} },
		TypeDBPointer:        func(v RawValue) any { n, id := v.DBPointer(); return DBPointer{n, id} },
		TypeJavaScript:       func(v RawValue) any { return JavaScript(v.JavaScript()) },
		TypeSymbol:           func(v RawValue) any { return Symbol(v.Symbol()) },
		TypeCodeWithScope: func(v RawValue) any {
			c, s := v.CodeWithScope()
			return CodeWithScope{JavaScript(c), DocumentValue(s).Any()}
		},
		TypeInt32:      func(v RawValue) any { return v.Int32() },
		TypeTimestamp:  func(v RawValue) any { s, i := v.Timestamp(); return Timestamp{s, i} },
		TypeInt64:      func(v RawValue) any { return v.Int64() },
		TypeDecimal128: func(v RawValue) any { return v.Decimal128() },
	}
	for _, s := range samples() {
		get, ok := accessors[s.raw.Type]
		if !ok {
			continue
		}
		if got := get(s.raw); !reflect.DeepEqual(got, s.value) {
			t.Errorf("got %#v, want %#v", got, s.value)
		}
		for _, bad := range []RawValue{{}, NullValue(), {s.raw.Type, nil}} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("the accessor of %v takes %v %x", s.raw.Type, bad.Type, bad.Value)
					}
				}()
				get(bad)
			}()
		}
	}
}

func TestAppendTimeCutsToMilliseconds(t *testing.T) {
	at := time.Unix(1, 999_999_999)
	v := RawElement(AppendTime(nil, "t", at)).Value()
	if !v.Equal(TimeValue(at)) || v.DateTime() != 1999 {
		t.Errorf("got %v", v)
	}
}

func TestRawArraysAndElements(t *testing.T) {
	a := NewRawArray(Int32Value(5), StringValue("x"))
	values, err := a.Values()
	if err != nil || len(values) != 2 || a.Len() != 2 || a.Index(1).StringValue() != "x" || !a.Index(2).IsZero() {
		t.Errorf("%v, %v", values, err)
	}
	for i, v := range a.All() {
		if !v.Equal(values[i]) {
			t.Errorf("value %d is %v", i, v)
		}
	}
	es, err := sample().Elements()
	if err != nil || es[1].Key() != "b" || !es[1].Value().Equal(sample().Lookup("b")) || string(NewRawDocument(es...)) != string(sample()) {
		t.Errorf("%v, %v", es, err)
	}
	if a.Validate() != nil || RawArray(a[:8]).Validate() == nil {
		t.Error("Validate is wrong")
	}
	if values, err := RawArray(a[:8]).Values(); err == nil {
		t.Errorf("malformed bytes give %v", values)
	}
}

func TestLookupErrSaysWhatIsMissing(t *testing.T) {
	if v, err := sample().LookupErr("a"); err != nil || v.Int32() != 1 {
		t.Errorf("%v, %v", v, err)
	}
	_, err := sample().LookupErr("b", "z")
	if !errors.Is(err, ErrElementNotFound) || !strings.HasSuffix(err.Error(), "b.z") {
		t.Errorf("got %v", err)
	}
	var bad *ValidationError
	if _, err := (Raw{5, 0, 0, 0, 1}).LookupErr("a"); !errors.As(err, &bad) {
		t.Errorf("got %v", err)
	}
	var d D
	doc, err := Marshal(D{{"a", D{{"b", RawValue{TypeString, []byte{2, 0, 0, 0, 0xff, 0}}}}}}) // raw values are not looked into
	if err != nil {
		t.Fatal(err)
	}
	err = Unmarshal(doc, &d)
	var de *DecodeError
	if !errors.As(err, &de) || !errors.As(err, &bad) || !slices.Equal(de.Keys(), []string{"a", "b"}) {
		t.Errorf("got %v", err)
	}
}
