package interop

import (
	"encoding/json"
	"math"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	theirs "go.mongodb.org/mongo-driver/v2/bson"
)

// Types that have a name of their own and nothing else.
type (
	nString string
	nInt    int64
	nUint8  uint8
	nBytes  []byte
	nBool   bool
	nFloat  float64
	nArray  []any
	nArr    [4]byte
	nMap    map[string]any
	nKeys   map[nString]int
	ourD    bson.D
	theirD  theirs.D
)

// target is a Go type in both packages that a value is decoded into.
type target struct {
	name         string
	ours, theirs func() any // pointers to a struct whose field V has the type
}

func into[O, T any](name string) target {
	return target{name: name, ours: func() any { return new(struct{ V O }) }, theirs: func() any { return new(struct{ V T }) }}
}

func both[T any]() target { return into[T, T](reflect.TypeFor[T]().String()) }

func targets() []target {
	return []target{
		both[int](), both[int8](), both[int16](), both[int32](), both[int64](), both[uint](), both[uint8](), both[uint16](), both[uint32](),
		both[uint64](), both[uintptr](), both[float32](), both[float64](), both[complex128](), both[bool](), both[string](), both[any](), both[*any](),
		both[*int](), both[**int](), both[*string](), both[[]byte](), both[nBytes](), both[[]nUint8](), both[[]int](), both[[]string](), both[[]any](),
		both[nArray](), both[[]float64](), both[[]bool](), both[[4]byte](), both[nArr](), both[[4]int](), both[[12]byte](), both[[16]byte](), both[[4]nUint8](),
		both[map[string]int](), both[map[int]int](), both[map[uint8]string](), both[map[string]any](), both[map[string]string](), both[map[string]float64](),
		both[map[string]int64](), both[map[string]int32](), both[map[nString]int](), both[map[bool]int](), both[map[float64]int](), both[nMap](), both[nKeys](),
		both[struct{ X int }](), both[*struct{ X int }](), both[[]struct{ X string }](), both[nString](), both[nInt](), both[nBool](), both[nFloat](),
		both[time.Time](), both[*time.Time](), both[time.Duration](), both[json.Number](), both[url.URL](), both[*url.URL](), both[error](), both[chan int](), both[func()](),
		into[ourD, theirD]("named D"), into[bson.D, theirs.D]("D"), into[bson.M, theirs.M]("M"), into[bson.A, theirs.A]("A"), into[[]bson.D, []theirs.D]("[]D"),
		into[map[string]bson.D, map[string]theirs.D]("map of D"), into[*bson.D, *theirs.D]("*D"),
		into[bson.Raw, theirs.Raw]("Raw"), into[bson.RawArray, theirs.RawArray]("RawArray"), into[bson.RawValue, theirs.RawValue]("RawValue"),
		into[bson.ObjectID, theirs.ObjectID]("ObjectID"), into[*bson.ObjectID, *theirs.ObjectID]("*ObjectID"), into[[]bson.ObjectID, []theirs.ObjectID]("[]ObjectID"),
		into[bson.DateTime, theirs.DateTime]("DateTime"), into[bson.Timestamp, theirs.Timestamp]("Timestamp"), into[bson.Decimal128, theirs.Decimal128]("Decimal128"),
		into[bson.Binary, theirs.Binary]("Binary"), into[bson.Regex, theirs.Regex]("Regex"), into[bson.JavaScript, theirs.JavaScript]("JavaScript"),
		into[bson.CodeWithScope, theirs.CodeWithScope]("CodeWithScope"), into[bson.Symbol, theirs.Symbol]("Symbol"), into[bson.DBPointer, theirs.DBPointer]("DBPointer"),
		into[bson.Undefined, theirs.Undefined]("Undefined"), into[bson.Null, theirs.Null]("Null"), into[bson.MinKey, theirs.MinKey]("MinKey"),
		into[bson.MaxKey, theirs.MaxKey]("MaxKey"), into[bson.Vector, theirs.Vector]("Vector"), into[*bson.Binary, *theirs.Binary]("*Binary"),
	}
}

