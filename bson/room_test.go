package bson

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestAppendWritesOnlyInsideTheCapacity gives Append every capacity there is up to what the value needs, in the middle of
// an array whose rest nobody may touch, since the fast paths write words without asking Go whether they fit.
func TestAppendWritesOnlyInsideTheCapacity(t *testing.T) {
	type deep struct {
		ID   ObjectID
		Name string
		In   struct {
			LongerThanAnyHead1234 int32
			S                     string
			At                    time.Time
		}
		Tags []string
		B    bool
	}
	var s deep
	s.Name, s.In.S, s.Tags = "a name of more than sixteen bytes", "é", []string{"", "a", "abcdefghi", strings.Repeat("y", 50)}
	d := D{{"", "x"}, {"a", int32(1)}, {"ab", int64(2)}, {"abcd", 1.5}, {"abcdefgh", true}, {"id", ObjectID{1}}, {"nil", nil},
		{"a key of more than sixteen", D{{"t", strings.Repeat("z", 40)}, {"i", 3}, {"e", D{}}}}, {"dt", DateTime(1)}, {"a", A{1, "b"}}}
	for _, v := range []any{d, s, &s, M{"abcdefghi": "xyz"}, map[string]string{"k": "v"}} {
		want := mustMarshal(t, v)
		for c := range len(want) + 100 {
			all := bytes.Repeat([]byte{0xee}, 8+c+64)
			got, err := Append(all[:8:8+c], v)
			if err != nil || !bytes.Equal(got[8:], want) {
				t.Fatalf("capacity %d: %x, want %x, error %v", c, got[8:], want, err)
			}
			if bytes.Count(all[:8], []byte{0xee}) != 8 || bytes.Count(all[8+c:], []byte{0xee}) != 64 {
				t.Fatalf("capacity %d: %T writes outside: %x", c, v, all)
			}
		}
	}
}
