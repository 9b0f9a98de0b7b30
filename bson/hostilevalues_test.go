package bson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// within fails the test if f does not end soon.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s does not end", what)
	}
}

// selfish are values that hold themselves, some of them twice.
func selfish() map[string]any {
	m, twice, plain := M{}, M{}, map[string]any{}
	m["m"], plain["p"] = m, plain
	twice["a"], twice["b"] = twice, twice
	d, a, anys := D{{"d", nil}, {"e", nil}}, A{nil, nil}, []any{nil}
	d[0].Value, d[1].Value, a[0], a[1], anys[0] = d, d, a, a, anys
	var loop any
	loop = &loop
	type ring struct{ Next *ring }
	r := &ring{}
	r.Next = r
	type keeper struct{ Any any }
	k := &keeper{}
	k.Any = k
	type list []list
	l := list{nil}
	l[0] = l
	type tree map[string]tree
	tr := tree{}
	tr["t"] = tr
	code := CodeWithScope{Scope: M{}}
	code.Scope.(M)["c"] = code
	return map[string]any{"M": m, "M twice": twice, "map": plain, "D": d, "A": a, "[]any": anys, "*any": loop, "ring": r, "keeper": k, "list": l, "tree": tr, "code": code}
}

func TestValuesThatHoldThemselvesAreErrors(t *testing.T) {
	for name, v := range selfish() {
		within(t, name, func() {
			if b, err := Marshal(D{{"v", v}}); err == nil || !strings.Contains(err.Error(), "deeper than") {
				t.Errorf("%s is written as %.50x, %.100v", name, b, err)
			}
			if _, err := MarshalExtJSON(v, true, true); err == nil {
				t.Errorf("%s has a text", name)
			}
			if s := (D{{"v", v}}).String(); !strings.Contains(s, "deeper than") {
				t.Errorf("%s prints as %.100s", name, s)
			}
			if s, ok := v.(fmt.Stringer); ok && !strings.Contains(s.String(), "deeper than") {
				t.Errorf("%s prints as %.100s", name, s)
			}
		})
	}
	for _, name := range []string{"M", "M twice", "map", "D", "A", "[]any"} {
		within(t, name, func() {
			if _, err := json.Marshal(D{{"v", selfish()[name]}}); err == nil || !strings.Contains(err.Error(), "deeper than") {
				t.Errorf("%s as JSON: %.100v", name, err)
			}
		})
	}
	if err := new(D).UnmarshalJSON(bytes.Repeat([]byte("["), 1<<20)); err == nil || !strings.Contains(err.Error(), "deeper than") {
		t.Errorf("JSON that only begins: %.100v", err)
	}
}

type (
	toItself *toItself
	lists    []lists
	trees    map[string]trees
	pairOf   struct{ A, B *pairOf }
	inItself struct {
		P *inItself `bson:",inline"`
		X int
	}
	viaSlice struct{ S []viaSlice }
	viaArray struct{ S [1]*viaArray }
	viaMap   struct{ M map[string]viaMap }
	viaAny   struct{ A any }
	mutual   struct{ Other *mutualB }
	mutualB  struct{ Other []mutual }
)

func TestRecursiveTypesAreCompiledOnce(t *testing.T) {
	doc := mustMarshal(t, D{{"a", D{{"b", D{}}}}, {"s", A{D{{"s", A{}}}}}, {"m", D{{"k", D{{"m", D{}}}}}}, {"other", D{{"other", A{D{}}}}}, {"x", int32(1)}})
	for _, to := range []any{new(pairOf), new(viaSlice), new(viaArray), new(viaMap), new(viaAny), new(mutual)} {
		within(t, fmt.Sprintf("%T", to), func() {
			if err := Unmarshal(doc, to); err != nil {
				t.Errorf("%T: %v", to, err)
			}
			if _, err := Marshal(to); err != nil {
				t.Errorf("%T: %v", to, err)
			}
		})
	}
	for _, to := range []any{new(toItself), new(lists), new(inItself)} {
		within(t, fmt.Sprintf("%T", to), func() {
			if err := Unmarshal(doc, to); err == nil {
				t.Errorf("%T takes a document", to)
			}
		})
	}
	var tr trees
	if err := Unmarshal(mustMarshal(t, D{{"a", D{{"b", D{}}}}}), &tr); err != nil || tr["a"]["b"] == nil {
		t.Errorf("%v, %v", tr, err)
	}
	var l struct{ L lists }
	if err := Unmarshal(mustMarshal(t, D{{"l", A{A{}, A{A{}}}}}), &l); err != nil || len(l.L[1]) != 1 {
		t.Errorf("%v, %v", l, err)
	}
	if _, err := Marshal(struct{ P toItself }{}); err != nil {
		t.Errorf("a nil pointer to pointers: %v", err)
	}
}

