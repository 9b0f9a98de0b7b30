package interop

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/sextantdb/sextant/bson"
	theirs "go.mongodb.org/mongo-driver/v2/bson"
)

// Types with methods.
type (
	hook        struct{ A int }
	pointerHook struct{ A int }
	valueHook   struct{ A int }
	pvHook      struct{ A int }
	docValue    struct{}
	madeDoc     struct{ data []byte }
	madeValue   struct {
		t    byte
		data []byte
	}
	failing   struct{}
	zeroer    struct{ A int }
	pZeroer   struct{ A int }
	textKey   int
	stringKey string
	madeKey   struct{}
	valueText struct{ s string }
	refText   struct{ s string }
	refKey    struct{ s string }
)

var emptyDoc = []byte{5, 0, 0, 0, 0}

func (hook) MarshalBSON() ([]byte, error)                   { return emptyDoc, nil }
func (*pointerHook) MarshalBSON() ([]byte, error)           { return emptyDoc, nil }
func (valueHook) MarshalBSONValue() (byte, []byte, error)   { return 0x10, []byte{7, 0, 0, 0}, nil }
func (*pvHook) MarshalBSONValue() (byte, []byte, error)     { return 0x10, []byte{7, 0, 0, 0}, nil }
func (docValue) MarshalBSONValue() (byte, []byte, error)    { return 3, emptyDoc, nil }
func (h madeDoc) MarshalBSON() ([]byte, error)              { return h.data, nil }
func (h madeValue) MarshalBSONValue() (byte, []byte, error) { return h.t, h.data, nil }
func (failing) MarshalBSON() ([]byte, error)                { return nil, errors.New("no") }
func (z zeroer) IsZero() bool                               { return z.A == 7 }
func (z *pZeroer) IsZero() bool                             { return z.A == 7 }
func (k textKey) MarshalText() ([]byte, error)              { return fmt.Appendf(nil, "k%d", int(k)), nil }
func (k stringKey) MarshalText() ([]byte, error)            { return []byte("T" + string(k)), nil }
func (k madeKey) MarshalKey() (string, error)               { return "m", nil }
func (k valueText) MarshalText() ([]byte, error)            { return []byte(k.s), nil }
func (k *refText) MarshalText() ([]byte, error)             { return []byte("r" + k.s), nil }
func (k *refKey) MarshalKey() (string, error)               { return "k" + k.s, nil }

// Structs with all kinds of fields.
type (
	Exported   struct{ Y int }
	unexported struct{ X int }
	embedded   struct{ Exported }
	embHidden  struct{ unexported }
	embInlineU struct {
		unexported `bson:",inline"`
	}
	embPointer struct{ *Exported }
	embPInline struct {
		*Exported `bson:",inline"`
	}
	pInline struct {
		P *Exported `bson:",inline"`
	}
	embNamed struct {
		Exported `bson:"named"`
	}
	sameKey struct {
		A int `bson:"x"`
		B int `bson:"x"`
	}
	sameDeep struct {
		A Exported        `bson:",inline"`
		B struct{ Y int } `bson:",inline"`
	}
	hidesDeep struct {
		A Exported `bson:",inline"`
		Y string
	}
	mapInline struct {
		M map[string]int `bson:",inline"`
		X int
	}
	intMapInline struct {
		M map[int]int `bson:",inline"`
	}
	twoInline struct {
		M map[string]int `bson:",inline"`
		N map[string]int `bson:",inline"`
	}
	intInline struct {
		M int `bson:",inline"`
	}
	recursive struct {
		N *recursive
		V int
	}
	skips struct {
		A int `bson:"-"`
		B int `bson:"-,"`
		c int
		D int `bson:"a.b"`
		E int `bson:"$e"`
	}
	omits struct {
		A int             `bson:",omitempty"`
		B string          `bson:",omitempty"`
		C []int           `bson:",omitempty"`
		D map[string]int  `bson:",omitempty"`
		E *int            `bson:",omitempty"`
		F struct{ X int } `bson:",omitempty"`
		G [2]int          `bson:",omitempty"`
		H [0]int          `bson:",omitempty"`
		I any             `bson:",omitempty"`
		J time.Time       `bson:",omitempty"`
		K zeroer          `bson:",omitempty"`
		L *zeroer         `bson:",omitempty"`
		N bool            `bson:",omitempty"`
		O float64         `bson:",omitempty"`
	}
	omitsPointer struct {
		A pZeroer `bson:",omitempty"`
	}
	omitsZero struct {
		A int `bson:",omitzero"`
	}
	minsizes struct {
		A int64             `bson:",minsize"`
		B []int64           `bson:",minsize"`
		C map[string]int64  `bson:",minsize"`
		D *int64            `bson:",minsize"`
		E any               `bson:",minsize"`
		F struct{ X int64 } `bson:",minsize"`
		G uint64            `bson:",minsize"`
		H uint32            `bson:",minsize"`
		I uint              `bson:",minsize"`
		J []any             `bson:",minsize"`
		K map[string]any    `bson:",minsize"`
	}
	nils struct {
		A []int
		B map[string]int
		C []byte
		D *int
		E any
		F func()
	}
)

