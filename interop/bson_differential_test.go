package interop

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sextantdb/sextant/bson"
	theirs "go.mongodb.org/mongo-driver/v2/bson"
)

// record has fields that both packages write and read without knowing each other's types.
type record struct {
	S     string `bson:"s,omitempty"`
	I     int
	I8    int8
	U     uint32  `bson:"u,minsize"`
	L     int64   `bson:"l,minsize"`
	L2    int64   `bson:"l2"`
	F     float32 `bson:"f,truncate"`
	G     float64
	B     bool
	T     time.Time `bson:"t,omitempty"`
	P     *int64    `bson:"p,omitempty"`
	Any   any
	List  []string
	Fl    []float64
	Map   map[string]string
	IDs   map[int]int32 `bson:"ids"`
	Sub   sub           `bson:"sub,omitempty"`
	Subs  []sub
	PSub  *sub
	In    `bson:",inline"`
	Bytes []byte
	Arr   [3]int32
	Rest  map[string]any `bson:",inline"`
}

type sub struct {
	X int64
	Y string `bson:"why"`
	Z *sub   `bson:"z,omitempty"`
}

type In struct {
	S    string
	Deep int `bson:"deep_one_with_a_long_name"`
}

// option is one behaviour switch on both sides.
type option struct {
	name string
	ours func(*bson.Options)
	enc  func(*theirs.Encoder)
	dec  func(*theirs.Decoder)
}

var switches = []option{
	{"NilSliceAsEmpty", func(o *bson.Options) { o.NilSliceAsEmpty = true }, (*theirs.Encoder).NilSliceAsEmpty, nil},
	{"NilMapAsEmpty", func(o *bson.Options) { o.NilMapAsEmpty = true }, (*theirs.Encoder).NilMapAsEmpty, nil},
	{"NilByteSliceAsEmpty", func(o *bson.Options) { o.NilByteSliceAsEmpty = true }, (*theirs.Encoder).NilByteSliceAsEmpty, nil},
	{"OmitZeroStruct", func(o *bson.Options) { o.OmitZeroStruct = true }, (*theirs.Encoder).OmitZeroStruct, nil},
	{"IntMinSize", func(o *bson.Options) { o.IntMinSize = true }, (*theirs.Encoder).IntMinSize, nil},
	{"StringifyMapKeysWithFmt", func(o *bson.Options) { o.StringifyMapKeysWithFmt = true }, (*theirs.Encoder).StringifyMapKeysWithFmt, nil},
	{"DefaultDocumentM", func(o *bson.Options) { o.Documents = bson.DocumentsAsM }, nil, (*theirs.Decoder).DefaultDocumentM},
	{"DefaultDocumentMap", func(o *bson.Options) { o.Documents = bson.DocumentsAsMap }, nil, (*theirs.Decoder).DefaultDocumentMap},
	{"AllowTruncatingDoubles", func(o *bson.Options) { o.AllowTruncatingDoubles = true }, nil, (*theirs.Decoder).AllowTruncatingDoubles},
	{"BinaryAsSlice", func(o *bson.Options) { o.BinaryAsSlice = true }, nil, (*theirs.Decoder).BinaryAsSlice},
	{"ObjectIDAsHexString", func(o *bson.Options) { o.ObjectIDAsHexString = true }, nil, (*theirs.Decoder).ObjectIDAsHexString},
	{"UseLocalTimeZone", func(o *bson.Options) { o.UseLocalTimeZone = true }, nil, (*theirs.Decoder).UseLocalTimeZone},
	{"ZeroMaps", func(o *bson.Options) { o.ZeroMaps = true }, nil, (*theirs.Decoder).ZeroMaps},
	{"ZeroStructs", func(o *bson.Options) { o.ZeroStructs = true }, nil, (*theirs.Decoder).ZeroStructs},
}

// Where two of the switches are in the list.
const zeroMaps, zeroStructs = 12, 13

// codecs are both packages with the options whose bits are set.
type codecs struct {
	ours    bson.Options
	chosen  []option
	printed string
}

