package bson

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestStreamOfDocumentsRoundTrips(t *testing.T) {
	for _, memory := range []StringMemory{StringsInChunks, StringsCopied, StringsAliased} {
		var buf bytes.Buffer
		enc := NewEncoder(&buf)
		want := []D{{{"a", "x"}}, {}, {{"long", strings.Repeat("é", 100_000)}}, {{"b", D{{"c", A{"y", int32(1)}}}}}}
		for _, d := range want {
			if err := enc.Encode(d); err != nil {
				t.Fatal(err)
			}
		}
		if err := enc.Encode(1); err == nil {
			t.Error("a number was written as a document")
		}
		dec := Options{Strings: memory}.NewDecoder(iotest.OneByteReader(&buf))
		var got []D
		for {
			var d D
			err := dec.Decode(&d)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, d)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("memory %d: got %.200v", memory, got)
		}
	}
}

func TestDecoderSaysWhatIsWrongWithAStream(t *testing.T) {
	doc := mustMarshal(t, D{{"a", "x"}})
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"cut in the length":   {doc[:3], "cut off: 3 bytes of 4"},
		"cut in the document": {doc[:9], "cut off: 9 bytes of 14"},
		"too large":           {[]byte{0, 0, 0, 0x7f}, "length prefix 2130706432"},
		"too small":           {[]byte{4, 0, 0, 0}, "length prefix 4"},
	} {
		var d D
		err := NewDecoder(bytes.NewReader(c.data)).Decode(&d)
		if err == nil || !strings.Contains(err.Error(), c.want) || err == io.EOF {
			t.Errorf("%s: %v", name, err)
		}
		if cut := strings.HasPrefix(name, "cut"); errors.Is(err, io.ErrUnexpectedEOF) != cut {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := errors.New("broken pipe")
	if err := NewDecoder(iotest.ErrReader(broken)).Decode(&D{}); !errors.Is(err, broken) {
		t.Errorf("the reader's error became %v", err)
	}
}

func TestDecoderDoesNotReadBeyondADocument(t *testing.T) {
	doc := mustMarshal(t, D{{"a", "x"}})
	r := bytes.NewReader(append(append([]byte{}, doc...), "rest"...))
	if err := NewDecoder(r).Decode(&D{}); err != nil || r.Len() != 4 {
		t.Errorf("%d bytes are left, error %v", r.Len(), err)
	}
}

func TestExtJSONStreamRoundTrips(t *testing.T) {
	for _, canonical := range []bool{true, false} {
		var buf bytes.Buffer
		enc := NewExtJSONEncoder(&buf, canonical, false)
		want := []D{{{"a", int32(1)}}, {{"t", DateTime(5)}, {"s", "<é"}}}
		for i, d := range want {
			if i == 1 {
				enc.SetIndent("", "  ")
			}
			if err := enc.Encode(d); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.Contains(buf.String(), "}\n{\n  \"t\"") {
			t.Errorf("got %s", buf.String())
		}
		dec := NewExtJSONDecoder(&buf, canonical)
		for _, d := range want {
			var got D
			if err := dec.Decode(&got); err != nil || !reflect.DeepEqual(got, d) {
				t.Errorf("got %v, want %v, error %v", got, d, err)
			}
		}
		if err := dec.Decode(&D{}); err != io.EOF {
			t.Errorf("at the end: %v", err)
		}
	}
	if err := NewExtJSONDecoder(strings.NewReader(`{"a":`), false).Decode(&D{}); err == nil || err == io.EOF {
		t.Errorf("a text that is cut off: %v", err)
	}
}

// halfWriter takes half of what it is given and says nothing.
type halfWriter struct{}

func (halfWriter) Write(p []byte) (int, error) { return len(p) / 2, nil }

func TestEncodersReportShortWrites(t *testing.T) {
	broken := errors.New("broken pipe")
	for name, encode := range map[string]func(w io.Writer) error{
		"BSON":                   func(w io.Writer) error { return NewEncoder(w).Encode(D{{"a", 1}}) },
		"Extended JSON":          func(w io.Writer) error { return NewExtJSONEncoder(w, true, false).Encode(D{{"a", 1}}) },
		"indented Extended JSON": func(w io.Writer) error { return indented(w).Encode(D{{"a", 1}}) },
	} {
		if err := encode(halfWriter{}); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%s: half of it was written, error %v", name, err)
		}
		r, w := io.Pipe()
		r.CloseWithError(broken)
		if err := encode(w); !errors.Is(err, broken) {
			t.Errorf("%s: the writer's error became %v", name, err)
		}
	}
}

func indented(w io.Writer) *ExtJSONEncoder {
	e := NewExtJSONEncoder(w, false, false)
	e.SetIndent("", " ")
	return e
}

func TestStreamsWithoutAnEndSaySo(t *testing.T) {
	for want, use := range map[string]func(v any) error{
		"Encoder has no writer":        (&Encoder{}).Encode,
		"Decoder has no reader":        (&Decoder{}).Decode,
		"ExtJSONEncoder has no writer": (&ExtJSONEncoder{}).Encode,
		"ExtJSONDecoder has no reader": (&ExtJSONDecoder{}).Decode,
	} {
		if err := use(&D{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
	_, err := ReadDocument(nil)
	_, err2 := ReadArray(nil)
	for i, err := range []error{err, err2, NewDecoder(nil).Decode(&D{}), NewEncoder(nil).Encode(D{}), NewExtJSONDecoder(nil, true).Decode(&D{}), NewExtJSONEncoder(nil, true, true).Encode(D{})} {
		if err == nil || !strings.Contains(err.Error(), "has no ") {
			t.Errorf("%d made without a reader or writer: error %v", i, err)
		}
	}
}

func TestLookupAndSetOfD(t *testing.T) {
	d := D{{"a", D{{"b", A{M{"c": 1}, map[string]any{"d": 2}}}}}}
	for _, c := range []struct {
		path string
		want any
		ok   bool
	}{
		{"a.b.0.c", 1, true}, {"a.b.1.d", 2, true}, {"a.b.2", nil, false}, {"a.b.00.c", nil, false}, {"a.b.-1", nil, false},
		{"a.x", nil, false}, {"a.b.0.c.d", nil, false},
	} {
		if got, ok := d.Lookup(strings.Split(c.path, ".")...); got != c.want || ok != c.ok {
			t.Errorf("%s: %v, %v", c.path, got, ok)
		}
	}
	if _, ok := d.Lookup(); ok {
		t.Error("no path leads somewhere")
	}
	d.Set("z", 1)
	d.Set("a", 2)
	d.Set("z", 3)
	if want := (D{{"a", 2}, {"z", 3}}); !reflect.DeepEqual(d, want) {
		t.Errorf("got %v", d)
	}
}

func TestVectorsArePacked(t *testing.T) {
	type doc struct {
		I, F, B Vector
	}
	bits, err := NewPackedBitVector([]byte{0xff, 0x80}, 7)
	if err != nil {
		t.Fatal(err)
	}
	in := doc{NewVector([]int8{1, -1}), NewVector([]float32{1.5}), bits}
	b := mustMarshal(t, in)
	if s, data := b.Lookup("i").Binary(); s != TypeBinaryVector || string(data) != "\x03\x00\x01\xff" {
		t.Errorf("subtype %d, %x", s, data)
	}
	var out doc
	if err := Unmarshal(b, &out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%+v, %v", out, err)
	}
	if _, ok := out.I.Float32OK(); ok || out.I.Int8()[1] != -1 || out.F.Float32()[0] != 1.5 {
		t.Errorf("%+v", out)
	}
	for _, bad := range []Binary{{0, nil}, {9, []byte{3}}, {9, []byte{3, 1, 0}}, {9, []byte{0x27, 0, 1}}, {9, []byte{0x11, 0}},
		{9, []byte{0x10, 8, 0}}, {9, []byte{0x10, 1}}, {9, []byte{0x10, 1, 1}}} {
		if v, err := NewVectorFromBinary(bad); err == nil {
			t.Errorf("%v is taken as %v", bad, v)
		}
	}
	if _, err := Marshal(doc{}); err == nil || !strings.Contains(err.Error(), "i: the zero Vector") {
		t.Errorf("the zero Vector: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("bits were returned as float32")
		}
	}()
	bits.Float32()
}

// TestNULInTextThatEndsAtNUL is the prose test of the specification bson-corpus.
func TestNULInTextThatEndsAtNUL(t *testing.T) {
	for name, v := range map[string]any{
		"key": D{{"a\x00b", 1}}, "inner key": D{{"a", D{{"b\x00", 1}}}}, "map": M{"\x00": 1}, "long key": D{{"0123456789abcdef\x00", 1}},
		"typed map": map[string]int{"abcd\x00efgh": 1}, "pattern": D{{"r", Regex{"a\x00", ""}}}, "options": D{{"r", Regex{"a", "i\x00"}}},
	} {
		if b, err := Marshal(v); err == nil {
			t.Errorf("%s: %x", name, b)
		}
	}
	if b, err := Marshal(D{{"a", "b\x00c"}}); err != nil || Raw(b).Lookup("a").StringValue() != "b\x00c" {
		t.Errorf("a string may hold NUL: %x, %v", b, err)
	}
}

func TestTextOfEveryLengthIsChecked(t *testing.T) {
	for n := range 70 {
		good := strings.Repeat("x", n)
		for at := range n {
			bad := good[:at] + "\xff" + good[at+1:]
			for _, v := range []any{D{{bad, 1}}, D{{"k", bad}}, M{bad: bad}, map[string]string{"a": bad}, struct{ S string }{bad}, []string{bad}} {
				if _, ok := v.([]string); ok {
					v = D{{"v", v}}
				}
				if b, err := Marshal(v); err == nil {
					t.Fatalf("%v is written as %x", v, b)
				}
			}
			if nul := good[:at] + "\x00" + good[at+1:]; true {
				if b, err := Marshal(D{{nul, 1}}); err == nil {
					t.Fatalf("the key %q is written as %x", nul, b)
				}
			}
			doc := mustMarshal(t, D{{good, good}})
			var d D
			if err := Unmarshal(doc, &d); err != nil || d[0].Key != good || d[0].Value != good {
				t.Fatalf("length %d: %v", n, err)
			}
			for _, swap := range []int{5 + at, len(doc) - 2 - n + at} {
				malformed := bytes.Clone(doc)
				malformed[swap] = 0xff
				if Unmarshal(malformed, &D{}) == nil || Unmarshal(malformed, &map[string]string{}) == nil {
					t.Fatalf("%x is read", malformed)
				}
			}
		}
	}
}
