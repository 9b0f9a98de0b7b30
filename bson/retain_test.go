package bson

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// kept are ways to keep one small part of a decoded document.
var kept = map[string]func(t *testing.T, decode func(any) error) any{
	"string of a D": func(t *testing.T, decode func(any) error) any { return decoded[D](t, decode)[0].Value },
	"number of a D": func(t *testing.T, decode func(any) error) any { return decoded[D](t, decode)[1].Value },
	"key of a D":    func(t *testing.T, decode func(any) error) any { return decoded[D](t, decode)[0].Key },
	"string of an M": func(t *testing.T, decode func(any) error) any {
		return decoded[M](t, decode)["in"].(M)["list"].(A)[1]
	},
	"string of an any": func(t *testing.T, decode func(any) error) any { return decoded[any](t, decode).(D)[0].Value },
	"any of a struct": func(t *testing.T, decode func(any) error) any {
		return decoded[struct{ S any }](t, decode).S
	},
	"string of a struct": func(t *testing.T, decode func(any) error) any {
		return decoded[struct{ S string }](t, decode).S
	},
}

func decoded[T any](t *testing.T, decode func(any) error) (v T) {
	t.Helper()
	if err := decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// padded is a document whose longest string has size bytes.
func padded(t *testing.T, i, size int) []byte {
	in := D{{"list", A{int32(i), fmt.Sprint("inner ", i)}}}
	return mustMarshal(t, D{{"s", fmt.Sprint("small ", i)}, {"n", int32(i)}, {"in", in}, {"pad", strings.Repeat("x", size)}})
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestAKeptValueRetainsWhatIsDocumented keeps one small part of every ninth document of a Decoder, and of a Batch of which
// each document has memory of its own. What is kept may keep its own document with StringsAliased, a chunk by default, and
// next to nothing with StringsCopied; never the documents beside it.
func TestAKeptValueRetainsWhatIsDocumented(t *testing.T) {
	const documents, size, every, slack = 270, 60 << 10, 9, 6 << 10
	limits := map[StringMemory]int64{StringsInChunks: maxChunk + slack, StringsCopied: slack, StringsAliased: 64<<10 + slack}
	var stream bytes.Buffer
	for i := range documents {
		stream.Write(padded(t, i, size))
	}
	for memory, limit := range limits {
		o := Options{Strings: memory}
		for name, keep := range kept {
			sources := map[string]func() func(any) error{
				"Decoder": func() func(any) error { return o.NewDecoder(bytes.NewReader(stream.Bytes())).Decode },
				"Batch": func() func(any) error {
					b, rest := o.NewBatch(), stream.Bytes()
					return func(v any) error {
						n := length(rest)
						doc := bytes.Clone(rest[:n])
						rest = rest[n:]
						return b.Unmarshal(doc, v)
					}
				},
			}
			for source, start := range sources {
				before := heapInUse()
				decode, values := start(), []any{}
				for i := range documents {
					if x := keep(t, decode); i%every == 0 {
						values = append(values, x)
					}
				}
				decode = nil
				if each := (heapInUse() - before) / int64(len(values)); each > limit {
					t.Errorf("%s, memory %d: a %s keeps %d bytes, want at most %d", source, memory, name, each, limit)
				}
				runtime.KeepAlive(values)
			}
		}
	}
	runtime.KeepAlive(stream)
}

// TestAKeptValueRetainsOneChunk decodes documents in which strings have several sources: code and the texts of its scope
// lie in other chunks than the window on the document around them.
func TestAKeptValueRetainsOneChunk(t *testing.T) {
	long := func(r rune) string { return strings.Repeat(string(r), maxShare) }
	var d D
	for i := range 40 {
		d = append(d, E{"t", fmt.Sprint("text ", i)}, E{"j", JavaScript(long('j'))}, E{"c", CodeWithScope{JavaScript(long('c')), D{{"s", long('s')}, {"k", "in scope"}}}})
	}
	data := mustMarshal(t, d)
	scope := func(v any) D { return v.(CodeWithScope).Scope.(D) }
	const n, limit = 20, 2*maxChunk - 2<<10
	for at := range 30 {
		values := make([]any, 0, n)
		before := heapInUse()
		for range n {
			var got D
			if err := Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			x := got[at].Value
			if at%3 == 2 {
				x = scope(x)[1].Value
			}
			values = append(values, x)
		}
		if each := (heapInUse() - before) / n; each > limit {
			t.Errorf("value %d: a kept string keeps %d bytes, want at most %d", at, each, limit)
		}
		runtime.KeepAlive(values)
	}
}
