package bson

import (
	"bytes"
	"math/big"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawAny draws a value that a D can hold, in the Go type that decoding gives.
func drawAny(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 16
		if depth == 0 {
			kinds = 14
		}
		text := rapid.String()
		key := rapid.StringMatching(`[^\x00]*`)
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return rapid.Float64().Draw(t, "double")
		case 1:
			return text.Draw(t, "string")
		case 2:
			return rapid.Bool().Draw(t, "bool")
		case 3:
			return rapid.Int32().Draw(t, "int32")
		case 4:
			return rapid.Int64().Draw(t, "int64")
		case 5:
			return nil
		case 6:
			return DateTime(rapid.Int64().Draw(t, "date"))
		case 7:
			return Timestamp{rapid.Uint32().Draw(t, "t"), rapid.Uint32().Draw(t, "i")}
		case 8:
			return ObjectID(rapid.SliceOfN(rapid.Byte(), 12, 12).Draw(t, "oid"))
		case 9:
			return Binary{rapid.Byte().Draw(t, "subtype"), rapid.SliceOf(rapid.Byte()).Draw(t, "data")}
		case 10:
			return Regex{key.Draw(t, "pattern"), rapid.SampledFrom([]string{"", "i", "imx"}).Draw(t, "options")}
		case 11:
			return NewDecimal128(rapid.Uint64().Draw(t, "high"), rapid.Uint64().Draw(t, "low"))
		case 12:
			return rapid.SampledFrom([]any{MinKey{}, MaxKey{}, Undefined{}, JavaScript("f()"), Symbol("s")}).Draw(t, "rare")
		case 13:
			return DBPointer{text.Draw(t, "db"), ObjectID{1}}
		case 14:
			return A(rapid.SliceOfN(drawAny(depth-1), 0, 4).Draw(t, "array"))
		}
		return drawD(depth-1).Draw(t, "doc")
	})
}

func drawD(depth int) *rapid.Generator[D] {
	return rapid.Custom(func(t *rapid.T) D {
		d := D{}
		for range rapid.IntRange(0, 5).Draw(t, "elements") {
			d = append(d, E{rapid.StringMatching(`[^\x00]{0,9}`).Draw(t, "key"), drawAny(depth).Draw(t, "value")})
		}
		return d
	})
}

func TestAnyDocumentRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawD(3).Draw(t, "d")
		b, err := Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := Raw(b).Validate(); err != nil {
			t.Fatal(err)
		}
		var back D
		if err := Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, d) {
			t.Fatalf("got  %#v\nwant %#v", back, d)
		}
		again, start := BeginDocument(nil)
		for _, e := range d {
			v, err := ValueOf(e.Value)
			if err != nil {
				t.Fatal(err)
			}
			again = AppendValue(again, e.Key, v)
		}
		if again = EndDocument(again, start); !bytes.Equal(again, b) {
			t.Fatalf("by AppendValue %x, by Marshal %x", again, b)
		}
	})
}

type generated struct {
	S    string
	B    bool             `bson:"b,omitempty"`
	I    int              `bson:"i,omitzero"`
	I8   int8             `bson:"i8"`
	U    uint32           `bson:"u,minsize"`
	F    float32          `bson:"f"`
	T    time.Time        `bson:"t"`
	P    *int64           `bson:"p"`
	L    []string         `bson:"l"`
	N    map[string][]int `bson:"n"`
	A    [2]bool          `bson:"a"`
	Sub  *generated       `bson:"sub,omitempty"`
	Many []map[int]string `bson:"many,omitempty"`
}

func drawStruct(depth int) *rapid.Generator[generated] {
	return rapid.Custom(func(t *rapid.T) generated {
		g := generated{
			S: rapid.String().Draw(t, "s"), B: rapid.Bool().Draw(t, "b"), I: rapid.Int().Draw(t, "i"),
			I8: rapid.Int8().Draw(t, "i8"), U: rapid.Uint32().Draw(t, "u"), F: rapid.Float32().Draw(t, "f"),
			T: DateTime(rapid.Int64Range(-1<<50, 1<<50).Draw(t, "t")).Time(),
			L: rapid.SliceOf(rapid.String()).Draw(t, "l"),
			N: rapid.MapOfN(rapid.StringMatching(`[a-z]*`), rapid.SliceOf(rapid.Int()), 0, 3).Draw(t, "n"),
			A: [2]bool{rapid.Bool().Draw(t, "a")},
		}
		if rapid.Bool().Draw(t, "hasP") {
			g.P = new(rapid.Int64().Draw(t, "p"))
		}
		if depth > 0 {
			g.Sub = new(drawStruct(depth-1).Draw(t, "sub"))
			g.Many = rapid.SliceOfN(rapid.MapOfN(rapid.Int(), rapid.String(), 0, 2), 1, 3).Draw(t, "many")
		}
		return g
	})
}

func TestAnyStructRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawStruct(2).Draw(t, "g")
		b, err := Append([]byte("before"), &g)
		if err != nil {
			t.Fatal(err)
		}
		if err := Raw(b[6:]).Validate(); err != nil {
			t.Fatal(err)
		}
		var back generated
		if err := Unmarshal(b[6:], &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, g) {
			t.Fatalf("got  %#v\nwant %#v", back, g)
		}
		byD := mustDecodeRapid(t, b[6:])
		viaD, err := Marshal(byD)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(viaD, b[6:]) {
			t.Fatalf("through D %x, was %x", viaD, b[6:])
		}
	})
}

func mustDecodeRapid(t *rapid.T, b []byte) D {
	var d D
	if err := Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDecimalTextRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 14).Draw(t, "coefficient"))
		if rapid.Bool().Draw(t, "negative") {
			c.Neg(c)
		}
		exp := rapid.IntRange(minDecimalExp, maxDecimalExp).Draw(t, "exp")
		d, ok := ParseDecimal128FromBigInt(c, exp)
		if !ok {
			t.Fatalf("%v E%d was refused", c, exp)
		}
		back, err := ParseDecimal128(d.String())
		if err != nil || back != d {
			t.Fatalf("%s is read as %s: %v", d, back, err)
		}
		gotC, gotExp, err := d.BigInt()
		if err != nil || gotC.Cmp(c) != 0 || gotExp != exp {
			t.Fatalf("%v E%d comes back as %v E%d, %v", c, exp, gotC, gotExp, err)
		}
	})
}
