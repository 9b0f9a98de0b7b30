package interop

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/sextantdb/sextant/bson"
	theirs "go.mongodb.org/mongo-driver/v2/bson"
)

// pair is one value in the types of both packages.
type pair struct{ ours, theirs any }

// drawPair draws a value that a document can hold.
func drawPair(r *rand.Rand, depth int) pair {
	same := func(x any) pair { return pair{x, x} }
	kinds := 29
	if depth == 0 {
		kinds = 26
	}
	var id [12]byte
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	switch r.IntN(kinds) {
	case 0:
		return same(math.Float64frombits(r.Uint64()))
	case 1, 2, 3:
		return same(drawText(r))
	case 4:
		return same(r.IntN(2) == 0)
	case 5:
		return same(int32(r.Uint32()))
	case 6:
		return same(int64(r.Uint64()))
	case 7:
		return same(int(r.Int64()>>r.IntN(64)) - 5)
	case 8:
		return same(nil)
	case 9:
		ms := int64(r.Uint64()) >> 20
		return pair{bson.DateTime(ms), theirs.DateTime(ms)}
	case 10:
		return same(time.UnixMilli(int64(r.Uint64()) >> 24).UTC())
	case 11:
		t, i := r.Uint32(), r.Uint32()
		return pair{bson.Timestamp{T: t, I: i}, theirs.Timestamp{T: t, I: i}}
	case 12:
		return pair{bson.ObjectID(id), theirs.ObjectID(id)}
	case 13:
		b := []byte(drawText(r))
		subtype := byte(r.Uint32())
		return pair{bson.Binary{Subtype: subtype, Data: b}, theirs.Binary{Subtype: subtype, Data: b}}
	case 14:
		return same([]byte(drawText(r)))
	case 15:
		p := drawKey(r)
		return pair{bson.Regex{Pattern: p, Options: "xim"}, theirs.Regex{Pattern: p, Options: "xim"}}
	case 16:
		h, l := r.Uint64(), r.Uint64()
		return pair{bson.NewDecimal128(h, l), theirs.NewDecimal128(h, l)}
	case 17:
		return []pair{{bson.MinKey{}, theirs.MinKey{}}, {bson.MaxKey{}, theirs.MaxKey{}}, {bson.Undefined{}, theirs.Undefined{}}, {bson.Null{}, theirs.Null{}}}[r.IntN(4)]
	case 18:
		s := drawText(r)
		return []pair{{bson.JavaScript(s), theirs.JavaScript(s)}, {bson.Symbol(s), theirs.Symbol(s)},
			{bson.DBPointer{DB: s, Pointer: id}, theirs.DBPointer{DB: s, Pointer: id}}}[r.IntN(3)]
	case 19:
		return same([]any{int8(-3), uint8(200), int16(-300), uint16(40000)}[r.IntN(4)])
	case 20:
		return same([]any{uint32(r.Uint32()), uint64(r.Uint32()), uint(r.Uint32())}[r.IntN(3)])
	case 21:
		return same(float32(r.Float64()))
	case 22:
		return same([]string{drawText(r), "x"})
	case 23:
		return same(map[string]int64{drawKey(r): int64(r.Uint64())})
	case 24:
		return same([]any{[]string(nil), map[string]string(nil), []byte(nil), [3]byte{1, 2}, [2]bool{true}, (*int)(nil), new(r.IntN(9))}[r.IntN(7)])
	case 25:
		s := bson.NewVector([]int8{1, -2})
		return pair{s, theirs.NewVector([]int8{1, -2})}
	case 26:
		d := drawPairD(r, depth-1)
		s := bson.JavaScript(drawText(r))
		return []pair{{bson.CodeWithScope{Code: s, Scope: d.ours}, theirs.CodeWithScope{Code: theirs.JavaScript(s), Scope: d.theirs}}, d}[r.IntN(2)]
	case 27:
		var a bson.A
		var b theirs.A
		for range r.IntN(12) {
			p := drawPair(r, depth-1)
			a, b = append(a, p.ours), append(b, p.theirs)
		}
		return pair{a, b}
	}
	p, k := drawPair(r, depth-1), drawKey(r)
	return pair{bson.M{k: p.ours}, theirs.M{k: p.theirs}} // one entry: the order of more is random
}