func TestTypedNilsAreNullOrAnError(t *testing.T) {
	type s struct{ X int }
	var noFunc func()
	for _, v := range []any{(*int)(nil), (**int)(nil), (*s)(nil), (*D)(nil), (*M)(nil), (*envelope)(nil), (*celsius)(nil), []int(nil), map[string]int(nil), D(nil), M(nil), A(nil), Raw(nil), RawArray(nil), []byte(nil), (*any)(nil), (*time.Time)(nil), (*ObjectID)(nil)} {
		got, err := ValueOf(v)
		if err != nil || got.Type != TypeNull {
			t.Errorf("%T is %v, %v", v, got, err)
		}
		if b, err := Marshal(v); err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("%T is the document %x, %v", v, b, err)
		}
	}
	for _, v := range []any{noFunc, (chan int)(nil), make(chan<- int), func() {}, 1i, uintptr(0), struct{ C chan int }{}, []chan int{nil}, map[string]func(){"f": nil}} {
		if got, err := ValueOf(v); err == nil || !strings.Contains(err.Error(), "cannot encode") {
			t.Errorf("%T is %v, %v", v, got, err)
		}
	}
	doc := mustMarshal(t, D{{"x", 1}})
	for _, to := range []any{nil, (*s)(nil), (*any)(nil), s{}, 5, "x", D{}, []int{}, make(chan int), func() {}, M(nil), map[string]int(nil), new(chan int), new(func()), new(error), new(int), new(string), new([]int), new([3]byte)} {
		if err := Unmarshal(doc, to); err == nil {
			t.Errorf("%T took a document", to)
		}
		if err := (Options{}).NewBatch().Unmarshal(doc, to); err == nil {
			t.Errorf("%T took a document of a batch", to)
		}
		if err := NewDecoder(bytes.NewReader(doc)).Decode(to); err == nil {
			t.Errorf("%T took a document of a stream", to)
		}
	}
	var p **s
	if err := Unmarshal(doc, &p); err != nil || (**p).X != 1 {
		t.Errorf("a nil pointer to a pointer is made: %v, %v", p, err)
	}
}

type panicKey struct{}

func (panicKey) MarshalText() ([]byte, error) { return nil, errors.New("no text") }

func TestMapsWithOddKeys(t *testing.T) {
	for _, m := range []any{map[any]int{"a": 1}, map[float64]int{1: 1}, map[bool]int{true: 1}, map[[2]string]int{{}: 1}, map[struct{}]int{{}: 1}, map[*int]int{nil: 1}, map[chan int]int{nil: 1}, map[complex64]int{1: 1}, map[panicKey]int{{}: 1}, map[string]int{"\x00": 1}, map[string]int{"\xff": 1}} {
		if b, err := Marshal(m); err == nil {
			t.Errorf("%T is written as %v", m, Raw(b))
		}
		if reflect.TypeOf(m).Key().Kind() == reflect.String {
			continue
		}
		if err := Unmarshal(mustMarshal(t, D{{"a", 1}}), reflect.New(reflect.TypeOf(m)).Interface()); err == nil {
			t.Errorf("%T took the key a", m)
		}
	}
	for want, m := range map[string]any{`{"":1}`: map[string]int{"": 1}, `{"-9223372036854775808":1}`: map[int64]int{-1 << 63: 1}, `{"a.b":1}`: M{"a.b": 1}, `{"$x":1}`: map[string]any{"$x": 1}} {
		if got := mustMarshal(t, m).String(); got != want {
			t.Errorf("%T is %s", m, got)
		}
	}
	o := Options{StringifyMapKeysWithFmt: true}
	for want, m := range map[string]any{`{"1.5":1}`: map[float64]int{1.5: 1}, `{"{1 [a]}":2}`: map[struct {
		A int
		B [1]string
	}]int{{1, [1]string{"a"}}: 2}, `{"<nil>":3}`: map[any]int{nil: 3}} {
		if b, err := o.Marshal(m); err != nil || Raw(b).String() != want {
			t.Errorf("%T is %v, %v", m, Raw(b), err)
		}
	}
}