// odd is a value in both packages, and the difference in the list that it belongs to, if any.
type odd struct {
	name string
	pair
	why string
}

func oddValues() []odd {
	one, one64 := 1, int64(1)
	pone := &one
	var nilAny any
	var list []odd
	add := func(why string, same ...any) {
		for _, v := range same {
			list = append(list, odd{fmt.Sprintf("%T", v), pair{v, v}, why})
		}
	}
	add("", hook{}, &hook{}, &pointerHook{}, valueHook{}, &valueHook{}, &pvHook{}, (*hook)(nil), (*valueHook)(nil), []hook{{}}, []pointerHook{{}}, &struct{ P pointerHook }{}, failing{},
		map[textKey]int{1: 1}, map[stringKey]int{"a": 1}, map[madeKey]int{{}: 1}, map[bool]int{true: 1}, map[float64]int{1.5: 1}, map[any]int{"a": 1}, map[*int]int{pone: 1}, map[[2]int]int{{1}: 1},
		map[int8]int{-1: 1}, map[uint64]int{math.MaxUint64: 1}, map[time.Time]int{time.Unix(0, 0).UTC(): 1}, map[nString]nString{"a": "b"})
	add("", map[*valueText]int{nil: 1}, map[*valueText]int{{"a"}: 1}, map[*refText]int{nil: 1}, map[*refText]int{{"a"}: 1}, map[refText]int{{"a"}: 1}, map[*refKey]int{nil: 1}, map[*refKey]int{{"a"}: 1},
		map[*madeKey]int{nil: 1}, map[any]int{valueText{"a"}: 1}, map[any]int{nil: 1}, map[any]int{7: 1}, map[encoding.TextMarshaler]int{valueText{"a"}: 1},
		map[encoding.TextMarshaler]int{nil: 1}, map[fmt.Stringer]int{nil: 1}, map[any]int{}, map[float64]int{}, map[error]int{})
	add("", embedded{}, embHidden{unexported{1}}, embPointer{}, embPointer{&Exported{1}}, embPInline{}, embPInline{&Exported{1}}, pInline{}, pInline{&Exported{2}}, embNamed{}, sameKey{}, sameDeep{}, hidesDeep{},
		mapInline{map[string]int{"a": 1}, 2}, mapInline{map[string]int{"x": 1}, 2}, mapInline{}, intMapInline{map[int]int{1: 1}}, twoInline{}, intInline{}, recursive{N: &recursive{V: 1}}, skips{c: 1}, nils{},
		omits{}, omits{A: 1, F: struct{ X int }{1}, I: 0, K: zeroer{7}, L: &zeroer{7}, N: true}, omits{L: &zeroer{1}, I: (*int)(nil), C: []int{}, D: map[string]int{}}, &omits{},
		minsizes{}, minsizes{1, []int64{1, 1 << 40}, map[string]int64{"a": 1}, &one64, int64(1), struct{ X int64 }{1}, 1, 1, 1, []any{int64(1)}, map[string]any{"a": int64(1)}})
	add("", make(chan int), func() {}, 1i, uintptr(1), unsafe.Pointer(pone), 1, "s", nil, &nilAny, errors.New("x"), &pone, time.UnixMilli(1<<50), time.Time{}, time.Unix(1<<60, 0), time.Second,
		url.URL{Scheme: "http", Host: "x"}, &url.URL{Scheme: "http", Host: "x"}, json.Number("1"), json.Number("1.5"), json.Number("99999999999999999999"), json.Number("x"), json.Number(""), json.RawMessage("{}"),
		uint64(math.MaxUint64), uint64(math.MaxInt64), float32(1.1), math.NaN(), []byte{1}, [3]byte{1}, nBytes{1}, nArr{}, nBytes(nil), [][]byte{{1}, nil}, [0]byte{}, [0]int{}, []int(nil), []nUint8{1}, struct{}{}, []any{1, nil, "a"}, nString("a"),
		nMap{"a": 1}, nArray{1}, map[string]any{"a": map[string]any{"b": 1}}, map[int]any{1: nil}, [16]byte{}, [12]byte{}, 'x', []rune("x"), &map[string]int{"a": 1}, &[]int{1}, map[string]float64{"a": 1}, map[string]string{"": ""})
	add("pointers", pointerHook{1}, pvHook{1}, map[string]pointerHook{"a": {}}, struct{ P pointerHook }{}, omitsPointer{pZeroer{7}}, &omitsPointer{pZeroer{7}}, (*pointerHook)(nil), (*pvHook)(nil))
	add("made", madeDoc{}, madeDoc{[]byte{1}}, madeDoc{[]byte{6, 0, 0, 0, 0, 0}}, madeDoc{[]byte{9, 0, 0, 0, 0}}, madeDoc{[]byte{8, 0, 0, 0, 2, 0, 1, 0}}, madeDoc{[]byte{5, 0, 0, 0, 1}}, madeValue{}, madeValue{0x99, nil},
		madeValue{0x10, []byte{1}}, madeValue{0x10, []byte{1, 2, 3, 4, 5}}, madeValue{2, []byte{9, 0, 0, 0, 'a', 0}}, madeValue{2, []byte{2, 0, 0, 0, 'a', 1}}, madeValue{8, []byte{2}})
	add("", madeValue{10, nil})
	add("utf8", "\xff", map[string]int{"\xff": 1})
	add("inline", embInlineU{unexported{1}})
	add("omitzero", omitsZero{})
	add("whole", docValue{}, map[string]int(nil), nMap(nil))
	return append(list, []odd{
		{"D with an empty key", pair{bson.D{{Key: "", Value: 1}}, theirs.D{{Key: "", Value: 1}}}, ""},
		{"nil D", pair{bson.D(nil), theirs.D(nil)}, ""}, {"E", pair{bson.E{Key: "a", Value: 1}, theirs.E{Key: "a", Value: 1}}, ""},
		{"[]D", pair{[]bson.D{{}, nil}, []theirs.D{{}, nil}}, ""}, {"A", pair{bson.A{1}, theirs.A{1}}, ""}, {"nil A", pair{bson.A(nil), theirs.A(nil)}, ""},
		{"Raw", pair{bson.Raw(emptyDoc), theirs.Raw(emptyDoc)}, ""}, {"RawValue", pair{bson.RawValue{Type: 0x10, Value: []byte{1, 0, 0, 0}}, theirs.RawValue{Type: 0x10, Value: []byte{1, 0, 0, 0}}}, ""},
		{"zero RawValue", pair{bson.RawValue{}, theirs.RawValue{}}, ""}, {"empty Raw", pair{bson.Raw{}, theirs.Raw{}}, ""}, {"Raw that ends wrong", pair{bson.Raw{5, 0, 0, 0, 1}, theirs.Raw{5, 0, 0, 0, 1}}, ""},
		{"Raw that is cut off", pair{bson.Raw{6, 0, 0, 0, 0}, theirs.Raw{6, 0, 0, 0, 0}}, ""}, {"Regex", pair{bson.Regex{Pattern: "a", Options: "mix"}, theirs.Regex{Pattern: "a", Options: "mix"}}, ""},
		{"Regex with NUL", pair{bson.Regex{Pattern: "a\x00"}, theirs.Regex{Pattern: "a\x00"}}, ""}, {"key with NUL", pair{bson.D{{Key: "a\x00", Value: 1}}, theirs.D{{Key: "a\x00", Value: 1}}}, ""},
		{"old binary", pair{bson.Binary{Subtype: 2, Data: []byte{1}}, theirs.Binary{Subtype: 2, Data: []byte{1}}}, ""}, {"zero Binary", pair{bson.Binary{}, theirs.Binary{}}, ""},
		{"scope that is no document", pair{bson.CodeWithScope{Code: "a", Scope: 1}, theirs.CodeWithScope{Code: "a", Scope: 1}}, ""}, {"scope that is a struct", pair{bson.CodeWithScope{Code: "a", Scope: Exported{}}, theirs.CodeWithScope{Code: "a", Scope: Exported{}}}, ""},
		{"zero Vector", pair{bson.Vector{}, theirs.Vector{}}, ""}, {"*ObjectID", pair{&bson.ObjectID{1}, &theirs.ObjectID{1}}, ""}, {"ObjectID as a key", pair{map[bson.ObjectID]int{{1}: 1}, map[theirs.ObjectID]int{{1}: 1}}, ""},
		{"Decimal128", pair{bson.NewDecimal128(1, 2), theirs.NewDecimal128(1, 2)}, ""}, {"M in any", pair{[]any{bson.M{"a": 1}}, []any{theirs.M{"a": 1}}}, ""},
		{"named D", pair{ourD{{Key: "a", Value: 1}}, theirD{{Key: "a", Value: 1}}}, ""}, {"*D", pair{&bson.D{{Key: "a", Value: 1}}, &theirs.D{{Key: "a", Value: 1}}}, ""},
		{"RawArray", pair{bson.RawArray(emptyDoc), theirs.RawArray(emptyDoc)}, "raw"}, {"nil Raw", pair{bson.Raw(nil), theirs.Raw(nil)}, "raw"},
		{"RawValue that is a document", pair{bson.RawValue{Type: 3, Value: emptyDoc}, theirs.RawValue{Type: 3, Value: emptyDoc}}, "whole"}, {"nil M", pair{bson.M(nil), theirs.M(nil)}, "whole"},
		{"RawValue that is cut off", pair{bson.RawValue{Type: 0x10, Value: []byte{1}}, theirs.RawValue{Type: 0x10, Value: []byte{1}}}, "made"}, {"no scope", pair{bson.CodeWithScope{Code: "a"}, theirs.CodeWithScope{Code: "a"}}, "scope"},
		{"foreign ObjectID", pair{foreignID{}, foreignID{}}, "foreign"},
	}...)
}