func drawPairD(r *rand.Rand, depth int) pair {
	a, b := bson.D{}, theirs.D{}
	for range r.IntN(6) {
		p, k := drawPair(r, depth), drawKey(r)
		a, b = append(a, bson.E{Key: k, Value: p.ours}), append(b, theirs.E{Key: k, Value: p.theirs})
	}
	return pair{a, b}
}

func drawText(r *rand.Rand) string {
	var out []rune
	for range r.IntN(1 << r.IntN(8)) {
		out = append(out, []rune("abcdefgé\x00世x<\u2028")[r.IntN(13)])
	}
	return string(out)
}

func drawKey(r *rand.Rand) string {
	return "clé-0123456789-abcdefg"[:4+r.IntN(20)]
}

// ourValue turns a value that the official package has decoded into what ours should be.
func ourValue(v any) any {
	switch x := v.(type) {
	case theirs.D:
		if x == nil {
			return bson.D(nil)
		}
		out := bson.D{}
		for _, e := range x {
			out = append(out, bson.E{Key: e.Key, Value: ourValue(e.Value)})
		}
		return out
	case theirD:
		return ourD(ourValue(theirs.D(x)).(bson.D))
	case theirs.M:
		if x == nil {
			return bson.M(nil)
		}
		out := bson.M{}
		for k, e := range x {
			out[k] = ourValue(e)
		}
		return out
	case map[string]any:
		if x == nil {
			return x
		}
		out := map[string]any{}
		for k, e := range x {
			out[k] = ourValue(e)
		}
		return out
	case theirs.A:
		if x == nil {
			return bson.A(nil)
		}
		out := bson.A{}
		for _, e := range x {
			out = append(out, ourValue(e))
		}
		return out
	case theirs.ObjectID:
		return bson.ObjectID(x)
	case theirs.DateTime:
		return bson.DateTime(x)
	case theirs.Timestamp:
		return bson.Timestamp{T: x.T, I: x.I}
	case theirs.Binary:
		return bson.Binary{Subtype: x.Subtype, Data: x.Data}
	case theirs.Regex:
		return bson.Regex{Pattern: x.Pattern, Options: x.Options}
	case theirs.Decimal128:
		return bson.NewDecimal128(x.GetBytes())
	case theirs.JavaScript:
		return bson.JavaScript(x)
	case theirs.Symbol:
		return bson.Symbol(x)
	case theirs.DBPointer:
		return bson.DBPointer{DB: x.DB, Pointer: bson.ObjectID(x.Pointer)}
	case theirs.CodeWithScope:
		return bson.CodeWithScope{Code: bson.JavaScript(x.Code), Scope: ourValue(x.Scope)}
	case theirs.RawValue:
		return bson.RawValue{Type: bson.Type(x.Type), Value: x.Value}
	case theirs.Vector:
		if x.Type() == 0 {
			return bson.Vector{}
		}
		v, err := bson.NewVectorFromBinary(ourValue(x.Binary()).(bson.Binary))
		if err != nil {
			panic(err)
		}
		return v
	case theirs.MinKey:
		return bson.MinKey{}
	case theirs.MaxKey:
		return bson.MaxKey{}
	case theirs.Undefined:
		return bson.Undefined{}
	case theirs.Null:
		return bson.Null{}
	}
	return v
}

// equal is reflect.DeepEqual for which NaN equals itself, pointers are what they point to, and types of the same name in both
// packages are the same.
func equal(a, b any) bool {
	return reflect.DeepEqual(a, b) || fmt.Sprintf("%#v", pointee(a)) == fmt.Sprintf("%#v", pointee(b))
}

func pointee(v any) any {
	for r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && !r.IsNil(); r = reflect.ValueOf(v) {
		v = r.Elem().Interface()
	}
	return ourValue(v)
}