type hiddenBase struct{ Shown, hidden int }

func TestUnexportedFieldsAreNeitherReadNorWritten(t *testing.T) {
	type embeds struct {
		hiddenBase
		own int
		fn  func()
		Own int
	}
	v := embeds{hiddenBase{1, 2}, 3, nil, 4}
	if got := mustMarshal(t, v).String(); got != `{"own":4}` {
		t.Errorf("%s", got)
	}
	type inlines struct {
		hiddenBase `bson:",inline"`
		fn         func() `bson:"fn"`
	}
	in := inlines{hiddenBase: hiddenBase{1, 2}}
	doc := mustMarshal(t, in)
	if got := doc.String(); got != `{"shown":1}` || in.fn != nil || v.own != 3 || v.fn != nil {
		t.Errorf("%s", got)
	}
	in = inlines{}
	if err := Unmarshal(mustMarshal(t, D{{"shown", 5}, {"hidden", 6}, {"fn", 7}}), &in); err != nil || in.Shown != 5 || in.hidden != 0 {
		t.Errorf("%+v, %v", in, err)
	}
}

// TestHugeLengthsTakeNoMemory puts lengths that cannot be into every place of a document that has one.
func TestHugeLengthsTakeNoMemory(t *testing.T) {
	doc := mustMarshal(t, D{{"s", "x"}, {"d", D{{"a", A{"y"}}}}, {"b", []byte{1}}, {"o", Binary{2, []byte{1}}}, {"c", CodeWithScope{"f", D{}}}, {"j", JavaScript("f")}, {"y", Symbol("f")}, {"p", DBPointer{DB: "n"}}, {"m", D{{"k", "v"}}}})
	type into struct {
		S, Y string
		D    map[string][]string
		B    []byte
		M    map[string]string
		C    CodeWithScope
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tried := 0
	for at := 0; at+4 <= len(doc); at++ {
		for _, n := range []uint32{0x7fffffff, 0xffffffff, 0x80000000, 0x7ffffff0, 0, 4, uint32(len(doc)), uint32(len(doc)) - 1} {
			b := bytes.Clone(doc)
			binary.LittleEndian.PutUint32(b[at:], n)
			for _, to := range []any{new(D), new(M), new(any), new(into), new(map[string]any), new(Raw), new(map[string]RawValue)} {
				err, bad := Unmarshal(b, to), Raw(b).Validate()
				tried++
				if _, raw := to.(*Raw); err == nil && bad != nil && reflect.TypeOf(to) != reflect.TypeFor[*into]() && !raw && reflect.TypeOf(to) != reflect.TypeFor[*map[string]RawValue]() {
					t.Errorf("%x at %d: %T took what is malformed: %v", n, at, to, bad)
				}
			}
		}
	}
	runtime.ReadMemStats(&after)
	if perTry := (after.TotalAlloc - before.TotalAlloc) / uint64(tried); perTry > 64<<10 {
		t.Errorf("each of %d documents took %d bytes", tried, perTry)
	}
	if checkSize(1<<31-1) != nil || checkSize(1<<31) == nil {
		t.Error("documents may be larger than their length can say")
	}
}

type (
	lateA    struct{ X int }
	lateB    int
	lateC    []string
	hookLate struct{}
)

func (hookLate) MarshalBSON() ([]byte, error) {
	Register(func(hookLate) (RawValue, error) { return StringValue("registered"), nil }, nil)
	return Marshal(D{{"by", "method"}})
}

func TestRegisteringFromManyPlacesAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 20 {
				switch (i + n) % 4 {
				case 0:
					Register(func(a lateA) (RawValue, error) { return Int32Value(int32(a.X)), nil }, func(v RawValue) (lateA, error) { return lateA{int(v.AsInt64())}, nil })
				case 1:
					Register(func(b *lateB) (RawValue, error) { return StringValue("pointer"), nil }, nil)
				case 2:
					Register[lateC](nil, func(RawValue) (lateC, error) { return lateC{"read"}, nil })
				case 3:
					RegisterObjectIDType[registeredID]()
				}
				o := Options{NilSliceAsEmpty: n%2 == 0, Strings: StringMemory(n % 3)}
				b, err := o.Marshal(D{{"a", lateA{1}}, {"b", new(lateB)}, {"c", lateC{"x"}}, {"id", registeredID{}}})
				if err != nil && !strings.Contains(err.Error(), "RegisterObjectIDType") {
					t.Error(err)
				}
				var back struct{ C lateC }
				if err == nil {
					if err := o.Unmarshal(b, &back); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	b := mustMarshal(t, D{{"a", lateA{7}}, {"b", new(lateB)}, {"c", lateC{"x"}}})
	if b.String() != `{"a":7,"b":"pointer","c":["x"]}` {
		t.Errorf("all are registered, and the document is %v", b)
	}
	var back struct {
		A lateA
		C lateC
	}
	if err := Unmarshal(b, &back); err != nil || back.A.X != 7 || back.C[0] != "read" {
		t.Errorf("%+v, %v", back, err)
	}
	first, second := mustMarshal(t, D{{"h", hookLate{}}}), mustMarshal(t, D{{"h", hookLate{}}})
	if first.String() != `{"h":{"by":"method"}}` || second.String() != `{"h":"registered"}` {
		t.Errorf("registered from a method: %v, then %v", first, second)
	}
}

func TestRawAccessorsOfTheOfficialPackage(t *testing.T) {
	doc := mustMarshal(t, D{{"a", int32(1)}, {"b", A{2.0, "x"}}})
	if e := doc.Index(1); e.Key() != "b" || e.Validate() != nil {
		t.Errorf("%v", e)
	}
	_, err := doc.IndexErr(2)
	_, malformed := Raw{9, 0, 0, 0, 2, 'a', 0, 1, 0}.IndexErr(0)
	var ve *ValidationError
	if !errors.Is(err, ErrElementNotFound) || !errors.As(malformed, &ve) {
		t.Errorf("%v, %v", err, malformed)
	}
	if v, err := doc.Lookup("b").Array().IndexErr(0); err != nil || v.AsInt64() != 2 || v.AsFloat64() != 2 {
		t.Errorf("%v, %v", v, err)
	}
	for _, e := range []RawElement{nil, {2}, {2, 'a', 0}, {0x99, 'a', 0}} {
		_, keyErr := e.KeyErr()
		_, valueErr := e.ValueErr()
		if e.Validate() == nil || keyErr == nil || valueErr == nil {
			t.Errorf("%x is an element", []byte(e))
		}
	}
	if key, err := doc.Index(0).KeyErr(); err != nil || key != "a" {
		t.Errorf("%s, %v", key, err)
	}
	r := bytes.NewReader(append(bytes.Clone(doc), doc...))
	one, err1 := ReadDocument(r)
	two, err2 := ReadArray(r)
	if err1 != nil || err2 != nil || !bytes.Equal(one, doc) || !bytes.Equal(two, doc) {
		t.Errorf("%v %v, %v %v", one, err1, two, err2)
	}
	for want, v := range map[string]fmt.Stringer{
		`{"$regularExpression":{"pattern":"a\"","options":"i"}}`: Regex{`a"`, "i"}, `{"$code":"f","$scope":{"x":1}}`: CodeWithScope{"f", M{"x": 1}},
		`{"$dbPointer":{"$ref":"c","$id":{"$oid":"010000000000000000000000"}}}`: DBPointer{"c", ObjectID{1}}, `{"$timestamp":{"t":1,"i":2}}`: Timestamp{1, 2},
	} {
		if v.String() != want {
			t.Errorf("%T prints %s", v, v)
		}
	}
	for _, v := range []RawValue{StringValue("1"), DoubleValue(1.5), {}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v is an integer", v)
				}
			}()
			v.AsInt64()
		}()
	}
}