func choose(bits uint32) codecs {
	c := codecs{ours: bson.Options{Documents: bson.DocumentsAsD}} // their default; ours is in the list of differences
	for i, o := range switches {
		if bits&(1<<i) != 0 {
			o.ours(&c.ours)
			c.chosen = append(c.chosen, o)
			c.printed += " " + o.name
		}
	}
	return c
}

func (c codecs) theirsEncode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := theirs.NewEncoder(theirs.NewDocumentWriter(&buf))
	for _, o := range c.chosen {
		if o.enc != nil {
			o.enc(enc)
		}
	}
	err := enc.Encode(v)
	return buf.Bytes(), err
}

func (c codecs) theirsDecode(data []byte, v any) error {
	if len(c.chosen) == 0 {
		return theirs.Unmarshal(data, v)
	}
	dec := theirs.NewDecoder(theirs.NewDocumentReader(bytes.NewReader(data)))
	for _, o := range c.chosen {
		if o.dec != nil {
			o.dec(dec)
		}
	}
	return dec.Decode(v)
}

func drawRecord(r *rand.Rand) record {
	p := r.Int64()
	rec := record{S: drawText(r), I: int(r.Int64() >> r.IntN(64)), I8: int8(r.Uint32()), U: r.Uint32(), L: r.Int64() >> r.IntN(64), L2: r.Int64() >> 40,
		F: float32(r.Float64()), G: r.Float64(), B: r.IntN(2) == 0, Any: drawText(r), Fl: []float64{1.5},
		In: In{S: "hidden", Deep: r.IntN(9)}, Arr: [3]int32{1, 2, 3}}
	if r.IntN(2) == 0 {
		rec.P, rec.T, rec.List = &p, time.UnixMilli(r.Int64()>>24).UTC(), []string{drawText(r), ""}
		rec.Map, rec.IDs = map[string]string{drawKey(r): drawText(r)}, map[int]int32{r.IntN(5): 7}
		rec.Sub, rec.Subs = sub{X: 1, Z: &sub{Y: "y"}}, []sub{{}, {X: p}}
		rec.PSub, rec.Bytes = &sub{}, []byte{1}
		rec.Rest = map[string]any{"rest": int32(1)}
	}
	return rec
}

// alike draws a value, as a struct, a D, an M, a map or in one of them, and writes it with both packages.
func alike(t *testing.T, seed uint64, bits uint32) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	c := choose(bits)
	p := drawPairD(r, 3)
	if r.IntN(3) == 0 {
		rec := drawRecord(r)
		p = []pair{{rec, rec}, {&rec, &rec}}[r.IntN(2)]
	}
	if r.IntN(2) == 0 {
		p = holders[r.IntN(len(holders))](p)
	}
	want, wantErr := c.theirsEncode(p.theirs)
	got, err := c.ours.Marshal(p.ours)
	if (err != nil) != (wantErr != nil) || err == nil && !bytes.Equal(got, want) {
		t.Fatalf("seed %d, options%s\n%#v\nours   %x %v %v\ntheirs %x %v %v", seed, c.printed, p.ours, got, bson.Raw(got), err, want, bson.Raw(want), wantErr)
	}
}

func TestBothPackagesWriteTheSameBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 8000 {
		alike(t, r.Uint64(), r.Uint32()&r.Uint32())
	}
}

func FuzzBothPackagesWriteTheSameBytes(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint32(seed*seed))
	}
	f.Fuzz(alike)
}

