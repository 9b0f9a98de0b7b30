package bson

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"net/url"
	"reflect"
	"sync"
	"testing"
	"time"
)

func TestObjectIDsAreUnique(t *testing.T) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	seen := map[ObjectID]bool{}
	for range 4 {
		wg.Go(func() {
			var mine []ObjectID
			for range 2000 {
				mine = append(mine, NewObjectID())
			}
			mu.Lock()
			defer mu.Unlock()
			for _, id := range mine {
				seen[id] = true
			}
		})
	}
	wg.Wait()
	if len(seen) != 8000 {
		t.Errorf("%d different of 8000", len(seen))
	}
	if other := newObjectIDs(); other.process == processIDs.process {
		t.Error("two processes have the same random number")
	}
}

func TestObjectIDText(t *testing.T) {
	id := ObjectID{0xab, 1}
	b, err := json.Marshal(map[string]ObjectID{"id": id})
	if err != nil || string(b) != `{"id":"ab0100000000000000000000"}` {
		t.Errorf("%s, %v", b, err)
	}
	for _, text := range []string{`"ab0100000000000000000000"`, `{"$oid":"ab0100000000000000000000"}`} {
		var got ObjectID
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != id {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "xyz", "ab010000000000000000000", "zz0100000000000000000000"} {
		if _, err := ObjectIDFromHex(bad); !errors.Is(err, ErrInvalidHex) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := json.Unmarshal([]byte(`7`), new(ObjectID)); err == nil {
		t.Error("a number was read as an ObjectID")
	}
	if id.String() != `ObjectID("ab0100000000000000000000")` || id.IsZero() || !NilObjectID.IsZero() {
		t.Error("String or IsZero is wrong")
	}
}

func TestUUIDIsSubtypeFour(t *testing.T) {
	u, err := ParseUUID("73ffd264-44b3-4c69-90e8-e7d1dfc035d4")
	if err != nil {
		t.Fatal(err)
	}
	b := mustMarshal(t, D{{"u", u}, {"raw", [16]byte(u)}})
	if s, data, _ := b.Lookup("u").BinaryOK(); s != TypeBinaryUUID || UUID(data) != u {
		t.Errorf("subtype %d", s)
	}
	var back struct{ U UUID }
	var foreign struct{ U [16]byte }
	if err := Unmarshal(b, &back); err != nil || back.U != u {
		t.Errorf("%v, %v", back.U, err)
	}
	if err := Unmarshal(b, &foreign); err != nil || foreign.U != u {
		t.Errorf("%v, %v", foreign.U, err)
	}
	for _, bad := range []Binary{{TypeBinaryUUIDOld, u[:]}, {TypeBinaryUUID, u[:15]}, {TypeBinaryGeneric, u[:]}} {
		if err := Unmarshal(mustMarshal(t, D{{"u", bad}}), &back); err == nil {
			t.Errorf("subtype %d, %d bytes were read as a UUID", bad.Subtype, len(bad.Data))
		}
	}
	if v := NewUUID(); v[6]>>4 != 4 || v[8]>>6 != 2 || v == NewUUID() {
		t.Errorf("%v is no random UUID", v)
	}
	if compact, err := ParseUUID("73ffd26444b34c6990e8e7d1dfc035d4"); err != nil || compact != u || u.String() != "73ffd264-44b3-4c69-90e8-e7d1dfc035d4" {
		t.Errorf("%v, %v", compact, err)
	}
}

func decodeTo[T any](v any) (T, error) {
	var to struct{ V T }
	b, err := Marshal(D{{"v", v}})
	if err == nil {
		err = Unmarshal(b, &to)
	}
	return to.V, err
}

func expect[T any](t *testing.T, v any, want T) {
	t.Helper()
	if got, err := decodeTo[T](v); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%T %v into %T: %v, %v", v, v, want, got, err)
	}
}

func refuse[T any](t *testing.T, v any) {
	t.Helper()
	if got, err := decodeTo[T](v); err == nil {
		t.Errorf("%T %v into %T is %v", v, v, got, got)
	}
}

func TestNumbersAreRangeChecked(t *testing.T) {
	expect(t, int64(127), int8(127))
	expect(t, 2.0, uint16(2))
	expect(t, int32(-1), float32(-1))
	expect(t, int64(1)<<62, int64(1)<<62)
	expect(t, -float64(1<<63), int64(math.MinInt64))
	expect(t, true, 1)
	expect(t, 0.0, false)
	refuse[int8](t, int64(128))
	refuse[uint](t, -1)
	refuse[int32](t, int64(1)<<31)
	refuse[int](t, 1.5)
	refuse[int64](t, float64(1<<63))
	refuse[int](t, math.NaN())
	refuse[float32](t, 1e300)
	refuse[int](t, "1")
	refuse[int](t, Decimal128{})
	var cut struct {
		I int8    `bson:",truncate"`
		F float32 `bson:",truncate"`
	}
	if err := Unmarshal(mustMarshal(t, D{{"i", 1.9}, {"f", 0.1}}), &cut); err != nil || cut.I != 1 || cut.F != 0.1 {
		t.Errorf("%+v, %v", cut, err)
	}
}

func TestNullSetsTheZeroValue(t *testing.T) {
	w := full()
	b, start := BeginDocument(nil)
	for _, key := range []string{"_id", "name", "age", "score", "when", "blob", "fixed", "addr", "many", "any", "map", "nested"} {
		b = AppendNull(b, key)
	}
	if err := Unmarshal(EndDocument(b, start), &w); err != nil {
		t.Fatal(err)
	}
	if want := (whole{Wide: 7, Inline: Inline{4, 5}, Rest: w.Rest}); !reflect.DeepEqual(w, want) {
		t.Errorf("left over: %+v", w)
	}
}

func TestStandardTypesConvert(t *testing.T) {
	u, _ := url.Parse("https://example.com/a?b=c")
	expect(t, *u, *u)
	expect(t, json.Number("7"), json.Number("7"))
	expect(t, json.Number("7.5"), 7.5)
	at := time.UnixMilli(1356351330501).UTC()
	expect(t, at, at)
	expect(t, at, DateTime(1356351330501))
	expect(t, "2012-12-24T12:15:30.501Z", at)
	expect(t, int64(1356351330501), at)
	expect(t, Timestamp{5, 1}, time.Unix(5, 0).UTC())
	expect(t, time.Second, int64(1e9))
	expect(t, []byte{1}, []byte{1})
	expect(t, "text", []byte("text"))
	expect(t, []byte("text"), "text")
	expect(t, [2]int{1, 2}, []int{1, 2})
	expect(t, []int{1}, [2]int{1, 0})
	refuse[[2]int](t, []int{1, 2, 3})
	refuse[[]byte](t, Binary{TypeBinaryUUID, []byte{1}})
	refuse[[2]byte](t, []byte{1})
	refuse[time.Time](t, "yesterday")
	refuse[string](t, ObjectID{})
	refuse[ObjectID](t, "000000000000000000000000")
	refuse[error](t, "x")
}

func TestDecimalConverts(t *testing.T) {
	for text, want := range map[string]int64{"12": 12, "1.50E+3": 1500, "-3.000": -3, "0E+6111": 0} {
		d, err := ParseDecimal128(text)
		if got, ok := Decimal128Value(d).AsInt64OK(); err != nil || !ok || got != want {
			t.Errorf("%s: %d, %v, %v", text, got, ok, err)
		}
	}
	for _, text := range []string{"1.5", "NaN", "Infinity", "9223372036854775808", "1E+6111"} {
		d, err := ParseDecimal128(text)
		if got, ok := Decimal128Value(d).AsInt64OK(); err != nil || ok {
			t.Errorf("%s is the integer %d", text, got)
		}
	}
	d, _ := ParseDecimal128("-1.25")
	if f, ok := Decimal128Value(d).AsFloat64OK(); !ok || f != -1.25 {
		t.Errorf("as a double: %v", f)
	}
	if _, ok := ParseDecimal128FromBigInt(new(big.Int).Lsh(big.NewInt(1), 127), 0); ok {
		t.Error("39 digits fit")
	}
	b, err := json.Marshal(d)
	var back Decimal128
	if err != nil || json.Unmarshal(b, &back) != nil || back != d {
		t.Errorf("JSON %s, %v", b, back)
	}
}