func decimal(s string) bson.Decimal128 {
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		panic(err)
	}
	return d
}

// everyValue has values of every type of BSON, with those at the limits.
func everyValue() []any {
	doc := func(key string, v any) bson.D { return bson.D{{Key: key, Value: v}} }
	return []any{
		1.0, 1.5, math.Copysign(0, -1), math.NaN(), math.Inf(1), 1e300, 255.0, 256.0, 9.3e18, -1.0, "", "abc", "1", "true", "57e193d7a9cc81b4027498b5",
		"2012-12-24T12:15:30.501Z", "http://x/y?z", "a\x00b", strings.Repeat("long", 2000), bson.D{}, doc("X", 1), doc("x", 1), doc("1", 1), doc("-1", 1), doc("300", "s"), doc("x", "s"),
		doc("x", doc("y", 1)), doc("true", 1), doc("1.5", 1), doc("", 1), doc("x", nil), bson.A{}, bson.A{1}, bson.A{"a"}, bson.A{1, "a", nil}, bson.A{1, 2, 3, 4}, bson.A{1, 2, 3, 4, 5},
		bson.A{doc("x", 1)}, bson.A{bson.A{1}}, bson.A{1.0, 2.0}, bson.A{nil}, bson.A{bson.ObjectID{7}}, bson.A{true}, bson.A{300}, bson.A{-1}, []byte{}, []byte{1, 2, 3, 4}, []byte("text"),
		bson.Binary{Subtype: 2, Data: []byte{1, 2}}, bson.Binary{Subtype: 4, Data: make([]byte, 16)}, bson.Binary{Subtype: 3, Data: make([]byte, 16)}, bson.Binary{Subtype: 0x80, Data: []byte{1}},
		bson.Binary{Subtype: 9, Data: []byte{3, 0, 1}}, bson.Binary{Subtype: 0, Data: make([]byte, 12)}, bson.Undefined{}, bson.ObjectID{1}, bson.ObjectID([]byte("abcdefghijkl")), true, false,
		bson.DateTime(0), bson.DateTime(1356351330501), bson.DateTime(math.MinInt64), nil, bson.Regex{Pattern: "a", Options: "i"}, bson.DBPointer{DB: "a", Pointer: bson.ObjectID{1}}, bson.JavaScript("f"),
		bson.Symbol("sym"), bson.Symbol("1"), bson.CodeWithScope{Code: "f", Scope: doc("x", doc("y", 1))}, int32(0), int32(1), int32(2), int32(-1), int32(127), int32(128), int32(255), int32(256),
		int32(70000), int32(math.MaxInt32), bson.Timestamp{T: 5, I: 1}, int64(0), int64(1), int64(-5), int64(1) << 40, int64(math.MaxInt64), int64(math.MinInt64), int64(1<<53 + 1), int64(1<<24 + 1),
		decimal("1"), decimal("1.5"), decimal("NaN"), decimal("1E+3"), bson.MinKey{}, bson.MaxKey{},
	}
}

// whyDecoded names the difference in the list that a value and a target belong to, "" for none.
func whyDecoded(v any, name string) string {
	_, isArray := v.(bson.A)
	_, isText := v.(string)
	_, undefined := v.(bson.Undefined)
	_, isBinary := v.(bson.Binary)
	_, isBytes := v.([]byte)
	f, _ := v.(float64)
	switch {
	case (v == nil || undefined) && (name == "error" || name == "Vector"):
		return "null"
	case f != f:
		return "nan"
	case isText && strings.HasSuffix(name, "time.Time"):
		return "zone"
	case name == "Raw" && isArray, name == "RawArray" && (isArray || isText || isBinary || isBytes):
		return "raw"
	case strings.HasSuffix(name, "ObjectID") && isText:
		return "id"
	case (isBinary || isBytes) && (strings.HasSuffix(name, "]uint8") && name != "[]uint8" || name == "interop.nArr"):
		return "bytes"
	}
	return ""
}

