package interop

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	theirs "go.mongodb.org/mongo-driver/v2/bson"
)

// difference is an entry of the list in the documentation of package bson. check fails unless both packages still differ.
type difference struct {
	key, begins string
	check       func(t *testing.T)
}

var differences = []difference{
	{"container", "A document inside an M is decoded as an M", checkContainers},
	{"foreign", "A named [12]byte of another package is an error", checkForeign},
	{"utf8", "Keys and strings that are not UTF-8 are refused", checkUTF8},
	{"depth", "Documents nested deeper than 200 are refused", checkDepth},
	{"code", "The code of a CodeWithScope must end in NUL", checkCode},
	{"made", "Raw bytes are looked at before they are written", bySpot(madeDoc{[]byte{9, 0, 0, 0, 0}})},
	{"pointers", "Methods with pointer receivers", bySpot(pointerHook{1}, (*pointerHook)(nil))},
	{"null", "Null sets the zero value whatever the type", checkNull},
	{"raw", "A RawArray is an array", checkRaw},
	{"whole", "A whole document may also come from a ValueMarshaler", checkWhole},
	{"id", "A string is not decoded into an ObjectID", checkID},
	{"bytes", "An array of bytes takes binary of just its length", checkBytes},
	{"inline", "The exported fields of an inline struct count", bySpot(embInlineU{unexported{1}})},
	{"scope", "A CodeWithScope without a scope has an empty one", checkScope},
	{"nan", "A double that is NaN may be decoded into a float32", checkNaN},
	{"omitzero", "The tag omitzero is known", bySpot(omitsZero{})},
	{"omitempty", "Options.OmitEmpty holds for structs inside structs too", checkOmitEmpty},
	{"remembered", "Options.UseJSONStructTags and ErrorOnInlineDuplicates depend on nothing else", checkRemembered},
	{"decimal", "A Decimal128 with a coefficient of more than 34 digits", checkDecimal},
	{"zone", "Options.UseLocalTimeZone holds for a time", checkZone},
	{"padding", "The padding bits of a packed-bit Vector must be zero", checkPadding},
	{"extjson", "Extended JSON is read and written by the letter", checkExtJSON},
	{"uuid", "A $uuid may be written without hyphens", checkUUID},
	{"keys", "A map key that is a string is written by its MarshalKey", checkKeys},
	{"options", "The switches are one struct of plain values", checkOptions},
	{"registry", "Types are registered one by one", checkRegistry},
}

// known fails for a key that is not in the list.
func known(t *testing.T, key string) {
	t.Helper()
	for _, d := range differences {
		if d.key == key {
			return
		}
	}
	t.Errorf("the difference %q is not in the list", key)
}

// TestDifferencesAreThoseOfTheDocumentation holds the list equal to that in the documentation, and each entry to be true.
func TestDifferencesAreThoseOfTheDocumentation(t *testing.T) {
	documented := documentedDifferences(t)
	if len(documented) != len(differences) {
		t.Errorf("%d differences are documented, %d are in the list", len(documented), len(differences))
	}
	for i, d := range differences {
		if i < len(documented) && !strings.HasPrefix(documented[i], d.begins) {
			t.Errorf("the documentation has %q where the list has %q", documented[i], d.begins)
		}
		t.Run(d.key, d.check)
	}
}

