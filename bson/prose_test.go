package bson

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The prose tests of the specifications bson-corpus, bson-binary-vector, bson-objectid and bson-binary-uuid, each named by
// the specification and its number or title there. Those of extended-json and bson-decimal128 are in proseext_test.go.

// TestProseCorpus1ProhibitNullBytesInNullTerminatedStrings: in every way that a key or a part of a regex can be written.
func TestProseCorpus1ProhibitNullBytesInNullTerminatedStrings(t *testing.T) {
	type inlineMap struct {
		Rest map[string]int `bson:",inline"`
	}
	type text string
	for where, v := range map[string]any{
		"key of the root, D":      D{{"a\x00b", 1}},
		"key of the root, short":  D{{"\x00", 1}},
		"key of the root, long":   D{{strings.Repeat("k", 40) + "\x00", 1}},
		"key of the root, M":      M{"a\x00": 1},
		"key of the root, map":    map[string]int{"\x00": 1},
		"key of the root, named":  map[text]any{"\x00": 1},
		"key of the root, inline": inlineMap{map[string]int{"a\x00": 1}},
		"key of the root, tag": struct {
			A int "bson:\"a\\x00b\""
		}{1},
		"key of a sub-document, D":   D{{"a", D{{"b\x00", 1}}}},
		"key of a sub-document, M":   M{"a": M{"b\x00": 1}},
		"key of a sub-document, arr": D{{"a", A{D{{"b\x00", 1}}}}},
		"key of a scope":             D{{"a", CodeWithScope{"", D{{"\x00", 1}}}}},
		"pattern":                    D{{"a", Regex{"b\x00", ""}}},
		"options":                    D{{"a", Regex{"b", "i\x00"}}},
		"pattern, pointer":           D{{"a", &Regex{"b\x00", ""}}},
	} {
		if b, err := Marshal(v); err == nil || !strings.Contains(err.Error(), "NUL") {
			t.Errorf("%s: %#v is written as %x, %v", where, v, b, err)
		}
	}
	if _, err := AppendAny(nil, "a\x00", 1); err == nil {
		t.Error("AppendAny takes it as a key")
	}
	for _, text := range []string{`{"a\u0000": 1}`, `{"a": {"b\u0000": 1}}`, `{"a": {"$regularExpression": {"pattern": "\u0000", "options": ""}}}`,
		`{"a": {"$regularExpression": {"pattern": "", "options": "\u0000"}}}`} {
		if v, err := ParseExtJSON([]byte(text), false); err == nil {
			t.Errorf("%s is read as %x", text, v.Value)
		}
	}
}

// twice is { "foo": 1, "foo": 2 }.
var twice = Raw("\x17\x00\x00\x00\x10foo\x00\x01\x00\x00\x00\x10foo\x00\x02\x00\x00\x00\x00")

