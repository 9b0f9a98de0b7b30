package sextant_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
)

// note has two strings, so that one can be dropped while the other is kept.
type note struct {
	ID   int32  `bson:"_id"`
	Text string `bson:"text"`
	Long string `bson:"long"`
}

// notes fills a collection with n documents whose strings all differ.
func notes(t *testing.T, o bson.Options, n, size int) *sextant.Collection[note] {
	t.Helper()
	c := withBSON[note](t, o)
	docs := make([]note, n)
	for i := range docs {
		docs[i] = makeNote(i, size)
	}
	must[*sextant.InsertManyResult](t)(c.InsertMany(testContext(t), docs))
	return c
}

func makeNote(i, size int) note {
	return note{int32(i), fmt.Sprintf("text %04d", i), strings.Repeat(fmt.Sprintf("%04d", i), size)}
}

// TestDocumentsOfACursorStayAsTheyWere holds every document of many batches until the last has come, under each kind of
// memory: with StringsAliased this fails if a batch is read into the buffer of the one before.
func TestDocumentsOfACursorStayAsTheyWere(t *testing.T) {
	for name, m := range map[string]bson.StringMemory{"chunks": bson.StringsInChunks, "copied": bson.StringsCopied, "aliased": bson.StringsAliased} {
		t.Run(name, func(t *testing.T) {
			c := notes(t, bson.Options{Strings: m}, 60, 3)
			ctx := testContext(t)
			all := must[[]note](t)(must[*sextant.Cursor[note]](t)(c.Find(ctx, bson.D{}, sextant.FindOptions{BatchSize: 7, Sort: bson.D{{Key: "_id", Value: 1}}})).All(ctx))
			first := must[note](t)(c.FindOne(ctx, bson.D{{Key: "_id", Value: 0}}))
			texts := must[[]string](t)(sextant.Distinct[string](ctx, c, "text", bson.D{}))
			d := must[bson.D](t)(sextant.As[bson.D](c).FindOne(ctx, bson.D{{Key: "_id", Value: 0}}))
			for range 20 { // uses the connection's buffer again
				must[note](t)(c.FindOne(ctx, bson.D{{Key: "_id", Value: 59}}))
			}
			for i, got := range append(all, first) {
				if i == 60 {
					i = 0
				}
				if got != makeNote(i, 3) {
					t.Errorf("document %d became %+v", i, got)
				}
			}
			for i, s := range texts {
				if s != makeNote(i, 3).Text {
					t.Errorf("distinct value %d became %q", i, s)
				}
			}
			if text, _ := d.Get("text"); text != "text 0000" || len(texts) != 60 || len(all) != 60 {
				t.Errorf("the D became %v; %d values, %d documents", d, len(texts), len(all))
			}
		})
	}
}

// TestStringsOfACursorShareMemoryAsDocumented looks at the addresses: in chunks, strings of neighbouring documents lie in
// one stretch of 8 KiB; aliased, they lie as far apart as in the batch; copied, each stands alone.
func TestStringsOfACursorShareMemoryAsDocumented(t *testing.T) {
	at := func(s string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(s))) }
	for name, c := range map[string]struct {
		memory bson.StringMemory
		near   func(gap uintptr) bool // from the text of a document to that of the next
	}{
		"chunks":  {bson.StringsInChunks, func(gap uintptr) bool { return gap == 9+12 }},
		"aliased": {bson.StringsAliased, func(gap uintptr) bool { return gap > 9+12 && gap < 200 }},
		"copied":  {bson.StringsCopied, nil},
	} {
		t.Run(name, func(t *testing.T) {
			coll := notes(t, bson.Options{Strings: c.memory}, 40, 3)
			ctx := testContext(t)
			all := must[[]note](t)(must[*sextant.Cursor[note]](t)(coll.Find(ctx, bson.D{}, sextant.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}})).All(ctx))
			near := 0
			for i := 1; i < len(all); i++ {
				if c.near != nil && c.near(at(all[i].Text)-at(all[i-1].Text)) {
					near++
				}
				if c.near == nil && at(all[i].Long)-at(all[i].Text) == 9 {
					near++ // as it would be in a chunk
				}
			}
			if want := map[bool]int{true: 30, false: 0}[c.near != nil]; near < want || c.near == nil && near > 0 {
				t.Errorf("%d of %d strings lie beside that of the document before", near, len(all)-1)
			}
			runtime.KeepAlive(all)
		})
	}
}

// retained is how many bytes of memory one kept value of every tenth document of a cursor holds on to.
func retained[T any](t *testing.T, c *sextant.Collection[T], batch int32, keep func(T) any) int64 {
	ctx := testContext(t)
	var kept []any
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, n := heap(), 0
	for range 4 {
		for d, err := range must[*sextant.Cursor[T]](t)(c.Find(ctx, bson.D{}, sextant.FindOptions{BatchSize: batch})).Each(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n%10 == 0 {
				kept = append(kept, keep(d))
			}
		}
	}
	each := (heap() - before) / int64(len(kept))
	runtime.KeepAlive(kept)
	return each
}

// TestAKeptStringRetainsWhatIsDocumented keeps a short string, or a number, of every tenth document of about 16 KiB, of
// which each batch has two: the batches in between must go.
func TestAKeptStringRetainsWhatIsDocumented(t *testing.T) {
	const slack = 12 << 10 // what else goes on in the process
	c := notes(t, bson.Options{}, 60, 4<<10)
	retained(t, c, 2, func(n note) any { return n.ID }) // what was used to fill the collection is gone after this
	for name, limit := range map[string]struct {
		memory    bson.StringMemory
		low, high int64
	}{
		"chunks":  {bson.StringsInChunks, -slack, 8<<10 + slack},
		"copied":  {bson.StringsCopied, -slack, slack},
		"aliased": {bson.StringsAliased, 16 << 10, 80 << 10},
	} {
		c := c.With(sextant.CollectionOptions{BSON: &bson.Options{Strings: limit.memory}})
		for what, got := range map[string]int64{
			"string of a struct": retained(t, c, 2, func(n note) any { return n.Text }),
			"string of a D":      retained(t, sextant.As[bson.D](c), 2, func(d bson.D) any { return d[1].Value }),
			"string of an M":     retained(t, sextant.As[bson.M](c), 2, func(m bson.M) any { return m["text"] }),
		} {
			if got < limit.low || got > limit.high {
				t.Errorf("%s: a %s keeps %d bytes, want %d to %d", name, what, got, limit.low, limit.high)
			}
		}
		if got := retained(t, sextant.As[bson.D](c), 2, func(d bson.D) any { return d[0].Value }); got > limit.high {
			t.Errorf("%s: a number of a D keeps %d bytes, want at most %d", name, got, limit.high)
		}
	}
}