// documentedDifferences are the items under the heading Differences of the package's documentation.
func documentedDifferences(t *testing.T) []string {
	f, err := parser.ParseFile(token.NewFileSet(), "../bson/doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var items []string
	under := false
	for _, block := range new(comment.Parser).Parse(f.Doc.Text()).Content {
		switch b := block.(type) {
		case *comment.Heading:
			under = plain(b.Text) == "Differences"
		case *comment.List:
			for _, item := range b.Items {
				if under {
					items = append(items, plain(item.Content[0].(*comment.Paragraph).Text))
				}
			}
		}
	}
	return items
}

func plain(texts []comment.Text) string {
	var b strings.Builder
	for _, x := range texts {
		switch x := x.(type) {
		case comment.Plain:
			b.WriteString(string(x))
		case *comment.DocLink:
			b.WriteString(plain(x.Text))
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// bySpot checks that the values are written otherwise inside a document.
func bySpot(values ...any) func(t *testing.T) {
	return func(t *testing.T) {
		for _, v := range values {
			got, err := bson.Marshal(bson.D{{Key: "v", Value: v}})
			want, theirErr := theirs.Marshal(theirs.D{{Key: "v", Value: v}})
			if (err == nil) == (theirErr == nil) && bytes.Equal(got, want) {
				t.Errorf("%T is written alike: %v", v, bson.Raw(got))
			}
		}
	}
}

// onlyTheirs fails unless ours is an error that says words, and theirs none.
func onlyTheirs(t *testing.T, what string, err, theirErr error, words string) {
	t.Helper()
	if err == nil || theirErr != nil || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: ours %v, theirs %v", what, err, theirErr)
	}
}

// onlyOurs fails unless theirs is an error and ours none.
func onlyOurs(t *testing.T, what string, err, theirErr error) {
	t.Helper()
	if err != nil || theirErr == nil {
		t.Errorf("%s: ours %v, theirs %v", what, err, theirErr)
	}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	b, err := bson.Marshal(bson.D{{Key: "v", Value: v}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func checkContainers(t *testing.T) {
	data := encoded(t, bson.D{})
	var m bson.M
	var om theirs.M
	if bson.Unmarshal(data, &m) != nil || theirs.Unmarshal(data, &om) != nil {
		t.Fatal("not read")
	}
	_, ours := m["v"].(bson.M)
	_, official := om["v"].(theirs.D)
	if !ours || !official {
		t.Errorf("a document in our M is %T, in theirs %T", m["v"], om["v"])
	}
}

type foreignID [12]byte

func checkForeign(t *testing.T) {
	_, err := bson.Marshal(bson.D{{Key: "id", Value: foreignID{}}})
	_, theirErr := theirs.Marshal(theirs.D{{Key: "id", Value: foreignID{}}})
	onlyTheirs(t, "written", err, theirErr, "bson.RegisterObjectIDType[interop.foreignID]")
	data := encoded(t, make([]byte, 12))
	onlyTheirs(t, "read", bson.Unmarshal(data, &struct{ V foreignID }{}), theirs.Unmarshal(data, &struct{ V foreignID }{}), "bson.RegisterObjectIDType[interop.foreignID]")
}

func checkUTF8(t *testing.T) {
	for name, doc := range map[string]string{
		"key":    "\x08\x00\x00\x00\x0a\xff\x00\x00",
		"string": "\x0e\x00\x00\x00\x02s\x00\x02\x00\x00\x00\xff\x00\x00",
		"regex":  "\x0b\x00\x00\x00\x0br\x00\xff\x00\x00\x00",
	} {
		onlyTheirs(t, name, bson.Unmarshal([]byte(doc), &bson.D{}), theirs.Unmarshal([]byte(doc), &theirs.D{}), "UTF-8")
	}
	_, err := bson.Marshal(bson.M{"k": "\xff"})
	_, theirErr := theirs.Marshal(theirs.M{"k": "\xff"})
	onlyTheirs(t, "string written", err, theirErr, "UTF-8")
	_, err = bson.Marshal(bson.M{"\xff": 1})
	_, theirErr = theirs.Marshal(theirs.M{"\xff": 1})
	onlyTheirs(t, "key written", err, theirErr, "UTF-8")
}

func checkDepth(t *testing.T) {
	var ours, official any = bson.D{}, theirs.D{}
	for range bson.MaxDepth {
		ours, official = bson.D{{Key: "a", Value: ours}}, theirs.D{{Key: "a", Value: official}}
	}
	_, err := bson.Marshal(ours)
	data, theirErr := theirs.Marshal(official)
	onlyTheirs(t, "written", err, theirErr, "deeper than 200")
	onlyTheirs(t, "read", bson.Unmarshal(data, &bson.D{}), theirs.Unmarshal(data, &theirs.D{}), "deeper than 200")
}

func checkCode(t *testing.T) {
	data := encoded(t, bson.CodeWithScope{Code: "f", Scope: bson.D{}})
	at := bytes.IndexByte(data, 'f') + 1
	data[at] = 'g'
	onlyTheirs(t, "read", bson.Unmarshal(data, &bson.D{}), theirs.Unmarshal(data, &theirs.D{}), "code with scope")
}

func checkNull(t *testing.T) {
	for name, data := range map[string][]byte{"null": encoded(t, nil), "undefined": encoded(t, bson.Undefined{})} {
		onlyOurs(t, name+" into a Vector", bson.Unmarshal(data, &struct{ V bson.Vector }{}), theirs.Unmarshal(data, &struct{ V theirs.Vector }{}))
		onlyOurs(t, name+" into error", bson.Unmarshal(data, &struct{ V error }{}), theirs.Unmarshal(data, &struct{ V error }{}))
		ours, official := struct{ V reader }{reader{"before"}}, struct{ V reader }{reader{"before"}}
		if bson.Unmarshal(data, &ours) != nil || theirs.Unmarshal(data, &official) != nil || ours.V.got != "" || official.V.got != "0 bytes" {
			t.Errorf("%s into an Unmarshaler: ours %q, theirs %q", name, ours.V.got, official.V.got)
		}
	}
}

// reader says what it was given.
type reader struct{ got string }

func (r *reader) UnmarshalBSON(b []byte) error { r.got = fmt.Sprint(len(b), " bytes"); return nil }

func checkRaw(t *testing.T) {
	ours, err := bson.Marshal(bson.M{"v": bson.RawArray(emptyDoc)})
	official, theirErr := theirs.Marshal(theirs.M{"v": theirs.RawArray(emptyDoc)})
	if err != nil || theirErr != nil || ours[4] != byte(bson.TypeArray) || official[4] != byte(bson.TypeBinary) {
		t.Errorf("a RawArray: ours %v %v, theirs %v %v", bson.Raw(ours), err, bson.Raw(official), theirErr)
	}
	data := encoded(t, bson.A{1})
	onlyTheirs(t, "an array into a Raw", bson.Unmarshal(data, &struct{ V bson.Raw }{}), theirs.Unmarshal(data, &struct{ V theirs.Raw }{}), "array")
	_, err = bson.Marshal(bson.M{"v": bson.Raw(nil)})
	_, theirErr = theirs.Marshal(theirs.M{"v": theirs.Raw(nil)})
	onlyOurs(t, "a nil Raw", err, theirErr)
}

func checkWhole(t *testing.T) {
	_, err := bson.Marshal(docValue{})
	_, theirErr := theirs.Marshal(docValue{})
	onlyOurs(t, "a ValueMarshaler", err, theirErr)
	_, err = bson.Marshal(bson.M(nil))
	_, theirErr = theirs.Marshal(theirs.M(nil))
	onlyTheirs(t, "a nil map", err, theirErr, "nil")
}

func checkID(t *testing.T) {
	for _, s := range []string{"57e193d7a9cc81b4027498b5", "twelve bytes"} {
		data := encoded(t, s)
		onlyTheirs(t, s, bson.Unmarshal(data, &struct{ V bson.ObjectID }{}), theirs.Unmarshal(data, &struct{ V theirs.ObjectID }{}), "cannot decode string")
	}
}

func checkBytes(t *testing.T) {
	data := encoded(t, []byte{1})
	onlyTheirs(t, "one byte into two", bson.Unmarshal(data, &struct{ V [2]byte }{}), theirs.Unmarshal(data, &struct{ V [2]byte }{}), "1 bytes into [2]uint8")
	data = encoded(t, bson.UUID{})
	onlyOurs(t, "a UUID", bson.Unmarshal(data, &struct{ V [16]byte }{}), theirs.Unmarshal(data, &struct{ V [16]byte }{}))
	data = encoded(t, bson.A{1})
	ours, official := struct{ V [2]int }{[2]int{8, 9}}, struct{ V [2]int }{[2]int{8, 9}}
	if bson.Unmarshal(data, &ours) != nil || theirs.Unmarshal(data, &official) != nil || ours.V != [2]int{1, 0} || official.V != [2]int{1, 9} {
		t.Errorf("the rest: ours %v, theirs %v", ours, official)
	}
}

func checkScope(t *testing.T) {
	_, err := bson.Marshal(bson.M{"v": bson.CodeWithScope{}})
	_, theirErr := theirs.Marshal(theirs.M{"v": theirs.CodeWithScope{}})
	onlyOurs(t, "written", err, theirErr)
}

func checkNaN(t *testing.T) {
	data := encoded(t, math.NaN())
	onlyOurs(t, "float32", bson.Unmarshal(data, &struct{ V float32 }{}), theirs.Unmarshal(data, &struct{ V float32 }{}))
	dec := theirs.NewDecoder(theirs.NewDocumentReader(bytes.NewReader(data)))
	dec.AllowTruncatingDoubles()
	onlyTheirs(t, "int", bson.Options{AllowTruncatingDoubles: true}.Unmarshal(data, &struct{ V int }{}), dec.Decode(&struct{ V int }{}), "double NaN into int")
}

func checkOmitEmpty(t *testing.T) {
	type outer struct{ In struct{ X int } }
	ours, err := bson.Options{OmitEmpty: true}.Marshal(outer{})
	var buf bytes.Buffer
	enc := theirs.NewEncoder(theirs.NewDocumentWriter(&buf))
	enc.OmitEmpty()
	theirErr := enc.Encode(outer{})
	if err != nil || theirErr != nil || bson.Raw(ours).String() != `{"in":{}}` || bson.Raw(buf.Bytes()).String() != `{"in":{"x":0}}` {
		t.Errorf("ours %v %v, theirs %v %v", bson.Raw(ours), err, bson.Raw(buf.Bytes()), theirErr)
	}
}

// usedBefore and usedTwice are used without an option first.
type usedBefore struct {
	A string `json:"jay"`
}

type usedTwice struct {
	X  int
	In struct{ X int } `bson:",inline"`
}

func checkRemembered(t *testing.T) {
	for _, v := range []any{usedBefore{}, usedTwice{}} {
		if _, err := bson.Marshal(v); err != nil {
			t.Fatal(err)
		}
		if _, err := theirs.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	ours, err := bson.Options{UseJSONStructTags: true}.Marshal(usedBefore{})
	var buf bytes.Buffer
	enc := theirs.NewEncoder(theirs.NewDocumentWriter(&buf))
	enc.UseJSONStructTags()
	theirErr := enc.Encode(usedBefore{})
	if err != nil || theirErr != nil || bson.Raw(ours).String() != `{"jay":""}` || bson.Raw(buf.Bytes()).String() != `{"a":""}` {
		t.Errorf("tags: ours %v %v, theirs %v %v", bson.Raw(ours), err, bson.Raw(buf.Bytes()), theirErr)
	}
	_, err = bson.Options{ErrorOnInlineDuplicates: true}.Marshal(usedTwice{})
	enc = theirs.NewEncoder(theirs.NewDocumentWriter(&buf))
	enc.ErrorOnInlineDuplicates()
	onlyTheirs(t, "duplicates", err, enc.Encode(usedTwice{}), `two fields with the key "x"`)
}

func checkDecimal(t *testing.T) {
	const high, low = 0x3041ed09bead87c0, 0x378d8e6400000000 // 10^34
	ours, official := bson.NewDecimal128(high, low), theirs.NewDecimal128(high, low)
	if ours.String() != "0" || official.String() == "0" {
		t.Errorf("ours %v, theirs %v", ours, official)
	}
}

func checkZone(t *testing.T) {
	data := encoded(t, "2012-12-24T12:15:30.501Z")
	var ours, official struct{ V time.Time }
	err := bson.Options{UseLocalTimeZone: true}.Unmarshal(data, &ours)
	dec := theirs.NewDecoder(theirs.NewDocumentReader(bytes.NewReader(data)))
	dec.UseLocalTimeZone()
	if theirErr := dec.Decode(&official); err != nil || theirErr != nil || ours.V.Location() != time.Local || official.V.Location() != time.UTC {
		t.Errorf("ours %v %v, theirs %v %v", ours.V.Location(), err, official.V.Location(), theirErr)
	}
}

func checkPadding(t *testing.T) {
	_, err := bson.NewPackedBitVector([]byte{0xff}, 3)
	_, theirErr := theirs.NewPackedBitVector([]byte{0xff}, 3)
	onlyTheirs(t, "made", err, theirErr, "padding bits")
}

func checkExtJSON(t *testing.T) {
	for text, words := range map[string]string{
		`{"a":1} trailing`: "unexpected 't'", `{"a":{"$binary":"AQ==","$type":"00"}}`: "$binary", `{"a":{"$date":5}}`: "$date",
		`{"a\u0000":1}`: "NUL", `{"a":"\ud83d"}`: "surrogate", "{\"a\":\"\n\"}": "control character", "{\"a\":\"\xff\"}": "UTF-8",
		`{"a":{"$numberDouble":"nan"}}`: "$numberDouble",
	} {
		onlyTheirs(t, text, bson.UnmarshalExtJSON([]byte(text), false, &bson.D{}), theirs.UnmarshalExtJSON([]byte(text), false, &theirs.D{}), words)
	}
	ours, err := bson.MarshalExtJSON(bson.M{"v": bson.DBPointer{DB: `"`}}, true, false)
	official, theirErr := theirs.MarshalExtJSON(theirs.M{"v": theirs.DBPointer{DB: `"`}}, true, false)
	if err != nil || theirErr != nil || !json.Valid(ours) || json.Valid(official) {
		t.Errorf("a DBPointer: ours %s %v, theirs %s %v", ours, err, official, theirErr)
	}
	ours, err = bson.MarshalExtJSON(bson.M{"v": bson.DateTime(500)}, false, false)
	official, theirErr = theirs.MarshalExtJSON(theirs.M{"v": theirs.DateTime(500)}, false, false)
	if err != nil || theirErr != nil || !bytes.Contains(ours, []byte("00.500Z")) || !bytes.Contains(official, []byte("00.5Z")) {
		t.Errorf("half a second: ours %s %v, theirs %s %v", ours, err, official, theirErr)
	}
	text := []byte(`{"a":1}`)
	onlyTheirs(t, "canonical", bson.UnmarshalExtJSON(text, true, &bson.D{}), theirs.UnmarshalExtJSON(text, true, &theirs.D{}), "canonical")
	text = []byte(`{"a":{"$scope":{},"$code":"f"}}`)
	onlyOurs(t, "order", bson.UnmarshalExtJSON(text, false, &bson.D{}), theirs.UnmarshalExtJSON(text, false, &theirs.D{}))
}

func checkUUID(t *testing.T) {
	text := []byte(`{"a":{"$uuid":"c8edabc3f7384ca3b68dab92a91478a3"}}`)
	onlyOurs(t, "a $uuid", bson.UnmarshalExtJSON(text, false, &bson.D{}), theirs.UnmarshalExtJSON(text, false, &theirs.D{}))
}

// bothWays is a key that is a string with methods for both directions, which put a mark in front and take it off; textWays
// is one with those of package encoding.
type (
	bothWays string
	textWays string
)

func (k bothWays) MarshalKey() (string, error) { return "=" + string(k), nil }
func (k *bothWays) UnmarshalKey(s string) error {
	*k = bothWays(strings.TrimPrefix(s, "="))
	return nil
}
func (k textWays) MarshalText() ([]byte, error) { return []byte("=" + string(k)), nil }
func (k *textWays) UnmarshalText(text []byte) error {
	*k = textWays(bytes.TrimPrefix(text, []byte("=")))
	return nil
}

func checkKeys(t *testing.T) {
	ours, err := bson.Marshal(map[bothWays]int{"=a": 1})
	official, theirErr := theirs.Marshal(map[bothWays]int{"=a": 1})
	if err != nil || theirErr != nil || bson.Raw(ours).String() != `{"==a":1}` || bson.Raw(official).String() != `{"=a":1}` {
		t.Errorf("a string with MarshalKey: ours %v %v, theirs %v %v", bson.Raw(ours), err, bson.Raw(official), theirErr)
	}
	var m, om map[bothWays]int
	if err, theirErr := bson.Unmarshal(ours, &m), theirs.Unmarshal(official, &om); err != nil || theirErr != nil || m["=a"] != 1 || om["a"] != 1 {
		t.Errorf("read back: ours %v %v, theirs %v %v", m, err, om, theirErr)
	}
	data, err := bson.Marshal(map[textWays]int{"=a": 1})
	official, theirErr = theirs.Marshal(map[textWays]int{"=a": 1})
	if err != nil || theirErr != nil || !bytes.Equal(data, official) {
		t.Errorf("a string with MarshalText: ours %v %v, theirs %v %v", bson.Raw(data), err, bson.Raw(official), theirErr)
	}
	var k, ok map[textWays]int
	if err, theirErr := bson.Unmarshal(data, &k), theirs.Unmarshal(data, &ok); err != nil || theirErr != nil || k["=a"] != 1 || ok["a"] != 1 {
		t.Errorf("read back: ours %v %v, theirs %v %v", k, err, ok, theirErr)
	}
	inside := map[encoding.TextMarshaler]int{(*valueText)(nil): 1}
	ours, err = bson.Marshal(inside)
	onlyOurs(t, "a nil pointer in an interface", err, safely(func() error { _, err := theirs.Marshal(inside); return err }))
	if bson.Raw(ours).String() != `{"":1}` {
		t.Errorf("a nil pointer in an interface is written as %v", bson.Raw(ours))
	}
}

// promise is a stream that promises a document of 32 MiB and ends.
func promise() io.Reader { return strings.NewReader("\x00\x00\x00\x02\x02s\x00\x00\x00\xff\x01") }

func checkOptions(t *testing.T) {
	if (bson.Options{}) != (bson.Options{Strings: bson.StringsInChunks}) || reflect.TypeFor[theirs.Decoder]().Comparable() && reflect.TypeFor[theirs.Encoder]().NumField() == 0 {
		t.Error("options cannot be compared")
	}
	allocated := func(decode func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		decode()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	var err, theirErr error
	ours := allocated(func() { err = bson.NewDecoder(promise()).Decode(&bson.D{}) })
	official := allocated(func() { theirErr = theirs.NewDecoder(theirs.NewDocumentReader(promise())).Decode(&theirs.D{}) })
	if err == nil || theirErr == nil || ours > 1<<20 || official < 16<<20 {
		t.Errorf("ours takes %d bytes, %v; theirs %d, %v", ours, err, official, theirErr)
	}
}

type late struct{ X int }

func checkRegistry(t *testing.T) {
	if b, err := bson.Marshal(bson.M{"v": late{1}}); err != nil || bson.Raw(b).String() != `{"v":{"x":1}}` {
		t.Fatal(bson.Raw(b), err)
	}
	bson.Register(func(l late) (bson.RawValue, error) { return bson.Int32Value(int32(l.X)), nil }, nil)
	if b, err := bson.Marshal(bson.M{"v": late{1}}); err != nil || bson.Raw(b).String() != `{"v":1}` {
		t.Error("registered after its first use:", bson.Raw(b), err)
	}
	if reflect.TypeFor[*theirs.Registry]().NumMethod() == 0 {
		t.Error("the official package has no registries any more")
	}
}
