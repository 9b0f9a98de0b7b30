package bson

import (
	"bytes"
	"reflect"
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

// TestKeysThatDifferInOneBitAreOtherKeys holds the comparison of keys in words to what it stands for.
func TestKeysThatDifferInOneBitAreOtherKeys(t *testing.T) {
	for n := 1; n <= 40; n++ {
		key := strings.Repeat("0123456789abcdefghijklmno", 2)[:n]
		for name, field := range map[string]reflect.Type{"scalar": reflect.TypeFor[int32](), "text": reflect.TypeFor[string](), "other": reflect.TypeFor[[]byte]()} {
			typ := reflect.StructOf([]reflect.StructField{{Name: "F", Type: field, Tag: reflect.StructTag(`bson:"` + key + `"`)},
				{Name: "Last", Type: reflect.TypeFor[int64]()}})
			sample := reflect.New(typ)
			switch f := sample.Elem().Field(0); field.Kind() {
			case reflect.Int32:
				f.SetInt(7)
			case reflect.String:
				f.SetString("seven")
			default:
				f.SetBytes([]byte{7})
			}
			sample.Elem().Field(1).SetInt(9)
			doc := mustMarshal(t, sample.Interface())
			if got := reflect.New(typ); Unmarshal(doc, got.Interface()) != nil || !reflect.DeepEqual(got.Interface(), sample.Interface()) {
				t.Fatalf("%s of key %q: %v, want %v", name, key, got, sample)
			}
			for bit := range 8 * n {
				doc := bytes.Clone(doc)
				if doc[5+bit/8] ^= 1 << (bit % 8); doc[5+bit/8] == 0 || doc[5+bit/8] > 127 || strings.EqualFold(string(doc[5:5+n]), key) {
					continue // the end of the key, not UTF-8, or the same in other case
				}
				got := reflect.New(typ)
				if err := Unmarshal(doc, got.Interface()); err != nil || !got.Elem().Field(0).IsZero() || got.Elem().Field(1).Int() != 9 {
					t.Fatalf("%s of key %q takes %q: %v, error %v", name, key, doc[5:5+n], got, err)
				}
			}
		}
	}
}