// holders put a value where a value can be.
var holders = []func(p pair) pair{
	func(p pair) pair { return p },
	func(p pair) pair {
		return pair{bson.D{{Key: "v", Value: p.ours}}, theirs.D{{Key: "v", Value: p.theirs}}}
	},
	func(p pair) pair { return pair{bson.M{"v": bson.A{p.ours}}, theirs.M{"v": theirs.A{p.theirs}}} },
	func(p pair) pair { return pair{struct{ V any }{p.ours}, struct{ V any }{p.theirs}} },
	func(p pair) pair { return pair{map[string]any{"v": p.ours}, map[string]any{"v": p.theirs}} },
}

// TestOddValuesAreWrittenAlike writes each value in each place under each option. What belongs to a listed difference must
// differ somewhere, else the difference has vanished.
func TestOddValuesAreWrittenAlike(t *testing.T) {
	options := []codecs{choose(0), choose(1<<len(switches) - 1)}
	for i, s := range switches {
		if s.enc != nil {
			options = append(options, choose(1<<i))
		}
	}
	for _, v := range oddValues() {
		differs := false
		for _, c := range options {
			for i, hold := range holders {
				p := hold(v.pair)
				got, err := c.ours.Marshal(p.ours)
				var want []byte
				theirErr := safely(func() (err error) { want, err = c.theirsEncode(p.theirs); return err })
				if (err == nil) == (theirErr == nil) && (err != nil || bytes.Equal(got, want)) {
					continue
				}
				if differs = true; v.why == "" {
					t.Errorf("%s in holder %d, options%s\nours   %v %v\ntheirs %v %v", v.name, i, c.printed, bson.Raw(got), err, bson.Raw(want), theirErr)
				}
			}
		}
		if v.why != "" && !differs {
			t.Errorf("%s is written alike: take it off the difference %q", v.name, v.why)
		}
		if v.why != "" {
			known(t, v.why)
		}
	}
}

