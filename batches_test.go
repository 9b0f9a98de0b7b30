package sextant

import (
	"testing"

	"github.com/sextantdb/sextant/bson"
)

func TestFindNumbersFollowTheSpecification(t *testing.T) {
	for _, c := range []struct {
		limit      int64
		size       int32
		wantLimit  int64
		wantSize   int32
		wantSingle bool
	}{
		{0, 0, 0, 0, false},
		{20, 10, 20, 10, false},
		{-5, 0, 5, 5, true},
		{-5, 3, 5, 5, true},
		{0, -3, 0, 3, true},
		{7, -3, 7, 7, true},
		{-1, 0, 1, 1, true},
	} {
		limit, size, single := findNumbers(c.limit, c.size)
		if limit != c.wantLimit || size != c.wantSize || single != c.wantSingle {
			t.Errorf("limit %d, batch size %d: got %d, %d, %v", c.limit, c.size, limit, size, single)
		}
	}
}

func TestGetMoreAsksForNoMoreThanTheLimitLeaves(t *testing.T) {
	for _, c := range []struct {
		limit, received int64
		size, want      int32
	}{
		{0, 100, 0, 0}, {0, 100, 10, 10}, {4, 3, 3, 1}, {20, 10, 10, 10}, {25, 20, 10, 5}, {100, 50, 0, 0},
	} {
		if got := moreSize(c.limit, c.received, c.size); got != c.want {
			t.Errorf("limit %d, received %d, batch size %d: got %d, want %d", c.limit, c.received, c.size, got, c.want)
		}
	}
}

// arrayOf is the bytes of an array of documents {i: 0}, {i: 1} ...
func arrayOf(n int) []byte {
	b, start := bson.BeginDocument(nil)
	for i := range n {
		var d int
		b, d = bson.BeginDocumentElement(b, index(i))
		b = bson.EndDocument(bson.AppendInt32(b, "i", int32(i)), d)
	}
	return bson.EndDocument(b, start)
}

func TestBatchYieldsEveryDocumentInOrder(t *testing.T) {
	for _, n := range []int{0, 1, 2, 11, 101} {
		rest := elements(arrayOf(n))
		if got := countDocs(rest); got != n {
			t.Errorf("counted %d of %d documents", got, n)
		}
		for i := range n {
			var doc bson.Raw
			var err error
			if doc, rest, err = nextDoc(rest); err != nil || doc == nil {
				t.Fatalf("document %d of %d: %v, %v", i, n, doc, err)
			}
			if v, _ := doc.Lookup("i").Int32OK(); int(v) != i {
				t.Errorf("document %d of %d is %v", i, n, doc)
			}
		}
		if doc, _, err := nextDoc(rest); doc != nil || err != nil {
			t.Errorf("after the end of %d: %v, %v", n, doc, err)
		}
	}
}

func TestBrokenBatchIsAnError(t *testing.T) {
	good := elements(arrayOf(1))
	for name, b := range map[string][]byte{
		"not a document":   bson.AppendInt32(nil, "0", 1),
		"cut short":        good[:6],
		"length too large": append(append([]byte{}, good[:3]...), 255, 0, 0, 0, 0),
		"length too small": append(append([]byte{}, good[:3]...), 1, 0, 0, 0, 0),
		"huge length":      append(append([]byte{}, good[:3]...), 255, 255, 255, 255, 0),
		"endless key":      {3, 'a', 'b', 'c'},
	} {
		if doc, _, err := nextDoc(b); err == nil {
			t.Errorf("%s: accepted as %v", name, doc)
		}
	}
}

func TestIndexKeysAreDecimal(t *testing.T) {
	for i, want := range map[int]string{0: "0", 9: "9", 10: "10", 100: "100", 98765: "98765"} {
		if got := index(i); got != want {
			t.Errorf("%d: %q", i, got)
		}
	}
}
