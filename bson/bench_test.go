package bson

import (
	"testing"
	"time"
)

// flat has 25 fields of the scalar types, about 500 bytes; nested adds slices, maps, pointers and documents.
type flat struct {
	ID                             ObjectID `bson:"_id"`
	FirstName, LastName, Street    string
	City, Country, Phone           string
	Int1, Int2, Int3, Int4, Int5   int32
	Long1, Long2, Long3            int64
	Long4, Long5                   int64
	Float1, Float2, Float3, Float4 float64
	Bool1, Bool2, Bool3, Bool4     bool
}

type nested struct {
	ID      ObjectID `bson:"_id"`
	Owner   *ObjectID
	Created time.Time
	Tags    []string
	Scores  []float64
	Props   map[string]string
	Counts  map[string]int64
	Main    flat
	Items   []Inline
	Blob    []byte
}

func benchFlat() *flat {
	return &flat{ID: NewObjectID(), FirstName: "Maximilian", LastName: "Mustermann", Street: "Main Street 12345",
		City: "Frankfurt am Main", Country: "Germany", Phone: "+49 69 1234567", Int1: 1, Int5: 1 << 30,
		Long1: 1 << 40, Long5: 7, Float1: 1.25, Float4: 3.14, Bool1: true}
}

func benchNested() *nested {
	id := NewObjectID()
	return &nested{ID: id, Owner: &id, Created: time.UnixMilli(1700000000000).UTC(),
		Tags: []string{"red", "green", "blue", "black"}, Scores: []float64{1, 2, 3, 4, 5, 6, 7, 8},
		Props: map[string]string{"a": "one", "b": "two", "c": "three"}, Counts: map[string]int64{"x": 1, "y": 2},
		Main: *benchFlat(), Items: make([]Inline, 10), Blob: make([]byte, 64)}
}

func BenchmarkEncode(b *testing.B) {
	byStruct := benchFlat()
	raw, err := Marshal(byStruct)
	if err != nil {
		b.Fatal(err)
	}
	var d D
	var m M
	if Unmarshal(raw, &d) != nil || Unmarshal(raw, &m) != nil {
		b.Fatal("not decoded")
	}
	for _, c := range []struct {
		name string
		v    any
	}{{"struct", byStruct}, {"nested", benchNested()}, {"D", d}, {"M", m}, {"Raw", Raw(raw)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				var err error
				if buf, err = Append(buf[:0], c.v); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(buf)))
		})
	}
}

func BenchmarkMarshal(b *testing.B) {
	v := benchFlat()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Marshal(v); err != nil {
			b.Fatal(err)
		}
	}
}

func benchDecode[T any](b *testing.B, from any) {
	raw, err := Marshal(from)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		var to T
		if err := Unmarshal(raw, &to); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	b.Run("struct", func(b *testing.B) { benchDecode[flat](b, benchFlat()) })
	b.Run("nested", func(b *testing.B) { benchDecode[nested](b, benchNested()) })
	b.Run("D", func(b *testing.B) { benchDecode[D](b, benchFlat()) })
	b.Run("M", func(b *testing.B) { benchDecode[M](b, benchFlat()) })
	b.Run("Raw", func(b *testing.B) { benchDecode[Raw](b, benchFlat()) })
}

func BenchmarkReadRaw(b *testing.B) {
	raw, err := Marshal(benchFlat())
	if err != nil {
		b.Fatal(err)
	}
	doc := Raw(raw)
	b.Run("Validate", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			if err := doc.Validate(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Lookup", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if v := doc.Lookup("bool4"); v.Type == 0 {
				b.Fatal("missing")
			}
		}
	})
	b.Run("All", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !hasKey(doc, "bool4") {
				b.Fatal("missing")
			}
		}
	})
}

// hasKey stands apart because b.Loop keeps what its body calls from being inlined, which All needs to make no garbage.
func hasKey(doc Raw, key string) bool {
	for k := range doc.All() {
		if k == key {
			return true
		}
	}
	return false
}

func BenchmarkExtJSON(b *testing.B) {
	v := benchFlat()
	text, err := MarshalExtJSON(v, true, false)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			if _, err := MarshalExtJSON(v, true, false); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := ParseExtJSON(text, true); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkNewObjectID(b *testing.B) {
	for b.Loop() {
		NewObjectID()
	}
}

func TestEncodingIntoABufferDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 4096)
	var d any = D{{"a", int32(1)}, {"b", "text"}, {"c", D{{"d", A{1.5, true}}}}}
	for name, v := range map[string]any{"struct": benchFlat(), "D": d} {
		n := testing.AllocsPerRun(100, func() {
			var err error
			if buf, err = Append(buf[:0], v); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
