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

// retained is how many bytes of memory one kept string of each of n cursors holds on to.
func retained(t *testing.T, c *sextant.Collection[note], n int) uint64 {
	ctx := testContext(t)
	kept := make([]string, n)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range kept {
		cur := must[*sextant.Cursor[note]](t)(c.Find(ctx, bson.D{}))
		for cur.Next(ctx) {
			kept[i] = cur.Current().Text
		}
	}
	after := heap()
	runtime.KeepAlive(kept)
	if after < before {
		return 0
	}
	return (after - before) / uint64(n)
}

// TestAKeptStringRetainsWhatIsDocumented keeps one short string of a batch of about 64 KiB.
func TestAKeptStringRetainsWhatIsDocumented(t *testing.T) {
	const slack = 2 << 10 // what else goes on in the process
	c := notes(t, bson.Options{}, 64, 256)
	for name, limit := range map[string]struct {
		memory    bson.StringMemory
		low, high uint64
	}{
		"chunks":  {bson.StringsInChunks, 0, 8<<10 + slack},
		"copied":  {bson.StringsCopied, 0, slack},
		"aliased": {bson.StringsAliased, 48 << 10, 96 << 10},
	} {
		got := retained(t, c.With(sextant.CollectionOptions{BSON: &bson.Options{Strings: limit.memory}}), 100)
		if got < limit.low || got > limit.high {
			t.Errorf("%s: a string keeps %d bytes, want %d to %d", name, got, limit.low, limit.high)
		}
	}
}