// TestProseCorpus2DuplicateKeys: writers, readers, D and Extended JSON keep both; Lookup finds the first; maps and structs
// hold the last.
func TestProseCorpus2DuplicateKeys(t *testing.T) {
	b, start := BeginDocument(nil)
	built := EndDocument(AppendInt32(AppendInt32(b, "foo", 1), "foo", 2), start)
	both := D{{"foo", int32(1)}, {"foo", int32(2)}}
	if got := mustMarshal(t, both); !bytes.Equal(built, twice) || !bytes.Equal(got, twice) {
		t.Errorf("2.1 encoding: %x, %x", built, got)
	}
	var elems []string
	for key, v := range twice.All() {
		elems = append(elems, fmt.Sprint(key, " ", v.Int32()))
	}
	if want := []string{"foo 1", "foo 2"}; !reflect.DeepEqual(elems, want) {
		t.Errorf("2.2 iterating: %v", elems)
	}
	if got := twice.Lookup("foo").Int32(); got != 1 {
		t.Errorf("2.2 looking up: %d", got)
	}
	var d D
	var m M
	var typed map[string]int
	var s struct{ Foo int }
	for _, to := range []any{&d, &m, &typed, &s} {
		if err := Unmarshal(twice, to); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(d, both) || m["foo"] != int32(2) || len(m) != 1 || typed["foo"] != 2 || s.Foo != 2 {
		t.Errorf("2.2 converting: %v, %v, %v, %v", d, m, typed, s)
	}
	if got, _ := d.Get("foo"); got != int32(1) {
		t.Errorf("2.2 looking up in a D: %v", got)
	}
	if got, err := MarshalExtJSON(twice, false, false); err != nil || string(got) != `{"foo":1,"foo":2}` {
		t.Errorf("2.2 Extended JSON: %s, %v", got, err)
	}
	if got := mustMarshal(t, d); !bytes.Equal(got, twice) {
		t.Errorf("2.3 round trip: %x", got)
	}
	if got, err := ParseExtJSON([]byte(`{ "foo": 1, "foo": 2 }`), false); err != nil || !bytes.Equal(got.Value, twice) {
		t.Errorf("2.4 parsing Extended JSON: %x, %v", got.Value, err)
	}
}

// TestProseVectorNonZeroIgnoredBits1Encoding: they are refused.
func TestProseVectorNonZeroIgnoredBits1Encoding(t *testing.T) {
	if v, err := NewPackedBitVector([]byte{0b11111111}, 7); err == nil || !strings.Contains(err.Error(), "0xff") {
		t.Errorf("%v, %v", v, err)
	}
}

// TestProseVectorNonZeroIgnoredBits2Decoding: they are refused too.
func TestProseVectorNonZeroIgnoredBits2Decoding(t *testing.T) {
	stored := Binary{TypeBinaryVector, []byte("\x10\x07\xff")}
	if v, err := NewVectorFromBinary(stored); err == nil {
		t.Errorf("a binary: %v", v)
	}
	var to struct{ V Vector }
	if err := Unmarshal(mustMarshal(t, D{{"v", stored}}), &to); err == nil || !strings.Contains(err.Error(), "v: ") {
		t.Errorf("a field: %v, %v", to.V, err)
	}
	var d D
	if err := Unmarshal(mustMarshal(t, D{{"v", stored}}), &d); err != nil || !reflect.DeepEqual(d, D{{"v", stored}}) {
		t.Errorf("a Binary, which is not interpreted: %v, %v", d, err)
	}
}

// TestProseVector3Comparison: vectors are equal where their binaries are. Since ignored bits are zero always, that is where
// the elements are.
func TestProseVector3Comparison(t *testing.T) {
	v, err := NewPackedBitVector([]byte{0b10000000}, 7)
	if err != nil || !v.Binary().Equal(Binary{TypeBinaryVector, []byte("\x10\x07\x80")}) {
		t.Fatalf("%v, %v", v.Binary(), err)
	}
	again, err := NewVectorFromBinary(v.Binary())
	if err != nil || !reflect.DeepEqual(v, again) || !v.Binary().Equal(again.Binary()) {
		t.Errorf("a round trip: %v, %v", again, err)
	}
	shorter, _ := NewPackedBitVector([]byte{0b10000000}, 6)
	if v.Binary().Equal(shorter.Binary()) || reflect.DeepEqual(v, shorter) {
		t.Error("1 and 10 are equal")
	}
	if NewVector([]int8{1}).Binary().Equal(NewVector([]float32{1}).Binary()) {
		t.Error("vectors of different types are equal")
	}
	if v.Binary().Equal(Binary{TypeBinaryVector, []byte("\x10\x07\xff")}) {
		t.Error("binaries with other ignored bits are equal")
	}
}

// TestProseObjectIDTimestampIsUnsigned: the four instants of the test plan, read and written.
func TestProseObjectIDTimestampIsUnsigned(t *testing.T) {
	for seconds, want := range map[uint32]string{
		0x00000000: "Jan 1st, 1970 00:00:00 UTC", 0x7FFFFFFF: "Jan 19th, 2038 03:14:07 UTC",
		0x80000000: "Jan 19th, 2038 03:14:08 UTC", 0xFFFFFFFF: "Feb 7th, 2106 06:28:15 UTC",
	} {
		at, err := time.Parse("Jan 2 2006 15:04:05 MST", strings.NewReplacer("st,", "", "th,", "").Replace(want))
		if err != nil {
			t.Fatal(err)
		}
		id, _ := ObjectIDFromHex(fmt.Sprintf("%08x0000000000000000", seconds))
		if !id.Timestamp().Equal(at) {
			t.Errorf("%x is read as %v", seconds, id.Timestamp())
		}
		if made := NewObjectIDFromTimestamp(at); !bytes.Equal(made[:4], id[:4]) {
			t.Errorf("%v is written as %x", at, made[:4])
		}
	}
	if now := NewObjectID().Timestamp(); time.Since(now) > time.Minute || time.Since(now) < -time.Minute {
		t.Errorf("a new id is of %v", now)
	}
}

// TestProseObjectIDCounterOverflows from 0xFFFFFF to 0x000000.
func TestProseObjectIDCounterOverflows(t *testing.T) {
	g := newObjectIDs()
	g.counter.Store(0xFFFFFE)
	var got []string
	for range 3 {
		id := g.at(time.Unix(0, 0))
		got = append(got, hex.EncodeToString(id[9:]))
	}
	if want := []string{"ffffff", "000000", "000001"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

// TestProseObjectIDRandomValueDiffersInAChildProcess: in this process and in a second one that runs this test.
func TestProseObjectIDRandomValueDiffersInAChildProcess(t *testing.T) {
	const child = "SEXTANT_TEST_PRINT_OBJECTID"
	if os.Getenv(child) != "" {
		fmt.Printf("id=%s\n", NewObjectID().Hex())
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.Output()
	_, after, ok := strings.Cut(string(out), "id=")
	if err != nil || !ok || len(after) < 24 {
		t.Fatalf("the child said %q, %v", out, err)
	}
	theirs, err := ObjectIDFromHex(after[:24])
	ours := NewObjectID()
	if err != nil || bytes.Equal(theirs[4:9], ours[4:9]) {
		t.Errorf("the child made %v, this process %v, %v", theirs, ours, err)
	}
	if next := NewObjectID(); !bytes.Equal(ours[4:9], next[4:9]) {
		t.Errorf("the random value changes within the process: %v, %v", ours, next)
	}
}

const proseUUID = "00112233-4455-6677-8899-aabbccddeeff"

// proseForms are the ways in which proseUUID is stored.
var proseForms = map[UUIDRepresentation]Binary{
	UUIDStandard:     {4, unhex("00112233445566778899AABBCCDDEEFF")},
	UUIDJavaLegacy:   {3, unhex("7766554433221100FFEEDDCCBBAA9988")},
	UUIDCSharpLegacy: {3, unhex("33221100554477668899AABBCCDDEEFF")},
	UUIDPythonLegacy: {3, unhex("00112233445566778899AABBCCDDEEFF")},
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// TestProseUUIDExplicitEncoding: the six cases.
func TestProseUUIDExplicitEncoding(t *testing.T) {
	u, err := ParseUUID(proseUUID)
	if err != nil || !u.Binary().Equal(proseForms[UUIDStandard]) {
		t.Errorf("1: %v, %v", u.Binary(), err)
	}
	for r, want := range proseForms {
		if got, err := u.BinaryAs(r); err != nil || !got.Equal(want) {
			t.Errorf("2 to 5, %v: %x, %v", r, got, err)
		}
	}
	for _, r := range []UUIDRepresentation{UUIDUnspecified, 9} {
		if got, err := u.BinaryAs(r); err == nil || !strings.Contains(err.Error(), r.String()) {
			t.Errorf("6, %v: %v, %v", r, got, err)
		}
	}
	if u.String() != proseUUID {
		t.Errorf("the UUID itself has changed to %v", u)
	}
}

// TestProseUUIDExplicitDecoding: the four cases, each with every representation.
func TestProseUUIDExplicitDecoding(t *testing.T) {
	u, _ := ParseUUID(proseUUID)
	for stored, b := range proseForms {
		if got, err := b.UUID(); (err == nil) != (stored == UUIDStandard) || err == nil && got != u {
			t.Errorf("%v, UUID: %v, %v", stored, got, err)
		}
		if got, err := b.UUIDAs(stored); err != nil || got != u {
			t.Errorf("%v: %v, %v", stored, got, err)
		}
		for _, r := range []UUIDRepresentation{UUIDUnspecified, UUIDStandard, UUIDJavaLegacy, UUIDCSharpLegacy, UUIDPythonLegacy} {
			legacy := r != UUIDStandard && stored != UUIDStandard && r != UUIDUnspecified // then the subtype tells nothing
			if got, err := b.UUIDAs(r); err == nil && r != stored && !legacy {
				t.Errorf("%v as %v: %v", stored, r, got)
			}
		}
	}
	if _, err := (Binary{4, make([]byte, 15)}).UUID(); err == nil {
		t.Error("15 bytes are a UUID")
	}
}

// TestProseUUIDImplicitEncodingAndDecoding: the representation is always the standard one. Into an any every UUID is a
// Binary, and a field of type UUID takes none of the legacy representations.
func TestProseUUIDImplicitEncodingAndDecoding(t *testing.T) {
	u, _ := ParseUUID(proseUUID)
	b := mustMarshal(t, D{{"_id", u}})
	if s, data, _ := b.Lookup("_id").BinaryOK(); s != 4 || !bytes.Equal(data, proseForms[UUIDStandard].Data) {
		t.Errorf("encoding 4: subtype %d, %x", s, data)
	}
	for stored, bin := range proseForms {
		b := mustMarshal(t, D{{"u", bin}})
		var d D
		if err := Unmarshal(b, &d); err != nil || !reflect.DeepEqual(d, D{{"u", bin}}) {
			t.Errorf("decoding %v into any: %v, %v", stored, d, err)
		}
		var s struct{ U UUID }
		if err := Unmarshal(b, &s); (err == nil) != (stored == UUIDStandard) || err == nil && s.U != u {
			t.Errorf("decoding %v into a UUID: %v, %v", stored, s.U, err)
		}
	}
}

// TestProseVectorExamples: the examples of the specification's text.
func TestProseVectorExamples(t *testing.T) {
	for data, check := range map[string]func(Vector) bool{
		"\x10\x04\xee\xe0":     func(v Vector) bool { b, p := v.PackedBit(); return bytes.Equal(b, []byte{0xee, 0xe0}) && p == 4 },
		"\x10\x07\x80":         func(v Vector) bool { b, p := v.PackedBit(); return bytes.Equal(b, []byte{0x80}) && p == 7 },
		"\x10\x00\xf0\x42":     func(v Vector) bool { b, p := v.PackedBit(); return bytes.Equal(b, []byte{0xf0, 0x42}) && p == 0 },
		"\x03\x00\xff\x00\x01": func(v Vector) bool { return reflect.DeepEqual(v.Int8(), []int8{-1, 0, 1}) },
		"\x27\x00\x00\x00\x80\x3f\x34\x12\x80\x7f": func(v Vector) bool {
			f := v.Float32()
			return len(f) == 2 && f[0] == 1 && math.Float32bits(f[1])&0x1234 == 0x1234 && f[1] != f[1]
		},
	} {
		v, err := NewVectorFromBinary(Binary{TypeBinaryVector, []byte(data)})
		if err != nil || !check(v) || string(v.Binary().Data)[:2] != data[:2] || len(v.Binary().Data) != len(data) {
			t.Errorf("%x: %v, %v", data, v, err)
		}
	}
	for _, data := range []string{"", "\x03", "\x03\x01\x00", "\x27\x01\x00\x00\x00\x00", "\x27\x00\x00", "\x10\x08\x00", "\x10\x01", "\x10\x10\x00", "\x00\x00", "\x13\x00\x00", "\x23\x00\x00"} {
		if v, err := NewVectorFromBinary(Binary{TypeBinaryVector, []byte(data)}); err == nil {
			t.Errorf("%x is %v", data, v)
		}
	}
}
