package operation_test

import (
	"strings"
	"testing"

	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/mongoerr"
	"pgregory.net/rapid"
)

// split puts documents of the sizes into as many messages as Batch says.
func split(t operation.Target, used int, sizes []int) (counts []int, err error) {
	for i := 0; i < len(sizes); {
		b := operation.NewBatch(t, used, "document")
		for ; i < len(sizes); i++ {
			ok, err := b.Add(i, sizes[i])
			if err != nil {
				return counts, err
			}
			if !ok {
				break
			}
		}
		counts = append(counts, b.Count())
	}
	return counts, nil
}

func TestBatchesHoldEveryDocumentAndKeepTheLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := operation.Target{Addr: "a:1", MaxBSON: 100, MaxMessage: int32(rapid.IntRange(150, 400).Draw(t, "message")),
			MaxBatch: int32(rapid.IntRange(1, 5).Draw(t, "batch"))}
		const used = 50
		sizes := rapid.SliceOf(rapid.IntRange(5, 100)).Draw(t, "sizes")
		counts, err := split(target, used, sizes)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for n, count := range counts {
			bytes := used
			for _, s := range sizes[at : at+count] {
				bytes += s
			}
			at += count
			if count == 0 || count > int(target.MaxBatch) || bytes > int(target.MaxMessage) {
				t.Fatalf("message %d has %d documents and %d bytes: %+v", n, count, bytes, target)
			}
			if at < len(sizes) && count < int(target.MaxBatch) && bytes+sizes[at] <= int(target.MaxMessage) {
				t.Fatalf("message %d could have held one more", n)
			}
		}
		if at != len(sizes) {
			t.Fatalf("%d of %d documents were sent", at, len(sizes))
		}
	})
}

func TestDocumentThatFitsNowhereIsNamed(t *testing.T) {
	target := operation.Target{Addr: "a:1", MaxBSON: 100, MaxMessage: 120, MaxBatch: 10}
	for name, tc := range map[string]struct {
		used  int
		sizes []int
		words string
	}{
		"over the document limit": {10, []int{50, 101}, "document 1 has 101 bytes; a:1 takes at most 100"},
		"over the message limit":  {50, []int{70, 80}, "document 1 has 80 bytes; with its command it exceeds the message of 120 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := split(target, tc.used, tc.sizes)
			if mongoerr.Code(err) != mongoerr.CodeBSONObjectTooLarge || !strings.Contains(err.Error(), tc.words) {
				t.Errorf("error %v", err)
			}
		})
	}
}