// TestEveryTypeIntoEveryType decodes each value into each target under each option.
func TestEveryTypeIntoEveryType(t *testing.T) {
	used := map[string]int{}
	options := []codecs{choose(0), choose(1<<len(switches) - 1)}
	for i, s := range switches {
		if s.dec != nil {
			options = append(options, choose(1<<i))
		}
	}
	for _, c := range options {
		for _, v := range everyValue() {
			data, err := bson.Marshal(bson.D{{Key: "v", Value: v}})
			if err != nil {
				t.Fatal(err)
			}
			for _, to := range targets() {
				ours, their := to.ours(), to.theirs()
				err, theirErr := c.ours.Unmarshal(data, ours), safely(func() error { return c.theirsDecode(data, their) })
				got, want := field(ours), ourValue(field(their))
				if (err == nil) == (theirErr == nil) && (err != nil || equal(got, want)) {
					continue
				}
				if why := whyDecoded(v, to.name); why != "" {
					used[why]++
					continue
				}
				t.Errorf("%v into %s, options%s\nours   %#v, %v\ntheirs %#v, %v", bson.Raw(data), to.name, c.printed, got, err, want, theirErr)
			}
		}
	}
	for _, why := range []string{"null", "nan", "raw", "id", "bytes", "zone"} {
		if used[why] == 0 {
			t.Errorf("the difference %q has vanished", why)
		}
		known(t, why)
	}
}

// field is the field V of what p points to.
func field(p any) any { return reflect.ValueOf(p).Elem().Field(0).Interface() }

// prefilled has something in every place that a value may go to.
type prefilled struct {
	P     *struct{ Y int }
	S     struct{ X, Y int }
	M     map[string]int
	MA    map[string]any
	L     []int
	PP    **int
	LS    []struct{ Y int }
	MP    map[string]*struct{ Y int }
	MS    map[string]struct{ Y int }
	Held  any
	HeldD any
	Value any
}

func newPrefilled() *prefilled {
	type y = struct{ Y int }
	one := new(1)
	return &prefilled{P: &y{6}, S: struct{ X, Y int }{1, 2}, M: map[string]int{"a": 1}, MA: map[string]any{"a": 1}, L: []int{1, 2, 3}, PP: &one, LS: []y{{1}, {2}},
		MP: map[string]*y{"a": {9}}, MS: map[string]y{"a": {9}}, Held: &y{5}, HeldD: new(map[string]any), Value: y{4}}
}

// TestWhatIsThereBeforeIsTreatedAlike decodes into structs, maps, slices and pointers that hold something.
func TestWhatIsThereBeforeIsTreatedAlike(t *testing.T) {
	doc := func(key string, v any) bson.D { return bson.D{{Key: key, Value: v}} }
	for _, bits := range []uint32{0, 1 << zeroMaps, 1 << zeroStructs} {
		c := choose(bits)
		for _, key := range []string{"p", "s", "m", "ma", "l", "pp", "ls", "mp", "ms", "held", "heldd", "value"} {
			for _, v := range []any{doc("y", 1), doc("a", doc("y", nil)), doc("a", nil), doc("b", 5), bson.D{}, 1, "s", nil, bson.A{}, bson.A{1}, bson.A{doc("y", 3), nil}, 1.0, true} {
				data, err := bson.Marshal(doc(key, v))
				if err != nil {
					t.Fatal(err)
				}
				ours, their := newPrefilled(), newPrefilled()
				err, theirErr := c.ours.Unmarshal(data, ours), safely(func() error { return c.theirsDecode(data, their) })
				their.MA, _ = ourValue(their.MA).(map[string]any)
				ours.HeldD, their.HeldD, their.Held, their.Value = pointee(ours.HeldD), pointee(their.HeldD), ourValue(their.Held), ourValue(their.Value)
				if (err == nil) != (theirErr == nil) || err == nil && !reflect.DeepEqual(ours, their) {
					t.Errorf("%v%s\nours   %s, %v\ntheirs %s, %v", bson.Raw(data), c.printed, printed(ours), err, printed(their), theirErr)
				}
			}
		}
	}
}

func printed(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