// agree decodes with both packages into several types and compares. The bits choose options, and how strings are kept.
func agree(t *testing.T, data []byte, bits uint32) {
	t.Helper()
	memory := bson.StringMemory(bits >> 30 % 3)
	if bson.Raw(data).Validate() != nil {
		bits = 0 // their reader of streams, which the options need, takes memory for what a length promises: gigabytes
	}
	c := choose(bits)
	c.ours.Strings = memory
	check := func(target string, err, wantErr error, got, want any) {
		t.Helper()
		if (err != nil) != (wantErr != nil) {
			if wantErr != nil || !intended(data, target, err) {
				t.Errorf("into %s, options%s: %x %v\nours   %v\ntheirs %v %#v", target, c.printed, data, bson.Raw(data), err, wantErr, want)
			}
			return
		}
		if err == nil && !equal(got, want) {
			t.Errorf("into %s, options%s: %x %v\nours   %#v\ntheirs %#v", target, c.printed, data, bson.Raw(data), got, want)
		}
	}
	var d bson.D
	var od theirs.D
	check("D", c.ours.Unmarshal(data, &d), c.theirsDecode(data, &od), d, ourValue(od))
	var m bson.M
	var om theirs.M
	check("M", c.ours.Unmarshal(data, &m), c.theirsDecode(data, &om), m, ourValue(om))
	var a, oa any
	check("any", c.ours.Unmarshal(data, &a), c.theirsDecode(data, &oa), a, ourValue(oa))
	var rec, orec record
	err, wantErr := c.ours.Unmarshal(data, &rec), c.theirsDecode(data, &orec)
	orec.Any = ourValue(orec.Any)
	if orec.Rest != nil {
		orec.Rest = ourValue(orec.Rest).(map[string]any)
	}
	check("record", err, wantErr, rec, orec)
}

// intended reports whether ours refuses bytes that the official package takes because of one of the listed differences: the
// error must say so, and the bytes, looked at here anew, must be such.
func intended(data []byte, target string, err error) bool {
	text, w := err.Error(), walker{}
	w.document(data, 1)
	switch {
	case strings.Contains(text, "not UTF-8"):
		return w.notUTF8
	case strings.Contains(text, "not a code with scope"):
		return w.oddCode
	case strings.Contains(text, "nested deeper than"):
		return w.deepest > bson.MaxDepth
	}
	return false
}

// walker looks for what is listed, as far as the bytes can be read at all.
type walker struct {
	notUTF8, oddCode bool
	deepest          int
}

func (w *walker) document(b []byte, depth int) {
	w.deepest = max(w.deepest, depth)
	for key, v := range bson.Raw(b).All() {
		w.notUTF8 = w.notUTF8 || !utf8.ValidString(key)
		switch v.Type {
		case bson.TypeEmbeddedDocument, bson.TypeArray:
			w.document(v.Value, depth+1)
		case bson.TypeString, bson.TypeJavaScript, bson.TypeSymbol, bson.TypeRegex:
			w.notUTF8 = w.notUTF8 || !utf8.Valid(v.Value[min(4, len(v.Value)):]) || v.Type == bson.TypeRegex && !utf8.Valid(v.Value)
		case bson.TypeDBPointer:
			w.notUTF8 = w.notUTF8 || !utf8.Valid(v.Value[4:len(v.Value)-12])
		case bson.TypeCodeWithScope:
			w.code(v.Value, depth)
		}
	}
}

// code looks at a CodeWithScope: its length, the code's length, the code, the scope.
func (w *walker) code(b []byte, depth int) {
	code := int(binary.LittleEndian.Uint32(b[4:]))
	if code < 1 || 8+code+5 > len(b) || b[8+code-1] != 0 {
		w.oddCode = true
		return
	}
	scope := b[8+code:]
	w.notUTF8 = w.notUTF8 || !utf8.Valid(b[8:8+code])
	w.document(scope, depth+1)
}

func FuzzBothPackagesReadTheSameValues(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 40 {
		var v any = drawPairD(r, 2).ours
		if n%4 == 0 {
			v = drawRecord(r)
		}
		if data, err := bson.Marshal(v); err == nil {
			f.Add(data, r.Uint32())
		}
	}
	f.Fuzz(agree)
}

func TestBothPackagesReadTheSameValues(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 5000 {
		var v any = drawPairD(r, 3).ours
		if n%2 == 0 {
			v = drawRecord(r)
		}
		data, err := bson.Marshal(v)
		if err != nil {
			continue
		}
		agree(t, data, r.Uint32()&r.Uint32())
		broken := bytes.Clone(data)
		for range 1 + r.IntN(3) {
			broken[r.IntN(len(broken))] = byte(r.Uint32())
		}
		agree(t, broken, r.Uint32()&r.Uint32())
	}
}