// safely turns a panic into an error.
func safely(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return f()
}

// flat has no structs inside, so that OmitEmpty means the same to both packages.
type flat struct {
	A int
	B string
	C []int
	D map[string]int
	E *int
	F any
	G bool
	H time.Time
	I [1]int
}

func TestOmitEmptyIsTheSameForAFlatStruct(t *testing.T) {
	for _, v := range []flat{{}, {A: 1, B: "b", C: []int{}, D: map[string]int{}, E: new(0), F: 0, G: true}, {C: []int{0}, D: map[string]int{"": 0}, H: time.Unix(1, 0)}} {
		got, err := bson.Options{OmitEmpty: true}.Marshal(v)
		var buf bytes.Buffer
		enc := theirs.NewEncoder(theirs.NewDocumentWriter(&buf))
		enc.OmitEmpty()
		if theirErr := enc.Encode(v); err != nil || theirErr != nil || !bytes.Equal(got, buf.Bytes()) {
			t.Errorf("%+v: ours %v %v, theirs %v %v", v, bson.Raw(got), err, bson.Raw(buf.Bytes()), theirErr)
		}
	}
}

// TestEverySwitchIsCompared fails when a field of Options is in none of these tests.
func TestEverySwitchIsCompared(t *testing.T) {
	names := map[string]bool{
		"OmitEmpty": true, "UseJSONStructTags": true, "ErrorOnInlineDuplicates": true, // in tests with types of their own
		"Documents": true, // DefaultDocumentM, DefaultDocumentMap
		"Strings":   true, // drawn in agree; the official package knows nothing of it
	}
	for _, s := range switches {
		names[s.name] = true
	}
	for f := range reflect.TypeFor[bson.Options]().Fields() {
		if !names[f.Name] {
			t.Errorf("Options.%s is compared nowhere", f.Name)
		}
		delete(names, f.Name)
	}
	for name := range names {
		if !strings.HasPrefix(name, "DefaultDocument") {
			t.Errorf("there is no Options.%s", name)
		}
	}
}
